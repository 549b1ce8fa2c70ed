"""Labelled texts and pairs of texts in memory: what models are trained on, scored on and explained on."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

# Natural language inference: the class names, in the order that SNLI and MNLI number them.
NLI_LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Texts:
    """N texts, or N pairs of texts, with or without a class.

    first: the texts, or the premises; second: the hypotheses, None for single texts; labels: indices of `names`, None
    where there are none; names: the class names; dropped: number of rows left out because they have no gold label;
    source: where they came from, for messages and results; digests: sha256 of each file read, by its name.
    """

    first: Sequence[str]
    second: Sequence[str] | None = None
    labels: Sequence[int] | None = None
    names: tuple[str, ...] = ()
    dropped: int = 0
    source: str = "memory"
    digests: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _check_strings("first", self.first)
        if self.second is not None:
            _check_strings("second", self.second)
        _check_strings("names", self.names)
        if self.labels is not None and not hasattr(self.labels, "__len__"):
            raise TypeError(f"labels must be a list of integers; got {type(self.labels).__name__}")
        for name, column in (("second", self.second), ("labels", self.labels)):
            if column is not None and len(column) != len(self.first):
                raise ValueError(f"{name} must have as many rows as first, {len(self.first)}; got {len(column)}")
        for label in self.labels if self.labels is not None else ():
            if not hasattr(label, "__index__") or isinstance(label, bool) or not 0 <= label < len(self.names):
                raise ValueError(
                    f"labels must be indices of the {len(self.names)} names {self.names}; got {label!r:.60}"
                )

    def __len__(self) -> int:
        return len(self.first)

    @property
    def paired(self) -> bool:
        """Whether these are pairs."""
        return self.second is not None

    @property
    def lengths(self) -> list[int]:
        """Number of characters of each row, of both texts of a pair."""
        if self.second is None:
            return [len(text) for text in self.first]
        return [len(first) + len(second) for first, second in zip(self.first, self.second, strict=True)]

    def fingerprint(self, *, labelled: bool = False) -> str:
        """sha256 of the texts in their order; labelled: of their labels and the class names too."""
        digest = hashlib.sha256(b"pairs" if self.paired else b"texts")
        for text in chain(self.first, self.second or ()):
            raw = text.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        if labelled:
            digest.update(repr((self.names, None if self.labels is None else list(self.labels))).encode())
        return digest.hexdigest()

    def distinct(self) -> list[int]:
        """Rows that have every text, or pair, once: its last."""
        pairs = zip(self.first, self.second or self.first, strict=True)
        return list({pair: row for row, pair in enumerate(pairs)}.values())

    def spread(self, count: int) -> list[int]:
        """The rows of at most `count` texts, from short to long."""
        order = sorted(range(len(self)), key=self.lengths.__getitem__)
        count = min(count, len(order))
        return [order[(2 * place + 1) * len(order) // (2 * count)] for place in range(count)]

    def select(self, rows: Sequence[int]) -> "Texts":
        """These rows, in this order."""
        try:
            first = [self.first[row] for row in rows]
        except (IndexError, TypeError) as error:
            raise ValueError(f"rows must be numbers of the {len(self)} rows; got {rows!r:.60} ({error})") from None
        second = None if self.second is None else [self.second[row] for row in rows]
        labels = None if self.labels is None else [self.labels[row] for row in rows]
        return replace(self, first=first, second=second, labels=labels)


def is_text(value: str) -> bool:
    """Whether a string has no half of a character (a lone surrogate), which no tokenizer and no file takes."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_strings(name: str, values: Sequence[str]) -> None:
    if isinstance(values, str) or not isinstance(values, Iterable) or not hasattr(values, "__len__"):
        raise TypeError(f"{name} must be a list of strings; got {type(values).__name__}")
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be strings; got {value!r:.60} in row {row}, counted from 0")
        if not is_text(value):
            raise ValueError(
                f"{name} must be Unicode; got half of a character in row {row}, counted from 0: {value!r:.60}"
            )


def split_source(source: str) -> list[str]:
    """The sources that are joined by + in `source`; a file may have a + in its name."""
    return [source] if Path(source).is_file() else [part.strip() for part in source.split("+")]


def join_texts(parts: Sequence[Texts]) -> Texts:
    """The rows of all parts, which must all be pairs or all single texts and have the same class names."""
    if not parts:
        raise ValueError("nothing to join: expected at least one set of texts")
    first = parts[0]
    for part in parts[1:]:
        if part.paired != first.paired:
            raise ValueError(
                f"{first.source} and {part.source} cannot be joined: one has pairs, the other single texts"
            )
        if part.names != first.names or (part.labels is None) != (first.labels is None):
            raise ValueError(f"{first.source} has the classes {first.names}, {part.source} has {part.names}")
    if len(parts) == 1:
        return first
    return Texts(
        first=list(chain.from_iterable(part.first for part in parts)),
        second=list(chain.from_iterable(part.second or () for part in parts)) if first.paired else None,
        labels=list(chain.from_iterable(part.labels or () for part in parts)) if first.labels is not None else None,
        names=first.names,
        dropped=sum(part.dropped for part in parts),
        source=" + ".join(part.source for part in parts),
        digests=tuple(chain.from_iterable(part.digests for part in parts)),
    )
