"""A set of explanations as one HTML page that needs nothing else: what the classifier relies on, class by class."""

from pathlib import Path

from spinformer._base.files import atomic_text
from spinformer.explain.render.characters import shorten
from spinformer.explain.render.layout import decision, noun, pair_name, score_name
from spinformer.explain.render.markup import (
    colored_words,
    format_number,
    format_signed,
    isolate,
    scale_line,
    scrollable,
    shade_class,
)
from spinformer.explain.render.means import mean_table, pair_row, size_row, word_name, word_row
from spinformer.explain.render.page import embedded_page, html_page
from spinformer.explain.render.scale import Scales, scales_of
from spinformer.explain.render.selection import shown_pairs, shown_words
from spinformer.explain.summary import GroupSummary, Overview, UnusualText, WordSummary

TITLE = "What the classifier relies on"
# Shown at most: words over all texts, words of a class, its pairs, unusual texts, their words, columns of cohorts.
MAX_ALL, MAX_WORDS, MAX_PAIRS, MAX_UNUSUAL, MAX_DEVIATIONS, MAX_COHORTS = 15, 14, 8, 8, 4, 8
MAX_NAME = 60
LEGEND = """<span class="w p6">Blue</span> speaks for the class that is explained,
<span class="w n6 against">orange</span> against it. ± is one standard error of a mean over texts: how far the mean may
be from that over all such texts; fewer than three texts are too few to tell. Solid lines are 95% intervals, which draw
on what other words vary by."""
MISFIT = """ Values come from a game that predicts the classifier: "game ±" is how far it may be off in a text, and
dashed lines are the intervals if it errs alike in all of them."""


def overview_page(overview: Overview, title: str = TITLE, path: Path | str | None = None) -> str:
    """The page; path: where to save it as well."""
    scales = scales_of(overview.example)
    sections = [_whole(overview), *(_class(overview, number, scales) for number in range(len(overview.classes)))]
    sections += [_cohorts(overview, scales), _unusual(overview), _method(overview)]
    page = html_page(title, _header(overview), "\n".join(section for section in sections if section))
    if path is not None:
        atomic_text(Path(path), page)
    return page


def embedded(page: str) -> str:
    """The page in a frame, for notebooks."""
    return embedded_page(page, TITLE)


def _header(overview: Overview) -> str:
    whole, example = overview.whole, overview.example
    things = "pairs of texts" if _paired(overview) else "texts"
    passes = f"{overview.passes:,.0f}" if overview.passes >= 1 else "0"
    facts = [
        (f"{whole.count:,}", things),
        (f"{len(overview.classes)}", "score explained" if example.outputs == "scores" else "classes explained"),
        (f"{len(whole.words):,}", f"different {noun(example)}"),
        (passes, "pass for each" if passes == "1" else "passes for each"),
    ]
    items = "".join(f"<li><b>{number}</b>{name}</li>" for number, name in facts)
    links = [f'<li><a href="#c{n}">{isolate(one.name)}</a></li>' for n, one in enumerate(overview.classes)]
    links += ['<li><a href="#cohorts">Cohorts</a></li>'] if overview.cohorts else []
    links += ['<li><a href="#unusual">Unusual texts</a></li>'] if overview.unusual else []
    misfit = MISFIT if any(word.misfit_stderr is not None for word in whole.words) else ""
    notes = "".join(
        f"<p><strong>Note</strong> ({count:,} of {whole.count:,} texts): {isolate(note)}</p>"
        for note, count in list(overview.notes.items())[:5]
    )
    box = f'<div class="note" role="note">{notes}</div>\n' if notes else ""
    contents = f'<nav aria-label="contents"><ul class="links">{"".join(links)}</ul></nav>\n'
    return f'<ul class="facts">{items}</ul>\n<p class="soft">{LEGEND}{misfit}</p>\n{box}{contents}'


def _whole(overview: Overview) -> str:
    whole, example, paired = overview.whole, overview.example, _paired(overview)
    kind = "score" if example.outputs == "scores" else "probability"
    rows = "".join(
        f'<tr><th scope="row" class="name"><a href="#c{number}">{isolate(one.name)}</a></th><td>{one.count:,}</td>'
        f"<td>{format_number(one.base_value)}</td><td>{format_number(one.value)}</td></tr>"
        for number, one in enumerate(overview.classes)
    )
    columns = ("texts", f"mean {kind}, no {noun(example)}", f"mean {kind}, all {noun(example)}")
    head = '<th scope="col" class="name">explained for</th>' + "".join(f'<th scope="col">{c}</th>' for c in columns)
    classes = scrollable("classes", f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    caption = (
        f"Size is the mean of |{score_name(example)}| where the word stands, share its part of all that the "
        f"{noun(example)} do. First come those that matter most for sure, by the lower end of their 95% interval."
    )
    shown = whole.words[:MAX_ALL]
    table = mean_table(caption, ("word", "size", "texts", "share"), [size_row(word, paired) for word in shown], None)
    return f"""<section aria-labelledby="all">
<h2 id="all">All texts</h2>
{classes}
<h3>The {noun(example)} that matter most</h3>
{table}
</section>"""


def _class(overview: Overview, number: int, scales: Scales) -> str:
    group, example, paired = overview.classes[number], overview.example, _paired(overview)
    words = shown_words(group, MAX_WORDS)
    misfit = ["game ±"] if any(word.misfit_stderr is not None for word in words) else []
    heads = ("word", f"mean {score_name(example)}", *misfit, "texts", "share")
    texts = f"{group.count:,} text{'s' if group.count > 1 else ''}"
    table = mean_table("", heads, [word_row(word, paired) for word in words], scales.words)
    return f"""<section aria-labelledby="c{number}">
<h2 id="c{number}">{isolate(group.name)} <span class="soft">{texts}</span></h2>
<h3>What speaks for it, and what against</h3>
{table}
{_pairs(overview, group, scales)}
</section>"""


def _pairs(overview: Overview, group: GroupSummary, scales: Scales) -> str:
    pairs = shown_pairs(group, MAX_PAIRS)
    if not pairs:
        return ""
    misfit = ["game ±"] if any(pair.misfit_stderr is not None for pair in pairs) else []
    heads = ("pair", f"mean {pair_name(overview.example)}", *misfit, "texts", "")
    caption = "Two words in synergy say more together than each alone; in antagonism one takes from the other."
    if overview.partial_pairs:
        caption += " Texts hold their strongest pairs only: means are over the texts that list the pair."
    rows = [pair_row(pair, _paired(overview)) for pair in pairs]
    return f"<h3>Pairs of {noun(overview.example)}</h3>\n{mean_table(caption, heads, rows, scales.pairs)}"


def _cohorts(overview: Overview, scales: Scales) -> str:
    """The cohorts, and the mean of every important word in each."""
    if not overview.cohorts:
        return ""
    groups = sorted(overview.cohorts, key=lambda group: -group.count)[:MAX_COHORTS]
    words = shown_words(overview.whole, MAX_WORDS)
    tables = [{(word.text, word.side): word for word in group.words} for group in groups]
    heads = "".join(f'<th scope="col">{isolate(shorten(one.name, 24))}</th>' for one in groups)
    rows = "".join(
        f'<tr><th scope="row" class="name">{word_name(word.text, word.side, _paired(overview))}</th>'
        f"{''.join(_cell(table.get((word.text, word.side)), scales) for table in tables)}</tr>"
        for word in words
    )
    left = len(overview.cohorts) - len(groups)
    more = f" The {len(groups)} largest of {len(overview.cohorts)} cohorts are shown." if left else ""
    caption = f"Mean {score_name(overview.example)} in each cohort; standard error and texts on hover.{more}"
    table = f'<table class="means"><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    decided = "".join(
        f'<tr><th scope="row" class="name">{isolate(one.name)}</th><td>{one.count:,}</td>'
        f'<td class="wide">{_labels(one)}</td></tr>'
        for one in groups
    )
    head = '<th scope="col" class="name">cohort</th><th scope="col">texts</th><th scope="col" class="wide">decided</th>'
    return f"""<section aria-labelledby="cohorts">
<h2 id="cohorts">Cohorts</h2>
{scrollable("cohorts", f"<table><thead><tr>{head}</tr></thead><tbody>{decided}</tbody></table>")}
<h3>The same {noun(overview.example)} in each cohort</h3>
<p class="soft">{caption}</p>
{scrollable("words by cohort", table)}
</section>"""


def _cell(word: WordSummary | None, scales: Scales) -> str:
    if word is None:
        return "<td>–</td>"
    shade = shade_class(scales.words.part(word.mean))
    error = "" if word.stderr is None else f"± {format_number(word.stderr)}, "
    return f'<td class="shade {shade}" title="{error}{word.count:,} texts">{format_signed(word.mean)}</td>'


def _labels(group: GroupSummary) -> str:
    return ", ".join(f"{isolate(name)} {count / group.count:.0%}" for name, count in list(group.labels.items())[:4])


def _unusual(overview: Overview) -> str:
    if not overview.unusual:
        return ""
    shown = overview.unusual[:MAX_UNUSUAL]
    items = "\n".join(_text(text, _paired(overview)) for text in shown)
    return f"""<section aria-labelledby="unusual">
<h2 id="unusual">Texts with other reasons than usual</h2>
<p class="soft">In these texts {noun(overview.example)} do what they seldom do in texts of the same class. The distance
is about 1 in a usual text; the {len(shown)} largest of {len(overview.unusual):,} are shown.</p>
{scale_line(scales_of(overview.example).words, score_name(overview.example))}
{items}
</section>"""


def _text(text: UnusualText, paired: bool) -> str:
    record = text.record
    rows = [
        f"<li><b>{word_name(one.text, one.side, paired)}</b>: {format_signed(one.value)} here, "
        f"{_usual(one.usual, one.count)}</li>"
        for one in text.deviations[:MAX_DEVIATIONS]
    ]
    return f"""<h3>No. {text.index + 1}: {decision(record, _short)}, distance {text.distance:.1f}</h3>
{colored_words(record, scales_of(record).words)}
<ul class="means">{"".join(rows)}</ul>"""


def _usual(usual: float, count: int) -> str:
    if not count:
        return f"{format_signed(usual)} expected of a word that no other text of the class has"
    return f"{format_signed(usual)} expected from {count:,} other text{'s' if count > 1 else ''} of the class"


def _short(name: str) -> str:
    return isolate(shorten(name, MAX_NAME))


def _method(overview: Overview) -> str:
    methods = ", ".join(f"{isolate(name)} ({count:,})" for name, count in overview.methods.items())
    return f"""<section aria-labelledby="method">
<h2 id="method">How this was computed</h2>
<p>Method: {methods}; {overview.passes:,.1f} passes of the classifier for each text on average.
A word that a text has several times counts once, with the sum of its values. Explanations that share their first text
are not independent, and standard errors allow for it. The usual value of a word is its mean in the other texts of the
class, drawn towards the mean of all words the fewer they are; the distance is the root of the mean of the squared
differences, each in units of what such words vary by.</p>
</section>"""


def _paired(overview: Overview) -> bool:
    return len(overview.example.texts) == 2
