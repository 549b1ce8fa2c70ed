"""Shapley and Banzhaf values and interactions of a batch of games, from the same coalitions, each asked once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer.games.designs import paired_design
from spinformer.games.estimate import Estimate
from spinformer.games.exact import exact_values
from spinformer.games.game import Game, TableGame
from spinformer.games.gaussian import Quadrature, order_ratios
from spinformer.games.indices import INDICES

GAME_INDICES = ("SV", "BV", "BII", "SII")
# Coalitions of one game: at first, and at most, where their number follows the error that it leaves.
FIRST, MOST = 512, 2048
# The standard error of a Shapley value that sampling may leave, unless MOST coalitions leave more.
TOLERANCE = 0.015
# Players up to which each game is read again with a prior of its own, in which those count that do something.
OWN = 40
# Weight of a player who does nothing, beside the activity of those who do.
IDLE = 0.03


@dataclass(frozen=True)
class GameValues:
    """shapley, banzhaf: (B, n) each; interactions: Banzhaf's, (B, n, n); shapley_interactions: Shapley's; empty: v of
    the empty coalition, (B,).
    """

    shapley: Estimate
    banzhaf: Estimate
    interactions: Estimate
    shapley_interactions: Estimate
    empty: Tensor

    @classmethod
    def of(cls, estimates: Mapping[str, Estimate], empty: Tensor) -> "GameValues":
        """From the estimates of GAME_INDICES by their names."""
        return cls(estimates["SV"], estimates["BV"], estimates["BII"], estimates["SII"], empty)

    @property
    def by_index(self) -> dict[str, Estimate]:
        """The estimates by the names of GAME_INDICES."""
        estimates = (self.shapley, self.banzhaf, self.interactions, self.shapley_interactions)
        return dict(zip(GAME_INDICES, estimates, strict=True))

    @property
    def activity(self) -> Tensor:
        """a_i = sqrt(phi_i^2 + sum over j of I_ij^2 / 2), (B, n): how much a player does, alone or with others."""
        return activity(self.shapley.values, self.shapley_interactions.values)

    def row(self, row: int, count: int) -> "GameValues":
        """One game of a batch, of so many players, as a batch of one on the CPU; padding must come last."""
        parts = {}
        for name, estimate in self.by_index.items():
            tensors = (part[row : row + 1].cpu() for part in (estimate.values, estimate.stderr, estimate.ess))
            values, stderr, ess = (part[:, :count] if part.dim() == 2 else part[:, :count, :count] for part in tensors)
            parts[name] = Estimate(values, stderr, ess, estimate.budget)
        return GameValues.of(parts, self.empty[row : row + 1].cpu())

    def widen(self, errors: Mapping[str, Tensor]) -> "GameValues":
        """With further standard errors, independent of these, by the name of the index."""
        parts = {
            name: replace(estimate, stderr=torch.hypot(estimate.stderr, errors[name].to(estimate.stderr)))
            for name, estimate in self.by_index.items()
        }
        return GameValues.of(parts, self.empty)


def activity(shapley: Tensor, interactions: Tensor) -> Tensor:
    """`GameValues.activity`, from Shapley values (..., n) and interactions (..., n, n)."""
    return (shapley.square() + interactions.square().sum(-1) / 2).sqrt()


def player_weights(active: Tensor) -> Tensor:
    """w_i = (a_i + IDLE) / mean, (n,): what is not known about a game concerns the players that do something."""
    weight = active.double() + IDLE
    return weight / weight.mean()


@full_precision
def estimate_all(game: Game, budget: int = 0, *, seed: Tensor, tolerance: float = TOLERANCE) -> GameValues:
    """SV, BV, BII and SII of every game of a batch, as `spinformer.games.gaussian` reads them from `budget` coalitions

    Shapley values add up to v(N) - v(nothing). A game of few players, 2^n <= budget, is enumerated, and its values are
    exact. Others are read twice: with all players alike, then with a prior in which those count that do something;
    gradients take that prior as given. budget: coalitions of each game; 0 begins with FIRST and doubles them until
    every Shapley value has a standard error of at most `tolerance`, or there are MOST. Coalitions depend on the number
    of players and the seed alone, and each game is asked until its own errors are small, so its values do not depend on
    its batch. The effective sample size is the number of coalitions.
    """
    checks.at_least("budget", budget, 0)
    if budget and budget < 4:
        raise ValueError(f"budget must be 0 or at least 4; got {budget}")
    size, most = (budget, budget) if budget else (FIRST, MOST)
    values = _evaluate(game, size, seed, None)
    estimates = _estimates(game, values, size, seed)
    sizes = _sizes(game, size)
    while size < most and bool((open_games := _largest(estimates) > tolerance).any()):
        size *= 2
        values = _evaluate(game, size, seed, values)
        for old, new in zip(estimates, _estimates(game, values, size, seed), strict=True):
            for whole, part in zip(old, new, strict=True):
                whole[open_games] = part[open_games]
        sizes = torch.where(open_games.cpu(), _sizes(game, size), sizes)
    parts = {}
    for name, (mean, stderr) in zip(GAME_INDICES, estimates, strict=True):
        value, error = (game.unbatch(part.to(game.dtype)) for part in (mean, stderr))
        ess = sizes.to(value).view(-1, *[1] * (mean.dim() - 1)).expand_as(mean)
        parts[name] = Estimate(value, error, game.unbatch(ess), size)
    return GameValues.of(parts, game.unbatch(values[:, 0]))


def _sizes(game: Game, size: int) -> Tensor:
    """Coalitions of each game, (B,)."""
    return torch.tensor([min(size, 2 ** min(count, 62)) for count in game.counts().tolist()])


def _largest(estimates: list[list[Tensor]]) -> Tensor:
    """The largest standard error of a Shapley value of each game, (B,)."""
    return estimates[0][1].flatten(1).amax(1)


def _evaluate(game: Game, size: int, seed: Tensor, known: Tensor | None) -> Tensor:
    """v of each game's coalitions, (B, K), after those that are known; games that have fewer repeat the empty one."""
    counts = game.counts().tolist()
    if any(size // 2 < 2 ** min(count, 62) <= size for count in counts):
        known = None  # all coalitions are in another order than some of them
    start = 0 if known is None else known.shape[1]
    widest = max(len(_design(count, size, int(seed))) for count in set(counts))
    if widest == start:
        assert known is not None
        return known
    coalitions = torch.zeros(game.batch, widest - start, game.players, dtype=torch.bool)
    for row, columns in enumerate(_columns(game)):
        design = _design(len(columns), size, int(seed))[start:]
        coalitions[row, : len(design), columns] = design
    values = game.evaluate(coalitions.to(game.device))
    return values if known is None else torch.cat([known, values], 1)


def _estimates(game: Game, values: Tensor, size: int, seed: Tensor) -> list[list[Tensor]]:
    """Mean and standard error of GAME_INDICES, (B, n) or (B, n, n) each, one number of players after the other."""
    counts, columns = game.counts().tolist(), _columns(game)
    results = [
        [values.new_zeros(game.batch, *[game.players] * INDICES[name].order, dtype=torch.float64) for _ in range(2)]
        for name in GAME_INDICES
    ]
    for count in set(counts):
        rows = [row for row, other in enumerate(counts) if other == count]
        design = _design(count, size, int(seed))
        found = _of_one_size(values[rows, : len(design)], design, size, int(seed))
        for result, parts in zip(results, found, strict=True):
            for whole, part in zip(result, parts, strict=True):
                for place, row in enumerate(rows):
                    where = columns[row].to(whole.device)
                    if part.dim() == 2:
                        whole[row, where] = part[place]
                    else:
                        whole[row, where[:, None], where] = part[place]
    return results


def _of_one_size(values: Tensor, design: Tensor, size: int, seed: int) -> Sequence[tuple[Tensor, Tensor]]:
    """Mean and standard error of GAME_INDICES for games of equally many players."""
    players = design.shape[1]
    if len(design) == 2**players:  # none and all come first, then the others in the order of a table
        game = TableGame(torch.cat([values[:, :1], values[:, 2:], values[:, 1:2]], 1).double())
        exact = [exact_values(game, name) for name in GAME_INDICES]
        return [(value, torch.zeros_like(value)) for value in exact]
    key = (players, size, seed, str(values.device))
    quadrature = _quadrature(*key)
    coefficients = quadrature.coefficients(values)
    needed = ("SV", "SII") if players <= OWN else GAME_INDICES
    means = {name: quadrature.values(name, coefficients) for name in needed}
    scale = _scale(quadrature, values, coefficients)
    errors = {name: _times(_deviations(name, *key), scale) for name in GAME_INDICES}
    if players <= OWN:
        active = activity(means["SV"], means["SII"]).detach()
        rows = [_own(values[row : row + 1], design, active[row]) for row in range(len(values))]
        for name in GAME_INDICES:
            means[name] = torch.cat([row[name][0] for row in rows])
            own = [error for row in rows if (error := row[name][1]) is not None]
            errors[name] = torch.cat(own) if own else errors[name]
    return [(means[name], errors[name]) for name in GAME_INDICES]


def _own(values: Tensor, design: Tensor, active: Tensor) -> dict[str, tuple[Tensor, Tensor | None]]:
    """Mean and standard error of GAME_INDICES of one game, with the weights that its players' activity gives.

    Standard errors are those of players: for all pairs they would take longer than everything else, and with players
    alike they are on the safe side.
    """
    ratios = order_ratios(design.shape[1], weights=player_weights(active))
    quadrature = Quadrature(design.to(values.device), ratios)
    coefficients = quadrature.coefficients(values)
    scale = _scale(quadrature, values, coefficients)
    found: dict[str, tuple[Tensor, Tensor | None]] = {}
    for name in GAME_INDICES:
        error = None if INDICES[name].pairwise else _times(quadrature.deviations(name), scale)
        found[name] = quadrature.values(name, coefficients), error
    return found


@torch.no_grad()
def _scale(quadrature: Quadrature, values: Tensor, coefficients: Tensor) -> Tensor:
    """sqrt(t) of each game, (B,)."""
    total = quadrature.amplitude(values, coefficients)
    return (total / values.shape[1]).clamp_min(0).sqrt()


def _times(deviation: Tensor, scale: Tensor) -> Tensor:
    """Standard deviations for t = 1, (n,) or (n, n), of games with these scales: (B, n) or (B, n, n)."""
    return deviation * scale.view(-1, *[1] * deviation.dim())


def _columns(game: Game) -> list[Tensor]:
    """The columns of each game's players."""
    if game.mask is None:
        return [torch.arange(game.players)] * game.batch
    return [row.nonzero().squeeze(1) for row in game.mask.cpu()]


@lru_cache(maxsize=256)
def _design(players: int, size: int, seed: int) -> Tensor:
    with torch.inference_mode(False):
        return paired_design(players, size, torch.tensor(seed))


@lru_cache(maxsize=64)
def _quadrature(players: int, size: int, seed: int, device: str) -> Quadrature:
    with torch.inference_mode(False), torch.no_grad():
        return Quadrature(_design(players, size, seed).to(device), order_ratios(players))


@lru_cache(maxsize=1024)
def _deviations(index: str, players: int, size: int, seed: int, device: str) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():
        return _quadrature(players, size, seed, device).deviations(index)
