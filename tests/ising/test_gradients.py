"""Gradients of the mean field: finite differences, and the plain form, for samples that converge or do not."""

import importlib

import pytest
import torch

from spinformer.ising import DenseCouplings, Ising, LowRankCouplings, mean_field
from tests.ising.differences import STEPS, relative_errors

solver_module = importlib.import_module("spinformer.ising.mean_field")

ROWS, SPINS = 6, 7
METHODS = [(solver, correction) for solver in ("damped", "anderson") for correction in ("naive", "tap")]
METHODS.append(("sequential", "naive"))
CONVERGED = torch.tensor([True, False] * (ROWS // 2))


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def few_steps(solver, correction="naive", **options):
    """Enough for weak couplings, too few for others."""
    steps = 3 if solver == "sequential" else 6
    return {"solver": solver, "correction": correction, "max_steps": steps, "damping": 0.95, "tol": 1e-5, **options}


class System:
    """Every other sample weakly coupled, so that a few steps converge; the others far too strongly for that."""

    def __init__(self, kind="dense", masked=True):
        strength = torch.where(CONVERGED, 0.003, 0.5).double()
        self.parts = [normal(ROWS, SPINS, SPINS) * strength[:, None, None]]
        if kind == "low rank":
            self.parts = [normal(ROWS, SPINS, 3), normal(ROWS, 3) * strength[:, None]]
        self.fields, self.init = 0.5 * normal(ROWS, SPINS), 0.1 * normal(ROWS, SPINS)
        self.temperature = 0.8 + 0.1 * normal(ROWS).abs()
        self.mask = torch.arange(SPINS) < SPINS - torch.arange(ROWS)[:, None] % 3 if masked else None
        self.weights = normal(ROWS, SPINS)
        self.leaves = [leaf.requires_grad_() for leaf in (self.fields, self.temperature, self.init, *self.parts)]

    def ising(self):
        matrix = self.parts[0]
        couplings = LowRankCouplings(*self.parts) if len(self.parts) == 2 else DenseCouplings((matrix + matrix.mT) / 2)
        return Ising(self.fields, couplings, self.temperature, self.mask)

    def solve(self, **options):
        return mean_field(self.ising(), init=self.init, **options)

    def losses(self, **options):
        return (self.solve(**options).magnetization * self.weights).sum(-1)

    def gradients(self, magnetization):
        return torch.autograd.grad(
            (magnetization * self.weights).sum(), self.leaves, retain_graph=True, materialize_grads=True
        )


@pytest.mark.parametrize("kind", ["dense", "low rank"])
@pytest.mark.parametrize(("solver", "correction"), METHODS)
@pytest.mark.parametrize("backward", ["implicit", "unrolled"])
def test_finite_differences(solver, correction, kind, backward):
    """Each sample to 1%, in a batch of which every other one converges."""
    system, options = System(kind), few_steps(solver, correction, backward=backward)
    assert torch.equal(system.solve(**options).converged, CONVERGED)
    for step in STEPS:
        errors = relative_errors(lambda: system.losses(**options), system.leaves, step)
        assert float(errors.max()) < 0.01
        assert float(errors[~CONVERGED].max()) < 1e-3  # nothing but the differences' own error


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["dense", "low rank"])
@pytest.mark.parametrize(("solver", "correction"), METHODS)
def test_steps_taken_again_are_those_of_the_plain_form(solver, correction, kind, masked):
    """The plain form keeps the graph of all steps of all samples, as under torch.compile."""
    system, options = System(kind, masked), few_steps(solver, correction)
    fast, unrolled = system.solve(**options), system.solve(backward="unrolled", **options)
    m = unrolled.magnetization
    plain = solver_module.attach(system.ising(), m.detach(), m, unrolled.converged, correction)
    assert torch.equal(fast.magnetization, plain)
    assert torch.equal(fast.magnetization, m)
    for name in ("residual", "converged", "steps"):
        assert torch.equal(getattr(fast, name), getattr(unrolled, name))
    wanted, through_steps = system.gradients(plain), system.gradients(m)
    for one, other, exact in zip(system.gradients(fast.magnetization), wanted, through_steps, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(one[~CONVERGED], exact[~CONVERGED], rtol=1e-9, atol=1e-12)


def test_only_samples_that_need_it_take_their_steps_again(monkeypatch):
    taken = []
    again = solver_module.through_plain_steps
    monkeypatch.setattr(
        solver_module, "through_plain_steps", lambda tensors, *rest: taken.append(tensors) or again(tensors, *rest)
    )
    system = System()
    losses = system.losses(**few_steps("anderson"))
    torch.autograd.grad(losses[CONVERGED].sum(), system.leaves, retain_graph=True, materialize_grads=True)
    assert not taken
    torch.autograd.grad(losses.sum(), system.leaves, retain_graph=True)
    torch.autograd.grad(losses[3], system.leaves)
    assert [tensors[1].tolist() for tensors in taken] == [
        system.ising().fields[rows].tolist() for rows in (~CONVERGED, [3])
    ]


def test_saved_tensors_do_not_grow_with_the_steps_of_unconverged_samples():
    sizes = {}
    for steps in (5, 50):
        system, saved = System(), []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t.nbytes) or t, lambda t: t):
            solved = system.solve(max_steps=steps, damping=0.01)  # so that no step goes far
        assert not solved.converged.any()
        sizes[steps] = sum(saved)
    assert sizes[5] == sizes[50]


@pytest.mark.parametrize("kind", ["dense", "low rank"])
def test_finite_differences_at_saddles(kind):
    """Beyond the critical strength Anderson's extrapolation also ends at saddles of the free energy."""
    rows = 12
    fields = (0.3 * normal(rows, SPINS)).requires_grad_()
    matrix = 0.5 * normal(rows, SPINS, SPINS)
    parts = [(matrix + matrix.mT) / 2]
    if kind == "low rank":
        values, vectors = torch.linalg.eigh(DenseCouplings(parts[0]).dense())
        parts = [vectors, values]
    couplings = LowRankCouplings(*parts) if kind == "low rank" else DenseCouplings(*parts)
    weights = normal(rows, SPINS)

    def solve(init=None):
        return mean_field(Ising(fields, couplings, 0.7), max_steps=300, tol=1e-12, solver="anderson", init=init)

    solved = solve()
    point = solved.magnetization.detach()
    root = (1 - point.square()).sqrt()
    matrix = torch.eye(SPINS) - root[:, :, None] * couplings.dense() * root[:, None] / 0.7
    saddles = solved.converged & (torch.linalg.eigvalsh(matrix)[:, 0] < -0.05)
    assert int(saddles.sum()) >= 2  # where a path ends depends on the version of torch
    # From the point itself, so that both sides of a difference end at the same saddle.
    errors = relative_errors(lambda: (solve(point).magnetization * weights)[saddles].sum(-1), [fields], 1e-6)
    assert float(errors.max()) < 0.01


def test_a_fixed_point_at_the_start_has_its_gradient():
    """m = 0 without fields: dm/dh = (I - J / T)^-1 / T, at a saddle as elsewhere, though no step is taken."""
    fields = torch.zeros(2, SPINS, dtype=torch.float64, requires_grad=True)
    matrix = torch.stack([torch.full((SPINS, SPINS), strength).double() for strength in (0.05, 1.0)])
    ising = Ising(fields, matrix, 0.7)
    solved = mean_field(ising)
    assert solved.steps.tolist() == [0, 0]
    weights = normal(2, SPINS)
    (gradient,) = torch.autograd.grad((solved.magnetization * weights).sum(), fields)
    system = 0.7 * torch.eye(SPINS).double() - ising.couplings.dense()
    torch.testing.assert_close(gradient, torch.linalg.solve(system, weights))


def test_autocast_does_not_reach_the_backward_pass():
    fields = torch.randn(2, SPINS, requires_grad=True)
    matrix = torch.randn(2, SPINS, SPINS) * torch.tensor([0.01, 0.3])[:, None, None]
    slopes = []
    for enabled in (False, True):
        solved = mean_field(Ising(fields, matrix + matrix.mT, 0.8), max_steps=4, damping=1.0)
        assert solved.converged.tolist() == [True, False]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            slopes.append(torch.autograd.grad(solved.magnetization.square().sum(), fields)[0])
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-6)


def test_second_derivatives_are_for_the_unrolled_form():
    system = System()
    for backward in ("unrolled", "implicit"):
        loss = system.solve(backward=backward, **few_steps("damped")).magnetization.square().sum()
        (slope,) = torch.autograd.grad(loss, system.fields, create_graph=True)
        if backward == "unrolled":
            assert torch.isfinite(torch.autograd.grad(slope.sum(), system.fields)[0]).all()
        else:
            with pytest.raises(RuntimeError, match="once_differentiable"):
                slope.sum().backward()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["damped", "anderson"])
def test_compiles_to_the_same_gradients(solver):
    system, options = System(), few_steps(solver)

    def solve(fields, temperature, init, matrix):
        ising = Ising(fields, DenseCouplings((matrix + matrix.mT) / 2), temperature, system.mask, trusted=True)
        return mean_field(ising, init=init, **options).magnetization

    compiled = torch.compile(solve, backend="aot_eager", fullgraph=True)
    eager, other = (system.gradients(function(*system.leaves)) for function in (solve, compiled))
    for one, another in zip(eager, other, strict=True):
        torch.testing.assert_close(one, another, rtol=1e-3, atol=1e-5)  # fewer iterations for converged samples


@pytest.mark.parametrize("wanted", ["factors", "weights", "magnetization"])
def test_a_gradient_alone_is_the_same(wanted):
    """Of y = U w (U' m) - d m, where one of U, w and m needs a gradient."""
    generator = torch.Generator().manual_seed(0)
    shapes = {"factors": (2, 5, 3), "weights": (2, 3), "magnetization": (2, 5, 1)}
    gradients = []
    for dense in (False, True):
        generator.manual_seed(0)
        parts = {name: torch.randn(shape, generator=generator, dtype=torch.double) for name, shape in shapes.items()}
        parts[wanted].requires_grad_()
        couplings = LowRankCouplings(parts["factors"], parts["weights"])
        m = parts["magnetization"]
        product = couplings.dense() @ m if dense else couplings.product(m)
        gradients.append(torch.autograd.grad(product.square().sum(), parts[wanted])[0])
    torch.testing.assert_close(*gradients)
