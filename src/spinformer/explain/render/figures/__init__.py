"""Figures of explanations: coloured words, pairs of words as a map and as arcs, spins that converge, temperatures.

Each function returns a `matplotlib.figure.Figure` of its own: no display is needed and pyplot's state is left alone, so
that threads may draw at once. `save_figure` writes one as PNG or SVG, the same bytes every time. Text is drawn as text,
whatever it holds. Colours are safe for colour-blind readers.
"""

from spinformer.explain.render.canvas import check_matplotlib, save_figure
from spinformer.explain.render.figures.dynamics import convergence_figure, temperature_figure
from spinformer.explain.render.figures.pairs import arcs_figure, pairs_figure
from spinformer.explain.render.figures.words import words_figure

__all__ = [
    "arcs_figure",
    "check_matplotlib",
    "convergence_figure",
    "pairs_figure",
    "save_figure",
    "temperature_figure",
    "words_figure",
]
