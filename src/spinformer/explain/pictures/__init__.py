"""Pictures of explanations: coloured words, pairs of words as a map and as arcs, spins that converge, temperatures.

Each function gives a `matplotlib.figure.Figure` that belongs to nobody else: no display is needed and pyplot's state is
left alone, so that threads may draw at once; `save_figure` writes one as PNG or SVG, the same bytes every time. Text is
shown as text, whatever it holds. Colours are safe for colour-blind readers.
"""

from spinformer.explain.pictures.canvas import ready, save_figure
from spinformer.explain.pictures.coloured_words import words_figure
from spinformer.explain.pictures.dynamics import convergence, temperature_sweep
from spinformer.explain.pictures.pairs import arcs, heat_map
from spinformer.explain.spins import SpinTrace, Sweep, sweep_temperature, trace_spins

__all__ = [
    "SpinTrace",
    "Sweep",
    "arcs",
    "convergence",
    "heat_map",
    "ready",
    "save_figure",
    "sweep_temperature",
    "temperature_sweep",
    "trace_spins",
    "words_figure",
]
