"""From tensors of a batch to one explanation for each text."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer.attention.from_game import GameAttention
from spinformer.data.texts import Texts
from spinformer.data.word_pattern import UNSPACED, WORD
from spinformer.data.words import Words
from spinformer.explain.context import Answers, Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.record import Pair, Word, positions_in
from spinformer.explain.scoring import decided
from spinformer.games import Estimate, GameValues
from spinformer.models.outputs import value_of

# The fields of `Word` that the game of a text fills; the last two only where they are estimated.
FIELDS = ("shapley", "shapley_stderr", "banzhaf", "banzhaf_stderr", "gate", "field", "attention")
FIELDS_STDERR = ("field_stderr", "attention_stderr")
INDEX = {"shapley": "SV", "banzhaf": "BV"}
PIECES = "written without spaces: what is hidden and scored are pieces of the tokenizer, not words"


@dataclass(frozen=True)
class GameNumbers:
    """All numbers of the games of B texts.

    values: Shapley and Banzhaf values and interactions, with standard errors towards the classifier's own values;
    misfit: the part of these that is due to the game, by the name of the index, None where it is not known; ising: the
    Ising model that the values make, solved; errors: standard errors of its fields and attention, (B, W) each, None
    where they are not estimated.
    """

    values: GameValues
    ising: GameAttention
    errors: tuple[Tensor, Tensor] | None
    misfit: dict[str, Tensor] | None = None

    def columns(self) -> dict[str, Tensor]:
        """(B, W) each, by the field of `Word` that it fills."""
        values, ising = self.values, self.ising
        tensors = [values.shapley.values, values.shapley.stderr, values.banzhaf.values, values.banzhaf.stderr]
        tensors += [ising.gate, ising.fields, ising.attention]
        columns = dict(zip(FIELDS, tensors, strict=True))
        return columns if self.errors is None else columns | dict(zip(FIELDS_STDERR, self.errors, strict=True))


@dataclass(frozen=True)
class Explained:
    """The texts of a batch and what the classifier says of them.

    answers: what the outputs are; probabilities: (B, classes), of the whole texts; target: (B,), the class explained,
    or (B, 2), with the class that it is explained against;
    passes: forward passes spent on each text; notes: what a reader of each must know.
    """

    texts: Texts
    words: Words
    answers: Answers
    probabilities: Tensor
    target: Tensor
    passes: Sequence[int]
    notes: Sequence[tuple[str, ...]]


def from_game(
    method: str,
    batch: Explained,
    numbers: GameNumbers,
    importance: str | Estimate,
    *,
    ess: Tensor | None = None,
) -> list[Explanation]:
    """Explanations with every number of the games.

    importance: the method's score, by the field of `Word` that holds it, or as an estimate of its own, (B, W).
    """
    columns = numbers.columns()
    scores: dict[str, Tensor | None]
    if isinstance(importance, Estimate):
        scores = {"importance": importance.values, "importance_stderr": importance.stderr}
    else:
        scores = {"importance": columns[importance], "importance_stderr": columns.get(f"{importance}_stderr")}
    misfit, index = numbers.misfit or {}, INDEX.get(str(importance))
    scores["misfit_stderr"] = None if index is None else misfit.get(index)
    pair_index = "SII" if importance == "shapley" else "BII"
    pairs = numbers.values.shapley_interactions if pair_index == "SII" else numbers.values.interactions
    return _explanations(
        method,
        batch,
        {**scores, **columns},
        _pairs(pairs.values, batch.words, pairs.stderr, misfit.get(pair_index), known=pairs.ess > 0),
        pair_index=pair_index,
        base_values=numbers.values.empty.tolist(),
        samples=numbers.values.shapley.ess[:, 0].long().tolist(),
        ess=None if ess is None else ess.tolist(),
        converged=numbers.ising.solved.converged.tolist(),
    )


def from_scores(
    method: str,
    context: Context,
    texts: Texts,
    words: Words,
    target: Tensor | None,
    scores: Tensor,
    before: int,
    *,
    stderr: Tensor | None = None,
    base_values: Sequence[float] | None = None,
    columns: Mapping[str, Tensor] | None = None,
    interactions: Tensor | None = None,
    samples: int = 0,
    ess: Tensor | None = None,
    converged: Tensor | None = None,
    probabilities: Tensor | None = None,
) -> list[Explanation]:
    """Explanations of scores alone, (B, W).

    before: passes of the classifier before the scores were computed; stderr: their standard errors; base_values: v of
    no words, of each text, asked for where they are not given; columns: further fields of `Word`, (B, W) each;
    interactions: of the pairs, (B, W, W); ess, converged: (B,), of an Ising model;
    probabilities: (B, classes), of the full texts. Without them the classifier is asked once more.
    """
    if probabilities is None:
        probabilities = context.classifier.full_probabilities(words)
    probabilities = probabilities.cpu()
    chosen = decided(probabilities, target)
    if base_values is None:
        nothing = torch.zeros_like(words.mask)
        empty = context.classifier.row_probabilities(words, torch.arange(len(texts)), nothing).cpu()
        base_values = value_of(empty, chosen).tolist()
    passes = [(context.classifier.passes - before) // len(texts)] * len(texts)
    notes: list[tuple[str, ...]] = [()] * len(texts)
    batch = Explained(texts, words, context.answers, probabilities, chosen, passes, notes)
    pairs = None if interactions is None else _pairs(interactions, words)
    fields = {"importance": scores, "importance_stderr": stderr, **(columns or {})}
    return _explanations(
        method,
        batch,
        fields,
        pairs,
        samples=[samples] * len(texts),
        base_values=base_values,
        ess=None if ess is None else ess.tolist(),
        converged=None if converged is None else converged.tolist(),
    )


def one_by_one(texts: Texts, words: Words, target: Tensor | None) -> Iterator[tuple[Texts, Words, Tensor | None]]:
    """Each text of a batch as a batch of one."""
    for row in range(len(texts)):
        yield texts.select([row]), words.rows(row, row + 1), None if target is None else target[row : row + 1]


def _explanations(
    method: str,
    batch: Explained,
    columns: Mapping[str, Tensor | None],
    pairs: list[tuple[Pair, ...]] | None,
    *,
    samples: Sequence[int],
    base_values: Sequence[float] | None = None,
    ess: Sequence[float] | None = None,
    converged: Sequence[bool] | None = None,
    pair_index: str | None = None,
) -> list[Explanation]:
    names = [name for name, column in columns.items() if column is not None]
    tensors = [column.float() for column in columns.values() if column is not None]
    table = torch.stack([tensor.cpu() for tensor in tensors], -1).tolist()  # (B, W, fields)
    shares, decisions = batch.probabilities.tolist(), batch.probabilities.argmax(-1).tolist()
    targets = batch.target.view(len(batch.target), -1).tolist()
    texts, labels = batch.texts, batch.answers.names
    explanations = []
    for row, (words, sides) in enumerate(zip(batch.words.words, batch.words.sides, strict=True)):
        rows = zip(words, sides, table[row], strict=False)  # the table is padded
        unread = batch.words.unread[row] if batch.words.unread else ()
        told = () if pairs is None else pairs[row]
        explanations.append(
            Explanation(
                texts=(texts.first[row],) if texts.second is None else (texts.first[row], texts.second[row]),
                label=labels[decisions[row]],
                target=labels[targets[row][0]],
                probabilities=dict(zip(labels, shares[row], strict=True)),
                words=tuple(Word(text, side, **_known(names, cells)) for text, side, cells in rows),
                pairs=told,
                base_value=None if base_values is None else base_values[row],
                method=method,
                passes=batch.passes[row],
                samples=samples[row],
                ess=None if ess is None else ess[row],
                converged=None if converged is None else converged[row],
                pair_index=pair_index if told else None,
                notes=(
                    *_read(batch.words, row),
                    *_told(batch.words, row, told),
                    *batch.notes[row],
                ),
                unread=unread,
                outputs=batch.answers.outputs,
                against=labels[targets[row][1]] if len(targets[row]) > 1 else None,
            )
        )
    return explanations


def _read(words: Words, row: int) -> tuple[str, ...]:
    """Notes where the model did not read all of a text, and where a text has no words to hide."""
    notes = (PIECES,) if words.parts is None and UNSPACED.search("".join(words.words[row])) else ()
    unread = words.unread[row] if words.unread else ()
    parts = []
    for side, rest in enumerate(unread, 1):
        if count := len(WORD.findall(rest)):
            last = "the last word" if count == 1 else f"the last {count:,} words"
            parts.append(last if len(unread) == 1 else f"{last} of text {side}")
    if not parts:
        return notes
    tokens = int(words.inputs["attention_mask"][row].sum())
    return (f"cut at {tokens:,} tokens; not read: {', '.join(parts)}", *notes)


def _told(words: Words, row: int, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """A note where something is told of some pairs alone."""
    count = len(words.words[row])
    if not pairs or len(pairs) == math.comb(count, 2):
        return ()
    strongest = positions_in(pairs)
    what = "words" if words.parts is None else "sentences or spans"
    return (f"pairs are those of the {len(strongest)} strongest of {count} {what}; nothing is told of the others",)


def _known(names: Sequence[str], cells: Sequence[float]) -> dict[str, float]:
    """The fields of a word, without standard errors that are infinite: nothing is known of them."""
    return {name: cell for name, cell in zip(names, cells, strict=True) if math.isfinite(cell)}


def _pairs(
    interactions: Tensor,
    words: Words,
    stderr: Tensor | None = None,
    misfit: Tensor | None = None,
    *,
    known: Tensor | None = None,
) -> list[tuple[Pair, ...]]:
    """The pairs i < j of each text, from matrices (B, W, W); known: those of which something is known, default all."""
    batch, width = len(words.words), interactions.shape[-1]
    there = torch.arange(width) < torch.tensor([len(text) for text in words.words])[:, None]
    told = (there[:, :, None] & there[:, None]).triu(1)
    if known is not None:
        told &= known.cpu()
    row, first, second = told.nonzero(as_tuple=True)  # of all texts, one after the other
    columns = [_entries(matrix, row, first, second) for matrix in (interactions, stderr, misfit)]
    pairs = list(map(Pair, first.tolist(), second.tolist(), *columns))
    ends = [0, *torch.bincount(row, minlength=batch).cumsum(0).tolist()]
    return [tuple(pairs[start:end]) for start, end in itertools.pairwise(ends)]


def _entries(matrix: Tensor | None, row: Tensor, first: Tensor, second: Tensor) -> list[Any]:
    """The entries of matrices (B, W, W) at these places, None where they are not known."""
    if matrix is None:
        return [None] * len(first)
    entries = matrix.cpu()[row, first, second]
    if bool(entries.isfinite().all()):
        return entries.tolist()
    return [entry if math.isfinite(entry) else None for entry in entries.tolist()]
