"""A classifier with its game: values of words and pairs, and the Ising model that they make, from one forward pass."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import Masking
from spinformer._base.precision import full_precision, safe_divide
from spinformer.attention.from_game import GameAttention, attention_from_values, game_attention
from spinformer.attention.hamiltonian import Units
from spinformer.attention.settings import Settings
from spinformer.data.words import Words
from spinformer.games import Estimate, Game, GameValues, Weighting, estimate_all, estimate_values
from spinformer.games.values import GAME_INDICES, PLAYER_INDICES
from spinformer.ising import DenseCouplings
from spinformer.models.game_head import CONFIG, FOLDER, GameHead, built_in_game
from spinformer.models.hidden_states import frozen_states
from spinformer.models.masked import Hide, MaskedClassifier
from spinformer.models.merged_games import merge
from spinformer.models.outputs import answers_of
from spinformer.models.predicted_games import PredictedGames

# The Ising model of a grounded game: every coalition counts alike, or by Gibbs factors, which look at coalitions of
# nearly all words only. The couplings are well below the critical strength, so full mean-field steps converge.
UNIFORM = Settings(couplings="dense", solver="damped", damping=1.0)
GIBBS = Settings(weighting="gibbs", proposal="annealed", couplings="dense", estimator="auto")
TEMPERATURE = 0.25
# Fields are in units of the temperature over this, so that the attention of important words does not saturate.
SOFTENING = 4.0
# The couplings' share of the critical strength, at which the mean field ceases to be unique.
COUPLING_SHARE = 0.2

# Coalitions for an index that is neither Shapley's nor Banzhaf's, and for Gibbs weights, where `samples` is 0.
DRAWS, ANNEALED = 256, 32
MAX_SAMPLES = 1 << 20  # of which each text has its own
WORDS_MEASURED = "this game's error was measured on words: for sentences and spans the standard errors are a guess"
UNMEASURED = "it was not measured how far this game is from the classifier: standard errors are those of sampling alone"

# Game heads that were read for models in use, with the file and device they were read for. A game head is checked
# against all weights of its model, which takes longer than an explanation.
_LOADED: WeakKeyDictionary[Any, tuple[Any, GameHead]] = WeakKeyDictionary()


@dataclass(frozen=True)
class GroundedClassifier:
    """A classifier and the game head that was learnt for it, or that it was trained with (pooling head "grounded").

    samples: coalitions of the game behind all values, which cost no pass of the classifier; 0 for as many as leave a
    small error (`spinformer.games.estimate_all`).
    """

    model: Any
    head: GameHead
    samples: int = 0

    def __post_init__(self) -> None:
        check_samples(self.samples)

    @property
    def masking(self) -> Masking:
        """How words were hidden when the game was learnt."""
        return self.head.config.masking

    @torch.no_grad()
    def games(self, words: Words, classifier: MaskedClassifier | None = None) -> PredictedGames:
        """The predicted games of a batch of texts: one pass.

        classifier: asked what it says of no words, which then is v of the empty coalition; without it the game says
        that too.
        """
        words = words.to(next(self.model.parameters()).device)
        read = words if words.parts is None else words.parts
        empty: Tensor | None
        if classifier is not None and (both := classifier.nothing.beside(classifier, words)) is not None:
            logits, states = frozen_states(self.model, both)
            games = self.head([state[:1] for state in states], logits[:1], read)
            empty = answers_of(logits[1:], games.outputs)
        else:
            games = self.head.games(self.model, read)
            empty = None if classifier is None else classifier.empty_probabilities(words)
        games = games if words.parts is None else merge(games, words)
        return games if empty is None else replace(games, empty=empty)

    @torch.no_grad()
    def values(self, games: PredictedGames, index: str, seed: int = 0, target: Tensor | None = None) -> Estimate:
        """The values of one index of words, by its name, with standard errors of sampling."""
        if index in PLAYER_INDICES:
            return self.all_values(games, seed, target, pairs=False).by_index[index]
        samples = self.samples or DRAWS
        return estimate_values(games.game(target), index, samples, seed=torch.tensor(seed), shared=True)

    @torch.no_grad()
    def all_values(
        self, games: PredictedGames, seed: int = 0, target: Tensor | None = None, *, pairs: bool = True
    ) -> GameValues:
        """Shapley and Banzhaf values and interactions. pairs: whether these are needed (`estimate_all`)."""
        game = games.game(target)
        return estimate_all(game, self.samples, seed=torch.tensor(seed), tolerance=games.tolerance, pairs=pairs)

    @torch.no_grad()
    def misfit(self, games: PredictedGames, values: GameValues, target: Tensor) -> dict[str, Tensor] | None:
        """The standard errors of each index of `values` that are due to the game; None where they were not measured."""
        measured = self.head.misfit
        if measured is None:
            return None
        return {name: measured.stderr(name, values, games, target) for name in GAME_INDICES}

    def notes(self, words: Words, row: int) -> tuple[str, ...]:
        """What a reader must know of the explanation of a text by this game."""
        if self.head.misfit is None:
            return (UNMEASURED,)
        return (WORDS_MEASURED,) if words.parts is not None else self.head.misfit.notes(len(words.words[row]))

    @torch.no_grad()
    @full_precision
    def attention(
        self,
        games: PredictedGames,
        temperature: float = TEMPERATURE,
        seed: int = 0,
        weighting: Weighting = "uniform",
        target: Tensor | None = None,
    ) -> GameAttention:
        """Fields, couplings and mean-field attention of the game, by the paper's equations, in share units.

        weighting "uniform": from the coalitions of `all_values`; "gibbs": the paper's target, from coalitions drawn by
        annealing.
        """
        game = games.game(target)
        if weighting == "uniform":
            return attention_of(game, self.all_values(games, seed, target), temperature)
        gate, temperatures, units = _units(game, temperature)
        samples = self.samples or ANNEALED
        return game_attention(
            game, gate, temperatures, GIBBS, units, budget=samples, seed=torch.tensor(seed), shared=True
        )


def check_samples(samples: int) -> None:
    """A ValueError unless `samples` is 0 or enough for a standard error, and no more than memory holds."""
    checks.at_least("samples", samples, 0)
    if samples and samples < 4:
        raise ValueError(f"samples must be 0 or at least 4; got {samples}")
    if samples > MAX_SAMPLES:
        raise ValueError(f"samples must be at most {MAX_SAMPLES:,}; got {samples:,}")


def find_game_head(model: Any, folder: Path | None = None) -> GameHead | None:
    """The game head in `folder` (by default the model's own folder), or the one that the model was trained with.

    None where there is neither. A game head that was read is kept as long as the model and its file live.
    """
    name = getattr(model, "name_or_path", "") or ""
    directory = folder or (Path(str(name)) if name else None)
    if directory is None or not (file := directory / FOLDER / CONFIG).is_file():
        return built_in_game(model)
    device = next(model.parameters()).device
    key = (str(file), file.stat().st_mtime_ns, device)
    loaded = _LOADED.get(model)
    if loaded is None or loaded[0] != key:
        loaded = _LOADED[model] = (key, GameHead.load(directory, model).to(device))
    return loaded[1]


def choose_game_head(
    model: Any, game: GameHead | Path | str | None, masking: Masking | Hide | None = None
) -> tuple[GameHead | None, str | None]:
    """The game head that a caller names, or the one that `find_game_head` finds, and why it cannot be used.

    masking: how words are to be hidden, None as in the game. A game that is found but does not fit the model or the
    masking is an error only where a game is needed; one that the caller names is an error at once.
    """
    if isinstance(game, GameHead):
        head: GameHead | None = game.to(next(model.parameters()).device)
    elif game is not None:
        checks.instance("game", game, GameHead, str, Path)
        head = find_game_head(model, Path(game))
        if head is None:
            raise ValueError(f"{game} has no game head; `spinformer ground` leaves one in its --output")
    else:
        try:
            head = find_game_head(model)
        except ValueError as error:
            return None, f"{error}; learn it anew"
    asked = masking if masking is None or isinstance(masking, str) else "own"
    if head is None or asked in (None, head.config.masking):
        return head, None
    learnt = f"this game was learnt with masking={head.config.masking!r}, not {asked!r}"
    unfit = f"{learnt}; leave masking out or learn it anew"
    if game is not None:
        raise ValueError(unfit)
    return None, unfit


@torch.no_grad()
@full_precision
def attention_of(game: Game, values: GameValues, temperature: float = TEMPERATURE) -> GameAttention:
    """Fields, couplings and mean-field attention in share units, from values that are known."""
    gate, temperatures, units = _units(game, temperature)
    stacked = torch.stack([values.shapley.values, values.banzhaf.values], 1)  # (B, 2, n)
    couplings = DenseCouplings(values.interactions.values, hollow=True)
    ess = values.shapley.ess[:, 0].to(temperatures)
    return attention_from_values(game, stacked, couplings, gate, temperatures, UNIFORM, units, ess)


def attention_errors(
    values: GameValues, ising: GameAttention, temperature: float = TEMPERATURE
) -> tuple[Tensor, Tensor]:
    """Standard errors of the fields and the attention of `attention_of`, (B, n) each

    var(share_i) = ((1 - |share_i|)^2 se_i^2 + share_i^2 sum over j != i of se_j^2) / (sum |values|)^2
    field:      TEMPERATURE / SOFTENING n sqrt(lambda^2 var(share of phi) + (1 - lambda)^2 var(share of beta))
    attention:  (1 - m_i^2) / (2 gamma) times that

    to first order, as if words erred independently and the other words' attention were known.
    """
    both = torch.stack([values.shapley.values, values.banzhaf.values])
    variances = torch.stack([values.shapley.stderr, values.banzhaf.stderr]).square()
    total = both.abs().sum(-1, keepdim=True)
    share = safe_divide(both.abs(), total)
    others = variances.sum(-1, keepdim=True) - variances
    spread = safe_divide((1 - share).square() * variances + share.square() * others, total.square())
    gate = torch.stack([ising.gate, 1 - ising.gate])
    count = (ising.gate > 0).sum(-1, keepdim=True)  # padding has no gate
    field = TEMPERATURE / SOFTENING * count * (gate.square() * spread).sum(0).sqrt()
    return field, (1 - ising.solved.magnetization.square()) / (2 * temperature) * field


def _units(game: Game, temperature: float) -> tuple[Tensor, Tensor, Units]:
    """Gate, (B, n), temperature, (B,), and units of a game of probabilities.

    Fields and couplings are those of TEMPERATURE, and the spins feel them at the temperature asked for: cold spins are
    decided, hot ones are not.
    """
    checks.positive("temperature", temperature)
    temperatures = torch.full((game.batch,), temperature, dtype=game.dtype, device=game.device)
    gate = torch.full((game.batch, game.players), 0.5, dtype=game.dtype, device=game.device)
    if game.mask is not None:
        gate = gate * game.mask
    gain = torch.full_like(temperatures, TEMPERATURE / SOFTENING)
    return gate, temperatures, Units(gain, COUPLING_SHARE * TEMPERATURE / temperatures)
