"""What a game head says of the classifier's hidden states while it learns: `spinformer.models.hints`, in units."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base.precision import full_precision
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.training.game_options import GroundingOptions

MEASURED = 64  # texts whose hints tell how much they spread
ASKED = 8  # coalitions of each
# A number that hardly spreads counts in units of this part of the others' mean spread.
LEAST = 0.1


class HintMap(nn.Module):
    """loss = weight |W norm(z(C)) + b - (h(C) - mean) / spread|^2, in the mean over numbers and coalitions C

    z(C): what the last layers of the game head see; h(C): the hints of C; mean, spread: of each number in them. It is
    part of the training alone, and forgotten at its end.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, width: int, mean: Tensor, spread: Tensor, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.norm, self.map = nn.LayerNorm(width), nn.Linear(width, len(mean))
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)

    @classmethod
    @torch.no_grad()
    def measured(
        cls, head: GameHead, classifier: MaskedClassifier, texts: Texts, options: GroundingOptions
    ) -> "HintMap":
        """A new one, with the mean and the spread over the first MEASURED texts."""
        some = texts.select(range(min(MEASURED, len(texts))))
        words = split_words(classifier.tokenizer, some, options.max_length)
        asked = draw_coalitions(words.mask, ASKED, seed=0).to(classifier.device)
        hints = classifier.probabilities_and_hints(words, asked)[1].flatten(0, 1)
        spread = hints.std(0, correction=0)
        spread = spread.clamp_min(LEAST * float(spread.mean()) + 1e-6)
        return cls(head.config.state_width, hints.mean(0), spread, options.hints).to(classifier.device)

    def units(self, hints: Tensor) -> Tensor:
        """Hints in units of their spread, in half the precision: they are kept, and need no more."""
        return ((hints - self.mean) / self.spread).clamp(-100, 100).half()

    @full_precision
    def forward(self, states: Tensor, units: Tensor) -> Tensor:
        """The loss of states z, (B, K, d), and hints in units, (B, K, h)."""
        return self.weight * functional.mse_loss(self.map(self.norm(states)), units.float())
