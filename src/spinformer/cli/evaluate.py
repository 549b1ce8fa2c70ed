"""Score a classifier on data sets: accuracy with a 95% interval, macro F1, calibration, NeuroGame diagnostics.

MODEL is a folder that `save_pretrained` wrote, or a name on the Hugging Face hub; any sequence classifier will do.
DATA is a file (JSONL, CSV, TSV or Parquet, also as .gz), or a named set: snli:test, mnli:dev, sample:test. Parts joined
by "+" are scored as one. Classes are matched by name. Data with entailment and non-entailment (HANS), or with only
entailment and neutral (MoNLI), is scored as entailment against all others.

With --explanations the command scores explanations of the answers instead: see the options below.
"""

import argparse
import re
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from spinformer._base import records
from spinformer._base.characters import printable
from spinformer._base.progress import remark
from spinformer.cli import evaluate_explanations
from spinformer.cli.options import (
    add_columns,
    add_device,
    add_max_length,
    add_model,
    check_not_read,
    check_output_folder,
    names_list,
    short_name,
    text_columns,
    weight_digests,
)
from spinformer.data.texts import Texts

if TYPE_CHECKING:
    from spinformer.evaluate import Evaluation

BATCH_SIZE = 64


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add_model(parser)
    add("data", metavar="DATA", nargs="+", help="files or named sets to score on")
    add("--name", help="write RESULTS/NAME.json (default: no file)")
    add("--results", type=Path, default=records.RESULTS, help="folder for that file (default %(default)s)")
    add("--output", type=Path, help="folder for figures (extra `plot`); with --explanations a JSON file")
    add(
        "--batch-size", type=int, help=f"texts at a time (default {BATCH_SIZE}); masked texts with --explanations (256)"
    )
    add_max_length(parser)
    add_columns(parser, labelled=True, note="; with --explanations without LABEL")
    add("--labels", type=names_list, help="the model's class names, in the order of its outputs: A,B,C")
    add("--data-labels", type=names_list, help="class names of files that number their classes: A,B,C")
    add_device(parser)
    add("--bf16", action="store_true", help="bfloat16 autocast, on CUDA; not with --explanations")
    evaluate_explanations.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the scores, and write the files that were named."""
    if args.name is not None:
        check_output_folder("--results", args.results)
        check_not_read("--name", args.results / f"{args.name}.json", *args.data)
    if evaluate_explanations.is_requested(args):
        return evaluate_explanations.run(args)
    from spinformer.data.sources import load_texts
    from spinformer.evaluate import class_names, evaluate, load_classifier, map_classes
    from spinformer.models.lengths import resolve_max_length

    args.batch_size = BATCH_SIZE if args.batch_size is None else args.batch_size
    if args.output is not None:
        from spinformer.evaluate.answers import figures
        from spinformer.explain.render.canvas import save_figure

        figures.check_matplotlib()
        check_output_folder("--output", args.output)
    options = text_columns(args.columns, labelled=True)
    sets: dict[str, Texts] = {}
    for source in args.data:
        sets[_key(source, sets)] = load_texts(source, names=args.data_labels, **options)
    model, tokenizer = load_classifier(args.model, device=args.device)
    names = class_names(model, args.labels)
    args.max_length = resolve_max_length(model, tokenizer, args.max_length)
    for texts in sets.values():
        map_classes(names, texts)  # refuses classes that do not fit before any work
    evaluations = {
        key: evaluate(
            model,
            tokenizer,
            texts,
            names=names,
            batch_size=args.batch_size,
            max_length=args.max_length,
            bf16=args.bf16,
        )
        for key, texts in sets.items()
    }
    print(_table(evaluations))
    for key, evaluation in evaluations.items():
        print(f"\n{_details(key, evaluation)}")
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        for key, evaluation in evaluations.items():
            for kind, draw in (("confusion", figures.confusion_figure), ("reliability", figures.reliability_figure)):
                path = args.output / f"{key}-{kind}.png"
                figure = draw(evaluation.scores, key)
                figure.set_dpi(120)
                save_figure(figure, path)
                remark(f"  -> {path}")
    if args.name is not None:
        config = {name: getattr(args, name) for name in ("batch_size", "max_length", "device", "bf16")}
        digests = {name: digest for texts in sets.values() for name, digest in texts.digests}
        path = records.write(
            args.name,
            {key: evaluation.to_dict() for key, evaluation in evaluations.items()},
            command=f"spinformer evaluate {short_name(args.model)} {' '.join(map(short_name, args.data))}",
            config={"model": short_name(args.model), "labels": list(names), **config},
            data=weight_digests(args.model) | digests,
            directory=args.results,
        )
        remark(f"  -> {path}")
    return 0


def _table(evaluations: "dict[str, Evaluation]") -> str:
    width = max(4, *map(len, evaluations))
    columns = f"{'data':<{width}}{'rows':>9}{'accuracy':>11}{'95% interval':>20}{'macro F1':>10}{'ECE':>8}{'ESS':>8}"
    lines = [columns + f"{'converged':>11}"]
    for key, evaluation in evaluations.items():
        scores, game = evaluation.scores, evaluation.game
        interval = f"[{scores.interval[0]:.2%}, {scores.interval[1]:.2%}]"
        ess, converged = ("-", "-") if game is None else (f"{game.ess_mean:.1f}", f"{game.converged:.1%}")
        lines.append(
            f"{key:<{width}}{scores.count:>9,}{scores.accuracy:>11.2%}{interval:>20}"
            f"{scores.macro_f1:>10.4f}{scores.ece:>8.4f}{ess:>8}{converged:>11}"
        )
    return "\n".join(lines)


def _details(key: str, evaluation: "Evaluation") -> str:
    scores = evaluation.scores
    names = [printable(name) for name in scores.names]
    width = max(5, *map(len, names))
    rule = "entailment against all others" if evaluation.rule == "two-class" else "classes matched by name"
    lines = [
        f"{key}: {rule}; {evaluation.truncated:,} cut to fit, {evaluation.dropped:,} without a gold label left out",
        f"  {'class':<{width}}{'precision':>11}{'recall':>9}{'F1':>9}{'rows':>9}   predicted"
        + "".join(f"{name:>{max(9, len(name) + 2)}}" for name in names),
    ]
    for row, counts in zip(scores.classes, scores.confusion, strict=True):
        cells = "".join(f"{n:>{max(9, len(name) + 2)},}" for n, name in zip(counts, names, strict=True))
        lines.append(
            f"  {printable(row.name):<{width}}{row.precision:>11.4f}{row.recall:>9.4f}{row.f1:>9.4f}{row.support:>9,}"
            f"{'':>12}{cells}"
        )
    if evaluation.game is not None:
        game = evaluation.game
        lines.append(
            f"  ESS: mean {game.ess_mean:.1f}, lowest {game.ess_min:.1f}; mean field: {game.converged:.1%} converged, "
            f"residual {game.residual_mean:.1e} on average, {game.residual_max:.1e} at most"
        )
    return "\n".join(lines)


def _key(source: str, taken: Container[str]) -> str:
    """A name for files and results: letters, digits and hyphens, with a number if it is `taken`."""
    base = re.sub(r"[^\w-]+", "-", short_name(source)).strip("-")
    key, count = base, 1
    while key in taken:
        count += 1
        key = f"{base}-{count}"
    return key
