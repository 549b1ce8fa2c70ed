"""Train an attractor network on images, without backpropagation.

Stopped with Ctrl-C, the same command goes on where it was and ends at the same couplings. Over several processes:
  torchrun --nproc-per-node 2 -m spinformer train attractor --shard sites ...    (rows of J, no communication)
  torchrun --nproc-per-node 2 -m spinformer train attractor --shard data ...     (batches, one reduction a step)
"""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
import torch.distributed as dist

from spinformer.attractor.couplings import SHAPES
from spinformer.data import images as data
from spinformer.models.vision import AttractorNetwork
from spinformer.training.attractor import SHARDS, first_step_error, start_processes, train
from spinformer.training.presets import PRESETS, preset


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder")
    parser.add_argument("--preset", choices=list(PRESETS), default="field", help="setting (default field)")
    parser.add_argument("--patch", type=int, default=2, help="side of the patches (default 2)")
    parser.add_argument("--dim", type=int, help="components of a spin (default: twice the pixels of a patch)")
    parser.add_argument("--shape", choices=SHAPES, default="full", help="of the couplings (default full)")
    parser.add_argument("--rank", type=int, default=8, help="of low-rank couplings (default 8)")
    parser.add_argument("--reach", type=int, help="of relative couplings, in patches (default: the whole image)")
    parser.add_argument("--epochs", type=int, help="default: the setting's")
    parser.add_argument("--batch", type=int, help="default: the setting's")
    parser.add_argument("--rate", type=float, help="learning rate; default: the setting's")
    parser.add_argument("--optimiser", choices=("adam", "sgd"), help="default: the setting's")
    parser.add_argument("--sites", type=int, help="random sites trained at each step (default all)")
    parser.add_argument("--limit", type=int, help="training images to use, the first ones (default all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shard", choices=SHARDS, default="none", help="over the processes of torchrun")
    parser.add_argument("--output", type=Path, default=Path("runs/attractor.safetensors"), help="the network")


def run(args: argparse.Namespace) -> int:
    """Train and save."""
    images = data.load(args.images).cut(args.limit)
    config, recipe = preset(args.preset, patch=args.patch, image=images.shape, seed=args.seed)
    reach = None if args.reach is None else (args.reach, args.reach)
    config = replace(config, dim=args.dim, shape=args.shape, rank=args.rank, reach=reach)
    given = {name: getattr(args, name) for name in ("epochs", "batch", "rate", "optimiser", "sites")}
    recipe = replace(recipe, **{name: value for name, value in given.items() if value is not None})
    network = AttractorNetwork(config)
    device = torch.device(args.device) if args.shard == "none" else start_processes(args.device)
    network.to(device)
    held = min(1000, len(images.train) // 10) or 1
    checkpoint = args.output.with_suffix(".state")
    history = train(
        network,
        images.train[:-held],
        recipe,
        held_out=images.train[-held:],
        checkpoint=checkpoint,
        shard=args.shard,
    )
    if args.shard == "none" or dist.get_rank() == 0:
        network.save(args.output, {"recipe": json.dumps(asdict(recipe))})
        error = first_step_error(network, images.train[-held:].to(device))
        loss = history[-1]["loss"]
        print(f"{len(images.train) - held} images of {images.name}, {recipe.epochs} epochs, loss {loss:.4f}")
        print(f"held-out error on hidden pixels after one step: {error:.4f}")
        print(f"  -> {args.output}")
    if args.shard != "none":
        dist.destroy_process_group()
    return 0
