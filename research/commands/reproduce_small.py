"""Make the small classifier that is part of the package from the larger one in checkpoints/.

It is a smaller copy that learns from the larger one's answers, stored in 8 bits, with a game of its own. Needs a GPU
and the corpora as files: snli_train, snli_dev, snli_test, mnli_train, mnli_dev_matched (.jsonl.gz, with premise,
hypothesis and label). A run that was stopped continues when it is started again. The variant with the highest accuracy
on SNLI dev becomes the model in --output. With --game the classifier in --output stays, and its game is learnt anew.
"""

import argparse
import json
import shutil
from pathlib import Path

from research.commands.options import add_results
from research.experiments.nli import TRAIN
from research.experiments.nli_small import (
    MAX_BYTES,
    PIECES,
    SETS,
    VARIANTS,
    Plan,
    choose,
    make_variants,
    renew_game,
)
from research.experiments.small_card import write_card
from research.paths import ROOT
from research.steps import CHECKPOINT
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer.models.shipped import EMBEDDED

NAME = "nli-small"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument(
        "--teacher", type=Path, default=ROOT / CHECKPOINT, help="folder of the larger classifier (default: our own)"
    )
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="what to train")
    parser.add_argument("--vocabulary", type=int, default=PIECES, help="word pieces (default %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs/small"), help="folder for models (default %(default)s)")
    parser.add_argument("--game", action="store_true", help="learn the game of the classifier in --output anew")
    parser.add_argument("--jobs", type=int, default=1, help="variants at a time (default 1)")
    parser.add_argument("--change", type=json.loads, default={}, metavar="JSON", help="replaces options of the recipe")
    parser.add_argument("--ground", type=json.loads, default={}, metavar="JSON", help="replaces options of grounding")
    parser.add_argument("--count", type=int, help="rows of each set that are scored (default all)")
    parser.add_argument(
        "--output", type=Path, default=EMBEDDED, help="folder for the classifier (default: its place in the package)"
    )
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    """Make the variants, put the best one in its place, and write the result."""
    needed = dict.fromkeys(TRAIN if args.game else (*TRAIN, *SETS))
    missing = [name for name in needed if not (args.data / f"{name}.jsonl.gz").is_file()]
    if missing:
        raise FileNotFoundError(f"{args.data} lacks {', '.join(f'{name}.jsonl.gz' for name in missing)}")
    if not (args.teacher / "config.json").is_file():
        raise FileNotFoundError(f"there is no classifier in {args.teacher}")
    args.runs.mkdir(parents=True, exist_ok=True)
    plan = Plan(args.teacher, args.data, args.runs, args.vocabulary, args.change, args.ground, args.count)
    if args.game:
        return _renew(args, plan)
    variants = make_variants(args.variants, plan, workers=args.jobs)
    if not variants:
        raise ValueError("every variant failed")
    best = choose(variants)
    shutil.copytree(plan.finished(best), args.output, dirs_exist_ok=True)
    write_card(args.output, variants[best])
    outcome = {
        "chosen": best,
        "largest": MAX_BYTES,
        "files": _digests(args.output),
        "variants": {name: {**record["outcome"], "written": record["written"]} for name, record in variants.items()},
    }
    path = records.write(
        NAME,
        outcome,
        command="spinformer reproduce small",
        config={name: record["config"] for name, record in variants.items()},
        data=variants[best]["data"],
        directory=args.results,
    )
    print(f"{best} of {', '.join(variants)}: {args.output}; {path}")
    return 0 if len(variants) == len(args.variants) else 1


def _renew(args: argparse.Namespace, plan: Plan) -> int:
    """The same with a new game; the record keeps what it says of the classifier."""
    record = renew_game(args.output, plan, records.read(NAME, args.results))
    best = record["outcome"]["chosen"]
    outcome, config = record["outcome"], record["config"]
    write_card(args.output, {"outcome": outcome["variants"][best], "config": config[best]})
    path = records.write(
        NAME,
        {**outcome, "files": _digests(args.output)},
        command="spinformer reproduce small --game",
        config=config,
        data=record["data"],
        directory=args.results,
    )
    print(f"{best}: fit {outcome['variants'][best]['fit']:.3f}; {args.output}; {path}")
    return 0


def _digests(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path) for path in sorted(folder.rglob("*.safetensors"))}
