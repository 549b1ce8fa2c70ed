"""Tables and the picture of docs/speed.md: the layer beside softmax attention, by the number of tokens."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.benchmarks.attention import least_of
from research.reports.markdown import Record, markdown
from research.reports.results import read_result
from spinformer.explain.render.canvas import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS = ("attention-gpu", "attention-cpu")
SOFTMAX = "softmax attention"
MEBIBYTE = 2**20
# Ours that the picture shows, with their names there: the quickest way to run each.
SHOWN = ("default, 1 head", "default, 12 heads", "paper, 12 heads")


def times(record: Record) -> str:
    """Milliseconds of a step, and how many times as long as softmax attention's, a column for each length."""

    def cell(row: Record, softmax: Record) -> str:
        if row["seconds"] is None:
            return "failed" if row.get("error") else "differs"
        ratio = row["seconds"] / softmax["seconds"]
        own = f"{1e3 * row['seconds']:{'.2f' if row['seconds'] < 0.01 else '.1f'}}"
        return own if row is softmax else f"{own} ({ratio:{'.2g' if ratio < 10 else '.0f'}} ×)"

    return _by_length(record, cell)


def memory(record: Record) -> str:
    """The most memory that a step takes, in MiB, a column for each length."""

    def cell(row: Record, _: Record) -> str:
        return f"{row['bytes'] / MEBIBYTE:,.0f}"

    return _by_length(record, cell, lambda row: row["bytes"] is not None)


def nearness(record: Record) -> str:
    """What a step of ours cannot avoid at the measured rates, as a part of the time that it takes."""

    outcome = record["outcome"]

    def cell(row: Record, _: Record) -> str:
        if row.get("least") is None or not row["seconds"]:
            return ""
        least = row["least"]
        if outcome["device"] != "cpu":  # by today's count, which knows what 16 bits save
            pairs = int(row["name"].split()[1]) if row["name"].startswith("paper") else 0
            least = least_of(row["tokens"], row["batch"], pairs, outcome["rates"], autocast=True)
        return f"{1e3 * least['seconds']:.2f} ms, {least['seconds'] / row['seconds']:.0%}"

    return _by_length(record, cell, lambda row: row.get("least") is not None)


def classifiers(record: Record) -> str:
    """A training step and an inference with each pooling head, in ms and against the first token's vector."""
    found = record["outcome"]["classifiers"]
    lines = []
    for row in found:
        shape = row["texts"], row["tokens"]
        (plain,) = (one for one in found if one["head"] == "cls" and (one["texts"], one["tokens"]) == shape)
        cells = [f"{1e3 * row[part]:.1f} ({row[part] / plain[part]:.2f} ×)" for part in ("training", "inference")]
        lines.append([f"`{row['head']}`", f"{shape[0]} × {shape[1]}", *cells])
    return markdown(["pooling head", "texts × tokens", "training step, ms", "inference, ms"], lines)


def peers(record: Record) -> str:
    """Other estimators of the same values, and Algorithm 1 as it is written, for one sequence."""
    outcome = record["outcome"]
    lines = [
        [row["name"], f"{row['evaluations']:,}", f"{row['seconds']:,.3g}"]
        for row in sorted(outcome["peers"], key=lambda row: row["seconds"])
    ]
    lines.append(["Algorithm 1 as written, with its pairs", "", f"{outcome['loops']['seconds']:,.0f}"])
    return markdown(["Shapley values of 128 tokens", "evaluations", "seconds"], lines)


def _by_length(
    record: Record, cell: Callable[[Record, Record], str], shown: Callable[[Record], bool] = lambda row: True
) -> str:
    """A line for each way, a column for each length."""
    rows = [row for row in record["outcome"]["rows"] if shown(row)]
    softmax = {row["tokens"]: row for row in record["outcome"]["rows"] if row["name"] == SOFTMAX}
    sizes = list(dict.fromkeys((row["tokens"], row["batch"]) for row in rows))
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows):
        cells = {row["tokens"]: cell(row, softmax[row["tokens"]]) for row in rows if row["name"] == name}
        lines.append([name, *(cells.get(tokens, "") for tokens, _ in sizes)])
    return markdown(["tokens × texts", *(f"{tokens:,} × {batch}" for tokens, batch in sizes)], lines)


def quickest(rows: Iterable[Record], name: str) -> dict[int, Record]:
    """By the number of tokens: the row of a layer, as it is or replayed, that took the least time."""
    best: dict[int, Record] = {}
    for row in rows:
        plain = row["name"] in (name, f"{name}, replayed")
        if plain and row["seconds"] and row["seconds"] < best.get(row["tokens"], row)["seconds"] * (1 + 1e-9):
            best[row["tokens"]] = row
    return best


def figure(record: Record) -> "Figure":
    """Time and memory of a step for each text of its batch, against the number of tokens, on logarithmic axes."""
    from matplotlib.figure import Figure

    rows = record["outcome"]["rows"]
    with_memory = any(row["bytes"] for row in rows)
    drawn: Any = Figure(figsize=(9.0 if with_memory else 5.0, 3.6), layout="constrained")
    axes = drawn.subplots(1, 2 if with_memory else 1, squeeze=False)[0]
    for name, line in zip((SOFTMAX, *SHOWN), ("k--", "C0o-", "C2s-", "C3^-"), strict=True):
        best = quickest(rows, name)
        tokens = sorted(best)
        parts = [
            [1e3 * best[n]["seconds"] / best[n]["batch"] for n in tokens],
            [(best[n]["bytes"] or 0) / MEBIBYTE / best[n]["batch"] for n in tokens],
        ]
        for axis, numbers in zip(axes, parts, strict=False):
            axis.plot(tokens, numbers, line, label=name, markersize=4)
    for axis, title in zip(
        axes, ("milliseconds of a step for each text", "most memory for each text, MiB"), strict=False
    ):
        axis.set(xscale="log", yscale="log", xlabel="tokens of a text", title=title)
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].legend(frameon=False, fontsize=8)
    return drawn


def draw(results: Path, folder: Path) -> list[Path]:
    """The picture of every result that is there."""
    names = [name for name in RESULTS if (results / f"{name}.json").is_file()]
    return [save_figure(figure(read_result(name, results)), folder / f"{name}.svg") for name in names]
