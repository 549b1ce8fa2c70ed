"""An explanation as HTML: the decision, the coloured words, tables, drawings, downloads. All text is escaped.

Numbers are for people first. What only those ask for who know the game and the Ising model has the class `physics`,
which the page shows behind a switch.
"""

from spinformer.app.downloads import explanation_files, links
from spinformer.app.points import level, points, reach, unit
from spinformer.explain.explanation import Explanation
from spinformer.explain.record import Pair
from spinformer.explain.render import layout, markup
from spinformer.explain.render.characters import capitalize, shorten
from spinformer.explain.render.columns import Column, word_columns
from spinformer.explain.render.scale import scales_of
from spinformer.explain.render.svg import arcs_svg

# Of an explanation: words and pairs in lists, arcs that are drawn, words in the map of pairs, classes with a bar.
MAX_WORDS, MAX_PAIRS, MAX_ARCS, MAX_MAP_WORDS, MAX_CLASSES = 8, 5, 12, 40, 6
# Numbers of a word beside its score that have room on a telephone.
COLUMNS = ("Shapley", "Banzhaf", "attention")
MAX_MESSAGE = 280


def explanation_html(explanation: Explanation) -> str:
    """All that the page shows of an explanation."""
    parts = (_decision, _words, _top_words, _pairs, _map)
    shown = "".join(part(explanation) for part in parts)
    return f'<div class="result" aria-live="polite">{shown}{links(explanation_files(explanation))}</div>'


def message_html(text: str) -> str:
    """What was wrong, where the result would stand."""
    return f'<div class="message" role="alert">{markup.escape(shorten(" ".join(text.split()), MAX_MESSAGE))}</div>'


def _decision(explanation: Explanation) -> str:
    title = f'<h2 class="decision">{_answer(explanation)}</h2>'
    physics = f'<div class="physics">{markup.base_paragraph(explanation)}</div>'
    body = f"{title}{_bars(explanation)}{_explained(explanation)}{_base(explanation)}{physics}"
    return f'{markup.note_box(explanation)}<section class="card">{body}</section>'


def _answer(explanation: Explanation) -> str:
    """The class and how sure the classifier is; all labels that are on; or the score."""
    if explanation.outputs == "labels":
        return layout.decision(explanation, markup.isolate).partition(", explained")[0]
    answer = layout.answer(explanation, explanation.label)
    return f"{markup.isolate(explanation.label)} <small>{answer}</small>"


def _bars(explanation: Explanation) -> str:
    """The probabilities of the classes; of many, the most probable and those that are explained."""
    if explanation.outputs == "scores":
        return ""
    shares = explanation.probabilities
    ranked = sorted(shares, key=lambda name: -shares[name])
    chosen = {explanation.label, explanation.target, explanation.against, *ranked[:MAX_CLASSES]}
    shown = [name for name in (shares if len(shares) <= MAX_CLASSES else ranked) if name in chosen]
    bars = "".join(
        f'<div class="bar{" chosen" if name == explanation.label else ""}">'
        f'<span class="name">{markup.isolate(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * shares[name]:.1f}%"></span></span>'
        f'<span class="probability">{shares[name]:.1%}</span></div>'
        for name in shown
    )
    left = len(shares) - len(shown)
    return f'{bars}<p class="legend">and {left} others, each less likely</p>' if left else bars


def _explained(explanation: Explanation) -> str:
    """Which question is answered, where it is another than "why this decision?"."""
    target = markup.isolate(explanation.target)
    if explanation.against is not None:
        other = markup.isolate(explanation.against)
        return f'<p class="asked">Why <strong>{target}</strong> and not <strong>{other}</strong>?</p>'
    if explanation.target == explanation.label:
        return ""
    return f'<p class="asked">What speaks for <strong>{target}</strong>, and what against it?</p>'


def _base(explanation: Explanation) -> str:
    """What the classifier says without any word, and what the words add to it."""
    if explanation.base_value is None:
        return ""
    start = level(explanation, explanation.base_value)
    change = explanation.full_value - explanation.base_value
    size = f"{reach(explanation, abs(change))} {unit(explanation)}".strip()
    words = f"The words add {size}" if change >= 0 else f"The words take {size} from it"
    if explanation.against is not None:
        says = f"the difference of both would be {start}"
    else:
        says = f"{markup.isolate(explanation.target)} would get {start}"
    return f'<p class="base">With every word hidden, {says}. {words}.</p>'


def _words(explanation: Explanation) -> str:
    name = layout.explained_class(explanation)
    subject = name if name == "the decision" else markup.isolate(name)
    legend = (
        f'<p class="legend"><span class="w p6">blue</span> spoke for {subject}, '
        '<span class="w n6 against">orange</span> against it: the deeper, the more</p>'
    )
    scale = scales_of(explanation).words
    lines = markup.colored_words(explanation, scale)
    physics = f'<div class="physics">{markup.scale_line(scale, layout.score_name(explanation))}</div>'
    return f'<section class="card"><h3>Which words decided</h3>{lines}{legend}{physics}</section>'


def _top_words(explanation: Explanation) -> str:
    names = layout.side_names(explanation)
    (score, *others), _ = word_columns(explanation)
    columns = [score, *(column for column in others if column.name in COLUMNS)]
    strongest = _strongest(explanation)
    largest = max(abs(explanation.importance[position]) for position in strongest) or 1.0
    rows = []
    for position in strongest:
        word = explanation.words[position]
        side = f' <span class="side">{names[word.side]}</span>' if len(names) > 1 else ""
        cells = f"<td>{_adds(explanation, word.importance, word.importance_stderr, word.misfit_stderr)}</td>"
        cells += f'<td class="effect">{_effect(word.importance / largest)}</td>'
        cells += "".join(f'<td class="physics">{_measured(column, position)}</td>' for column in columns)
        rows.append(f'<tr><th scope="row">{markup.isolate(word.text)}{side}</th>{cells}</tr>')
    adds = f"adds, in {unit(explanation)}" if unit(explanation) else "adds"
    head = f'<th scope="col">word</th><th scope="col" colspan="2">{adds}</th>'
    head += "".join(f'<th scope="col" class="physics">{column.name}</th>' for column in columns)
    table = f'<table class="top"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<section class="card"><h3>The strongest words</h3>{table}{_how(explanation)}</section>'


def _how(explanation: Explanation) -> str:
    """What the numbers were obtained from, in words, and for those who ask."""
    passes = "one pass" if explanation.passes == 1 else f"{explanation.passes:,} passes"
    notes = [f"from {explanation.samples} coalitions and {passes} of the classifier"]
    if explanation.converged is not None:
        notes.append(f"mean field {'reached' if explanation.converged else 'not reached'}")
    return (
        f'<p class="legend how">From {passes} of the classifier. ± is how far a number may be off (one standard error)'
        f'</p><p class="legend physics">{"; ".join(notes)}</p>'
    )


def _strongest(explanation: Explanation) -> list[int]:
    """Positions of the words with the largest scores, the largest first."""
    scores = explanation.importance
    return sorted(range(len(scores)), key=lambda position: -abs(scores[position]))[:MAX_WORDS]


def _effect(part: float) -> str:
    """A bar from the middle, to the right for what speaks for the class; part: of the longest."""
    side = "for" if part > 0 else "against"
    return f'<span class="effect-bar {side}" style="width:{50 * abs(part):.1f}%"></span>'


def _adds(explanation: Explanation, value: float, stderr: float | None, misfit: float | None) -> str:
    """What a word or a pair adds, with its standard error; on hover, what that is made of."""
    parts = markup.error_parts(stderr, misfit)
    title = f' title="{parts}"' if parts else ""
    return f'{points(explanation, value)} <span class="error"{title}>± {reach(explanation, stderr)}</span>'


def _measured(column: Column, position: int) -> str:
    """A number as the game has it, with its standard error."""
    number = column.numbers[position]
    if not column.stderr:
        return (markup.format_signed if column.signed else markup.format_number)(number)
    error = f'<span class="error">± {markup.format_number(column.stderr[position])}</span>'
    return f"{markup.format_signed(number)} {error}"


def _pairs(explanation: Explanation) -> str:
    items = "".join(_pair(explanation, pair) for pair in layout.strongest_pairs(explanation, MAX_PAIRS))
    drawn = layout.strongest_pairs(explanation, MAX_ARCS)
    caption = markup.arcs_caption(explanation, drawn, scales_of(explanation).pairs)
    arcs = markup.scrollable("Arcs between words", arcs_svg(explanation, MAX_ARCS))
    said = "Solid arcs: two words say more together than alone. Dashed: one takes from the other. The wider, the more."
    return (
        f'<section class="card"><h3>Which pairs of words</h3>{arcs}'
        f'<p class="legend">{said if drawn else capitalize(layout.describe_pairs(explanation, drawn))}</p>'
        f'<ol class="pairs">{items}</ol><p class="legend physics">{caption}</p></section>'
    )


def _pair(explanation: Explanation, pair: Pair) -> str:
    first, second = (markup.isolate(explanation.words[position].text) for position in (pair.first, pair.second))
    adds = _adds(explanation, pair.interaction, pair.stderr, pair.misfit_stderr)
    kind, name = ("more together", "synergy") if pair.interaction > 0 else ("one takes from the other", "antagonism")
    counted = f" {unit(explanation)}" if unit(explanation) else ""
    kind += f'<span class="physics"> ({name})</span>'
    return f"<li><strong>{first}</strong> – <strong>{second}</strong>: {adds}{counted}, {kind}</li>"


def _map(explanation: Explanation) -> str:
    table = markup.pair_table(layout.pair_map(explanation, MAX_MAP_WORDS))
    return f'<details class="card"><summary>Every pair of words in numbers</summary>{table}</details>'
