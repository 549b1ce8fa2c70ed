"""Reproduce the attractor paper: Figures 1 and 2, its claims, and the bare layer beside trivial predictors.

Stages, each of which may run on another machine:
  compute   train every model and measure it: attractor.json and OUTPUT/examples.safetensors
  judge     judge the claims again from attractor.json
  draw      draw OUTPUT/*.png from these two files (needs the extra `plot`)
  speed     the training step against autograd, and the full training of the paper: attractor-speed-DEVICE.json
  use       the bare layer, with λ, γ and steps chosen on held-out images: attractor-use.json
  sweep     settings of the bare layer on held-out training images: attractor-sweep.json
The JSON files go to --results. `compute` continues after a stop when it is started again: the record of every finished
job lies in STATE/results.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from research.commands.options import add_results
from research.experiments import attractor, attractor_claims, attractor_sweep, attractor_use
from research.experiments.attractor_jobs import BARE, Plan
from spinformer._base import records
from spinformer._base.files import atomic_write
from spinformer.cli.options import add_device, names_list
from spinformer.data import images as data

STAGES = ("compute", "judge", "draw", "speed", "use", "sweep")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--stage", choices=[*STAGES, "all"], default="all", help="stage to run (default all: compute, then draw)"
    )
    parser.add_argument(
        "--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder (default sample)"
    )
    add_device(parser)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("runs/attractor"),
        help="folder for figures and examples (default %(default)s)",
    )
    parser.add_argument("--state", type=Path, help="folder for trained models (default OUTPUT/state)")
    add_results(parser)
    plan = Plan()
    parser.add_argument(
        "--seeds", type=int, default=plan.seeds, help=f"number of seeds of the bare layers (default {plan.seeds})"
    )
    parser.add_argument(
        "--bare-epochs", type=int, help="epochs of the bare layers (default 20; `sweep` 3; `speed` on a CPU 1)"
    )
    parser.add_argument(
        "--backprop-epochs",
        type=int,
        default=plan.backprop_epochs,
        help=f"epochs of the transformers (default {plan.backprop_epochs}, as in the paper)",
    )
    parser.add_argument(
        "--pair-epochs",
        type=int,
        default=plan.pair_epochs,
        help="epochs of the block where 2 x 2 and 4 x 4 patches are compared (default %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="models that `compute` trains at once (default %(default)s)"
    )
    parser.add_argument(
        "--only",
        type=names_list,
        default=[],
        metavar="NAMES",
        help="jobs of `compute` to run, by the beginnings of their names, as bare-paper,backprop (default all)",
    )
    parser.add_argument(
        "--held-out",
        type=int,
        default=None,
        help="how many of the last training images are held out (default: a sixth, 10,000 of MNIST's)",
    )
    parser.add_argument("--stored-steps", type=int, default=plan.stored_steps, help="training steps for each P")
    parser.add_argument("--settle", type=int, default=plan.settle, help="steps to the attractor (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="of each kind of step in `speed` (default %(default)s)")
    parser.add_argument("--limit", type=int, help="only this many settings of the sweep (default all)")


def run(args: argparse.Namespace) -> int:
    """Run the chosen stage, or compute and draw."""
    stages = ("compute", "draw") if args.stage == "all" else (args.stage,)
    if "draw" in stages:
        from research.experiments import attractor_figures as figures

        figures.require_matplotlib()
    for stage in stages:
        if stage == "draw":
            for path in figures.draw(records.read("attractor", args.results)["outcome"], args.output):
                print(f"  -> {path}")
        else:
            {"compute": _compute, "judge": _judge, "speed": _speed, "use": _use, "sweep": _sweep}[stage](args)
    return 0


def _compute(args: argparse.Namespace) -> None:
    images = data.load_images(args.images)
    plan = Plan(
        seeds=args.seeds,
        bare_epochs=args.bare_epochs,
        backprop_epochs=args.backprop_epochs,
        pair_epochs=args.pair_epochs,
        held_out=_held_out(args, images),
        stored_steps=args.stored_steps,
        settle=args.settle,
    )
    outcome = attractor.compute(
        images,
        args.images,
        args.output,
        plan,
        state=args.state,
        device=args.device,
        processes=args.jobs,
        only=tuple(args.only),
    )
    if outcome is None:
        return
    _verdicts(outcome)
    path = records.write(
        "attractor",
        outcome,
        command="spinformer reproduce attractor --stage compute",
        config={**asdict(plan), "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    _print(outcome)
    print(f"  -> {path}")


def _judge(args: argparse.Namespace) -> None:
    """Only the verdicts change; the measurements and their provenance stay as `compute` wrote them."""
    record = records.read("attractor", args.results)
    _verdicts(record["outcome"])
    path = args.results / "attractor.json"
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(record, indent=1) + "\n")
    _print(record["outcome"])
    print(f"  -> {path}")


def _verdicts(outcome: dict[str, Any]) -> None:
    outcome["claims"] = {name: attractor_claims.judge(outcome, name) for name in BARE}
    outcome["solved"] = attractor_claims.solved(outcome)
    outcome["use"] = attractor_claims.use(outcome)


def _print(outcome: dict[str, Any]) -> None:
    for claim, verdict in [*outcome["claims"]["paper"].items(), *outcome["solved"]["verdicts"].items()]:
        print(f"  {'true ' if verdict['true'] else 'false'}  {claim}")
    for name, row in outcome["use"].items():
        print(f"  {name}: {json.dumps(row)}")


def _speed(args: argparse.Namespace) -> None:
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


def _use(args: argparse.Namespace) -> None:
    images = data.load_images(args.images)
    train, held_out = _split(args, images)
    torch.set_float32_matmul_precision("high")
    test = images.test.to(args.device)
    outcome = attractor_use.run(train, held_out, test, seeds=args.seeds, epochs=args.bare_epochs)
    path = records.write(
        "attractor-use",
        outcome,
        command="spinformer reproduce attractor --stage use",
        config={"seeds": args.seeds, "train": len(train), "held_out": len(held_out), "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    for name, row in outcome["table"].items():
        print(f"  {name}: {json.dumps(row)}")
    print(f"  -> {path}")


def _sweep(args: argparse.Namespace) -> None:
    images = data.load_images(args.images)
    train, held_out = _split(args, images)
    epochs = args.bare_epochs or 3
    rows = attractor_sweep.run(train, held_out, epochs=epochs, limit=args.limit)
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


def _choice(row: dict[str, float]) -> str:
    return f"(λ {row['strength']}, γ {row['inertia']}, t {row['step']})"


def _split(args: argparse.Namespace, images: data.Images) -> tuple[torch.Tensor, torch.Tensor]:
    """Training images and 2,000 of the held-out ones, on the device."""
    count = _held_out(args, images)
    return images.train[:-count].to(args.device), images.train[-count:][:2000].to(args.device)


def _held_out(args: argparse.Namespace, images: data.Images) -> int:
    count: int = len(images.train) // 6 if args.held_out is None else args.held_out
    if not 0 < count < len(images.train):
        raise ValueError(f"--held-out must leave some of the {len(images.train)} training images; got {count}")
    return count
