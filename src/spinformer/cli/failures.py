"""What ends a command, in one line: bad input, damaged files, a full disk, too little memory, or what nobody foresaw.

With --verbose the trace is shown before the line.
"""

import pickle
import sys
import traceback
import zipfile
import zlib

from safetensors import SafetensorError

from spinformer._base.characters import printable

EXPECTED = (
    *(ValueError, TypeError, OSError, ModuleNotFoundError, EOFError, OverflowError, RecursionError),
    *(SafetensorError, pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)
# How torch, in RuntimeErrors, and tokenizers, in bare Exceptions, say what the user can mend.
MENDABLE = ("can't allocate memory", "out of memory", "device", "os error")
NOT_WRITTEN = ("unexpected pos", "file write failed", "iostream error", "no space left")
BAD_INPUT, UNFORESEEN = 2, 1
LONGEST = 500  # characters of a reason: it may quote what a file holds


def explain_failure(command: str, error: Exception, *, verbose: bool = False) -> int:
    """Print one line on standard error; the exit status: 2 for what the user can mend, 1 for what nobody foresaw.

    verbose: print the trace first, of both kinds.
    """
    if verbose:
        traceback.print_exception(error)
    reason = printable(" ".join(str(error).split()))
    if _lacks_memory(error) or "can't allocate memory" in reason:
        reason = f"not enough memory for this; smaller batches, samples or images need less ({reason[:120]})"
    elif _says(error, NOT_WRITTEN):
        reason = f"a file could not be written; is there room on the disk? ({reason[:120]})"
    elif _says(error, MENDABLE):
        reason = reason[:300]
    elif not isinstance(error, EXPECTED):
        kind = type(error).__name__
        print(
            f"spinformer {command}: an error that was not foreseen, {kind}: {reason[:300]}; please report it with what "
            "the same command prints with --verbose",
            file=sys.stderr,
        )
        return UNFORESEEN
    reason = reason if len(reason) <= LONGEST else f"{reason[:LONGEST]} ..."
    print(f"spinformer {command}: {reason or type(error).__name__}", file=sys.stderr)
    return BAD_INPUT


def _lacks_memory(error: Exception) -> bool:
    torch = sys.modules.get("torch")  # one that is not imported has raised nothing
    return isinstance(error, MemoryError) or (torch is not None and isinstance(error, torch.OutOfMemoryError))


def _says(error: Exception, parts: tuple[str, ...]) -> bool:
    """Whether an error of a kind that says little by itself has one of these parts in its text."""
    little = isinstance(error, RuntimeError) or type(error) is Exception
    return little and any(part in str(error).lower() for part in parts)
