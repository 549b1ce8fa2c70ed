"""Refinement: masked passes of the classifier, spent on what its game misses.

    value(v) = value(g) + value(v - g)

for every index, since indices are linear in the game: g is the predicted game, whose values cost no pass, and v the
classifier's. The values of v - g are read from the passes by a Gaussian process (`spinformer.games.evidence`). It is
drawn to 0, so few passes change little, and it looks at the words that do something in the game. So do the passes: each
is the one that tells most of the values that are wanted (`spinformer.games.selection`). Without a game g is 0, and the
same code starts from nothing.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base import checks
from spinformer._base.progress import progress
from spinformer._base.threads import thread_map
from spinformer.data.words import Words
from spinformer.explain.scoring import text_seed
from spinformer.games import Estimate, GameValues, estimate_all
from spinformer.games.evidence import regress
from spinformer.games.indices import INDICES
from spinformer.games.selection import informative_design
from spinformer.games.values import GAME_INDICES, player_weights
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier, stack_coalitions
from spinformer.models.outputs import value_of
from spinformer.models.predicted_games import PredictedGames

# Masked passes where none are asked for; the first that `until` spends; the most, whatever it says.
PASSES, FIRST, MAX_PASSES = 512, 64, 8192
MIN_PASSES = 4
# Coalitions of the game, and of the game beside MANY passes or more: its own values must not be what is least known.
SAMPLES, MORE_SAMPLES, MANY = 1024, 2048, 256
# Passes between two steps of the progress bar, which shows after DELAY seconds.
STEP, DELAY = 64, 2.0
# How much wider intervals of words and of pairs are than the Gaussian process says, where no held-out texts told; those
# of words more where there are fewer passes than so many for each word.
WIDENING, PAIR_WIDENING, FEW = 1.3, 1.2, 3


@dataclass(frozen=True)
class Refined:
    """values: of the classifier, as a batch; misfit: the part of the standard errors of each of GAME_INDICES that is
    due to the game, None without one; passes: masked passes of each text.
    """

    values: GameValues
    misfit: dict[str, Tensor] | None
    passes: list[int]


@dataclass
class _Text:
    """What is known of one text: the coalitions asked, (K, n), of which the first is empty, and the answers v and g.

    index: of the values that passes are to tell, SV or BV.
    """

    players: int
    seed: Tensor
    index: str
    full: float
    asked: Tensor
    answers: Tensor = field(default_factory=lambda: torch.zeros(0))
    predicted: Tensor = field(default_factory=lambda: torch.zeros(0))
    game: GameValues | None = None
    found: GameValues | None = None

    @cached_property
    def weights(self) -> Tensor | None:
        """How much each word does in the game; None without one."""
        return None if self.game is None else player_weights(self.game.activity[0])

    @property
    def known(self) -> bool:
        """Whether all coalitions were asked."""
        return len(self.answers) == 2 ** min(self.players, 62)

    def new(self, passes: int) -> Tensor:
        """Coalitions for so many passes, all words need none; without those asked before."""
        design = informative_design(self.players, passes + 1, self.seed, self.weights, self.index)
        if len(design) < 2 ** min(self.players, 62):
            return design[len(self.asked) :]
        bits = 2 ** torch.arange(self.players)  # all coalitions are in another order than some of them
        return design[~torch.isin((design * bits).sum(1), (self.asked * bits).sum(1))]


@torch.no_grad()
def refine(
    classifier: MaskedClassifier,
    words: Words,
    probabilities: Tensor,
    classes: Tensor,
    games: PredictedGames | None,
    head: GameHead | None,
    *,
    passes: int = 0,
    until: float | None = None,
    seconds: float | None = None,
    seed: int = 0,
    indices: Sequence[str] = ("SV",),
) -> Refined:
    """Values of the words of a batch of texts, from `passes` masked passes of each (0 stands for PASSES).

    probabilities: of the full texts, (B, classes); classes: those explained, (B,), or (B, 2) with those that they are
    explained against; games, head: the game and its game head, None without one. indices: those of words whose errors
    count, of which the first, SV or BV, decides what is asked. until: passes are doubled, from `passes` or FIRST, until
    with 95% confidence no word's value in `indices` is off by more than this; seconds: or until so much time is spent.
    A text whose 2^n coalitions fit is enumerated, and its values are exact. The standard errors of the result say what
    was reached.
    """
    if passes:
        checks.at_least("passes", passes, MIN_PASSES)
    counts, start = words.counts.tolist(), time.monotonic()
    full = value_of(probabilities, classes).tolist()
    texts = [
        _Text(count, text_seed(words, row, seed), indices[0], full[row], torch.zeros(0, count, dtype=torch.bool))
        for row, count in enumerate(counts)
    ]
    scales: list[float | None] = [None] * len(texts)
    if games is not None and head is not None:
        samples = SAMPLES if until is None and 0 < passes < MANY else MORE_SAMPLES
        values = estimate_all(games.game(classes), samples, seed=torch.tensor(seed), tolerance=games.tolerance)
        for row, text in enumerate(texts):
            text.game = values.row(row, text.players)
        if head.misfit is not None:
            error = head.misfit.stderr("SV", values, games, classes).square()
            scales = (error.sum(-1) / games.mask.sum(-1)).sqrt().tolist()
    size = passes or (PASSES if until is None else FIRST)
    active = list(range(len(texts)))
    while active:
        _ask(classifier, words, classes, texts, active, size, games)
        found = thread_map(lambda row: _regress(texts[row], scales[row]), active)
        for row, one in zip(active, found, strict=True):
            texts[row].found = one
        if until is None or 2 * size > MAX_PASSES:
            break
        spent = time.monotonic() - start
        if seconds is not None and 3 * spent > seconds:  # the next round takes twice as long as all before
            break
        active = [row for row in active if _largest_error(texts[row], indices, head) > until]
        size *= 2
    return _collect(texts, words.mask.shape[1], head)


def _ask(
    classifier: MaskedClassifier,
    words: Words,
    classes: Tensor,
    texts: Sequence[_Text],
    active: Sequence[int],
    size: int,
    games: PredictedGames | None,
) -> None:
    """Spend the passes that these texts still lack for `size`, all texts together."""
    new = dict(zip(active, thread_map(lambda row: texts[row].new(size), active), strict=True))
    place, asked = stack_coalitions(list(new.values()), words.mask.shape[1])
    owner = torch.tensor(active)[place]
    counts = words.counts.cpu()[owner]
    whole = asked.sum(1) == counts  # known already
    answers = torch.tensor([texts[row].full for row in owner.tolist()])
    open_rows = (~whole).nonzero().squeeze(1)
    step = STEP if classifier.device.type == "cpu" else 64 * STEP
    parts = open_rows.split(step) if len(open_rows) else ()
    for part in progress(parts, "masked passes", delay=DELAY) if len(parts) > 1 else parts:
        rows = classifier.row_probabilities(words, owner[part], asked[part]).cpu()
        answers[part] = value_of(rows, classes.cpu()[owner[part]])
    for row, rows in new.items():
        text = texts[row]
        text.asked = torch.cat([text.asked, rows])
        text.answers = torch.cat([text.answers, answers[owner == row]])
        if games is not None and len(rows):
            own = games.select([row], text.players).game(classes[row : row + 1])
            text.predicted = torch.cat([text.predicted, own.evaluate(rows[None].to(own.device))[0].cpu()])


def _regress(text: _Text, scale: float | None) -> GameValues:
    """The values of v - g, or of v where there is no game or all is known, and their standard errors."""
    if text.game is None or text.known:
        return regress(text.asked, text.answers)
    return regress(text.asked, text.answers - text.predicted, weights=text.weights, scale=scale)


def _widening(index: str, head: GameHead | None, text: _Text) -> float:
    """What held-out texts say about the standard errors that the passes of a text leave; without any, w max(1, f)^1/3

    w: WIDENING or PAIR_WIDENING; f: FEW n / K, of n words after K passes, and 1 for pairs.
    """
    passes = len(text.answers)
    if head is not None and head.misfit is not None:
        return head.misfit.scales[index].left_by(passes)
    if INDICES[index].pairwise:
        return PAIR_WIDENING
    return WIDENING * max(1.0, FEW * text.players / passes) ** (1 / 3)


def _largest_error(text: _Text, indices: Sequence[str], head: GameHead | None) -> float:
    """The largest error of any word, with 95% confidence for all words together."""
    if text.known:
        return 0.0
    deviations = math.sqrt(2) * float(torch.erfinv(torch.tensor(1 - 0.05 / text.players, dtype=torch.float64)))
    assert text.found is not None
    largest = 0.0
    for name in indices:
        left = _widening(name, head, text) * text.found.by_index[name].stderr
        if text.game is not None:
            left = torch.hypot(left, text.game.by_index[name].stderr.double())
        largest = max(largest, float(left.max()))
    return deviations * largest


def _collect(texts: Sequence[_Text], width: int, head: GameHead | None) -> Refined:
    """The sums value(g) + value(v - g) as a batch."""
    budget = max(len(text.answers) for text in texts)
    parts, misfit = {}, {}
    for name in GAME_INDICES:
        columns: list[list[Tensor]] = [[], [], [], []]
        for text in texts:
            for column, part in zip(columns, _sum(text, name, _widening(name, head, text)), strict=True):
                column.append(functional.pad(part.float(), [0, width - text.players] * (part.dim() - 1)))
        values, stderr, misfit[name], ess = (torch.cat(column) for column in columns)
        parts[name] = Estimate(values, stderr, ess, budget)
    empty = torch.tensor([float(text.answers[0]) for text in texts])
    spent = [len(text.answers) - 1 for text in texts]
    return Refined(GameValues.of(parts, empty), None if head is None else misfit, spent)


def _sum(text: _Text, name: str, widening: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Value and standard error of v, the part of it that the passes leave, and the number of passes behind each value.

    A text that was enumerated is exact. Of pairs that the game tells nothing of, nothing is told.
    """
    assert text.found is not None
    found = text.found.by_index[name]
    left, asked = widening * found.stderr, torch.full_like(found.values, len(text.answers))
    if text.game is None or text.known:
        return found.values, left, left, asked
    base = text.game.by_index[name]
    return found.values + base.values, torch.hypot(left, base.stderr.double()), left, asked * (base.ess > 0)
