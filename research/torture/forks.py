"""Commands in forked children of a process that has imported the library: quick to start, measured, killed alone.

A part runs `python -m research.torture.forks PART SEED SCALE`, a new process without threads, and reads what it found.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from research.torture.findings import Findings, Plan

ROOT = Path(__file__).parents[2]
# Imported once, before any fork; what commands need beyond these they import in every child.
MODULES = (
    *("torch", "numpy", "safetensors.torch", "filelock", "tqdm.auto", "csv", "gzip", "zipfile", "fractions"),
    *("torch.distributed", "torch.utils.data", "torch._dynamo", "torch.utils.tensorboard", "tensorboard.compat.proto"),
    *("transformers", "transformers.trainer", "transformers.models.bert.modeling_bert", "transformers.modelcard"),
    *("transformers.models.auto.tokenization_auto", "transformers.models.auto.modeling_auto", "accelerate", "yaml"),
    *("pyarrow.parquet", "PIL.Image", "PIL.PngImagePlugin", "PIL.GifImagePlugin", "matplotlib.figure"),
    *("matplotlib.backends.backend_agg", "datasets", "tokenizers", "scipy.optimize"),
    *("spinformer.cli.explain", "spinformer.cli.ground", "spinformer.cli.evaluate", "spinformer.cli.predict"),
    *("spinformer.cli.train_nli", "spinformer.cli.train_attractor", "spinformer.cli.retrieve"),
    *("spinformer.models.baselines", "spinformer.models.neurogame", "spinformer.explain", "spinformer.cli.failures"),
    *("spinformer.training.classifier.train", "spinformer.evaluate.explanations.study", "spinformer.models.loading"),
    *("spinformer.evaluate.explanations.report", "spinformer.explain.render.html", "spinformer.explain.render.text"),
)
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "MPLBACKEND": "Agg",
    "CUDA_VISIBLE_DEVICES": "",
    "COLUMNS": "200",
}
BROKEN = 99  # exit status of a child that an exception ended
TICK = 0.005  # seconds between two looks at a child


@dataclass(frozen=True)
class Ended:
    """How a child ended. status: what it returned, or the negative number of the signal that killed it; out, err: what
    it printed; seconds: how long it took; peak: bytes of memory that it had at most, those shared with its parent
    included; hung: it was killed because it took longer than it may.
    """

    status: int
    out: str
    err: str
    seconds: float
    peak: int
    hung: bool


def apart(part: str, plan: Plan) -> Findings:
    """work(plan) of research.torture.`part`, in a new process."""
    command = [sys.executable, "-m", "research.torture.forks", part, str(plan.seed), repr(plan.scale)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
    )
    return Findings(**json.loads(done.stdout))


def warm() -> None:
    """Import what commands need, as far as it is installed."""
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):  # half a second, which every child that loads a model would spend again
        from transformers.conversion_mapping import get_checkpoint_conversion_mapping

        get_checkpoint_conversion_mapping("bert")
    import torch

    torch.set_num_threads(1)


def command(*words: object) -> Callable[[], int]:
    """The action of a child: a command of spinformer."""

    def action() -> int:
        from spinformer.cli import main

        return main(list(map(str, words)))

    return action


def run_child(
    action: Callable[[], int],
    folder: Path,
    *,
    prepare: Sequence[Callable[[], None]] = (),
    limit: float = 60.0,
    memory: int | None = None,
    kill_after: float | None = None,
) -> Ended:
    """Call action() in a forked child, in `folder`, with its own standard output and error.

    prepare: called before it; limit: seconds, after which it is killed; memory: bytes of address space that it may have
    beyond what it starts with; kill_after: seconds after which SIGKILL ends it.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _child(action, folder, (out.fileno(), err.fileno()), prepare, memory)
        status, peak, hung = _await(pid, start, limit, kill_after)
        seconds = time.monotonic() - start
        shown = []
        for file in (out, err):
            file.seek(0)
            shown.append(file.read().decode(errors="replace"))
    return Ended(os.waitstatus_to_exitcode(status), shown[0], shown[1], seconds, peak, hung)


def _child(
    action: Callable[[], int],
    folder: Path,
    files: tuple[int, int],
    prepare: Sequence[Callable[[], None]],
    memory: int | None,
) -> None:
    """What a child does; it never returns."""
    status = BROKEN
    try:
        os.setpgid(0, 0)
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        for target, file in enumerate(files, 1):
            os.dup2(file, target)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        os.chdir(folder)
        if memory is not None:
            bound = _address_space() + memory
            resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        for step in prepare:
            step()
        status = action()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else BROKEN
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


def _await(pid: int, start: float, limit: float, kill_after: float | None) -> tuple[int, int, bool]:
    """Wait status, peak of memory, and whether the limit was passed."""
    hung = False
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            break
        elapsed = time.monotonic() - start
        hung = hung or elapsed > limit
        if hung or (kill_after is not None and elapsed >= kill_after):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(TICK)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # what the child itself had started
    return status, usage.ru_maxrss * 1024, hung


def _address_space() -> int:
    """Bytes of address space that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def main(words: Sequence[str]) -> None:
    """Run a part and print what it found, as JSON."""
    part, seed, scale = words
    warm()
    found: Findings = importlib.import_module(f"research.torture.{part}").work(Plan(int(seed), float(scale)))
    print(json.dumps(vars(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
