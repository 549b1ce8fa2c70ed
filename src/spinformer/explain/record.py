"""What an explanation says, as plain data: the words, the pairs of words, and how their numbers were obtained."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from spinformer._base import checks
from spinformer._base.outputs import Outputs

# Standard errors on either side that make a 95% interval.
DEVIATIONS = 1.96
PLAYERS = ("words", "sentences", "spans", "hierarchical")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of an explained text.

    text: the word; side: 0 for the first text, 1 for the second. importance: the score that the explanation's method
    gives the word for the explained class; importance_stderr: its standard error towards the classifier's own value, 0
    where it is exact, None where it is not known; misfit_stderr: the part of it that is due to the game, which only
    predicts the classifier (the rest is sampling: its square and that of the sampling error add up). shapley, banzhaf:
    both values in the game v(C), with standard errors; gate, field, attention: of the Ising model that the game makes.
    All of these are None where the method does not compute them.
    """

    text: str
    side: int
    importance: float
    importance_stderr: float | None = None
    misfit_stderr: float | None = None
    shapley: float | None = None
    shapley_stderr: float | None = None
    banzhaf: float | None = None
    banzhaf_stderr: float | None = None
    gate: float | None = None
    field: float | None = None
    attention: float | None = None
    field_stderr: float | None = None
    attention_stderr: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two words by their positions, first < second.

    interaction: positive where both together add more than the sum of both alone (synergy), negative where they add
    less (antagonism); stderr, misfit_stderr: as for a word's importance.
    """

    first: int
    second: int
    interaction: float
    stderr: float | None = None
    misfit_stderr: float | None = None


@dataclass(frozen=True)
class ExplanationRecord:
    """The fields of an explanation, and what follows from them.

    texts: the text or the two texts; label: the predicted class; target: the class that is explained, the predicted one
    unless another was asked for; probabilities: of every class, for the whole text; words, pairs: what speaks for or
    against `target`, `pairs` empty where the method computes none; base_value: the probability of `target` with every
    word hidden, None where the method does not ask for it; method: its name; passes: forward passes of the classifier
    (a game read from one pass asks beside it, once for all texts of one length, what the classifier says of no words);
    samples: coalitions behind the words' values; ess: effective sample size of the Ising model's estimates; converged:
    whether its mean field was reached; pair_index: what the pairs' interactions are, "SII" (Shapley's) or "BII"
    (Banzhaf's), None where it is neither; notes: what a reader must know before relying on the numbers, a line each;
    outputs: what the model puts out, "classes" (one of several), "labels" (several at once, each with its own
    probability) or "scores" (`probabilities` then holds numbers of any size, and the score takes the place of the
    probability in all fields); against: the class that `target` is explained against, so that all numbers are of the
    difference of the two, None where it is explained alone; unread: of each text the end that the model did not read
    because it takes no more, empty where it read all; players: what `words` are, "words", "sentences", "spans" that a
    caller named, or "hierarchical", the words of some sentences beside other sentences.
    """

    texts: tuple[str, ...]
    label: str
    target: str
    probabilities: dict[str, float]
    words: tuple[Word, ...]
    pairs: tuple[Pair, ...]
    base_value: float | None
    method: str
    passes: int
    samples: int
    ess: float | None = None
    converged: bool | None = None
    pair_index: str | None = None
    notes: tuple[str, ...] = ()
    outputs: str = "classes"
    against: str | None = None
    unread: tuple[str, ...] = ()
    players: str = "words"

    @property
    def full_value(self) -> float:
        """v of all words: the probability or score of `target`, less that of `against`."""
        return self.probabilities[self.target] - (0.0 if self.against is None else self.probabilities[self.against])

    @property
    def importance(self) -> list[float]:
        """The method's score of each word."""
        return [word.importance for word in self.words]

    @property
    def importance_stderr(self) -> list[float]:
        """The standard error of each score, NaN where it is not known."""
        return [_number(word.importance_stderr) for word in self.words]

    @property
    def importance_interval(self) -> list[tuple[float, float]]:
        """The 95% interval of each score, NaN where its standard error is not known."""
        reach = [DEVIATIONS * error for error in self.importance_stderr]
        return [(value - part, value + part) for value, part in zip(self.importance, reach, strict=True)]

    @property
    def attention(self) -> list[float]:
        """The mean-field attention of each word, NaN where the method computes none."""
        return [_number(word.attention) for word in self.words]

    @property
    def interactions(self) -> list[list[float]]:
        """The symmetric matrix of the pairs' interactions, 0 on the diagonal; NaN where the method computes none."""
        return self._matrix([pair.interaction for pair in self.pairs])

    @property
    def interactions_stderr(self) -> list[list[float]]:
        """The symmetric matrix of their standard errors, 0 on the diagonal, NaN where one is not known."""
        return self._matrix([_number(pair.stderr) for pair in self.pairs])

    def top_words(self, k: int = 5) -> list[Word]:
        """The words with the largest scores, of either sign."""
        checks.at_least("k", k, 1)
        return sorted(self.words, key=lambda word: -abs(word.importance))[:k]

    def top_pairs(self, k: int = 5) -> list[tuple[Word, Word, float]]:
        """The pairs with the largest interactions, of either sign."""
        checks.at_least("k", k, 1)
        return [(self.words[pair.first], self.words[pair.second], pair.interaction) for pair in self.ranked_pairs()[:k]]

    def ranked_pairs(self) -> list[Pair]:
        """All pairs, those with the largest interactions of either sign first."""
        return sorted(self.pairs, key=lambda pair: -abs(pair.interaction))

    def _matrix(self, values: list[float]) -> list[list[float]]:
        unknown, count = 0.0 if self.pairs else math.nan, len(self.words)
        matrix = [[0.0 if i == j else unknown for j in range(count)] for i in range(count)]
        for pair, value in zip(self.pairs, values, strict=True):
            matrix[pair.first][pair.second] = matrix[pair.second][pair.first] = value
        return matrix


def check_record(record: ExplanationRecord) -> None:
    """A ValueError where a field, as a file may hold it, is not what an explanation has."""
    _check_fields("an explanation", record)
    if not record.words or len(record.texts) not in (1, 2) or not record.probabilities:
        raise ValueError("an explanation has words, one or two texts, and probabilities")
    for name, share in record.probabilities.items():
        allowed = type(share) in (int, float) and math.isfinite(share)
        if not isinstance(name, str) or not allowed or (record.outputs != "scores" and not 0 <= share <= 1.001):
            raise ValueError(f"probabilities must be numbers from 0 to 1 by the classes' names; got {share!r:.60}")
    if record.outputs not in get_args(Outputs):
        raise ValueError(f"outputs must be one of {', '.join(get_args(Outputs))}; got {record.outputs!r:.60}")
    for text in (*record.texts, *record.notes, *record.unread):
        if not isinstance(text, str):
            raise ValueError(f"texts, notes and unread must be strings; got {text!r:.60}")
    if record.players not in PLAYERS:
        raise ValueError(f"players must be one of {', '.join(PLAYERS)}; got {record.players!r:.60}")
    if len(record.unread) not in (0, len(record.texts)):
        raise ValueError(f"unread must have an entry for each of {len(record.texts)} texts; got {len(record.unread)}")
    named = {record.label, record.target, *([] if record.against is None else [record.against])}
    if not named <= set(record.probabilities):
        raise ValueError(
            f"label and target must be classes with a probability; got {record.label!r}, {record.target!r}"
        )
    for word in record.words:
        _check_fields("a word", word)
        if not 0 <= word.side < len(record.texts):
            raise ValueError(f"side must be that of one of {len(record.texts)} texts; got {word.side}")
    for pair in record.pairs:
        _check_fields("a pair", pair)
        if not 0 <= pair.first < pair.second < len(record.words):
            raise ValueError(f"a pair must be of two of {len(record.words)} words; got {pair.first} and {pair.second}")


def _check_fields(whose: str, record: Any) -> None:
    """Strings, flags, integers and finite numbers where the annotations say so; containers are not looked into."""
    for name, wanted, names in _simple_fields(type(record)):  # type: ignore[arg-type]  # classes can be hashed
        value = getattr(record, name)
        kind = type(value)
        if kind not in wanted or (kind is float and not math.isfinite(value)):
            raise ValueError(f"{name} of {whose} must be {names}; got {value!r:.60}")


@cache
def _simple_fields(record: type[Any]) -> list[tuple[str, tuple[type, ...], str]]:
    """The fields that are no containers: the name of each, its types, and these in words."""
    simple = []
    for field in fields(record):
        kinds = get_args(field.type) or (field.type,)
        if get_origin(field.type) in (None, UnionType):
            names = " or ".join("none" if kind is NoneType else kind.__name__ for kind in kinds)
            simple.append((field.name, (*kinds, int) if float in kinds else kinds, names))
    return simple


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def positions_in(pairs: Iterable[Pair]) -> set[int]:
    """The positions of the words that are in one of these pairs."""
    return {position for pair in pairs for position in (pair.first, pair.second)}
