"""Grounding: train a game head to say what a frozen classifier says of parts of texts. No labels."""

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from spinformer import checks
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.games.draws import kernel_sizes, members, uniform_sizes
from spinformer.models.grounding import (
    FOLDER,
    Form,
    GameHead,
    GroundedGames,
    GroundingConfig,
    Scope,
    default_layers,
    digest,
)
from spinformer.models.hidden import hidden_width, layer_count, resolve_layers
from spinformer.models.masked import MaskedClassifier, Masking
from spinformer.progress import progress
from spinformer.training.schedule import schedule
from spinformer.whole import whole

Draw = Literal["sizes", "kernel", "edges", "own"]
STATE = "state.pt"
WORKERS = 2  # processes that split texts into words while a GPU works


@dataclass(frozen=True)
class Grounding:
    """How a game head is trained.

    subsets: masked passes for each text and epoch; draw: how their coalitions are drawn (`draw_coalitions`); masking:
    how words are taken away (`MaskedClassifier`); max_length: tokens kept; layers, heads, dim, hidden, readout, form,
    scope: of the head (`GroundingConfig`), layers empty for its own choice; save_steps: updates between checkpoints.
    """

    epochs: int = 1
    batch_size: int = 64
    subsets: int = 4
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    draw: Draw = "sizes"
    masking: Masking = "attention"
    max_length: int = 128
    layers: tuple[int, ...] = ()
    heads: int = 16
    dim: int = 256
    hidden: int = 512
    readout: int = 128
    form: Form = "softmax"
    scope: Scope = "class"
    save_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "subsets", "save_steps"):
            checks.at_least(name, getattr(self, name), 1)
        checks.choice("draw", self.draw, get_args(Draw))
        checks.positive("learning_rate", self.learning_rate)


def ground(
    model: Any, tokenizer: Any, texts: Texts, output: Path, options: Grounding, *, resume: bool = False
) -> GameHead:
    """A new head for a frozen classifier, trained by `learn` and left in `output`/game.

    resume: go on from the checkpoint there, to the same weights.
    """
    classifier = MaskedClassifier(model, tokenizer, options.masking, batch_size=1024)
    torch.manual_seed(options.seed)
    head = GameHead(_config(model, options)).to(classifier.device)
    learn(head, classifier, texts, options, kept=output, resume=resume)
    head.save(output)
    (output / FOLDER / STATE).unlink(missing_ok=True)
    return head


def learn(
    head: GameHead,
    classifier: MaskedClassifier,
    texts: Texts,
    options: Grounding,
    *,
    kept: Path | None = None,
    resume: bool = False,
) -> None:
    """loss = - sum over c of p_c(C) log q_c(C), mean over texts and coalitions

    p: what the frozen classifier says when it sees the words C alone; q: what the head predicts from the whole text.
    kept: a folder for checkpoints; resume: go on from the one there.
    """
    if len(texts) < options.batch_size:
        raise ValueError(f"{texts.source}: expected at least one batch of {options.batch_size} texts; got {len(texts)}")
    device = classifier.device
    optimizer = torch.optim.AdamW(head.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
    batches = list(_batches(torch.tensor(texts.lengths), options))
    scheduler = schedule(optimizer, "cosine", len(batches), warmup=options.warmup)
    described = {"options": asdict(options), "model": head.config.model, "texts": texts.fingerprint()}
    done = _restore(kept, described, head, optimizer, scheduler) if resume and kept is not None else 0
    head.train()
    loader = DataLoader(
        _Split(classifier.tokenizer, texts, batches[done:], options.max_length),
        batch_size=None,
        num_workers=WORKERS if device.type == "cuda" else 0,
        multiprocessing_context="fork" if device.type == "cuda" else None,
        worker_init_fn=_one_thread,
    )
    for step, found in enumerate(progress(loader, "grounding", len(batches), done), start=done):
        words = found.to(device)
        games = head.games(classifier.model, words)
        seed = 1_000_003 * options.seed + step
        coalitions = draw_coalitions(words.mask, options.subsets, options.draw, seed=seed)
        if options.draw == "own":
            coalitions[:, ::2] = own_coalitions(games, coalitions[:, ::2].shape[1], seed=seed + 500_009)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            real = classifier.probabilities(words, coalitions)
        loss = -(real * games.log_probabilities(coalitions)).sum(-1).mean()
        if not math.isfinite(loss.item()):
            raise ValueError(f"the loss became {loss.item()} at step {step}; a lower learning_rate may help")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if kept is not None and (step + 1) % options.save_steps == 0:
            _save(kept, described, head, optimizer, scheduler, step + 1)
    head.eval()


def _one_thread(worker: int) -> None:
    """Several processes split texts at once: none of them needs threads of its own."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


class _Split(Dataset[Words]):
    """The words of one batch of texts after another."""

    def __init__(self, tokenizer: Any, texts: Texts, batches: list[list[int]], max_length: int) -> None:
        self.tokenizer, self.texts, self.batches, self.max_length = tokenizer, texts, batches, max_length

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, place: int) -> Words:
        return split(self.tokenizer, self.texts.select(self.batches[place]), self.max_length)


def draw_coalitions(mask: Tensor, count: int, draw: Draw, *, seed: int) -> Tensor:
    """(B, count, W) coalitions of the words in `mask`, (B, W); the same on every device.

    "sizes": the size uniform from 0 to all, then the members; "kernel": sizes s with chance proportional to
    1 / (s (W - s)), as the Shapley kernel has them; "edges": half of them nearly full or nearly empty; "own": as
    "sizes", and in training every second one is drawn by the game's own attention instead.
    """
    generator = torch.Generator().manual_seed(seed)
    present = mask.cpu()
    rows, width = present.shape
    counts = present.sum(-1)
    chance = torch.rand(rows, count, generator=generator)
    size = kernel_sizes(chance, counts, width) if draw == "kernel" else uniform_sizes(chance, counts)
    if draw == "edges":
        near = (3 * torch.rand(rows, count, generator=generator)).long() + 1
        edge = torch.rand(rows, count, generator=generator) < 0.5
        size = torch.where(edge, torch.where(chance < 0.5, near, counts[:, None] - near).clamp_min(0), size)
    scores = torch.rand(rows, count, width, generator=generator)
    return members(scores, size, present).to(mask.device)


@torch.no_grad()
def own_coalitions(games: GroundedGames, count: int, *, seed: int) -> Tensor:
    """Each word is in with chance alpha_i = (1 + tanh(n share_i - 1)) / 2, its share being of what words are worth when
    they leave last, v(N) - v(N - i); every second coalition is drawn by 1 - alpha_i."""
    mask, game = games.mask, games.game()
    alone = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    values = game(torch.cat([mask[:, None], mask[:, None] & ~alone], 1))
    drop = (values[:, :1] - values[:, 1:]) * mask
    share = drop / drop.abs().sum(-1, keepdim=True).clamp_min(1e-6)
    chance = (1 + torch.tanh(mask.sum(-1, keepdim=True) * share - 1)) / 2
    flipped = torch.arange(count, device=mask.device) % 2 == 1
    chance = torch.where(flipped[:, None], 1 - chance[:, None], chance[:, None])
    draws = torch.rand(len(mask), count, mask.shape[1], generator=torch.Generator().manual_seed(seed))
    return (draws.to(mask.device) < chance) & mask[:, None]


def _config(model: Any, options: Grounding) -> GroundingConfig:
    layers = resolve_layers(model, options.layers) if options.layers else default_layers(layer_count(model))
    width = hidden_width(model)
    sizes = {name: getattr(options, name) for name in ("heads", "dim", "hidden", "readout", "form", "scope", "masking")}
    return GroundingConfig(layers, width, int(model.config.num_labels), model=digest(model), **sizes)


def _batches(lengths: Tensor, options: Grounding) -> Iterator[list[int]]:
    sampler = LengthSampler(lengths, options.batch_size, options.seed)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        order = list(sampler)
        yield from (order[start : start + options.batch_size] for start in range(0, len(order), options.batch_size))


def _save(output: Path, described: dict[str, Any], head: GameHead, optimizer: Any, scheduler: Any, step: int) -> None:
    folder = output / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        **described,
        "head": head.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "step": step,
    }
    with whole(folder / STATE) as partial:
        torch.save(state, partial)


def _restore(output: Path, described: dict[str, Any], head: GameHead, optimizer: Any, scheduler: Any) -> int:
    """Steps done, 0 where there is no checkpoint."""
    path = output / FOLDER / STATE
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True, map_location=next(head.parameters()).device)
    other = [name for name, value in described.items() if state[name] != value]
    if other:
        raise ValueError(f"{path} is a checkpoint of another grounding; these differ: {', '.join(other)}")
    head.load_state_dict(state["head"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    return int(state["step"])
