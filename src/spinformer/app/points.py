"""Numbers for people: what a word adds to a probability in points of 100, to a score in its own unit."""

from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.markup import format_number, format_signed


def points(record: ExplanationRecord, value: float | None) -> str:
    """A part of a probability in points, +12.3; of a score as it is, +0.123."""
    if value is None or record.outputs == "scores":
        return format_signed(value)
    return format_signed(100 * value, 1)


def reach(record: ExplanationRecord, stderr: float | None) -> str:
    """The same without a sign, as of a standard error."""
    if stderr is None or record.outputs == "scores":
        return format_number(stderr)
    return format_number(100 * stderr, 1)


def unit(record: ExplanationRecord) -> str:
    """What `points` counts."""
    return "" if record.outputs == "scores" else "points"


def level(record: ExplanationRecord, value: float) -> str:
    """A probability in percent, or a score; of one class less another, points."""
    if record.outputs == "scores":
        return format_number(value)
    return f"{points(record, value)} points" if record.against is not None else f"{value:.1%}"
