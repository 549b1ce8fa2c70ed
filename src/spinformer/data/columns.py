"""From rows of cells to `Texts`: which columns hold the texts and the labels, and what the labels mean."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from spinformer.data.texts import NLI_LABELS, Texts, is_text

PAIRS = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("text", "text_pair"),
    ("question", "sentence"),
    ("question1", "question2"),
    ("sentence_a", "sentence_b"),
    ("text1", "text2"),
)
SINGLES = ("text", "sentence", "review", "content", "comment", "tweet", "document")
LABELS = ("label", "gold_label", "labels", "class", "target", "sentiment", "entailment_label")

TWO_WAY = ("entailment", "non-entailment")
SYNONYMS = {
    **dict.fromkeys(("e", "entail", "entails", "entailed"), "entailment"),
    **dict.fromkeys(("n", "neutrality"), "neutral"),
    **dict.fromkeys(("c", "contradict", "contradicts", "contradictory"), "contradiction"),
    **dict.fromkeys(("not-entailment", "no-entailment", "not-entailed", "non-entailed"), "non-entailment"),
}
MISSING = ("", "-", "-1")
DECIMAL = re.compile(r"(-?\d+)\.0+", re.ASCII)  # an integer, as tables with missing values have it


@dataclass(frozen=True)
class Columns:
    """The columns to read; `second` is None for single texts, `label` where no labels are read."""

    first: str
    second: str | None
    label: str | None

    @property
    def wanted(self) -> tuple[str, ...]:
        """Their names, in this order."""
        return tuple(name for name in (self.first, self.second, self.label) if name is not None)


def find_columns(
    available: Sequence[str],
    source: str,
    *,
    first: str | None = None,
    second: str | None = None,
    label: str | None = None,
    labelled: bool = True,
) -> Columns:
    """The columns given, or those of `available` with a usual name, in upper or lower case."""
    if second is not None and first is None:
        raise ValueError(f"second={second!r} was given without first; name both columns of the pair")
    for given in (first, second, label if labelled else None):
        if given is not None and given not in available:
            raise ValueError(f"{source}: no column {given!r}; its columns are {', '.join(map(repr, available))}")
    spelt = {name.strip().lower(): name for name in reversed(available)}
    if first is None:
        pair = next((pair for pair in PAIRS if pair[0] in spelt and pair[1] in spelt), None)
        if pair is not None:
            first, second = spelt[pair[0]], spelt[pair[1]]
        else:
            first = next((spelt[name] for name in SINGLES if name in spelt), None)
    if first is None:
        pairs = ", ".join(f"{a} + {b}" for a, b in PAIRS)
        raise ValueError(
            f"{source}: no text column; its columns are {', '.join(map(repr, available)) or 'none'}; "
            f"looked for {pairs}, or one of {', '.join(SINGLES)}"
        )
    if labelled and label is None:
        label = next((spelt[name] for name in LABELS if name in spelt), None)
        if label is None:
            raise ValueError(
                f"{source}: no label column; its columns are {', '.join(map(repr, available))}; "
                f"looked for {', '.join(LABELS)}"
            )
    return Columns(first, second, label if labelled else None)


def build_texts(
    rows: Iterable[tuple[int, Sequence[Any]]],
    columns: Columns,
    source: str,
    *,
    names: Sequence[str] | None = None,
    drop_blank: bool = False,
) -> Texts:
    """Texts of `rows`, each a line number and cells in the order of `columns.wanted`.

    Rows without a gold label are dropped and counted; with `drop_blank`, rows with an empty text too.
    """
    if names is not None and (isinstance(names, str) or not all(isinstance(one, str) for one in _listed(names))):
        raise TypeError(f"names must be a list of strings, the classes; got {names!r:.60}")
    lines, cells = [], []
    for line, row in rows:
        lines.append(line)
        cells.append(row)
    if not lines:
        raise ValueError(f"{source} has no rows; expected at least one")
    labels: list[int | None] = []
    classes = tuple(names or ())
    if columns.label is not None:
        values = [_label(row[-1], source, line) for line, row in zip(lines, cells, strict=True)]
        gold = [value for value in values if value is not None]
        classes = classes or infer_names(gold, source, paired=columns.second is not None)
        encode = LabelEncoder(classes, given=bool(names))
        labels = [encode(value, source, line) for line, value in zip(lines, values, strict=True)]

    texts: list[list[str]] = [[] for _ in range(1 if columns.second is None else 2)]
    complete: list[int] = []
    headings = (columns.first, columns.second)
    for k, (line, row) in enumerate(zip(lines, cells, strict=True)):
        if labels and labels[k] is None:
            continue
        stripped = [_text(row[j], headings[j], source, line, drop_blank) for j in range(len(texts))]
        if all(stripped):
            complete.append(k)
            for column, text in zip(texts, stripped, strict=True):
                column.append(text)
    if not complete:
        raise ValueError(f"{source}: none of its {len(lines)} rows has a gold label and a text")
    return Texts(
        first=texts[0],
        second=None if columns.second is None else texts[1],
        labels=[code for k in complete if (code := labels[k]) is not None] if labels else None,
        names=classes,
        dropped=len(lines) - len(complete),
        source=source,
    )


def _listed(names: Any) -> list[Any]:
    return list(names) if isinstance(names, Iterable) else [names]


def infer_names(values: Sequence[str | int], source: str, *, paired: bool) -> tuple[str, ...]:
    """The class names that labels stand for where none are given."""
    distinct = sorted(set(values), key=str)
    if all(isinstance(value, int) or _is_integer(value) for value in distinct):
        numbers = sorted(set(map(int, distinct)))
        if paired and set(numbers) <= set(range(len(NLI_LABELS))):
            return NLI_LABELS
        return tuple(map(str, numbers))
    strings = [value for value in distinct if isinstance(value, str)]
    if len(strings) < len(distinct):
        raise ValueError(f"{source}: expected labels that are all strings or all integers; got {distinct[:6]}")
    spelt: dict[str, str] = {}
    for value in strings:
        spelt.setdefault(_key(value), value)
    known = inference_names(strings, paired=paired)
    if known is None and paired and set(NLI_LABELS) <= {_canonical(value) for value in strings}:
        return NLI_LABELS  # and another label, which is rather a typing error than a class
    return known or tuple(spelt.values())


def inference_names(labels: Sequence[str], *, paired: bool) -> tuple[str, ...] | None:
    """The names of natural language inference, in three classes or two, if all `labels` are among them."""
    known = {_canonical(label) if paired else _key(label) for label in labels}
    return next((names for names in (NLI_LABELS, TWO_WAY) if known <= set(names)), None)


class LabelEncoder:
    """Indices of labels in `names`: a string by its name or a synonym, in any case; an integer as it is."""

    def __init__(self, names: Sequence[str], *, given: bool = True) -> None:
        self.names, self.given = tuple(names), given
        self.indices = {_canonical(name): k for k, name in enumerate(self.names)}
        literal = {_key(name): k for k, name in enumerate(self.names)}
        if len(literal) != len(self.names):
            raise ValueError(f"names must differ in more than their case; got {self.names}")
        self.indices |= literal
        # Numbers that are themselves names, not indices: a file with the classes 1 to 5.
        self.numbers = all(map(_is_integer, self.names))
        self.cache: dict[str | int, int] = {}

    def __call__(self, value: str | int | None, source: str, line: int) -> int | None:
        """The index of `value`; None stays None."""
        if value is None:
            return None
        if value not in self.cache:
            self.cache[value] = self._index(value, source, line)
        return self.cache[value]

    def _index(self, value: str | int, source: str, line: int) -> int:
        text = str(value)
        if isinstance(value, str) or self.numbers:
            index = self.indices.get(_key(text), self.indices.get(_canonical(text)))
            if index is not None:
                return index
        if not self.numbers and _is_integer(text) and 0 <= int(text) < len(self.names):
            return int(text)
        expected = "" if isinstance(value, str) else f" 0 to {len(self.names) - 1}, for"
        others = "" if self.given else "; if it is another class, give the names of all classes"
        among = f"{expected} {', '.join(self.names)}"
        raise ValueError(f"{source}:{line}: expected a label among{among}; got {value!r}{others}")


def _key(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(" ", "-")


def _canonical(name: str) -> str:
    key = _key(name)
    return SYNONYMS.get(key, key)


def _is_integer(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit()


def _label(value: Any, source: str, line: int) -> str | int | None:
    if isinstance(value, str):
        value = value.strip()
        decimal = DECIMAL.fullmatch(value)
        value = decimal[1] if decimal else value
        return None if value in MISSING else value
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise ValueError(f"{source}:{line}: expected a label that is a string or an integer; got {value!r:.80}")
    return None if value == -1 else int(value)


def _text(value: Any, column: str | None, source: str, line: int, drop_blank: bool) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{source}:{line}: expected a string in {column!r}; got {value!r:.80}")
    if not is_text(value):
        raise ValueError(f"{source}:{line}: expected Unicode in {column!r}; got half of a character: {value!r:.80}")
    text = value.strip()
    if not text and not drop_blank:
        raise ValueError(f"{source}:{line}: expected a text in {column!r}; got {value!r:.80}, which is empty")
    return text
