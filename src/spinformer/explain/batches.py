"""Many texts, explained in batches of similar length."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from spinformer._base.progress import progress
from spinformer.data.players import Spans
from spinformer.data.texts import Texts
from spinformer.data.words import NoWordsError, Words, split_words
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.inputs import PREDICTED
from spinformer.explain.methods import Method
from spinformer.explain.players import explain_players
from spinformer.models.padding import rows_together

# Texts explained at a time, on a GPU and on a CPU, and seconds after which a progress bar shows.
BATCH, DELAY = (128, 32), 2.0


def batch_size(device: torch.device) -> int:
    """Texts explained at a time."""
    return BATCH[device.type == "cpu"]


def explain_batches(
    method: Method,
    context: Context,
    texts: Texts,
    classes: Tensor | None,
    players: str | Sequence[Sequence[Spans]],
    max_length: int,
) -> list[Explanation]:
    """The explanations of all texts, in their order. classes, players: as `spinformer.explain.inputs` reads them."""
    order = sorted(range(len(texts)), key=texts.lengths.__getitem__, reverse=True)
    size = batch_size(context.classifier.device)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    explanations: dict[int, Explanation] = {}
    for batch in progress(batches, "explaining", delay=DELAY) if len(batches) > 1 else batches:
        for rows, part, words in _split(context, texts, batch, max_length):
            asked = None if classes is None else _predicted(context, classes[rows], words)
            own = players if isinstance(players, str) else [players[row] for row in rows]
            found = explain_players(method, context, part, words, asked, own)
            explanations.update(zip(rows, found, strict=True))
    return [explanations[row] for row in range(len(texts))]


def _split(
    context: Context, texts: Texts, rows: list[int], max_length: int
) -> Iterator[tuple[list[int], Texts, Words]]:
    """The words of these texts, all together; texts of one length each where padding changes the model's answers."""
    tokenizer, part = context.classifier.tokenizer, texts.select(rows)
    words = split_rows(tokenizer, part, max_length, rows)
    groups = rows_together(context.classifier.model, words.inputs)
    if len(groups) == 1:
        yield rows, part, words
        return
    for group in groups:
        same = [rows[row] for row in group]
        part = texts.select(same)
        yield same, part, split_rows(tokenizer, part, max_length, same)


def split_rows(tokenizer: Any, texts: Texts, max_length: int, rows: Sequence[int]) -> Words:
    """As `split_words`; an error names a text by its number among those of the caller. rows: of the texts there."""
    try:
        return split_words(tokenizer, texts, max_length)
    except NoWordsError as error:
        text = texts.first[error.row]
        raise ValueError(
            f"text {rows[error.row]} must have at least one word that the tokenizer reads; got {text!r:.60}"
        ) from None


def _predicted(context: Context, classes: Tensor, words: Words) -> Tensor:
    """`classes` with the class that the classifier decides for in the place of PREDICTED, at one pass."""
    if classes.dim() == 1 or bool((classes[:, 0] != PREDICTED).all()):
        return classes
    decided = context.classifier.full_probabilities(words).argmax(-1).cpu()
    same = decided == classes[:, 1]
    if bool(same.any()):
        name = context.labels[int(decided[same][0])]
        raise ValueError(f"the classifier decides for {name!r} itself; name the target to explain against it")
    return torch.stack([decided, classes[:, 1]], 1)
