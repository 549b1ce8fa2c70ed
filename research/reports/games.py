"""Tables on games, their estimators and the attention layer (docs/deviations.md, README.md)."""

from research.reports.markdown import Record, markdown


def example(record: Record) -> str:
    """The worked example: what the equations give, beside what the paper prints."""
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
        shares = [row[band]["coverage"] for row in rows if row[band]["estimates"]]
        if not shares:
            return ""
        count = sum(row[band]["estimates"] for row in rows)
        return f"{min(shares):.1%} to {max(shares):.1%} ({count:,})"

    rows = [
        [name, *(cell(group, band) for band in ("judged", "trusted", "distrusted"))] for name, group in groups.items()
    ]
    judged, trusted = record["config"]["LEAST_ESS"], record["outcome"]["min_ess"]
    header = ["weighting, proposal, estimator", f"ESS ≥ {judged:g}", f"{trusted:g} to {judged:g}", f"below {trusted:g}"]
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


def proposals(record: Record) -> str:
    """Time and effective sample size of the tilted proposal against the uniform one."""
    rows = [
        [
            f"{row['games']} of {row['players']}",
            row["budget"],
            row["index"],
            *(f"{1e3 * row[name]['seconds']:.1f} ms" for name in ("uniform", "tilted")),
            f"{row['ratio']:.1f}",
            *(f"{row[name]['ess']:.1f}" for name in ("uniform", "tilted")),
        ]
        for row in record["outcome"]["rows"]
    ]
    return markdown(
        ["games of players", "K", "index", "uniform", "tilted", "ratio", "ESS, uniform", "ESS, tilted"], rows
    )


def long_errors(record: Record) -> str:
    """Relative errors of Shapley values and interactions of many words, and the seconds they took, by each way."""
    lines = []
    for row in record["outcome"]["errors"]:
        ways = row["ways"].values()
        lines.append(
            [row["words"], *(f"{way['words']:.2f}, {way['pairs']:.2f} ({way['seconds']:.1f} s)" for way in ways)]
        )
    found = record["outcome"]["errors"][0]["ways"]
    names = [
        "what each word adds" if name == "toggles" else name.replace("quadrature", "process, sets:") for name in found
    ]
    return markdown(["words", *names], lines)


def long_times(record: Record) -> str:
    """What explanations of a long text take beside a prediction."""
    outcome = record["outcome"]
    names = {
        "prediction": "prediction",
        "explanation": f"explanation: words, and {outcome['pairs']:.0f} pairs",
        "hierarchical": "hierarchical explanation",
    }
    rows = [
        [name, f"{outcome[f'{key}_ms']:.0f} ms", f"{outcome[f'{key}_ms'] / outcome['prediction_ms']:.1f}"]
        for key, name in names.items()
    ]
    return markdown([f"{outcome['words']:.0f} words", "time", "predictions"], rows)


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
