"""Laws of Ising models: exact sums, mean fields, couplings, gradients, and the sampler."""

import itertools
import math

import pytest
import torch
from hypothesis import strategies as st

from spinformer.ising import (
    MAX_SPINS,
    Couplings,
    DenseCouplings,
    Ising,
    LowRankCouplings,
    MeanField,
    exact_magnetization,
    free_energy,
    glauber,
    log_partition,
    mean_field,
)
from tests.properties.cases import assert_near, generator, law, masks, numbers, seeds

sizes = st.integers(1, 5)
strengths = st.floats(0.01, 2)
solvers = st.sampled_from(["damped", "anderson", "sequential"])
corrections = st.sampled_from(["naive", "tap"])


def matrix(seed: int, batch: int, n: int, strength: float) -> torch.Tensor:
    """Symmetric, with spectral radius of about `strength`."""
    pairs = numbers("normal", seed + 1, batch, n, n)
    return strength * (pairs + pairs.mT) / (4 * n**0.5)


def system(seed: int, n: int, strength: float = 0.5, temperature: float = 1.0, masked: bool = True) -> Ising:
    mask = masks(seed, 2, n) if masked else None
    return Ising(numbers("normal", seed, 2, n), matrix(seed, 2, n, strength), temperature, mask)


def states(ising: Ising) -> torch.Tensor:
    """All configurations, (B, 2**n, n); those of padding twice."""
    spins = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=ising.spins)), dtype=torch.float64)
    return spins.expand(ising.batch, -1, -1)


@law(
    "ising.Ising",
    "ising.log_partition",
    "ising.exact_magnetization",
    "ising.free_energy",
    share=15,
    n=sizes,
    strength=strengths,
    temperature=st.floats(0.2, 3),
    seed=seeds,
)
def test_sums_over_all_states(n, strength, temperature, seed):
    """Energies, partition function and magnetisation by their definitions; padding is not summed over."""
    ising = system(seed, n, strength, temperature)
    spins = states(ising)
    inside = ising.mask.double()[:, None]
    played = spins * inside
    pairs = torch.einsum("bsi,bij,bsj->bs", played, ising.couplings.dense(), played) / 2
    energy = -(played * ising.fields[:, None]).sum(-1) - pairs
    assert_near(ising.energy(spins), energy, 1e-9, size=1)
    weights = -energy / temperature
    twice = math.log(2) * (n - ising.mask.sum(-1)).double()
    assert_near(log_partition(ising), weights.logsumexp(-1) - twice, 1e-9, size=1)
    assert_near(free_energy(ising), -temperature * log_partition(ising), 1e-12)
    expected = (weights.softmax(-1)[..., None] * played).sum(1)
    assert_near(exact_magnetization(ising), expected, 1e-9, size=1)


@law("ising.exact_magnetization", "ising.log_partition", share=10, n=sizes, strength=strengths, seed=seeds)
def test_the_magnetisation_is_the_slope_of_the_partition_function(n, strength, seed):
    fields = numbers("normal", seed, 2, n).requires_grad_()
    ising = Ising(fields, matrix(seed, 2, n, strength), 0.9)
    (slope,) = torch.autograd.grad(log_partition(ising).sum(), fields)
    assert_near(0.9 * slope, exact_magnetization(ising), 1e-9, size=1)


@law(
    "ising.mean_field",
    "ising.MeanField",
    share=20,
    n=sizes,
    strength=strengths,
    temperature=st.floats(0.2, 3),
    solver=solvers,
    correction=corrections,
    damping=st.floats(0.1, 1),
    seed=seeds,
)
def test_fixed_points_satisfy_their_equation(n, strength, temperature, solver, correction, damping, seed):
    """The residual is that of the state; where it says that it converged, the equation holds."""
    correction = "naive" if solver == "sequential" else correction
    ising = system(seed, n, strength, temperature)
    found = mean_field(
        ising, solver=solver, correction=correction, damping=damping, tol=1e-8, max_steps=200, return_trajectory=True
    )
    assert isinstance(found, MeanField)
    m = found.magnetization
    gap = (ising.update(m, correction) - m).abs().amax(-1)
    assert_near(gap, found.residual, 1e-9, size=1)
    assert torch.equal(found.converged, found.residual <= 1e-8)
    assert not m[~ising.mask].any()
    assert bool((m.abs() <= 1).all())
    assert bool((found.steps <= 200).all())
    assert torch.equal(found.trajectory[:, -1], m)
    assert not found.trajectory[:, 0].any()  # the start
    if strength / temperature < 0.5:  # the map is a contraction
        assert bool(found.converged.all())


@law(
    "ising.mean_field",
    "ising.free_energy",
    "ising.Ising",
    share=15,
    n=sizes,
    strength=st.floats(0.01, 6),
    temperature=st.floats(0.1, 3),
    seed=seeds,
)
def test_sequential_steps_never_raise_the_free_energy(n, strength, temperature, seed):
    """And no state's free energy is below the exact one: it is a bound."""
    ising = system(seed, n, strength, temperature)
    path = mean_field(ising, solver="sequential", max_steps=30, return_trajectory=True).trajectory
    energies = torch.stack([ising.mean_field_free_energy(path[:, step]) for step in range(path.shape[1])], 1)
    assert bool((energies.diff(dim=1) <= 1e-9 * (1 + energies[:, 1:].abs())).all())
    assert bool((energies >= free_energy(ising)[:, None] - 1e-9 * (1 + energies.abs())).all())


@law(
    "ising.mean_field",
    "ising.exact_magnetization",
    share=10,
    n=sizes,
    temperature=st.floats(0.05, 5),
    kind=st.sampled_from(["normal", "huge", "tiny", "zeros"]),
    solver=solvers,
    seed=seeds,
)
def test_free_spins_are_exact(n, temperature, kind, solver, seed):
    """Without couplings m = tanh(h / T) for all fields, exactly and by mean field."""
    fields = numbers(kind, seed, 2, n)
    ising = Ising(fields, torch.zeros(2, n, n, dtype=torch.float64), temperature)
    expected = torch.tanh(fields / temperature)
    assert_near(exact_magnetization(ising), expected, 1e-9, size=1e-6)
    assert_near(mean_field(ising, solver=solver, damping=1.0, tol=1e-10).magnetization, expected, 1e-9, size=1)


@law(
    "ising.mean_field",
    "ising.exact_magnetization",
    share=12,
    n=sizes,
    strength=strengths,
    solver=st.sampled_from(["damped", "anderson"]),
    correction=corrections,
    seed=seeds,
)
def test_spins_that_turn_or_trade_places(n, strength, solver, correction, seed):
    """h -> -h turns every spin; spins that trade places trade magnetisations."""
    ising = system(seed, n, strength)
    order = torch.randperm(n, generator=generator(seed))
    turned = Ising(-ising.fields, ising.couplings, 1.0, ising.mask)
    dense = ising.couplings.dense()
    other = Ising(ising.fields[:, order], dense[:, order][:, :, order], 1.0, ising.mask[:, order])
    for solve in (exact_magnetization, lambda one: mean_field(one, solver=solver, correction=correction).magnetization):
        m = solve(ising)
        assert_near(solve(turned), -m, 1e-9, size=1)
        assert_near(solve(other), m[:, order], 1e-9, size=1)


@law(
    "ising.mean_field",
    share=10,
    n=st.integers(1, 4),
    strength=st.floats(0.01, 0.6),
    correction=corrections,
    low=st.booleans(),
    seed=seeds,
)
def test_implicit_gradients_are_those_of_many_steps(n, strength, correction, low, seed):
    """Of a fixed point that both have reached: of fields, temperature and couplings, dense or of low rank."""
    leaves = [numbers("normal", seed, 2, n), torch.tensor([0.9, 1.4], dtype=torch.float64)]
    leaves += (
        [numbers("normal", seed + 2, 2, n, 2) * (strength / 2) ** 0.5, torch.tensor([[0.5, -0.5]] * 2).double()]
        if low
        else [matrix(seed, 2, n, strength)]
    )
    gradients = []
    for backward in ("implicit", "unrolled"):
        fields, temperature, *parts = [leaf.clone().requires_grad_() for leaf in leaves]
        couplings = LowRankCouplings(*parts) if low else DenseCouplings((parts[0] + parts[0].mT) / 2)
        options = {"solver": "damped", "damping": 1.0, "tol": 1e-12, "max_steps": 300, "correction": correction}
        found = mean_field(Ising(fields, couplings, temperature, masks(seed, 2, n)), backward=backward, **options)
        assert bool(found.converged.all())
        loss = (found.magnetization * numbers("normal", seed + 3, 2, n)).sum()
        gradients.append(torch.autograd.grad(loss, [fields, temperature, *parts]))
    for one, other in zip(*gradients, strict=True):
        assert_near(one, other, 1e-6, size=1e-3)


@law(
    "ising.Couplings",
    "ising.DenseCouplings",
    "ising.LowRankCouplings",
    share=12,
    n=st.integers(1, 6),
    rank=st.integers(1, 4),
    kind=st.sampled_from(["normal", "huge", "tiny", "twins", "zeros"]),
    seed=seeds,
)
def test_both_kinds_of_couplings_are_their_matrix(n, rank, kind, seed):
    low = LowRankCouplings(numbers(kind, seed, 2, n, rank), numbers("normal", seed, 2, rank))
    dense = DenseCouplings(low.dense())
    x, factor = numbers("normal", seed + 1, 2, n), torch.tensor([0.5, -3.0], dtype=torch.float64)
    J = dense.dense()
    size = max(float(low.size().max()), 1e-100)
    assert not J.diagonal(dim1=1, dim2=2).any()
    assert_near(J, J.mT, 1e-9)
    assert bool((J.abs() <= low.size()[:, None, None] * (1 + 1e-9)).all())
    for couplings in (low, dense, LowRankCouplings.smaller(low.factors, low.weights)):
        assert isinstance(couplings, Couplings)
        assert_near(couplings.matvec(x) / size, (J @ x[..., None]).squeeze(-1) / size, 1e-9, size=1)
        assert_near(
            couplings.squared_matvec(x) / size**2, (J.square() @ x[..., None]).squeeze(-1) / size**2, 1e-9, size=1
        )
        assert_near(couplings.scaled(factor).dense() / size, factor[:, None, None] * J / size, 1e-9, size=1)
        assert_near(couplings.of(couplings.tensors()).dense() / size, J / size, 1e-9, size=1)
        largest = torch.linalg.eigvalsh(J / size).abs().amax(-1)
        norm = couplings.norm(steps=n + 1) / size
        assert bool((norm <= largest * (1 + 1e-6) + 1e-9).all())
        assert_near(norm, largest, 1e-3, size=1e-6)


@law(
    "ising.glauber",
    share=6,
    n=sizes,
    strength=strengths,
    chains=st.integers(1, 4),
    sweeps=st.integers(1, 3),
    burn_in=st.integers(0, 2),
    seed=seeds,
)
def test_samples_are_spins(n, strength, chains, sweeps, burn_in, seed):
    """+1 or -1, 0 at padding; the same generator gives the same ones; in a strong field all follow it."""
    ising = system(seed, n, strength)
    options = {"chains": chains, "burn_in": burn_in}
    found = glauber(ising, sweeps, **options, generator=generator(seed))
    assert found.shape == (2, chains, sweeps, n)
    assert torch.equal(found.abs(), ising.mask.double()[:, None, None].expand_as(found))
    assert torch.equal(found, glauber(ising, sweeps, **options, generator=generator(seed)))
    strong = Ising(1e6 * ising.fields.sign(), ising.couplings, 1.0, ising.mask)
    assert torch.equal(glauber(strong, sweeps, **options, generator=generator(seed))[:, 0, 0], ising.fields.sign())


@law("ising.MAX_SPINS", "ising.log_partition", share=2, more=st.integers(1, 30))
def test_too_many_spins_are_refused_at_once(more):
    n = MAX_SPINS + more
    ising = Ising(torch.zeros(1, n), torch.zeros(1, n, n), 1.0)
    with pytest.raises(ValueError, match=f"at most {MAX_SPINS} spins; got {n}; use mean_field"):
        log_partition(ising)


@law(
    "ising.Ising",
    "ising.mean_field",
    "ising.exact_magnetization",
    share=8,
    n=sizes,
    one=st.sampled_from([torch.float32, torch.float64]),
    other=st.sampled_from([torch.float32, torch.float64]),
    low=st.booleans(),
    seed=seeds,
)
def test_types_may_differ(n, one, other, low, seed):
    """Of fields, couplings and states: the fields' counts."""
    couplings = (
        LowRankCouplings(numbers("normal", seed, 2, n, 2, dtype=other), torch.ones(2, 2, dtype=one))
        if low
        else matrix(seed, 2, n, 0.5).to(other)
    )
    ising = Ising(numbers("normal", seed, 2, n, dtype=one), couplings, 1.0)
    m = mean_field(ising, init=numbers("normal", seed, 2, n, dtype=other).tanh()).magnetization
    for result in (
        m,
        exact_magnetization(ising),
        ising.energy(m.to(other)),
        ising.update(m.to(other)),
        ising.effective_field(m.to(other)),
    ):
        assert result.dtype == one
        assert bool(torch.isfinite(result).all())
