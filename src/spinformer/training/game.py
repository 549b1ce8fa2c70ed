"""Train a game head: it learns what a frozen classifier answers when it sees only some of the words. No labels."""

import json
import math
import os
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from spinformer._base import checks
from spinformer._base.choices import Masking
from spinformer._base.files import atomic_text, regular, run_lock, sha256
from spinformer._base.outputs import Outputs
from spinformer._base.processes import rank_and_world, wait_for_all
from spinformer._base.progress import progress
from spinformer._base.rng import seeded
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.games.coalitions import members, uniform_sizes
from spinformer.models.game_head import FOLDER, WEIGHTS, GameHead, GameHeadConfig, default_layers
from spinformer.models.hidden_states import hidden_width, layer_count, resolve_layers
from spinformer.models.identity import kept_states, weights_digest
from spinformer.models.lengths import resolve_max_length
from spinformer.models.masked import Hide, MaskedClassifier
from spinformer.training.calibration import measure_misfit
from spinformer.training.checkpoint import Checkpoint, check_optimizer, check_step
from spinformer.training.game_loss import add_gradients, score_scale
from spinformer.training.game_memory import Memory
from spinformer.training.game_options import GroundingOptions as GroundingOptions
from spinformer.training.game_time import announcement, seconds_per_text
from spinformer.training.schedule import schedule
from spinformer.training.seeding import step_generator, step_seed

STATE, ENDED = "state.pt", "run.json"
HELD_OUT = 100  # texts on which the misfit is measured
WORKERS = min(8, max(1, (os.cpu_count() or 2) - 1))  # processes that prepare batches while a GPU computes


def train_game_head(
    model: Any,
    tokenizer: Any,
    texts: Texts,
    output: Path,
    options: GroundingOptions,
    *,
    held_out: Texts | None = None,
    resume: bool = False,
    hide: Hide | None = None,
    announce: Callable[[str], None] | None = None,
) -> GameHead:
    """A new game head for a frozen classifier, trained by `fit_game_head` and saved in `output`/game.

    held_out: texts to measure its misfit on (`measure_misfit`); without them explanations do not know it. resume:
    continue from the checkpoint there, to the same weights, or take the game head that the same run left there at its
    end. No other run may write to the folder meanwhile. hide: the function that hides words, with masking "own". The
    processes of one run, where they were joined (`spinformer._base.processes`), share every batch, and all return the
    same game head. announce: is told beforehand what the run will do and how long it takes. Torch's global random state
    is left as it was.
    """
    checks.instance("options", options, GroundingOptions)
    if (hide is not None) != (options.masking == "own"):
        raise ValueError(f"masking 'own' goes with a function that hides words; got {options.masking!r} and {hide!r}")
    checks.instance("output", output, Path)
    checks.instance("texts", texts, Texts)
    if held_out is not None:
        checks.instance("held_out", held_out, Texts)
        if not len(held_out):
            raise ValueError("held_out must have at least one text to measure the misfit on; got none")
    with run_lock(output / FOLDER):
        masking = hide or options.masking
        return _train_game_head(model, tokenizer, texts, output, options, held_out, resume, masking, announce)


def _train_game_head(
    model: Any,
    tokenizer: Any,
    texts: Texts,
    output: Path,
    options: GroundingOptions,
    held_out: Texts | None,
    resume: bool,
    masking: Masking | Hide,
    announce: Callable[[str], None] | None,
) -> GameHead:
    classifier = MaskedClassifier(model, tokenizer, masking, batch_size=1024)
    options = replace(options, max_length=resolve_max_length(model, tokenizer, options.max_length or None))
    with seeded(options.seed):  # weights are drawn on the CPU
        scale = score_scale(classifier, texts, options.max_length)
        head = GameHead(_config(model, options, texts, classifier.outputs, scale)).to(classifier.device)
        run = _run(head, texts, options) | {"held_out": None if held_out is None else held_out.fingerprint()}
        ended = _EndedRun(output / FOLDER, run)
        if resume and ended.matches():
            Checkpoint(output / FOLDER / STATE, {}).remove()  # of a run that was killed while it did so
            return GameHead.load(output, model).to(classifier.device)
        if announce is not None:
            sizes = options.subsets, options.batch_size, options.max_length, options.repeats
            seconds = seconds_per_text(head, classifier, texts, *sizes)
            held = 0 if held_out is None else len(held_out)
            announce(announcement(len(texts), options.epochs, options.subsets, held, seconds))
        fit_game_head(head, classifier, texts, options, output=output, resume=resume)
        first = rank_and_world()[0] == 0
        if held_out is not None and first:
            head.misfit = measure_misfit(head, classifier, held_out, max_length=options.max_length, seed=options.seed)
    if first:
        head.probe = kept_states(model)
        head.save(output)
        ended.write()
        Checkpoint(output / FOLDER / STATE, {}).remove()
    wait_for_all()
    return head if first else GameHead.load(output, model).to(classifier.device)


def _run(head: GameHead, texts: Texts, options: GroundingOptions) -> dict[str, Any]:
    """What decides the weights of a game head."""
    return {"options": asdict(options), "model": head.config.model, "texts": texts.fingerprint()}


@dataclass(frozen=True)
class _EndedRun:
    """The run that the game head in a folder is the end of, on file."""

    folder: Path
    run: dict[str, Any]

    def _content(self) -> str:
        return json.dumps({"run": self.run, "weights": sha256(self.folder / WEIGHTS)}, indent=1) + "\n"

    def write(self) -> None:
        atomic_text(self.folder / ENDED, self._content())

    def matches(self) -> bool:
        try:
            return regular(self.folder / ENDED).read_text() == self._content()
        except (OSError, UnicodeDecodeError):
            return False


def hold_out(texts: Texts, seed: int, count: int = HELD_OUT) -> tuple[Texts, Texts | None]:
    """Texts to train on, and others, at most `count` and a tenth of all, to measure the misfit on; None below ten."""
    held = min(count, len(texts) // 10)
    if not held:
        return texts, None
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed)).tolist()
    return texts.select(sorted(order[held:])), texts.select(sorted(order[:held]))


def fit_game_head(
    head: GameHead,
    classifier: MaskedClassifier,
    texts: Texts,
    options: GroundingOptions,
    *,
    output: Path | None = None,
    resume: bool = False,
) -> None:
    """loss = sum over c of (p_c(C) - q_c(C))^2 + ENTROPY H(p_c(C), q_c(C)), mean over texts and coalitions C

    p(C): the classifier's probabilities when it sees the words C alone; q(C): the game head's prediction of them from
    the full text; H(p, q) = -p log q, and for each of several labels also -(1 - p) log(1 - q). For scores the loss is
    the first term, in units of their spread. With `options.repeats` the answers of an epoch are kept and learnt from
    several times, which saves passes where these take most of the time; a run that is continued asks for them again.
    output: checkpoints are written to `output`/game; resume: continue from the one there. On a GPU the masked passes
    are in bfloat16, whatever the classifier given has.
    """
    if len(texts) < options.batch_size:
        raise ValueError(f"{texts.source}: expected at least one batch of {options.batch_size} texts; got {len(texts)}")
    device = classifier.device
    classifier = copy(classifier)
    classifier.bf16 = device.type == "cuda"
    optimizer = torch.optim.AdamW(head.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
    batches = list(_batches(torch.tensor(texts.lengths), options))
    scheduler = schedule(optimizer, "cosine", len(batches), warmup=options.warmup)
    parts: dict[str, Any] = {"head": head, "optimizer": optimizer, "scheduler": scheduler}
    checkpoint = Checkpoint(None if output is None else output / FOLDER / STATE, _run(head, texts, options))
    state = checkpoint.read(device) if resume else None
    done = 0
    if state is not None:
        groups = [dict(group) for group in optimizer.param_groups]
        with checkpoint.restoring():
            done = check_step("step", state["step"], len(batches))
            for name, part in parts.items():
                part.load_state_dict(state[name])
            check_optimizer(optimizer, groups)
            check_step("last_epoch", scheduler.last_epoch, len(batches))
    head.train()
    loader = DataLoader(
        _Batches(classifier.tokenizer, texts, batches, options, done),
        batch_size=None,
        num_workers=WORKERS if device.type == "cuda" else 0,
        multiprocessing_context="fork" if device.type == "cuda" else None,
        worker_init_fn=_start_worker,
    )
    memory = Memory() if options.repeats > 1 else None
    # Casts of the classifier's weights are kept to the end of the outermost block of autocast, even of one that is off.
    with torch.autocast(device.type, enabled=False):
        for step, (batch, drawn) in enumerate(progress(loader, "grounding", len(batches), done), start=done):
            optimizer.zero_grad(set_to_none=True)
            if memory is not None and batches[step].repeat == 0 and step and batches[step - 1].repeat:
                memory.clear()  # of the epoch before
            number = batches[step].number
            value = add_gradients(head, classifier, batch.to(device), drawn.to(device), memory, number)
            if not math.isfinite(value):
                raise ValueError(f"the loss became {value} at step {step}; a lower learning_rate may help")
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            if (step + 1) % options.save_steps == 0 and rank_and_world()[0] == 0:
                checkpoint.write({**{name: part.state_dict() for name, part in parts.items()}, "step": step + 1})
    head.eval()


def draw_coalitions(mask: Tensor, count: int, *, seed: int) -> Tensor:
    """(B, count, W) coalitions of the words in `mask`, (B, W): the size uniform from 0 to all words, then the members.

    The same on every device.
    """
    generator = torch.Generator().manual_seed(seed)
    present = mask.cpu()
    rows, width = present.shape
    sizes = uniform_sizes(torch.rand(rows, count, generator=generator), present.sum(-1))
    scores = torch.rand(rows, count, width, generator=generator)
    return members(scores, sizes, present).to(mask.device)


class _Batch(NamedTuple):
    """rows: of the texts; number: of the batch, among those asked; repeat: how often it was learnt from before."""

    rows: list[int]
    number: int
    repeat: int


class _Batches(Dataset[tuple[Words, Tensor]]):
    """The words of each batch of texts, as numbers of tokens, and the coalitions to ask about; `done` are left out.

    Coalitions are drawn here, in the loader's processes: beside a busy GPU a step would wait for them.
    """

    def __init__(
        self, tokenizer: Any, texts: Texts, batches: list[_Batch], options: GroundingOptions, done: int
    ) -> None:
        self.tokenizer, self.texts, self.batches, self.options, self.done = tokenizer, texts, batches, options, done

    def __len__(self) -> int:
        return len(self.batches) - self.done

    def __getitem__(self, index: int) -> tuple[Words, Tensor]:
        step, options = self.done + index, self.options
        batch = self.batches[step]
        words = split_words(self.tokenizer, self.texts.select(batch.rows), options.max_length).tokens_alone()
        return words, draw_coalitions(words.mask, options.subsets, seed=step_seed(options.seed, batch.number))


def _start_worker(worker: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there are several processes: one thread each is enough


def _config(model: Any, options: GroundingOptions, texts: Texts, outputs: Outputs, scale: float) -> GameHeadConfig:
    layers = resolve_layers(model, options.layers) if options.layers else default_layers(layer_count(model))
    names = ("form", "heads", "dim", "hidden", "readout", "reads", "masking")
    sizes = {name: getattr(options, name) for name in names} | {"outputs": outputs, "scale": scale}
    sizes["texts"] = 2 if texts.paired else 1
    classes = int(model.config.num_labels)
    return GameHeadConfig(layers, hidden_width(model), classes, model=weights_digest(model), **sizes)


def _batches(lengths: Tensor, options: GroundingOptions) -> Iterator[_Batch]:
    """The batch of every update, all epochs in turn, and in each of them all repeats."""
    sampler, size = LengthSampler(lengths, options.batch_size, options.seed), options.batch_size
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        order = list(sampler)
        count = len(order) // size
        for repeat in range(options.repeats):
            generator = step_generator(options.seed, epoch * options.repeats + repeat)
            numbers = torch.randperm(count, generator=generator).tolist() if repeat else range(count)
            for number in numbers:
                yield _Batch(order[number * size : (number + 1) * size], epoch * count + number, repeat)
