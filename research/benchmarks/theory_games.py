"""What the NeuroGame paper says of games and their estimators in sections 3 and 4, measured.

"Encoder outputs" are the standardised hidden states of short sentence pairs, whose values can be enumerated.
"""

from itertools import product
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from research.data import encoder_sample
from spinformer.attention import algorithm1
from spinformer.attention.worked_example import TABLE
from spinformer.games import Game, NormGame, TableGame, estimate_values, exact_values

TEMPERATURE, MOST = 0.25, 14  # gamma of section 7.3; tokens of a pair that is enumerated
EXAMPLE_TEMPERATURE, EXAMPLE_SAMPLES = 1.0, 3  # gamma and K of section 5
BUDGETS = (25, 100, 400)
REPEATS, INPUTS = 20, 4


def coalitions(players: int) -> Tensor:
    """All of them, (2**n, n)."""
    return (torch.arange(2**players)[:, None] >> torch.arange(players) & 1).bool()


def short_inputs(count: int | None = None) -> list[Tensor]:
    """Vectors of short pairs, (n, d) each, in float64."""
    return [values.double() for values in encoder_sample().short(MOST)[:count]]


def properties() -> dict[str, Any]:
    """Section 3.2: v of no token, how often a token lowers v, and how large v is, for norms of sums.

    falls: the share of marginal contributions below 0, over all coalitions; bound: the largest v over the sum of the
    lengths of all vectors; saturated: the share of coalitions with tanh(v) above 1 - 1e-6; largest_exponent: v / gamma.
    """
    generator = torch.Generator().manual_seed(0)
    spread = [torch.randn(10, 16, generator=generator, dtype=torch.float64) for _ in range(INPUTS)]
    outcome: dict[str, Any] = {}
    for name, inputs in (("encoder outputs", short_inputs()), ("random directions", spread)):
        rows = []
        for values in inputs:
            game, every = NormGame(values), coalitions(len(values))
            v = game(every)
            gains = game.marginals(every[None])[0][0]
            rows.append(
                {
                    "empty": float(v[0].abs()),
                    "falls": float((gains < 0).double().mean()),
                    "bound": float(v.max() / values.norm(dim=-1).sum()),
                    "saturated": float((v.tanh() > 1 - 1e-6).double().mean()),
                    "largest": float(v.max()),
                }
            )
        outcome[name] = {key: fmean(row[key] for row in rows) for key in rows[0]}
    sample = encoder_sample()
    whole = NormGame(sample.normed(), sample.mask)(torch.ones(1, sample.mask.shape[1], dtype=torch.bool))
    outcome["largest_exponent"] = float(whole.max()) / TEMPERATURE
    return outcome


def orders() -> dict[str, Any]:
    """How much of the variance of v over coalitions belongs to single tokens, to pairs, and to larger groups.

    By the orthogonal expansion of v in products of +-1 variables, one for each token (Walsh); on encoder outputs.
    """
    shares: list[list[float]] = []
    for values in short_inputs():
        n = len(values)
        spectrum = NormGame(values)(coalitions(n))
        for bit in range(n):
            spectrum = spectrum.view(-1, 2, 2**bit)
            spectrum = torch.stack((spectrum[:, 0] + spectrum[:, 1], spectrum[:, 0] - spectrum[:, 1]), 1)
        power, size = spectrum.flatten().square(), coalitions(n).sum(-1)
        total = float(power[1:].sum())
        shares.append([float(power[size == 1].sum()) / total, float(power[size == 2].sum()) / total])
    single, pairs = (fmean(row[order] for row in shares) for order in (0, 1))
    return {"single": single, "pairs": pairs, "more": 1 - single - pairs}


def axioms() -> dict[str, float]:
    """How far values are from adding up to v of all tokens, relative to it: exact values on encoder outputs."""
    gaps: dict[str, list[float]] = {"shapley": [], "banzhaf": [], "gibbs": []}
    for values in short_inputs():
        game = NormGame(values)
        total = float(game(torch.ones(1, len(values), dtype=torch.bool)))
        for name, numbers in (
            ("shapley", exact_values(game, "SV")),
            ("banzhaf", exact_values(game, "BV")),
            ("gibbs", exact_values(game, "SV", "gibbs", TEMPERATURE)),
        ):
            gaps[name].append(abs(float(numbers.sum()) - total) / total)
    return {name: fmean(numbers) for name, numbers in gaps.items()}


def bias() -> dict[str, float]:
    """The estimate of section 5 for "good", averaged over every draw of K = 3 coalitions, beside what it is taken for.

    Nothing is sampled: the contexts are the four sets of the other two tokens, each draw has probability 4**-3.
    """
    game = TableGame(torch.tensor(TABLE, dtype=torch.float64))
    contexts = torch.tensor([[first, False, second] for first, second in product((False, True), repeat=2)])
    gains, values = (part[0, :, 1] for part in game.marginals(contexts[None]))
    estimates = []
    for draw in product(range(len(contexts)), repeat=EXAMPLE_SAMPLES):
        weights = (values[list(draw)] / EXAMPLE_TEMPERATURE).softmax(0)
        estimates.append(float(weights @ gains[list(draw)]))
    return {
        "expected": fmean(estimates),
        "gibbs": float(exact_values(game, "BV", "gibbs", EXAMPLE_TEMPERATURE)[1]),
        "shapley": float(exact_values(game, "SV")[1]),
        "banzhaf": float(exact_values(game, "BV")[1]),
    }


def rate() -> dict[str, Any]:
    """Root mean square error of Gibbs-weighted Banzhaf values by K, towards their own limit.

    The game of section 5 at gamma = 1; encoder outputs at gamma = 0.25, where one coalition has nearly all the weight.
    """
    example: Game = TableGame(torch.tensor(TABLE, dtype=torch.float64).expand(2000, -1))
    outcome = {"example": _errors([example], EXAMPLE_TEMPERATURE)}
    repeated: list[Game] = [NormGame(values.expand(REPEATS, -1, -1)) for values in short_inputs(INPUTS)]
    outcome["encoder outputs"] = _errors(repeated, TEMPERATURE)
    return {"budgets": list(BUDGETS), **outcome}


def _errors(games: list[Game], temperature: float) -> list[float]:
    generator = torch.Generator().manual_seed(0)
    errors = []
    for budget in BUDGETS:
        squares = []
        for game in games:
            exact = exact_values(game, "BV", "gibbs", temperature)
            drawn = estimate_values(
                game, "BV", budget, weighting="gibbs", temperature=temperature, estimator="plain", generator=generator
            )
            squares.append(float((drawn.values - exact).square().mean()))
        errors.append(fmean(squares) ** 0.5)
    return errors


def evaluations() -> dict[str, Any]:
    """How often Algorithm 1 evaluates v, counted: for the fields of all tokens, and for the couplings of all pairs."""
    samples = 3
    counts: dict[int, dict[str, int]] = {}
    for tokens in (8, 16):
        V = torch.randn(tokens, 4, generator=torch.Generator().manual_seed(0))
        generator = torch.Generator().manual_seed(0)
        with _Counter() as counter:
            for i in range(tokens):
                algorithm1.shapley_value(V, i, samples, TEMPERATURE, generator)
                algorithm1.banzhaf_value(V, i, samples, TEMPERATURE, generator)
            fields = counter.calls
            for i in range(tokens):
                for j in range(i + 1, tokens):
                    algorithm1.interaction(V, i, j, samples, TEMPERATURE, generator)
        counts[tokens] = {"fields": fields, "couplings": counter.calls - fields}
    small, large = counts.values()
    growth = {name: large[name] / small[name] for name in small}
    return {"samples": samples, "counts": {str(n): row for n, row in counts.items()}, "growth_when_n_doubles": growth}


class _Counter:
    """Counts the evaluations of v by Algorithm 1 while it is entered."""

    def __enter__(self) -> "_Counter":
        self.calls, self.plain = 0, algorithm1.norm_of_sum

        def counted(V: Tensor, members: list[int]) -> Tensor:
            self.calls += 1
            return self.plain(V, members)

        algorithm1.norm_of_sum = counted
        return self

    def __exit__(self, *error: object) -> None:
        algorithm1.norm_of_sum = self.plain
