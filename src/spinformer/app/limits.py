"""What one visitor may ask of the page, and the errors that say so."""

import re
import sys
from collections.abc import Sequence

from spinformer.data.word_pattern import WORD

CHARACTERS = 600  # of each text
WORDS = 60  # of both texts together: the work grows with their square
SAMPLES = (64, 2048)
TEMPERATURES = (0.05, 2.0)
PASSES = (64, 256, 1024)  # masked passes to choose from
STEPS = (1, 16)
SIDE = 28
DAMAGES = {"hide patches": 0.9, "add noise": 2.0}  # the largest amount of each
SEEDS = 2**31 - 1
# Requests that wait, requests that are worked on at once, and bytes of a request.
QUEUE, AT_ONCE, BYTES = 64, 2, 64 * 1024
# Of a file of texts: its bytes, those of a request that holds it in base64, rows, and seconds for all of them.
FILE_BYTES = 256 * 1024
FILE_REQUEST, ROWS, FILE_SECONDS = FILE_BYTES // 3 * 4 + 4096, 200, 60.0
EACH = f"{CHARACTERS} characters and {WORDS} words"
# Refinements and files, one of which is worked on at a time: how many may wait, and seconds for a refinement.
LONG_WAITING, REFINE_SECONDS = 4, 60.0
# Seconds in which a request must arrive, connections that may wait for theirs, and how many more for half a second.
ARRIVAL, UNFINISHED, BURST, GRACE = 10.0, 100, 200, 0.5
# Seconds in which what was sent must be taken, and connections that may be slow to take it.
TAKING, UNTAKEN = 30.0, 100
# Visitors that are remembered, and seconds that a visitor's second connection waits for the first to end.
SESSIONS, TURN = 100, 2.0
_DRAWING = re.compile(rf"[0-9a-f]{{{2 * SIDE * SIDE}}}")


def check_texts(names: Sequence[str], texts: Sequence[object]) -> tuple[str, ...]:
    """As many texts as there are names, none empty or too long."""
    checked = tuple(_text(name, text) for name, text in zip(names, texts, strict=False))
    count = sum(len(WORD.findall(text)) for text in checked)
    if count > WORDS:
        if len(names) > 1:
            raise ValueError(f"Both texts together may have {WORDS} words; these have {count}.")
        raise ValueError(f"The {names[0]} may have {WORDS} words; this one has {count}.")
    return checked


def fits(texts: Sequence[str]) -> bool:
    """Whether `check_texts` would take them."""
    try:
        check_texts(texts, texts)
    except ValueError:
        return False
    return True


def _text(name: str, text: object) -> str:
    if not isinstance(text, str) or not WORD.search(text):
        raise ValueError(f"The {name} is empty: please write a sentence.")
    if len(text) > CHARACTERS:
        raise ValueError(f"The {name} may have {CHARACTERS} characters; this one has {len(text)}.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"The {name} holds half a character: please write it again.")
    return text.strip()


def choice(name: str, value: object, count: int) -> int | None:
    """The number of one of so many classes; None where none was chosen, which is -1."""
    number = integer(name, value, -1, count - 1)
    return None if number < 0 else number


def passes(value: object) -> int:
    """One of PASSES."""
    if isinstance(value, bool) or value not in PASSES:
        raise ValueError(f"The number of passes must be one of {', '.join(map(str, PASSES))}.")
    return int(value)


def number(name: str, value: object, low: float, high: float) -> float:
    """A finite number within its bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}.")
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low:g} to {high:g}; got {value:g}.")
    return float(value)


def integer(name: str, value: object, low: int, high: int) -> int:
    """A whole number within its bounds."""
    result = number(name, value, low, high)
    if result != int(result):
        raise ValueError(f"{name} must be a whole number; got {result:g}.")
    return int(result)


def damage(kind: object, amount: object) -> tuple[str, float]:
    """How a picture is damaged, and how much."""
    if not isinstance(kind, str) or kind not in DAMAGES:
        raise ValueError(f"The damage must be one of: {', '.join(DAMAGES)}.")
    return kind, number("The amount of damage", amount, 0, DAMAGES[kind])


def drawing(code: object) -> bytes:
    """The pixels of a drawing, row by row, from two hexadecimal digits each."""
    if not isinstance(code, str) or not _DRAWING.fullmatch(code):
        raise ValueError(f"A drawing must be {SIDE} x {SIDE} grey pixels.")
    pixels = bytes.fromhex(code)
    if not any(pixels):
        raise ValueError("The picture is empty: please choose a digit or draw one.")
    return pixels
