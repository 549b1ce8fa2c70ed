"""The games that a game head predicts for a batch of texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spinformer._base.outputs import Outputs
from spinformer._base.precision import full_precision
from spinformer.games.game import Game
from spinformer.games.quadrature import TOLERANCE
from spinformer.models.attending_readout import AttendingReadout
from spinformer.models.outputs import answers_of, offsets_of, value_of
from spinformer.models.toggling import toggled_scores

# Numbers that the readout of a block of coalitions makes at once: on a GPU, and on a CPU, where they should fit into
# its cache.
BLOCK = (2**27, 2**21)
# Coalitions of a very long text in a block at least: its features are read from memory once for each block.
LEAST = 16


@dataclass(frozen=True)
class PredictedGames:
    """The predicted games of B texts. readout: g, from features and coalitions; features: what it needs of the texts;
    full: o(N), (B, classes), log p(N) for one of several classes; mask: (B, W), true for real words; outputs, scale,
    fading: as in `GameHeadConfig`; vectors: what the encoder makes of each text, (B, d), which says how hard it is for
    the game (`spinformer.models.difficulty`); empty: p(no words), (B, classes), of the classifier itself, None where it
    was not asked.
    """

    readout: Any
    features: Any
    full: Tensor
    mask: Tensor
    outputs: Outputs = "classes"
    scale: float = 1.0
    fading: bool = False
    vectors: Tensor | None = None
    empty: Tensor | None = None

    @property
    def answers(self) -> Tensor:
        """p(N), (B, classes): the classifier's own answers for the full texts."""
        return answers_of(self.full, self.outputs)

    @property
    def tolerance(self) -> float:
        """The standard error of a value that sampling may leave: TOLERANCE of a probability, or of a score's unit."""
        return TOLERANCE * self.scale

    def confidence(self, target: Tensor) -> Tensor:
        """v(N), (B,), of a game of probabilities; 0 for scores, which know no certainty."""
        if self.outputs == "scores":
            return torch.zeros_like(self.full[:, 0])
        return value_of(self.answers, target)

    @full_precision
    def logits(self, coalitions: Tensor) -> Tensor:
        """o(C), (B, K, classes), of coalitions of words (B, K, W); log p(C) for one of several classes."""
        return self._logits(self.readout(self.features, self._after_all(coalitions)))

    @full_precision
    def logits_and_states(self, coalitions: Tensor) -> tuple[Tensor, Tensor]:
        """`logits`, and what the last layers of g see, (B, K, d)."""
        states = self.readout.states(self.features, self._after_all(coalitions))
        return self._logits(self.readout.scores(states)), states[:, 1:]

    def _after_all(self, coalitions: Tensor) -> Tensor:
        """All words, and then these coalitions, (B, 1 + K, W) numbers 0 or 1."""
        members = (coalitions.to(self.mask.device) & self.mask[:, None]).to(self.full)
        return torch.cat([self.mask[:, None].to(members), members], 1)

    def _logits(self, scores: Tensor) -> Tensor:
        return offsets_of(self.anchored(scores[:, 1:], scores[:, :1]), self.outputs)

    def anchored(self, scores: Tensor, whole: Tensor) -> Tensor:
        """o(C) = s g(C) + w(C) (o(N) - s g(N)),   w(C) = e^{-(u(C) - u(N))^2} where it fades, else 1

        From what the readout says of coalitions, (B, K, scores), and of all words, (B, 1, scores); u: the last of them;
        s: the scale. So o(N) is the classifier's own, and what g is off by there is corrected elsewhere as far as
        it is the same error.
        """
        if not self.fading:
            return self.scale * scores + (self.full[:, None] - self.scale * whole)
        weight = (-(scores[..., -1:] - whole[..., -1:]).square()).exp()
        own, at_all = self.scale * scores[..., :-1], self.scale * whole[..., :-1]
        return own + weight * (self.full[:, None] - at_all)

    def select(self, rows: Sequence[int], words: int) -> "PredictedGames":
        """The games of these texts, whose first `words` columns hold all of their words."""
        whole = self.features
        features = whole[rows, :words] if isinstance(whole, Tensor) else whole.select(rows, words)
        mask = self.mask[rows, :words]
        vectors, empty = (None if part is None else part[rows] for part in (self.vectors, self.empty))
        return replace(self, features=features, full=self.full[rows], mask=mask, vectors=vectors, empty=empty)

    def game(self, target: Tensor | None = None) -> "PredictedGame":
        """v(C) = p_y(C), for the class that the classifier decides for or that `target`, (B,), names.

        v(C) = p_y(C) - p_z(C) for targets (y, z), (B, 2).
        """
        return PredictedGame(self, self.full.argmax(-1) if target is None else target.to(self.full.device))


class PredictedGame(Game):
    """v(C) = p_y(C) as the game head predicts it, one game for each text. target: y, (B,), or (y, z), (B, 2).

    v of all words is the classifier's own answer, and so is v of no words where that was asked for.
    """

    def __init__(self, games: PredictedGames, target: Tensor) -> None:
        self.games, self.target, self.mask = games, target, games.mask
        self.batch, self.players = games.mask.shape
        self.batched, self.dtype, self.device = True, games.full.dtype, games.full.device
        self.whole: Tensor | None = None
        self.empty = None if games.empty is None else value_of(games.empty, self.target)

    @full_precision
    def evaluate(self, coalitions: Tensor) -> Tensor:
        """(B, K), a block of coalitions at a time."""
        blocks = coalitions.to(self.dtype).split(self._block(), 1)
        values = self._from_scores([self.games.readout(self.games.features, block) for block in blocks])
        if self.empty is None:
            return values
        return torch.where(coalitions.to(values.device).any(-1), values, self.empty.to(values)[:, None])

    @full_precision
    def toggled(self, row: int, coalitions: Tensor, sets: Tensor) -> Tensor:
        """In a long text to first order in what a word changes in others that it matters little to.

        See `spinformer.models.toggling`. Players of several words are read anew.
        """
        one = self._only([row])
        readout, features, quick = one.games.readout, one.games.features, torch.zeros(len(sets), dtype=torch.bool)
        members, words = coalitions.to(one.device, one.dtype), sets.to(one.device)
        if (in_words := getattr(readout, "in_words", None)) is not None:
            readout, features, members, words = in_words(features, members, words)
        if isinstance(readout, AttendingReadout) and not features.short:
            quick = (words >= 0).all(1).cpu()
        values = members.new_empty(len(members), len(sets))
        if bool(quick.any()):
            scores = toggled_scores(readout, features, members, words[quick.to(words.device)])
            values[:, quick] = one._from_scores([scores.flatten(0, 1)[None]]).view(len(members), -1)
        if not bool(quick.all()):  # what `one` prepares is kept for all of them
            values[:, ~quick] = Game.toggled(one, 0, coalitions, sets[~quick.to(sets.device)])
        return values

    def _block(self) -> int:
        """Coalitions at a time, an even number: pairs C, N - C stay together."""
        width = self.batch * width_of(self.games.features)
        return 2 * max(1, max(LEAST // self.batch, BLOCK[self.device.type == "cpu"] // max(1, width)) // 2)

    def _from_scores(self, scores: Sequence[Tensor]) -> Tensor:
        """v, (B, K), from what the readout says of blocks of coalitions, (B, k, scores)."""
        games = self.games
        if self.whole is None or torch.is_grad_enabled():
            self.whole = games.readout(games.features, games.mask[:, None].to(games.full))
        anchored = [games.anchored(part, self.whole) for part in scores]
        parts = [value_of(answers_of(part, games.outputs), self.target) for part in anchored]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def evaluate_rows(self, rows: Sequence[int], coalitions: Tensor) -> Tensor:
        """Of these games alone, at their own price."""
        return self._only(rows).evaluate(coalitions)

    def _only(self, rows: Sequence[int]) -> "PredictedGame":
        if len(rows) == self.batch:
            return self
        part = PredictedGame(self.games.select(rows, self.players), self.target[rows])
        part.whole = None if self.whole is None else self.whole[rows]
        return part


def width_of(features: Any) -> int:
    """Numbers that a readout makes for each coalition of a text."""
    return int(features.shape[-1] if isinstance(features, Tensor) else features.width)
