"""Spins at work: magnetisations that converge, and attention from cold to hot."""

from collections.abc import Sequence
from typing import Any

from spinformer import checks
from spinformer.explain.pictures.canvas import GREY, INK, PLAIN, VERMILION, new_figure, shown
from spinformer.explain.spins import SpinTrace, Sweep

# Okabe and Ito's colours, with dashes so that lines are told apart without them.
LINES = (
    ("#0072B2", "-"),
    ("#D55E00", (0, (5, 1.5))),
    ("#009E73", "-."),
    ("#CC79A7", (0, (1.5, 1))),
    ("#E69F00", "-"),
    ("#56B4E9", (0, (5, 1.5))),
    ("#000000", "-."),
    ("#7A5195", (0, (1.5, 1))),
)


def convergence(trace: SpinTrace, most: int = 8) -> Any:
    """Above: the magnetisation of each word after every step; below: the residual, on a logarithmic scale.

    most: words in colour and by name, those with the largest magnetisations at the end; the others are grey.
    """
    checks.at_least("most", most, 1)
    figure = new_figure(7.2, 5.6, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    steps = range(len(trace.residual))
    series = [[m[place] for m in trace.magnetization] for place in range(len(trace.words))]
    _lines(above, list(steps), series, trace.words, [abs(m) for m in trace.magnetization[-1]], most, -1)
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
    said = "did not converge" if reached is None else f"converged after {reached} steps"
    above.set_title(f"{len(trace.words)} spins at γ = {trace.temperature:g}: {said}", fontsize=11, color=INK)
    _tidy(above, below)
    return figure


def temperature_sweep(sweep: Sweep, most: int = 8) -> Any:
    """Attention of each word against the temperature, cold to the left; where the mean field was not reached the ground
    is hatched. The vertical line is the temperature of the explanation.

    most: words in colour and by name, those whose attention there is furthest from 1/2; the others are grey.
    """
    checks.at_least("most", most, 1)
    figure = new_figure(7.2, 4.6, layout="constrained")
    axis = figure.subplots()
    series = [[row[place] for row in sweep.attention] for place in range(len(sweep.words))]
    near = min(range(len(sweep.temperatures)), key=lambda place: abs(sweep.temperatures[place] - sweep.made_at))
    weight = [abs(value - 0.5) for value in sweep.attention[near]]
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.03)
    _lines(axis, list(sweep.temperatures), series, sweep.words, weight, most, near)
    axis.axvline(sweep.made_at, color=GREY, linewidth=1, zorder=0)
    axis.axhline(0.5, color=GREY, linewidth=0.6, zorder=0)
    axis.set_xlabel("temperature γ (cold to hot)")
    axis.set_ylabel("attention $\\alpha_i$")
    missed = [place for place, good in enumerate(sweep.converged) if not good]
    for place in missed:
        axis.axvspan(
            *_cell(sweep.temperatures, place),
            facecolor="#F0F1F3",
            edgecolor="#C4C8CF",
            hatch="///",
            linewidth=0,
            zorder=-1,
        )
    if missed:
        coldest, hottest = sweep.temperatures[missed[0]], sweep.temperatures[missed[-1]]
        where = (
            f"at γ = {coldest:.3g}"
            if len(missed) == 1
            else f"at {len(missed)} temperatures, γ = {coldest:.3g} to {hottest:.3g}"
        )
        said = f"mean field not reached {where} (hatched)"
    else:
        said = "mean field reached at every temperature"
    axis.set_title(f"attention from cold to hot, made at γ = {sweep.made_at:g}\n{said}", fontsize=11, color=INK)
    _tidy(axis)
    return figure


def _cell(temperatures: Sequence[float], place: int) -> tuple[float, float]:
    """Half way, on a logarithmic scale, to the neighbours."""
    own = temperatures[place]
    low = (temperatures[place - 1] * own) ** 0.5 if place else own
    high = (temperatures[place + 1] * own) ** 0.5 if place + 1 < len(temperatures) else own
    return (own / 1.02, own * 1.02) if low == high else (low, high)


def _lines(
    axis: Any,
    x: list[Any],
    series: Sequence[Sequence[float]],
    words: Sequence[str],
    weight: Sequence[float],
    most: int,
    at: int,
) -> None:
    """The `most` weightiest in colour and named beside the axis, as high as their lines are at position `at` of x; the
    others grey.
    """
    ranked = sorted(range(len(words)), key=lambda place: (-weight[place], place))
    for place in ranked[most:]:
        axis.plot(x, series[place], color="#C9CDD3", linewidth=0.8, zorder=1)
    named = ranked[:most]
    dot = "o" if len(x) == 1 else None
    for order, place in enumerate(named):
        colour, dash = LINES[order % len(LINES)]
        axis.plot(x, series[place], color=colour, linestyle=dash, linewidth=1.8, zorder=3, marker=dot)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high)
    level = [(series[place][at] - low) / (high - low) for place in named]
    rising = sorted(range(len(named)), key=lambda order: level[order])
    spots = _apart([level[order] for order in rising], min(0.06, 1 / max(len(named), 1)))
    for spot, order in zip(spots, rising, strict=True):
        colour, dash = LINES[order % len(LINES)]
        axis.plot(
            [1.015, 1.065], [spot, spot], color=colour, linestyle=dash, lw=1.8, transform=axis.transAxes, clip_on=False
        )
        axis.text(
            1.08,
            spot,
            _name(words, named[order]),
            va="center",
            fontsize=9,
            color=INK,
            transform=axis.transAxes,
            **PLAIN,
        )


def _name(words: Sequence[str], place: int) -> str:
    """The word, with its number where the text has it more than once."""
    again = sum(word.casefold() == words[place].casefold() for word in words) > 1
    return shown(words[place], 18) + (f" ({place + 1})" if again else "")


def _apart(heights: Sequence[float], least: float) -> list[float]:
    """Rising heights in 0..1, pushed up and then down until neighbours are `least` apart."""
    found = list(heights)
    for place in range(1, len(found)):
        found[place] = max(found[place], found[place - 1] + least)
    if found and found[-1] > 1:
        found[-1] = 1.0
        for place in range(len(found) - 2, -1, -1):
            found[place] = min(found[place], found[place + 1] - least)
    return found


def _tidy(*axes: Any) -> None:
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8, colors=INK)
        axis.grid(axis="y", color="#ECEEF1", linewidth=0.7, zorder=-2)
        axis.set_axisbelow(True)
