"""Learn a game from a stream of texts: each once, until twice as many bring next to nothing."""

import math
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base.processes import rank_and_world, sum_over_processes
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import answers_of
from spinformer.training.game_fit import Asked, Batch, Updates, batches_of
from spinformer.training.game_options import GroundingOptions

RISE = 200  # updates in which the rate rises, divided by `warmup`: the end of a stream is not known beforehand
POWER = 8  # of the average over updates t, in which each counts as t (t + 1) ... (t + POWER - 1), about t^POWER
EVERY = 50  # updates between two looks at the held-out texts
LEAST = 400  # updates before a run may stop
COALITIONS = 8  # of each held-out text
TOGETHER = 32  # held-out texts at a time


class Watch:
    """R² = 1 - sum (p_c(C) - q_c(C))² / sum (p_c(C) - mean p_c)², over held-out texts, coalitions C and outputs c

    history: the number of updates and the R² then, in turn; texts: how many were learnt from.
    """

    def __init__(self, classifier: MaskedClassifier, held_out: Texts, options: GroundingOptions) -> None:
        self.classifier, self.history, self.texts = classifier, list[tuple[int, float]](), 0
        self.parts: list[tuple[Words, Tensor, Tensor]] = []
        for start in range(0, len(held_out), TOGETHER):
            rows = held_out.select(range(start, min(start + TOGETHER, len(held_out))))
            words = split_words(classifier.tokenizer, rows, options.max_length).to(classifier.device)
            asked = draw_coalitions(words.mask, COALITIONS, seed=options.seed + start)
            self.parts.append((words, asked, classifier.probabilities(words, asked)))

    @torch.no_grad()
    def look(self, head: GameHead, updates: int) -> None:
        """Note how good the head is. Of several processes, all note what the first found."""
        wrong, spread = [], []
        mean = torch.cat([answers.flatten(0, 1) for _, _, answers in self.parts]).mean(0)
        for words, asked, answers in self.parts:
            predicted = answers_of(head.games(self.classifier.model, words).logits(asked), head.config.outputs)
            wrong.append((answers - predicted).square().sum())
            spread.append((answers - mean).square().sum())
        found = 1 - torch.stack(wrong).sum() / torch.stack(spread).sum().clamp_min(1e-12)
        if rank_and_world()[1] > 1:
            found = found if rank_and_world()[0] == 0 else torch.zeros_like(found)
            sum_over_processes([found])
        self.history.append((updates, float(found)))

    @property
    def gain(self) -> float:
        """What the second half of all updates brought of R²; infinite before there were two halves."""
        updates, now = self.history[-1] if self.history else (0, 0.0)
        before = [value for number, value in self.history if 2 * number <= updates]
        return now - before[-1] if before and updates >= LEAST else math.inf

    def over(self, gain: float) -> bool:
        """Whether the second half brought less than this; never, where it is 0."""
        return gain > 0 and self.gain < gain

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"history": list(self.history), "texts": self.texts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.history = [(int(number), float(value)) for number, value in state["history"]]
        self.texts = int(state["texts"])


def fit_stream(
    head: GameHead,
    classifier: MaskedClassifier,
    parts: Iterable[Texts],
    held_out: Texts,
    options: GroundingOptions,
    run: dict[str, Any],
    *,
    output: Path | None = None,
    resume: bool = False,
) -> str:
    """As `fit_game_head`, w = sum over updates t of t^POWER w_t, divided by its weights; what was learnt, in words

    parts: of the stream; of each, the answers are learnt from `options.repeats` times. The rate stays the same, as the
    end is not known; the average w of the weights w_t after each update takes the place of its decay. The run ends with
    the stream, or when the second half of its updates brought less than `options.gain` of R² on the held-out texts.
    run: what decides the result.
    """
    updates = Updates(
        head, classifier, held_out, options, run, output, "constant", round(RISE / max(options.warmup, 0.01))
    )
    averaged, watch = deepcopy(head).eval(), Watch(updates.classifier, held_out, options)
    kept = {"averaged": averaged, "watch": watch}
    if resume:
        updates.restore(2**62, **kept)
    over = watch.over(options.gain)  # of a run that was stopped after its last update
    with updates:
        batches = () if over else _batches(updates, parts, options)
        for texts, asked, batch in updates.progress(batches, None):
            updates.update(asked, batch)
            _average(averaged, head, updates.done)
            watch.texts = texts
            if updates.done % EVERY == 0:
                watch.look(averaged, updates.done)
                over = watch.over(options.gain)
            if updates.due:
                updates.save(**kept)
            if over:
                break
    if not updates.done:
        raise ValueError(f"expected a stream of at least one batch of {options.batch_size} texts; got fewer")
    if not watch.history or watch.history[-1][0] < updates.done:
        watch.look(averaged, updates.done)
    head.load_state_dict(averaged.state_dict())
    head.eval()
    reached = f"an R² of {watch.history[-1][1]:.3f} on the held-out texts"
    if over:
        return f"stopped after {watch.texts:,} texts, at {reached}: the second half of them brought {watch.gain:.3f}"
    few = "; so few texts teach more without a stream" if updates.done < LEAST else ""
    return f"learnt from all {watch.texts:,} texts of the stream: {reached}{few}"


def _batches(
    updates: Updates, parts: Iterable[Texts], options: GroundingOptions
) -> Iterator[tuple[int, Asked | None, Batch]]:
    """The batches of all parts that are not done, each with the number of texts learnt from when it is."""
    passed = asked = seen = 0
    for place, part in enumerate(parts):
        batches = (
            list(batches_of(part, options, epochs=(place,), first=asked)) if len(part) >= options.batch_size else []
        )
        done = min(max(0, updates.done - passed), len(batches))
        passed, asked = passed + len(batches), asked + len(batches) // options.repeats
        if done < len(batches):
            for batch, words in zip(batches[done:], updates.loaded(part, batches[done:]), strict=True):
                learnt = options.batch_size * (batch.number + 1 if batch.repeat == 0 else asked)
                yield max(seen, learnt), words, batch
                seen = max(seen, learnt)
        else:
            seen = options.batch_size * asked


@torch.no_grad()
def _average(averaged: GameHead, head: GameHead, updates: int) -> None:
    """a_t = a_{t-1} + (w_t - a_{t-1}) (POWER + 1) / (POWER + t)"""
    share = min(1.0, (POWER + 1) / (POWER + updates))
    for mean, value in zip(averaged.parameters(), head.parameters(), strict=True):
        mean.lerp_(value, share)
