"""`spinformer evaluate --explanations`: how faithful, how stable and how dear explanations of a classifier are."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from spinformer import checks, results
from spinformer.models.masked import BATCH_SIZE, MaskedClassifier, Masking

if TYPE_CHECKING:
    from spinformer.evaluate.methods import Source
    from spinformer.explain.attribution import AdditiveExplainer

DESCRIPTION = """\
Of each method: comprehensiveness and sufficiency (means at 1, 5, 10, 20 and 50% of the words), correlation with
leave-one-out, stability over seeds, passes and milliseconds a text. Where the classifier has a game (`spinformer
ground` makes one; head "grounded" is one): the fit of v(C), and its interactions beside the exact ones on short texts.
Methods of a game: shapley banzhaf field attention; of any classifier: gradient ig sampling kernelshap loo random
additive; of this library's heads: attention-pooling neurogame-attention neurogame-fields neurogame-shapley
neurogame-banzhaf."""
DEFAULTS: dict[str, Any] = {"count": 200, "evaluations": 200, "seeds": [0, 1, 2], "passes": 50_000}
CHOICES = ("methods", "count", "highlights", "seeds", "evaluations", "game", "masking", "additive", "passes")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the group."""
    group = parser.add_argument_group("explanations", DESCRIPTION)
    add = group.add_argument
    add("--explanations", action="store_true", help="score explanations; DATA is one file, which needs no labels")
    add("--methods", nargs="+", metavar="METHOD", help="default: all that this classifier offers")
    add("--count", type=int, help=f"texts to measure on, the first ones (default {DEFAULTS['count']})")
    add("--highlights", type=Path, help="file of words that people marked (e-SNLI); its first COUNT rows count")
    add("--seeds", type=int, nargs="+", help="the first is the methods', stability is over all (default 0 1 2)")
    add("--evaluations", type=int, help="passes a text for sampling and kernelshap (default 200)")
    add("--game", type=Path, help="folder that `spinformer ground --output` wrote (default: that of the model)")
    add("--masking", choices=get_args(Masking), help="how words are taken away (default: the game's, or attention)")
    add("--additive", help="a saved additive explainer's folder, or a file of texts to train one on; adds `additive`")
    add("--passes", type=int, help=f"masked passes to train it with (default {DEFAULTS['passes']})")


def asked(args: argparse.Namespace) -> bool:
    """Whether explanations are to be scored; their options without that are an error."""
    given = [name for name in CHOICES if getattr(args, name) is not None]
    if given and not args.explanations:
        raise ValueError(f"--{given[0]} is an option of --explanations, which was not given")
    return bool(args.explanations)


def run(args: argparse.Namespace) -> int:
    """Print the tables; write what was asked for."""
    from spinformer.cli.evaluate import columns, short, weights
    from spinformer.data.highlights import read_highlights
    from spinformer.data.named import load_texts
    from spinformer.evaluate.methods import METHODS, methods, offered
    from spinformer.evaluate.panel import Panel, measure

    for name, value in DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    _check(args)
    for name in args.methods or ():
        checks.choice("--methods", name, tuple(METHODS))
    (data,) = args.data
    texts = load_texts(data, **columns(args.columns, labelled=False))
    texts = texts.select(range(min(args.count, len(texts))))
    highlights = None if args.highlights is None else read_highlights(args.highlights)
    if highlights is not None:
        highlights = highlights.select(range(min(args.count, len(highlights))))
    source = _source(args)
    names = args.methods or offered(source)
    chosen = methods(names, source)
    panel = Panel(source.classifier, texts, source.grounded, args.max_length)
    seeds = args.seeds if len(args.seeds) > 1 else ()
    found = measure(panel, chosen, seeds=seeds, highlights=highlights)
    print(found)
    if source.grounded is None:
        print("\nno game: `spinformer ground MODEL TEXTS` learns one, whose fit and interactions are then measured too")
    if args.output is not None:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n")
        print(f"  -> {args.output}")
    if args.name is not None:
        kept = ("count", "seeds", "evaluations", "max_length", "device")
        digests = texts.digests + (() if highlights is None else highlights.texts.digests)
        path = results.write(
            args.name,
            found.to_dict(),
            command=f"spinformer evaluate {short(args.model)} {short(data)} --explanations",
            config={"model": short(args.model), "methods": list(names), "masking": source.classifier.masking}
            | {name: getattr(args, name) for name in kept},
            data=weights(args.model) | dict(digests),
            directory=args.results,
        )
        print(f"  -> {path}")
    return 0


def _check(args: argparse.Namespace) -> None:
    """What can be refused before any work."""
    for name in ("count", "evaluations", "passes"):
        checks.at_least(f"--{name}", getattr(args, name), 1)
    if len(args.data) != 1:
        raise ValueError(f"--explanations takes one DATA, its parts joined by +; got {len(args.data)}")
    checks.seeds("--seeds", args.seeds)
    if args.bf16:
        raise ValueError("--bf16 does not go with --explanations: they are measured in float32")
    if args.output is not None and args.output.suffix != ".json":
        raise ValueError(f"--output with --explanations is a file that ends in .json; got {args.output}")
    if args.methods and "additive" in args.methods and args.additive is None:
        raise ValueError("additive scores are learnt: name a saved explainer, or texts to train one, with --additive")


def _source(args: argparse.Namespace) -> "Source":
    """The classifier, its game and its additive explainer, as far as they are there."""
    from spinformer.evaluate.methods import Source
    from spinformer.explain.grounded import Grounded
    from spinformer.models.load import load_classifier

    model, tokenizer = load_classifier(args.model, device=args.device)
    grounded = Grounded.find(model, args.game)
    if args.game is not None and grounded is None:
        raise ValueError(f"--game: {args.game} has no game head; `spinformer ground` leaves one in its --output")
    masking: Masking = args.masking or ("attention" if grounded is None else grounded.masking)
    classifier = MaskedClassifier(model, tokenizer, masking, args.batch_size or BATCH_SIZE)
    additive = None if args.additive is None else _additive(args, classifier)
    return Source(classifier, grounded, additive, args.evaluations, args.seeds[0])


def _additive(args: argparse.Namespace, classifier: MaskedClassifier) -> "AdditiveExplainer":
    from spinformer.data.named import load_texts
    from spinformer.explain.attribution import AdditiveExplainer

    if Path(args.additive).is_dir():
        return AdditiveExplainer.load(Path(args.additive), classifier)
    from spinformer.cli.evaluate import columns

    texts = load_texts(args.additive, **columns(args.columns, labelled=False))
    explainer = AdditiveExplainer(classifier, seed=args.seeds[0])
    explainer.train(texts, passes=args.passes, max_length=args.max_length, seed=args.seeds[0])
    return explainer
