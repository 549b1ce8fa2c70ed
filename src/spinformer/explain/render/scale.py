"""Which colour does a number get? The same one in every text: scales belong to the method, not to the text.

    part = sign(x) |x / limit|^(2/3),   x = number - middle,   cut to -1..1

A part of 1 is the full colour for a class, -1 the full colour against it, 0 none. The exponent gives weak numbers a
little more colour than their share. So a text that decided nothing stays pale, and pages can be compared.

Most scores are differences of probability, and so are interactions: both have full colour at 0.5. Attention has its
middle at 0.5, where a spin is undecided. A few methods give numbers of no natural size. Their full colour is the
largest number shown, which the legend says.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from spinformer.explain.record import ExplanationRecord

EXPONENT = 2 / 3
# Differences of probability that have the full colour: of words, and of pairs.
WORD_LIMIT, PAIR_LIMIT = 0.5, 0.5
# Numbers that a legend shows, as shares of the limit; the first is left out where the limit is no round number.
MARKS = (0.1, 0.4, 1.0)


@dataclass(frozen=True)
class Scale:
    """From numbers to colours.

    limit: distance from the middle that has the full colour; middle: the number that has none; signed: whether numbers
    below the middle occur; fixed: whether the limit is the same for every text.
    """

    limit: float
    middle: float = 0.0
    signed: bool = True
    fixed: bool = True

    def part(self, number: float) -> float:
        """How deep its colour is, -1 to 1."""
        share = (number - self.middle) / self.limit
        return math.copysign(min(1.0, abs(share)) ** EXPONENT, share)

    @property
    def is_open(self) -> bool:
        """Whether numbers beyond the limit may occur."""
        return self.fixed and self.middle == 0

    @property
    def marks(self) -> tuple[float, ...]:
        """Numbers that explain the scale, rising."""
        above = MARKS if self.fixed else MARKS[1:]
        shares = [*(-share for share in reversed(above) if self.signed), 0.0, *above]
        return tuple(self.middle + share * self.limit for share in shares)

    def label(self, mark: float) -> str:
        """A mark as text, with its sign where the middle is 0."""
        plain = f"{mark:.2g}"
        number = f"{mark:+.2g}".replace("-", "−") if self.signed and not self.middle and float(plain) else plain
        if not self.is_open or abs(mark) < self.limit:
            return number
        return f"{'≥' if mark > 0 else '≤'} {number}"

    @property
    def remark(self) -> str:
        """Whether colours of one text can be compared with those of another."""
        return "one scale for all texts" if self.fixed else "no fixed scale: set by the largest number here"


@dataclass(frozen=True)
class Scales:
    """Of what is drawn together: of the words' scores, and of the pairs' interactions."""

    words: Scale
    pairs: Scale


PROBABILITY = Scale(WORD_LIMIT)
FIXED = {
    "shapley": PROBABILITY,
    "banzhaf": PROBABILITY,
    "field": PROBABILITY,
    "kernel-shap": PROBABILITY,
    "shapley-sampling": PROBABILITY,
    "leave-one-out": PROBABILITY,
    "integrated-gradients": PROBABILITY,
    "additive-explainer": PROBABILITY,
    "attention": Scale(0.5, middle=0.5),
    "layer": Scale(1.0, signed=False),
    "random": Scale(1.0, signed=False),
}
# Methods whose scores have no natural size.
LOOSE = ("gradient-times-input", "layer-field", "layer-shapley", "layer-banzhaf")


def scales_of(*records: ExplanationRecord) -> Scales:
    """The scales of explanations by one method that are shown together."""
    method = records[0].method
    in_probability = any(record.base_value is not None for record in records)  # numbers of a game that says so
    words = FIXED.get(method, PROBABILITY if in_probability else None)
    if words is None or method in LOOSE:
        words = _own(score for record in records for score in record.importance)
    if not method.startswith("layer") and (in_probability or any(record.pair_index for record in records)):
        return Scales(words, Scale(PAIR_LIMIT))
    return Scales(words, _own(pair.interaction for record in records for pair in record.pairs))


def shared_scales(records: Iterable[ExplanationRecord]) -> dict[str, Scales]:
    """The scales of each method on a page of several explanations."""
    alike: dict[str, list[ExplanationRecord]] = {}
    for record in records:
        alike.setdefault(record.method, []).append(record)
    return {method: scales_of(*group) for method, group in alike.items()}


def _own(numbers: Iterable[float]) -> Scale:
    """The scale of numbers without a natural size: full colour at the largest."""
    largest = max((abs(number) for number in numbers), default=0.0)
    return Scale(largest or 1.0, fixed=False)
