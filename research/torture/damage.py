"""Damage to files of any format, and to texts and JSON: each a function of the file and a source of random choices."""

import copy
import json
import os
import pickle
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

Damage = Callable[[Path, random.Random], None]
WITNESS = "witness"  # the file that code from outside makes, where it is run
CODE = f"import pathlib; pathlib.Path({WITNESS!r}).touch()"


class Malice:
    """A pickle of this object makes the witness where it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, (CODE,))


def _bytes(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    """Damage that makes other bytes of a file's bytes."""

    def damage(path: Path, draw: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), draw))

    return damage


def _flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 3, 20))):
        changed[draw.randrange(len(changed))] ^= draw.randrange(1, 256)
    return bytes(changed)


def _foreign(content: bytes, draw: random.Random) -> bytes:
    """The beginning of a file of another kind, then what was there."""
    starts = (b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"\x89PNG\r\n\x1a\n", b"PAR1", b"%PDF-1.7\n", b"\x93NUMPY\x01\x00")
    return draw.choice((*starts, b"<html><body>404</body></html>", b"version https://git-lfs.github.com/spec/v1\n")) + (
        content if draw.random() < 0.5 else b""
    )


def _folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _dangling(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _circle(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _endless(path: Path, draw: random.Random) -> None:
    """A device that gives zeros for ever: one of its own, since a superuser could do harm to the system's."""
    path.unlink()
    if os.geteuid() == 0:
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        except OSError:
            os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


def _forbidden(path: Path, draw: random.Random) -> None:
    path.chmod(0)


ANY: dict[str, Damage] = {
    "cut": _bytes(lambda content, draw: content[: draw.randrange(len(content))]),
    "flipped": _bytes(_flip),
    "empty": _bytes(lambda content, draw: b""),
    "foreign": _bytes(_foreign),
    "noise": _bytes(lambda content, draw: draw.randbytes(draw.choice((3, 300, 30_000)))),
    "zeros": _bytes(lambda content, draw: bytes(draw.choice((1, 1000, 100_000)))),
    "longer": _bytes(lambda content, draw: content + draw.choice((b"\x00" * 100, content, b"\xff\xfe", b"}"))),
    "pickled": _bytes(lambda content, draw: pickle.dumps({"a": Malice()}, protocol=draw.choice((0, 2, 4)))),
    "folder": _folder,
    "pipe": _fifo,
    "dangling link": _dangling,
    "circle of links": _circle,
    "endless": _endless,
    "not readable": _forbidden,
}


def _one_line(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    """Damage to one line of a text."""

    def damage(path: Path, draw: random.Random) -> None:
        lines = path.read_bytes().splitlines(keepends=True) or [b""]
        place = draw.randrange(len(lines))
        lines[place] = change(lines[place], draw)
        path.write_bytes(b"".join(lines))

    return damage


def _insert(piece: bytes) -> Callable[[bytes, random.Random], bytes]:
    def change(content: bytes, draw: random.Random) -> bytes:
        place = draw.randrange(len(content) + 1)
        return content[:place] + piece + content[place:]

    return change


TEXT: dict[str, Damage] = {
    "not UTF-8": _one_line(_insert(b"\xff\xc3\x28")),
    "UTF-16": _bytes(lambda content, draw: content.decode().encode("utf-16")),
    "byte order mark": _bytes(lambda content, draw: b"\xef\xbb\xbf" + content),
    "CRLF": _bytes(lambda content, draw: content.replace(b"\n", b"\r\n")),
    "CR": _bytes(lambda content, draw: content.replace(b"\n", b"\r")),
    "NUL": _one_line(_insert(b"\x00")),
    "escape codes": _one_line(_insert(b"\x1b]0;x\x07\x1b[31m")),
    "no line end": _bytes(lambda content, draw: content.rstrip(b"\n")),
    "enormous field": _one_line(_insert(b"word " * 400_000)),
    "enormous word": _one_line(_insert(b"w" * 1_000_000)),
    "many blank lines": _bytes(lambda content, draw: b"\n" * 200_000 + content),
    "a quote": _one_line(_insert(b'"')),
    "a separator": _one_line(_insert(b",\t")),
    "a line lost": _one_line(lambda line, draw: b""),
    "a line twice": _one_line(lambda line, draw: line + line),
}


def _nested(draw: random.Random) -> str:
    depth = draw.choice((500, 5_000, 200_000))
    return draw.choice(("[" * depth, "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))


def _odd_values(draw: random.Random, value: Any) -> list[Any]:
    """What may stand where `value` should."""
    return [
        *(None, True, -1, 0, 1, 3, 2**31, 2**63, -(2**70), 10**400, 0.5, 1e308, -1e-320),
        *(float("nan"), float("inf"), "", "x", "nan", "1e999", "\x00", "\ud800", "../../../etc/passwd", "x" * 100_000),
        *(
            [],
            {},
            [[]],
            [value],
            {"a": value},
            str(value),
            [value] * 1000,
            [None, 1, "a"],
            json.loads("[" * 300 + "]" * 300),
        ),
        draw.randrange(-1000, 1000),
    ]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container within a value, with each of its keys or positions."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def odd_value(content: Any, draw: random.Random) -> Any:
    """A JSON value with one part replaced, left out or renamed."""
    content = copy.deepcopy(content)
    places = _places(content)
    if not places:
        return draw.choice(_odd_values(draw, content))
    # Each level is as likely as the others: there are many words in a vocabulary.
    container, key = draw.choice(places if draw.random() < 0.5 else places[: 1 + len(content)])
    way = draw.random()
    if way < 0.7:
        container[key] = draw.choice(_odd_values(draw, container[key]))
    elif way < 0.85 or not isinstance(container, dict):
        del container[key]
    else:
        container[f"{key}s"] = container.pop(key)
    return content


def _odd_json(path: Path, draw: random.Random) -> None:
    """One value of a JSON file, or of one of its lines, is another one."""
    text = path.read_text()
    try:
        path.write_text(json.dumps(odd_value(json.loads(text), draw)))
    except json.JSONDecodeError:
        lines = text.splitlines()
        place = draw.randrange(len(lines))
        lines[place] = json.dumps(odd_value(json.loads(lines[place]), draw))
        path.write_text("\n".join(lines))


JSON: dict[str, Damage] = {
    "odd value": _odd_json,
    "another odd value": _odd_json,
    "one more odd value": _odd_json,
    "deep nesting": _bytes(lambda content, draw: _nested(draw).encode()),
    "another type": _bytes(lambda content, draw: draw.choice((b"[1, 2]", b"7", b'"text"', b"null", b"NaN", b"true"))),
    "no keys": _bytes(lambda content, draw: b"{}"),
    "an unknown key": _bytes(lambda content, draw: content.replace(b"{", b'{"unknown": [1],', 1)),
    "a key twice": _bytes(lambda content, draw: content.replace(b"}", b', "label": NaN, "label": 1e999}')),
}
