"""`spinformer evaluate --explanations`: how faithful and how stable explanations are, and what they cost."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from spinformer._base import checks, records
from spinformer._base.choices import MASKINGS
from spinformer._base.files import atomic_text
from spinformer._base.progress import remark
from spinformer.cli import evaluate_exactness
from spinformer.cli.options import (
    aligned,
    check_not_read,
    check_output_file,
    check_pairs,
    method_summaries,
    short_name,
    text_columns,
    weight_digests,
)

if TYPE_CHECKING:
    from spinformer.cli.exactness_plan import ExactnessPlan
    from spinformer.data.texts import Texts
    from spinformer.explain.explainer import Explainer
    from spinformer.explain.methods.additive import AdditiveExplainer
    from spinformer.models.masked import MaskedClassifier

DESCRIPTION = """\
For each method: comprehensiveness and sufficiency (means at 1, 5, 10, 20 and 50% of the words), correlation with
leave-one-out, stability over seeds, passes and milliseconds for each text. Where the classifier has a game (`spinformer
ground` learns one), also the fit of v(C), and its interactions against the exact ones on short texts. Methods:
"""
COUNT, PASSES, SEEDS, ADDITIVE_PASSES = 200, 200, [0, 1, 2], 50_000
OPTIONS = (
    *("methods", "count", "highlights", "seeds", "passes", "game", "masking", "additive", "additive_passes"),
    *evaluate_exactness.OPTIONS,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the group; None is the default of each, so that those given without --explanations can be refused."""
    group = parser.add_argument_group("explanations", DESCRIPTION + aligned(method_summaries()))
    add = group.add_argument
    add("--explanations", action="store_true", help="score explanations; DATA is one source, which needs no labels")
    add("--methods", nargs="+", metavar="METHOD", help="methods to compare (default: all that this classifier offers)")
    add("--count", type=int, help=f"texts to measure on, the first ones (default {COUNT})")
    add("--highlights", type=Path, help="file of words that people marked (e-SNLI); its first COUNT rows are used")
    add("--seeds", type=int, nargs="+", help="the methods use the first seed, stability all of them (default 0 1 2)")
    add("--passes", type=int, help=f"masked passes for each text, for methods that sample (default {PASSES})")
    add("--game", type=Path, help="folder that `spinformer ground --output` wrote (default: the model's own)")
    add("--masking", choices=MASKINGS, help="how words are hidden (default: as in the game, or attention)")
    add("--additive", help="for additive-explainer: the folder of a saved one, or texts to train one on (not saved)")
    add("--additive-passes", type=int, help=f"masked passes to train it with (default {ADDITIVE_PASSES})")
    evaluate_exactness.configure(parser)


def is_requested(args: argparse.Namespace) -> bool:
    """Whether to score explanations; their options without --explanations are an error."""
    given = [name for name in OPTIONS if getattr(args, name) is not None]
    if given and not args.explanations:
        raise ValueError(f"--{given[0].replace('_', '-')} is an option of --explanations, which was not given")
    return bool(args.explanations)


def run(args: argparse.Namespace) -> int:
    """Print the tables, and write the files that were named."""
    from spinformer.data.highlights import read_highlights
    from spinformer.data.sources import load_texts
    from spinformer.evaluate.explanations.study import Study

    defaults = {"count": COUNT, "passes": PASSES, "seeds": SEEDS, "additive_passes": ADDITIVE_PASSES}
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    _check(args)
    (data,) = args.data
    everything = load_texts(data, **text_columns(args.columns, labelled=False))
    texts = everything.select(range(min(args.count, len(everything))))
    highlights = None if args.highlights is None else read_highlights(args.highlights)
    if highlights is not None:
        highlights = highlights.select(range(min(args.count, len(highlights))))
    explainer = _explainer(args)
    check_pairs(texts, explainer.context().labels)
    names = args.methods or explainer.methods()
    scorers = [explainer.scorer(name, passes=args.passes) for name in names]
    seeds = args.seeds if len(args.seeds) > 1 else ()
    study = Study(explainer, texts)
    plan = _plan(args, explainer, everything) if args.exact else None
    forecast = study.forecast(scorers, seeds=seeds, highlights=highlights)
    remark(f"faithfulness on {len(texts)} texts: {forecast}")
    if plan is not None:
        remark(plan.forecast())
    result = study.measure(scorers, seeds=seeds, highlights=highlights)
    print(f"\n{result}", flush=True)
    if explainer.grounded is None:
        remark(
            "\nno game: `spinformer ground MODEL TEXTS` learns one, whose fit and interactions are then measured too"
        )
    outcome = result.to_dict()
    if plan is None:
        remark("\nexactness: not measured; --exact 20 compares with the classifier's exact values on 20 short texts")
    else:
        from spinformer.cli import exactness_plan

        exactness = plan.measure()
        print(f"\n{exactness}")
        outcome["exactness"] = exactness.to_dict()
        if args.exact_figure is not None:
            remark(f"  -> {exactness_plan.draw(exactness, args.exact_figure)}")
    if args.output is not None:
        atomic_text(args.output, json.dumps(outcome, indent=1, allow_nan=False) + "\n")
        remark(f"  -> {args.output}")
    if args.name is not None:
        options = {name: getattr(args, name) for name in ("count", "seeds", "passes", "device")}
        options["max_length"] = explainer.max_length
        if plan is not None:
            options |= {name: getattr(args, name) for name in ("exact", "exact_words", "exact_settings", "peers")}
        digests = texts.digests + (() if highlights is None else highlights.texts.digests)
        path = records.write(
            args.name,
            outcome,
            command=f"spinformer evaluate {short_name(args.model)} {short_name(data)} --explanations",
            config={"model": short_name(args.model), "methods": list(names), "masking": explainer.classifier.masking}
            | options,
            data=weight_digests(args.model) | dict(digests),
            directory=args.results,
        )
        remark(f"  -> {path}")
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse what is wrong before any work."""
    for name in ("count", "passes", "additive_passes"):
        checks.at_least(f"--{name.replace('_', '-')}", getattr(args, name), 1)
    for name in args.methods or ():
        checks.choice("--methods", name, tuple(method_summaries()))
    if args.methods and len(set(args.methods)) < len(args.methods):
        raise ValueError(f"--methods must name each method once; got {' '.join(args.methods)}")
    if len(args.data) != 1:
        raise ValueError(f"--explanations takes one DATA, its parts joined by +; got {len(args.data)}")
    checks.seeds("--seeds", args.seeds)
    evaluate_exactness.check(args)
    if args.bf16:
        raise ValueError("--bf16 does not go with --explanations: they are measured in float32")
    if args.output is not None and args.output.suffix != ".json":
        raise ValueError(f"--output with --explanations is a file that ends in .json; got {args.output}")
    check_output_file("--output", args.output)
    read = (args.highlights, args.additive)
    check_not_read("--output", args.output, *args.data, *(str(source) for source in read if source is not None))
    if args.methods and "additive-explainer" in args.methods and args.additive is None:
        raise ValueError("additive-explainer is learnt: name a saved one, or texts to train one on, with --additive")


def _explainer(args: argparse.Namespace) -> "Explainer":
    """The classifier with its game and its additive explainer, as far as it has them."""
    from spinformer.explain.explainer import Explainer
    from spinformer.models.loading import load_classifier
    from spinformer.models.masked import BATCH_SIZE

    explainer = Explainer(
        *load_classifier(args.model, device=args.device),
        game=args.game,
        masking=args.masking,
        max_length=args.max_length,
        batch_size=args.batch_size or BATCH_SIZE,
        seed=args.seeds[0],
    )
    if args.additive is not None:
        explainer.additive = _additive_explainer(args, explainer.classifier, explainer.max_length)
    return explainer


def _plan(args: argparse.Namespace, explainer: "Explainer", texts: "Texts") -> "ExactnessPlan":
    """Exactness is that of an explainer with its default options, which users get."""
    from spinformer.cli.exactness_plan import ExactnessPlan
    from spinformer.explain.explainer import Explainer

    own = Explainer(
        explainer.model,
        explainer.tokenizer,
        game=args.game,
        masking=args.masking,
        max_length=args.max_length,
        batch_size=explainer.classifier.batch_size,
        seed=args.seeds[0],
    )
    return ExactnessPlan.of(args, own, texts)


def _additive_explainer(args: argparse.Namespace, classifier: "MaskedClassifier", length: int) -> "AdditiveExplainer":
    """The saved one, or one that is trained on the texts."""
    from spinformer.explain.methods.additive import AdditiveExplainer

    if Path(args.additive).is_dir():
        return AdditiveExplainer.load(Path(args.additive), classifier)
    from spinformer.data.sources import load_texts

    texts = load_texts(args.additive, **text_columns(args.columns, labelled=False))
    additive = AdditiveExplainer(classifier, seed=args.seeds[0])
    additive.train(texts, passes=args.additive_passes, max_length=length, seed=args.seeds[0])
    return additive
