"""Fine-tune an encoder on five tasks, ground each classifier and measure its explanations.

SST-2 (one of two classes), GoEmotions (28 labels, several at once), STS-B (a score of a pair), IMDB (long reviews) and
SNLI (one of three classes of a pair): files of DATA, sst2_train.jsonl.gz and so on. Beside the explanation from one
pass stands KernelSHAP, with 200 masked passes for each text and with 1,000 for each long one. Classifiers and game
heads in RUNS are not trained again and measurements in RUNS/measured are not repeated, so a run that was stopped
continues.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from research.commands.options import add_encoders, add_results, read_encoders
from research.experiments.tasks import TASKS, fine_tune, measure_task, quality, read_task, texts_to_ground
from spinformer._base import checks, records
from spinformer._base.parallel import run_tasks
from spinformer._base.progress import progress
from spinformer.cli.options import add_device, weight_digests
from spinformer.training.game import HELD_OUT, GroundingOptions

COMMAND = "spinformer reproduce tasks"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the files of texts")
    add_encoders(parser)
    parser.add_argument("--only", nargs="+", choices=tuple(TASKS), help="of these tasks (default all)")
    parser.add_argument("--count", type=int, default=300, help="texts to measure explanations on (default %(default)s)")
    parser.add_argument(
        "--limit", type=int, help="ground on this many texts, drawn at random, as `ground` does (default: on all)"
    )
    parser.add_argument("--epochs", type=int, help="epochs of grounding (default the task's own)")
    parser.add_argument("--subsets", type=int, help="masked passes of a text and epoch (default 8; with --limit 4)")
    parser.add_argument("--batch-size", type=int, help="texts in one update of grounding (default the task's own)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default %(default)s)")
    parser.add_argument("--bf16", action="store_true", help="matrix products of masked passes in bfloat16")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time (default %(default)s)")
    parser.add_argument("--name", default="tasks", help="name of the result (default %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs/tasks"), help="folder (default %(default)s)")
    add_results(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Fine-tune, ground and measure the classifier of each task, and write the result."""
    checks.at_least("--count", args.count, 2)
    encoders = read_encoders(args.encoder, ("minilm",))
    if not encoders:
        raise ValueError("expected --encoder minilm=FOLDER, the encoder to fine-tune; got none")
    names = [name for name in TASKS if args.only is None or name in args.only]
    needed = {file for name in names for file in (TASKS[name].train, TASKS[name].test, *TASKS[name].more)}
    missing = sorted(file for file in needed if not (args.data / f"{file}.jsonl.gz").is_file())
    if missing:
        raise FileNotFoundError(f"{args.data} lacks {', '.join(f'{file}.jsonl.gz' for file in missing)}")
    results = run_tasks(_measured, [(args, name, encoders["minilm"]) for name in names], processes=args.jobs)
    outcomes = {names[index]: result() for index, result in progress(results, "tasks", len(names))}
    path = records.write(
        args.name,
        {"tasks": {name: outcomes[name] for name in names}},
        command=COMMAND,
        config=_config(args),
        data={file: digest for name in names for file, digest in outcomes[name]["data"].items()},
        directory=args.results,
    )
    for name in names:
        scores = outcomes[name]["faithfulness"]["methods"]
        one, many = (scores[method]["comprehensiveness"]["mean"] for method in ("shapley", "kernel-shap"))
        print(f"{name:11} R2 of v {outcomes[name]['r2']:.3f}, comprehensiveness {one:.3f}, KernelSHAP's {many:.3f}")
    print(path)
    return 0


def _config(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in ("count", "limit", "epochs", "subsets", "batch_size", "seed", "bf16")}


def _measured(args: argparse.Namespace, name: str, encoder: str) -> dict[str, Any]:
    """The outcome of one task, from file if it is there."""
    return records.once(
        name,
        lambda: _measure(args, name, encoder),
        command=COMMAND,
        config=_config(args) | {"task": asdict(TASKS[name]), "encoder": weight_digests(encoder)},
        directory=args.runs / "measured",
    )


def _measure(args: argparse.Namespace, name: str, encoder: str) -> dict[str, Any]:
    from research.commands.reproduce_grounding import limited
    from research.experiments.grounding import Trial
    from spinformer.models.loading import load_classifier
    from spinformer.models.predict import predict

    task, folder = TASKS[name], args.runs / name
    train = read_task(task, args.data, "train")
    test = read_task(task, args.data, "test", train.names)
    if not (folder / "config.json").is_file():
        fine_tune(task, train, Path(encoder), folder, seed=args.seed, device=args.device)
    model, tokenizer = load_classifier(folder, device=args.device)
    logits = predict(model, tokenizer, test.texts, batch_size=256, max_length=task.max_length).logits
    grounded_on = texts_to_ground(task, train.texts, args.data)
    if args.limit is not None:
        grounded_on = limited(grounded_on, args.limit)
    few = limited(test.texts, args.count)
    # the misfit is measured on as many texts as by `spinformer ground`
    given = {"max_length": task.max_length, "bf16": args.bf16, "held_out": HELD_OUT}
    trial = Trial(model, tokenizer, grounded_on, few, **given)
    usual = {"epochs": task.ground_epochs, "batch_size": task.ground_batch, "subsets": 8}
    named = {name: getattr(args, name) for name in usual if getattr(args, name) is not None}
    options = GroundingOptions(**{**(usual if args.limit is None else {}), **named}, seed=args.seed)
    measured = measure_task(task, trial, options, args.runs / f"{name}-game")
    return {
        "quality": quality(logits.float().cpu(), test.answers, task.outputs),
        "texts": len(grounded_on),
        "data": dict(grounded_on.digests + test.texts.digests),
        "device": args.device,
        **measured,
    }
