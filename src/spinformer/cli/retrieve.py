"""Run an attractor network on corrupted images: pictures of the trajectory, a GIF and the energies.

The images are test images of `--images`, corrupted as `--task` says; with `--task none` they are taken as they are.
"""

import argparse
from pathlib import Path

import torch

from spinformer.attractor.embedding import check_images
from spinformer.data import images as data
from spinformer.data.corruption import TASKS, Corrupted, corrupt
from spinformer.experiments import trajectory
from spinformer.extras import require
from spinformer.models.vision import AttractorNetwork


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("network", type=Path, help="what `spinformer train attractor` wrote")
    parser.add_argument("--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder")
    parser.add_argument("--task", choices=[*TASKS, "none"], default="masked")
    parser.add_argument("--count", type=int, default=8, help="images, the first of the test part (default 8)")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--strength", type=float, help="λ; default: the network's")
    parser.add_argument("--inertia", type=float, help="γ; default: the network's")
    parser.add_argument("--pin", action="store_true", help="visible tokens keep their values (masked task)")
    parser.add_argument("--seed", type=int, default=0, help="of the corruption")
    parser.add_argument("--output", type=Path, default=Path("runs/retrieved"), help="folder (default runs/retrieved)")


def run(args: argparse.Namespace) -> int:
    """Write trajectory.png, trajectory.gif and energies.json."""
    require("matplotlib", extra="plot")
    require("PIL.Image", extra="images")
    network = AttractorNetwork.load(args.network)
    for name in ("strength", "inertia"):
        if getattr(args, name) is not None:
            setattr(network.layer, name, getattr(args, name))
    images = check_images(data.load(args.images).test, network.embedding.shape)[: args.count]
    if args.task == "none":
        seen = Corrupted(images, images, None, torch.ones_like(images, dtype=torch.bool))
    else:
        seen = corrupt(images, args.task, network.embedding, generator=torch.Generator().manual_seed(args.seed))
    found = trajectory.follow(network, seen, args.steps, pin=args.pin)
    args.output.mkdir(parents=True, exist_ok=True)
    trajectory.sheet(found, seen, args.output / "trajectory.png")
    trajectory.gif(found, args.output / "trajectory.gif")
    trajectory.energies(found, args.output / "energies.json")
    for t, (error, energy) in enumerate(zip(found["errors"], found["energies"].mean(1).tolist(), strict=True)):
        print(f"  t = {t:<3} error {error:.4f}   energy {energy:.2f}")
    for name in ("trajectory.png", "trajectory.gif", "energies.json"):
        print(f"  -> {args.output / name}")
    return 0
