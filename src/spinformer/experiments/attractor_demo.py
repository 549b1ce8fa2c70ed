"""The attractor in under a minute: train on the embedded digits, restore hidden patches, draw the trajectory."""

from dataclasses import replace
from pathlib import Path

import torch

from spinformer.data import images as data
from spinformer.data.corruption import corrupt, trivial_errors
from spinformer.experiments import attractor_measures as measures
from spinformer.experiments import trajectory
from spinformer.extras import require
from spinformer.models.vision import AttractorNetwork
from spinformer.training.attractor import train
from spinformer.training.presets import preset


def demo(folder: Path, *, epochs: int = 4) -> Path:
    """Train without backpropagation, print errors beside trivial predictors, return the picture's path."""
    require("matplotlib", extra="plot")
    images = data.load("sample")
    config, recipe = preset("field", patch=2, image=images.shape)
    network = AttractorNetwork(config)
    train(network, images.train, replace(recipe, epochs=epochs))
    seen = corrupt(images.test, "masked", network.embedding, generator=torch.Generator().manual_seed(0))
    print(
        f"{len(images.train)} digits, {epochs} epochs, no backpropagation; 30% of the patches hidden from test digits"
    )
    print("  mean square error on hidden pixels")
    for name, error in trivial_errors(seen, images.train.mean(0)).items():
        print(f"    {name:<22}{error:.4f}")
    first = measures.errors(network, images.test, "masked", 1)["error"][0]
    print(f"    {'attractor, one step':<22}{first:.4f}")
    few = corrupt(images.test[:6], "masked", network.embedding, generator=torch.Generator().manual_seed(0))
    path = folder / "trajectory.png"
    trajectory.sheet(trajectory.follow(network, few, 6), few, path)
    return path
