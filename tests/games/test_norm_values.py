"""Both indices in one pass equal the two estimates one after the other."""

import pytest
import torch

from spinformer.games import NormGame, estimate_low_rank, estimate_norm_values, estimate_values, low_rank_from_sums
from spinformer.games.norm import ACTIVATIONS


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("budget", [6, 7])
def test_joint_equals_separate(activation, masked, shared, budget):
    values = torch.randn(3, 6, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]]) if masked else None
    seed, temperature = torch.tensor(5), torch.ones(3, dtype=torch.float64)

    def joint():
        game = NormGame(values, mask, activation, scale=0.3)
        estimates, sums = estimate_norm_values(game, budget, seed=seed, shared=shared)
        return (*estimates.unbind(1), *low_rank_from_sums(game, sums))

    def separate():
        game = NormGame(values, mask, activation, scale=0.3)
        options = {"weighting": "uniform", "proposal": "uniform", "shared": shared}
        shapley, banzhaf = (
            estimate_values(game, name, budget, seed=seed + offset, estimator="control", **options).values
            for offset, name in enumerate(("SV", "BV"))
        )
        return shapley, banzhaf, *estimate_low_rank(game, budget, temperature=temperature, seed=seed + 1, **options)

    outcomes = []
    for estimate in (joint, separate):
        parts = estimate()
        (gradient,) = torch.autograd.grad(sum(part.sin().sum() for part in parts), values)
        outcomes.append([*parts, gradient])
    for one, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(one, other)
