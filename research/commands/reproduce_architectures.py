"""Train small classifiers of every architecture, learn their games and measure them: a table of docs/grounding.md.

Each is made from its configuration class, trained on TRAIN until it classifies, grounded on the same texts and
explained. Models and game heads in RUNS are not trained again and measurements in RUNS/measured are not repeated, so a
run that was stopped continues. Needs single texts with labels, such as those of SST-2.

No weights of the models are pretrained. With --vectors, the embedding of each token that is a whole word starts from
the vector of that word in a GloVe file. With --teacher, a model learns the answers of a trained classifier beside the
labels, and with --splices also those to sentences and splices (`research.experiments.splices`) of TRAIN and of MORE.
On these the models are grounded too, since the texts of SST-2 are phrases more often than sentences.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from research.commands.options import add_results
from research.experiments.architectures import ARCHITECTURES, MAX_LENGTH, Lessons, teacher_answers, train_architecture
from research.experiments.splices import with_splices
from spinformer._base import checks, records
from spinformer._base.files import sha256
from spinformer._base.parallel import run_tasks
from spinformer._base.progress import progress
from spinformer.cli.options import add_device, weight_digests
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.training.game import GroundingOptions

COMMAND = "spinformer reproduce architectures"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--train", required=True, help="file of texts with labels to train and ground on")
    parser.add_argument("--test", required=True, help="file of texts with labels to measure on")
    parser.add_argument("--vectors", type=Path, help="GloVe file that the embeddings of words start from")
    parser.add_argument(
        "--teacher", type=Path, help="folder of a classifier whose answers are learnt beside the labels"
    )
    parser.add_argument("--splices", type=int, default=0, help="splices to answer and to ground on (default none)")
    parser.add_argument("--more", nargs="+", default=[], help="files of texts without labels that are spliced too")
    parser.add_argument("--only", nargs="+", choices=tuple(ARCHITECTURES), help="of these architectures (default all)")
    parser.add_argument("--count", type=int, default=300, help="texts to measure explanations on (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=6, help="epochs of training (default %(default)s)")
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate of training (default %(default)s)")
    parser.add_argument("--ground-epochs", type=int, default=3, help="epochs of grounding (default %(default)s)")
    parser.add_argument(
        "--batch-size", type=int, default=256, help="texts in one update of either (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="architectures at a time (default %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs/architectures"), help="folder (default %(default)s)")
    add_results(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Train, ground and measure each architecture, and write the result."""
    texts = load_texts(args.train), load_texts(args.test)
    for part in texts:
        if part.labels is None or part.paired:
            raise ValueError(f"{part.source}: expected single texts with labels")
    checks.at_least("--splices", args.splices, 0)
    if args.splices and args.teacher is None:
        raise ValueError("--splices needs --teacher: splices have no labels of their own")
    if args.more and not args.splices:
        raise ValueError("--more needs --splices: its texts have no labels of their own here")
    names = [name for name in ARCHITECTURES if args.only is None or name in args.only]
    spliced = _spliced(args, texts[0])
    lessons = _lessons(args, texts[0], spliced, names)
    results = run_tasks(_measured, [(args, texts, spliced, lessons, name) for name in names], processes=args.jobs)
    outcomes = {names[index]: result() for index, result in progress(results, "architectures", len(names))}
    path = records.write(
        "architectures",
        {"architectures": {name: outcomes[name] for name in names}},
        command=COMMAND,
        config=_config(args),
        data=dict(texts[0].digests + texts[1].digests) | _digests(args),
        directory=args.results,
    )
    for name in names:
        print(f"{name:12} accuracy {outcomes[name]['accuracy']:.3f}, R2 of v {outcomes[name]['r2']:.3f}")
    print(path)
    return 0


def _config(args: argparse.Namespace) -> dict[str, Any]:
    names = ("count", "epochs", "rate", "ground_epochs", "batch_size", "seed", "splices")
    aids = {name: getattr(args, name).name for name in ("vectors", "teacher") if getattr(args, name)}
    return {name: getattr(args, name) for name in names} | aids | {"more": [Path(path).name for path in args.more]}


def _digests(args: argparse.Namespace) -> dict[str, str]:
    """The sha256 of the files beside the texts that the models learn from."""
    files = [*([args.vectors] if args.vectors else []), *map(Path, args.more)]
    return {path.name: sha256(path) for path in files} | (weight_digests(str(args.teacher)) if args.teacher else {})


def _spliced(args: argparse.Namespace, train: Texts) -> Texts | None:
    """Sentences and splices of the texts to train on and of others; None without --splices."""
    if not args.splices:
        return None
    more = [load_texts(path, labelled=False) for path in args.more]
    texts = [*train.first, *(text for part in more for text in part.first)]
    return with_splices(replace(train, first=texts, labels=None, names=()), args.splices, args.seed)


def _lessons(args: argparse.Namespace, train: Texts, spliced: Texts | None, names: Sequence[str]) -> Lessons:
    """What the models learn from beside texts and labels; nothing if they are all trained already."""
    from spinformer.models.baselines.vectors import read_vectors

    if all((args.runs / name / "config.json").is_file() for name in names):
        return Lessons()
    vectors = read_vectors(args.vectors) if args.vectors else None
    if args.teacher is None:
        return Lessons(vectors)
    answers = teacher_answers(args.teacher, train, train.names, args.device)
    if spliced is None:
        return Lessons(vectors, answers)
    others = teacher_answers(args.teacher, spliced, train.names, args.device)
    return Lessons(vectors, answers, tuple(spliced.first), others)


def _measured(
    args: argparse.Namespace, texts: tuple[Texts, Texts], spliced: Texts | None, lessons: Lessons, name: str
) -> dict[str, Any]:
    """The outcome of one architecture, from file if it is there."""
    train, test = texts
    learnt = {"train": train.fingerprint(labelled=True), "test": test.fingerprint(labelled=True)} | _digests(args)
    return records.once(
        name,
        lambda: _measure(args, train, test, spliced, lessons, name),
        command=COMMAND,
        config=_config(args) | learnt,
        directory=args.runs / "measured",
    )


def _measure(
    args: argparse.Namespace, train: Texts, test: Texts, spliced: Texts | None, lessons: Lessons, name: str
) -> dict[str, Any]:
    from research.experiments.grounding import Trial, measure_frozen
    from spinformer.evaluate.answers.evaluation import evaluate
    from spinformer.models.loading import load_classifier

    folder: Path = args.runs / name
    if not (folder / "config.json").is_file():
        train_architecture(
            name,
            train,
            folder,
            lessons,
            epochs=args.epochs,
            batch_size=args.batch_size,
            rate=args.rate,
            seed=args.seed,
            device=args.device,
        )
    model, tokenizer = load_classifier(folder, device=args.device)
    few = test.select(range(min(args.count, len(test))))
    trial = Trial(model, tokenizer, spliced or train, few, max_length=MAX_LENGTH)
    options = GroundingOptions(epochs=args.ground_epochs, batch_size=args.batch_size, seed=args.seed)
    accuracy = evaluate(model, tokenizer, test).scores.accuracy
    measured = measure_frozen(trial, options, args.runs / f"{name}-game")
    return {
        "accuracy": accuracy,
        "parameters": model.num_parameters(),
        "r2": measured["fit"]["pooled"],
        "data": dict(train.digests + test.digests) | _digests(args),
        **measured,
    }
