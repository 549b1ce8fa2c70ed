"""Means of words and pairs as tables with bars: rows of HTML that pages of many texts share.

A bar goes from 0 to the mean. The solid line on it is the 95% interval of a mean over texts; the dashed one is what it
becomes if the game, which predicts the classifier, errs alike in all texts. A standard error of very few texts is luck,
and is not written; their intervals draw on the other words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spinformer.explain.render.markup import format_number, format_signed, isolate, scrollable, shade_class
from spinformer.explain.render.scale import Scale
from spinformer.explain.render.selection import shown_stderr
from spinformer.explain.summary import MeanOverTexts, PairDifference, PairSummary, WordDifference, WordSummary

WIDTH, HEIGHT, MARGIN = 260.0, 18.0, 4.0  # of a bar's picture, in pixels
SIDES = ("first text", "second text")


@dataclass(frozen=True)
class MeanRow:
    """A row of a table: its name as HTML, the mean, its standard error, and further cells as HTML.

    reach, reach_with_misfit: half of the 95% interval, without the misfit of the game and with it.
    """

    name: str
    mean: float
    stderr: float | None
    reach: float
    reach_with_misfit: float
    cells: tuple[str, ...]


def mean_table(caption: str, heads: Sequence[str], rows: Sequence[MeanRow], scale: Scale | None) -> str:
    """The rows under their heads: of the name, of the mean, and of the further cells.

    scale: of the colours; None for bars of one grey, where a mean has no sign to show.
    """
    if not rows:
        return ""
    ends = [row.mean + sign * row.reach_with_misfit for row in rows for sign in (-1, 1)]
    low, high = min(0.0, *ends) if scale else 0.0, max(0.0, *ends)
    unit = (WIDTH - 2 * MARGIN) / ((high - low) or 1.0)
    first, mean, *others = heads
    head = f'<th scope="col" class="name">{first}</th><th scope="col" colspan="2" class="wide">{mean}</th>'
    head += "".join(f'<th scope="col">{name}</th>' for name in others)
    body = "".join(
        f'<tr><th scope="row" class="name">{row.name}</th><td>{_value(row, scale)}</td>'
        f"<td>{_bar(row, low, unit, scale)}</td>{''.join(f'<td>{cell}</td>' for cell in row.cells)}</tr>"
        for row in rows
    )
    table = f'<table class="means"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    note = f'<p class="soft">{caption}</p>\n' if caption else ""
    return note + scrollable("means over texts", table)


def _bar(row: MeanRow, low: float, unit: float, scale: Scale | None) -> str:
    def place(value: float) -> float:
        return MARGIN + (value - low) * unit

    zero, end, middle = place(0.0), place(row.mean), HEIGHT / 2
    shade = shade_class(scale.part(row.mean)) if scale else ""
    look = f"g{shade} {'up' if row.mean > 0 else 'down'}" if shade else "plain"
    left, width = min(zero, end), abs(end - zero)
    parts = [
        f'<rect class="{look}" x="{left:.1f}" y="4" width="{width:.1f}" height="{HEIGHT - 8:.0f}" rx="1"/>',
        f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{HEIGHT:.0f}"/>',
    ]
    for reach, look in ((row.reach_with_misfit, "misfit"), (row.reach, "reach")):
        if reach and (look == "reach" or row.reach_with_misfit > row.reach):
            start, end = max(0.0, place(row.mean - reach)), min(WIDTH, place(row.mean + reach))
            parts.append(f'<line class="{look}" x1="{start:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}"/>')
    size = f'width="{WIDTH:.0f}" height="{HEIGHT:.0f}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}"'
    return f'<svg class="bar" aria-hidden="true" preserveAspectRatio="none" {size}>{"".join(parts)}</svg>'


def _value(row: MeanRow, scale: Scale | None) -> str:
    text = format_signed(row.mean) if scale else format_number(row.mean)
    return text + (f" ± {format_number(row.stderr)}" if row.stderr is not None else "")


def word_name(text: str, side: int, paired: bool) -> str:
    """A word as HTML, and which text it is in where there are two."""
    return isolate(text) + (f' <span class="where">{SIDES[side]}</span>' if paired else "")


def pair_name(pair: PairSummary | PairDifference, paired: bool) -> str:
    """A pair as HTML, and which texts its words are in where there are two."""
    across = pair.first_side != pair.second_side
    where = "across" if across else f"in the {SIDES[pair.first_side]}"
    names = f"{isolate(pair.first)} – {isolate(pair.second)}"
    return names + (f' <span class="where">{where}</span>' if paired else "")


def word_row(word: WordSummary, paired: bool) -> MeanRow:
    """A word of a class: its mean value, the game's part of its error, its texts, its share."""
    return _row(word_name(word.text, word.side, paired), word, f"{word.count:,}", f"{word.share:.1%}")


def size_row(word: WordSummary, paired: bool) -> MeanRow:
    """A word over all texts: how much it matters where it stands, whatever it speaks for."""
    reach, cells = word.mean_abs_reach, (f"{word.count:,}", f"{word.share:.1%}")
    name = word_name(word.text, word.side, paired)
    return MeanRow(name, word.mean_abs, shown_stderr(word, word.mean_abs_stderr), reach, reach, cells)


def pair_row(pair: PairSummary, paired: bool) -> MeanRow:
    """A pair of a class."""
    kind = "synergy" if pair.mean > 0 else "antagonism"
    return _row(pair_name(pair, paired), pair, f"{pair.count:,}", kind)


def difference_row(one: WordDifference | PairDifference, paired: bool) -> MeanRow:
    """A word or pair in two models: the mean difference, both means, and its texts."""
    name = word_name(one.text, one.side, paired) if isinstance(one, WordDifference) else pair_name(one, paired)
    return _row(name, one, format_signed(one.first_mean), format_signed(one.second_mean), f"{one.count:,}")


def _row(name: str, mean: MeanOverTexts, *cells: str) -> MeanRow:
    misfit = () if mean.misfit_stderr is None else (f"± {format_number(mean.misfit_stderr)}",)
    return MeanRow(
        name, mean.mean, shown_stderr(mean, mean.stderr), mean.reach, mean.reach_with_misfit, (*misfit, *cells)
    )
