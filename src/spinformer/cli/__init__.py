"""The command line: `spinformer COMMAND ...`.

A command is a module with `configure(parser)` and `run(args)`; only the module of the command that was
asked for is imported, so that `spinformer --help` is quick and needs no extra.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from spinformer import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("spinformer.cli.demo", "both systems at work in a minute: a worked example, a real sentence, digits"),
    "bench": ("spinformer.cli.bench", "measure what the documents quote; writes results/*.json"),
    "evaluate": ("spinformer.cli.evaluate", "score a classifier on data sets; intervals, calibration, figures"),
    "predict": ("spinformer.cli.predict", "classify texts or pairs from files or standard input"),
    "train nli": ("spinformer.cli.train_nli", "train a NeuroGame classifier or a baseline on sentence pairs or texts"),
    "train attractor": (
        "spinformer.cli.train_attractor",
        "train an attractor network on images, without backpropagation",
    ),
    "ground": ("spinformer.cli.ground", "learn the game of a classifier that you have: words and pairs from one pass"),
    "explain": ("spinformer.cli.explain", "which words and which pairs of words decided, from one forward pass"),
    "app": ("spinformer.cli.app", "a web page in the browser: explain sentence pairs, watch the attractor"),
    "retrieve": ("spinformer.cli.retrieve", "run an attractor network on corrupted images; pictures, a GIF, energies"),
    "reproduce nli": ("spinformer.cli.reproduce_nli", "every classifier of docs/nli.md, trained and scored"),
    "reproduce grounding": ("spinformer.cli.reproduce_grounding", "grounded games beside every other explanation"),
    "reproduce negation": ("spinformer.cli.reproduce_negation", "the sign of `not good` and `very good`, counted"),
    "reproduce attractor": ("spinformer.cli.reproduce_attractor", "the attractor paper's figures, claims and speed"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (2 for bad input, with one line that says what)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("-V", "--version"):
        print(f"spinformer {__version__}")
        return 0
    name = _command(words)
    if name is None:
        asked_for_help = not words or words[0] in ("-h", "--help") or (words == words[:1] and _group(words[0]))
        print(
            _usage(words[0] if words and _group(words[0]) else ""),
            file=sys.stdout if asked_for_help else sys.stderr,
        )
        return 0 if asked_for_help else 2
    module_name, summary = COMMANDS[name]
    module = importlib.import_module(module_name)
    parser = argparse.ArgumentParser(prog=f"spinformer {name}", description=module.__doc__ or summary)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.configure(parser)
    args = parser.parse_args(words[len(name.split()) :])
    try:
        status: int = module.run(args)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; nothing more to say
        return 0
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        print(f"spinformer {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"spinformer {name}: stopped", file=sys.stderr)
        return 130
    return status


def _command(words: Sequence[str]) -> str | None:
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return name
    return None


def _group(word: str) -> bool:
    return any(name.startswith(word + " ") for name in COMMANDS)


def _usage(group: str) -> str:
    shown = {name: text for name, (_, text) in COMMANDS.items() if name.startswith(group)}
    width = max(len(name) for name in shown)
    lines = [f"  {name:<{width}}  {text}" for name, text in shown.items()]
    return "\n".join(
        [
            "usage: spinformer COMMAND [options]",
            "",
            *lines,
            "",
            "`spinformer COMMAND --help` tells more of each.",
        ]
    )
