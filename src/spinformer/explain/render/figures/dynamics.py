"""The spins of a text: magnetisations that converge, and attention from cold to hot."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinformer._base import checks
from spinformer.explain.render.canvas import GREY, INK, PLAIN, VERMILION, drawable_text, new_figure
from spinformer.explain.traces import SpinTrace, TemperatureSweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, with dashes that distinguish the lines without colour.
LINE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#D55E00", "linestyle": (0, (5, 1.5))},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": (0, (1.5, 1))},
    {"color": "#E69F00", "linestyle": "-"},
    {"color": "#56B4E9", "linestyle": (0, (5, 1.5))},
    {"color": "#000000", "linestyle": "-."},
    {"color": "#7A5195", "linestyle": (0, (1.5, 1))},
)


def convergence_figure(trace: SpinTrace, max_words: int = 8) -> "Figure":
    """Above: the magnetisation of each word after every step; below: the residual, on a logarithmic scale.

    max_words: words in colour and by name, those with the largest magnetisations at the end; the others are grey.
    """
    checks.at_least("max_words", max_words, 1)
    figure = new_figure(7.2, 5.6, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    steps = list(range(len(trace.residual)))
    series = [[m[index] for m in trace.magnetization] for index in range(len(trace.words))]
    ranks = _ranks([abs(m) for m in trace.magnetization[-1]])
    _draw_lines(above, steps, series, trace.words, ranks, max_words, label_at=-1)
    above.set_ylabel("magnetisation $\\langle s_i \\rangle$")
    above.axhline(0, color=GREY, linewidth=0.6, zorder=0)
    floor = min((value for value in trace.residual if value > 0), default=1e-12)
    below.semilogy(steps, [max(value, floor / 10) for value in trace.residual], color=INK, marker="o", markersize=3)
    below.axhline(trace.tolerance, color=VERMILION, linestyle="--", linewidth=1)
    below.annotate(
        f"tolerance {trace.tolerance:g}",
        (1, trace.tolerance),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color=VERMILION,
    )
    below.set_ylabel("residual")
    below.set_xlabel(f"step of the mean-field iteration, damping {trace.damping:g}")
    below.locator_params(axis="x", integer=True)
    reached = next((step for step, value in enumerate(trace.residual) if value <= trace.tolerance), None)
    outcome = "did not converge" if reached is None else f"converged after {reached} steps"
    above.set_title(f"{len(trace.words)} spins at γ = {trace.temperature:g}: {outcome}", fontsize=11, color=INK)
    _tidy(above, below)
    return figure


def temperature_figure(sweep: TemperatureSweep, max_words: int = 8) -> "Figure":
    """Attention of each word against the temperature, cold to the left.

    The vertical line is the temperature of the explanation; where the mean field was not reached the ground is hatched.
    max_words: words in colour and by name, those whose attention at the explanation's temperature is furthest from 1/2;
    the others are grey.
    """
    checks.at_least("max_words", max_words, 1)
    temperatures = sweep.temperatures
    figure = new_figure(7.2, 4.6, layout="constrained")
    axis = figure.subplots()
    series = [[row[index] for row in sweep.attention] for index in range(len(sweep.words))]
    nearest = min(range(len(temperatures)), key=lambda index: abs(temperatures[index] - sweep.estimated_at))
    ranks = _ranks([abs(value - 0.5) for value in sweep.attention[nearest]])
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.03)
    _draw_lines(axis, list(temperatures), series, sweep.words, ranks, max_words, label_at=nearest)
    axis.axvline(sweep.estimated_at, color=GREY, linewidth=1, zorder=0)
    axis.axhline(0.5, color=GREY, linewidth=0.6, zorder=0)
    axis.set_xlabel("temperature γ (cold to hot)")
    axis.set_ylabel("attention $\\alpha_i$")
    hatched: dict[str, Any] = {"facecolor": "#F0F1F3", "edgecolor": "#C4C8CF", "hatch": "///", "linewidth": 0}
    missed = [index for index, converged in enumerate(sweep.converged) if not converged]
    for index in missed:
        axis.axvspan(*_interval(temperatures, index), zorder=-1, **hatched)
    outcome = "mean field reached at every temperature"
    if len(missed) == 1:
        outcome = f"mean field not reached at γ = {temperatures[missed[0]]:.3g} (hatched)"
    elif missed:
        coldest, hottest = temperatures[missed[0]], temperatures[missed[-1]]
        outcome = f"mean field not reached at {len(missed)} temperatures, γ = {coldest:.3g} to {hottest:.3g} (hatched)"
    title = f"attention from cold to hot, estimated at γ = {sweep.estimated_at:g}\n{outcome}"
    axis.set_title(title, fontsize=11, color=INK)
    _tidy(axis)
    return figure


def _interval(temperatures: Sequence[float], index: int) -> tuple[float, float]:
    """Half way, on a logarithmic scale, to the neighbours."""
    center = temperatures[index]
    low = (temperatures[index - 1] * center) ** 0.5 if index else center
    high = (temperatures[index + 1] * center) ** 0.5 if index + 1 < len(temperatures) else center
    return (center / 1.02, center * 1.02) if low == high else (low, high)


def _ranks(weights: Sequence[float]) -> list[int]:
    """Indices, the largest weight first."""
    return sorted(range(len(weights)), key=lambda index: (-weights[index], index))


def _draw_lines(
    axis: "Axes",
    x: Sequence[float],
    series: Sequence[Sequence[float]],
    words: Sequence[str],
    ranks: Sequence[int],
    max_words: int,
    *,
    label_at: int,
) -> None:
    """One line for each word: the first `max_words` of `ranks` in colour and named beside the axis, the others grey.

    label_at: index of x at which a line and its name have the same height.
    """
    for index in ranks[max_words:]:
        axis.plot(x, series[index], color="#C9CDD3", linewidth=0.8, zorder=1)
    named = ranks[:max_words]
    styles = [LINE_STYLES[order % len(LINE_STYLES)] for order in range(len(named))]
    marker = "o" if len(x) == 1 else None
    for index, style in zip(named, styles, strict=True):
        axis.plot(x, series[index], linewidth=1.8, zorder=3, marker=marker, **style)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)
    levels = [(series[index][label_at] - low) / (high - low) for index in named]
    rising = sorted(range(len(named)), key=lambda order: levels[order])
    heights = _spread([levels[order] for order in rising], min(0.06, 1 / max(len(named), 1)))
    beside: dict[str, Any] = {"transform": axis.transAxes}
    for height, order in zip(heights, rising, strict=True):
        axis.plot([1.015, 1.065], [height, height], lw=1.8, clip_on=False, **styles[order], **beside)
        name = _name(words, named[order])
        axis.text(1.08, height, name, va="center", fontsize=9, color=INK, **PLAIN, **beside)


def _name(words: Sequence[str], index: int) -> str:
    """The word, with its number where the text has it more than once."""
    repeated = sum(word.casefold() == words[index].casefold() for word in words) > 1
    return drawable_text(words[index], 18) + (f" ({index + 1})" if repeated else "")


def _spread(heights: Sequence[float], min_gap: float) -> list[float]:
    """Rising heights in 0..1, pushed up and then down until neighbours are `min_gap` from each other."""
    spread = list(heights)
    for index in range(1, len(spread)):
        spread[index] = max(spread[index], spread[index - 1] + min_gap)
    if spread and spread[-1] > 1:
        spread[-1] = 1.0
        for index in range(len(spread) - 2, -1, -1):
            spread[index] = min(spread[index], spread[index + 1] - min_gap)
    return spread


def _tidy(*axes: "Axes") -> None:
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8, colors=INK)
        axis.grid(axis="y", color="#ECEEF1", linewidth=0.7, zorder=-2)
        axis.set_axisbelow(True)
