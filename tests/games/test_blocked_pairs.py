"""Pairs in blocks against `estimate_values`, which computes them all at once; values and gradients."""

import pytest
import torch

from spinformer.games import NormGame, blocked_pairs, estimate_values, mean_pairs
from spinformer.games.one_pass import estimate_norm_pairs, estimate_norm_values

# Relative to the largest number: roots of differences that cancel.
CLOSE = {torch.float64: 2e-8, torch.float32: 2e-4}


def game_of(n, dim, scale, dtype, masked):
    """Three games with twins, a zero vector and opposite vectors, of n players."""
    generator = torch.Generator().manual_seed(n)
    values = scale * torch.randn(3, n, dim, dtype=dtype, generator=generator)
    if n > 4:
        values[0, 1], values[1, 0], values[2, 1] = values[0, 2], 0.0, -values[2, 3]
    mask = None
    if masked:
        mask = torch.rand(3, n, generator=generator) < 0.8
        mask[:, 0] = True
    return NormGame(values, mask)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("n", "budget", "dim", "scale"),
    [
        *[(1, 4, 3, 1.0), (2, 4, 3, 1.0), (5, 4, 3, 1.0), (33, 25, 8, 1.0), (70, 6, 5, 1.0)],
        *[(37, 9, 8, 1e-12), (37, 9, 8, 1e12)],
    ],
)
def test_the_same_pairs(n, budget, dim, scale, masked, dtype):
    given = game_of(n, dim, scale, dtype, masked)
    slope = torch.randn(3, n, n, dtype=dtype, generator=torch.Generator().manual_seed(1))

    def run(pairs):
        values = given.values.clone().requires_grad_()
        found = pairs(NormGame(values, given.mask))
        assert found is not None
        (gradient,) = torch.autograd.grad((found * slope).sum(), values)
        return found.detach(), gradient

    found = run(lambda game: estimate_norm_pairs(game, estimate_norm_values(game, budget, seed=3, shared=False).sums))
    plain = run(lambda game: estimate_values(game, "BII", budget, seed=4, errors=False, shared=False).values)
    for one, other, times in zip(found, plain, (1, 10), strict=True):
        assert bool(one.isfinite().all())
        assert float((one - other).abs().max()) <= times * CLOSE[dtype] * float(other.abs().max())


@pytest.mark.parametrize("dtype", CLOSE)
def test_the_same_pairs_where_no_player_decides(dtype, monkeypatch):
    """Vectors that point the same way: then every pair takes the short way, and it is the closer one."""
    game = game_of(70, 8, 0.3, dtype, masked=True)
    game = NormGame(game.values + 1.0, game.mask)
    budget, seed = 6, 3
    sums = estimate_norm_values(game, budget, seed=seed, shared=False).sums
    monkeypatch.setattr(mean_pairs, "_block", None)
    found = estimate_norm_pairs(game, sums)
    assert found is not None
    exact = NormGame(game.values.double(), game.mask)
    plain = estimate_values(exact, "BII", budget, seed=seed + 1, errors=False, shared=False).values
    assert float((found - plain).abs().max()) <= CLOSE[dtype] * float(plain.abs().max())


def test_the_size_of_blocks_changes_nothing_but_rounding(monkeypatch):
    game = game_of(70, 5, 1.0, torch.float64, masked=True)
    sums = estimate_norm_values(game, 6, seed=3, shared=False).sums
    whole = blocked_pairs.controlled_pairs(game, sums)
    monkeypatch.setattr(mean_pairs, "ROWS", 7)
    monkeypatch.setattr(mean_pairs, "NUMBERS", 100)
    torch.testing.assert_close(blocked_pairs.controlled_pairs(game, sums), whole)


def test_gradients_are_those_of_small_steps():
    game = game_of(7, 3, 1.0, torch.float64, masked=False)
    sums = game.sums(torch.rand(3, 6, 7).argsort(-1) < 4)
    gram, change = torch.bmm(game.values, game.values.mT), 2 * sums.products - sums.inside * 0.1
    change = torch.where(sums.inside > 0, -change.abs() * 0.01, change.abs())  # no norm is near 0
    given = [sums.square + 1.0, change, gram * 0.01]
    off = ~torch.eye(7, dtype=torch.bool)

    def differences(*numbers):
        return mean_pairs.MeanPairs.apply(*numbers, sums.inside) * off

    def symmetric(total, change, gram):
        return differences(total, change, (gram + gram.mT) / 2)

    assert torch.autograd.gradcheck(symmetric, [part.detach().requires_grad_() for part in given])


def test_other_activations_are_left_to_the_plain_way():
    game = NormGame(torch.randn(2, 6, 3), activation="tanh")
    assert estimate_norm_pairs(game, estimate_norm_values(game, 4, seed=0, shared=False).sums) is None
