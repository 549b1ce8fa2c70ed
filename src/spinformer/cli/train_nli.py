"""Train a classifier of texts or pairs of texts, with a NeuroGame layer or as a baseline, by a recipe.

A recipe is a YAML file of the options below; options given here replace those of the recipe. A clone of the repository
has some in research/recipes/nli. Several processes run the same command:
`torchrun --nproc-per-node 2 -m spinformer train nli ...`, or `accelerate launch`.
With --resume a run that was stopped or killed continues, to the weights that it would have had.
"""

import argparse
from pathlib import Path

from spinformer._base.extras import require
from spinformer._base.progress import remark
from spinformer.cli.options import check_output_folder
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.recipe import configure as add_recipe


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--config", type=Path, help="recipe to start from (default: the defaults below)")
    parser.add_argument("--output", type=Path, required=True, help="folder for the model, its card, logs, checkpoints")
    parser.add_argument("--resume", action="store_true", help="continue the run in the output folder")
    add_recipe(parser.add_argument_group("the recipe"))


def run(args: argparse.Namespace) -> int:
    """Train, and say where the model is and how well it does."""
    for package in ("transformers", "accelerate"):
        require(package, extra="nli")
    check_output_folder("--output", args.output)
    from accelerate import PartialState

    from spinformer.training.classifier.train import train_classifier

    recipe = ClassifierRecipe() if args.config is None else ClassifierRecipe.read(args.config)
    recipe = recipe.change(**{name: value for name, value in vars(args).items() if name in recipe.to_dict()})
    record = train_classifier(recipe, args.output, resume=args.resume, quiet=args.quiet)
    if not PartialState().is_main_process:
        return 0
    scores = [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry]
    print(f"{record['pairs']:,} rows in {record['seconds']:.0f} s; accuracy on {recipe.dev}: {scores[-1]:.4f}")
    remark(f"the model is in {args.output}; `spinformer evaluate {args.output} DATA` scores it")
    return 0
