"""Our docstrings as reStructuredText, which autodoc expects.

Docstrings are plain text: equations, names between single backticks, indented lines that stand as they are, lists that
begin with "- ", and "Args:" above indented names with their meaning. Every other sign means itself, so it is escaped.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

CODE = re.compile(r"(`[^`]+`)")
SPECIAL = re.compile(r"([\\*|_])")
ARGUMENT = re.compile(r"    (?P<names>[\w, ]+): (?P<meaning>.*)")


def as_restructured(lines: Sequence[str]) -> list[str]:
    """The lines of a docstring, without the indent that all of them have."""
    result: list[str] = []
    for blank, group in groupby(lines, lambda line: not line.strip()):
        block = list(group)
        result += [""] * len(block) if blank else _block(block)
    return [*result, ""]


def _block(lines: list[str]) -> Iterator[str]:
    """Lines without a blank one between them."""
    if lines[0] == "Args:":
        yield from _arguments(lines[1:])
    elif lines[0].startswith("    "):
        yield from ("::", "", *lines)
    else:
        for line in lines:  # one that hangs below another goes on with it
            yield _text(line if line.startswith("- ") or lines[0].startswith("- ") else line.lstrip())


def _arguments(lines: list[str]) -> Iterator[str]:
    """A list of names, each with its meaning."""
    for line in lines:
        match = ARGUMENT.match(line)
        if match is None:
            yield f"  {_text(line.strip())}"
        else:
            names = ", ".join(f"``{name}``" for name in match["names"].split(", "))
            yield f"- {names}: {_text(match['meaning'])}"


def _text(line: str) -> str:
    """Code between double backticks, every other sign escaped."""
    parts = CODE.split(line)
    return "".join(_code(parts, number) if number % 2 else SPECIAL.sub(r"\\\1", parts[number])
                   for number in range(len(parts)))  # fmt: skip


def _code(parts: list[str], number: int) -> str:
    """A space that prints nothing keeps code apart from a letter that follows it."""
    return f"`{parts[number]}`" + ("\\ " if re.match(r"\w", parts[number + 1]) else "")
