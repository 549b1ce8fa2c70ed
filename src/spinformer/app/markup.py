"""An explanation as HTML: the decision, the coloured words, tables, drawings, downloads. All text is escaped."""

import base64
import json

from spinformer.explain.explanation import Explanation
from spinformer.explain.render import layout, markup
from spinformer.explain.render.columns import Column, word_columns
from spinformer.explain.render.html import to_html
from spinformer.explain.render.scale import scales_of
from spinformer.explain.render.svg import arcs_svg

# Of an explanation: words and pairs in lists, arcs that are drawn, words in the map of pairs.
MAX_WORDS, MAX_PAIRS, MAX_ARCS, MAX_MAP_WORDS = 8, 5, 12, 40
# Numbers of a word beside its score that have room on a telephone.
COLUMNS = ("Shapley", "Banzhaf", "attention")


def explanation_html(explanation: Explanation) -> str:
    """All that the page shows of an explanation."""
    parts = (_decision, _words, _top_words, _pairs, _map, _downloads)
    return f'<div class="result" aria-live="polite">{"".join(part(explanation) for part in parts)}</div>'


def message_html(text: str) -> str:
    """What was wrong, where the result would stand."""
    return f'<div class="message" role="alert">{markup.escape(text)}</div>'


def _decision(explanation: Explanation) -> str:
    shown = explanation.probabilities if explanation.outputs != "scores" else {}
    bars = "".join(
        f'<div class="bar{" chosen" if name == explanation.label else ""}">'
        f'<span class="name">{markup.isolate(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * probability:.1f}%"></span></span>'
        f'<span class="probability">{probability:.1%}</span></div>'
        for name, probability in shown.items()
    )
    answer = layout.answer(explanation, explanation.label)
    title = f'<h2 class="decision">{markup.isolate(explanation.label)} <small>{answer}</small></h2>'
    base = markup.base_paragraph(explanation)
    return f'{markup.note_box(explanation)}<section class="card">{title}{bars}{base}</section>'


def _words(explanation: Explanation) -> str:
    legend = (
        '<p class="legend"><span class="w p6">blue</span> spoke for the decision, '
        '<span class="w n6 against">orange</span> against it: the deeper, the more</p>'
    )
    lines = markup.word_lines(explanation, scales_of(explanation).words)
    return f'<section class="card"><h3>Which words decided</h3>{lines}{legend}</section>'


def _top_words(explanation: Explanation) -> str:
    names = layout.side_names(explanation)
    (score, *others), _ = word_columns(explanation)
    columns = [score, *(column for column in others if column.name in COLUMNS)]
    rows = "".join(
        f'<tr><th scope="row">{markup.isolate(explanation.words[position].text)} '
        f'<span class="side">{names[explanation.words[position].side]}</span></th>'
        f"{''.join(f'<td>{_measured(column, position)}</td>' for column in columns)}</tr>"
        for position in _strongest(explanation)
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("word", *(column.name for column in columns)))
    passes = "one pass" if explanation.passes == 1 else f"{explanation.passes:,} passes"
    notes = [f"± one standard error, from {explanation.samples} coalitions and {passes} of the classifier"]
    if explanation.converged is not None:
        notes.append(f"mean field {'reached' if explanation.converged else 'not reached'}")
    return (
        f'<section class="card"><h3>The strongest words</h3><table class="top"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table><p class="legend">{"; ".join(notes)}</p></section>'
    )


def _strongest(explanation: Explanation) -> list[int]:
    """Positions of the words with the largest scores, the largest first."""
    scores = explanation.importance
    return sorted(range(len(scores)), key=lambda position: -abs(scores[position]))[:MAX_WORDS]


def _measured(column: Column, position: int) -> str:
    """A number with its standard error; on hover, what that is made of."""
    number = column.numbers[position]
    if not column.stderr:
        return (markup.format_signed if column.signed else markup.format_number)(number)
    stderr, misfit = column.stderr[position], column.misfit[position] if column.misfit else None
    return f"{markup.format_signed(number)} {_error(stderr, misfit)}"


def _error(stderr: float | None, misfit: float | None) -> str:
    parts = markup.error_parts(stderr, misfit)
    title = f' title="{parts}"' if parts else ""
    return f'<span class="error"{title}>± {markup.format_number(stderr)}</span>'


def _pairs(explanation: Explanation) -> str:
    words = [markup.isolate(word.text) for word in explanation.words]
    items = "".join(
        f"<li>{words[pair.first]} – {words[pair.second]}: {markup.format_signed(pair.interaction)} "
        f"{_error(pair.stderr, pair.misfit_stderr)}, {'synergy' if pair.interaction > 0 else 'antagonism'}</li>"
        for pair in layout.strongest_pairs(explanation, MAX_PAIRS)
    )
    drawn = layout.strongest_pairs(explanation, MAX_ARCS)
    caption = markup.arcs_caption(explanation, drawn, scales_of(explanation).pairs)
    arcs = markup.scrollable("Arcs between words", arcs_svg(explanation, MAX_ARCS))
    return (
        f'<section class="card"><h3>Which pairs of words</h3>{arcs}'
        f'<p class="legend">{caption}</p>'
        f'<ol class="pairs">{items}</ol></section>'
    )


def _map(explanation: Explanation) -> str:
    table = markup.pair_table(layout.pair_map(explanation, MAX_MAP_WORDS))
    return f'<section class="card"><h3>Every pair</h3>{table}</section>'


def _downloads(explanation: Explanation) -> str:
    text = json.dumps(explanation.to_dict(), ensure_ascii=False)
    files = (
        ("explanation.json", "application/json", text, "JSON"),
        ("explanation.html", "text/html", to_html(explanation), "HTML report"),
    )
    links = "".join(
        f'<a class="download" download="{name}" href="data:{kind};charset=utf-8;base64,{_base64(content)}">'
        f"Download the {title}</a>"
        for name, kind, content, title in files
    )
    return f'<div class="downloads">{links}</div>'


def _base64(content: str) -> str:
    return base64.b64encode(content.encode()).decode()
