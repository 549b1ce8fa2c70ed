"""Make every result of research/results, then README.md, docs/*.md and the pictures that are made from results.

Results that are there are kept, unless --anew asks for them. With --from-results nothing is measured: the documents are
written from the results alone, as `make docs` does. Stages that train need a GPU; they continue after a stop.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from research.commands.options import add_encoders, add_results, read_encoders
from research.paths import ROOT
from research.reports.documents import draw_figures, write_documents
from research.steps import BY_NAME, CHECKPOINT, INPUTS, STEPS, Step
from spinformer.cli import main

ENCODERS = ("minilm", "mpnet")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--from-results", action="store_true", help="measure nothing; write the documents alone")
    parser.add_argument("--list", action="store_true", help="show every result and its command; do nothing")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="results to make (default all)")
    parser.add_argument("--anew", action="store_true", help="make results again that are there")
    parser.add_argument("--data", help="folder of the corpora (see `spinformer reproduce nli --help`)")
    add_encoders(parser)
    parser.add_argument("--vectors", help="GloVe file, for the models on word vectors")
    parser.add_argument(
        "--images", help="MNIST, for the attractor network (see `spinformer reproduce attractor --help`)"
    )
    parser.add_argument("--runs", default="runs", help="folder for trained models (default %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=ROOT, help="where README.md and docs are written (default: here)"
    )
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    """Make what is missing, then write the documents."""
    if args.list:
        return _list(args)
    if not args.from_results:
        inputs = _inputs(args)
        steps = plan(args.only, args.results, Path(args.runs), anew=args.anew)
        _check(steps, inputs)
        for number, step in enumerate(steps, 1):
            print(f"[{number} of {len(steps)}] {step.name}: {step.short}", flush=True)
            status = main(_command(step, inputs, args))
            if status != 0 and not _made(step, args.results):
                raise ValueError(f"{step.name} failed; the same command continues from here")
            if step.name == "attractor":
                _draw_attractor(args)
    for path in [*write_documents(args.results, args.output), *draw_figures(args.results, args.output)]:
        print(f"written: {path.relative_to(args.output)}")
    return 0


def plan(only: Sequence[str], results: Path, runs: Path, *, anew: bool = False) -> list[Step]:
    """The steps to run, in order: those asked for whose results are not there, and those whose models they need."""
    unknown = [name for name in only if name not in BY_NAME]
    if unknown:
        raise ValueError(f"there is no result {', '.join(unknown)}; `spinformer reproduce all --list` shows them")
    lost = [f"{name}: {BY_NAME[name].removed}" for name in only if BY_NAME[name].removed]
    if lost:
        raise ValueError("; ".join(lost))
    wanted = {
        step.name
        for step in STEPS
        if not step.removed
        and (step.name in only or (not only and not step.extra))
        and (anew or not _made(step, results))
    }
    makers = {model: step.name for step in STEPS for model in step.makes}
    for step in reversed(STEPS):  # a step comes after those whose models it uses
        if step.name in wanted:
            wanted |= {makers[model] for model in step.missing_models(runs)}
    return [step for step in STEPS if step.name in wanted]


def _inputs(args: argparse.Namespace) -> dict[str, str]:
    """What the user named, by the keys of INPUTS."""
    given = {key: getattr(args, key) for key in ("data", "vectors", "images") if getattr(args, key)}
    return given | read_encoders(args.encoder, ENCODERS)


def _check(steps: Sequence[Step], inputs: dict[str, str]) -> None:
    """Say in one line what is missing, before anything runs."""
    lacking: dict[str, list[str]] = {}
    for step in steps:
        for key in step.inputs:
            if key not in inputs:
                lacking.setdefault(" ".join(INPUTS[key]), []).append(step.name)
    if lacking:
        needs = "; ".join(f"{option} (for {', '.join(names)})" for option, names in lacking.items())
        raise ValueError(f"missing: {needs}. --only names what to make, --from-results makes the documents alone")
    absent = [f"{key} {inputs[key]}" for key in inputs if key != "images" and not Path(inputs[key]).exists()]
    if absent:
        raise FileNotFoundError(f"there is no {', no '.join(absent)}")
    slow = [step.name for step in steps if step.gpu]
    if slow and not torch.cuda.is_available():
        print(f"without a GPU these take days: {', '.join(slow)}", flush=True)


def _command(step: Step, inputs: dict[str, str], args: argparse.Namespace) -> list[str]:
    """The words of the step, with the folder that results go to; a training has none."""
    words = step.command(inputs, args.runs, str(ROOT / CHECKPOINT))
    if step.words[0] == "train":
        return words
    return [*words, "--output" if step.words[0] in ("bench", "torture") else "--results", str(args.results)]


def _made(step: Step, results: Path) -> bool:
    """Whether the step's result is there."""
    return (results / f"{step.name}.json").is_file()


def _draw_attractor(args: argparse.Namespace) -> None:
    """Draw the figures of the attractor paper, and put them where the documents show them."""
    folder = Path(args.runs) / "attractor"
    main(["reproduce", "attractor", "--stage", "draw", "--output", str(folder), "--results", str(args.results)])
    shown = args.output / "docs" / "figures"
    shown.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.png")):
        shutil.copy(path, shown / f"attractor-{path.name}")


def _list(args: argparse.Namespace) -> int:
    width = max(len(step.name) for step in STEPS)
    for step in STEPS:
        there = "there" if _made(step, args.results) else "model" if step.words[:1] == ("train",) else "not run"
        print(f"{step.name:<{width}}  {there:<8} {step.short if step.words else step.removed}")
    return 0
