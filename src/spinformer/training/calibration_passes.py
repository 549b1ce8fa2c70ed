"""Ask the classifier about parts of held-out texts, to see how far the game is from it."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.threads import thread_map
from spinformer.data.words import Words
from spinformer.games.quadrature import estimate_all
from spinformer.games.selection import informative_design
from spinformer.games.values import GameValues, player_weights
from spinformer.models.masked import MaskedClassifier, stack_coalitions
from spinformer.models.misfit import REFINED, TextFacts
from spinformer.models.outputs import value_of
from spinformer.models.predicted_games import PredictedGames

COALITIONS = 64  # of the game of a text that is not asked closely


class AskedText(NamedTuple):
    """A text and what was asked of it. weights: how much each word does; confidence: p_y(N), (1,); asked: coalitions,
    (K, n); first: those of them that passes for the values of an index begin with, SV and BV, in their order; error: v
    less g of those asked, (K,), and spread: v less its mean.
    """

    values: GameValues
    weights: Tensor
    confidence: Tensor
    asked: Tensor
    first: dict[str, Tensor]
    error: Tensor
    spread: Tensor

    @property
    def players(self) -> int:
        """n."""
        return self.asked.shape[1]

    @property
    def facts(self) -> TextFacts:
        """Nothing is known yet of how hard it is."""
        return TextFacts(self.confidence, torch.zeros(1))

    @property
    def rms(self) -> float:
        """Of v less g, over the coalitions that were chosen for Shapley values."""
        return math.sqrt(float(self.error[self.first["SV"]].square().mean()))


def ask(
    classifier: MaskedClassifier, words: Words, games: PredictedGames, passes: int, seed: Tensor, *, closely: bool
) -> list[AskedText]:
    """A batch of texts, each asked `passes` times for Shapley values; closely: half as often for Banzhaf values too."""
    target = games.full.argmax(-1)
    game, confidence = games.game(target), games.confidence(target).cpu()
    budget = 0 if closely else COALITIONS
    values = estimate_all(game, budget, seed=seed, tolerance=games.tolerance)
    counts = words.counts.tolist()
    singles = [values.row(row, count) for row, count in enumerate(counts)]
    weights = [player_weights(single.activity[0]) for single in singles]
    designs = thread_map(lambda own: _design(own, passes, seed, banzhaf=closely), weights)
    width = max(counts)
    owner, every = stack_coalitions([asked for asked, _ in designs], width)
    probabilities = classifier.row_probabilities(words, owner, every)
    answers = value_of(probabilities, target[owner.to(target.device)]).cpu().double()
    blocks = torch.zeros(len(counts), max(len(asked) for asked, _ in designs), width, dtype=torch.bool)
    for row, (asked, _) in enumerate(designs):
        blocks[row, : len(asked), : counts[row]] = asked
    predicted = game.evaluate(blocks.to(game.device)).cpu().double()
    texts = []
    for row, (asked, first) in enumerate(designs):
        answer = answers[owner == row]
        error = answer - predicted[row, : len(asked)]
        own = (singles[row], weights[row], confidence[row : row + 1], asked, first)
        texts.append(AskedText(*own, error, answer - answer[first["SV"]].mean()))
    return texts


def _design(weights: Tensor, passes: int, seed: Tensor, *, banzhaf: bool) -> tuple[Tensor, dict[str, Tensor]]:
    """`asked` and `first` of `AskedText`: coalitions, each once, and where those for each index are among them."""
    count = len(weights)
    shapley = informative_design(count, passes + 1, seed, weights)
    places = {row.tobytes(): place for place, row in enumerate(shapley.numpy())}
    first = {"SV": torch.arange(len(shapley))}
    if not banzhaf or len(shapley) == 2 ** min(count, 62):
        return shapley, first | {"BV": first["SV"]}
    other = informative_design(count, min(REFINED[-1], passes // 2) + 1, seed, weights, "BV")
    new = [place for place, row in enumerate(other.numpy()) if row.tobytes() not in places]
    places |= {other[place].numpy().tobytes(): len(shapley) + rank for rank, place in enumerate(new)}
    first["BV"] = torch.tensor([places[row.tobytes()] for row in other.numpy()])
    return torch.cat([shapley, other[new]]), first
