"""Explanations as one HTML page that needs nothing else: no network, no script, no font, no extra.

Its Content-Security-Policy lets nothing in but the page's own style sheet, by its digest.
"""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from spinformer.explain.explanation import Explanation
from spinformer.explain.html_style import STYLE
from spinformer.explain.layout import most_important, said_of_pairs, side_names, strongest_pairs
from spinformer.explain.markup import chip, escaped, isolated, number, scroll, shade, signed
from spinformer.explain.svg import arcs_svg

TITLE = "Which words decided"
# Of one explanation: arcs drawn, pairs listed, words in the map of pairs.
ARCS, LISTED, MAPPED = 12, 8, 24
_METHODS = {
    "grounded": "the game that was learnt of the classifier",
    "masked": "the classifier itself, asked about parts of the text",
}


def to_html(explanations: Explanation | Sequence[Explanation], title: str = TITLE) -> str:
    """One page with a section for each explanation; the same explanations give the same page."""
    every = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    if not every:
        raise ValueError("a report needs at least one explanation; got none")
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    sections = "\n".join(_section(one, place) for place, one in enumerate(every, 1))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{isolated(title)}</h1>
<p class="soft"><span class="w p6">Blue</span> words spoke for the decision,
<span class="w n6 against">orange</span> ones, underlined with dots, against it: the deeper, the more. A Shapley value
is a word's share of the probability; all of them sum to the probability less that of no words at all. Two words in
synergy say more together than each alone; in antagonism one takes from the other. ± is one standard error.</p>
{_contents(every)}</header>
<main>
{sections}
</main>
</body>
</html>
"""


def save_html(explanations: Explanation | Sequence[Explanation], path: Path | str, title: str = TITLE) -> Path:
    """The page in a file."""
    page = to_html(explanations, title)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def _contents(every: Sequence[Explanation]) -> str:
    if len(every) == 1:
        return ""
    items = "".join(
        f'<li><a href="#e{place}">{isolated(" / ".join(one.texts))}</a>: {isolated(one.label)} '
        f"({one.probabilities[one.label]:.1%})</li>"
        for place, one in enumerate(every, 1)
    )
    named = f"<summary>{len(every)} explanations</summary>"
    return f'<nav aria-label="contents"><details>{named}<ol>{items}</ol></details></nav>\n'


def _section(explanation: Explanation, place: int) -> str:
    pairs = strongest_pairs(explanation, ARCS)
    return f"""<section aria-labelledby="e{place}">
<h2 id="e{place}">{place}. {isolated(explanation.label)} ({explanation.probabilities[explanation.label]:.1%})</h2>
{_words(explanation)}
<h3>Classes</h3>
{_classes(explanation)}
<h3>Pairs of words</h3>
<figure>{scroll("arcs between words", arcs_svg(explanation, ARCS))}
<figcaption>{_sentence(said_of_pairs(explanation, pairs))}: solid arcs for synergy, dashed for antagonism.
</figcaption></figure>
{_listed(explanation)}
<details open><summary>Every word in numbers</summary>
{_numbers(explanation)}
</details>
<details><summary>Map of pairs</summary>
{_map(explanation)}
</details>
<h3>How this was found</h3>
{_method(explanation)}
</section>"""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _words(explanation: Explanation) -> str:
    strongest = max((abs(value) for value in explanation.importance), default=0.0) or 1.0
    lines = []
    for side, name in enumerate(side_names(explanation)):
        words = [word for word in explanation.words if word.side == side]
        chips = " ".join(chip(word, word.shapley / strongest, "w") for word in words)
        lines.append(f'<p class="side">{name}</p>\n<p class="words">{chips}</p>')
    return "\n".join(lines)


def _classes(explanation: Explanation) -> str:
    rows = "".join(
        f'<tr><th scope="row" class="name">{isolated(name)}</th><td>{chance:.1%}</td>'
        f'<td><meter min="0" max="1" value="{chance:.4f}">{chance:.1%}</meter></td></tr>'
        for name, chance in explanation.probabilities.items()
    )
    head = '<tr><th scope="col" class="name">class</th><th scope="col" colspan="2">probability</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _listed(explanation: Explanation) -> str:
    words = [isolated(word.text) for word in explanation.words]
    items = "".join(
        f"<li><b>{words[pair.first]}</b> – <b>{words[pair.second]}</b> &nbsp; {signed(pair.interaction, 4)} ± "
        f"{number(pair.stderr, 4)}, {'synergy' if pair.interaction > 0 else 'antagonism'}</li>"
        for pair in strongest_pairs(explanation, LISTED)
    )
    return f"<ol>{items}</ol>" if items else ""


def _numbers(explanation: Explanation) -> str:
    names = side_names(explanation)
    rows = "".join(
        f'<tr><td>{place}</td><th scope="row" class="name">{isolated(word.text)}</th><td>{names[word.side]}</td>'
        f"<td>{signed(word.shapley, 4)}</td><td>{number(word.shapley_stderr, 4)}</td>"
        f"<td>{signed(word.banzhaf, 4)}</td><td>{number(word.banzhaf_stderr, 4)}</td>"
        f"<td>{number(word.field)}</td><td>{number(word.gate)}</td><td>{number(word.attention)}</td></tr>"
        for place, word in enumerate(explanation.words, 1)
    )
    columns = ("Shapley", "±", "Banzhaf", "±", "field", "gate", "attention")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("text", *columns))
    first = '<th scope="col">#</th><th scope="col" class="name">word</th>'
    table = f"<table><thead><tr>{first}{head}</tr></thead><tbody>{rows}</tbody></table>"
    return scroll("every word in numbers", table)


def _map(explanation: Explanation) -> str:
    chosen = most_important(explanation, MAPPED)
    words, matrix = explanation.words, explanation.interactions
    largest = max((abs(matrix[i][j]) for i in chosen for j in chosen), default=0.0) or 1.0
    first = sum(words[place].side == 0 for place in chosen)
    border = first if 0 < first < len(chosen) else -1

    names = [isolated(words[place].text) for place in chosen]
    edge, top = ' class="first"', ' class="top"'

    def cell(i: int, j: int, at: int) -> str:
        kinds = " ".join(kind for kind in (shade(matrix[i][j] / largest), "first" if at == border else "") if kind)
        mark = f' class="{kinds}"' if kinds else ""
        return f"<td{mark}>{'' if i == j else signed(matrix[i][j])}</td>"

    head = "".join(f'<th scope="col"{edge if at == border else ""}>{names[at]}</th>' for at in range(len(chosen)))
    rows = "".join(
        f"<tr{top if row == border else ''}>"
        f'<th scope="row">{names[row]}</th>{"".join(cell(i, j, at) for at, j in enumerate(chosen))}</tr>'
        for row, i in enumerate(chosen)
    )
    of = f"The {len(chosen)} most important of {len(words)} words. " if len(chosen) < len(words) else ""
    parted = "; the line parts premise and hypothesis" if border >= 0 else ""
    said = f"<caption>{of}Blue numbers are synergy, orange ones antagonism{parted}.</caption>"
    head = f"<thead><tr><td></td>{head}</tr></thead>"
    return scroll("map of pairs", f'<table class="heat">{said}{head}<tbody>{rows}</tbody></table>')


def _method(explanation: Explanation) -> str:
    passes = "one pass" if explanation.passes == 1 else f"{explanation.passes:,} passes"
    said = [
        f"Method {isolated(explanation.method)}: {_METHODS.get(explanation.method, 'of its own')}; {passes} of the "
        f"classifier, {explanation.samples:,} coalitions for the words' values.",
        f"Probability with no word at all: {number(explanation.empty_value)}.",
    ]
    if explanation.ess is not None:
        said.append(f"Effective sample size of the Ising model's estimates: {number(explanation.ess, 1)}.")
    if explanation.converged is not None:
        reached = "was reached" if explanation.converged else "was NOT reached: attention is not to be relied on"
        said.append(f"Its mean field {reached}.")
    return f"<p>{' '.join(said)}</p>"
