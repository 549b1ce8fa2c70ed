"""Games whose players are sentences or spans, from the games of the words within them.

v(S) = v_words(all words of the players of S, and those of no player)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spinformer._base.precision import full_precision
from spinformer.data.players import groups_of
from spinformer.data.words import Words
from spinformer.models.attending import Attending, sums
from spinformer.models.predicted_games import PredictedGames, width_of


@dataclass(frozen=True)
class Merged:
    """What a readout of words needs of B texts, and which player each word belongs to.

    features: of the words; groups: (B, W), -1 for words of no player; always: (B, W), true for those of them that are
    real words, which are in every coalition; players: their number.
    """

    features: Any
    groups: Tensor
    always: Tensor
    players: int

    @property
    def width(self) -> int:
        """As of the words (`width_of`)."""
        return width_of(self.features)

    @cached_property
    def by_player(self) -> tuple[Tensor, Tensor] | None:
        """What long texts in the attending form sum over players instead of words."""
        if not isinstance(self.features, Attending) or self.features.short:
            return None
        return self.features.by_player(self.groups, self.always, self.players)

    def in_words(self, members: Tensor) -> Tensor:
        """Coalitions of words, (B, K, W) numbers 0 or 1, from those of players, (B, K, players)."""
        groups = self.groups[:, None].expand(-1, members.shape[1], -1)
        return torch.where(groups >= 0, members.gather(2, groups.clamp_min(0)), self.always[:, None].to(members))

    def select(self, rows: Sequence[int], players: int) -> "Merged":
        """Of these texts, with their first players; their words all stay."""
        whole, words = self.features, self.groups.shape[1]
        features = whole[rows] if isinstance(whole, Tensor) else whole.select(rows, words)
        return Merged(features, self.groups[rows], self.always[rows], players)


@dataclass(frozen=True)
class MergedReadout:
    """g of coalitions of players: readout, g of coalitions of words."""

    readout: Any

    def __call__(self, features: Merged, members: Tensor) -> Tensor:
        """(B, K, classes) of coalitions of players, (B, K, players) numbers 0 or 1."""
        words = features.in_words(members)
        if features.by_player is None:
            scores: Tensor = self.readout(features.features, words)
            return scores
        return self._by_player(features.features, words, *sums(*features.by_player, members))

    def in_words(self, features: Merged, members: Tensor, sets: Tensor) -> tuple[Any, Any, Tensor, Tensor]:
        """Readout and features of the words of one text, its coalitions in words, (M, W), from players, (M, players),
        and the word of each player in the sets, (P, s), -1 for players of several words.
        """
        groups = features.groups[0]
        own = groups == torch.arange(features.players, device=groups.device)[:, None]  # (players, W)
        word = torch.where(own.sum(1) == 1, own.long().argmax(1), -1)
        return self.readout, features.features, features.in_words(members[None])[0], word[sets]

    @full_precision
    def _by_player(self, features: Attending, words: Tensor, total: Tensor, moved: Tensor) -> Tensor:
        scores: Tensor = self.readout.scores(self.readout.read(features, words, total, moved))
        return scores


def merge(games: PredictedGames, players: Words) -> PredictedGames:
    """The games of the players, from those of their words, `players.parts`."""
    groups = groups_of(players).to(games.mask.device)
    mask = players.mask.to(games.mask.device)
    features = Merged(games.features, groups, games.mask & (groups < 0), mask.shape[1])
    return replace(games, readout=MergedReadout(games.readout), features=features, mask=mask)
