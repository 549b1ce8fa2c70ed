"""What a caller hands in: texts, the class to explain, texts to learn a game from."""

import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypedDict, get_args

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import Masking, PlayerKind
from spinformer.data.players import Spans
from spinformer.data.sources import load_texts
from spinformer.data.streams import TextStream
from spinformer.data.texts import Texts
from spinformer.data.word_pattern import WORD
from spinformer.explain.scoring import Scorer
from spinformer.games import Weighting
from spinformer.models.game_head import GameHead
from spinformer.models.masked import Hide

Target = str | int
# A kind, or spans: of one text, of both texts of a pair, or a list of these for several texts.
Players = PlayerKind | Sequence[Any]
# Texts to learn a game from: in memory, a file, or a name such as "snli:train".
Corpus = Texts | TextStream | Sequence[str] | Sequence[tuple[str, str]] | str | Path


class CallOptions(TypedDict, total=False):
    """The options of a call; see `Explainer.__call__`."""

    method: str
    target: Target | Sequence[Target] | None
    against: Target | Sequence[Target] | None
    passes: int
    until: float | None
    players: Players


class ExplainOptions(CallOptions, total=False):
    """The options of a call and of the explainer; see `Explainer`."""

    game: GameHead | Path | str | None
    masking: Masking | Hide | None
    additive: Scorer | Path | str | None
    samples: int
    seconds: float | None
    temperature: float
    weighting: Weighting
    max_length: int | None
    batch_size: int
    bf16: bool
    seed: int


def as_texts(text: str | Sequence[str], text_pair: str | Sequence[str] | None) -> Texts:
    """One text, or several, with or without a second text each; none may be empty."""
    first = _column("text", text)
    second = None if text_pair is None else _column("text_pair", text_pair)
    if second is not None and isinstance(text, str) != isinstance(text_pair, str):
        raise ValueError("text and text_pair must both be one text, or both be lists")
    if second is not None and len(second) != len(first):
        raise ValueError(f"text_pair must have as many texts as text, {len(first)}; got {len(second)}")
    for name, column in (("text", first), ("text_pair", second or [])):
        for row, value in enumerate(column):
            if not isinstance(value, str):
                raise TypeError(f"{name} {row} must be a string; got {value!r:.60}")
            if not value.strip():
                raise ValueError(f"{name} {row} must be a text that is not empty; got {value!r}")
            if not WORD.search(value):
                raise ValueError(f"{name} {row} must have at least one word; got {value!r}")
    return Texts(first, second)


def check_label_call(text: object, threshold: object, call: CallOptions) -> None:
    """A TypeError or ValueError unless `Explainer.by_label` can be called so."""
    if "target" in call:
        raise TypeError("by_label takes no target: it explains every label that is on")
    if not isinstance(text, str):
        raise TypeError(f"text must be one text, a string; got {type(text).__name__}")
    checks.number("threshold", threshold)
    if not 0 <= threshold <= 1:  # type: ignore[operator]
        raise ValueError(f"threshold must be a probability, from 0 to 1; got {threshold}")


def _column(name: str, texts: Any) -> list[Any]:
    """One text, or those of a list or another collection that has an order."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | Mapping | Set):
        raise TypeError(f"{name} must be a text or a list of texts; got {type(texts).__name__}")
    return list(texts)


def as_players(players: Players, texts: Texts, single: bool) -> str | list[Sequence[Spans]]:
    """A kind of players, or the spans of every text of each row; single: whether one text was handed in, not a list."""
    if isinstance(players, str):
        checks.choice("players", players, get_args(PlayerKind))
        return players
    checks.instance("players", players, list, tuple)
    rows: list[Any] = [players] if single else list(players)
    if len(rows) != len(texts):
        raise ValueError(f"players must have the spans of each of {len(texts)} texts; got those of {len(rows)}")
    for spans in rows:
        if not isinstance(spans, list | tuple):
            raise TypeError(f"players must be a kind, or lists of spans (from, to); got {spans!r:.60}")
        if texts.second is not None and len(spans) != 2:
            raise ValueError(f"players of a pair must be spans of its first and of its second text; got {spans!r:.60}")
    return [(spans,) for spans in rows] if texts.second is None else rows


PREDICTED = -1  # the class that the classifier decides for, where it is explained against another


def class_indices(
    target: Target | Sequence[Target] | None,
    against: Target | Sequence[Target] | None,
    labels: Sequence[str],
    count: int,
) -> Tensor | None:
    """The classes to explain as indices, (count,), or with those that they are explained against, (count, 2).

    One class serves all texts. Without either the result is None; without a target it has PREDICTED.
    """
    chosen = None if target is None else _indices("target", target, labels, count)
    if against is None:
        return chosen
    others = _indices("against", against, labels, count)
    first = torch.full((count,), PREDICTED) if chosen is None else chosen
    same = others[first == others].tolist()
    if same:
        raise ValueError(f"target and against must be two classes; got {labels[same[0]]!r} twice")
    return torch.stack([first, others], 1)


def _indices(name: str, target: Target | Sequence[Target], labels: Sequence[str], count: int) -> Tensor:
    targets = list(target) if isinstance(target, list | tuple) else [target] * count
    if len(targets) != count:
        raise ValueError(f"{name} must be one class, or one for each of the {count} texts; got {len(targets)}")
    return torch.tensor([_class_index(name, each, labels) for each in targets])


def grounding_texts(texts: Corpus) -> Texts | TextStream:
    """Texts in memory, those that a file or a name stands for, or a stream; an empty text is an error."""
    if isinstance(texts, Texts | TextStream):
        return texts
    if isinstance(texts, str | Path):
        return load_texts(str(texts), labelled=False)
    rows = _column("texts", texts)
    paired = bool(rows) and not isinstance(rows[0], str)
    for row, one in enumerate(rows):
        if not (isinstance(one, list | tuple) and len(one) == 2 if paired else isinstance(one, str)):
            raise ValueError(f"texts must all be single texts, or all be pairs; row {row} is {one!r:.80}")
    return as_texts([one[0] for one in rows], [one[1] for one in rows]) if paired else as_texts(rows, None)


def _class_index(name: str, target: Any, labels: Sequence[str]) -> int:
    whole = hasattr(target, "__index__") and not isinstance(target, bool)  # also of numpy and torch
    if whole and 0 <= operator.index(target) < len(labels):
        return operator.index(target)
    if isinstance(target, str) and target in labels:
        return list(labels).index(target)
    names = ", ".join(map(repr, labels))
    raise ValueError(f"{name} must be one of {names}, or a number from 0 to {len(labels) - 1}; got {target!r}")
