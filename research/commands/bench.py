"""Measure what the documents quote. Each benchmark writes a result, NAME.json."""

import argparse
import importlib
import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from research.commands.options import add_results
from research.data import ENCODER_SAMPLE
from research.paths import ROOT
from research.steps import CHECKPOINT
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer._base.registry import Registry

# Module of research.benchmarks, with run(seed) or run(seed, model) -> what it measures.
BENCHMARKS = {
    "equations": "every numbered equation of both papers, recomputed",
    "theory": "statements of both papers that small exact calculations decide",
    "exact": "exact values against shapiq's",
    "coverage": "how often a 95% interval contains the exact value",
    "ess": "effective sample size of Gibbs weights on encoder outputs",
    "proposals": "what the tilted proposal costs against the uniform one",
    "efficiency": "error at K = 25 against the paper's estimator at K = 250",
    "example": "the worked example of section 5 of the NeuroGame paper",
    "presets": "from the paper's preset to the default, one choice at a time",
    "targets": "how much Shapley, Banzhaf and Gibbs-weighted values differ",
    "speed": "fields and couplings against the loops of Algorithm 1",
    "linear": "growth of linear couplings with n, and their distance from dense ones",
    "crossover": "from how many tokens on linear couplings are faster than dense ones",
    "explain": "an explanation against a prediction",
    "long": "an explanation of 400 words against a prediction",
    "attention": "the layer, and classifiers with it, against softmax attention",
    "versus": "ours beside shap and captum: CPU seconds, passes, error against exact values",
    "gradients": "implicit against unrolled gradients, and their memory",
    "app": "twenty visitors of the web page at once for a minute",
}
# Benchmarks of a classifier with a game.
WITH_MODEL = ("explain", "long", "versus")
# Benchmarks that write one result on a GPU, NAME-gpu.json, and another without, NAME-cpu.json.
BY_MACHINE = ("attention",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "benchmarks:\n" + "\n".join(f"  {name:<12}{summary}" for name, summary in BENCHMARKS.items())
    parser.add_argument("name", choices=[*BENCHMARKS, "all"], metavar="NAME", help="a benchmark below, or all")
    parser.add_argument(
        "--model", help=f"classifier with a game, for {', '.join(WITH_MODEL)} (default: the one in checkpoints)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the benchmark (default 0)")
    add_results(parser, "--output")


def run(args: argparse.Namespace) -> int:
    """Run one benchmark or all; the exit status is 1 if one misses its target."""
    missed = 0
    for name in BENCHMARKS if args.name == "all" else [args.name]:
        module = importlib.import_module(f"research.benchmarks.{name}")
        start = time.perf_counter()
        model = {"model": args.model or str(ROOT / CHECKPOINT)} if name in WITH_MODEL else {}
        outcome = module.run(args.seed, **model)
        outcome["seconds_taken"] = time.perf_counter() - start
        kind = "gpu" if torch.cuda.is_available() else "cpu"
        path = records.write(
            f"{name}-{kind}" if name in BY_MACHINE else name,
            outcome,
            command=f"spinformer bench {name} --seed {args.seed}" + (" --model MODEL" if args.model else ""),
            config=_constants(module) | {"seed": args.seed},
            data={ENCODER_SAMPLE.name: sha256(ENCODER_SAMPLE)} if hasattr(module, "encoder_sample") else {},
            directory=args.output,
        )
        summary = {key: value for key, value in outcome.items() if key != "rows"}
        print(f"{name}: {json.dumps(summary)}\n  -> {path}")
        missed += not outcome["passed"]
    return int(missed > 0)


def _constants(module: ModuleType) -> dict[str, Any]:
    """Constants of a benchmark, for its record, without folders; of a registry the names."""
    constants = {key: value for key, value in vars(module).items() if key.isupper() and not isinstance(value, Path)}
    return {key: list(value) if isinstance(value, Registry) else value for key, value in constants.items()}
