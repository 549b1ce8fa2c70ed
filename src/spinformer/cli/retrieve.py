"""Restore corrupted images with an attractor network; write the trajectory as a picture and a GIF, and its energies.

The images are test images of `--images`, corrupted as `--task` says; with `--task none` they are not corrupted. λ, γ
and the number of steps are those that were best on held-out images when the network was trained; options change them.
Where states grow without bound, the run stops and says so. Needs the extras `plot` and `images`.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from spinformer._base import checks
from spinformer._base.choices import TASKS
from spinformer._base.extras import require
from spinformer._base.progress import remark
from spinformer.cli.options import check_output_folder

if TYPE_CHECKING:
    from spinformer.models.attractor import Dynamics

STEPS = 8  # where none were chosen


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("network", type=Path, metavar="NETWORK", help="a file that `spinformer train attractor` wrote")
    add("--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder (default %(default)s)")
    add("--task", choices=[*TASKS, "none"], default="masked", help="how images are corrupted (default %(default)s)")
    add("--count", type=int, default=8, help="number of images, the first of the test part (default %(default)s)")
    add("--steps", type=int, help=f"steps of the dynamics (default: those chosen for the task, or {STEPS})")
    add("--strength", type=float, help="λ of the attention (default: as chosen for the task, or the network's)")
    add("--inertia", type=float, help="γ, the weight of the previous state (default: likewise)")
    add(
        "--pin",
        action=argparse.BooleanOptionalAction,
        help="visible tokens keep their values, in the masked task (default: as chosen for the task, or no)",
    )
    add("--seed", type=int, default=0, help="random seed of the corruption (default %(default)s)")
    add("--output", type=Path, default=Path("runs/retrieved"), help="folder to write to (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write trajectory.png, trajectory.gif and energies.json."""
    import torch

    from spinformer.attractor.embedding import check_images
    from spinformer.data import images as data
    from spinformer.data.corruption import Corrupted, corrupt
    from spinformer.evaluate.images import trajectory
    from spinformer.models.attractor import AttractorNetwork

    require("matplotlib", extra="plot")
    require("PIL.Image", extra="images")
    checks.at_least("--count", args.count, 1)
    if args.steps is not None:
        checks.at_least("--steps", args.steps, 0)
    for name in ("strength", "inertia"):
        if not math.isfinite(getattr(args, name) or 0.0):
            raise ValueError(f"--{name} must be a finite number; got {getattr(args, name)}")
    check_output_folder("--output", args.output)
    network = AttractorNetwork.load(args.network)
    steps, pin, chosen = STEPS, False, network.dynamics.get(args.task)
    if chosen is not None:
        network.use(chosen)
        steps, pin = chosen.steps, chosen.pin
        remark(f"chosen on held-out images: {describe(chosen)}")
    steps = steps if args.steps is None else args.steps
    pin = pin if args.pin is None else args.pin
    for name in ("strength", "inertia"):
        if getattr(args, name) is not None:
            setattr(network.layer, name, getattr(args, name))
    images = check_images(data.load_images(args.images).test, network.embedding.shape)[: args.count]
    if args.task == "none":
        corrupted = Corrupted(images, images, None, torch.ones_like(images, dtype=torch.bool))
    else:
        corrupted = corrupt(images, args.task, network.embedding, generator=torch.Generator().manual_seed(args.seed))
    path = trajectory.follow(network, corrupted, steps, pin=pin)
    if not path.errors or not all(map(math.isfinite, (*path.errors, *path.energies.flatten().tolist()))):
        raise ValueError("errors or energies are not finite with this λ and γ; nothing was written")
    args.output.mkdir(parents=True, exist_ok=True)
    trajectory.save_sheet(path, corrupted, args.output / "trajectory.png")
    trajectory.save_gif(path, args.output / "trajectory.gif")
    trajectory.save_energies(path, args.output / "energies.json")
    for t, (error, energy) in enumerate(zip(path.errors, path.energies.mean(1).tolist(), strict=True)):
        print(f"  t = {t:<3} error {error:.4f}   energy {energy:.2f}")
    if path.grown is not None:
        print(f"stopped before t = {path.grown}: states grow without bound with this λ and γ")
    if path.best < len(path.errors) - 1:
        print(f"the error is least at t = {path.best}; --steps {path.best} stops there")
    for name in ("trajectory.png", "trajectory.gif", "energies.json"):
        remark(f"  -> {args.output / name}")
    return 0


def describe(dynamics: "Dynamics") -> str:
    """One line for people."""
    pinned = ", visible tokens keep their values" if dynamics.pin else ""
    return f"λ {dynamics.strength:g}, γ {dynamics.inertia:g}, {dynamics.steps} steps{pinned}"
