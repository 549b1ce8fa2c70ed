"""Code in a process that has imported some libraries and nothing else, forked from one that waits."""

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from research.paths import ROOT

SERVER = """
import json, os, signal, sys, tempfile, traceback
exec(sys.argv[1])

def child(code, folder, given, out, err):
    os.chdir(folder)
    with tempfile.TemporaryFile() as start:
        start.write(given.encode())
        start.seek(0)
        os.dup2(start.fileno(), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    signal.alarm(int(sys.argv[2]))
    sys.stdin, sys.argv, status = open(0, closefd=False), ["-c"], 0
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)

for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if not process:
            child(*json.loads(line), out, err)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    print(json.dumps([status, *texts]), flush=True)
"""
TORCH = "import torch"
TRANSFORMERS = "import torch; from transformers import AutoModel, AutoTokenizer, BertModel, PreTrainedModel"
# All that commands import: for tests of what they do, in processes without threads that may fork themselves.
EVERYTHING = "from research.torture.forks import warm; warm()"
LIMIT = 400  # seconds


@functools.cache
def _server(imports: str, python: str) -> subprocess.Popen[str]:
    command, pipe = [python, "-c", SERVER, imports, str(LIMIT)], subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=_environment(python, imports), cwd="/")
    atexit.register(server.communicate)  # ends with its standard input
    return server


def _environment(python: str, imports: str) -> dict[str, str]:
    """Another interpreter has nothing of this one's paths; one that imports everything finds the clone."""
    if imports == EVERYTHING:
        from research.torture.forks import ENVIRONMENT  # not on every system

        return {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
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
        options = {"input": given, "capture_output": True, "text": True, "env": _environment(python, imports)}
        return subprocess.run(command, cwd=folder, check=False, **options)
    server = _server(imports, python)
    server.stdin.write(json.dumps([code, str(folder), given]) + "\n")
    server.stdin.flush()
    return subprocess.CompletedProcess(command, *json.loads(server.stdout.readline()))
