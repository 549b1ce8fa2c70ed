"""Score a classifier on data sets: accuracy with a 95% interval, macro F1, calibration, and how the game fared.

MODEL is a folder that `save_pretrained` wrote, or a name on the Hugging Face hub; any sequence classifier will do.
DATA is a file (JSONL, CSV, TSV or Parquet, .gz or not), or a named set: snli:test, mnli:dev, sample:test; parts joined
by "+" are scored as one. Classes are matched by name; data with entailment and non-entailment (HANS), or with just
entailment and neutral (MoNLI), is scored as entailment against all others.

With --explanations it is not the answers that are scored but what explains them: see the options below.
"""

import argparse
import re
from pathlib import Path
from typing import Any

import torch

from spinformer import results
from spinformer.cli import evaluate_explanations
from spinformer.data.texts import Texts, parts
from spinformer.evaluate import Evaluation, class_names, evaluate, load_classifier, map_classes


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("data", metavar="DATA", nargs="+")
    parser.add_argument("--name", help="write results/NAME.json (default: no file)")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder for it (default results)")
    parser.add_argument(
        "--output", type=Path, help="folder for figures (extra `plot`); with --explanations a JSON file"
    )
    parser.add_argument("--batch-size", type=int, help="default 64; 256 for explanations")
    parser.add_argument("--max-length", type=int, default=128, help="tokens; longer ones are cut (default %(default)s)")
    parser.add_argument(
        "--columns",
        type=words,
        help="columns of the files: TEXT,LABEL or PREMISE,HYPOTHESIS,LABEL; for explanations no LABEL (default: found)",
    )
    parser.add_argument("--labels", type=words, help="the model's class names, in the order of its outputs: A,B,C")
    parser.add_argument("--data-labels", type=words, help="class names of files that number their classes: A,B,C")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast, on CUDA")
    evaluate_explanations.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the scores; write what was asked for."""
    if evaluate_explanations.asked(args):
        return evaluate_explanations.run(args)
    from spinformer.data.named import load_texts

    args.batch_size = 64 if args.batch_size is None else args.batch_size

    if args.output is not None:
        from spinformer.evaluate import figures

        figures.ready()
    options = columns(args.columns, labelled=True)
    sets: dict[str, Texts] = {}
    for source in args.data:
        sets[_key(source, sets)] = load_texts(source, names=args.data_labels, **options)
    model, tokenizer = load_classifier(args.model, device=args.device)
    names = class_names(model, args.labels)
    for texts in sets.values():
        map_classes(names, texts)  # says what does not fit before any work
    found = {
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
    print(_table(found))
    for key, evaluation in found.items():
        print(f"\n{_details(key, evaluation)}")
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        for key, evaluation in found.items():
            for kind, draw in (("confusion", figures.confusion_figure), ("reliability", figures.reliability_figure)):
                path = args.output / f"{key}-{kind}.png"
                draw(evaluation.scores, key).savefig(path, dpi=120)
                print(f"  -> {path}")
    if args.name is not None:
        config = {name: getattr(args, name) for name in ("batch_size", "max_length", "device", "bf16")}
        path = results.write(
            args.name,
            {key: evaluation.to_dict() for key, evaluation in found.items()},
            command=f"spinformer evaluate {short(args.model)} {' '.join(map(short, args.data))}",
            config={"model": short(args.model), "labels": list(names), **config},
            data=weights(args.model) | {name: digest for texts in sets.values() for name, digest in texts.digests},
            directory=args.results,
        )
        print(f"  -> {path}")
    return 0


def words(text: str) -> list[str]:
    """An option's value: words with commas between."""
    found = [word.strip() for word in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"expected names with commas between, as A,B; got {text!r}")
    return found


def columns(given: list[str] | None, *, labelled: bool) -> dict[str, Any]:
    """What `load_texts` is told of the columns: one text or two, then the label where there is one."""
    if given is None:
        return {"labelled": labelled}
    texts, label = (given[:-1], given[-1]) if labelled else (given, None)
    if len(texts) not in (1, 2):
        raise ValueError(
            f"--columns must be one or two texts{' and the label' if labelled else ''}; got {','.join(given)}"
        )
    return {
        "labelled": labelled,
        "first": texts[0],
        "second": texts[1] if len(texts) == 2 else None,
        "label": label,
    }


def _table(found: dict[str, Evaluation]) -> str:
    width = max(4, *map(len, found))
    head = f"{'data':<{width}}{'rows':>9}{'accuracy':>11}{'95% interval':>20}{'macro F1':>10}{'ECE':>8}{'ESS':>8}"
    lines = [head + f"{'converged':>11}"]
    for key, evaluation in found.items():
        scores, game = evaluation.scores, evaluation.game
        interval = f"[{scores.interval[0]:.2%}, {scores.interval[1]:.2%}]"
        ess, converged = ("-", "-") if game is None else (f"{game.ess_mean:.1f}", f"{game.converged:.1%}")
        lines.append(
            f"{key:<{width}}{scores.count:>9,}{scores.accuracy:>11.2%}{interval:>20}"
            f"{scores.macro_f1:>10.4f}{scores.ece:>8.4f}{ess:>8}{converged:>11}"
        )
    return "\n".join(lines)


def _details(key: str, evaluation: Evaluation) -> str:
    scores = evaluation.scores
    width = max(5, *map(len, scores.names))
    rule = "entailment against all others" if evaluation.rule == "two-class" else "classes matched by name"
    lines = [
        f"{key}: {rule}; {evaluation.truncated:,} cut to fit, {evaluation.dropped:,} without a gold label left out",
        f"  {'class':<{width}}{'precision':>11}{'recall':>9}{'F1':>9}{'rows':>9}   given as "
        + "".join(f"{name:>{max(9, len(name) + 2)}}" for name in scores.names),
    ]
    for row, counts in zip(scores.classes, scores.confusion, strict=True):
        cells = "".join(f"{n:>{max(9, len(name) + 2)},}" for n, name in zip(counts, scores.names, strict=True))
        lines.append(
            f"  {row.name:<{width}}{row.precision:>11.4f}{row.recall:>9.4f}{row.f1:>9.4f}{row.support:>9,}"
            f"{'':>12}{cells}"
        )
    if evaluation.game is not None:
        game = evaluation.game
        lines.append(
            f"  ESS: mean {game.ess_mean:.1f}, lowest {game.ess_min:.1f}; mean field: {game.converged:.1%} converged, "
            f"residual {game.residual_mean:.1e} on average, {game.residual_max:.1e} at most"
        )
    return "\n".join(lines)


def short(source: str) -> str:
    """Without the folders: results say which file, not where it lay."""
    return "+".join(Path(part).name if Path(part).exists() else part for part in parts(source))


def _key(source: str, taken: dict[str, Any]) -> str:
    """A name for files and for documents that quote results: letters, digits and hyphens; no two alike."""
    base = re.sub(r"[^\w-]+", "-", short(source)).strip("-")
    key, count = base, 1
    while key in taken:
        count += 1
        key = f"{base}-{count}"
    return key


def weights(model: str) -> dict[str, str]:
    """sha256 of a model's files of weights, by their names."""
    return {path.name: results.sha256(path) for path in sorted(Path(model).glob("*.safetensors"))}
