"""Values of one text's words by asking the classifier about masked texts: exact where all coalitions can be asked."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from spinformer._base.progress import progress
from spinformer.data.words import Words
from spinformer.explain.scoring import text_uniforms
from spinformer.games import Estimate, GameValues, TableGame, exact_values
from spinformer.games.estimate import weighted_mean
from spinformer.games.exact import coalition_table
from spinformer.games.game import Game
from spinformer.games.kernel_shap import least_squares, sample_kernel

PASSES = 512
INDICES = ("SV", "BV", "BII")
# Shapley values are the mean of at most RUNS independent runs of KernelSHAP, of at least PER_WORD passes per word.
RUNS, PER_WORD = 8, 3
# Where `until` stops asking, whatever the standard errors are.
MAX_PASSES = 2**17
# Between the seeds of two runs.
STRIDE = 1_000_003
# Passes between two steps of the progress bar, which shows after DELAY seconds.
STEP, DELAY = 64, 2.0
# Ratios of noise to signal that are tried, by variance: what pairs do not explain is at least a hundredth of the whole.
RIDGES = torch.logspace(-2, 6, 65, dtype=torch.float64)


class CachedGame(Game):
    """The game of one text, which remembers its answers: one evaluation for each different coalition."""

    def __init__(self, game: Game, full_value: float) -> None:
        self.game = game
        self.answers = {torch.ones(game.players, dtype=torch.bool).numpy().tobytes(): full_value}
        self.batch, self.players, self.batched, self.mask = 1, game.players, True, None
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """(1, K) of (1, K, n), STEP new coalitions at a time."""
        rows = coalitions[0].cpu()
        keys = [row.tobytes() for row in rows.numpy()]
        new = list({key: index for index, key in enumerate(keys) if key not in self.answers}.items())
        parts = [new[start : start + STEP] for start in range(0, len(new), STEP)]
        for part in progress(parts, "masked passes", delay=DELAY) if len(parts) > 1 else parts:
            asked = rows[[index for _, index in part]][None].to(self.game.device)
            values = self.game.evaluate(asked)[0].tolist()
            self.answers.update(zip((key for key, _ in part), values, strict=True))
        return torch.tensor([[self.answers[key] for key in keys]])


def masked_values(game: Game, words: Words, passes: int, seed: int) -> GameValues:
    """Shapley and Banzhaf values and interactions of one text's game, from at most `passes` evaluations.

    Where all 2^n coalitions of n words are within the budget they are enumerated, and every value is exact. Otherwise
    half of the budget goes to Shapley values, as the mean of independent runs of KernelSHAP, whose spread gives the
    standard error; half to Banzhaf values and interactions, by regression on fair coins (`fair_coins`).
    """
    n = game.players
    if 2 ** min(n, 62) <= passes:
        table = coalition_table(game, torch.arange(n))
        exact = [exact_values(TableGame(table), index)[0] for index in INDICES]
        return _values([(value, torch.zeros_like(value)) for value in exact], float(table[0, 0]), 2**n)
    min_passes = 4 * (n + 2)
    if passes < min_passes:
        raise ValueError(f"a text of {n} words needs at least {min_passes} masked passes; got {passes}")
    empty = float(game(torch.zeros(1, n, dtype=torch.bool)))
    half = passes // 2
    shapley = _kernel_shap(game, words, half, empty, seed)
    coins = text_uniforms(words, 0, seed + 1, (passes - half - 2) // 2, n) < 0.5
    values = game(torch.stack([coins, ~coins], 1).flatten(0, 1))[0].double().unflatten(0, (-1, 2))
    banzhaf, pairs = fair_coins(coins, values[:, 0], values[:, 1])
    return _values([shapley, banzhaf, pairs], empty, passes)


def values_until(
    game: Game, words: Words, passes: int, until: float | None, seed: int, estimates: Sequence[str] = ("shapley",)
) -> GameValues:
    """`masked_values`; with `until`, passes double until every word's standard error is at most that.

    estimates: whose standard errors count, "shapley", "banzhaf" or both. It stops at MAX_PASSES in any case: the
    standard errors of the result say what was reached.
    """
    budget = max(passes, 4 * (game.players + 2)) if until is not None else passes
    values = masked_values(game, words, budget, seed)
    while until is not None and largest_error(values, estimates) > until and budget < MAX_PASSES:
        budget *= 2
        values = masked_values(game, words, budget, seed)
    return values


def largest_error(values: GameValues, estimates: Sequence[str]) -> float:
    """The largest standard error of any word in these estimates."""
    return max(float(getattr(values, name).stderr.max()) for name in estimates)


def fair_coins(
    coins: Tensor, values: Tensor, complements: Tensor
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """(v(C) - v(N - C)) / 2 = sum over i of beta_i x_i / 2 + ...,   x_i = 1 where i is in C, -1 where not
    (v(C) + v(N - C)) / 2 = constant + sum over i < j of J_ij x_i x_j / 4 + ...

    beta and J are the Banzhaf values and interactions, since products of fair coins are orthogonal; what is left out
    is of third and fourth order, and acts as noise. coins: (K, n); values, complements: v(C), v(N - C), (K,) -> beta
    and J, each with standard errors: (n,), and (n, n) symmetric with zero diagonal. See `posterior`: where K is small
    for so many pairs, interactions are drawn towards 0, and their standard errors say how far.
    """
    n = coins.shape[1]
    spin = 2 * coins.double() - 1
    weight, error = posterior(spin, (values - complements) / 2)
    first, second = torch.triu_indices(n, n, 1)
    products, even = spin[:, first] * spin[:, second], (values + complements) / 2
    both = posterior(products - products.mean(0), even - even.mean())
    square = []
    for part in both:
        matrix = part.new_zeros(n, n)
        matrix[first, second] = 4 * part
        square.append(matrix + matrix.T)
    return (2 * weight, 2 * error), (square[0], square[1])


def posterior(design: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """y = X w + noise,   w ~ N(0, t),   noise ~ N(0, r t):   mean of w given y, and its standard deviation

    design: X, (K, p); target: y, (K,) -> (p,) each. t is the likeliest for each ridge r; over RIDGES, the weight of
    each is how likely it makes y, so that not knowing r counts in the standard deviation. K may be above p or below it.
    """
    size, vectors = torch.linalg.eigh(design @ design.T)
    size = size.clamp_min(0)
    part = vectors.T @ target
    total = size + (RIDGES * size.mean())[:, None]  # (R, K)
    scale = (part.square() / total).mean(1)  # t
    if not bool((scale > 0).all()):  # y is 0 throughout
        return design.new_zeros(design.shape[1]), design.new_zeros(design.shape[1])
    weight = (-0.5 * (len(target) * scale.log() + total.log().sum(1))).softmax(0)
    projected = design.T @ vectors  # (p, K)
    means = (part / total) @ projected.T  # (R, p)
    variances = scale[:, None] * (1 - (1 / total) @ projected.square().T).clamp_min(0)
    mean = weight @ means
    return mean, (weight @ (variances + (means - mean).square())).sqrt()


def _kernel_shap(game: Game, words: Words, passes: int, empty: float, seed: int) -> tuple[Tensor, Tensor]:
    """Shapley values and standard errors, (n,) each, from independent runs that share `passes`."""
    n = game.players
    runs = max(2, min(RUNS, passes // (PER_WORD * n)))
    total = game(torch.ones(1, n, dtype=torch.bool))[0, 0].double() - empty
    estimates = []
    for run in range(runs):
        uniforms = partial(text_uniforms, words, 0, seed + STRIDE * (run + 1), columns=n + 1)
        sample = sample_kernel(uniforms, passes // runs - 2)
        values = game(sample.coalitions)[0].double() - empty
        estimates.append(least_squares(*sample, values, total))
    mean, stderr, _ = weighted_mean(torch.stack(estimates)[None], None, 1)
    return mean[0], stderr[0]


def _values(parts: Sequence[tuple[Tensor, Tensor]], empty: float, budget: int) -> GameValues:
    """As a batch of one, from values and standard errors of INDICES."""
    estimates = [
        Estimate(value.float()[None], stderr.float()[None], torch.full_like(value, budget).float()[None], budget)
        for value, stderr in parts
    ]
    return GameValues(estimates[0], estimates[1], estimates[2], torch.tensor([empty]))
