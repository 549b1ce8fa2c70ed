"""Measure, on texts that a game head was not trained on, how far its values are from the classifier's own."""

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.progress import progress
from spinformer._base.threads import thread_map
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games.evidence import regress
from spinformer.games.values import GAME_INDICES, GameValues
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.models.misfit import EPSILON, REFINED, WORD_FEATURES, ErrorScale, Misfit, features
from spinformer.training.calibration_passes import AskedText, ask
from spinformer.training.difficulty import learn_difficulty

PASSES = 128  # masked passes of each text, chosen for Shapley values; half as many more for Banzhaf values
FULLY, MOST = 100, 400  # texts that are asked so often, or half of all; texts that are used at all
FEW = 16  # masked passes of the others, of which only the size of the error is wanted
BATCH = 16  # texts at a time
PAIRS = 128  # of one text that count, at most
DRAWS = 32  # of what the classifier's own value may be, given the passes
RIDGE = 1e-2  # on coefficients, where there are few texts
Z = 1.96
KNOWN = [WORD_FEATURES.index(name) for name in ("constant", "text", "words", "doubt")]  # of texts, not of words


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


def fully(texts: int) -> int:
    """Of so many texts, those that are asked all passes: a half, and FULLY where there are so many."""
    return min(texts, max(FULLY, min(texts, MOST) // 2))


def passes_for(texts: int, passes: int = PASSES) -> int:
    """Masked passes that `measure_misfit` spends on so many texts, at most."""
    count = fully(texts)
    return count * (passes + passes // 2) + (min(texts, MOST) - count) * FEW


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

    The game is asked as an explanation asks it: v of no words is the classifier's own.

    Some texts (`fully`), drawn at random, are asked `passes` times; what they say of the classifier's own values, mean
    and uncertainty, is compared with the game's. Which texts are hard for the game is learnt from the vectors of all
    (`learn_difficulty`); scales are fitted by likelihood, with the difficulty that the other texts tell of each.
    Factors are quantiles of |error| / scale, over 1.96, so that intervals hold 95% of the values of a new text whatever
    their distribution is (conformal factors, `_quantile`).
    """
    checks.at_least("passes", passes, 16)
    generator = torch.Generator().manual_seed(seed)
    texts, count = texts.select(torch.randperm(len(texts), generator=generator)[:MOST].tolist()), fully(len(texts))
    rows: list[dict[str, Row]] = []
    vectors, errors, known = [], [], []
    squares = torch.zeros(2, dtype=torch.float64)
    longest = 0
    starts = [*range(0, count, BATCH), *range(count, len(texts), BATCH)]
    for start in progress(starts, "measuring misfit", len(starts)):
        all_passes = start < count
        part = texts.select(range(start, min(start + BATCH, count if all_passes else len(texts))))
        words = split_words(classifier.tokenizer, part, max_length).to(classifier.device)
        games = replace(head.games(classifier.model, words), empty=classifier.empty_probabilities(words))
        asked = ask(classifier, words, games, passes if all_passes else FEW, torch.tensor(seed), closely=all_passes)
        longest = max(longest, *words.counts.tolist())
        for text in asked:
            chosen = text.first["SV"]
            squares += torch.stack([part[chosen].square().sum() for part in (text.error, text.spread)])
            errors.append(math.log(text.rms + EPSILON))
            known.append(features("SV", text.values, text.facts, torch.ones(1, text.players).bool())[0, 0, KNOWN])
        if games.vectors is not None:
            vectors.append(games.vectors.cpu())
        if all_passes:
            rows += thread_map(_rows, asked)
    difficulty, told = None, torch.zeros(len(errors), dtype=torch.float64)
    if vectors:
        difficulty, told = learn_difficulty(torch.cat(vectors), torch.tensor(errors), torch.stack(known))
    scales = {}
    for name in GAME_INDICES:
        for row, hard in zip(rows, told, strict=False):
            row[name].features[:, -1] = hard
        scales[name] = _fit([row[name] for row in rows], generator)
    fit = 1 - float(squares[0] / squares[1].clamp_min(1e-12))
    return Misfit(scales, fit, count, passes, longest, difficulty)


def _rows(text: AskedText) -> dict[str, Row]:
    """For each index, what all passes and the first of REFINED passes for it say of v - g."""
    players = text.players
    first, second = torch.triu_indices(players, players, 1)
    kept = torch.linspace(0, len(first) - 1, min(PAIRS, len(first))).long()
    pairs = first[kept], second[kept]

    def regressed(places: Tensor) -> GameValues:
        return regress(text.asked[places], text.error[places], weights=text.weights, pairs=pairs)

    full = regressed(torch.arange(len(text.asked)))
    enumerated = len(text.asked) == 2 ** min(players, 62)
    parts = {}
    for own in ("SV", "BV"):
        chosen = text.first[own]
        most = len(text.first["SV"]) // 2
        parts[own] = [full if enumerated else regressed(chosen[: min(count, most)]) for count in REFINED]
    mask = torch.ones(1, players, dtype=torch.bool)
    rows = {}
    for name in GAME_INDICES:
        x = features(name, text.values, text.facts, mask)[0]
        after = parts["SV" if name in ("SV", "SII") else "BV"]
        columns = [part[0].double() for each in (full, *after) for part in _estimate(each, name)]
        if x.dim() == 3:
            x, *columns = (part[pairs] for part in (x, *columns))
        mean, deviation, *refined = columns
        errors, stderr = torch.stack([mean - part for part in refined[::2]]), torch.stack(refined[1::2])
        rows[name] = Row(x, mean, deviation, errors, stderr)
    return rows


def _estimate(values: GameValues, name: str) -> tuple[Tensor, Tensor]:
    found = values.by_index[name]
    return found.values, found.stderr


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
