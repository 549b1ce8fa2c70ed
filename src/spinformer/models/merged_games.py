"""Games whose players are sentences or spans, from the games of the words within them.

v(S) = v_words(all words of the players of S, and those of no player)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spinformer.data.players import groups_of
from spinformer.data.words import Words
from spinformer.models.predicted_games import PredictedGames


@dataclass(frozen=True)
class Merged:
    """What a readout of words needs of B texts, and which player each word belongs to.

    features: of the words; groups: (B, W), -1 for words of no player; always: (B, W), 1 for those of them that are
    real words, which are in every coalition.
    """

    features: Any
    groups: Tensor
    always: Tensor

    @property
    def values(self) -> Tensor:
        """The largest tensor among the features, by which coalitions are put into blocks."""
        values: Tensor = self.features if isinstance(self.features, Tensor) else self.features.values
        return values

    def select(self, rows: Sequence[int], players: int) -> "Merged":
        """Of these texts; their words all stay."""
        whole, words = self.features, self.groups.shape[1]
        features = whole[rows] if isinstance(whole, Tensor) else whole.select(rows, words)
        return Merged(features, self.groups[rows], self.always[rows])


@dataclass(frozen=True)
class MergedReadout:
    """g of coalitions of players: readout, g of coalitions of words."""

    readout: Callable[[Any, Tensor], Tensor]

    def __call__(self, features: Merged, members: Tensor) -> Tensor:
        """(B, K, classes) of coalitions of players, (B, K, players) numbers 0 or 1."""
        groups = features.groups[:, None].expand(-1, members.shape[1], -1)
        words = members.gather(2, groups.clamp_min(0))
        return self.readout(features.features, torch.where(groups >= 0, words, features.always[:, None].to(members)))


def merge(games: PredictedGames, players: Words) -> PredictedGames:
    """The games of the players, from those of their words, `players.parts`."""
    groups = groups_of(players).to(games.mask.device)
    features = Merged(games.features, groups, games.mask & (groups < 0))
    mask = players.mask.to(games.mask.device)
    return replace(games, readout=MergedReadout(games.readout), features=features, mask=mask)
