"""A process that waits, with some libraries imported, and forks for every piece of code that it is asked to run.

`tests.fresh` starts the first one, `python -c` with what stands here. One with more libraries is a fork of another.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback


def main(words):
    """words: of `serve`, and the file descriptor at which it says that it is ready."""
    path, lifeline, imports, limit, ready = words
    serve(path, int(lifeline), imports, int(limit), int(ready))


def serve(path, lifeline, imports, limit, ready):
    """Answer at this socket, until the other end of the lifeline is closed."""
    exec(imports, {"__name__": "imports"})
    gc.collect()
    gc.freeze()  # a fork looks for no garbage here
    servers = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(ready, b"ready")
        os.close(ready)
        while lifeline not in select.select([listener, lifeline], [], [])[0]:
            connection = listener.accept()[0]
            request = json.loads(connection.makefile().readline())
            process = os.fork()
            if not process:
                listener.close()
                answer(request, connection, lifeline, limit)
            connection.close()
            if "path" in request:
                servers.append(process)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    for process in servers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def answer(request, connection, lifeline, limit):
    """In a fork: run code and say how it ended, or be another server."""
    try:
        if "code" in request:
            connection.sendall(json.dumps(run(request, connection, limit)).encode() + b"\n")
        elif not request["python"]:
            serve(request["path"], lifeline, request["imports"], limit, connection.detach())
        else:
            for number in (lifeline, connection.fileno()):
                os.set_inheritable(number, True)
            words = [request["path"], lifeline, request["imports"], limit, connection.fileno()]
            command = [request["python"], "-c", request["source"], *map(str, words)]
            os.execve(request["python"], command, request["environment"])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def run(request, connection, limit):
    """Exit status, standard output and standard error of code in a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if not process:
            connection.close()
            child(request["code"], request["folder"], request["given"], out, err, limit)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return [status, *texts]


def child(code, folder, given, out, err, limit):
    os.chdir(folder)
    with tempfile.TemporaryFile() as start:
        start.write(given.encode())
        start.seek(0)
        os.dup2(start.fileno(), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    signal.alarm(limit)
    sys.stdin, sys.argv, status = os.fdopen(0, closefd=False), ["-c"], 0
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


if __name__ == "__main__":
    main(sys.argv[1:])
