"""The command line: `spinformer COMMAND ...`.

A command is a module with `configure(parser)` and `run(args)`. Only the module of the command asked for is imported, so
that `spinformer --help` is quick and needs no extra.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from spinformer import __version__
from spinformer.cli.collecting import no_collection, own_process
from spinformer.cli.commands import COMMANDS, command_module, parse_command
from spinformer.cli.extensions import load_extensions


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, not 0 where it failed, with one line that says what is wrong."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        own_process()
    if words and words[0] in ("-V", "--version"):
        print(f"spinformer {__version__}")
        return 0
    name = _command(words)
    if name is None:
        return _print_usage(words)
    load_extensions()
    try:
        from spinformer._base.progress import silence

        with no_collection():
            module = command_module(name)
            args = parse_command(name, words[len(name.split()) :])
        with silence() if args.quiet else nullcontext():
            status: int = module.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; nothing more to say
        return 0
    except Exception as error:
        from spinformer.cli.failures import explain_failure

        return explain_failure(name, error, verbose="--verbose" in words)
    except KeyboardInterrupt:
        print(f"spinformer {name}: stopped", file=sys.stderr)
        return 130
    return status


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, without running it; SystemExit where they are none."""
    name = _command(words)
    if name is None:
        raise SystemExit(_print_usage(words))
    return parse_command(name, words[len(name.split()) :])


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
