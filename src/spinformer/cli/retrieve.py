"""Restore corrupted images with an attractor network; write the trajectory as a picture and a GIF, and its energies.

The images are test images of `--images`, corrupted as `--task` says; with `--task none` they are not corrupted. Needs
the extras `plot` and `images`.
"""

import argparse
from pathlib import Path

import torch

from spinformer._base.extras import require
from spinformer.attractor.embedding import check_images
from spinformer.data import images as data
from spinformer.data.corruption import TASKS, Corrupted, corrupt
from spinformer.evaluate.images import trajectory
from spinformer.models.attractor import AttractorNetwork


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("network", type=Path, metavar="NETWORK", help="a file that `spinformer train attractor` wrote")
    add("--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder (default %(default)s)")
    add("--task", choices=[*TASKS, "none"], default="masked", help="how images are corrupted (default %(default)s)")
    add("--count", type=int, default=8, help="number of images, the first of the test part (default %(default)s)")
    add("--steps", type=int, default=8, help="steps of the dynamics (default %(default)s)")
    add("--strength", type=float, help="λ of the attention (default: the network's)")
    add("--inertia", type=float, help="γ, the weight of the previous state (default: the network's)")
    add("--pin", action="store_true", help="visible tokens keep their values (masked task)")
    add("--seed", type=int, default=0, help="random seed of the corruption (default %(default)s)")
    add("--output", type=Path, default=Path("runs/retrieved"), help="folder to write to (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write trajectory.png, trajectory.gif and energies.json."""
    require("matplotlib", extra="plot")
    require("PIL.Image", extra="images")
    network = AttractorNetwork.load(args.network)
    for name in ("strength", "inertia"):
        if getattr(args, name) is not None:
            setattr(network.layer, name, getattr(args, name))
    images = check_images(data.load_images(args.images).test, network.embedding.shape)[: args.count]
    if args.task == "none":
        corrupted = Corrupted(images, images, None, torch.ones_like(images, dtype=torch.bool))
    else:
        corrupted = corrupt(images, args.task, network.embedding, generator=torch.Generator().manual_seed(args.seed))
    path = trajectory.follow(network, corrupted, args.steps, pin=args.pin)
    args.output.mkdir(parents=True, exist_ok=True)
    trajectory.save_sheet(path, corrupted, args.output / "trajectory.png")
    trajectory.save_gif(path, args.output / "trajectory.gif")
    trajectory.save_energies(path, args.output / "energies.json")
    for t, (error, energy) in enumerate(zip(path.errors, path.energies.mean(1).tolist(), strict=True)):
        print(f"  t = {t:<3} error {error:.4f}   energy {energy:.2f}")
    for name in ("trajectory.png", "trajectory.gif", "energies.json"):
        print(f"  -> {args.output / name}")
    return 0
