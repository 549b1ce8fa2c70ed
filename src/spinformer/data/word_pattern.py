"""What a word is, by its characters alone."""

import re
import unicodedata
from itertools import chain


def _joining() -> str:
    """Characters that belong to the one before them, as ranges inside [...]: accents, vowel signs, joiners, variation
    selectors.
    """
    category, ranges = unicodedata.category, list[list[int]]()
    for code in chain(range(0x20000), range(0xE0000, 0xE0200)):  # Unicode has joining characters nowhere else
        if category(chr(code)) in ("Mn", "Mc", "Me", "Cf"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


# Letters of scripts that are written without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
# A word is a run of letters, digits and underscores, or several runs joined by single apostrophes or hyphens; every
# other character but space is a word by itself, and an emoji is one word with all of its parts. A run of letters that
# are written without spaces is one match, which `UNSPACED` finds again; tokens cut it further.
_JOIN = _joining()
_LETTER = rf"[^\W{_UNSPACED}]"
_RUN = rf"{_LETTER}(?:{_LETTER}|[{_JOIN}])*"
_WITHOUT = rf"(?=\w)[{_UNSPACED}](?:(?=\w)[{_UNSPACED}]|[{_JOIN}])*"
_EMOJI = rf"[^\w\s{_JOIN}][{_JOIN}\U0001F3FB-\U0001F3FF]*"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
WORD = re.compile(rf"{_RUN}(?:['’\-]{_RUN})*|{_WITHOUT}|{_FLAG}|{_EMOJI}(?:(?<=\u200d){_EMOJI})*")
# One character of such a script, with what joins it.
UNSPACED = re.compile(rf"(?=\w)[{_UNSPACED}][{_JOIN}]*")
