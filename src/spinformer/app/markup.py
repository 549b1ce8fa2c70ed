"""An explanation as HTML: the decision, the coloured words, tables, pictures, downloads. All text is escaped."""

import base64
import json

from spinformer.app.heat import heat_svg, said_of_map
from spinformer.explain import Explanation
from spinformer.explain.html import to_html
from spinformer.explain.layout import said_of_pairs, side_names, strongest_pairs
from spinformer.explain.markup import chip, escaped, isolated, number, scroll, signed
from spinformer.explain.svg import arcs_svg

# Of an explanation: words and pairs that are listed, arcs that are drawn.
WORDS, PAIRS, ARCS = 8, 5, 12


def shown(explanation: Explanation) -> str:
    """All that the page says of an explanation."""
    parts = (_decision, _words, _top_words, _arcs, _map, _downloads)
    return f'<div class="result" aria-live="polite">{"".join(part(explanation) for part in parts)}</div>'


def message(text: str) -> str:
    """In the place of a result: what was wrong."""
    return f'<div class="message" role="alert">{escaped(text)}</div>'


def _decision(explanation: Explanation) -> str:
    bars = "".join(
        f'<div class="bar{" chosen" if name == explanation.label else ""}"><span class="name">{isolated(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * chance:.1f}%"></span></span>'
        f'<span class="chance">{chance:.1%}</span></div>'
        for name, chance in explanation.probabilities.items()
    )
    chance = explanation.probabilities[explanation.label]
    title = f'<h2 class="decision">{isolated(explanation.label)} <small>{chance:.1%}</small></h2>'
    return f'<section class="card">{title}{bars}</section>'


def _words(explanation: Explanation) -> str:
    largest = max((abs(value) for value in explanation.importance), default=0.0) or 1.0
    rows = []
    for side, name in enumerate(side_names(explanation)):
        chips = " ".join(chip(word, word.shapley / largest, "chip") for word in explanation.words if word.side == side)
        rows.append(f'<div class="side">{name}</div><p class="words">{chips}</p>')
    legend = (
        '<p class="legend"><span class="chip p6">blue</span> spoke for the decision, '
        '<span class="chip n6 against">orange</span> against it: the deeper, the more</p>'
    )
    return f'<section class="card"><h3>Which words decided</h3>{"".join(rows)}{legend}</section>'


def _top_words(explanation: Explanation) -> str:
    names = side_names(explanation)
    rows = "".join(
        f'<tr><th scope="row">{isolated(word.text)} <span class="side">{names[word.side]}</span></th>'
        f"<td>{_measured(word.shapley, word.shapley_stderr)}</td>"
        f"<td>{_measured(word.banzhaf, word.banzhaf_stderr)}</td><td>{number(word.attention, 2)}</td></tr>"
        for word in explanation.top_words(WORDS)
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("word", "Shapley", "Banzhaf", "attention"))
    notes = [f"± one standard error, from {explanation.samples} coalitions and one pass of the classifier"]
    if explanation.converged is not None:
        notes.append(f"mean field {'reached' if explanation.converged else 'not reached'}")
    return (
        f'<section class="card"><h3>The strongest words</h3><table class="top"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table><p class="legend">{"; ".join(notes)}</p></section>'
    )


def _measured(value: float, error: float) -> str:
    return f'{signed(value)} <span class="error">± {number(error)}</span>'


def _arcs(explanation: Explanation) -> str:
    listed = "".join(
        f"<li>{isolated(one.text)} – {isolated(other.text)}: {signed(value)}, "
        f"{'synergy' if value > 0 else 'antagonism'}</li>"
        for one, other, value in (explanation.top_pairs(PAIRS) if explanation.pairs else [])
    )
    said = said_of_pairs(explanation, strongest_pairs(explanation, ARCS))
    drawn = scroll("Arcs between words", arcs_svg(explanation, ARCS))
    return (
        f'<section class="card"><h3>Which pairs of words</h3>{drawn}'
        f'<p class="legend">{said}: solid arcs for synergy, dashed for antagonism</p>'
        f'<ol class="pairs">{listed}</ol></section>'
    )


def _map(explanation: Explanation) -> str:
    inside = scroll("Map of pairs", heat_svg(explanation))
    return (
        f'<section class="card"><h3>Every pair</h3>{inside}<p class="legend">{said_of_map(explanation)}</p></section>'
    )


def _downloads(explanation: Explanation) -> str:
    text = json.dumps(explanation.to_dict(), ensure_ascii=False)
    files = (
        ("explanation.json", "application/json", text, "JSON"),
        ("explanation.html", "text/html", to_html([explanation]), "HTML report"),
    )
    links = "".join(
        f'<a class="download" download="{name}" href="data:{kind};charset=utf-8;base64,{_coded(content.encode())}">'
        f"Download the {shown}</a>"
        for name, kind, content, shown in files
    )
    return f'<div class="downloads">{links}</div>'


def _coded(content: bytes) -> str:
    return base64.b64encode(content).decode()
