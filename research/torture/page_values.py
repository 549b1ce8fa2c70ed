"""Hostile values for the web page's functions: wrong types for every argument, and texts that try to be markup."""

import base64
import csv
import io
import json
import random
import re
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from typing import Any

from research.benchmarks.app import functions, join_queue, picture, read_answer
from research.torture.page_files import as_value, hostile_files
from spinformer.app import limits

# Right values for the arguments of each function.
RIGHT: dict[str, list[Any]] = {
    "explain": ["A man sleeps.", "Nobody is awake.", 0.25, 64, -1, -1],
    "refine": ["A man sleeps.", "Nobody is awake.", 0.25, 64, -1, -1, 64],
    "file": [as_value("texts.csv", b"premise,hypothesis\na dog,a cat\na man,nobody sleeps\n"), -1, -1],
    "watch": picture(random.Random(0)),
}
WRONG: tuple[Any, ...] = (
    *(None, True, False, -1, 0.5, 1e308, -1e-320, float("nan"), float("inf"), 10**400, 2**63, "", " ", "0", "x"),
    *("\ud800", "\x1b[31m", "\x00", "../../etc/passwd", "http://127.0.0.1:1/", "ff" * 784 + "\n", "\u0661" * 1568),
    "x" * 60_000,
)
OFTEN = 2  # wrong values for each argument of a function that does the same as another
FORMULA = ("=", "+", "-", "@")  # what a cell begins with that spreadsheets compute
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea></script><svg onload=alert(1)>",
    "\"'><b onmouseover=alert(1)>dog</b>",
    "javascript:alert(1)//",
    "<!-- --!><a href='javascript:alert(1)'>dog</a>",
    "]]><iframe srcdoc='<script>alert(1)</script>'>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &amp;#60; &#x3c;",
    "{{7*7}} ${7*7} <%= 7*7 %> #{7*7}",
    "<style>*{background:url(//evil.example)}</style>",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
)
STRANGE = (
    "\x1b[2J\x1b]0;owned\x07 dog \x9b31m",
    "a\x00b \x01\x02\x7f\x85 dog",
    "dog\n\ndata: {}\n\nevent: x\r\n\r\nHTTP/1.1 200 OK",
    "\u202edog\u202c \u2066cat\u2069 \u200b\ufeff",
    "Z" + "\u0301" * 500,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea " * 20,
    "\uffff \ufffe \U0010ffff dog",
    "\u2028\u2029 dog",
    "\u5b57" * 600,
    "a" * 600,
    "a" * 601,
    "a" * 60_000,
    "a " * 30,
    "a " * 61,
    ". ! ? ;",
    "dog \udc80 cat",
    "%s %n {0} {x!r} \\u0041 $(id) `id` '; DROP TABLE dogs; --",
)


@dataclass(frozen=True)
class Question:
    """Values for a function of the page."""

    kind: str
    name: str
    function: str
    values: tuple[Any, ...]


def hostile_questions(seed: int, names: list[str]) -> list[Question]:
    """Wrong values for every argument of the functions `names`, of which several do the same, and hostile texts."""
    generator, found = random.Random(seed), []
    for name in names:
        right = RIGHT[name.partition("_")[0]]
        for place in range(len(right)):
            wrong = WRONG if name in RIGHT else generator.sample(WRONG, OFTEN)
            for value in wrong:
                values = (*right[:place], value, *right[place + 1 :])
                found.append(Question("values", f"{name} with {_short(value)} as value {place}", name, values))
    for text in (*MARKUP, *STRANGE):
        for place, values in enumerate(((text, "a cat", 0.25, 64, -1, -1), ("a dog", text, 0.25, 64, -1, -1))):
            found.append(Question("texts", f"the text {_short(text)} as value {place}", "explain", values))
    for what, (name, content) in hostile_files().items():
        found.append(Question("files", f"a file: {what}", "file", (as_value(name, content), -1, -1)))
    return found


def _short(value: Any) -> str:
    text = f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > 1e30 else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}... ({len(text)} characters)"


def ask(url: str, question: Question) -> str | None:
    """Send a question; returns what is wrong with the answer, which must be a result or a sentence."""
    try:
        answer = read_answer(url, join_queue(url, functions(url)[question.function], list(question.values)))
    except (OSError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    if re.fullmatch(r'<div class="message" role="alert">[^<>]{5,300}</div>', answer):
        return "the sentence for a defect" if "Something went wrong" in answer else None
    if not answer.startswith('<div class="result"'):
        return f"neither a result nor a sentence: {answer[:200]!r}"
    kind = question.function.partition("_")[0]
    foreign = _elements(answer) - _usual(url, kind)[0]
    if foreign:
        return f"elements that come from the values: {sorted(foreign)[:3]}"
    if kind == "file":
        page, _, table = _downloads(answer)
        foreign = _elements(page) - _usual(url, kind)[1]
        if foreign:
            return f"elements in the overview that come from the file: {sorted(foreign)[:3]}"
        cells = (cell.strip() for row in csv.reader(io.StringIO(table)) for cell in row)
        formulas = [cell for cell in cells if cell.startswith(FORMULA)]
        return f"a table with the formula {formulas[0][:60]!r}" if formulas else None
    if kind in ("explain", "refine"):
        saved, report = _downloads(answer)
        kept = json.loads(saved)
        foreign = _elements(report) - _usual(url, kind)[1]
        if foreign:
            return f"elements in the report that come from the text: {sorted(foreign)[:3]}"
        texts = [str(text).strip() for text in question.values[:2]]
        if kept["texts"] != texts:
            return f"other texts than those that were sent: {kept['texts']!r}"
    return None


class _Elements(HTMLParser):
    """The elements of a document with their attributes, and the schemes of addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the element, its attributes and where it points to."""
        self.found.add(tag)
        for name, value in attrs:
            scheme = (value or "").strip().partition(":")[0] if name in ("href", "src", "action") else ""
            self.found.add(f"{tag} {name} {scheme[:20]}".strip())


def _elements(document: str) -> set[str]:
    parser = _Elements()
    parser.feed(document)
    parser.close()
    return parser.found


@cache
def _usual(url: str, function: str) -> tuple[set[str], set[str]]:
    """The elements of a function's ordinary answers, and those of their reports."""
    answers, reports = set[str](), set[str]()
    noted = ("字" * 300, "字")  # cut, and in pieces of the tokenizer: the report has notes
    pairs = (("A man sleeps.", "Nobody is awake."), ("a dog", "a cat"), ("dog " * 30, "cat " * 30), noted)
    texts = [[*pair, 0.25, limits.SAMPLES[0], -1, -1] for pair in pairs]
    usual = {"explain": texts, "refine": [[*values, 64] for values in texts], "watch": [RIGHT["watch"]]}
    usual["file"] = [RIGHT["file"], _noted_file()]
    for values in usual[function]:
        answer = read_answer(url, join_queue(url, functions(url)[function], values))
        answers |= _elements(answer)
        if function != "watch":
            reports |= _elements(_downloads(answer)[0 if function == "file" else 1])
    return answers, reports


def _noted_file() -> list[Any]:
    """An ordinary file with several classes, unusual texts and a note: its page has every element that one may have."""
    words = ("a dog", "two red cats", "the man sleeps", "nobody", "a woman eats outside", "not a cat")
    rows = [f"{first}\t{second}" for first in words for second in words]
    return [as_value("texts.txt", "\n".join([*rows, "word " * 99 + "\ta"]).encode()), -1, -1]


def _downloads(answer: str) -> list[str]:
    """The files in the links of an answer."""
    return [base64.b64decode(code).decode() for code in re.findall(r'href="data:[^"]*base64,([^"]*)"', answer)]
