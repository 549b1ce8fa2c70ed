"""Explanations made up, with numbers of both signs, for tests of how they are shown."""

import random

from spinformer.explain import Explanation, Pair, Word

HOSTILE = (
    "<script>alert(1)</script>",
    '"onmouseover="alert(1)',
    "</style><b>x</b>&amp;",
    "$x^2$",
    "$\\frac{1}",
    "\\$5",
    "\u202eevil\u202c",
    "\u200fعربي",
    "👩‍👩‍👧",
    "😀",
    "漢字",
    "line\nbreak",
    "\ttab",
    "_legend",
    "%s{0}",
    "W" * 300,
    "e\u0301",
    "\u2066x",
    "]]>",
    "<!--",
)


def explanation(first, second=None, *, label="for $it$ <i>", seed=0, **changes) -> Explanation:
    """With random values; `second` None for a single text."""
    draw = random.Random(seed)
    words = tuple(
        Word(
            text,
            side,
            draw.gauss(0, 0.1),
            draw.random() / 50,
            draw.gauss(0, 0.05),
            draw.random() / 90,
            0.5,
            draw.gauss(0, 0.1),
            draw.random(),
        )
        for side, texts in enumerate((first, second or []))
        for text in texts
    )
    count = len(words)
    pairs = tuple(
        Pair(i, j, draw.gauss(0, 0.02), draw.random() / 100) for i in range(count) for j in range(i + 1, count)
    )
    given = {
        "texts": (" ".join(first),) if second is None else (" ".join(first), " ".join(second)),
        "label": label,
        "probabilities": {label: 0.7, "other & <u>": 0.3},
        "words": words,
        "pairs": pairs,
        "empty_value": 0.3,
        "method": "grounded",
        "passes": 1,
        "samples": 64,
        "ess": 12.5,
        "converged": True,
    }
    return Explanation(**{**given, **changes})


def every() -> dict[str, Explanation]:
    """The kinds of texts that pictures and pages must cope with, by name."""
    plain = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "sleeps"]
    silent = tuple(Word(text, side, 0, 0, 0, 0) for text, side in (("a", 0), ("b", 0), ("c", 1)))
    still = tuple(Pair(i, j, 0.0, 0.0) for i, j in ((0, 1), (0, 2), (1, 2)))
    return {
        "pair": explanation(plain, ["no", "fox", "is", "awake"]),
        "hostile": explanation(list(HOSTILE[:10]), list(HOSTILE[10:])),
        "one word": explanation(["cat"]),
        "one and one": explanation(["cat"], ["dog"]),
        "128 words": explanation([f"word{i}" for i in range(90)], [f"other{i}" for i in range(38)]),
        "128 words of one text": explanation([f"w{i}" for i in range(128)]),
        "zeros": explanation(["a", "b"], ["c"], words=silent, pairs=still, ess=None, converged=None),
        "second cut off": explanation(["a", "b"], [], texts=("a b", "c")),
    }
