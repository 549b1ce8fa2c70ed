"""Fit a game head to what a frozen classifier answers, update by update, from a checkpoint on."""

import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from spinformer._base.processes import rank_and_world
from spinformer._base.progress import progress
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.game_head import FOLDER, GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.training.checkpoint import Checkpoint, check_optimizer, check_step
from spinformer.training.game_hints import HintMap
from spinformer.training.game_loss import add_gradients
from spinformer.training.game_memory import Memory
from spinformer.training.game_options import GroundingOptions
from spinformer.training.muon import optimizers_of
from spinformer.training.schedule import schedule
from spinformer.training.seeding import step_generator, step_seed

STATE = "state.pt"
KEPT = 2**15  # texts whose answers are kept to be learnt from again
WORKERS = min(8, max(1, (os.cpu_count() or 2) - 1))  # processes that prepare batches while a GPU computes


def fit_game_head(
    head: GameHead,
    classifier: MaskedClassifier,
    texts: Texts,
    options: GroundingOptions,
    *,
    output: Path | None = None,
    resume: bool = False,
) -> None:
    """loss = FLOOR / (FLOOR + V) |p(C) - q(C)|^2 + ENTROPY H(p(C), q(C)) + (1 - s) hints |h(C) - g(C)|^2

    in the mean over texts and coalitions C. p(C): the classifier's probabilities when it sees the words C alone; q(C):
    the game head's prediction of them from the full text; V: the variance of p over the coalitions of a text, so that
    texts in which little happens count too; H(p, q) = -sum p log q, and for several labels also -(1 - p) log(1 - q);
    h(C): hidden states behind p(C), in units of their spread, and g(C) what the game head makes of them (`HintMap`); s:
    the part of the updates that is done, as hints help at first and later only take room. For scores p and q are in
    units of their spread, and H is 0. With `options.repeats` the answers about KEPT texts at a time are learnt from
    several times, which saves passes where these take most of the time; a run that is continued asks for them again.
    output: checkpoints are written to `output`/game; resume: continue from the one there. On a GPU the masked passes
    are in bfloat16, whatever the classifier given has.
    """
    options = options.suited(len(texts))
    if len(texts) < options.batch_size:
        raise ValueError(f"{texts.source}: expected at least one batch of {options.batch_size} texts; got {len(texts)}")
    batches = list(batches_of(texts, options))
    run = describe_run(head, texts, options)
    updates = Updates(head, classifier, texts, options, run, output, "cosine", len(batches))
    done = updates.restore(len(batches)) if resume else 0
    with updates:
        loaded = updates.progress(updates.loaded(texts, batches[done:]), len(batches))
        for batch, asked in zip(batches[done:], loaded, strict=True):
            updates.update(asked, batch)
            if updates.due:
                updates.save()
    head.eval()


def describe_run(head: GameHead, texts: Texts, options: GroundingOptions) -> dict[str, Any]:
    """What decides the weights of a game head."""
    return {"options": asdict(options), "model": head.config.model, "texts": texts.fingerprint()}


Asked = tuple[Words, Tensor]  # the words of some texts, and coalitions of them


class Batch(NamedTuple):
    """rows: of the texts; number: of the batch, among those asked; repeat: how often it was learnt from before."""

    rows: list[int]
    number: int
    repeat: int


def batches_of(
    texts: Texts, options: GroundingOptions, *, epochs: Sequence[int] = (), first: int = 0
) -> Iterator[Batch]:
    """The batch of every update, all epochs in turn, in each of them KEPT texts at a time, and of these all repeats.

    epochs: their numbers, by default as many as the options say; first: the number of the first batch.
    """
    size = options.batch_size
    most = max(1, KEPT // size)
    sampler = LengthSampler(torch.tensor(texts.lengths), size, options.seed)
    for place, epoch in enumerate(epochs or range(options.epochs)):
        sampler.set_epoch(epoch)
        order = list(sampler)
        count = len(order) // size
        steps = range(epoch * options.repeats, (epoch + 1) * options.repeats)
        generators = [step_generator(options.seed, step) for step in steps]
        for start in range(0, count, most):
            several = min(most, count - start)
            for repeat, generator in enumerate(generators):
                again = torch.randperm(several, generator=generator).tolist() if repeat else range(several)
                for number in (start + one for one in again):
                    yield Batch(order[number * size : (number + 1) * size], first + place * count + number, repeat)


class Updates:
    """The updates of a run: a game head, its optimiser and its rate, and the checkpoint that they are continued from.

    texts: some of those that are learnt from; run: what decides its result; kind, steps: of the rate (`schedule`).
    Within its block (`with`), casts of the classifier's weights are kept.
    """

    def __init__(
        self,
        head: GameHead,
        classifier: MaskedClassifier,
        texts: Texts,
        options: GroundingOptions,
        run: dict[str, Any],
        output: Path | None,
        kind: str,
        steps: int,
    ) -> None:
        self.head, self.options, self.device = head, options, classifier.device
        self.classifier = copy(classifier)
        self.classifier.bf16 = self.device.type == "cuda"
        self.hints = HintMap.measured(head, self.classifier, texts, options) if options.hints else None
        learnt: dict[str, nn.Module] = {"head": head} | ({} if self.hints is None else {"hints": self.hints})
        self.weights = [weight for part in learnt.values() for weight in part.parameters()]
        self.optimizers = optimizers_of(
            self.weights, options.learning_rate, options.weight_decay, muon=options.optimizer == "muon"
        )
        self.schedulers = {
            name: schedule(optimizer, kind, steps, warmup=options.warmup) for name, optimizer in self.optimizers.items()
        }
        rates = {f"{name} rate": scheduler for name, scheduler in self.schedulers.items()}
        self.parts: dict[str, Any] = {**learnt, **self.optimizers, **rates}
        self.checkpoint = Checkpoint(None if output is None else output / FOLDER / STATE, run)
        self.memory = Memory.on(self.device) if options.repeats > 1 else None
        self.before: Batch | None = None
        self.value: Tensor | None = None  # of the last update's loss, not looked at yet: a GPU is still computing it
        self.done = 0
        self.steps = steps if kind == "cosine" else None  # of a stream the end is not known
        # Kept to the end of the outermost block of autocast, even of one that is off.
        self.casts = torch.autocast(self.device.type, enabled=False)

    def restore(self, last: int, **others: Any) -> int:
        """Continue from the checkpoint, if there is one of at most `last` updates: how many are done.

        others: more to restore, each with load_state_dict.
        """
        state = self.checkpoint.read(self.device)
        if state is not None:
            groups = {name: [dict(group) for group in each.param_groups] for name, each in self.optimizers.items()}
            with self.checkpoint.restoring():
                self.done = check_step("step", state["step"], last)
                for name, part in (self.parts | others).items():
                    part.load_state_dict(state[name])
                for name, optimizer in self.optimizers.items():
                    check_optimizer(optimizer, groups[name])
                    check_step("last_epoch", self.schedulers[name].last_epoch, last)
        return self.done

    def save(self, **others: Any) -> None:
        """Write the checkpoint, where this process is the first; others: more to keep, each with state_dict."""
        self._check_value()
        if rank_and_world()[0] == 0:
            states = {name: part.state_dict() for name, part in (self.parts | others).items()}
            self.checkpoint.write({**states, "step": self.done})

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return self.done % self.options.save_steps == 0

    def progress(self, loaded: Any, total: int | None) -> Iterator[Any]:
        """What was loaded, with a progress bar that begins where the run does."""
        return iter(progress(loaded, "grounding", total, self.done))

    def loaded(self, texts: Texts, batches: Sequence[Batch]) -> DataLoader[Asked | None]:
        """The words and the coalitions of these batches, prepared by other processes while a GPU computes.

        None of a batch that comes again, which the memory has.
        """
        cuda = self.device.type == "cuda"
        return DataLoader(
            _Batches(self.classifier.tokenizer, texts, batches, self.options),
            batch_size=None,
            num_workers=WORKERS if cuda else 0,
            multiprocessing_context="fork" if cuda else None,
            worker_init_fn=_start_worker,
        )

    def __enter__(self) -> "Updates":
        self.head.train()
        self.casts.__enter__()
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        self.casts.__exit__(kind, *error)
        if kind is None:
            self._check_value()

    def update(self, asked: Asked | None, batch: Batch) -> None:
        """One update of the weights."""
        for weight in self.weights:
            weight.grad = None
        if self.memory is not None:
            if batch.repeat == 0 and self.before is not None and self.before.repeat:
                self.memory.clear()  # of the epoch before
            if asked is not None:
                self.memory.asked[batch.number] = asked
            asked = self.memory.asked[batch.number]
        if asked is None:
            raise ValueError(f"batch {batch.number} is expected to be prepared, or to have come before")
        words, coalitions = asked[0].to(self.device), asked[1].to(self.device)
        if self.hints is not None and self.steps is not None:
            self.hints.weight = self.options.hints * (1 - self.done / self.steps)
        given = (self.head, self.classifier, words, coalitions, self.memory, batch.number)
        value = add_gradients(*given, hints=self.hints)
        self._check_value()
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        for name, optimizer in self.optimizers.items():
            optimizer.step()
            self.schedulers[name].step()
        self.before, self.done, self.value = batch, self.done + 1, value

    def _check_value(self) -> None:
        """A ValueError where the loss of the last update was no number."""
        value, self.value = self.value, None
        if value is not None and not bool(value.isfinite()):
            raise ValueError(f"the loss became {float(value)} at step {self.done - 1}; a lower learning_rate may help")


class _Batches(Dataset[Asked | None]):
    """The words of each batch of texts, as numbers of tokens, and the coalitions to ask about; None if it was before.

    Coalitions are drawn here, in the loader's processes: beside a busy GPU a step would wait for them.
    """

    def __init__(self, tokenizer: Any, texts: Texts, batches: Sequence[Batch], options: GroundingOptions) -> None:
        self.tokenizer, self.texts, self.batches, self.options = tokenizer, texts, batches, options
        first: dict[int, int] = {}
        for place, batch in enumerate(batches):
            first.setdefault(batch.number, place)
        self.new = frozenset(first.values())

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Asked | None:
        if index not in self.new:
            return None
        batch, options = self.batches[index], self.options
        words = split_words(self.tokenizer, self.texts.select(batch.rows), options.max_length).tokens_alone()
        return words, draw_coalitions(words.mask, options.subsets, seed=step_seed(options.seed, batch.number))


def _start_worker(worker: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there are several processes: one thread each is enough
