"""Figures of explanations: coloured words, their values as bars, as steps and on one line, pairs as a map and as arcs;
means over many texts; spins that converge, and temperatures.

Each function returns a `matplotlib.figure.Figure` of its own: no display is needed and pyplot's state is left alone, so
that threads may draw at once. `save_figure` writes one as PNG or SVG, the same bytes every time. Text is drawn as text,
whatever it holds. Colours are safe for colour-blind readers.
"""

from spinformer.explain.render.canvas import check_matplotlib, save_figure
from spinformer.explain.render.figures.bars import bar_figure, waterfall_figure
from spinformer.explain.render.figures.dynamics import convergence_figure, temperature_figure
from spinformer.explain.render.figures.force import force_figure
from spinformer.explain.render.figures.pairs import arcs_figure, pairs_figure
from spinformer.explain.render.figures.sets import difference_figure, set_figure
from spinformer.explain.render.figures.words import words_figure

__all__ = [
    "arcs_figure",
    "bar_figure",
    "check_matplotlib",
    "convergence_figure",
    "difference_figure",
    "force_figure",
    "pairs_figure",
    "save_figure",
    "set_figure",
    "temperature_figure",
    "waterfall_figure",
    "words_figure",
]
