"""What a set of explanations says, as plain data: words, pairs, classes, unusual texts, and differences of two sets."""

import math
from dataclasses import dataclass, field

from spinformer.explain.record import DEVIATIONS, ExplanationRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOverTexts:
    """The mean of one number x_t over the n texts that have it, and how far it may be from that of all such texts.

    count: n; clusters: how many of these texts are independent; mean: (1/n) sum of x_t; stderr: its standard error,
    None with fewer than two independent texts; reach: half of a 95% interval, which draws on what other words vary by
    (see `aggregate`). misfit_stderr: the mean of the texts' misfit_stderr, the most that the game can add to the error.
    That is so if it errs alike in all texts, so it does not fall with their number; None where it is not known.
    """

    count: int
    clusters: int
    mean: float
    stderr: float | None
    reach: float
    misfit_stderr: float | None

    @property
    def reach_with_misfit(self) -> float:
        """`reach` if the game errs alike in all texts."""
        return math.hypot(self.reach, DEVIATIONS * (self.misfit_stderr or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance(MeanOverTexts):
    """How much a word or a pair matters, whatever it speaks for.

    mean_abs = (1/n) sum of |x_t|          how much does it matter where it stands?
    share    = sum of |x_t| / the same sum over all words, or all pairs: its part of all that they do
    lower    = mean_abs - mean_abs_reach   how much does it surely matter? 0 where one text alone has it
    """

    mean_abs: float
    mean_abs_stderr: float | None
    mean_abs_reach: float
    share: float

    @property
    def lower(self) -> float:
        """The lower end of the 95% interval of `mean_abs`, 0 with fewer than two independent texts."""
        return 0.0 if self.clusters < 2 else max(0.0, self.mean_abs - self.mean_abs_reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSummary(Importance):
    """One word over the texts that have it; x_t is its value, the sum where a text has it several times.

    text: the word; side: 0 for the first text, 1 for the second. A mean above 0 speaks for the explained class.
    """

    text: str
    side: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSummary(Importance):
    """Two words over the texts that have both; x_t is their interaction."""

    first: str
    first_side: int
    second: str
    second_side: int


@dataclass(frozen=True, slots=True)
class Deviation:
    """A word of an unusual text: its value here, the usual value in its class, and how many other texts say so."""

    text: str
    side: int
    value: float
    usual: float
    count: int


@dataclass(frozen=True)
class UnusualText:
    """A text whose reasons differ from the usual ones of its class.

    index: its position in the set; record: its explanation; distance: about 1 is usual (see `unusual`); deviations: its
    words, those that differ most first.
    """

    index: int
    record: ExplanationRecord
    distance: float
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True)
class GroupSummary:
    """The texts of one class, or of one cohort.

    name: of the group; count: of its texts; value, base_value: means over its texts of what is explained, with all
    words and with none; words, pairs: those that surely matter most first; labels: how often each class was decided.
    """

    name: str
    count: int
    value: float
    base_value: float | None
    words: tuple[WordSummary, ...]
    pairs: tuple[PairSummary, ...]
    labels: dict[str, int]


@dataclass(frozen=True)
class Overview:
    """All that a page of a set shows. whole: every text; notes: with the number of explanations that have them.

    example: one of the explanations, for the names of what is shown; partial_pairs: whether texts have their strongest
    pairs only.
    """

    whole: GroupSummary
    classes: tuple[GroupSummary, ...]
    cohorts: tuple[GroupSummary, ...]
    unusual: tuple[UnusualText, ...]
    notes: dict[str, int]
    methods: dict[str, int]
    passes: float
    example: ExplanationRecord
    partial_pairs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifference(MeanOverTexts):
    """How differently two models weigh a word or a pair, over the texts that both explain for the same class.

    x_t is the value to the first model less that to the second; first_mean, second_mean: of the two values. The misfit
    of a text is the root of the sum of both squares.
    """

    first_mean: float
    second_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WordDifference(MeanDifference):
    """Of one word."""

    text: str
    side: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDifference(MeanDifference):
    """Of the interaction of two words."""

    first: str
    first_side: int
    second: str
    second_side: int


@dataclass(frozen=True)
class Disagreement:
    """A text that two models decide differently: both explanations, and how far apart they are.

    index: its position in the first set; gap: the mean, over the two decisions, of how much more probable a model's own
    decision is to it than to the other model.
    """

    index: int
    first: ExplanationRecord
    second: ExplanationRecord
    gap: float


@dataclass(frozen=True)
class DifferenceSummary:
    """Two sets of explanations of the same texts. names: of the models; count: texts that are in both; compared:
    explanations of the same text for the same class; words, pairs: those that are weighed most differently first.
    """

    names: tuple[str, str]
    count: int
    compared: int
    words: tuple[WordDifference, ...]
    pairs: tuple[PairDifference, ...]
    disagreements: tuple[Disagreement, ...] = field(default=())
