"""The commands by name, and the parser of the options of each."""

import argparse
import contextlib
import importlib
from collections.abc import Sequence
from types import ModuleType

from spinformer.cli.research import PACKAGE, load_command

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "spinformer.cli.demo",
        "see it work in two minutes: an explained pair, a classifier of your own, restored digits",
    ),
    "explain": ("spinformer.cli.explain", "show which words and which pairs of words decided"),
    "overview": ("spinformer.cli.overview", "see a whole data set: what the classifier relies on; compare two of them"),
    "ground": ("spinformer.cli.ground", "learn the game of your classifier, so that one pass explains a text"),
    "evaluate": ("spinformer.cli.evaluate", "score a classifier on data sets, or the explanations of its answers"),
    "predict": ("spinformer.cli.predict", "classify texts or pairs of texts from files or standard input"),
    "train nli": ("spinformer.cli.train_nli", "train a classifier of texts or pairs of texts: NeuroGame or a baseline"),
    "train attractor": ("spinformer.cli.train_attractor", "train an attractor network on images, no backpropagation"),
    "retrieve": ("spinformer.cli.retrieve", "restore corrupted images with an attractor network; draw the trajectory"),
    "app": ("spinformer.cli.app", "serve a web page: explain pairs of texts, watch the attractor"),
    "completion": ("spinformer.cli.completion", "print a script that completes commands and options in your shell"),
    "bench": ("research.commands.bench", "measure the figures that the documents quote (in a clone)"),
    "torture": ("research.commands.torture", "try to break the library in every way that we know (in a clone)"),
    "reproduce all": (
        "research.commands.reproduce_all",
        "make every result and every document of this repository again (in a clone)",
    ),
    "reproduce nli": (
        "research.commands.reproduce_nli",
        "train and score every classifier of docs/nli.md (in a clone)",
    ),
    "reproduce small": (
        "research.commands.reproduce_small",
        "make the small classifier that is part of the package (in a clone)",
    ),
    "reproduce grounding": (
        "research.commands.reproduce_grounding",
        "compare grounded games with other explanations (in a clone)",
    ),
    "reproduce architectures": (
        "research.commands.reproduce_architectures",
        "train, ground and explain small classifiers of every architecture (in a clone)",
    ),
    "reproduce tasks": (
        "research.commands.reproduce_tasks",
        "fine-tune, ground and explain classifiers of five tasks (in a clone)",
    ),
    "reproduce corpus": (
        "research.commands.reproduce_corpus",
        "explain 100,000 texts with several processes, some of them killed (in a clone)",
    ),
    "reproduce negation": (
        "research.commands.reproduce_negation",
        "count the signs of `not good` and `very good` (in a clone)",
    ),
    "reproduce attractor": (
        "research.commands.reproduce_attractor",
        "check the figures, claims and speed of the attractor paper (in a clone)",
    ),
}


def command_parser(name: str) -> argparse.ArgumentParser:
    """The parser of a command's options."""
    from spinformer.cli.options import add_shown

    module = command_module(name)
    parser = argparse.ArgumentParser(prog=f"spinformer {name}", description=module.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.configure(parser)
    add_shown(parser)
    parser.set_defaults(parsers=command_parsers)
    return parser


def parse_command(name: str, words: Sequence[str]) -> argparse.Namespace:
    """The options of a command; SystemExit where there are no such options."""
    from spinformer.cli.options import choose_device

    args = command_parser(name).parse_args(words)
    choose_device(args)
    return args


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands that can be used here; in a wheel some need a clone. Commands get this function."""
    found = {}
    for name in COMMANDS:
        with contextlib.suppress(FileNotFoundError, ModuleNotFoundError):
            found[name] = command_parser(name)
    return found


def command_module(command: str) -> ModuleType:
    """The module of a command, with `configure` and `run`."""
    name, _ = COMMANDS[command]
    package, _, last = name.rpartition(".")
    return load_command(last) if package == PACKAGE else importlib.import_module(name)
