"""Stages of `spinformer reproduce attractor` that stand alone: `speed`, `sweep`, `strengths` and `pixels`."""

import argparse
import json

import torch

from research.experiments import attractor_pixels, attractor_strengths, attractor_sweep
from spinformer._base import records
from spinformer.data import images as data

PIXELS_TRAIN, PIXELS_TEST = 2000, 200  # images of `pixels`


def speed(args: argparse.Namespace) -> None:
    """The training step against autograd, and the full training of the paper."""
    from research.benchmarks import attractor_speed

    images = data.load_images(args.images)
    device_type = torch.device(args.device).type
    outcome = {"step": attractor_speed.run_speed(args.device, repeats=args.repeats)}
    print(f"  {json.dumps(outcome['step'])}", flush=True)
    epochs = args.bare_epochs or (20 if device_type == "cuda" else 1)
    outcome["training"] = attractor_speed.run_training(images, args.device, epochs=epochs)
    print(f"  {json.dumps(outcome['training'])}")
    path = records.write(
        f"attractor-speed-{'gpu' if device_type == 'cuda' else 'cpu'}",
        outcome,
        command=f"spinformer reproduce attractor --stage speed --device {args.device}",
        config={"N": attractor_speed.N, "d": attractor_speed.D, "batch": attractor_speed.BATCH},
        data=images.digests,
        directory=args.results,
    )
    print(f"  -> {path}")


def sweep(args: argparse.Namespace) -> None:
    """Settings of the bare layer on held-out training images."""
    images = data.load_images(args.images)
    train, held_out = _split(args, images)
    epochs = args.bare_epochs or 3
    rows = attractor_sweep.run(
        train, held_out, epochs=epochs, limit=args.limit, device=args.device, processes=args.jobs
    )
    path = records.write(
        "attractor-sweep",
        {"rows": rows, "train": len(train), "held_out": len(held_out)},
        command="spinformer reproduce attractor --stage sweep",
        config={"epochs": epochs, "steps": attractor_sweep.STEPS, "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    for row in sorted(rows, key=lambda row: row["masked"]["best"]):
        errors = " ".join(f"{key} {row[key]['best']:.4f}" for key in ("masked", "masked_pinned", "noisy"))
        chosen = f"{_choice(row['masked'])} {_choice(row['noisy'])}"
        print(f"  {errors}  {row['preset']} {json.dumps(row['changes'])} {chosen}")
    print(f"  -> {path}")


def strengths(args: argparse.Namespace) -> None:
    """λ in training and in testing, in the paper's own setting."""
    images = data.load_images(args.images)
    train, held_out = _split(args, images)
    train = train[: args.limit]
    rows = attractor_strengths.run(train, held_out, epochs=args.bare_epochs, device=args.device, processes=args.jobs)
    path = records.write(
        "attractor-strengths",
        {"rows": rows, "train": len(train), "held_out": len(held_out)},
        command="spinformer reproduce attractor --stage strengths",
        config={"epochs": rows[0]["epochs"], "steps": attractor_strengths.STEPS, "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    print(f"  -> {path}")


def pixels(args: argparse.Namespace) -> None:
    """Masked prediction: the error over the hidden and over all pixels."""
    images = data.load_images(args.images)
    train = images.train[: args.limit or PIXELS_TRAIN].to(args.device)
    test = images.test[:PIXELS_TEST].to(args.device)
    outcome = attractor_pixels.run(train, test, seeds=args.seeds, epochs=args.bare_epochs or 1)
    path = records.write(
        "attractor-pixels",
        outcome,
        command="spinformer reproduce attractor --stage pixels",
        config={"seeds": args.seeds, "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    for name, row in outcome["claims"].items():
        print(f"  {name}: {json.dumps(row)}")
    print(f"  -> {path}")


def _choice(row: dict[str, float]) -> str:
    return f"(λ {row['strength']}, γ {row['inertia']}, t {row['step']})"


def _split(args: argparse.Namespace, images: data.Images) -> tuple[torch.Tensor, torch.Tensor]:
    """Training images and 2,000 of the held-out ones."""
    count = held_out(args, images)
    return images.train[:-count], images.train[-count:][:2000]


def held_out(args: argparse.Namespace, images: data.Images) -> int:
    """How many of the last training images are not trained on."""
    count: int = len(images.train) // 6 if args.held_out is None else args.held_out
    if not 0 < count < len(images.train):
        raise ValueError(f"--held-out must leave some of the {len(images.train)} training images; got {count}")
    return count
