"""Hostile bodies and values of a request to the web page's queue, as bytes, each with what it is."""

import json
import random
from collections.abc import Iterator

from research.torture.page_client import ANSWER, JOIN, join, request
from spinformer.app import limits

VALUES = ["A man sleeps.", "Nobody.", 0.25, 64, -1, -1]  # what an ordinary visitor asks
JUNK = 40  # random requests of each sort


def noise(generator: random.Random) -> Iterator[tuple[str, bytes]]:
    """Random bytes, and a request of which a few bytes were changed."""
    for number in range(JUNK):
        yield f"random bytes {number}", generator.randbytes(generator.randrange(1, 400)) + b"\r\n\r\n"
        whole = bytearray(join(VALUES, session=f"noise{number}", **{"x": "y" * 20}))
        end = whole.index(b"\r\n\r\n")
        for _ in range(generator.randrange(1, 6)):  # the head alone: a body may be anything
            whole[generator.randrange(end)] = generator.randrange(256)
        yield f"a request with changed bytes {bytes(whole[:end])!r}", bytes(whole) + b"\r\n\r\n" * 2


def bodies(generator: random.Random) -> Iterator[tuple[str, bytes]]:
    """Bodies that are no request to the page."""
    whole = json.dumps({"data": VALUES, "fn_index": 0, "session_hash": "torture"}).encode()
    bodies = {
        "nothing": b"",
        "bad UTF-8": whole.replace(b"Nobody", b"\xff\xfe\xc0\x80"),
        "half of it": whole[: len(whole) // 2],
        "twice": whole * 2,
        "deep lists": b"[" * 30_000,
        "deep data": b'{"data": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        "deep objects": b'{"data": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
        "a number of 5,000 digits": whole.replace(b"64", b"9" * 5000),
        "one byte too many": whole + b" " * (limits.BYTES + 1 - len(whole)),
        "as long as a file": whole + b" " * (limits.FILE_REQUEST - len(whole)),
        "one byte more than a file": whole + b" " * (limits.FILE_REQUEST + 1 - len(whole)),
        "a megabyte": b" " * 1_000_000,
        "UTF-7": whole.decode().encode("utf-7").replace(b"{", b"+AHs-"),
        "another format": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
        "files": json.dumps({"data": [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}] * 4}).encode(),
        "addresses": json.dumps({"data": [{"url": "http://127.0.0.1:1/"}] * 4, "fn_index": 0}).encode(),
    }
    yield from ((f"a body: {name}", request(JOIN, "POST", body)) for name, body in bodies.items())
    for text in ("null", "true", "3", '"x"', "[]", "{}", '{"data": null}', '{"data": {}}', '{"data": [[]]}', "NaN"):
        yield f"a body: {text}", request(JOIN, "POST", text.encode())
    for _ in range(JUNK):
        body = bytearray(whole)
        place = generator.randrange(len(body) - 1)
        body[place : place + generator.randrange(1, 9)] = b"\x00" + generator.randbytes(3)
        yield f"a body with changed bytes {bytes(body)!r}", request(JOIN, "POST", bytes(body))
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "\x80",
        "a" * 900,
    ):
        broken = whole.replace(b'"data"', b'"date"')
        yield f"Content-Type: {kind[:30]!r}", request(JOIN, "POST", broken, [("Content-Type", kind)])


def functions(generator: random.Random) -> Iterator[tuple[str, bytes]]:
    """Functions that the page does not have, and values that are too few or too many."""
    numbers = (-1, 1000, 10**6, 10**30, 0.5, "0", "explain", None, True, [0], {"a": 0}, float("nan"), float("inf"))
    for number in (*numbers, *(generator.randrange(100, 10**9) for _ in range(5))):
        yield f"function {number!r}", join(VALUES, number)
    for count in (0, 1, 3, 7, 1000):
        yield f"{count} values", join([1] * count)


def sessions(generator: random.Random) -> Iterator[tuple[str, bytes]]:
    """Names that no session may have, and answers that nobody asked for."""
    names = (None, "", "x" * 65, "a b", "../x", {"a": 1}, 3, "\x1b[31m", "\ud800", "\u00e9", "a\r\nX: y", ["x"])
    for name in names:
        yield f"session {name!r}", join(VALUES, session=name)
    for asked in (
        "x" * 65,
        "nobody",
        "%00",
        "%1b[31m",
        "a&session_hash=b",
        "",
        f"{generator.getrandbits(48):x}",
        "%ff",
    ):
        yield f"answers of session {asked!r}", request(f"{ANSWER}?session_hash={asked}")
    yield "answers of no session", request(ANSWER)
