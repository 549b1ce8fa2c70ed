"""Reproduce the attractor paper: Figures 1 and 2, its claims, and the bare layer beside trivial predictors.

Stages, each of which may run on another machine:
  compute   train every model and measure it: attractor.json, attractor-use.json and OUTPUT/examples.safetensors
  judge     judge the claims again from attractor.json
  draw      draw OUTPUT/*.png from these two files (needs the extra `plot`)
  speed     the training step against autograd, and the full training of the paper: attractor-speed-DEVICE.json
  use       the part of `compute` that attractor-use.json needs: λ, γ and steps chosen on held-out images
  sweep     settings of the bare layer on held-out training images: attractor-sweep.json
  strengths λ in training and in testing in the paper's setting, on the same images: attractor-strengths.json
  pixels    masked prediction, error over the hidden and over all pixels, on few images: attractor-pixels.json
The JSON files go to --results. `compute` continues after a stop when it is started again: the record of every finished
job lies in STATE/results.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from research.commands import attractor_stages
from research.commands.options import add_results
from research.experiments import attractor, attractor_claims
from research.experiments.attractor_jobs import JUDGED, Job, Plan
from spinformer._base import records
from spinformer._base.files import atomic_write
from spinformer.cli.options import add_device, names_list
from spinformer.data import images as data

STAGES = ("compute", "judge", "draw", "speed", "use", "sweep", "strengths", "pixels")
STAGE_OF = {"attractor": "compute", "attractor-use": "use"}


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
        "--bare-epochs",
        type=int,
        help="epochs of the bare layers (default 20; `sweep` 3; `pixels`, and `speed` on a CPU, 1)",
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
        "--jobs",
        type=int,
        default=1,
        help="models that `compute`, `sweep` and `strengths` train at once (default %(default)s)",
    )
    parser.add_argument(
        "--only",
        type=names_list,
        default=[],
        metavar="NAMES",
        help="jobs of `compute` to run now, by the beginnings of their names, as bare-paper,backprop (default all)",
    )
    parser.add_argument(
        "--without",
        type=names_list,
        default=[],
        metavar="NAMES",
        help="jobs that `compute` leaves out, by the beginnings of their names, as bare-paper-adam (default none)",
    )
    parser.add_argument(
        "--restore",
        action="store_true",
        help="take finished jobs of `compute` from attractor.json and attractor-use.json in RESULTS",
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
    parser.add_argument(
        "--limit",
        type=int,
        help="only this many settings of `sweep` (default all), or training images of `pixels` and `strengths`",
    )


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
            RUN[stage](args)
    return 0


def _compute(args: argparse.Namespace) -> None:
    images = data.load_images(args.images)
    plan = _plan(args, images)
    if args.restore:
        result, used = (records.read(name, args.results) for name in STAGE_OF)
        print(f"  restored: {len(attractor.restore(result, used, plan, _state(args)))} jobs")
    _run_jobs(args, images, plan, attractor.select(plan, args.only, args.without))
    found = attractor.gather(attractor.select(plan, (), args.without), images, plan, _state(args))
    if found is None:
        return
    attractor.save_examples(list(found), _state(args), args.output)
    outcome = attractor.together(found)
    _verdicts(outcome)
    origin = {"measured": attractor.provenance(list(found), _state(args))}
    _write(args, "attractor", outcome | origin, images, plan)
    _print(outcome)
    _write(args, "attractor-use", attractor.use(found) | origin, images, plan)


def _use(args: argparse.Namespace) -> None:
    images = data.load_images(args.images)
    plan = _plan(args, images)
    chosen = [job for job in attractor.jobs(plan) if job.kind == "trivial" or job.used]
    _run_jobs(args, images, plan, chosen)
    found = attractor.gather(chosen, images, plan, _state(args))
    assert found is not None
    outcome = attractor.use(found) | {"measured": attractor.provenance(chosen, _state(args))}
    for name, row in outcome["table"].items():
        print(f"  {name}: {json.dumps(row)}")
    _write(args, "attractor-use", outcome, images, plan)


def _run_jobs(args: argparse.Namespace, images: data.Images, plan: Plan, chosen: list[Job]) -> None:
    attractor.run_jobs(chosen, images, args.images, plan, state=_state(args), device=args.device, processes=args.jobs)


def _state(args: argparse.Namespace) -> Path:
    return args.state or args.output / "state"


def _plan(args: argparse.Namespace, images: data.Images) -> Plan:
    return Plan(
        seeds=args.seeds,
        bare_epochs=args.bare_epochs,
        backprop_epochs=args.backprop_epochs,
        pair_epochs=args.pair_epochs,
        held_out=attractor_stages.held_out(args, images),
        stored_steps=args.stored_steps,
        settle=args.settle,
    )


def _write(args: argparse.Namespace, name: str, outcome: dict[str, Any], images: data.Images, plan: Plan) -> None:
    """Write the result with the commit, hardware and versions that most of its jobs were run with."""
    path = records.write(
        name,
        outcome,
        command=f"spinformer reproduce attractor --stage {STAGE_OF[name]}",
        config={**asdict(plan), "images": images.name},
        data=images.digests,
        directory=args.results,
    )
    origin = {key: value for key, value in outcome["measured"][0].items() if key != "jobs"}
    _replace(path, records.read(name, args.results) | origin)
    print(f"  -> {path}")


def _replace(path: Path, record: dict[str, Any]) -> None:
    """Write the record; NaN and infinities become null."""
    finite = json.loads(json.dumps(record), parse_constant=lambda _: None)
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(finite, indent=1) + "\n")


def _judge(args: argparse.Namespace) -> None:
    """Only the verdicts change; the measurements and their provenance stay as `compute` wrote them."""
    record = records.read("attractor", args.results)
    _verdicts(record["outcome"])
    path = args.results / "attractor.json"
    _replace(path, record)
    _print(record["outcome"])
    print(f"  -> {path}")


def _verdicts(outcome: dict[str, Any]) -> None:
    outcome["claims"] = {
        name: attractor_claims.judge(outcome, name) for name in JUDGED if f"{name}-2" in outcome["bare"]
    }
    outcome["solved"] = attractor_claims.solved(outcome)
    outcome["use"] = attractor_claims.use(outcome)


def _print(outcome: dict[str, Any]) -> None:
    for claim, verdict in [*outcome["claims"]["paper"].items(), *outcome["solved"]["verdicts"].items()]:
        print(f"  {'true ' if verdict['true'] else 'false'}  {claim}")
    for name, row in outcome["use"].items():
        print(f"  {name}: {json.dumps(row)}")


RUN = {
    "compute": _compute,
    "judge": _judge,
    "use": _use,
    "speed": attractor_stages.speed,
    "sweep": attractor_stages.sweep,
    "strengths": attractor_stages.strengths,
    "pixels": attractor_stages.pixels,
}
