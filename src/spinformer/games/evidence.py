"""Index values of one game from some of its coalitions, with a prior that is chosen by evidence.

    log p(v | order) = - (K + nu) / 2 log(nu t_0 + v' k^-1 v) - 1/2 log det k + ...

How strong interactions of high order are, and how large v is, is not known beforehand. The order of `order_ratios` is
the likeliest of ORDERS; the amplitude t is (nu t_0 + v' k^-1 v) / (nu + K), with t_0 a guess that counts as nu
coalitions. So few coalitions are drawn towards the prior, and the standard errors say how far. From LEARN coalitions
on, the ratio r_i of each player is learnt as well: it is the likeliest, near those of the order (`_learnt`).
"""

import math

import torch
from torch import Tensor

from spinformer.games.estimate import Estimate
from spinformer.games.exact import exact_values
from spinformer.games.game import TableGame
from spinformer.games.gaussian import Quadrature, index_variances, order_ratios, share_out
from spinformer.games.values import GAME_INDICES, GameValues, player_weights

ORDERS = (0.75, 1.5, 3.0)
# Coalitions that the guess of the amplitude counts for.
GUESS = 4.0
# Coalitions from which the order is chosen: it needs a matrix of so many for each of ORDERS.
CHOOSE = 512
# Coalitions from which players' ratios are learnt; those that they are learnt from; and how far each log r_i may go, as
# a standard deviation: few coalitions would not tell more.
LEARN, LEARN_FROM, SPREAD = 128, 256, 0.3
# Steps of the search for them, and the most that one of them changes by, as a logarithm.
SEARCH, BOUND = 6, 1.5
# Rounds in which players' weights are taken from the values that the last round gave.
ROUNDS = 2


def regress(
    coalitions: Tensor,
    values: Tensor,
    *,
    weights: Tensor | None = None,
    scale: float | None = None,
    pairs: tuple[Tensor, Tensor] | None = None,
) -> GameValues:
    """All of GAME_INDICES of one game, as a batch of one, from v of these coalitions, (K, n) and (K,).

    The first coalition is the empty one; where all 2^n are there, in whatever order, values are exact.

    weights: of the players (`player_weights`); without them they are taken from the values themselves, in ROUNDS.
    scale: a guess at the standard deviation of a Shapley value before anything is asked; None for no guess. pairs: the
    players i and j of the pairs whose standard errors are wanted, those of others are NaN; None for all, which takes
    most of the time where players are many.
    """
    count, players = coalitions.shape
    if count == 2 ** min(players, 62):
        return _exact(coalitions, values)
    if weights is not None:
        return _regress(coalitions, values, weights, scale, pairs)
    found = _regress(coalitions, values, None, scale, learn=False)
    for rounds in range(1, ROUNDS + 1):
        active = player_weights(found.activity[0])
        last = rounds == ROUNDS
        found = _regress(coalitions, values, active, scale, pairs if last else None, learn=last)
    return found


def _regress(
    coalitions: Tensor,
    values: Tensor,
    weights: Tensor | None,
    scale: float | None,
    pairs: tuple[Tensor, Tensor] | None = None,
    *,
    learn: bool = True,
) -> GameValues:
    players, row = coalitions.shape[1], values.double().cpu()[None]
    part = coalitions[:CHOOSE]
    _, order = max((_evidence(part, row, order_ratios(players, order, weights), scale), order) for order in ORDERS)
    ratios = order_ratios(players, order, weights)
    if learn and len(coalitions) >= LEARN:
        ratios = _learnt(coalitions[:LEARN_FROM], row[:, :LEARN_FROM], ratios)
    quadrature = Quadrature(coalitions, ratios)
    coefficients = quadrature.coefficients(row)
    amplitude = math.sqrt(_amplitude(quadrature, row, coefficients, scale))
    estimates, whole = {}, coalitions.all(1).cpu()
    for name in GAME_INDICES:
        mean, stderr = quadrature.values(name, coefficients), amplitude * quadrature.deviations(name, pairs)[None]
        if name == "SV" and bool(whole.any()):
            mean = share_out(mean, row[:, whole].squeeze(1) - row[:, 0])
        estimates[name] = _estimate(mean, stderr, len(coalitions))
    return GameValues.of(estimates, row[:, 0])


def _evidence(coalitions: Tensor, values: Tensor, ratios: Tensor, scale: float | None) -> float:
    """log p(v) up to a constant."""
    quadrature, part = Quadrature(coalitions, ratios), values[:, : len(coalitions)]
    amplitude = _amplitude(quadrature, part, quadrature.coefficients(part), scale)
    guess, offset = (0.0, 0.0) if scale is None else (GUESS, GUESS * math.log(_guess(ratios, scale)))
    return 0.5 * (offset - (len(coalitions) + guess) * math.log(amplitude) - float(quadrature.log_determinant()))


@torch.inference_mode(mode=False)
@torch.enable_grad()
def _learnt(coalitions: Tensor, values: Tensor, start: Tensor) -> Tensor:
    """argmax over r of log p(v | r) - sum over i of d_i^2 / (2 SPREAD^2) - c^2 / 2,   r_i = r_i(start) e^{d_i + c}

    (n,): a player's own change d_i is held near 0, one that all share, c, is nearly free.
    """
    values, start, count = values.detach().clone(), start.clone(), values.shape[1]
    changes = torch.zeros(len(start) + 1, dtype=torch.float64, requires_grad=True)

    def ratios() -> Tensor:
        moved = BOUND * torch.tanh((changes[:-1] + changes[-1]) / BOUND)
        return (start.log() + moved).exp().clamp(1e-4, 0.95)

    def loss() -> Tensor:
        search.zero_grad()
        quadrature = Quadrature(coalitions, ratios())
        amplitude = quadrature.amplitude(values, quadrature.coefficients(values)).squeeze(0) / count
        fit = 0.5 * (count * amplitude.clamp_min(1e-16).log() + quadrature.log_determinant())
        penalty = (changes[:-1] / SPREAD).square().sum() + changes[-1].square()
        total: Tensor = fit + 0.5 * penalty
        total.backward()
        return total

    search = torch.optim.LBFGS([changes], max_iter=SEARCH, line_search_fn="strong_wolfe")
    search.step(loss)
    found = ratios().detach()
    return found if bool(found.isfinite().all()) else start


def _amplitude(quadrature: Quadrature, values: Tensor, coefficients: Tensor, scale: float | None) -> float:
    """t, from what was asked and the guess."""
    total, count = float(quadrature.amplitude(values, coefficients)), float(values.shape[1])
    if scale is not None:
        total, count = total + GUESS * _guess(quadrature.ratios, scale), count + GUESS
    return max(total / count, 1e-16)


def _guess(ratios: Tensor, scale: float) -> float:
    """t_0 for which a Shapley value has this standard deviation."""
    return max(scale**2 / float(index_variances("SV", ratios).mean()), 1e-16)


def _exact(coalitions: Tensor, values: Tensor) -> GameValues:
    position = (coalitions.cpu() * 2 ** torch.arange(coalitions.shape[1])).sum(1)
    table = torch.empty(len(values), dtype=torch.float64)
    table[position] = values.double().cpu()
    exact = {name: exact_values(TableGame(table[None]), name) for name in GAME_INDICES}
    estimates = {name: _estimate(value, torch.zeros_like(value), len(values)) for name, value in exact.items()}
    return GameValues.of(estimates, table[:1])


def _estimate(values: Tensor, stderr: Tensor, budget: int) -> Estimate:
    return Estimate(values, stderr, torch.full_like(values, budget), budget)
