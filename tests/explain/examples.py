"""Invented explanations, with numbers of both signs, for tests of how they are drawn."""

import random
from dataclasses import replace
from functools import cache

from spinformer.explain.explanation import Explanation
from spinformer.explain.record import Pair, Word

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

NOTE = "the game explains <b>9%</b> & $x^2$: a guess"


def explanation(first, second=None, *, label="for $it$ <i>", seed=0, **changes) -> Explanation:
    """With random values; `second` None for a single text."""
    draw = random.Random(seed)
    words = tuple(_word(text, side, draw) for side, texts in enumerate((first, second or [])) for text in texts)
    count = len(words)
    pairs = tuple(
        Pair(i, j, draw.gauss(0, 0.02), draw.random() / 100) for i in range(count) for j in range(i + 1, count)
    )
    values = {
        "texts": (" ".join(first),) if second is None else (" ".join(first), " ".join(second)),
        "label": label,
        "target": label,
        "probabilities": {label: 0.7, "other & <u>": 0.3},
        "words": words,
        "pairs": pairs,
        "base_value": 0.3,
        "method": "shapley",
        "passes": 1,
        "samples": 64,
        "ess": 12.5,
        "converged": True,
        "pair_index": "SII",
    }
    return Explanation(**{**values, **changes})


def _word(text, side, draw) -> Word:
    shapley, shapley_stderr = draw.gauss(0, 0.1), draw.random() / 50
    return Word(
        text,
        side,
        importance=shapley,
        importance_stderr=shapley_stderr,
        shapley=shapley,
        shapley_stderr=shapley_stderr,
        banzhaf=draw.gauss(0, 0.05),
        banzhaf_stderr=draw.random() / 90,
        gate=0.5,
        field=draw.gauss(0, 0.1),
        attention=draw.random(),
    )


def scored(*scores, **changes) -> Explanation:
    """One text of words w0, w1 ... with these Shapley values, which sum to the probability less the base value."""
    words = tuple(
        Word(f"w{index}", 0, score, 0.01, shapley=score, gate=0.5, attention=index / 100)
        for index, score in enumerate(scores)
    )
    base = 0.7 - sum(scores)
    return explanation([word.text for word in words], **{"words": words, "base_value": base, "pairs": (), **changes})


def scores_only(first, second=None, **changes) -> Explanation:
    """Of a method that gives each word a score and nothing else: no error, no game, no pairs."""
    words = tuple(
        Word(text, side, 0.3 - 0.2 * index)
        for side, texts in enumerate((first, second or []))
        for index, text in enumerate(texts)
    )
    absent = {"pairs": (), "base_value": None, "samples": 0, "ess": None, "converged": None, "pair_index": None}
    return explanation(first, second, words=words, method="random", **{**absent, **changes})


def noted() -> Explanation:
    """With notes that spell markup and formulas, one of them long, and both parts of every standard error."""
    plain = explanation(["not", "bad"], ["good"], notes=(NOTE, "a long note " * 20))
    words = tuple(replace(word, misfit_stderr=0.6 * word.importance_stderr) for word in plain.words)
    pairs = tuple(replace(pair, misfit_stderr=0.6 * pair.stderr) for pair in plain.pairs)
    return replace(plain, words=words, pairs=pairs)


@cache
def every() -> dict[str, Explanation]:
    """The kinds of texts that figures and pages must cope with, by name."""
    plain = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "sleeps"]
    zero = {"importance": 0, "importance_stderr": 0, "shapley": 0, "shapley_stderr": 0}
    silent = tuple(
        Word(text, side, **zero, banzhaf=0, banzhaf_stderr=0) for text, side in (("a", 0), ("b", 0), ("c", 1))
    )
    without_interaction = tuple(Pair(i, j, 0.0, 0.0) for i, j in ((0, 1), (0, 2), (1, 2)))
    return {
        "pair": explanation(plain, ["no", "fox", "is", "awake"]),
        "hostile": explanation(list(HOSTILE[:10]), list(HOSTILE[10:])),
        "one word": explanation(["cat"]),
        "one and one": explanation(["cat"], ["dog"]),
        "128 words": explanation([f"word{i}" for i in range(90)], [f"other{i}" for i in range(38)]),
        "128 words of one text": explanation([f"w{i}" for i in range(128)]),
        "zeros": explanation(["a", "b"], ["c"], words=silent, pairs=without_interaction, ess=None, converged=None),
        "second cut off": explanation(["a", "b"], [], texts=("a b", "c")),
        "another class": explanation(["not", "bad"], ["good"], target="other & <u>"),
        "noted": noted(),
        "scores only": scores_only(["not", "bad", "at", "all"], ["it", "is"]),
    }
