"""Self-attention as an attractor network: vector spins, their couplings, energies and closed gradients.

Pure functions on tensors and on the four shapes of couplings. `reference` holds plain versions that read like the
equations. The layer is `spinformer.attention.AttractorAttention`.
"""

from spinformer.attractor.couplings import SHAPES, FullCouplings, LowRankSpinCouplings, SpinCouplings
from spinformer.attractor.embedding import PatchEmbedding, check_images
from spinformer.attractor.energy import attention, local_energy, step
from spinformer.attractor.gradient import energy_gradient, field_gradient
from spinformer.attractor.relative import RelativeCouplings
from spinformer.attractor.shared import SharedCouplings
from spinformer.attractor.spins import NORMALISATIONS, add_noise, hide_tokens, layer_norm, standardise, unit

__all__ = [
    "NORMALISATIONS",
    "SHAPES",
    "FullCouplings",
    "LowRankSpinCouplings",
    "PatchEmbedding",
    "RelativeCouplings",
    "SharedCouplings",
    "SpinCouplings",
    "add_noise",
    "attention",
    "check_images",
    "energy_gradient",
    "field_gradient",
    "hide_tokens",
    "layer_norm",
    "local_energy",
    "standardise",
    "step",
    "unit",
]
