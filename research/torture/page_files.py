"""Hostile files for the web page: archives, binaries, rows without end, markup, formulas, wrong columns, broken tables.

Each is the name and the content of a file that a visitor sends. What comes back must be a result or a sentence.
"""

import base64
import gzip
import io
import json
import zipfile
from functools import cache

from spinformer.app import limits

BOMB = 1 << 23  # bytes that a packed file of a few KB unpacks to
HEAD = b"premise,hypothesis\n"
FORMULAS = ('=HYPERLINK("http://evil.example","dog")', "+cmd|' /C calc'!A0", "-2+3+cmd|'x'!A0", "@SUM(1+1)*cmd")
MARKUP = ("<script>alert(1)</script> dog", "<img src=x onerror=alert(2)> cat", "</iframe><svg onload=alert(3)>")


def as_value(name: str, content: bytes) -> str:
    """What the page sends for a file."""
    return f"{name}\n{base64.b64encode(content).decode()}"


def _archive() -> bytes:
    """A small zip that unpacks to a thousand times its size."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("texts.csv", b"a" * BOMB)
    return packed.getvalue()


def _csv(rows: list[tuple[str, str]]) -> bytes:
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    return HEAD + "\n".join(quoted).encode()


@cache
def hostile_files() -> dict[str, tuple[str, bytes]]:
    """By what is wrong with it, each file's name and content."""
    pair = b"a dog,a cat\n"
    deep = b'{"premise": ' + b"[" * 20_000 + b"]" * 20_000 + b', "hypothesis": "a cat"}'
    many = {f"c{number}": "x" for number in range(5_000)}
    return {
        "a zip bomb": ("texts.zip", _archive()),
        "a zip bomb by another name": ("texts.csv", _archive()),
        "a gzip bomb": ("texts.csv.gz", gzip.compress(b"a" * BOMB)),
        "a gzip bomb by another name": ("texts.jsonl", gzip.compress(b"a" * BOMB)),
        "a program": ("texts.csv", b"\x7fELF\x02\x01\x01" + bytes(1000)),
        "a pickle": ("texts.jsonl", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94."),
        "UTF-16": ("texts.csv", (HEAD + pair).decode().encode("utf-16")),
        "Latin-1": ("texts.csv", HEAD + "a caf\u00e9,a cat\n".encode("latin-1")),
        "nothing": ("texts.csv", b""),
        "a header alone": ("texts.csv", HEAD),
        "empty lines": ("texts.txt", b"\n" * 10_000),
        "wrong columns": ("texts.csv", b"id,score\n1,2\n"),
        "one column of two": ("texts.csv", b"premise\na dog\n"),
        "5,000 columns": ("texts.jsonl", json.dumps(many).encode()),
        "a cell too few": ("texts.csv", HEAD + pair + b"a dog\n"),
        "a quote without end": ("texts.csv", HEAD + b'"a dog,a cat\n' * 100),
        "a cell of 200 KB": ("texts.csv", HEAD + b"a" * 200_000 + b",a cat\n"),
        "a line of 250 KB": ("texts.txt", b"dog " * 60_000),
        "100,000 rows": ("texts.csv", HEAD + b"a,b\n" * 60_000),
        "too large": ("texts.txt", b"a\tb\n" * (limits.FILE_BYTES // 4 + 1)),
        "deep JSON": ("texts.jsonl", deep),
        "a number of 5,000 digits": ("texts.jsonl", b'{"premise": ' + b"9" * 5000 + b', "hypothesis": "a"}'),
        "numbers for texts": ("texts.jsonl", b'{"premise": 1, "hypothesis": null}'),
        "half a character": ("texts.jsonl", b'{"premise": "a \\ud800 dog", "hypothesis": "a cat"}'),
        "a list": ("texts.jsonl", b'["a dog", "a cat"]'),
        "NaN": ("texts.jsonl", b'{"premise": NaN, "hypothesis": "a cat"}'),
        "markup": ("texts.csv", _csv([(text, "a cat") for text in MARKUP])),
        "formulas": ("texts.csv", _csv([(text, "a dog") for text in FORMULAS])),
        "control characters": ("texts.txt", "\x1b[2Ja dog\x07\t\x9b31m a cat\u202e\u2066".encode()),
        "a name with markup": ("<img src=x onerror=alert(1)>.csv", HEAD + pair),
        "a name with folders": ("../../etc/passwd.csv", HEAD + pair),
        "a name with line ends": ("a\r.csv", HEAD + pair),
        "a long name": ("a" * 190 + ".csv", HEAD + pair),
        "a very long name": ("a" * 5000 + ".csv", HEAD + pair),
        "no ending": ("texts", HEAD + pair),
    }
