"""The attractor's part of the demo: train on the embedded digits, restore hidden patches, draw the trajectory."""

from dataclasses import replace
from pathlib import Path

import torch

from spinformer.data import images as data
from spinformer.data.corruption import corrupt, trivial_errors
from spinformer.evaluate.images import trajectory
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor

DRAWN, STEPS = 6, 6


def train_and_restore(folder: Path, *, epochs: int = 4) -> Path:
    """Train without backpropagation, print errors beside those of trivial predictors; the path of the figure."""
    images = data.load_images("sample")
    config, recipe = preset("field", patch=2, image=images.shape)
    network = AttractorNetwork(config)
    train_attractor(network, images.train, replace(recipe, epochs=epochs))
    corrupted = corrupt(images.test, "masked", network.embedding, generator=torch.Generator().manual_seed(0))
    print(
        f"{len(images.train)} digits, {epochs} epochs, no backpropagation; 30% of the patches hidden from test digits"
    )
    print("  mean square error on hidden pixels")
    for name, error in trivial_errors(corrupted, images.train.mean(0)).items():
        print(f"    {name:<22}{error:.4f}")
    print(f"    {'attractor, one step':<22}{trajectory.follow(network, corrupted, 1).errors[1]:.4f}")
    drawn = corrupt(images.test[:DRAWN], "masked", network.embedding, generator=torch.Generator().manual_seed(0))
    path = folder / "trajectory.png"
    trajectory.save_sheet(trajectory.follow(network, drawn, STEPS, pin=True), drawn, path)
    return path
