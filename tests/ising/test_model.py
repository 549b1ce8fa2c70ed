"""Ising models: energies, exact sums, couplings in both forms, the sampler."""

import itertools
import math

import pytest
import torch

from spinformer.ising import (
    DenseCouplings,
    Ising,
    LowRankCouplings,
    exact_magnetization,
    free_energy,
    glauber,
    log_partition,
    mean_field,
)


def system(batch=2, spins=5, dtype=torch.float64, strength=0.3):
    fields = torch.randn(batch, spins, dtype=dtype) * 0.5
    matrix = torch.randn(batch, spins, spins, dtype=dtype) * strength
    return fields, (matrix + matrix.mT) / 2


def test_energy_is_the_hamiltonian():
    fields, matrix = system()
    ising = Ising(fields, matrix, 1.0)
    for state in itertools.product((-1.0, 1.0), repeat=5):
        s = torch.tensor(state).double()
        expected = [
            -sum(fields[b, i] * s[i] for i in range(5))
            - sum(matrix[b, i, j] * s[i] * s[j] for i in range(4) for j in range(i + 1, 5))
            for b in range(2)
        ]
        torch.testing.assert_close(ising.energy(s.expand(2, 5)), torch.stack(expected))
    states = torch.randn(2, 7, 5).sign().double()
    torch.testing.assert_close(ising.energy(states)[:, 3], ising.energy(states[:, 3]))


def test_effective_field_is_minus_the_energy_gradient():
    fields, matrix = system()
    m = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    ising = Ising(fields, matrix, 1.0)
    (gradient,) = torch.autograd.grad(ising.energy(m).sum(), m)
    torch.testing.assert_close(ising.effective_field(m), -gradient)


def test_exact_sums_equal_loops():
    fields, matrix = system(spins=4)
    temperature = torch.tensor([0.5, 2.0]).double()
    ising = Ising(fields, matrix, temperature)
    states = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=4))).double()
    weights = torch.stack([torch.exp(-ising.energy(s.expand(2, 4)) / temperature) for s in states], -1)
    torch.testing.assert_close(log_partition(ising), weights.sum(-1).log())
    torch.testing.assert_close(free_energy(ising), -temperature * weights.sum(-1).log())
    torch.testing.assert_close(exact_magnetization(ising), weights @ states / weights.sum(-1, keepdim=True))


def test_exact_sums_leave_padding_out():
    fields, matrix = system(spins=6)
    mask = torch.tensor([[True] * 4 + [False] * 2, [True, False, True, True, True, True]])
    padded = Ising(fields, matrix, 0.7, mask)
    for row in range(2):
        keep = mask[row]
        alone = Ising(fields[row : row + 1, keep], matrix[row : row + 1, keep][:, :, keep], 0.7)
        torch.testing.assert_close(log_partition(padded)[row], log_partition(alone)[0])
        torch.testing.assert_close(exact_magnetization(padded)[row, keep], exact_magnetization(alone)[0])
        assert float(exact_magnetization(padded)[row, ~keep].abs().max()) == 0


def test_magnetization_is_the_field_derivative_of_the_free_energy():
    fields, matrix = system()
    fields.requires_grad_()
    (gradient,) = torch.autograd.grad(free_energy(Ising(fields, matrix, 0.6)).sum(), fields)
    torch.testing.assert_close(exact_magnetization(Ising(fields.detach(), matrix, 0.6)), -gradient)


def test_mean_field_bounds_the_free_energy_and_tap_is_closer():
    fields, matrix = system(batch=16, spins=10, strength=0.12)
    ising = Ising(fields, matrix, 0.5)
    exact = exact_magnetization(ising)
    errors = {}
    for correction in ("naive", "tap"):
        solved = mean_field(ising, max_steps=500, tol=1e-10, correction=correction)
        assert solved.converged.all()
        errors[correction] = float((solved.magnetization - exact).abs().mean())
        if correction == "naive":
            assert (ising.mean_field_free_energy(solved.magnetization) >= free_energy(ising) - 1e-9).all()
    assert errors["tap"] < errors["naive"] / 2


def test_glauber_samples_the_gibbs_distribution(generator):
    """Means over 200 chains within 5 standard errors of the exact magnetisation (chains are independent)."""
    fields, matrix = system(spins=6)
    mask = torch.tensor([[True] * 6, [True] * 5 + [False]])
    ising = Ising(fields, matrix, 0.8, mask)
    spins = glauber(ising, 50, chains=200, burn_in=50, generator=generator)
    assert spins.shape == (2, 200, 50, 6)
    assert set(spins.unique().tolist()) == {-1.0, 0.0, 1.0}
    means = spins.mean(2)  # (2, 200, 6)
    error = means.std(1) / math.sqrt(200)
    assert ((means.mean(1) - exact_magnetization(ising)).abs() <= 5 * error + 1e-12).all()


def test_glauber_begins_with_random_spins(generator):
    """Without fields up and down are alike, from the first sweep on: within 4 standard errors over 4,000 chains."""
    matrix = 0.5 * torch.ones(1, 2, 2)
    spins = glauber(Ising(torch.zeros(1, 2), matrix, 1.0), 1, chains=4000, burn_in=0, generator=generator)
    assert (spins.mean(1).abs() < 4 / math.sqrt(4000)).all()
    assert set(spins.unique().tolist()) == {-1.0, 1.0}


class TestCouplings:
    def pair(self):
        factors, weights = torch.randn(2, 7, 3).double(), torch.randn(2, 3).double()
        low = LowRankCouplings(factors, weights)
        return low, DenseCouplings((factors * weights[:, None]) @ factors.mT)

    def test_low_rank_equals_dense(self):
        low, dense = self.pair()
        x = torch.randn(2, 7).double()
        torch.testing.assert_close(low.dense(), dense.dense())
        torch.testing.assert_close(low.matvec(x), dense.matvec(x))
        torch.testing.assert_close(low.matvec(x), (dense.dense() @ x[..., None]).squeeze(-1))
        torch.testing.assert_close(low.squared_matvec(x), dense.squared_matvec(x))
        torch.testing.assert_close(low.squared_matvec(x), (dense.dense() ** 2 @ x[..., None]).squeeze(-1))
        factor = torch.tensor([2.0, -0.5]).double()
        torch.testing.assert_close(low.scaled(factor).dense(), dense.dense() * factor[:, None, None])
        assert float(low.dense().diagonal(dim1=-2, dim2=-1).abs().max()) < 1e-14

    def test_products_of_columns(self):
        """`product`, `add_product` and `between` are what `dense` says they are."""
        base, x, factor = (torch.randn(2, 7, 1).double() for _ in range(3))
        for couplings in self.pair():
            matrix = couplings.dense()
            torch.testing.assert_close(couplings.product(x), matrix @ x)
            torch.testing.assert_close(couplings.add_product(base, x, alpha=-0.5), base - matrix @ x / 2)
            torch.testing.assert_close(couplings.between(factor).dense(), factor * matrix * factor.mT)

    @pytest.mark.parametrize("correction", ["naive", "tap"])
    def test_mapping_is_the_update(self, correction):
        """Prepared for many calls, the map is the same."""
        mask = torch.arange(7) < torch.tensor([[7], [4]])
        m = torch.rand(2, 7).double() * mask
        for couplings in self.pair():
            ising = Ising(torch.randn(2, 7).double(), couplings, torch.tensor([0.5, 2.0]).double(), mask)
            image = ising.mapping(correction)(m[..., None]).squeeze(-1)
            torch.testing.assert_close(image, ising.update(m, correction))

    def test_gradients_of_both_forms(self):
        low, _ = self.pair()
        x = torch.randn(2, 7).double()
        gradients = []
        for form in (LowRankCouplings, lambda u, w: DenseCouplings((u * w[:, None]) @ u.mT)):
            leaves = [tensor.clone().requires_grad_() for tensor in low.tensors()[:2]]
            built = form(*leaves)
            loss = built.matvec(x).sin().sum() + built.squared_matvec(x).cos().sum() + built.norm(steps=7).sum()
            gradients.append(torch.autograd.grad(loss, leaves))
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)

    def test_gradcheck_of_the_low_rank_product(self):
        factors, weights = torch.randn(2, 5, 3).double(), torch.randn(2, 3).double()
        inputs = [tensor.requires_grad_() for tensor in (factors, weights, torch.randn(2, 5).double())]
        assert torch.autograd.gradcheck(lambda u, w, m: LowRankCouplings(u, w).matvec(m), inputs)

    def test_norm_is_the_largest_eigenvalue(self):
        _, matrix = system(batch=6, spins=20)
        couplings = DenseCouplings(matrix)
        exact = torch.linalg.eigvalsh(couplings.dense()).abs().amax(-1)
        torch.testing.assert_close(couplings.norm(steps=20), exact, rtol=1e-6, atol=0)
        assert (couplings.norm() <= exact * (1 + 1e-9)).all()
        assert (couplings.norm() >= 0.9 * exact).all()

    def test_norm_of_nothing(self):
        for size in (1, 2, 5):
            matrix = torch.zeros(2, size, size, requires_grad=True)
            norm = DenseCouplings(matrix).norm()
            assert float(norm.detach().abs().max()) == 0
            assert torch.isfinite(torch.autograd.grad(norm.sum(), matrix)[0]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(2, 3, 1), torch.zeros(2, 3, 3), 1.0), "fields must have 2 dimensions"),
        (
            (torch.zeros(2, 3), torch.zeros(2, 3, 4), 1.0),
            r"couplings must have shape \(2, 3, 3\); got \(2, 3, 4\)",
        ),
        ((torch.zeros(2, 3), torch.zeros(2, 3, 3), 0.0), "temperature must be finite and positive"),
        (
            (torch.zeros(2, 3), torch.zeros(2, 3, 3), torch.ones(3)),
            r"temperature must be a number or have shape \(2,\)",
        ),
        ((torch.full((2, 3), float("nan")), torch.zeros(2, 3, 3), 1.0), "fields must be finite"),
        ((torch.zeros(2, 3), torch.randn(2, 3, 3), 1.0), "couplings must be symmetric"),
        (
            (torch.zeros(2, 3), LowRankCouplings(torch.zeros(2, 4, 1), torch.zeros(2, 1)), 1.0),
            "2 systems of 3 spins",
        ),
        ((torch.zeros(2, 3), torch.zeros(2, 3, 3), 1.0, torch.zeros(2, 3).bool()), "no token at all"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        Ising(*arguments)


def test_too_many_spins():
    with pytest.raises(ValueError, match="at most 20 spins; got 21"):
        exact_magnetization(Ising(torch.zeros(1, 21), torch.zeros(1, 21, 21), 1.0))
