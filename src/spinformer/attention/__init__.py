"""Attention layers: NeuroGame (over `games` and `ising`) and attractor (over `attractor`)."""

from spinformer.attention.attractor import AttractorAttention
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.attention.output import Diagnostics, HeadCouplings, NeuroGameOutput
from spinformer.attention.replay import Played, Replay
from spinformer.attention.settings import PRESETS, Settings

__all__ = [
    "PRESETS",
    "AttractorAttention",
    "Diagnostics",
    "HeadCouplings",
    "NeuroGameAttention",
    "NeuroGameOutput",
    "Played",
    "Replay",
    "Settings",
]
