"""Huge and tiny numbers, empty batches and wrong shapes: right answers, empty answers, and errors of one line."""

import pytest
import torch

from spinformer.attention import AttractorAttention, NeuroGameAttention
from spinformer.games import NormGame, SumGame, TableGame, estimate_values, exact_values
from spinformer.ising import (
    DenseCouplings,
    Ising,
    LowRankCouplings,
    exact_magnetization,
    glauber,
    log_partition,
    mean_field,
)

SIZES = [1e19, 1e25, 1e37, 1e-19, 1e-30, 1e-37]


def values(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("index", ["SV", "BII"])
def test_norms_of_any_size(size, index):
    """v scales with its vectors: exact values, estimates and gradients times `size`, to a part in 10^5."""
    plain = values(2, 5, 3).requires_grad_()
    large = (plain.detach() * size).requires_grad_()
    for estimate in (exact_values, lambda game, name: estimate_values(game, name, 40, seed=torch.tensor(1)).values):
        one, other = estimate(NormGame(plain), index), estimate(NormGame(large), index)
        torch.testing.assert_close(other.double() / size, one.double(), rtol=1e-4, atol=1e-5)
        (first,) = torch.autograd.grad(one.sum(), plain)
        (second,) = torch.autograd.grad(other.sum(), large)
        torch.testing.assert_close(second, first, rtol=1e-3, atol=1e-4)


def test_ordinary_values_are_not_touched():
    """Bit for bit."""
    game = NormGame(values(2, 5, 3), scale=0.3)
    assert torch.equal(game.values, values(2, 5, 3))
    assert torch.equal(game.scale, torch.full((2,), 0.3))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("couplings", ["dense", "linear"])
def test_raw_values_of_any_size(size, couplings):
    """In share units the size of the values does not matter: attention as at size 1, to 1e-3; the gate is fixed."""
    torch.manual_seed(0)
    layer = NeuroGameAttention(8, 2, values="raw", gate=0.5, couplings=couplings).eval()
    with torch.no_grad():
        expected, result = (layer(factor * values(2, 6, 8)).attention for factor in (1.0, size))
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_norm_of_couplings_of_any_size(size):
    """The largest |eigenvalue|, against float64: a part in 10^4."""
    matrix = values(3, 6, 6)
    matrix = matrix + matrix.mT
    exact = torch.linalg.eigvalsh(DenseCouplings(matrix.double()).dense()).abs().amax(-1)
    torch.testing.assert_close(DenseCouplings(size * matrix).norm().double() / size, exact, rtol=1e-4, atol=0)
    factors, weights = values(3, 9, 2), torch.tensor([[1.0, -0.5]]).expand(3, -1)
    exact = torch.linalg.eigvalsh(LowRankCouplings(factors.double(), weights.double()).dense()).abs().amax(-1)
    low = LowRankCouplings(factors, size * weights).norm().double()
    torch.testing.assert_close(low / size, exact, rtol=1e-4, atol=0)


@pytest.mark.parametrize("weighting", ["uniform", "gibbs"])
@pytest.mark.parametrize("proposal", ["uniform", "tilted", "annealed"])
def test_an_empty_batch_of_games(proposal, weighting):
    games = (NormGame(values(0, 4, 3)), TableGame(values(0, 16)), SumGame(values(0, 4, 3), lambda sums: sums.sum(-1)))
    for game in games:
        for index, shape in (("SV", (0, 4)), ("BII", (0, 4, 4))):
            estimate = estimate_values(game, index, 8, weighting=weighting, proposal=proposal)
            assert estimate.values.shape == estimate.trusted.shape == shape
            assert str(estimate) == "Estimate of no values"
            assert exact_values(game, index, weighting).shape == shape
    for preset in ("default", "paper"):
        for couplings in ("dense", "linear", "none"):
            layer = NeuroGameAttention(8, 2, preset=preset, proposal=proposal, weighting=weighting, couplings=couplings)
            for mode in (layer.train(), layer.eval()):
                out = mode(values(0, 5, 8), torch.ones(0, 5, dtype=torch.bool))
                assert out.pooled.shape == (0, 8)
                assert out.attention.shape == out.shapley.shape == (0, 2, 5)
                assert out.couplings.dense().shape == (0, 2, 5, 5)


@pytest.mark.parametrize("solver", ["damped", "anderson", "sequential"])
@pytest.mark.parametrize("backward", ["implicit", "unrolled"])
def test_an_empty_batch_of_spins(solver, backward):
    fields = values(0, 4).requires_grad_()
    ising = Ising(fields, values(0, 4, 4), 0.5)
    solved = mean_field(ising, solver=solver, backward=backward, return_trajectory=True)
    assert solved.magnetization.shape == (0, 4)
    assert solved.converged.shape == solved.steps.shape == (0,)
    assert torch.autograd.grad(solved.magnetization.sum(), fields)[0].shape == (0, 4)
    assert exact_magnetization(ising).shape == (0, 4)
    assert log_partition(ising).shape == (0,)
    assert glauber(ising, 2, chains=3, burn_in=1).shape == (0, 3, 2, 4)
    assert ising.energy(values(0, 4)).shape == (0,)
    assert Ising(values(2, 4), torch.zeros(2, 4, 4), 1.0).energy(values(2, 0, 4)).shape == (2, 0)
    assert AttractorAttention(4, 3).retrieve(values(0, 4, 3), 2).shape == (0, 4, 3)


GAME, ISING = NormGame(values(2, 4, 3)), Ising(values(2, 4), torch.zeros(2, 4, 4), 1.0)
WRONG = [
    (lambda: estimate_values(GAME, "SV", 8, temperature=torch.ones(3)), r"temperature .* \(2,\); got \(3,\)"),
    (lambda: exact_values(GAME, "SV", "gibbs", torch.ones(3)), r"temperature .* \(2,\); got \(3,\)"),
    (lambda: NormGame(values(2, 4, 3), scale=torch.ones(3)), r"scale .* \(2,\); got \(3,\)"),
    (lambda: NormGame(values(2, 0, 3)), r"at least one player .* got \(2, 0, 3\)"),
    (lambda: SumGame(values(2, 0, 3), lambda sums: sums), r"at least one player .* got \(2, 0, 3\)"),
    (lambda: Ising(values(2, 0), values(2, 0, 0), 1.0), r"at least one spin.* got \(2, 0\)"),
    (lambda: ISING.effective_field(values(2, 5)), r"m must have shape \(2, 4\); got \(2, 5\)"),
    (lambda: ISING.update(values(3, 4)), r"m must have shape \(2, 4\); got \(3, 4\)"),
    (lambda: DenseCouplings(values(2, 4, 5)), r"\(B, n, n\); got \(2, 4, 5\)"),
    (lambda: DenseCouplings(torch.zeros(2, 4, 4)).matvec(values(2, 5)), r"m must have shape \(2, 4\); got \(2, 5\)"),
    (lambda: LowRankCouplings(values(2, 4, 3), values(2, 2)), r"weights must have shape \(2, 3\); got \(2, 2\)"),
    (lambda: AttractorAttention(4, 3).coupling_gradient(values(0, 4, 3)), "at least one sample"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_lengths(number):
    call, message = WRONG[number]
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_mask_that_is_no_tensor():
    with pytest.raises(TypeError, match=r"mask must be a torch\.Tensor; got list"):
        NormGame(values(2, 4, 3), [[1, 1, 1, 1]])


@pytest.mark.parametrize("solver", ["damped", "anderson", "sequential"])
def test_unrolled_gradient_of_a_sample_that_starts_at_its_fixed_point(solver):
    """One step is taken: its gradient is that of damping tanh(h / T) at h = 0, and of the whole step where
    sequential; the other sample's is as it was."""
    fields = torch.tensor([[0.0, 0.0, 0.0], [0.3, -0.2, 0.4]], dtype=torch.float64, requires_grad=True)
    couplings = torch.zeros(2, 3, 3, dtype=torch.float64)
    solved = mean_field(Ising(fields, couplings, 0.5), backward="unrolled", solver=solver, max_steps=60, tol=1e-9)
    (gradient,) = torch.autograd.grad(solved.magnetization.sum(), fields)
    step = 1.0 if solver == "sequential" else 0.7
    torch.testing.assert_close(gradient[0], torch.full((3,), step / 0.5, dtype=torch.float64))
    expected = (1 - torch.tanh(fields.detach()[1] / 0.5).square()) / 0.5
    torch.testing.assert_close(gradient[1], expected, rtol=1e-4, atol=1e-6)
    assert solved.converged.all()
    assert int(solved.steps[0]) == 1
