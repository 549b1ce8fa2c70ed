"""Many texts, explained in batches of similar length."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer._base.progress import progress
from spinformer.data.players import Spans
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.inputs import PREDICTED
from spinformer.explain.methods import Method
from spinformer.explain.players import explain_players

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
    for rows in progress(batches, "explaining", delay=DELAY) if len(batches) > 1 else batches:
        part = texts.select(rows)
        words = split_words(context.classifier.tokenizer, part, max_length)
        asked = None if classes is None else _predicted(context, classes[rows], words)
        own = players if isinstance(players, str) else [players[row] for row in rows]
        found = explain_players(method, context, part, words, asked, own)
        explanations.update(zip(rows, found, strict=True))
    return [explanations[row] for row in range(len(texts))]


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
