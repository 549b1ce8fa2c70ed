"""Texts that may hold anything, made fit for a terminal."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """`text` with a replacement character for each that cannot be printed: control and direction marks, line ends."""
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)
