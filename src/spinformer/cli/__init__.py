"""The command line: `spinformer COMMAND ...`.

A command is a module with `configure(parser)` and `run(args)`. Only the module of the command asked for is imported, so
that `spinformer --help` is quick and needs no extra.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from spinformer import __version__
from spinformer.cli.extensions import load_extensions
from spinformer.cli.research import PACKAGE, load_command

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("spinformer.cli.demo", "see both systems at work: a worked example, explained sentences, restored digits"),
    "explain": ("spinformer.cli.explain", "show which words and which pairs of words decided"),
    "ground": ("spinformer.cli.ground", "learn the game of your classifier, so that one pass explains a text"),
    "evaluate": ("spinformer.cli.evaluate", "score a classifier on data sets, or the explanations of its answers"),
    "predict": ("spinformer.cli.predict", "classify texts or pairs of texts from files or standard input"),
    "train nli": ("spinformer.cli.train_nli", "train a classifier of texts or pairs of texts: NeuroGame or a baseline"),
    "train attractor": ("spinformer.cli.train_attractor", "train an attractor network on images, no backpropagation"),
    "retrieve": ("spinformer.cli.retrieve", "restore corrupted images with an attractor network; draw the trajectory"),
    "app": ("spinformer.cli.app", "serve a web page: explain pairs of texts, watch the attractor"),
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
    "reproduce negation": (
        "research.commands.reproduce_negation",
        "count the signs of `not good` and `very good` (in a clone)",
    ),
    "reproduce attractor": (
        "research.commands.reproduce_attractor",
        "check the figures, claims and speed of the attractor paper (in a clone)",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, not 0 where it failed, with one line that says what is wrong."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("-V", "--version"):
        print(f"spinformer {__version__}")
        return 0
    name = _command(words)
    if name is None:
        return _print_usage(words)
    load_extensions()
    try:
        module = _module(name)
        args = _parser(name, module).parse_args(words[len(name.split()) :])
        status: int = module.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; nothing more to say
        return 0
    except Exception as error:
        from spinformer.cli.failures import explain_failure

        return explain_failure(name, error)
    except KeyboardInterrupt:
        print(f"spinformer {name}: stopped", file=sys.stderr)
        return 130
    return status


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, without running it; SystemExit where they are none."""
    name = _command(words)
    if name is None:
        raise SystemExit(_print_usage(words))
    return _parser(name, _module(name)).parse_args(words[len(name.split()) :])


def _parser(name: str, module: ModuleType) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"spinformer {name}", description=module.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.configure(parser)
    return parser


def _module(command: str) -> ModuleType:
    name, _ = COMMANDS[command]
    package, _, last = name.rpartition(".")
    return load_command(last) if package == PACKAGE else importlib.import_module(name)


def _command(words: Sequence[str]) -> str | None:
    """The command that the words begin with, one word or two; None if there is none."""
    names = (" ".join(words[:length]) for length in (2, 1) if len(words) >= length)
    return next((name for name in names if name in COMMANDS), None)


def _print_usage(words: Sequence[str]) -> int:
    """All commands, or those of a group such as `train`; on standard error where the words are no command."""
    group = words[0] if words and any(name.startswith(f"{words[0]} ") for name in COMMANDS) else ""
    wanted = not words or words[0] in ("-h", "--help") or (group and words[1:] in ([], ["-h"], ["--help"]))
    print(_usage(group), file=sys.stdout if wanted else sys.stderr)
    return 0 if wanted else 2


def _usage(group: str) -> str:
    shown = {name: summary for name, (_, summary) in COMMANDS.items() if name.startswith(group)}
    width = max(len(name) for name in shown)
    lines = [f"  {name:<{width}}  {summary}" for name, summary in shown.items()]
    return "\n".join(
        ["usage: spinformer COMMAND [options]", "", *lines, "", "`spinformer COMMAND --help` describes each command."]
    )
