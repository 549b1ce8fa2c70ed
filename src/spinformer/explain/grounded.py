"""Explanations through a grounded game: words and pairs of words from one forward pass of the classifier."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from spinformer import checks
from spinformer.attention.play import Played, Units, play, settle
from spinformer.attention.settings import Settings
from spinformer.data.words import Words
from spinformer.games import Estimate, Game, Survey, estimate_values
from spinformer.ising import DenseCouplings
from spinformer.models.grounding import GameHead, GroundedGames
from spinformer.models.masked import Masking
from spinformer.precision import full_precision

Score = Literal["shapley", "banzhaf", "field", "attention"]
# How a grounded game makes an Ising model: Gibbs weights, which its bounded values cannot make collapse.
SETTINGS = Settings(weighting="gibbs", proposal="annealed", couplings="dense", estimator="auto")
# Under uniform weights. Couplings are at most half of the critical strength, so full steps halve the error each time.
PLAIN = Settings(couplings="dense", solver="damped", damping=1.0)
TEMPERATURE = 0.25
# Fields in units of the temperature over this, so that the attention of important words does not saturate.
SOFTENING = 4.0


@dataclass(frozen=True)
class Grounded:
    """A frozen classifier with its game head (`spinformer ground` makes one), or a model with head "grounded", which is
    a game itself, without.

    samples: K coalitions for every estimate; they cost no pass of the classifier.
    """

    model: Any
    head: GameHead | None = None
    samples: int = 32

    def __post_init__(self) -> None:
        if self.head is None and getattr(self.model.config, "head", None) != "grounded":
            raise ValueError(f"a {type(self.model).__name__} is no game itself: it needs a game head")

    @property
    def masking(self) -> Masking:
        """How words were taken away when the game was learnt."""
        return "attention" if self.head is None else self.head.config.masking

    @classmethod
    def load(cls, folder: Path, model: Any, samples: int = 32) -> "Grounded":
        """With the head that lies with the model in `folder`, where the model is no game itself."""
        if getattr(model.config, "head", None) == "grounded":
            return cls(model, None, samples)
        head = GameHead.load(folder, model).to(next(model.parameters()).device)
        return cls(model, head, samples)

    @torch.no_grad()
    def games(self, words: Words) -> GroundedGames:
        """The predicted games of a batch of texts: one pass."""
        device = next(self.model.parameters()).device
        words = words.to(device)
        if self.head is None:
            output = self.model(**words.inputs, output_game=True)
            return GroundedGames.of(self.model.classifier, output.features, output.logits, words)
        return self.head.games(self.model, words)

    @torch.no_grad()
    def values(self, games: GroundedGames, index: Literal["SV", "BV", "BII", "SII"], seed: int = 0) -> Estimate:
        """Shapley or Banzhaf values, or interactions, of the decided class, with standard errors."""
        return estimate_values(games.game(), index, self.samples, seed=torch.tensor(seed), shared=True)

    @torch.no_grad()
    @full_precision
    def play(self, games: GroundedGames, temperature: float = TEMPERATURE, seed: int = 0) -> Played:
        """Fields, couplings and mean-field attention of the game, by the paper's equations in share units."""
        game = games.game()
        gate, heat, units = _units(game, temperature)
        return play(game, gate, heat, SETTINGS, units, budget=self.samples, seed=torch.tensor(seed), shared=True)


@torch.no_grad()
@full_precision
def play_survey(game: Game, found: Survey, temperature: float = TEMPERATURE) -> Played:
    """Fields, couplings and mean-field attention in share units, as `Grounded.play`, of values that are known."""
    gate, heat, units = _units(game, temperature)
    values = torch.stack([found.shapley.values, found.banzhaf.values], 1)
    couplings = DenseCouplings(found.interactions.values, hollow=True)
    return settle(game, values, couplings, gate, heat, PLAIN, units, torch.full_like(heat, found.shapley.budget))


def _units(game: Game, temperature: float) -> tuple[Tensor, Tensor, Units]:
    """Gate, (B, n), temperature, (B,), and units of a game of probabilities."""
    checks.positive("temperature", temperature)
    heat = torch.full((game.batch,), temperature, dtype=game.dtype, device=game.device)
    gate = torch.full((game.batch, game.players), 0.5, dtype=game.dtype, device=game.device)
    if game.mask is not None:
        gate = gate * game.mask
    return gate, heat, Units(heat / SOFTENING, torch.full_like(heat, 0.5))


class GroundedScores:
    """Scores of words towards the decided class: Shapley or Banzhaf values, field or attention of the grounded game."""

    passes = "1"

    def __init__(self, grounded: Grounded, what: Score = "shapley", seed: int = 0) -> None:
        checks.choice("what", what, get_args(Score))
        self.grounded, self.what, self.seed = grounded, what, seed
        self.name = f"grounded {what}"

    def seeded(self, seed: int) -> "GroundedScores":
        """The same with other coalitions."""
        return GroundedScores(self.grounded, self.what, seed)

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        games = self.grounded.games(words)
        if self.what in ("shapley", "banzhaf"):
            index: Literal["SV", "BV"] = "SV" if self.what == "shapley" else "BV"
            return self.grounded.values(games, index, self.seed).values
        played = self.grounded.play(games, seed=self.seed)
        return played.fields if self.what == "field" else played.attention
