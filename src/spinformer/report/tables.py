"""Markdown tables, each a function of the record of one result, or of several."""

from collections.abc import Callable

from spinformer.report import attractor, grounding, negation, nli
from spinformer.report.markdown import Record, markdown


def example(record: Record) -> str:
    """The worked example: the equations beside the paper."""
    verdict = {True: "yes", False: "**no**", None: ""}
    rows = [
        [
            row["name"],
            ", ".join(f"{number:.4f}" for number in row["computed"]),
            ", ".join(row["printed"] or []),
            verdict[row["agrees"]],
        ]
        for row in record["outcome"]["rows"]
    ]
    return markdown(["figure", "from the equations", "printed in the paper", "agrees"], rows)


def coverage(record: Record) -> str:
    """Coverage by weighting, proposal and estimator: the range over the four indices, by effective sample size."""
    groups: dict[str, list[Record]] = {}
    for row in record["outcome"]["rows"]:
        name = f"{row['weighting']}, {row['proposal']} proposal, {row['estimator']}"
        groups.setdefault(name, []).append(row)

    def cell(rows: list[Record], band: str) -> str:
        found = [row[band]["coverage"] for row in rows if row[band]["estimates"]]
        if not found:
            return ""
        count = sum(row[band]["estimates"] for row in rows)
        return f"{min(found):.1%} to {max(found):.1%} ({count:,})"

    rows = [
        [name, *(cell(group, band) for band in ("judged", "trusted", "distrusted"))] for name, group in groups.items()
    ]
    least, trusted = record["config"]["LEAST_ESS"], record["outcome"]["min_ess"]
    header = ["weighting, proposal, estimator", f"ESS ≥ {least:g}", f"{trusted:g} to {least:g}", f"below {trusted:g}"]
    return markdown(header, rows)


def ess(record: Record) -> str:
    """Effective sample size on encoder outputs."""
    rows = [
        [row["index"], row["budget"], row["proposal"], f"{row['mean']:.3f}", f"{row['lowest']:.3f}"]
        for row in record["outcome"]["rows"]
    ]
    return markdown(["index", "K", "proposal", "mean, as a part of K", "lowest sentence pair"], rows)


def efficiency(record: Record) -> str:
    """Error of our best estimator against the paper's with ten times the samples."""
    rows = [
        [
            f"{row['index']}, {row['target']} target",
            f"{row['size']:.4g}",
            f"{row['ours']:.2g}",
            f"{row['paper']:.2g}",
            f"{row['paper_gibbs']:.2g}",
        ]
        for row in record["outcome"]["rows"]
    ]
    ours, paper = record["outcome"]["ours_budget"], record["outcome"]["paper_budget"]
    header = ["", "size of the value", f"ours, K = {ours}", f"paper, K = {paper}", "the same, Gibbs weights"]
    return markdown(header, rows)


def presets(record: Record) -> str:
    """One choice at a time from the paper's preset to the default."""
    rows = [
        [
            row["name"],
            f"{row['converged']:.1%}",
            f"{row['steps']:.1f}",
            f"{row['ess']:.3f}",
            f"{row['spread']:.3f}",
            f"{row['noise']:.4f}",
        ]
        for row in record["outcome"]["rows"].values()
    ]
    return markdown(["layer", "converged", "steps", "ESS / K", "spread of attention", "Monte-Carlo noise of it"], rows)


def crossover(record: Record) -> str:
    """Dense against linear couplings by the number of tokens."""
    rows = [
        [
            row["tokens"],
            f"{1e3 * row['dense_seconds']:.0f} ms",
            f"{1e3 * row['linear_seconds']:.0f} ms",
            f"{row['interactions']:.2%}",
            f"{row['attention']:.4f}",
        ]
        for row in record["outcome"]["rows"]
    ]
    header = ["tokens", "dense", "linear", "interactions differ by", "attention differs by at most"]
    return markdown(header, rows)


def linear(record: Record) -> str:
    """Growth of time and memory from 8,192 to 65,536 tokens."""
    rows = [
        [
            name,
            *(f"{1e3 * seconds:.0f} ms" for seconds in growth["seconds"]),
            f"{growth['time']:.1f}",
            *(f"{size / 2**20:.0f} MiB" for size in growth["bytes"]),
            f"{growth['memory']:.1f}",
        ]
        for name, growth in record["outcome"]["growth"].items()
    ]
    short, long = record["config"]["SHORT"], record["config"]["LONG"]
    sizes = [f"{short:,} tokens", f"{long:,} tokens", "ratio"]
    return markdown(["pass", *sizes, *sizes], rows)


def distance(record: Record) -> str:
    """Linear against dense form at 512 tokens."""
    rows = [
        [name, f"{row['attention']:.4f}", f"{row['couplings']:.2%}", f"{row['interactions']:.2%}"]
        for name, row in record["outcome"]["differences"].items()
    ]
    return markdown(["512 tokens of", "attention, at most", "couplings, in norm", "interactions, in norm"], rows)


# name of the table in a document -> (name of the result, or of several, with +; how to draw it)
TABLES: dict[str, tuple[str, Callable[..., str]]] = {
    "example": ("example", example),
    "coverage": ("coverage", coverage),
    "ess": ("ess", ess),
    "efficiency": ("efficiency", efficiency),
    "presets": ("presets", presets),
    "crossover": ("crossover", crossover),
    "linear": ("linear", linear),
    "distance": ("linear", distance),
    "nli-classifiers": ("nli-heads+nli-apart+nli-distil+nli-taught+nli-teacher+nli-base", nli.classifiers),
    "nli-difference": ("nli-heads", nli.difference),
    "nli-search": ("nli-tune", nli.search),
    "nli-table-5": ("nli-heads", nli.table_5),
    "nli-apart-difference": ("nli-apart", nli.paired),
    "grounding-forms": ("grounding-forms", grounding.forms),
    "grounding-frozen": ("grounding-frozen", grounding.methods),
    "grounding-frozen-fit": ("grounding-frozen", grounding.fit),
    "grounding-ess": ("grounding-ess", grounding.ess),
    "grounding-ess-together": ("grounding-together", grounding.ess),
    "grounding-methods": ("grounding-methods", grounding.methods),
    "grounding-highlights": ("grounding-methods", grounding.highlights),
    "grounding-pooling": ("grounding-pooling", grounding.methods),
    "grounding-pooling-highlights": ("grounding-pooling", grounding.highlights),
    "grounding-together": ("grounding-together", grounding.methods),
    "grounding-together-fit": ("grounding-together", grounding.fit),
    "grounding-together-half": ("grounding-together-half", grounding.methods),
    "grounding-together-half-fit": ("grounding-together-half", grounding.fit),
    "grounding-frozen-taught": ("grounding-frozen-taught", grounding.methods),
    "grounding-frozen-taught-fit": ("grounding-frozen-taught", grounding.fit),
    "grounding-methods-taught": ("grounding-methods-taught", grounding.methods),
    "grounding-single": ("grounding-single", grounding.methods),
    "grounding-single-fit": ("grounding-single", grounding.fit),
    "negation": ("negation", negation.signs),
    "negation-classes": ("negation", negation.classes),
    "negation-agreement": ("negation", negation.agreement),
    "explain-cost": ("explain", negation.cost),
    "attractor-claims": ("attractor", attractor.claims),
    "attractor-errors": ("attractor", attractor.errors),
    "attractor-use": ("attractor-use", attractor.use),
    "attractor-knobs": ("attractor-use", attractor.knobs),
    "attractor-trivial": ("attractor-use", attractor.trivial),
    "attractor-sweep": ("attractor-sweep", attractor.sweep),
    "attractor-speed-gpu": ("attractor-speed-gpu", attractor.speed),
    "attractor-speed-cpu": ("attractor-speed-cpu", attractor.speed),
}
