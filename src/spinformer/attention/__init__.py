"""Attention layers: thin modules over `spinformer.games` and `spinformer.ising`, and over `spinformer.attractor`."""

from spinformer.attention.attractor import AttractorAttention
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.attention.output import Diagnostics, HeadCouplings, NeuroGameOutput
from spinformer.attention.settings import PRESETS, Settings

__all__ = [
    "PRESETS",
    "AttractorAttention",
    "Diagnostics",
    "HeadCouplings",
    "NeuroGameAttention",
    "NeuroGameOutput",
    "Settings",
]
