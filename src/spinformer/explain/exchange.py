"""Explanations for other libraries: pandas, shap, shapiq."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from spinformer._base.choices import PAIRS
from spinformer._base.extras import require
from spinformer.explain.record import ExplanationRecord, Pair, Word

if TYPE_CHECKING:
    import pandas
    import shap
    import shapiq

Made = TypeVar("Made", Word, Pair)

# The columns of a frame, each a field of `Word`.
COLUMNS = ("text", "side", "importance", "importance_stderr", "shapley", "banzhaf", "field", "attention")

# The columns of a row, and what each holds: a text, a number, a count, lists of these, or shares by name.
ROW = {
    "row": "count",
    "text": "text",
    "text_pair": "text",
    "label": "text",
    "target": "text",
    "against": "text",
    "value": "number",
    "base_value": "number",
    "probabilities": "shares",
    "words": "texts",
    "sides": "counts",
    "importance": "numbers",
    "importance_stderr": "numbers",
    "pair_first": "counts",
    "pair_second": "counts",
    "interaction": "numbers",
    "interaction_stderr": "numbers",
    "method": "text",
    "passes": "count",
    "notes": "texts",
    "outputs": "text",
    "players": "text",
    "pair_index": "text",
    "misfit_stderr": "numbers",
    "interaction_misfit_stderr": "numbers",
}
# The field of `Word` that a method's scores are, where they are one.
FIELD_OF = {
    "shapley": "shapley",
    "kernel-shap": "shapley",
    "shapley-sampling": "shapley",
    "banzhaf": "banzhaf",
    "field": "field",
    "attention": "attention",
}
# The field of `Word` that goes with an index of pairs or of words alone, by shapiq's name of it.
VALUES_OF = {"SII": "shapley", "SV": "shapley", "BII": "banzhaf", "BV": "banzhaf"}


def to_row(record: ExplanationRecord, number: int = 0, pairs: int = PAIRS) -> dict[str, Any]:
    """An explanation as one flat row: the words and their scores as lists, and the `pairs` strongest pairs.

    number: of the row, counted from 0. Pairs are given by the positions of their words.
    """
    strongest = record.ranked_pairs()[:pairs]
    return {
        "row": number,
        "text": record.texts[0],
        "text_pair": record.texts[1] if len(record.texts) == 2 else None,
        "label": record.label,
        "target": record.target,
        "against": record.against,
        "value": record.full_value,
        "base_value": record.base_value,
        "probabilities": dict(record.probabilities),
        "words": [word.text for word in record.words],
        "sides": [word.side for word in record.words],
        "importance": [word.importance for word in record.words],
        "importance_stderr": [word.importance_stderr for word in record.words],
        "pair_first": [pair.first for pair in strongest],
        "pair_second": [pair.second for pair in strongest],
        "interaction": [pair.interaction for pair in strongest],
        "interaction_stderr": [pair.stderr for pair in strongest],
        "method": record.method,
        "passes": record.passes,
        "notes": list(record.notes),
        "outputs": record.outputs,
        "players": record.players,
        "pair_index": record.pair_index,
        "misfit_stderr": [word.misfit_stderr for word in record.words],
        "interaction_misfit_stderr": [pair.misfit_stderr for pair in strongest],
    }


def from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the explanation that `to_row` made a row of, as far as the row holds them."""
    missing = [name for name in ROW if name not in row]
    if missing:
        raise ValueError(f"a row of an explanation has no {', '.join(missing)}")
    method = row["method"]
    fields = (
        {FIELD_OF[method]: "importance", f"{FIELD_OF[method]}_stderr": "importance_stderr"}
        if (method in FIELD_OF)
        else {}
    )
    columns = {"text": "words", "side": "sides", "importance": "importance", "importance_stderr": "importance_stderr"}
    columns |= {"misfit_stderr": "misfit_stderr", **fields}
    pair_columns = {"first": "pair_first", "second": "pair_second", "interaction": "interaction"}
    pair_columns |= {"stderr": "interaction_stderr", "misfit_stderr": "interaction_misfit_stderr"}
    kept = ("label", "target", "against", "base_value", "probabilities", "method", "passes", "outputs", "players")
    return {
        **{name: row[name] for name in (*kept, "pair_index")},
        "texts": (row["text"],) if row["text_pair"] is None else (row["text"], row["text_pair"]),
        "words": _records(Word, row, columns),
        "pairs": _records(Pair, row, pair_columns),
        "samples": 0,
        "notes": tuple(row["notes"]),
    }


def _records(kind: type[Made], row: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[Made, ...]:
    """Words or pairs, whose fields are in these columns of a row."""
    lengths = {name: len(row[name]) for name in columns.values()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"lists of a row must be of one length; got {lengths}")
    cells = zip(*(row[name] for name in columns.values()), strict=True)
    return tuple(kind(**dict(zip(columns, values, strict=True))) for values in cells)


def to_frame(record: ExplanationRecord) -> "pandas.DataFrame":
    """One row for each word; the index is the word's position."""
    pandas = require("pandas", extra="compare")
    rows = [{name: getattr(word, name) for name in COLUMNS} for word in record.words]
    return pandas.DataFrame(rows, columns=list(COLUMNS)).rename(columns={"text": "word"}).rename_axis("position")


def to_shap(record: ExplanationRecord) -> "shap.Explanation":
    """A `shap.Explanation` of one text: values (words,), base value, the words as data and feature names."""
    shap: Any = require("shap", extra="compare")
    numpy = require("numpy", extra="compare")
    names = [word.text for word in record.words]
    base = math.nan if record.base_value is None else record.base_value
    return shap.Explanation(
        values=numpy.asarray(record.importance, dtype=float),
        base_values=base,
        data=numpy.asarray(names, dtype=object),
        feature_names=names,
    )


def to_shapiq(record: ExplanationRecord) -> "shapiq.InteractionValues":
    """`shapiq.InteractionValues`: Shapley or Banzhaf values, with the interactions of the pairs where there are some.

    With pairs the index is theirs (`pair_index`), of order 2: "SII" with Shapley values of the words, "BII" with
    Banzhaf values. Values alone have the index "SV" or "BV". Scores that are no values of the classifier are refused.
    """
    shapiq: Any = require("shapiq", extra="compare")
    numpy = require("numpy", extra="compare")
    index = record.pair_index if record.pairs else "BV" if record.method == "banzhaf" else "SV"
    field = "" if record.method.startswith("layer") else VALUES_OF.get(index or "", "")
    values: list[float | None] = [getattr(word, field, None) for word in record.words]
    if None in values:
        raise ValueError(
            f"to_shapiq needs Shapley or Banzhaf values of the classifier; method {record.method!r} has none"
        )
    errors = [getattr(word, f"{field}_stderr") for word in record.words] + [pair.stderr for pair in record.pairs]
    lookup: dict[tuple[int, ...], int] = {(position,): position for position in range(len(values))}
    for pair in record.pairs:
        lookup[(pair.first, pair.second)] = len(values)
        values.append(pair.interaction)
    return shapiq.InteractionValues(
        values=numpy.asarray(values, dtype=float),
        index=index,
        max_order=2 if record.pairs else 1,
        min_order=1,
        n_players=len(record.words),
        interaction_lookup=lookup,
        estimated=any(error != 0 for error in errors),
        estimation_budget=record.passes,
        baseline_value=0.0 if record.base_value is None else record.base_value,
    )
