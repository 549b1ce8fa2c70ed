"""Measure grounded games beside other explanation methods: docs/grounding.md.

Stages:
  frozen    a game of a frozen classifier, several seeds, beside the cheap methods
  methods   the game of one seed beside every other method
  pooling   softmax attention learnt on the frozen encoder, beside random scores
  together  classifiers trained with objective `grounded`, beside the cheap methods
  ess       effective sample size under Gibbs weights and convergence of the mean field, of games as in `frozen` or
            `together`
  tables    what the classifier says of every part of COUNT short test texts, kept in RUNS; nothing is measured
  exact     explanations with the games of `frozen`, or without --texts with the model's own game, against the exact
            values that these tables give
  peers     shapiq's estimators against the same values
  enough    games learnt from ever more of the texts (--limits): their fit, their error against these exact values, and
            the time that it took
Each but `tables` writes a result, grounding-STAGE.json or --name. Game heads in RUNS are not trained again and
measurements in RUNS/measured are not repeated, so a stage that was stopped continues. For a second task name another
MODEL and files.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from research.commands.options import add_results
from research.experiments.splices import with_splices
from spinformer._base import records
from spinformer._base.parallel import run_tasks
from spinformer._base.progress import progress
from spinformer.cli.options import add_device
from spinformer.data.highlights import Highlights, read_highlights
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.tables import ExactTable
from spinformer.training.game import HELD_OUT as USERS_HELD_OUT
from spinformer.training.game import GroundingOptions
from spinformer.training.game_options import OPTIMIZERS

STAGES = ("frozen", "methods", "pooling", "together", "ess", "tables", "exact", "peers", "enough")
SEVERAL_SEEDS = ("frozen", "pooling", "ess", "exact")
SHORT = ("tables", "exact", "peers", "enough")  # on short texts, drawn from all test texts
UNGROUNDED = ("together", "tables", "peers", "exact")  # no texts to ground on are needed


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--stage", choices=STAGES, required=True, help="what to measure")
    parser.add_argument(
        "--model", nargs="+", required=True, help="folder of a classifier; for `together`, one for each seed"
    )
    parser.add_argument("--texts", help=f"file of texts to ground on; not needed for {', '.join(UNGROUNDED)}")
    parser.add_argument("--test", required=True, help="file of texts to measure on")
    parser.add_argument("--highlights", type=Path, help="file of human highlights (e-SNLI)")
    parser.add_argument("--first", help="column of the text, if the files have pairs and the model takes single texts")
    parser.add_argument(
        "--count", type=int, help=f"measure on this many texts (default: the first 1000; for {', '.join(SHORT)} 100)"
    )
    parser.add_argument(
        "--splices",
        type=int,
        help="ground on the sentences of the texts and so many splices of them (default: neither)",
    )
    parser.add_argument("--limit", type=int, help="ground on this many texts, drawn at random (default all)")
    parser.add_argument(
        "--limits",
        type=int,
        nargs="+",
        default=[500, 2000, 8000, 32000, 100000],
        help="numbers of texts that `enough` grounds on (default 500 2000 8000 32000 100000)",
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help=f"number of seeds of {', '.join(SEVERAL_SEEDS)} (default 3)"
    )
    parser.add_argument("--epochs", type=int, help="epochs of grounding (default 1; for `enough` as `ground` does)")
    parser.add_argument(
        "--batch-size", type=int, help="batch size of grounding (default 128; for `enough` as `ground` does)"
    )
    parser.add_argument("--subsets", type=int, default=4, help="masked passes for each text and epoch (default 4)")
    parser.add_argument("--hints", type=float, default=1.0, help="weight of hidden states in grounding (default 1)")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="", help="of grounding (default: as `ground` does)")
    parser.add_argument(
        "--additive",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="train the additive explainer of stage methods, which takes as long as grounding (default yes)",
    )
    parser.add_argument("--bf16", action="store_true", help="matrix products of masked passes in bfloat16")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--name", help="name of the result (default grounding-STAGE)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/grounding"), help="folder for game heads (default %(default)s)"
    )
    add_results(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Run one stage and write its result."""
    if args.count is None:
        args.count = 100 if args.stage in SHORT else 1000
    if args.stage not in UNGROUNDED and args.texts is None:
        raise ValueError(f"stage {args.stage} needs --texts, a file of texts to ground on")
    usual = (0, 0) if args.stage == "enough" else (1, 128)  # 0: by the number of texts
    epochs, size = (given or value for given, value in zip((args.epochs, args.batch_size), usual, strict=True))
    options = GroundingOptions(
        epochs=epochs, batch_size=size, subsets=args.subsets, hints=args.hints, optimizer=args.optimizer
    )
    texts = train, test, _ = _texts(args)
    tasks: list[tuple[str, int, int | None]]
    if args.stage == "together" or _own_games(args):
        tasks = [(folder, seed, None) for seed, folder in enumerate(args.model)]
    elif args.stage == "enough":
        limits = [limit for limit in args.limits if limit < len(train)]
        tasks = [(folder, 0, limit) for folder in args.model for limit in (*limits, len(train))]
    else:
        seeds = range(args.seeds) if args.stage in SEVERAL_SEEDS else range(1)
        tasks = [(folder, seed, None) for folder in args.model for seed in seeds]
    results = run_tasks(_measure, [(args, options, texts, *task) for task in tasks], processes=args.jobs)
    outcomes = {index: result() for index, result in progress(results, args.stage, len(tasks))}
    if args.stage == "tables":
        print(f"tables are in {args.runs}")
        return 0
    path = records.write(
        args.name or f"grounding-{args.stage}",
        {"texts": len(train), "runs": [outcomes[index] for index in range(len(tasks))]},
        command=f"spinformer reproduce grounding --stage {args.stage}",
        config={
            "stage": args.stage,
            "count": args.count if args.stage in SHORT else len(test),
            "texts": len(train),
            "splices": args.splices,
            "seeds": args.seeds,
            "bf16": args.bf16,
            **vars(options),
        },
        data=dict(train.digests + test.digests),
        directory=args.results,
    )
    print(f"{len(outcomes)} runs; {path}")
    return 0


def _texts(args: argparse.Namespace) -> tuple[Texts, Texts, Highlights | None]:
    """Texts to ground on, texts to measure on, and texts with human highlights."""
    test = load_texts(args.test, first=args.first, labelled=False)
    if args.stage not in SHORT:
        test = test.select(range(min(args.count, len(test))))
    train = test if args.texts is None else load_texts(args.texts, first=args.first, labelled=False)
    if args.splices is not None:
        train = with_splices(train, args.splices)
    if args.limit is not None:
        train = limited(train, args.limit)
    return train, test, None if args.highlights is None else read_highlights(args.highlights)


def _own_games(args: argparse.Namespace) -> bool:
    """Whether `exact` measures the games that lie with the models."""
    return args.stage == "exact" and args.texts is None


def limited(texts: Texts, limit: int) -> Texts:
    """So many of the texts, drawn at random: files may be sorted. Fewer are among more."""
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0))
    return texts.select(order[:limit].tolist())


def _measure(
    args: argparse.Namespace,
    options: GroundingOptions,
    texts: tuple[Texts, Texts, Highlights | None],
    folder: str,
    seed: int,
    limit: int | None,
) -> dict[str, Any]:
    """The outcome of one run of a stage, from file if it is there.

    texts: as `_texts` returns them; limit: texts to ground on, of the stage `enough`.
    """
    from research.experiments import exactness, grounding
    from research.experiments.games import load_game
    from spinformer._base.files import sha256
    from spinformer.models.game_head import FOLDER, WEIGHTS
    from spinformer.models.identity import weights_digest
    from spinformer.models.loading import load_classifier

    model, tokenizer = load_classifier(folder, device=args.device)
    train, test, highlights = texts
    train = train if limit is None else limited(train, limit)
    name = f"{Path(folder).name}-{seed if limit is None else limit}"
    held_out = USERS_HELD_OUT if args.stage == "enough" else grounding.HELD_OUT
    trial = grounding.Trial(model, tokenizer, train, test, highlights, bf16=args.bf16, held_out=held_out)
    own = _own_games(args)
    heads, seeded = args.runs / (name if limit is None else f"enough-{name}"), replace(options, seed=seed)
    tables: Sequence[ExactTable] = ()
    if args.stage in SHORT:
        file = args.runs / f"{Path(folder).name}-{Path(args.test).name.split('.')[0]}.safetensors"
        short, tables = exactness.exact_tables(trial, options, args.count, file)
        if args.stage == "tables":
            return {}

    def measure() -> dict[str, Any]:
        if args.stage == "together":
            return {"seed": seed, **grounding.measure_game(trial, load_game(model, Path(folder)))}
        if args.stage == "peers":
            return exactness.measure_others(tables)
        if args.stage == "exact":
            head = load_game(model, Path(folder)).head if own else grounding.ground(trial, seeded, heads)[0]
            return {"seed": seed, **exactness.measure_ours(trial, head, short, tables)}
        if args.stage == "enough":
            return exactness.measure_enough(trial, seeded, heads, short, tables)
        if args.stage == "methods":
            return {"seed": seed, **grounding.measure_all(trial, seeded, heads, additive=args.additive)}
        functions = {
            "frozen": grounding.measure_frozen,
            "ess": grounding.measure_ising,
            "pooling": grounding.measure_pooling,
        }
        return {"seed": seed, **functions[args.stage](trial, seeded, heads)}

    return records.once(
        f"{args.stage}-{Path(folder).name}-{Path(args.test).name.split('.')[0]}-{seed if limit is None else limit}",
        measure,
        command=f"spinformer reproduce grounding --stage {args.stage}",
        config={
            "what": seed,
            "options": asdict(options),
            "model": weights_digest(model),
            "game": sha256(Path(folder) / FOLDER / WEIGHTS) if own else None,
            "train": train.fingerprint(),
            "test": test.fingerprint(),
            "tables": [table.key for table in tables],
            "highlights": None if highlights is None else [highlights.texts.fingerprint(), highlights.spans],
            "bf16": args.bf16,
            "additive": args.additive,
            "pooling": args.stage in ("methods", "pooling"),
        },
        directory=args.runs / "measured",
    )
