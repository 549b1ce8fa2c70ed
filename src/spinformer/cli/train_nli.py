"""Train a classifier of sentence pairs (or single texts): the NeuroGame head or a baseline, by a recipe.

A recipe is a YAML file (configs/nli holds some); options given here replace what it says. Several processes run the
same command: `torchrun --nproc-per-node 2 -m spinformer train nli ...`, or through `accelerate launch`.
A run that was stopped, or killed, goes on with --resume to the weights that it would have had.
"""

import argparse
from pathlib import Path

from spinformer.extras import require
from spinformer.training import recipe as recipes


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--config", type=Path, help="recipe to start from (default: the options' own defaults)")
    parser.add_argument("--output", type=Path, required=True, help="folder for the model, its card, logs, checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on with the run that is in the output folder")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    recipes.configure(parser.add_argument_group("the recipe"))


def run(args: argparse.Namespace) -> int:
    """Train, and say where the model lies and how good it is."""
    for package in ("transformers", "accelerate"):
        require(package, extra="nli")
    from accelerate import PartialState

    from spinformer.training.classifier import train

    names = set(recipes.Recipe().to_dict())
    given = {name: value for name, value in vars(args).items() if name in names}
    recipe = recipes.Recipe.read(args.config) if args.config is not None else recipes.Recipe()
    recipe = recipe.change(**given)
    record = train(recipe, args.output, resume=args.resume, quiet=args.quiet)
    if not PartialState().is_main_process:
        return 0
    scores = [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry]
    print(f"{record['pairs']:,} rows in {record['seconds']:.0f} s; accuracy on {recipe.dev}: {scores[-1]:.4f}")
    print(f"the model lies in {args.output}; `spinformer evaluate {args.output} DATA` scores it")
    return 0
