"""An explanation as HTML: the decision, the coloured words, tables, drawings, downloads. All text is escaped."""

import base64
import json

from spinformer.explain.explanation import Explanation
from spinformer.explain.render import layout, markup
from spinformer.explain.render.html import to_html
from spinformer.explain.render.svg import arcs_svg

# Of an explanation: words and pairs in lists, arcs that are drawn, words in the map of pairs.
MAX_WORDS, MAX_PAIRS, MAX_ARCS, MAX_MAP_WORDS = 8, 5, 12, 40


def explanation_html(explanation: Explanation) -> str:
    """All that the page shows of an explanation."""
    parts = (_decision, _words, _top_words, _pairs, _map, _downloads)
    return f'<div class="result" aria-live="polite">{"".join(part(explanation) for part in parts)}</div>'


def message_html(text: str) -> str:
    """What was wrong, where the result would stand."""
    return f'<div class="message" role="alert">{markup.escape(text)}</div>'


def _decision(explanation: Explanation) -> str:
    bars = "".join(
        f'<div class="bar{" chosen" if name == explanation.label else ""}">'
        f'<span class="name">{markup.isolate(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * probability:.1f}%"></span></span>'
        f'<span class="probability">{probability:.1%}</span></div>'
        for name, probability in explanation.probabilities.items()
    )
    probability = explanation.probabilities[explanation.label]
    title = f'<h2 class="decision">{markup.isolate(explanation.label)} <small>{probability:.1%}</small></h2>'
    return f'<section class="card">{title}{bars}</section>'


def _words(explanation: Explanation) -> str:
    legend = (
        '<p class="legend"><span class="w p6">blue</span> spoke for the decision, '
        '<span class="w n6 against">orange</span> against it: the deeper, the more</p>'
    )
    return f'<section class="card"><h3>Which words decided</h3>{markup.word_lines(explanation)}{legend}</section>'


def _top_words(explanation: Explanation) -> str:
    names = layout.side_names(explanation)
    rows = "".join(
        f'<tr><th scope="row">{markup.isolate(word.text)} <span class="side">{names[word.side]}</span></th>'
        f"<td>{_measured(word.importance, word.importance_stderr)}</td>"
        f"<td>{_measured(word.banzhaf, word.banzhaf_stderr)}</td>"
        f"<td>{markup.format_number(word.attention, 2)}</td></tr>"
        for word in explanation.top_words(MAX_WORDS)
    )
    score = layout.score_name(explanation).removesuffix(" value")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("word", score, "Banzhaf", "attention"))
    passes = "one pass" if explanation.passes == 1 else f"{explanation.passes:,} passes"
    notes = [f"± one standard error, from {explanation.samples} coalitions and {passes} of the classifier"]
    if explanation.converged is not None:
        notes.append(f"mean field {'reached' if explanation.converged else 'not reached'}")
    return (
        f'<section class="card"><h3>The strongest words</h3><table class="top"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table><p class="legend">{"; ".join(notes)}</p></section>'
    )


def _measured(value: float | None, stderr: float | None) -> str:
    return f'{markup.format_signed(value)} <span class="error">± {markup.format_number(stderr)}</span>'


def _pairs(explanation: Explanation) -> str:
    items = "".join(
        f"<li>{markup.isolate(one.text)} – {markup.isolate(other.text)}: {markup.format_signed(value)}, "
        f"{'synergy' if value > 0 else 'antagonism'}</li>"
        for one, other, value in explanation.top_pairs(MAX_PAIRS)
    )
    caption = layout.describe_pairs(explanation, layout.strongest_pairs(explanation, MAX_ARCS))
    arcs = markup.scrollable("Arcs between words", arcs_svg(explanation, MAX_ARCS))
    return (
        f'<section class="card"><h3>Which pairs of words</h3>{arcs}'
        f'<p class="legend">{caption}: solid arcs for synergy, dashed for antagonism</p>'
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
