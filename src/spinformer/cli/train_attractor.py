"""Train an attractor network on images, without backpropagation.

After Ctrl-C the same command continues where it stopped, to the same couplings. Over several processes:
  torchrun --nproc-per-node 2 -m spinformer train attractor --shard sites ...    (rows of J, no communication)
  torchrun --nproc-per-node 2 -m spinformer train attractor --shard data ...     (batches, one reduction per step)
"""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spinformer._base import checks
from spinformer._base.choices import OPTIMISERS, PRESET_NAMES, SHAPES, SHARDS, TASKS
from spinformer._base.files import run_lock
from spinformer._base.progress import remark
from spinformer.cli.options import add_device, check_not_read, check_output_file
from spinformer.cli.retrieve import describe

if TYPE_CHECKING:
    from spinformer.data.images import Images
    from spinformer.models.attractor import AttractorNetwork
    from spinformer.training.attractor import AttractorRecipe

JUDGED = 100  # held-out images on which λ, γ and the steps of `retrieve` are chosen


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder (default %(default)s)")
    add("--preset", choices=PRESET_NAMES, default="field", help="network and training (default %(default)s)")
    add("--patch", type=int, default=2, help="side of the patches, in pixels (default %(default)s)")
    add("--dim", type=int, help="components of a spin (default: twice the pixels of a patch)")
    add("--shape", choices=SHAPES, default="full", help="form of the couplings (default %(default)s)")
    add("--rank", type=int, default=8, help="rank of low-rank and of shared couplings (default %(default)s)")
    add("--reach", type=int, help="reach of relative couplings, in patches (default: the full image)")
    add("--epochs", type=int, help="passes over the images (default: the preset's)")
    add("--batch", type=int, help="images in one update (default: the preset's)")
    add("--rate", type=float, help="learning rate (default: the preset's, or that of --optimiser)")
    add("--optimiser", choices=list(OPTIMISERS), help="optimiser (default: the preset's)")
    add("--sites", type=int, help="sites trained at each step, drawn at random (default: all)")
    add("--limit", type=int, help="use only the first LIMIT training images (default: all)")
    add("--seed", type=int, default=0, help="random seed (default %(default)s)")
    add_device(parser)
    add("--shard", choices=SHARDS, default="none", help="what the processes of torchrun split (default %(default)s)")
    add("--output", type=Path, default=Path("runs/attractor.safetensors"), help="file to write (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Train and save."""
    import torch.distributed as dist

    from spinformer._base.devices import usable_device
    from spinformer._base.processes import start_processes
    from spinformer.data import images as data
    from spinformer.models.attractor import AttractorNetwork
    from spinformer.training.attractor.presets import preset

    for name in ("epochs", "batch", "sites", "dim", "rank", "patch"):
        if getattr(args, name) is not None:
            checks.at_least(f"--{name}", getattr(args, name), 1)
    if args.rate is not None:
        checks.positive("--rate", args.rate)
    chosen = usable_device(args.device)
    check_output_file("--output", args.output)
    check_not_read("--output", args.output, args.images)
    images = data.load_images(args.images).cut(args.limit)
    config, recipe = preset(args.preset, patch=args.patch, image=images.shape, seed=args.seed)
    reach = None if args.reach is None else (args.reach, args.reach)
    config = replace(config, dim=args.dim, shape=args.shape, rank=args.rank, reach=reach)
    given = {name: getattr(args, name) for name in ("epochs", "batch", "rate", "optimiser", "sites")}
    if args.optimiser not in (None, recipe.optimiser) and args.rate is None:
        given["rate"] = OPTIMISERS[args.optimiser]
    recipe = replace(recipe, **{name: value for name, value in given.items() if value is not None})
    network = AttractorNetwork(config)
    device = chosen if args.shard == "none" else start_processes(args.device)
    network.to(device)
    with run_lock(args.output, is_file=True):
        _train_and_save(args, network, images, recipe)
    if args.shard != "none":
        dist.destroy_process_group()
    return 0


def _train_and_save(
    args: argparse.Namespace, network: "AttractorNetwork", images: "Images", recipe: "AttractorRecipe"
) -> None:
    """Train, choose the dynamics on held-out images, save, and print the scores."""
    import torch
    import torch.distributed as dist

    from spinformer.evaluate.images.dynamics import choose_dynamics
    from spinformer.training.attractor.train import first_step_error, train_attractor
    from spinformer.training.checkpoint import Checkpoint

    held_out = min(1000, len(images.train) // 10) or 1
    checkpoint = args.output.with_suffix(".state")
    history = train_attractor(
        network,
        images.train[:-held_out],
        recipe,
        held_out=images.train[-held_out:],
        checkpoint=checkpoint,
        shard=args.shard,
    )
    loss, device = history[-1]["loss"], network.mean.device
    if not all(bool(torch.isfinite(value).all()) for value in (torch.tensor(loss), *network.state_dict().values())):
        Checkpoint(checkpoint, {}).remove()  # nothing can be continued from it
        raise ValueError(f"the training diverged, its loss is {loss:g}: nothing was saved; a lower --rate may help")
    if args.shard != "none" and dist.get_rank() > 0:
        return
    for task in TASKS:
        judged = images.train[-held_out:][:JUDGED].to(device)
        network.dynamics[task] = choose_dynamics(network, judged, task, seed=args.seed)
    network.save(args.output, {"recipe": json.dumps(asdict(recipe))})
    error = first_step_error(network, images.train[-held_out:].to(device))
    print(f"{len(images.train) - held_out} images of {images.name}, {recipe.epochs} epochs, loss {loss:.4f}")
    print(f"held-out error on hidden pixels after one step: {error:.4f}")
    if "alignment" in history[-1]:
        mean, least = history[-1]["alignment"], history[-1]["least_alignment"]
        print(f"cosine of couplings and -gradient, 1 at a minimum: mean {mean:.4f}, least {least:.4f}")
    for task, chosen in network.dynamics.items():
        print(f"{task}: held-out error {chosen.error:.4f} with {describe(chosen)}")
    remark(f"  -> {args.output}")
