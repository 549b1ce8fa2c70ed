"""Characters of texts that may hold anything: which can be printed, how many fit."""

import unicodedata

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """`text` with a replacement character for each that cannot be printed: control and direction marks, line ends."""
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)


def shorten(text: str, max_length: int) -> str:
    """At most `max_length` characters; the last is an ellipsis where some are left out."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def capitalize(text: str) -> str:
    """`text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def display_width(text: str) -> int:
    """Columns that `text` takes in a terminal: two for wide characters, none for those that join the one before."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
