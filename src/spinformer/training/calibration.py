"""Measure, on texts that a game head was not trained on, how far its values are from the classifier's own."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.progress import progress
from spinformer._base.threads import thread_map
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games.evidence import regress
from spinformer.games.quadrature import estimate_all
from spinformer.games.selection import informative_design
from spinformer.games.values import GAME_INDICES, GameValues, player_weights
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier, stack_coalitions
from spinformer.models.misfit import REFINED, ErrorScale, Misfit, features
from spinformer.models.outputs import value_of

PASSES = 128  # masked passes of each text
BATCH = 16  # texts at a time
PAIRS = 128  # of one text that count, at most
DRAWS = 32  # of what the classifier's own value may be, given the passes
RIDGE = 1e-2  # on coefficients, where there are few texts
Z = 1.96


class Row(NamedTuple):
    """Values of one index of one text: features, (m, k); error: mean and standard deviation of the classifier's value
    less the game's, (m,) each; refined: the same error after each of REFINED passes, and its own standard error,
    (2, m) each.
    """

    features: Tensor
    mean: Tensor
    deviation: Tensor
    refined: Tensor
    refined_stderr: Tensor


@torch.no_grad()
def measure_misfit(
    head: GameHead,
    classifier: MaskedClassifier,
    texts: Texts,
    *,
    passes: int = PASSES,
    max_length: int = 128,
    seed: int = 0,
) -> Misfit:
    """The scale of the errors of every index (`spinformer.models.misfit.ErrorScale`), and the fit of v(C).

    Each text is asked `passes` times; what they say of the classifier's own values, mean and uncertainty, is compared
    with the game's. Scales are fitted by likelihood. Factors are quantiles of |error| / scale, over 1.96, so that
    intervals hold 95% of the values of a new text whatever their distribution is (conformal factors, `_quantile`).
    """
    checks.at_least("passes", passes, 16)
    rows: dict[str, list[Row]] = {name: [] for name in GAME_INDICES}
    squares = torch.zeros(2, dtype=torch.float64)
    longest = 0
    starts = range(0, len(texts), BATCH)
    for start in progress(starts, "measuring misfit", len(starts)):
        part = texts.select(range(start, min(start + BATCH, len(texts))))
        words = split_words(classifier.tokenizer, part, max_length).to(classifier.device)
        games = head.games(classifier.model, words)
        target = games.full.argmax(-1)
        confidence = games.confidence(target)
        game = games.game(target)
        values = estimate_all(game, seed=torch.tensor(seed), tolerance=games.tolerance)
        counts = words.counts.tolist()
        singles = [values.row(row, count) for row, count in enumerate(counts)]
        weights = [player_weights(single.activity[0]) for single in singles]
        # Chosen for Shapley values; for Banzhaf's own passes the scales found so are on the safe side.
        designs = thread_map(lambda own: informative_design(len(own), passes + 1, torch.tensor(seed), own), weights)
        width = max(counts)
        asked = torch.zeros(len(counts), max(map(len, designs)), width, dtype=torch.bool)
        for row, design in enumerate(designs):
            asked[row, : len(design), : counts[row]] = design
        owner, real = stack_coalitions(designs, width)
        answers = value_of(classifier.row_probabilities(words, owner, real), target[owner.to(target.device)]).cpu()
        predicted = game.evaluate(asked.to(game.device)).cpu()
        longest = max(longest, *counts)
        errors = []
        for row, (design, answer) in enumerate(zip(designs, answers.split([len(d) for d in designs]), strict=True)):
            errors.append(answer.double() - predicted[row, : len(design)].double())
            spread = answer.double() - answer.double().mean()
            squares += torch.stack([errors[-1].square().sum(), spread.square().sum()])
        given = list(zip(singles, weights, designs, errors, confidence.cpu().split(1), strict=True))
        for found in thread_map(lambda each: _rows(*each), given):
            for name, own in found.items():
                rows[name].append(own)
    generator = torch.Generator().manual_seed(seed)
    scales = {name: _fit(found, generator) for name, found in rows.items()}
    fit = 1 - float(squares[0] / squares[1].clamp_min(1e-12))
    return Misfit(scales, fit, len(texts), passes, longest)


def _rows(values: GameValues, weights: Tensor, design: Tensor, error: Tensor, confidence: Tensor) -> dict[str, Row]:
    """For each index, what all passes and REFINED of them say of v - g."""
    players = design.shape[1]
    first, second = torch.triu_indices(players, players, 1)
    kept = torch.linspace(0, len(first) - 1, min(PAIRS, len(first))).long()
    pairs = first[kept], second[kept]
    full = regress(design, error, weights=weights, pairs=pairs)
    known = len(design) == 2 ** min(players, 62)
    sizes = [min(count, len(design) // 2) for count in REFINED]
    parts = [full if known else regress(design[:n], error[:n], weights=weights, pairs=pairs) for n in sizes]
    mask = torch.ones(1, players, dtype=torch.bool)
    rows = {}
    for name in GAME_INDICES:
        x = features(name, values, confidence, mask)[0]
        estimates = [each.by_index[name] for each in (full, *parts)]
        columns = [part[0].double() for each in estimates for part in (each.values, each.stderr)]
        if x.dim() == 3:
            x, *columns = (part[pairs] for part in (x, *columns))
        mean, deviation, *after = columns
        errors, stderr = torch.stack([mean - part for part in after[::2]]), torch.stack(after[1::2])
        rows[name] = Row(x, mean, deviation, errors, stderr)
    return rows


def _fit(rows: list[Row], generator: torch.Generator) -> ErrorScale:
    """argmin over b of sum over values of log s^2 + (mean^2 + deviation^2) / s^2, each text counting once."""
    x, mean, deviation = (torch.cat([row[place] for row in rows]) for place in range(3))
    refined, stderr = (torch.cat([row[place] for row in rows], 1) for place in (3, 4))
    sizes = torch.tensor([len(row.mean) for row in rows])
    weight = (1 / sizes.clamp_min(1)).repeat_interleave(sizes).double() / len(rows)
    if not len(x):  # texts of one word have no pairs
        return ErrorScale((0.0,) * x.shape[1])
    moment = mean.square() + deviation.square() + 1e-10
    start = torch.zeros(x.shape[1], dtype=torch.float64)
    start[0] = 0.5 * float((weight * moment).sum().log())
    b = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([b], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        log_scale = x @ b
        total = (weight * (2 * log_scale + moment * (-2 * log_scale).exp())).sum() + RIDGE * b[1:].square().sum()
        total.backward()
        return total

    with torch.enable_grad():
        optimizer.step(loss)
    scale = (x @ b.detach()).exp()
    noise = torch.randn(DRAWS, len(mean), dtype=torch.float64, generator=generator)
    ratio = (mean + deviation * noise).abs() / scale
    factors = [_quantile(ratio, weight, len(rows))]
    for error, own in zip(refined, stderr, strict=True):
        known = own > 1e-6
        after = (error + deviation * noise).abs()[:, known] / own[known]
        factors.append(_quantile(after, weight[known], len(rows), least=1.0))
    return ErrorScale(tuple(b.detach().tolist()), factors[0], (factors[1], factors[2]))


def _quantile(ratio: Tensor, weight: Tensor, texts: int, least: float = 0.0) -> float:
    """The weighted 0.95 (1 + 1 / T) quantile over draws and values, over 1.96; T: the number of texts.

    A new text is one more beside T exchangeable ones; hence the little more than 0.95.
    """
    if not ratio.numel() or not math.isfinite(float(ratio.max())):
        return 1.0
    order = ratio.flatten().argsort()
    mass = weight.expand_as(ratio).flatten()[order].cumsum(0)
    level = min(1.0, 0.95 * (1 + 1 / texts))
    place = int(torch.searchsorted(mass, level * mass[-1]).clamp_max(len(mass) - 1))
    return max(least, float(ratio.flatten()[order[place]]) / Z)
