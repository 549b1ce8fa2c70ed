"""Sets of explanations, and differences of two, as plain lines for `print`."""

from collections.abc import Sequence

from spinformer._base.characters import printable
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.characters import display_width, shorten
from spinformer.explain.render.layout import noun, pair_name, score_name, side_names
from spinformer.explain.render.selection import shown_pairs, shown_stderr, shown_words
from spinformer.explain.summary import DifferenceSummary, Overview, PairDifference, PairSummary, WordDifference

MAX_LENGTH, MAX_TEXT = 40, 70


def overview_text(overview: Overview, count: int = 5) -> str:
    """The classes, the `count` most important words and pairs of each, and the most unusual texts."""
    example, whole = overview.example, overview.whole
    sides = side_names(example)
    methods = ", ".join(map(printable, overview.methods))
    lines = [f"{whole.count:,} explanations of {len(overview.classes)} class(es), method {methods}"]
    lines += [f"Note ({number:,} texts): {printable(note)}" for note, number in overview.notes.items()]
    lines.append(f"{noun(example)} that matter most, by mean |{score_name(example)}| ± standard error of the mean:")
    lines += _table(
        [
            (
                _name(word.text),
                _value(word.mean_abs, shown_stderr(word, word.mean_abs_stderr))[1:],
                _texts(word.count),
                sides[word.side],
            )
            for word in whole.words[:count]
        ]
    )
    for group in overview.classes:
        base = "" if group.base_value is None else f", no {noun(example)} {group.base_value:.3f}"
        lines.append(f"{_name(group.name)}, {_texts(group.count)}{base}, all {noun(example)} {group.value:.3f}:")
        lines.append(f"  {noun(example)} by mean {score_name(example)} ± standard error of the mean:")
        words = shown_words(group, count)
        lines += _table(
            [(_name(w.text), _value(w.mean, shown_stderr(w, w.stderr)), _texts(w.count), sides[w.side]) for w in words],
            indent=4,
        )
        pairs = shown_pairs(group, count)
        if pairs:
            kept = ", over the texts that list the pair" if overview.partial_pairs else ""
            lines.append(f"  pairs by mean {pair_name(example)}{kept}:")
            lines += _table(
                [
                    (_pair(p, sides), _value(p.mean, shown_stderr(p, p.stderr)), _texts(p.count), _kind(p.mean))
                    for p in pairs
                ],
                indent=4,
            )
    if overview.unusual:
        lines.append("texts with other reasons than usual in their class (distance, about 1 is usual):")
    for text in overview.unusual[:count]:
        lines.append(f"  {text.distance:4.1f}  no. {text.index + 1}: {_shown(text.record)}")
        first = text.deviations[0]
        where = f" ({sides[first.side]})" if len(sides) > 1 else ""
        lines.append(f"        {_name(first.text)}{where} {first.value:+.3f}, usually {first.usual:+.3f}")
    return "\n".join(lines)


def difference_text(difference: DifferenceSummary, sides: Sequence[str], count: int = 5) -> str:
    """How often two models decide alike, what they weigh differently, and where they disagree."""
    one, other = map(_name, difference.names)
    apart = len(difference.disagreements)
    lines = [
        f"{one} and {other} on {_texts(difference.count)}: they decide differently in {apart:,} "
        f"({apart / difference.count:.1%})"
    ]
    if difference.words:
        lines.append(f"words by mean difference ({one} − {other}), then in each, over {_texts(difference.compared)}:")
        lines += _table(
            [
                (_name(w.text), _value(w.mean, shown_stderr(w, w.stderr)), _both(w), sides[w.side])
                for w in difference.words[:count]
            ]
        )
    if difference.pairs:
        lines.append("pairs by mean difference of their interactions:")
        lines += _table(
            [
                (
                    _pair(p, sides),
                    _value(p.mean, shown_stderr(p, p.stderr)),
                    _both(p),
                    "",
                )
                for p in difference.pairs[:count]
            ]
        )
    if apart:
        lines.append("decided differently:")
    for text in difference.disagreements[:count]:
        lines.append(f"  no. {text.index + 1}: {_shown(text.first)}")
        for name, record in ((one, text.first), (other, text.second)):
            words = ", ".join(f"{_name(word.text)} {word.importance:+.3f}" for word in record.top_words(3))
            decided = f"{printable(record.label)} {record.probabilities[record.label]:.3f}"
            lines.append(f"        {name}: {decided}; for {printable(record.target)}: {words}")
    return "\n".join(lines)


def _table(rows: Sequence[tuple[str, str, str, str]], indent: int = 2) -> list[str]:
    """Cells below each other; the last column is left out where it says the same in every row."""
    columns = range(4 if len({row[3] for row in rows}) > 1 else 3)
    widths = [max((display_width(row[column]) for row in rows), default=0) for column in columns]
    return [
        (" " * indent + "  ".join(row[c] + " " * (widths[c] - display_width(row[c])) for c in columns)).rstrip()
        for row in rows
    ]


def _shown(record: ExplanationRecord) -> str:
    return shorten(printable(" / ".join(record.texts)), MAX_TEXT)


def _name(text: str) -> str:
    return shorten(printable(text), MAX_LENGTH)


def _texts(count: int) -> str:
    return f"{count:,} text{'' if count == 1 else 's'}"


def _value(value: float, stderr: float | None) -> str:
    return f"{value:+.3f}" if stderr is None else f"{value:+.3f} ± {stderr:.3f}"


def _pair(pair: PairSummary | PairDifference, sides: Sequence[str]) -> str:
    across = pair.first_side != pair.second_side
    where = "" if len(sides) == 1 else " (across)" if across else f" ({sides[pair.first_side]})"
    return f"{_name(pair.first)} – {_name(pair.second)}{where}"


def _both(difference: WordDifference | PairDifference) -> str:
    return f"{difference.first_mean:+.3f} and {difference.second_mean:+.3f}"


def _kind(mean: float) -> str:
    return "synergy" if mean > 0 else "antagonism"
