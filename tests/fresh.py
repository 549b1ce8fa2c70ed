"""Code in a process that has imported some libraries and nothing else, forked from one that waits.

All workers of a test session share the processes that wait: a library is imported once.
"""

import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from filelock import FileLock

from research.paths import ROOT

NOTHING = ""
TORCH = "import torch"
TRANSFORMERS = "import torch; from transformers import AutoModel, AutoTokenizer, BertModel, PreTrainedModel"
# All that commands import: for tests of what they do, in processes without threads that may fork themselves. They find
# the clone.
EVERYTHING = f"""
import os, sys
clone = {[str(ROOT / "src"), str(ROOT)]!r}
sys.path[1:1], os.environ["PYTHONPATH"] = clone, os.pathsep.join(clone)
from research.torture.forks import ENVIRONMENT, warm
os.environ.update(ENVIRONMENT)
warm()
"""
# What imports more is a fork of what imports less.
AFTER = {TORCH: NOTHING, TRANSFORMERS: TORCH, EVERYTHING: TRANSFORMERS}
LIMIT = 400  # seconds
SOURCE = Path(__file__).with_name("server.py").read_text(encoding="utf-8")
FOLDER = "SPINFORMER_FRESH"  # in the environment: where the sockets are


def start() -> None:
    """Start the first process that waits, unless there is one. It ends with this process."""
    if FOLDER in os.environ or not hasattr(os, "fork"):
        return
    folder = os.environ[FOLDER] = tempfile.mkdtemp(prefix="fresh-")
    ready, said = os.pipe()
    command = [sys.executable, "-c", SOURCE, _socket("", sys.executable), "0", "", str(LIMIT), str(said)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[said], env=environment, cwd="/")
    os.close(said)
    with open(ready) as answer:
        assert answer.read() == "ready"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.communicate)


def _socket(imports: str, python: str) -> str:
    """Its path is short, as that of a socket must be."""
    return str(Path(os.environ[FOLDER]) / f"{zlib.crc32(f'{python} {imports}'.encode()):08x}")


def _ask(path: str, request: dict[str, object]) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile() as answer:
            return answer.readline()


@functools.cache
def _server(imports: str, python: str) -> str:
    """The socket of a process that has imported these. The first worker that needs one starts it."""
    own = python == sys.executable
    path = _socket(imports, python)
    before = _server(AFTER[imports], python) if own and imports else _socket("", sys.executable)
    with FileLock(f"{path}.lock"):
        if not Path(path).exists():
            request = {"path": path, "imports": imports, "python": "" if own else python, "source": SOURCE}
            answer = _ask(before, {**request, "environment": _environment(python)})
            assert answer == "ready", f"a process with {imports!r} did not start"
    return path


def _environment(python: str) -> dict[str, str]:
    """Another interpreter has nothing of this one's paths."""
    ours = python == sys.executable
    return {name: value for name, value in os.environ.items() if ours or not name.startswith(("PYTHON", "SPINFORMER"))}


def run(
    code: str, *, imports: str = TORCH, folder: Path | None = None, given: str = "", python: str = sys.executable
) -> subprocess.CompletedProcess:
    """As `python -c code` there, for LIMIT seconds at most. imports: what that process has imported; given: its
    standard input.
    """
    folder = Path.cwd() if folder is None else folder
    command = [python, "-c", code]
    if not hasattr(os, "fork"):
        options = {"input": given, "capture_output": True, "text": True, "env": _environment(python)}
        return subprocess.run([python, "-c", f"{imports}\n{code}"], cwd=folder, check=False, **options)
    start()
    answer = _ask(_server(imports, python), {"code": code, "folder": str(folder), "given": given})
    return subprocess.CompletedProcess(command, *json.loads(answer))
