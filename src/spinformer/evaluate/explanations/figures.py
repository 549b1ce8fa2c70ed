"""The picture of exactness: error against passes, of our methods and of shapiq's estimators.

It is drawn from `Exactness.to_dict()`, so a result on file gives the same picture as one in memory. `save_figure` of
`spinformer.explain.render.canvas` writes it as PNG or SVG.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from spinformer.explain.render.canvas import BLUE, GREY, INK, PLAIN, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours are safe for colour-blind readers (Okabe and Ito); markers tell lines apart without them.
OURS = ((BLUE, "o"), ("#009E73", "D"), ("#56B4E9", "s"), (INK, "P"))
PEERS = (
    *((VERMILION, "^"), ("#E69F00", "v"), ("#CC79A7", "<"), (GREY, ">")),
    *(("#8C6D00", "x"), ("#882255", "+"), ("#999933", "1"), ("#AA4499", "2")),
)
PANELS = {"values": ("SV", "words: Shapley values"), "pairs": ("SII", "pairs: Shapley interactions (SII)")}
CEILING = 3.0  # larger errors are not drawn: an estimate of 0 throughout has the error 1


@dataclass
class Line:
    """The errors of one method, by its passes: (passes, mean, standard error) for each budget."""

    name: str
    points: list[tuple[float, float, float]] = field(default_factory=list)


def error_figure(runs: Sequence[Mapping[str, Any]], title: str = "") -> "Figure":
    """Relative error against passes, both on logarithmic axes: values of words left, of pairs right.

    runs: what `Exactness.to_dict` gives, one for each grounding; errors are means over them. An explanation from one
    pass stands at 1. Means of slow estimators are over fewer texts.
    """
    if not runs:
        raise ValueError("error_figure needs at least one result of exactness; got none")
    figure = new_figure(10.5, 5.8, layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    for axis, (part, (index, label)) in zip(axes, PANELS.items(), strict=True):
        for line, (color, marker) in zip(lines(runs, "settings", part, index), OURS * 4, strict=False):
            _draw(axis, line, color=color, marker=marker, linewidth=2.4, markersize=6.5, zorder=3, bars=True)
        for line, (color, marker) in zip(lines(runs, "peers", part, index), PEERS * 4, strict=False):
            _draw(axis, line, color=color, marker=marker, linewidth=1.0, markersize=4.5)
        axis.set_title(label, fontsize=10, color=INK, **PLAIN)
    for axis in axes:  # once both have their lines: they share the passes
        _style(axis)
    heading = f"Distance from the classifier's exact values, {_texts(runs)}"
    figure.suptitle(f"{title}\n{heading}" if title else heading, fontsize=10.5, color=INK, **PLAIN)
    return figure


def lines(runs: Sequence[Mapping[str, Any]], group: str, part: str, index: str) -> list[Line]:
    """The methods of a group, "settings" or "peers", that have errors of "values" or "pairs", in their order.

    Of the peers that estimate pairs, only the best stands among those of values: most of them have the values of a peer
    that is there already. Methods of another index than `index` say theirs. Settings that promise an error in place of
    a number of passes are left out.
    """
    found: dict[str, Line] = {}
    of_pairs = set()
    for name, row in {name: row for run in runs for name, row in run[group].items()}.items():
        if row.get("promise"):
            continue
        rows = [run[group][name] for run in runs if run[group].get(name, {}).get(part) is not None]
        rows = [one for one in rows if one[part]["error"]["mean"] is not None]
        if not rows:
            continue
        own = rows[0][part]["index"]
        prefix, suffix = "shapiq " if group == "peers" else "", "" if own == index else f" ({own})"
        line = found.setdefault(row["method"], Line(f"{prefix}{row['method']}{suffix}"))
        errors = [one[part]["error"] for one in rows]
        stderr = fmean(error["stderr"] or 0.0 for error in errors)
        passes = max(1.0, fmean(one["passes"]["mean"] for one in rows))
        line.points.append((passes, fmean(error["mean"] for error in errors), stderr))
        if group == "peers" and part == "values" and rows[0]["pairs"] is not None:
            of_pairs.add(row["method"])
    best = min(of_pairs, key=lambda method: (max(found[method].points)[1], method), default=None)
    return [line for method, line in found.items() if method not in of_pairs - {best}]


def _draw(axis: "Axes", line: Line, *, bars: bool = False, **style: Any) -> None:
    """The line, with the standard errors of its means if `bars`."""
    points = [point for point in sorted(line.points) if 0 < point[1] <= CEILING]
    if points:
        passes, means, errors = zip(*points, strict=True)
        low = [min(error, 0.9 * mean) for error, mean in zip(errors, means, strict=True)]  # above 0, for the logarithm
        reach = [low, errors] if bars else None
        axis.errorbar(passes, means, yerr=reach, label=line.name, elinewidth=0.9, capsize=2, **style)


def _style(axis: "Axes") -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("passes of the classifier for one text", fontsize=9)
    axis.set_ylabel("relative root mean square error", fontsize=9)
    axis.tick_params(labelsize=8, colors=GREY, which="both")
    low, high = axis.get_ylim()
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    marks = [mark for mark in (1, 3, 10, 30, 100, 300, 1000, 3000) if mark <= axis.get_xlim()[1]]
    axis.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axis.grid(True, color="#E3E6EA", linewidth=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if axis.has_data():
        axis.legend(fontsize=7.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=2)


def _texts(runs: Sequence[Mapping[str, Any]]) -> str:
    low, high = runs[0]["words"]
    count = f"{runs[0]['texts']} texts of {low} to {high} words"
    return count if len(runs) == 1 else f"{count}, mean of {len(runs)} groundings"
