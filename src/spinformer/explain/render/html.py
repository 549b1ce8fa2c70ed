"""Explanations as one HTML page that needs nothing else: no network, no script, no font, no extra."""

from collections.abc import Sequence
from pathlib import Path

from spinformer._base.files import atomic_text
from spinformer.explain.record import ExplanationRecord, Pair
from spinformer.explain.render.characters import capitalize
from spinformer.explain.render.columns import Column, Numbers, word_columns
from spinformer.explain.render.layout import (
    ADDITIVE,
    answer,
    decision,
    describe_pairs,
    explained_class,
    noun,
    pair_map,
    side_names,
    strongest_pairs,
)
from spinformer.explain.render.markup import (
    arcs_caption,
    base_paragraph,
    error_parts,
    format_number,
    format_signed,
    isolate,
    note_box,
    pair_table,
    scrollable,
    word_lines,
)
from spinformer.explain.render.page import embedded_page, html_page
from spinformer.explain.render.scale import Scales, shared_scales
from spinformer.explain.render.svg import arcs_svg

TITLE = "Which words decided"
# Of each explanation: arcs drawn, pairs listed, words in the map of pairs.
MAX_ARCS, MAX_LISTED_PAIRS, MAX_MAP_WORDS = 12, 8, 24
MAX_LABELS = 12
# What the outputs of a model are called.
ANSWERS = {"classes": "Classes", "labels": "Labels", "scores": "Scores"}
SHAPLEY_NOTE = """A Shapley value
is a word's share of the probability: with the probability of no words, all of them sum to that of the whole text. """
MISFIT_NOTE = """ It has two parts,
whose squares add up: the game only predicts the classifier (game ±), and it is sampled (sampling ±)."""


def to_html(explanations: ExplanationRecord | Sequence[ExplanationRecord], title: str = TITLE) -> str:
    """One page with a section for each explanation; the same explanations give the same page."""
    records = [explanations] if isinstance(explanations, ExplanationRecord) else list(explanations)
    if not records:
        raise ValueError("a report needs at least one explanation; got none")
    scales = shared_scales(records)
    sections = "\n".join(_section(record, number, scales[record.method]) for number, record in enumerate(records, 1))
    subject = _explained(records)
    misfit = any(word.misfit_stderr is not None for record in records for word in record.words)
    parts = MISFIT_NOTE if misfit else ""
    note = SHAPLEY_NOTE if any(record.method in ADDITIVE for record in records) else ""
    header = f"""<p class="soft"><span class="w p6">Blue</span> words spoke for {subject},
<span class="w n6 against">orange</span> ones, underlined with dots, against it: the deeper, the more. {note}Two words
in synergy say more together than each alone; in antagonism one takes from the other.
± is one standard error.{parts}</p>
{_contents(records)}"""
    return html_page(title, header, sections)


def save_html(
    explanations: ExplanationRecord | Sequence[ExplanationRecord], path: Path | str, title: str = TITLE
) -> Path:
    """Write the page to a file, whose folder is made where it is missing."""
    page = to_html(explanations, title)
    return atomic_text(Path(path), page)


def embedded_html(explanations: ExplanationRecord | Sequence[ExplanationRecord], title: str = TITLE) -> str:
    """The page in a frame, for notebooks: its style sheet and theirs do not mix, and nothing in it can run."""
    return embedded_page(to_html(explanations, title), title)


def _contents(records: Sequence[ExplanationRecord]) -> str:
    if len(records) == 1:
        return ""
    items = "".join(
        f'<li><a href="#e{number}">{isolate(" / ".join(record.texts))}</a>: {decision(record, isolate)}</li>'
        for number, record in enumerate(records, 1)
    )
    summary = f"<summary>{len(records)} explanations</summary>"
    return f'<nav aria-label="contents"><details>{summary}<ol>{items}</ol></details></nav>\n'


def _section(record: ExplanationRecord, number: int, scales: Scales) -> str:
    return f"""<section aria-labelledby="e{number}">
<h2 id="e{number}">{number}. {decision(record, isolate)}</h2>
{note_box(record)}{base_paragraph(record)}
{word_lines(record, scales.words)}
<h3>{ANSWERS[record.outputs]}</h3>
{_classes(record)}
<h3>Pairs of {noun(record)}</h3>
{_pairs(record, scales)}
<details open><summary>All {noun(record)} in numbers</summary>
{_numbers(record)}
</details>
{_map(record, scales)}
<h3>How this was computed</h3>
{_method(record)}
</section>"""


def _explained(records: Sequence[ExplanationRecord]) -> str:
    """What words spoke for, where all explanations agree in it."""
    subjects = {explained_class(record) for record in records}
    if len(subjects) > 1:
        return "what is explained"
    (subject,) = subjects
    return subject if subject == "the decision" else isolate(subject)


def _classes(record: ExplanationRecord) -> str:
    """The classes; of many labels the MAX_LABELS most probable."""
    shown = sorted(record.probabilities.items(), key=lambda item: -item[1])[:MAX_LABELS]
    if len(record.probabilities) <= MAX_LABELS:
        shown = list(record.probabilities.items())
    if record.outputs == "scores":
        rows = "".join(
            f'<tr><th scope="row" class="name">{isolate(name)}</th><td>{answer(record, name)}</td></tr>'
            for name, _ in shown
        )
        head = '<tr><th scope="col" class="name">output</th><th scope="col">score</th></tr>'
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    rows = "".join(
        f'<tr><th scope="row" class="name">{isolate(name)}</th><td>{probability:.1%}</td>'
        f'<td><meter min="0" max="1" value="{probability:.4f}">{probability:.1%}</meter></td></tr>'
        for name, probability in shown
    )
    head = '<tr><th scope="col" class="name">class</th><th scope="col" colspan="2">probability</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _pairs(record: ExplanationRecord, scales: Scales) -> str:
    """The strongest pairs as arcs, and as a list."""
    drawn = strongest_pairs(record, MAX_ARCS)
    if not record.pairs:
        return f'<p class="soft">{capitalize(describe_pairs(record, drawn))}.</p>'
    items = "".join(_pair(record, pair) for pair in strongest_pairs(record, MAX_LISTED_PAIRS))
    return f"""<figure>{scrollable("arcs between words", arcs_svg(record, MAX_ARCS, scales))}
<figcaption>{arcs_caption(record, drawn, scales.pairs)}</figcaption></figure>
{f"<ol>{items}</ol>" if items else ""}"""


def _pair(record: ExplanationRecord, pair: Pair) -> str:
    """An item of the list of pairs; what its standard error is made of is shown on hover."""
    one, other = (isolate(record.words[position].text) for position in (pair.first, pair.second))
    parts = error_parts(pair.stderr, pair.misfit_stderr)
    title = f' title="{parts}"' if parts else ""
    error = "" if pair.stderr is None else f" ± {pair.stderr:.4f}"
    kind = "synergy" if pair.interaction > 0 else "antagonism"
    value = f"<span{title}>{format_signed(pair.interaction, 4)}{error}</span>"
    return f"<li><b>{one}</b> – <b>{other}</b> &nbsp; {value}, {kind}</li>"


def _numbers(record: ExplanationRecord) -> str:
    """The numbers of every word that tell words apart; folded below, those that are the same for all."""
    names = side_names(record)
    columns, constant = word_columns(record)
    cells: list[tuple[str, list[str]]] = [("text", [names[word.side] for word in record.words])]
    for column in columns:
        cells += _cells(column)
    rows = "".join(
        f'<tr><td>{index + 1}</td><th scope="row" class="name">{isolate(word.text)}</th>'
        f"{''.join(f'<td>{texts[index]}</td>' for _, texts in cells)}</tr>"
        for index, word in enumerate(record.words)
    )
    first = '<th scope="col">#</th><th scope="col" class="name">word</th>'
    heads = "".join(f'<th scope="col">{name}</th>' for name, _ in cells)
    table = f"<table><thead><tr>{first}{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return scrollable("every word in numbers", table) + _constants(constant)


def _cells(column: Column) -> list[tuple[str, list[str]]]:
    """A column as columns of the table: the numbers, their standard errors, and the two parts of these."""

    def texts(numbers: Numbers) -> list[str]:
        return [format_number(number, column.digits) for number in numbers]

    numbers = [format_signed(number, column.digits) for number in column.numbers]
    cells = [(column.name, numbers if column.signed else texts(column.numbers))]
    if column.stderr:
        cells.append(("±", texts(column.stderr)))
    if column.misfit:
        cells += [("game ±", texts(column.misfit)), ("sampling ±", texts(column.sampling))]
    return cells


def _constants(columns: Sequence[Column]) -> str:
    """Numbers that are the same for every word, for those who ask."""
    shown = ", ".join(f"{column.name} {format_number(column.numbers[0], column.digits)}" for column in columns)
    summary = "<summary>Numbers that are the same for every word</summary>"
    return f"\n<details>{summary}<p>{shown}</p></details>" if shown else ""


def _map(record: ExplanationRecord, scales: Scales) -> str:
    if not record.pairs:
        return ""
    table = pair_table(pair_map(record, MAX_MAP_WORDS, scales.pairs))
    return f"<details><summary>Map of pairs</summary>\n{table}\n</details>"


def _method(record: ExplanationRecord) -> str:
    passes = "one pass" if record.passes == 1 else f"{record.passes:,} passes"
    samples = f", {record.samples:,} coalitions for the words' values" if record.samples else ""
    sentences = [f"Method {isolate(record.method)}: {passes} of the classifier{samples}."]
    if record.ess is not None:
        sentences.append(f"Effective sample size of the Ising model's estimates: {format_number(record.ess, 1)}.")
    if record.converged is not None:
        reached = "was reached" if record.converged else "was NOT reached: attention is not to be relied on"
        sentences.append(f"Its mean field {reached}.")
    return f"<p>{' '.join(sentences)}</p>"
