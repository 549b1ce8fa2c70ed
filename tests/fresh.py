"""Code in a process that has imported some libraries and nothing else, forked from one that waits."""

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

SERVER = """
import json, os, sys, tempfile, traceback
exec(sys.argv[1])

def child(code, folder, given, out, err):
    os.chdir(folder)
    with tempfile.TemporaryFile() as start:
        start.write(given.encode())
        start.seek(0)
        os.dup2(start.fileno(), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
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


@functools.cache
def _server(imports: str) -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, imports], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)  # ends with its standard input
    return server


def run(code: str, *, imports: str = TORCH, folder: Path | None = None, given: str = "") -> subprocess.CompletedProcess:
    """As `python -c code` there. imports: what that process has imported; given: its standard input."""
    folder = Path.cwd() if folder is None else folder
    command = [sys.executable, "-c", code]
    if not hasattr(os, "fork"):
        return subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=False)
    server = _server(imports)
    server.stdin.write(json.dumps([code, str(folder), given]) + "\n")
    server.stdin.flush()
    return subprocess.CompletedProcess(command, *json.loads(server.stdout.readline()))
