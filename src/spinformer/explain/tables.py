"""Sets of explanations as data frames of pandas."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from spinformer._base import checks
from spinformer._base.extras import require
from spinformer.explain.summary import MeanOverTexts, Overview

if TYPE_CHECKING:
    import pandas

NAMING = ("text", "side", "first", "first_side", "second", "second_side")
FrameKind = Literal["words", "pairs", "texts"]


def to_frame(kind: FrameKind, overview: Overview) -> "pandas.DataFrame":
    """Words or pairs over all texts and in each class, or the texts with their distances."""
    checks.choice("kind", kind, get_args(FrameKind))
    if kind == "texts":
        return frame_of_texts(overview)
    pandas = require("pandas", extra="compare")
    parts = [frame_of(getattr(overview.whole, kind), {"class": None})]
    parts += [frame_of(getattr(group, kind), {"class": group.name}) for group in overview.classes]
    rows = [row for part in parts for row in part.to_dict("records")]
    return pandas.DataFrame(rows, columns=list(parts[0].columns))


def frame_of(summaries: Sequence[MeanOverTexts], first: Mapping[str, Any] | None = None) -> "pandas.DataFrame":
    """A row for each; first: columns that stand before, the same in every row."""
    pandas = require("pandas", extra="compare")
    rows = [{**(first or {}), **{name: asdict(one)[name] for name in _columns(one)}} for one in summaries]
    return pandas.DataFrame(rows).rename(columns={"text": "word"})


def _columns(summary: MeanOverTexts) -> list[str]:
    """Its fields, those that name it first."""
    names = [field.name for field in fields(summary)]
    return sorted(names, key=lambda name: name not in NAMING)


def frame_of_texts(overview: Overview) -> "pandas.DataFrame":
    """The texts in their order: what was decided and explained, how surely, and how unusual the reasons are."""
    pandas = require("pandas", extra="compare")
    rows = [
        {
            "text": one.record.texts[0],
            "text_pair": one.record.texts[1] if len(one.record.texts) == 2 else None,
            "label": one.record.label,
            "target": one.record.target,
            "against": one.record.against,
            "value": one.record.full_value,
            "base_value": one.record.base_value,
            "distance": one.distance,
            "differs_most": one.deviations[0].text,
        }
        for one in sorted(overview.unusual, key=lambda one: one.index)
    ]
    return pandas.DataFrame(rows, index=pandas.Index(sorted(one.index for one in overview.unusual), name="row"))
