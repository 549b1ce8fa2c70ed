"""Characters of texts that may hold anything: how many fit."""

import unicodedata


def shorten(text: str, max_length: int) -> str:
    """At most `max_length` characters; the last is an ellipsis where some are left out."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def fit(text: str, columns: int) -> str:
    """As much of `text` as this many columns of a terminal hold; an ellipsis ends it where some is left out."""
    if display_width(text) <= columns:
        return text
    end = next(end for end in range(len(text) - 1, -1, -1) if display_width(text[:end]) < columns)
    return text[:end].rstrip() + "…"


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
