"""Explanations of any classifier by masking: what it says of parts of a text, asked part by part."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.explain.assembling import assemble
from spinformer.explain.attribution.base import text_seed, text_uniforms
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import TEMPERATURE, play_survey, played_errors
from spinformer.extras import require
from spinformer.games import Estimate, Survey, TableGame, exact_values
from spinformer.games.estimate import weighted_mean
from spinformer.games.exact import coalition_table
from spinformer.games.game import Game
from spinformer.games.indices import Index
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.progress import progress

BUDGET = 512
INDICES: tuple[Index, ...] = ("SV", "BV", "BII")
# Shapley values are the mean of so many independent runs, at most, of at least PER_WORD passes a word each.
REPEATS, PER_WORD = 8, 3
# Passes between two steps of the bar, which shows where a text takes longer than PATIENCE seconds.
STEP, PATIENCE = 64, 2.0
# Ratios of noise to signal that are tried, by variance: what pairs do not explain is at least a hundredth of the whole.
RIDGES = torch.logspace(-2, 6, 65, dtype=torch.float64)


def explain_masked(
    classifier: MaskedClassifier,
    texts: Texts,
    *,
    budget: int = BUDGET,
    temperature: float = TEMPERATURE,
    max_length: int = 128,
    seed: int = 0,
) -> list[Explanation]:
    """v(C) = P(the decided class | the words C alone), with at most `budget` passes a text.

    Where all 2^n coalitions of n words are within the budget they are enumerated, and every value is exact. Otherwise
    half of the budget goes to Shapley values, as the mean of independent runs of shapiq's KernelSHAP, whose spread
    gives the standard error; half to Banzhaf values and interactions, by regression on fair coins (`fair_coins`).
    """
    checks.at_least("budget", budget, 2)
    found = []
    for row in progress(range(len(texts)), "texts", delay=PATIENCE) if len(texts) > 1 else range(len(texts)):
        one = texts.select([row])
        words = split(classifier.tokenizer, one, max_length)
        before = classifier.passes
        full = classifier.full(words)
        game = _Asked(ConfidenceGame(classifier, words, full.argmax(-1)), float(full.max()))
        exact = 2 ** min(game.players, 62) <= budget
        values = _exact(game) if exact else _estimate(game, words, budget, seed)
        config = classifier.model.config
        played = play_survey(game, values, temperature)
        found += assemble(
            one,
            words,
            [config.id2label[place] for place in range(full.shape[1])],
            full.tolist(),
            values,
            played,
            method="masked",
            passes=classifier.passes - before,
            samples=values.shapley.budget,
            ess=None,
            errors=played_errors(values, played, temperature),
        )
    return found


class _Asked(Game):
    """The game of one text, which remembers its answers: one pass for each different coalition."""

    def __init__(self, game: ConfidenceGame, whole: float) -> None:
        self.game = game
        self.answers = {torch.ones(game.players, dtype=torch.bool).numpy().tobytes(): whole}
        self.batch, self.players, self.batched, self.mask = 1, game.players, True, None
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """(1, K) of (1, K, n), STEP new ones at a time."""
        rows = coalitions[0].cpu()
        keys = [row.tobytes() for row in rows.numpy()]
        new = list({key: place for place, key in enumerate(keys) if key not in self.answers}.items())
        parts = [new[start : start + STEP] for start in range(0, len(new), STEP)]
        for part in progress(parts, "masked passes", delay=PATIENCE) if len(parts) > 1 else parts:
            asked = rows[[place for _, place in part]][None].to(self.game.device)
            values = self.game.evaluate(asked)[0].tolist()
            self.answers.update(zip((key for key, _ in part), values, strict=True))
        return torch.tensor([[self.answers[key] for key in keys]])


def _exact(game: _Asked) -> Survey:
    table = coalition_table(game, torch.arange(game.players))
    values = [exact_values(TableGame(table), index)[0] for index in INDICES]
    return _survey([(value, torch.zeros_like(value)) for value in values], float(table[0, 0]), 2**game.players)


def _survey(found: Sequence[tuple[Tensor, Tensor]], empty: float, budget: int) -> Survey:
    """As a batch of one, from values and standard errors of INDICES."""
    made = [
        Estimate(value.float()[None], stderr.float()[None], torch.full_like(value, budget).float()[None], budget)
        for value, stderr in found
    ]
    return Survey(made[0], made[1], made[2], torch.tensor([empty]))


def _estimate(game: _Asked, words: Words, budget: int, seed: int) -> Survey:
    n = game.players
    least = 4 * (n + 2)
    if budget < least:
        raise ValueError(f"a text of {n} words needs a budget of at least {least} masked passes; got {budget}")
    empty = float(game(torch.zeros(1, n, dtype=torch.bool)))
    half = budget // 2
    shapley = _kernel_shap(game, half, empty, int(text_seed(words, 0, seed)) % 2**31)
    coins = text_uniforms(words, 0, seed + 1, (budget - half - 2) // 2, n) < 0.5
    values = game(torch.stack([coins, ~coins], 1).flatten(0, 1))[0].double().unflatten(0, (-1, 2))
    banzhaf, pairs = fair_coins(coins, values[:, 0], values[:, 1])
    return _survey([shapley, banzhaf, pairs], empty, budget)


def _kernel_shap(game: _Asked, budget: int, empty: float, seed: int) -> tuple[Tensor, Tensor]:
    """Shapley values and standard errors, (n,) each, from `budget` passes in independent runs."""
    n = game.players
    shapiq = require("shapiq", extra="compare")
    runs = max(2, min(REPEATS, budget // (PER_WORD * n)))

    def value(coalitions: Any) -> Any:
        return game(torch.as_tensor(np.asarray(coalitions, dtype=bool)))[0].double().numpy() - empty

    found = []
    for run in range(runs):
        approximator = shapiq.KernelSHAP(n, pairing_trick=True, random_state=(seed + run) % 2**31)
        values = approximator.approximate(budget // runs, value)
        found.append([float(values[(player,)]) for player in range(n)])
    mean, stderr, _ = weighted_mean(torch.tensor(found, dtype=torch.float64)[None], None, 1)
    return mean[0], stderr[0]


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
