"""What the attractor paper says of its energy, its embedding and its couplings, measured on a few digits."""

from dataclasses import replace
from typing import Any

import torch

from spinformer.attention import AttractorAttention
from spinformer.attractor.embedding import PatchEmbedding
from spinformer.data.images import load_images
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor import preset, train_attractor

DIGITS, EPOCHS = 512, 2
SCALES = (1.0, 10.0, 100.0)


def energies() -> dict[str, float]:
    """Section V-B: the mean local energy of random spins as the couplings are scaled up."""
    layer = AttractorAttention(8, 4, seed=0).double()
    x = torch.randn(16, 8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x / x.norm(dim=-1, keepdim=True)
    outcome = {}
    for scale in SCALES:
        layer.strength = scale
        outcome[f"{scale:g}"] = float(layer.local_energy(x).detach().mean())
    return outcome


def embedding() -> dict[str, float]:
    """Section V-A: pixels after the way there and back, and how far spins are from length 1, for several d and a."""
    digits = load_images("sample").test[:32]
    back, length = 0.0, 0.0
    for patch, wide in ((2, 1), (2, 3), (4, 1), (4, 2)):
        cutter = PatchEmbedding((1, 28, 28), patch, dim=2 * patch * patch * wide)
        spins = cutter.encode(digits)
        back = max(back, float((cutter.decode(spins) - digits).abs().max()))
        length = max(length, float((spins.norm(dim=-1) - 1).abs().max()))
    return {"pixels": back, "length": length}


def couplings() -> dict[str, Any]:
    """Section II-C: couplings trained on a few digits, without any symmetry imposed: |J_ij - J_ji'| over |J|."""
    digits = load_images("sample").train[:DIGITS]
    config, recipe = preset("paper", patch=4)
    network = AttractorNetwork(config)
    train_attractor(network, digits, replace(recipe, epochs=EPOCHS), quiet=True)
    J = network.layer.couplings.detach()
    return {"asymmetry": float((J - J.permute(1, 0, 3, 2)).norm() / J.norm()), "digits": DIGITS, "epochs": EPOCHS}
