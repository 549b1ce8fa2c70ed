"""docs/reproduction.md: the summary, every entry of both papers, their contradictions, and the results behind it."""

import importlib.util
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from research.paths import ROOT
from research.reports.markdown import Record, markdown
from research.reports.nli import CORPORA
from research.reports.reproduction import attractor, neurogame_estimation, neurogame_experiments, neurogame_model
from research.reports.reproduction.contradiction import Contradiction
from research.reports.reproduction.contradictions_attractor import CONTRADICTIONS as OF_ATTRACTOR
from research.reports.reproduction.contradictions_neurogame import CONTRADICTIONS as OF_NEUROGAME
from research.reports.reproduction.entry import Entry, Finding, Results, Section, Verdict
from research.reports.reproduction.judges.classifiers import encoder_name
from research.reports.results import commit_of
from research.steps import BY_NAME, STEPS

PAPERS: dict[str, tuple[Section, ...]] = {
    "The NeuroGame Transformer": (
        *neurogame_model.SECTIONS, *neurogame_estimation.SECTIONS, *neurogame_experiments.SECTIONS,
    ),
    "The attractor network": attractor.SECTIONS,
}  # fmt: skip
CONTRADICTIONS = {"The NeuroGame Transformer": OF_NEUROGAME, "The attractor network": OF_ATTRACTOR}
RENDER = "spinformer reproduce all --from-results"
OPENING = """# Do the papers hold?

After this page you know, for each claim, equation, table and figure of both papers, what we ran and what came out, and
whether it holds where it could be tested. [Below](#where-the-papers-contradict-themselves) is every place that we
found where a paper contradicts itself or its authors' code, and what we chose.

```console
spinformer reproduce all --from-results   # write this page and all other documents again, from research/results
spinformer reproduce all --list           # every result, its command, and whether it is there
```

This page is generated. Verdicts are computed from `research/results/`, or from numbers that the papers print, by the
criterion of the row. Where a claim cannot be tested, that is our judgement.

NGT is Bouchaffra et al., "NeuroGame Transformer: Gibbs-Inspired Attention Driven by Game Theory and Statistical
Physics". ATT is D'Amico and Negri, "Self-attention as an attractor network: transient memories without
backpropagation". "Encoder outputs" are hidden states of all-MiniLM-L6-v2 on 64 pairs of SNLI (`research/data`), each
token standardised, before any training of the layer; where all coalitions are enumerated, those of at most 14 tokens.
"""
LEGEND = """How a verdict is reached:

- **holds**: what came out meets the criterion of the row. An equation holds if the library gives what a plain
  recomputation of it gives, to 1e-9.
- **holds with conditions**: it meets a part of the criterion, or meets it in one setting of several; the row says
  which.
- **does not hold**: it does not meet the criterion.
- **cannot be tested here**: the row says what is missing.
- **not run yet**: the result is not there, or lacks what the row needs. The row fills in when the command was run.

A claim about the bare layer of the attractor paper must be true in two readings of its constant norm
([which norm](#contradiction-att-held)), with couplings at the minimum of their energy. A third reading, the norm of all
couplings together, as in the notebook, was not trained.
"""


def entries() -> list[Entry]:
    """Those of both papers, in order."""
    return [entry for sections in PAPERS.values() for section in sections for entry in section.entries]


def page(folder: Path) -> str:
    """The whole document, from the results in `folder`."""
    results = Results(folder)
    found = {entry.anchor: entry.find(results) for entry in entries()}
    parts = [OPENING, "## In short\n", summary(found), LEGEND, recipe_note(results)]
    parts += [headlines(paper, found) for paper in PAPERS]
    for paper, sections in PAPERS.items():
        parts.append(f"## {paper}\n")
        for section in sections:
            rows = [row(entry, found[entry.anchor]) for entry in section.entries]
            table = markdown(["where", "claim", "what came out", "verdict", "run, code, test"], rows, text_columns=5)
            parts += [f"### {section.title}\n", table + "\n"]
    parts.append("## Where the papers contradict themselves\n")
    for paper, contradictions in CONTRADICTIONS.items():
        parts += [f"### {paper}: paper and code\n", contradiction_table(contradictions) + "\n"]
    parts += ["## Results\n", RESULTS_TEXT, result_table(results)]
    return "\n".join(parts) + "\n"


def summary(found: dict[str, Finding]) -> str:
    """How many entries of each paper have each verdict."""
    counts = {
        paper: Counter(found[entry.anchor].verdict for section in sections for entry in section.entries)
        for paper, sections in PAPERS.items()
    }
    rows: list[list[object]] = [[verdict, *(count[verdict] for count in counts.values())] for verdict in Verdict]
    rows.append(["all", *(sum(count.values()) for count in counts.values())])
    return markdown(["verdict", *PAPERS], rows) + "\n"


def recipe_note(results: Results) -> str:
    """How the rows of `--stage paper` were trained, and how the paper trains; empty where that was not run."""
    record = results.get("nli-paper")
    runs = [run for run in record["outcome"]["runs"] if run["job"] == "paper"] if record else []
    if not runs:
        return ""
    pairs, batch = runs[0]["pairs"], runs[0]["recipe"]["batch_size"]
    return (
        f"Rows of `--stage paper` have the NeuroGame paper's recipe on {encoder_name(runs[0])}, with batch {batch} and "
        f"{pairs:,} pairs\n({pairs / CORPORA:.0%} of both corpora), {len(runs)} seeds, unless they name another "
        "encoder.\nThe paper has BERT-base, batch 32 and all pairs ([differences](nli.md#the-recipe-of-the-paper)).\n"
    )


def headlines(paper: str, found: dict[str, Finding]) -> str:
    """The most important entries of a paper, a line each."""
    lines, waiting = [], []
    for entry in (entry for section in PAPERS[paper] for entry in section.entries if entry.headline):
        link, finding = f"[{entry.claim.rstrip('.')}](#{entry.anchor})", found[entry.anchor]
        if finding.verdict is Verdict.PENDING:
            waiting.append(link)
        else:
            lines.append(f"- {link}: **{finding.verdict}.** {finding.text}")
    if waiting:
        lines.append(f"- Not run yet: {'; '.join(waiting)}.")
    return f"**{paper}**, what matters most:\n\n" + "\n".join(lines) + "\n"


def row(entry: Entry, finding: Finding) -> list[str]:
    """The cells of an entry."""
    claim = entry.claim + (f" *Holds if {entry.criterion}.*" if entry.criterion else "")
    links = [*map(run_link, entry.results), *map(code_link, entry.code), *map(test_link, entry.tests)]
    if not entry.results:
        links.insert(0, f"`{RENDER}`")
    where = f'<a id="{entry.anchor}"></a>{entry.where}'
    return [*map(cell, (where, claim, finding.text)), f"**{finding.verdict}**", cell(", ".join(links))]


def cell(text: str) -> str:
    """Text for a cell of a table, in which a bar would end it."""
    return text.replace("|", "\\|")


def run_link(name: str) -> str:
    """The command that makes a result, linked to the table of results."""
    return f"[`{BY_NAME[name].short}`](#result-{name})"


def code_file(code: str) -> Path:
    """The file of `module:symbol`, of a module, or the file itself."""
    if "/" in code:
        return ROOT / code
    spec = importlib.util.find_spec(code.partition(":")[0])
    if spec is None or spec.origin is None:
        raise ValueError(f"there is no module {code}")
    return Path(spec.origin)


def code_link(code: str) -> str:
    """A link to the code, under the name of its symbol or file."""
    path = code_file(code).resolve().relative_to(ROOT)
    name = code.partition(":")[2] or (path.parent.name if path.name == "__init__.py" else path.name)
    return f"[`{name}`](../{path})"


def test_link(test: str) -> str:
    """A link to the file of a test, under the name of the test."""
    path, _, name = test.partition("::")
    return f"[{name.rpartition('::')[2] or Path(path).name}](../{path})"


def contradiction_table(rows: Sequence[Contradiction]) -> str:
    """One row for each."""
    lines = [
        [cell(text) for text in (
            f'<a id="{one.anchor}"></a>{one.subject}', one.here, one.there, one.code or "not known to us", one.chosen,
            one.other(),
        )]
        for one in rows
    ]  # fmt: skip
    header = ["about", "the paper says", "and also", "the authors' code", "we chose", "the other reading"]
    return markdown(header, lines, text_columns=6)


RESULTS_TEXT = """A command writes the result of its row again. The file says with which command, options, data and
versions it was made; older ones were made with earlier code, and may come from several calls. "-dirty": the code had
changes that were not committed. "came with": the machine knew no commit; this one brought the result. CORPORA is a
folder of the files that `spinformer reproduce nli --help` lists, FOLDER that of an encoder, FILE one of GloVe vectors,
MNIST one of images. `spinformer reproduce all` runs everything whose result is not there.
"""


def _hardware(record: Record) -> str:
    """Where it was measured; of joined results, where the first was."""
    hardware = record["outcome"].get("sources", [record])[0]["hardware"]
    return hardware["gpu"] or f"{hardware['cores']} CPU cores"


def result_table(results: Results) -> str:
    """Every result: its command, commit, date and hardware; those that no entry needs too."""
    lines = []
    for step in STEPS:
        record = results.get(step.name)
        if record is None and step.extra:
            continue
        name = f'<a id="result-{step.name}"></a>'
        name += f"[{step.name}](../research/results/{step.name}.json)" if record else step.name
        command = f"`spinformer {shlex.join(step.command({}))}`" if step.words else step.removed
        made = ["not run yet", "", ""]
        if record is not None:
            made = [commit_of(record), record["written"][:10], _hardware(record)]
        lines.append([cell(text) for text in (name, command, *made)])
    return markdown(["result", "command", "commit", "written", "on"], lines, text_columns=5)
