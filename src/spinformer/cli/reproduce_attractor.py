"""Reproduce the attractor paper: Figures 1 and 2, its claims, and the bare layer beside trivial predictors.

Stages (each can run on another machine than the next):
  compute   trains every model and writes results/attractor.json and OUTPUT/examples.safetensors
  judge     judges the claims anew from what compute measured, in results/attractor.json
  draw      draws OUTPUT/*.png from those two files (needs the extra `plot`)
  speed     the training step against autograd, and the paper's whole training; results/attractor-speed-DEVICE.json
  use       the bare layer with its test-time knobs chosen on held-out images; results/attractor-use.json
  sweep     settings of the bare layer on held-out training images; results/attractor-sweep.json
Stopped, `compute` goes on where it was when started again.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from spinformer import results
from spinformer.data import images as data
from spinformer.experiments import attractor, attractor_claims, attractor_sweep, attractor_use

STAGES = ("compute", "judge", "draw", "speed", "use", "sweep")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--stage", choices=[*STAGES, "all"], default="all", help="default: compute, then draw")
    parser.add_argument(
        "--images", default="sample", help="'sample', 'hub:NAME', an .npz file or a folder (default sample)"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, default=Path("runs/attractor"), help="folder for pictures and examples")
    parser.add_argument("--state", type=Path, help="folder for trained models (default OUTPUT/state)")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder for the JSON (default results)")
    plan = attractor.Plan()
    parser.add_argument("--seeds", type=int, default=plan.seeds, help=f"of the bare layers (default {plan.seeds})")
    parser.add_argument("--bare-epochs", type=int, help="of the bare layers (default: the setting's own, 20)")
    parser.add_argument(
        "--backprop-epochs",
        type=int,
        default=plan.backprop_epochs,
        help=f"default {plan.backprop_epochs}; the paper: 100",
    )
    parser.add_argument(
        "--held-out",
        type=int,
        default=None,
        help="last training images to leave out (default: a sixth, as MNIST's 10,000)",
    )
    parser.add_argument("--stored-steps", type=int, default=plan.stored_steps, help="training steps for each P")
    parser.add_argument("--settle", type=int, default=plan.settle, help="steps to the attractor (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="of each kind of step in `speed` (default %(default)s)")
    parser.add_argument("--limit", type=int, help="settings of the sweep, the first ones (default all)")


def run(args: argparse.Namespace) -> int:
    """Run the stages asked for."""
    stages = ("compute", "draw") if args.stage == "all" else (args.stage,)
    if "draw" in stages:
        from spinformer.experiments import attractor_figures as figures

        figures.ready()
    for stage in stages:
        if stage == "draw":
            for path in figures.draw(results.read("attractor", args.results)["outcome"], args.output):
                print(f"  -> {path}")
        else:
            {"compute": _compute, "judge": _judge, "speed": _speed, "use": _use, "sweep": _sweep}[stage](args)
    return 0


def _compute(args: argparse.Namespace) -> None:
    images = data.load(args.images)
    plan = attractor.Plan(
        seeds=args.seeds,
        bare_epochs=args.bare_epochs,
        backprop_epochs=args.backprop_epochs,
        held_out=_held_out(args, images),
        stored_steps=args.stored_steps,
        settle=args.settle,
    )
    torch.set_float32_matmul_precision("high")
    outcome = attractor.compute(images, args.output, plan, state=args.state, device=args.device)
    _verdicts(outcome)
    path = results.write(
        "attractor",
        outcome,
        command="spinformer reproduce attractor",
        config={**asdict(plan), "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    _print(outcome)
    print(f"  -> {path}")


def _judge(args: argparse.Namespace) -> None:
    """Nothing but the verdicts changes: what was measured, where and when stays as `compute` wrote it."""
    record = results.read("attractor", args.results)
    _verdicts(record["outcome"])
    path = args.results / "attractor.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    _print(record["outcome"])
    print(f"  -> {path}")


def _verdicts(outcome: dict[str, Any]) -> None:
    outcome["claims"] = {name: attractor_claims.judge(outcome, name) for name in attractor.BARE}
    outcome["use"] = attractor_claims.use(outcome)


def _print(outcome: dict[str, Any]) -> None:
    for claim, verdict in outcome["claims"]["paper"].items():
        print(f"  {'true ' if verdict['true'] else 'false'}  {claim}")
    for name, row in outcome["use"].items():
        print(f"  {name}: {json.dumps(row)}")


def _speed(args: argparse.Namespace) -> None:
    from spinformer.bench import attractor_speed

    images = data.load(args.images)
    kind = torch.device(args.device).type
    outcome = {"step": attractor_speed.run_speed(args.device, repeats=args.repeats)}
    print(f"  {json.dumps(outcome['step'])}", flush=True)
    epochs = args.bare_epochs or (20 if kind == "cuda" else 1)
    outcome["training"] = attractor_speed.run_training(images, args.device, epochs=epochs)
    print(f"  {json.dumps(outcome['training'])}")
    path = results.write(
        f"attractor-speed-{'gpu' if kind == 'cuda' else 'cpu'}",
        outcome,
        command=f"spinformer reproduce attractor --stage speed --device {args.device}",
        config={"N": attractor_speed.N, "d": attractor_speed.D, "batch": attractor_speed.BATCH},
        data=images.digests,
        directory=args.results,
    )
    print(f"  -> {path}")


def _use(args: argparse.Namespace) -> None:
    images = data.load(args.images)
    train, held_out = _split(args, images)
    torch.set_float32_matmul_precision("high")
    test = images.test.to(args.device)
    outcome = attractor_use.run(train, held_out, test, seeds=args.seeds, epochs=args.bare_epochs)
    path = results.write(
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
    images = data.load(args.images)
    train, held_out = _split(args, images)
    epochs = args.bare_epochs or 3
    rows = attractor_sweep.run(train, held_out, epochs=epochs, limit=args.limit)
    path = results.write(
        "attractor-sweep",
        {"rows": rows, "train": len(train), "held_out": len(held_out)},
        command="spinformer reproduce attractor --stage sweep",
        config={"epochs": epochs, "steps": attractor_sweep.STEPS, "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    for row in sorted(rows, key=lambda row: row["masked"]["best"]):
        errors = " ".join(f"{key} {row[key]['best']:.4f}" for key in ("masked", "masked_pinned", "noisy"))
        print(f"  {errors}  {row['preset']} {json.dumps(row['changes'])} {_at(row['masked'])} {_at(row['noisy'])}")
    print(f"  -> {path}")


def _at(row: dict[str, float]) -> str:
    return f"(λ {row['strength']}, γ {row['inertia']}, t {row['step']})"


def _split(args: argparse.Namespace, images: data.Images) -> tuple[torch.Tensor, torch.Tensor]:
    """Training images and 2,000 of those held out, on the device."""
    held = _held_out(args, images)
    return images.train[:-held].to(args.device), images.train[-held:][:2000].to(args.device)


def _held_out(args: argparse.Namespace, images: data.Images) -> int:
    held: int = len(images.train) // 6 if args.held_out is None else args.held_out
    if not 0 < held < len(images.train):
        raise ValueError(f"--held-out must leave some of the {len(images.train)} training images, got {held}")
    return held
