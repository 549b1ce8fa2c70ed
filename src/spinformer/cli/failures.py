"""What ends a command, in one line: bad input, damaged files, a full disk, too little memory, or what nobody foresaw.

With the environment variable SPINFORMER_TRACE set, the trace is shown before the line.
"""

import os
import pickle
import sys
import traceback
import zipfile
import zlib

import torch
from safetensors import SafetensorError

from spinformer._base.characters import printable

TRACE = "SPINFORMER_TRACE"
EXPECTED = (
    *(ValueError, TypeError, OSError, ModuleNotFoundError, EOFError, OverflowError, RecursionError),
    *(SafetensorError, pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)
MEMORY = (MemoryError, torch.OutOfMemoryError)
# How torch says, in RuntimeErrors, what the user can mend.
MENDABLE = ("can't allocate memory", "out of memory", "no space left", "device", "unexpected pos", "file write failed")
BAD_INPUT, UNFORESEEN = 2, 1


def explain_failure(command: str, error: Exception) -> int:
    """Print one line on standard error; the exit status: 2 for what the user can mend, 1 for what nobody foresaw."""
    if os.environ.get(TRACE):
        traceback.print_exception(error)
    reason = printable(" ".join(str(error).split()))
    if isinstance(error, MEMORY) or "can't allocate memory" in reason:
        reason = f"not enough memory for this; smaller batches, samples or images need less ({reason[:120]})"
    elif isinstance(error, RuntimeError) and any(part in reason.lower() for part in MENDABLE):
        reason = reason[:300]
    elif not isinstance(error, EXPECTED):
        kind = type(error).__name__
        print(
            f"spinformer {command}: an error that was not foreseen, {kind}: {reason[:300]}; please report it with what "
            f"the same command prints when {TRACE}=1 is set",
            file=sys.stderr,
        )
        return UNFORESEEN
    print(f"spinformer {command}: {reason or type(error).__name__}", file=sys.stderr)
    return BAD_INPUT
