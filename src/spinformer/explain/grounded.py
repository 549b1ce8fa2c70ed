"""Explanations through a grounded game: words and pairs of words from one forward pass of the classifier."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from spinformer import checks
from spinformer.attention.play import Played, Units, play, settle
from spinformer.attention.settings import Settings
from spinformer.data.words import Words
from spinformer.games import Estimate, Game, Survey, Weighting, estimate_values, survey
from spinformer.ising import DenseCouplings
from spinformer.models.grounding import CONFIG, FOLDER, GameHead, GroundedGames, own_game
from spinformer.models.masked import MaskedClassifier, Masking, check_classes
from spinformer.precision import full_precision, safe_divide

Score = Literal["shapley", "banzhaf", "field", "attention"]
# How a grounded game makes an Ising model. Coalitions count alike: fields weighted by Gibbs factors, which look at
# coalitions of nearly all words only, are less faithful (docs/grounding.md). Couplings are well below the critical
# strength, so full steps bring the mean field near at once.
PLAIN = Settings(couplings="dense", solver="damped", damping=1.0)
GIBBS = Settings(weighting="gibbs", proposal="annealed", couplings="dense", estimator="auto")
TEMPERATURE = 0.25
# Fields in units of the temperature over this, so that the attention of important words does not saturate.
SOFTENING = 4.0
# Of the strength at which the mean field ceases to be unique, what couplings may have: enough to tell, not to rule.
PART = 0.2


# Heads that were read for models that are in use, with the file and device they were read for: a head is checked
# against all weights of its model, which takes longer than an explanation.
_FOUND: WeakKeyDictionary[Any, tuple[Any, GameHead | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Grounded:
    """A classifier with its game: a frozen one with the head that `spinformer ground` made for it, or a model with head
    "grounded", which was trained with one.

    samples, pair_samples: coalitions for the values of words and of pairs; they cost no pass of the classifier.
    """

    model: Any
    head: GameHead | None = None
    samples: int = 32
    pair_samples: int = 8

    def __post_init__(self) -> None:
        check_classes(self.model)
        if self.head is None:
            own = own_game(self.model)
            if own is None:
                raise ValueError(f"a {type(self.model).__name__} without a game of its own needs a game head")
            object.__setattr__(self, "head", own)

    @property
    def masking(self) -> Masking:
        """How words were taken away when the game was learnt."""
        return self._head.config.masking

    @classmethod
    def load(cls, folder: Path, model: Any, samples: int = 32) -> "Grounded":
        """With the head that lies in `folder`, or else with the game that the model was trained with."""
        if own_game(model) is not None and not (folder / FOLDER / CONFIG).is_file():
            return cls(model, None, samples)
        head = GameHead.load(folder, model).to(next(model.parameters()).device)
        return cls(model, head, samples)

    @classmethod
    def find(cls, model: Any, folder: Path | None = None) -> "Grounded | None":
        """The game of a model: the head in `folder`, its own where not given, or else the one that the model was
        trained with; None where there is none.

        A head that was found is kept for the next time, as long as the model and its file live.
        """
        place = folder or Path(str(getattr(model, "name_or_path", "") or ""))
        file = place / FOLDER / CONFIG
        if not file.is_file():
            return None if own_game(model) is None else cls(model)
        key = (str(file), file.stat().st_mtime_ns, next(model.parameters()).device)
        kept = _FOUND.get(model)
        if kept is None or kept[0] != key:
            kept = _FOUND[model] = (key, cls.load(place, model).head)
        return cls(model, kept[1])

    @torch.no_grad()
    def games(self, words: Words) -> GroundedGames:
        """The predicted games of a batch of texts: one pass."""
        return self._head.games(self.model, words.to(next(self.model.parameters()).device))

    @torch.no_grad()
    def values(self, games: GroundedGames, index: Literal["SV", "BV", "BII", "SII"], seed: int = 0) -> Estimate:
        """Shapley or Banzhaf values, or interactions, of the decided class, with standard errors."""
        return estimate_values(games.game(), index, self.samples, seed=torch.tensor(seed), shared=True)

    @torch.no_grad()
    @full_precision
    def play(
        self,
        games: GroundedGames,
        temperature: float = TEMPERATURE,
        seed: int = 0,
        weighting: Weighting = "uniform",
    ) -> Played:
        """Fields, couplings and mean-field attention of the game, by the paper's equations in share units.

        weighting "uniform": from the coalitions of `survey`; "gibbs": the paper's target, from coalitions drawn by
        annealing.
        """
        game = games.game()
        if weighting == "uniform":
            pairs = min(self.samples, self.pair_samples)
            return play_survey(game, survey(game, self.samples, pairs, seed=torch.tensor(seed)), temperature)
        gate, heat, units = _units(game, temperature)
        return play(game, gate, heat, GIBBS, units, budget=self.samples, seed=torch.tensor(seed), shared=True)

    @property
    def _head(self) -> GameHead:
        assert self.head is not None  # set in __post_init__
        return self.head


@torch.no_grad()
@full_precision
def play_survey(game: Game, found: Survey, temperature: float = TEMPERATURE) -> Played:
    """Fields, couplings and mean-field attention in share units, as `Grounded.play`, of values that are known."""
    gate, heat, units = _units(game, temperature)
    values = torch.stack([found.shapley.values, found.banzhaf.values], 1)
    couplings = DenseCouplings(found.interactions.values, hollow=True)
    return settle(game, values, couplings, gate, heat, PLAIN, units, torch.full_like(heat, found.shapley.budget))


def played_errors(found: Survey, played: Played, temperature: float = TEMPERATURE) -> tuple[Tensor, Tensor]:
    """Standard errors of what `play_survey` gives, (B, n) each, to first order and as if words erred independently:

    var(share_i) = ((1 - |share_i|)^2 se_i^2 + share_i^2 sum over j != i of se_j^2) / (sum |values|)^2
    field:      TEMPERATURE / SOFTENING n sqrt(lambda^2 var(share of phi) + (1 - lambda)^2 var(share of beta))
    attention:  (1 - m_i^2) / (2 gamma) times that: what reaches a word through the others is taken as it is
    """
    values = torch.stack([found.shapley.values, found.banzhaf.values])
    errors = torch.stack([found.shapley.stderr, found.banzhaf.stderr]).square()
    total = values.abs().sum(-1, keepdim=True)
    share = safe_divide(values.abs(), total)
    others = errors.sum(-1, keepdim=True) - errors
    spread = safe_divide((1 - share).square() * errors + share.square() * others, total.square())
    gate = torch.stack([played.gate, 1 - played.gate])
    count = (played.gate > 0).sum(-1, keepdim=True)  # padding has no gate
    field = TEMPERATURE / SOFTENING * count * (gate.square() * spread).sum(0).sqrt()
    return field, (1 - played.solved.magnetization.square()) / (2 * temperature) * field


def _units(game: Game, temperature: float) -> tuple[Tensor, Tensor, Units]:
    """Gate, (B, n), temperature, (B,), and units of a game of probabilities.

    Fields and couplings are those of TEMPERATURE, and the spins feel them at the temperature asked for: in the cold
    they are decided, in the heat none is.
    """
    checks.positive("temperature", temperature)
    heat = torch.full((game.batch,), temperature, dtype=game.dtype, device=game.device)
    gate = torch.full((game.batch, game.players), 0.5, dtype=game.dtype, device=game.device)
    if game.mask is not None:
        gate = gate * game.mask
    return gate, heat, Units(torch.full_like(heat, TEMPERATURE / SOFTENING), PART * TEMPERATURE / heat)


class GroundedScores:
    """Scores of words towards the decided class: Shapley or Banzhaf values, field or attention of the grounded game.

    classifier: where the passes are counted, if anywhere.
    """

    passes = "1"

    def __init__(
        self, grounded: Grounded, what: Score = "shapley", seed: int = 0, classifier: MaskedClassifier | None = None
    ) -> None:
        checks.choice("what", what, get_args(Score))
        self.grounded, self.what, self.seed, self.classifier = grounded, what, seed, classifier
        self.name = f"grounded {what}"

    def seeded(self, seed: int) -> "GroundedScores":
        """The same with other coalitions."""
        return GroundedScores(self.grounded, self.what, seed, self.classifier)

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        games = self.grounded.games(words)
        if self.classifier is not None:
            self.classifier.passes += len(words.words)
        if self.what in ("shapley", "banzhaf"):
            index: Literal["SV", "BV"] = "SV" if self.what == "shapley" else "BV"
            return self.grounded.values(games, index, self.seed).values
        played = self.grounded.play(games, seed=self.seed)
        return played.fields if self.what == "field" else played.attention
