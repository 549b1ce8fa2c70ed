"""Which numbers of the words does a table show? Those that differ from word to word; the score always.

A number that is the same for every word says nothing about any of them, such as a gate of 0.5. It is kept apart, for
those who ask.
"""

import math
from dataclasses import dataclass
from operator import attrgetter

from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.layout import score_name

Numbers = tuple[float | None, ...]
# Numbers of a word beside its score: name, field of `Word`, digits, and whether the sign is always shown.
OTHERS = (
    ("Shapley", "shapley", 4, True),
    ("Banzhaf", "banzhaf", 4, True),
    ("field", "field", 3, False),
    ("gate", "gate", 3, False),
    ("attention", "attention", 3, False),
)


@dataclass(frozen=True)
class Column:
    """One number of every word.

    stderr: its standard error; misfit: the part of that which is due to the game. Both are empty where no word has
    one. digits: after the point; signed: whether the sign is always shown.
    """

    name: str
    numbers: Numbers
    digits: int
    signed: bool
    stderr: Numbers = ()
    misfit: Numbers = ()

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for every word, as far as its digits tell."""
        return len({None if number is None else round(number, self.digits) for number in self.numbers}) == 1

    @property
    def sampling(self) -> Numbers:
        """The part of the standard error that is due to sampling, None where it is not known."""
        return tuple(map(sampling_error, self.stderr or (None,) * len(self.misfit), self.misfit))


def word_columns(record: ExplanationRecord) -> tuple[list[Column], list[Column]]:
    """The columns to show, the score first, and those that are the same for every word."""
    name = score_name(record).removesuffix(" value")
    errors, misfit = _field(record, "importance_stderr"), _field(record, "misfit_stderr")
    score = Column(name, _field(record, "importance"), 4, True, errors, misfit)
    others = [
        Column(title, numbers, digits, signed, _field(record, f"{field}_stderr") if signed else ())
        for title, field, digits, signed in OTHERS
        if title != name and (numbers := _field(record, field))
    ]
    shown = [column for column in others if not column.is_constant]
    return [score, *shown], [column for column in others if column.is_constant]


def sampling_error(stderr: float | None, misfit: float | None) -> float | None:
    """sqrt(stderr^2 - misfit^2): what is left of a standard error without the game's part; None where unknown."""
    return None if stderr is None or misfit is None else math.sqrt(max(0.0, stderr**2 - misfit**2))


def _field(record: ExplanationRecord, name: str) -> Numbers:
    """A field of `Word` for every word; nothing where no word has it."""
    numbers = tuple(map(attrgetter(name), record.words))
    return numbers if any(number is not None for number in numbers) else ()
