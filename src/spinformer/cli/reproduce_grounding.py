"""Measure grounded games beside every other method of explanation: docs/grounding.md.

Stages:
  forms     one form of the game head after another, on development texts; results/grounding-forms.json
  frozen    the head on a frozen classifier, several seeds, beside the methods that are cheap; results/NAME.json
  methods   the head of one seed beside every other method; results/NAME.json
  pooling   a softmax attention on the frozen encoder, beside chance; results/NAME.json
  together  classifiers trained with objective `grounded`, beside the methods that are cheap; results/NAME.json
  ess       of games as of `frozen` or `together`, the effective sample size under Gibbs weights and the convergence of
            the mean field
A head that lies in RUNS is not trained again, and what lies in RUNS/measured is not measured again: a stage that is
stopped goes on from there. Each stage can be run for any classifier: a second task is another MODEL and other files.
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from spinformer import results
from spinformer.data.highlights import Highlights, read_highlights
from spinformer.data.named import load_texts
from spinformer.data.texts import Texts
from spinformer.experiments.forms import FORMS
from spinformer.parallel import separately
from spinformer.progress import progress
from spinformer.training.ground import Grounding

STAGES = ("forms", "frozen", "methods", "pooling", "together", "ess")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--stage", choices=STAGES, required=True)
    parser.add_argument("--model", nargs="+", required=True, help="folder of a classifier; for `together`, one a seed")
    parser.add_argument("--texts", help="file of texts to ground on (forms, frozen)")
    parser.add_argument("--test", required=True, help="file of texts to measure on")
    parser.add_argument("--highlights", type=Path, help="file of human highlights (e-SNLI)")
    parser.add_argument("--first", help="column of the only text, where the files have pairs and the model takes one")
    parser.add_argument("--count", type=int, default=1000, help="texts to measure on, the first ones (default 1000)")
    parser.add_argument("--limit", type=int, help="texts to ground on, drawn at random (default all)")
    parser.add_argument("--seeds", type=int, default=3, help="of `frozen`, `pooling` and `ess` (default 3)")
    parser.add_argument("--epochs", type=int, default=1, help="of grounding (default 1)")
    parser.add_argument("--batch-size", type=int, default=128, help="of grounding (default 128)")
    parser.add_argument("--subsets", type=int, default=4, help="masked passes a text and epoch (default 4)")
    parser.add_argument(
        "--additive",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to train the additive explainer of stage methods, which takes as long as grounding (default yes)",
    )
    parser.add_argument("--bf16", action="store_true", help="matrix products of masked passes in bfloat16")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--name", help="of the result (default grounding-STAGE)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/grounding"), help="folder for heads (default %(default)s)"
    )
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder for the JSON (default results)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(args: argparse.Namespace) -> int:
    """Run one stage."""
    if args.stage != "together" and args.texts is None:
        raise ValueError(f"stage {args.stage} needs --texts, a file of texts to ground on")
    options = Grounding(epochs=args.epochs, batch_size=args.batch_size, subsets=args.subsets)
    texts = train, test, _ = _texts(args)
    tasks: list[tuple[str, Any]]
    if args.stage == "forms":
        tasks = [(folder, form) for folder in args.model for form in FORMS]
    elif args.stage == "together":
        tasks = [(folder, seed) for seed, folder in enumerate(args.model)]
    else:
        seeds = range(args.seeds) if args.stage in ("frozen", "pooling", "ess") else range(1)
        tasks = [(folder, seed) for folder in args.model for seed in seeds]
    runs = separately(_measure, [(args, options, texts, folder, what) for folder, what in tasks], processes=args.jobs)
    measured = {place: finish() for place, finish in progress(runs, args.stage, len(tasks))}
    found = [measured[place] for place in range(len(tasks))]
    path = results.write(
        args.name or f"grounding-{args.stage}",
        {"texts": len(train), "runs": found},
        command=f"spinformer reproduce grounding --stage {args.stage}",
        config={
            "stage": args.stage,
            "count": len(test),
            "texts": len(train),
            "seeds": args.seeds,
            "bf16": args.bf16,
            **vars(options),
        },
        data=dict(train.digests + test.digests),
        directory=args.results,
    )
    print(f"{len(found)} runs; {path}")
    return 0


def _texts(args: argparse.Namespace) -> tuple[Texts, Texts, Highlights | None]:
    """Those to ground on, those to measure on, and those that people have marked."""
    test = load_texts(args.test, first=args.first, labelled=False)
    test = test.select(range(min(args.count, len(test))))
    train = test if args.texts is None else load_texts(args.texts, first=args.first, labelled=False)
    if args.limit is not None:
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))  # files may be sorted
        train = train.select(order[: args.limit].tolist())
    return train, test, None if args.highlights is None else read_highlights(args.highlights)


def _measure(
    args: argparse.Namespace, options: Grounding, texts: tuple[Texts, Texts, Highlights | None], folder: str, what: Any
) -> dict[str, Any]:
    """One run of a stage: a form by its name, or a seed; from file, if it is there. texts: as `_texts` gives them."""
    from spinformer.experiments import grounding
    from spinformer.explain.grounded import Grounded
    from spinformer.models.grounding import digest
    from spinformer.models.load import load_classifier

    model, tokenizer = load_classifier(folder, device=args.device)
    train, test, highlights = texts
    trial = grounding.Trial(model, tokenizer, train, test, highlights, bf16=args.bf16)
    number = list(FORMS).index(what) if args.stage == "forms" else what

    def found() -> dict[str, Any]:
        if args.stage == "forms":
            return grounding.form(trial, what, options, args.runs / "forms" / Path(folder).name / str(number))
        if args.stage == "together":
            return {"seed": what, **grounding.together(trial, Grounded.load(Path(folder), model))}
        place, own = args.runs / f"{Path(folder).name}-{what}", replace(options, seed=what)
        if args.stage == "methods":
            return {"seed": what, **grounding.everything(trial, own, place, additive=args.additive)}
        measure = {"frozen": grounding.frozen, "ess": grounding.ess, "pooling": grounding.pooling}[args.stage]
        return {"seed": what, **measure(trial, own, place)}

    return results.once(
        f"{args.stage}-{Path(folder).name}-{number}",
        found,
        command=f"spinformer reproduce grounding --stage {args.stage}",
        config={
            "what": what,
            "options": asdict(options),
            "model": digest(model),
            "train": train.fingerprint(),
            "test": test.fingerprint(),
            "highlights": None if highlights is None else [highlights.texts.fingerprint(), highlights.spans],
            "bf16": args.bf16,
            "additive": args.additive,
            "pooling": args.stage in ("methods", "pooling"),
        },
        directory=args.runs / "measured",
    )
