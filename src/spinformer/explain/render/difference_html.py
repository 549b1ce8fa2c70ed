"""Two models on the same texts as one HTML page: what they weigh differently, and where they decide differently."""

from collections.abc import Sequence
from pathlib import Path

from spinformer._base.files import atomic_text
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.characters import shorten
from spinformer.explain.render.layout import decision, pair_name, score_name
from spinformer.explain.render.markup import colored_words, isolate, scale_line
from spinformer.explain.render.means import difference_row, mean_table
from spinformer.explain.render.page import html_page
from spinformer.explain.render.scale import Scale, scales_of
from spinformer.explain.summary import DifferenceSummary, Disagreement, PairDifference, WordDifference

TITLE = "Where two models differ"
MAX_WORDS, MAX_PAIRS, MAX_TEXTS = 20, 12, 10
SMALLEST = 0.0005  # smaller differences would be shown as 0


def difference_page(
    difference: DifferenceSummary, example: ExplanationRecord, title: str = TITLE, path: Path | str | None = None
) -> str:
    """The page; example: one of the explanations, for the names of what is shown; path: where to save it as well."""
    page = html_page(title, _header(difference), "\n".join([_weights(difference, example), _texts(difference)]))
    if path is not None:
        atomic_text(Path(path), page)
    return page


def _header(difference: DifferenceSummary) -> str:
    one, other = map(isolate, difference.names)
    apart = len(difference.disagreements)
    facts = [
        (f"{difference.count:,}", "texts in both"),
        (f"{apart:,}", f"decided differently, {apart / difference.count:.1%}"),
        (f"{difference.compared:,}", "explained for the same class"),
    ]
    items = "".join(f"<li><b>{number}</b>{name}</li>" for number, name in facts)
    return f"""<ul class="facts">{items}</ul>
<p class="soft"><span class="w p6">Blue</span> is more for {one}, <span class="w n6 against">orange</span> more for
{other}. ± is one standard error of the mean difference over texts; solid lines are 95% intervals, dashed ones those if
the games, which predict the classifiers, err alike in all texts.</p>
"""


def _weights(difference: DifferenceSummary, example: ExplanationRecord) -> str:
    one, other = (isolate(shorten(name, 24)) for name in difference.names)
    paired, scales = len(example.texts) == 2, scales_of(example)
    parts = []
    columns: list[tuple[str, str, Sequence[WordDifference | PairDifference], Scale]] = [
        ("Words", score_name(example), difference.words[:MAX_WORDS], scales.words),
        ("Pairs", pair_name(example), difference.pairs[:MAX_PAIRS], scales.pairs),
    ]
    for title, name, found, scale in columns:
        found = [each for each in found if abs(each.mean) >= SMALLEST]
        if not found:
            continue
        misfit = ["game ±"] if any(each.misfit_stderr is not None for each in found) else []
        heads = (title.lower()[:-1], f"mean difference of {name}", *misfit, one, other, "texts")
        rows = [difference_row(each, paired) for each in sorted(found, key=lambda each: -each.mean)]
        parts.append(f"<h3>{title}</h3>\n{mean_table('', heads, rows, scale)}")
    if not parts:
        reason = "No difference is larger than rounding."
        if not difference.compared:
            reason = "No text is explained for the same class in both; explain both with one target."
        parts = [f'<p class="soft">{reason}</p>']
    return (
        f'<section aria-labelledby="weights">\n<h2 id="weights">Weighed differently</h2>\n{"".join(parts)}\n</section>'
    )


def _texts(difference: DifferenceSummary) -> str:
    shown = difference.disagreements[:MAX_TEXTS]
    if not shown:
        return ""
    items = "\n".join(_text(text, difference.names) for text in shown)
    example = shown[0].first
    scale = scale_line(scales_of(example).words, score_name(example))
    most = f'<p class="soft">The {len(shown)} of {len(difference.disagreements):,} where they are farthest apart.</p>'
    return f"""<section aria-labelledby="decided">
<h2 id="decided">Decided differently</h2>
{most}
{scale}
{items}
</section>"""


def _text(text: Disagreement, names: tuple[str, str]) -> str:
    parts = [
        f'<p class="base"><b>{isolate(name)}</b>: {decision(record, isolate)}</p>\n'
        f"{colored_words(record, scales_of(record).words)}"
        for name, record in zip(names, (text.first, text.second), strict=True)
    ]
    return f"<h3>No. {text.index + 1}</h3>\n" + "\n".join(parts)
