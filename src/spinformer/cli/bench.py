"""Measure what the documents quote; each measurement writes results/<name>.json."""

import argparse
import importlib
import json
import time
from pathlib import Path

from spinformer import results
from spinformer.assets import SAMPLE

# name -> (module with run(seed), or run(seed, model), what it measures)
MEASUREMENTS = {
    "exact": ("spinformer.bench.exact", "exact values against shapiq's"),
    "coverage": ("spinformer.bench.coverage", "how often a 95% interval holds the exact value"),
    "ess": ("spinformer.bench.ess", "effective sample size of Gibbs weights on encoder outputs"),
    "efficiency": ("spinformer.bench.efficiency", "error at K = 25 against the paper's estimator at K = 250"),
    "example": ("spinformer.bench.example", "the worked example of section 5"),
    "presets": ("spinformer.bench.presets", "from the paper's preset to the default, one choice at a time"),
    "targets": ("spinformer.bench.targets", "how far apart the paper's two targets are"),
    "speed": ("spinformer.bench.speed", "against the loops of Algorithm 1"),
    "linear": (
        "spinformer.bench.linear",
        "growth of the linear form with n, and its distance from the dense one",
    ),
    "crossover": ("spinformer.bench.crossover", "where the linear form pays"),
    "explain": ("spinformer.bench.explain", "an explanation against a prediction "),
    "gradients": ("spinformer.bench.gradients", "implicit against unrolled gradients, and their memory"),
    "app": ("spinformer.bench.app", "twenty visitors of the web page at once for a minute"),
}
# Of a classifier with a game.
OF_A_MODEL = ("explain",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    names = "\n".join(f"  {name:<12}{text}" for name, (_, text) in MEASUREMENTS.items())
    parser.epilog = f"measurements:\n{names}"
    parser.add_argument("name", choices=[*MEASUREMENTS, "all"], metavar="NAME", help="a measurement below, or all")
    parser.add_argument("--model", help=f"classifier with a game, for {', '.join(OF_A_MODEL)} (default: the shipped)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=results.RESULTS, help="folder for the results (default results)")


def run(args: argparse.Namespace) -> int:
    """Run one measurement or all; the status is 1 if one falls short of its bar."""
    short = 0
    for name in MEASUREMENTS if args.name == "all" else [args.name]:
        module = importlib.import_module(MEASUREMENTS[name][0])
        start = time.perf_counter()
        model = {"model": args.model or _shipped()} if name in OF_A_MODEL else {}
        outcome = module.run(args.seed, **model)
        outcome["seconds_taken"] = time.perf_counter() - start
        sample = Path(results.__file__).parent / "assets" / SAMPLE
        path = results.write(
            name,
            outcome,
            command=f"spinformer bench {name} --seed {args.seed}" + (" --model MODEL" if args.model else ""),
            config={key: value for key, value in vars(module).items() if key.isupper()} | {"seed": args.seed},
            data={SAMPLE: results.sha256(sample)} if hasattr(module, "encoder_sample") else {},
            directory=args.output,
        )
        summary = {key: value for key, value in outcome.items() if key != "rows"}
        print(f"{name}: {json.dumps(summary)}\n  -> {path}")
        short += not outcome["passed"]
    return int(short > 0)


def _shipped() -> str:
    from spinformer.models.shipped import default_model

    return default_model()
