"""Learn the game of your classifier, so that one pass tells which words, and which pairs of words, decided.

MODEL is any Hugging Face text classifier, of one text or of pairs, with two or more classes; its weights stay as they
are. TEXTS is a file of texts like those it will see (in .txt one in each line); labels are not needed and not read. The
game head is trained on the classifier's answers to masked texts. It is saved in OUTPUT/game (MODEL/game by default),
with a report of how faithful it is on texts that were held out; of fewer than 10 texts none is. A run that was stopped
goes on with --resume. With --stream the file may be larger than memory: it is read part by part, until twice as many
texts no longer help. Several GPUs share the work:

  torchrun --nproc-per-node 4 -m spinformer ground MODEL TEXTS
"""

import argparse
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from spinformer._base import checks
from spinformer._base.choices import MASKINGS, Form
from spinformer._base.progress import remark
from spinformer.cli.options import (
    add_columns,
    add_device,
    add_model,
    check_output_folder,
    check_pairs,
    text_columns,
)
from spinformer.training.game_options import OPTIMIZERS, GroundingOptions

if TYPE_CHECKING:
    from spinformer.data.streams import TextStream
    from spinformer.data.texts import Texts

HELP = {
    "epochs": "passes over the texts",
    "batch_size": "texts in one update",
    "subsets": "masked passes for each text and epoch",
    "repeats": "how often the answers of an epoch are learnt from",
    "optimizer": "adamw, or muon for matrices and adamw for all else",
    "learning_rate": "highest learning rate of AdamW; that of Muon is ten times as high",
    "weight_decay": "weight decay",
    "warmup": "part of the updates in which the learning rate rises",
    "masking": "how words are hidden",
    "max_length": "tokens read; longer texts are cut; 0 for as many as the model takes",
    "hints": "weight of the hidden states that are learnt beside the answers; 0 learns the answers alone",
    "form": "readout of the game head: sums are quicker, attending is more exact",
    "layers": "hidden states that the game head reads",
    "heads": "attention heads of the readout, or weighted sums",
    "dim": "width of all of them together",
    "hidden": "width of the hidden layer before them",
    "readout": "width of the network after them",
    "reads": "how often the attending form reads the words",
    "gain": "of R², what twice as many texts of a stream must bring; 0 reads all of it",
    "save_steps": "updates between checkpoints",
    "seed": "random seed of weights, order and coalitions",
}


BY_TEXTS = ("epochs", "batch_size", "repeats", "optimizer", "learning_rate", "dim", "hidden", "readout")
CHOICES = {"masking": MASKINGS, "form": get_args(Form), "optimizer": OPTIMIZERS}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add_model(parser)
    add("texts", metavar="TEXTS", help="a file, or a name such as snli:train; parts joined by +")
    add_columns(parser)
    add("--output", type=Path, help="folder for the game head (default: the model's own)")
    add("--held-out", type=int, help="texts to measure on, not to train on (default: a tenth of them, at most 200)")
    add("--limit", type=int, help="use only LIMIT texts, drawn at random (default: all)")
    add("--stream", action="store_true", help="read TEXTS part by part, and stop when more of them bring little")
    add("--resume", action="store_true", help="continue a run that was stopped; without this its folder is refused")
    add_device(parser)
    defaults = GroundingOptions()
    for option in fields(GroundingOptions):
        value, flag, text = getattr(defaults, option.name), "--" + option.name.replace("_", "-"), HELP[option.name]
        if option.name == "layers":
            add(flag, type=int, nargs="+", default=(), help=f"{text} (default: by the number of texts)")
        elif option.name in BY_TEXTS:
            kind = {"choices": CHOICES[option.name]} if option.name in CHOICES else {"type": type(value)}
            add(flag, **kind, default=value, help=f"{text} (default: by the number of texts)")
        elif option.name in CHOICES:
            add(flag, choices=CHOICES[option.name], default=value, help=f"{text} (default %(default)s)")
        else:
            add(flag, type=type(value), default=value, help=f"{text} (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Train the game head, measure it, and say how far it can be trusted."""
    from spinformer._base.files import run_lock
    from spinformer._base.processes import joined, rank_and_world
    from spinformer.data.texts import Texts
    from spinformer.evaluate.explanations.report import REPORT, forecast, report
    from spinformer.explain.explainer import Explainer
    from spinformer.models.game_head import FOLDER
    from spinformer.models.loading import load_classifier
    from spinformer.models.outputs import output_names
    from spinformer.training.game import HELD_OUT, train_game_head

    for name in ("limit", "held_out"):
        if getattr(args, name) is not None:
            checks.at_least(f"--{name.replace('_', '-')}", getattr(args, name), 1)
    output = args.output or Path(args.model)
    if args.output is None and not output.is_dir():
        raise ValueError(f"{args.model} is not a folder here; name one for the game head with --output")
    check_output_folder("--output", output)
    values = {option.name: getattr(args, option.name) for option in fields(GroundingOptions)}
    options = GroundingOptions(**values | {"layers": tuple(args.layers)})
    training, held_out = _split(args)
    measured = None if held_out is None else held_out.select(range(min(HELD_OUT, len(held_out))))
    with run_lock(output / FOLDER), joined(args.device) as device:
        model, tokenizer = load_classifier(args.model, device=device)  # a game that its folder holds is replaced
        for texts in (training, held_out):
            if isinstance(texts, Texts):
                check_pairs(texts, output_names(model))
        first = rank_and_world()[0] == 0  # the process that says what happens
        train = partial(train_game_head, announce=remark if first else _nothing, resume=args.resume)
        head = train(model, tokenizer, training, output, options, held_out=measured)
        if not first:
            return 0
        if held_out is None:
            (output / FOLDER / REPORT).unlink(missing_ok=True)  # of a game that was there before
            remark("fewer than 10 texts: none was held out, so how far the game is from MODEL was not measured")
        else:
            explainer = Explainer(model, tokenizer, game=head, max_length=args.max_length or None)
            some = training if isinstance(training, Texts) else next(training.parts(len(held_out)))
            learnt = some.select(range(min(len(held_out), len(some))))
            duration = forecast(explainer, held_out, learnt=learnt)
            remark(f"measuring the game on {len(held_out):,} unseen texts: {duration}")
            findings = report(explainer, held_out, learnt=learnt)
            findings.save(output)
            print(findings)
    remark(f"\nthe game is in {output / FOLDER}")
    return 0


def _split(args: argparse.Namespace) -> tuple["Texts | TextStream", "Texts | None"]:
    """Texts, or a stream, to learn from, and texts that are held out: by default as many as `hold_out` does."""
    import torch

    from spinformer.data.sources import load_texts
    from spinformer.data.streams import stream_texts
    from spinformer.training.game import HELD_OUT

    columns = text_columns(args.columns, labelled=False)
    if args.stream:
        if args.limit is not None:
            raise ValueError(f"--limit goes with texts in memory; got --limit {args.limit} and --stream")
        stream = stream_texts(args.texts, first=columns.get("first"), second=columns.get("second"))
        rest, held_out = stream.split(args.held_out or HELD_OUT, seed=args.seed)
        if held_out is None:
            raise ValueError(f"{stream.source}: expected at least 10 texts, a tenth of which is held out; got fewer")
        return rest, held_out
    texts = load_texts(args.texts, **columns)
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(args.seed)).tolist()[: args.limit]
    held = args.held_out or min(HELD_OUT, len(order) // 10)
    if args.held_out is not None and held >= len(order):
        raise ValueError(f"--held-out must be below the number of texts, {len(order)}; got {held}")
    return texts.select(order[held:]), texts.select(order[:held]) if held else None


def _nothing(text: str) -> None:
    """All processes measure the time together, and one tells it."""
