"""Explanations as one HTML page that needs nothing else: no network, no script, no font, no extra.

Its Content-Security-Policy allows nothing but the page's own style sheet, by its digest.
"""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.layout import (
    decision,
    describe_pairs,
    pair_map,
    score_name,
    side_names,
    strongest_pairs,
)
from spinformer.explain.render.markup import (
    capitalize,
    escape,
    format_number,
    format_signed,
    isolate,
    pair_table,
    scrollable,
    word_lines,
)
from spinformer.explain.render.style import STYLE
from spinformer.explain.render.svg import arcs_svg

TITLE = "Which words decided"
# Of each explanation: arcs drawn, pairs listed, words in the map of pairs.
MAX_ARCS, MAX_LISTED_PAIRS, MAX_MAP_WORDS = 12, 8, 24
SHAPLEY_NOTE = """A Shapley value
is a word's share of the probability; all of them sum to the probability less that of no words at all. """


def to_html(explanations: ExplanationRecord | Sequence[ExplanationRecord], title: str = TITLE) -> str:
    """One page with a section for each explanation; the same explanations give the same page."""
    records = [explanations] if isinstance(explanations, ExplanationRecord) else list(explanations)
    if not records:
        raise ValueError("a report needs at least one explanation; got none")
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    sections = "\n".join(_section(record, number) for number, record in enumerate(records, 1))
    subject = "the decision" if all(record.target == record.label for record in records) else "the explained class"
    note = SHAPLEY_NOTE if any(score_name(record) == "Shapley value" for record in records) else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{isolate(title)}</h1>
<p class="soft"><span class="w p6">Blue</span> words spoke for {subject},
<span class="w n6 against">orange</span> ones, underlined with dots, against it: the deeper, the more. {note}Two words
in synergy say more together than each alone; in antagonism one takes from the other. ± is one standard error.</p>
{_contents(records)}</header>
<main>
{sections}
</main>
</body>
</html>
"""


def save_html(
    explanations: ExplanationRecord | Sequence[ExplanationRecord], path: Path | str, title: str = TITLE
) -> Path:
    """Write the page to a file, whose folder is made where it is missing."""
    page = to_html(explanations, title)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def embedded_html(explanations: ExplanationRecord | Sequence[ExplanationRecord], title: str = TITLE) -> str:
    """The page in a frame, for notebooks: its style sheet and theirs do not mix, and nothing in it can run."""
    page = escape(to_html(explanations, title))
    size = "width:100%;height:40rem;border:0;resize:vertical"
    return f'<iframe sandbox srcdoc="{page}" title="{escape(title)}" style="{size}"></iframe>'


def _contents(records: Sequence[ExplanationRecord]) -> str:
    if len(records) == 1:
        return ""
    items = "".join(
        f'<li><a href="#e{number}">{isolate(" / ".join(record.texts))}</a>: {decision(record, isolate)}</li>'
        for number, record in enumerate(records, 1)
    )
    summary = f"<summary>{len(records)} explanations</summary>"
    return f'<nav aria-label="contents"><details>{summary}<ol>{items}</ol></details></nav>\n'


def _section(record: ExplanationRecord, number: int) -> str:
    return f"""<section aria-labelledby="e{number}">
<h2 id="e{number}">{number}. {decision(record, isolate)}</h2>
{word_lines(record)}
<h3>Classes</h3>
{_classes(record)}
<h3>Pairs of words</h3>
{_pairs(record)}
<details open><summary>Every word in numbers</summary>
{_numbers(record)}
</details>
{_map(record)}
<h3>How this was computed</h3>
{_method(record)}
</section>"""


def _classes(record: ExplanationRecord) -> str:
    rows = "".join(
        f'<tr><th scope="row" class="name">{isolate(name)}</th><td>{probability:.1%}</td>'
        f'<td><meter min="0" max="1" value="{probability:.4f}">{probability:.1%}</meter></td></tr>'
        for name, probability in record.probabilities.items()
    )
    head = '<tr><th scope="col" class="name">class</th><th scope="col" colspan="2">probability</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _pairs(record: ExplanationRecord) -> str:
    """The strongest pairs as arcs, and as a list."""
    drawn = strongest_pairs(record, MAX_ARCS)
    caption = capitalize(describe_pairs(record, drawn))
    if not record.pairs:
        return f'<p class="soft">{caption}.</p>'
    words = [isolate(word.text) for word in record.words]
    items = "".join(
        f"<li><b>{words[pair.first]}</b> – <b>{words[pair.second]}</b> &nbsp; {format_signed(pair.interaction, 4)} ± "
        f"{format_number(pair.stderr, 4)}, {'synergy' if pair.interaction > 0 else 'antagonism'}</li>"
        for pair in strongest_pairs(record, MAX_LISTED_PAIRS)
    )
    return f"""<figure>{scrollable("arcs between words", arcs_svg(record, MAX_ARCS))}
<figcaption>{caption}: solid arcs for synergy, dashed for antagonism.
</figcaption></figure>
{f"<ol>{items}</ol>" if items else ""}"""


def _numbers(record: ExplanationRecord) -> str:
    """All numbers of every word; a column that no word has a number for is left out."""
    names = side_names(record)
    columns: list[tuple[str, list[float | None], bool, int]] = []  # name, numbers, signed, digits
    if score_name(record) == "importance":
        columns.append(("importance", [word.importance for word in record.words], True, 4))
        columns.append(("±", [word.importance_stderr for word in record.words], False, 4))
    columns += [
        ("Shapley", [word.shapley for word in record.words], True, 4),
        ("±", [word.shapley_stderr for word in record.words], False, 4),
        ("Banzhaf", [word.banzhaf for word in record.words], True, 4),
        ("±", [word.banzhaf_stderr for word in record.words], False, 4),
        ("field", [word.field for word in record.words], False, 3),
        ("gate", [word.gate for word in record.words], False, 3),
        ("attention", [word.attention for word in record.words], False, 3),
    ]
    columns = [column for column in columns if any(number is not None for number in column[1])]
    rows = []
    for index, word in enumerate(record.words):
        cells = "".join(
            f"<td>{(format_signed if signed else format_number)(numbers[index], digits)}</td>"
            for _, numbers, signed, digits in columns
        )
        first = f'<td>{index + 1}</td><th scope="row" class="name">{isolate(word.text)}</th>'
        rows.append(f"<tr>{first}<td>{names[word.side]}</td>{cells}</tr>")
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("text", *(column[0] for column in columns)))
    first = '<th scope="col">#</th><th scope="col" class="name">word</th>'
    table = f"<table><thead><tr>{first}{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return scrollable("every word in numbers", table)


def _map(record: ExplanationRecord) -> str:
    if not record.pairs:
        return ""
    table = pair_table(pair_map(record, MAX_MAP_WORDS))
    return f"<details><summary>Map of pairs</summary>\n{table}\n</details>"


def _method(record: ExplanationRecord) -> str:
    passes = "one pass" if record.passes == 1 else f"{record.passes:,} passes"
    samples = f", {record.samples:,} coalitions for the words' values" if record.samples else ""
    sentences = [f"Method {isolate(record.method)}: {passes} of the classifier{samples}."]
    if record.base_value is not None:
        sentences.append(f"Probability with no word at all: {format_number(record.base_value)}.")
    if record.ess is not None:
        sentences.append(f"Effective sample size of the Ising model's estimates: {format_number(record.ess, 1)}.")
    if record.converged is not None:
        reached = "was reached" if record.converged else "was NOT reached: attention is not to be relied on"
        sentences.append(f"Its mean field {reached}.")
    return f"<p>{' '.join(sentences)}</p>"
