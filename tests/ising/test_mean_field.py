"""The mean-field solver: fixed points, convergence reports, batch independence, both backward passes."""

import pytest
import torch

from research.benchmarks import example, gradients
from spinformer._base import stopping
from spinformer.attention import algorithm1
from spinformer.attention.worked_example import worked_example
from spinformer.ising import DenseCouplings, Ising, LowRankCouplings, mean_field

SOLVERS = ("damped", "anderson", "sequential")


def system(batch=4, spins=12, strength=0.2, dtype=torch.float64):
    fields = torch.randn(batch, spins, dtype=dtype) * 0.5
    matrix = torch.randn(batch, spins, spins, dtype=dtype) * strength
    return fields, (matrix + matrix.mT) / 2


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_find_the_fixed_point(solver):
    fields, matrix = system(strength=0.1)
    ising = Ising(fields, matrix, 0.7)
    solved = mean_field(ising, max_steps=300, tol=1e-11, solver=solver)
    assert solved.converged.all()
    torch.testing.assert_close(solved.magnetization, ising.update(solved.magnetization), rtol=0, atol=1e-10)
    reference = mean_field(ising, max_steps=300, tol=1e-12).magnetization
    torch.testing.assert_close(solved.magnetization, reference, rtol=0, atol=1e-9)


def test_anderson_takes_fewer_steps():
    fields, matrix = system(batch=16, strength=0.15)
    ising = Ising(fields, matrix, 0.5)
    plain, fast = (mean_field(ising, max_steps=300, tol=1e-8, solver=solver) for solver in ("damped", "anderson"))
    assert plain.converged.all()
    assert fast.converged.all()
    assert float(fast.steps.double().mean()) < float(plain.steps.double().mean()) / 1.5


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("low_rank", [False, True])
def test_rare_checks_change_nothing(solver, low_rank, monkeypatch):
    calls = []
    any_left = torch.Tensor.any
    monkeypatch.setattr(torch.Tensor, "any", lambda self: calls.append(len(calls)) or any_left(self))

    def solve(every):
        monkeypatch.setitem(stopping.CHECK_EVERY, "cpu", every)
        calls.clear()
        torch.manual_seed(0)
        fields, matrix = system(batch=6, strength=0.1)
        fields *= torch.linspace(0.0, 2.0, 6)[:, None]  # one that is done before it begins, others that take longer
        factors, weights = torch.randn(6, 12, 4).double() * 0.2, torch.randn(6, 4).double()
        leaves = [one.requires_grad_() for one in ((fields, factors, weights) if low_rank else (fields, matrix))]
        couplings = LowRankCouplings(*leaves[1:]) if low_rank else DenseCouplings(leaves[1])
        solved = mean_field(Ising(leaves[0], couplings, 0.7), max_steps=200, tol=1e-6, solver=solver)
        forward = len(calls)
        slopes = torch.autograd.grad(solved.magnetization.square().sum(), leaves)
        return solved, slopes, (forward, len(calls) - forward)

    (frequent, gradients_1, checks_1), (rare, gradients_4, checks_4) = solve(1), solve(4)
    assert frequent.converged.all()
    assert len(set(frequent.steps.tolist())) > 1
    assert torch.equal(frequent.magnetization, rare.magnetization)
    assert torch.equal(frequent.residual, rare.residual)
    assert torch.equal(frequent.steps, rare.steps)
    for one, other in zip(gradients_1, gradients_4, strict=True):
        assert torch.equal(one, other)
    for backward, (before, after) in enumerate(zip(checks_1, checks_4, strict=True)):
        rarely_checked = solver != "sequential" or backward  # a sweep of all spins costs more than a check
        assert after <= (before // 4 + 1 if rarely_checked else before)


def test_a_trajectory_ends_with_its_last_step_wherever_it_is_computed(monkeypatch):
    fields, matrix = system(strength=0.05)
    arguments = {"max_steps": 40, "tol": 1e-6, "return_trajectory": True}
    usual = mean_field(Ising(fields, matrix, 0.7), **arguments)
    monkeypatch.setitem(stopping.CHECK_EVERY, "cpu", 4)
    again = mean_field(Ising(fields, matrix, 0.7), **arguments)
    assert usual.trajectory.shape[1] == int(usual.steps.max()) + 1 < 41
    assert torch.equal(usual.trajectory, again.trajectory)


def test_undamped_steps_are_algorithm_1():
    fields, matrix = system(batch=1, spins=5)
    loops = algorithm1.mean_field(fields[0], matrix[0], 0.7, 4, 0.0)
    solved = mean_field(Ising(fields, matrix, 0.7), max_steps=4, damping=1.0, tol=1e-30)
    torch.testing.assert_close(solved.magnetization[0], loops)


def test_damping_is_the_share_of_the_new_value():
    fields, matrix = system(batch=1)
    ising = Ising(fields, matrix, 0.7)
    one = mean_field(ising, max_steps=1, damping=0.7, init=torch.full_like(fields, 0.2)).magnetization
    torch.testing.assert_close(one, 0.7 * ising.update(torch.full_like(fields, 0.2)) + 0.3 * 0.2)


def test_report_is_of_the_undamped_map_of_what_is_returned():
    fields, matrix = system(strength=0.6)
    ising = Ising(fields, matrix, 0.3)
    solved = mean_field(ising, max_steps=6, tol=1e-6)
    residual = (ising.update(solved.magnetization) - solved.magnetization).abs().amax(-1)
    torch.testing.assert_close(solved.residual, residual)
    assert torch.equal(solved.converged, residual <= 1e-6)
    assert (solved.steps <= 6).all()


@pytest.mark.parametrize("solver", ["damped", "anderson"])
@pytest.mark.parametrize("correction", ["naive", "tap"])
def test_a_sample_does_not_depend_on_its_batch(solver, correction):
    fields, matrix = system(batch=8, strength=0.3)
    fields[3] *= 10
    arguments = {"tol": 1e-7, "max_steps": 60, "solver": solver, "correction": correction}
    together = mean_field(Ising(fields, matrix, 0.5), **arguments)
    for row in range(8):
        alone = mean_field(Ising(fields[row : row + 1], matrix[row : row + 1], 0.5), **arguments)
        torch.testing.assert_close(alone.magnetization[0], together.magnetization[row], rtol=0, atol=1e-9)
        assert int(alone.steps) == int(together.steps[row])


def test_padding_has_no_spin():
    fields, matrix = system(spins=7)
    mask = torch.arange(7).expand(4, 7) < 5
    padded = mean_field(Ising(fields, matrix, 0.5, mask), tol=1e-10, max_steps=200).magnetization
    alone = mean_field(Ising(fields[:, :5], matrix[:, :5, :5], 0.5), tol=1e-10, max_steps=200).magnetization
    torch.testing.assert_close(padded[:, :5], alone)
    assert float(padded[:, 5:].abs().max()) == 0


class TestAntagonisticCouplings:
    """All spins against all others, far beyond the strength at which parallel updates oscillate."""

    def ising(self, strength):
        fields = 0.1 * torch.randn(3, 30, dtype=torch.float64)
        return Ising(fields, torch.full((3, 30, 30), -strength / 30, dtype=torch.float64), 0.25)

    def test_parallel_updates_oscillate_and_report_it(self):
        solved = mean_field(self.ising(5.0), max_steps=200)
        assert not solved.converged.any()
        assert float(solved.residual.min()) > 0.1

    @pytest.mark.parametrize("strength", [1.0, 20.0, 50.0])
    def test_sequential_updates_converge(self, strength):
        solved = mean_field(self.ising(strength), max_steps=200, solver="sequential")
        assert solved.converged.all()

    def test_anderson_converges_or_reports_it(self):
        for strength in (1.0, 5.0, 20.0, 50.0):
            ising = self.ising(strength)
            solved = mean_field(ising, max_steps=100, solver="anderson")
            residual = (ising.update(solved.magnetization) - solved.magnetization).abs().amax(-1)
            assert torch.equal(solved.converged, residual <= 1e-4)
            if strength <= 5:
                assert solved.converged.all()


class TestBackward:
    def couplings(self, kind):
        if kind == "dense":
            return [0.2 * torch.randn(2, 4, 4, dtype=torch.float64)]
        return [0.3 * torch.randn(2, 4, 2, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)]

    def build(self, kind, parts):
        return DenseCouplings((parts[0] + parts[0].mT) / 2) if kind == "dense" else LowRankCouplings(*parts)

    @pytest.mark.parametrize("kind", ["dense", "low rank"])
    @pytest.mark.parametrize("correction", ["naive", "tap"])
    @pytest.mark.parametrize("masked", [False, True])
    def test_gradcheck(self, kind, correction, masked):
        mask = torch.tensor([[True] * 4, [True] * 3 + [False]]) if masked else None

        def solve(fields, temperature, *parts):
            ising = Ising(fields, self.build(kind, parts), temperature, mask)
            solved = mean_field(ising, max_steps=500, tol=1e-14, correction=correction)
            return solved.magnetization

        inputs = [
            0.5 * torch.randn(2, 4, dtype=torch.float64),
            torch.tensor([0.8, 1.1]).double(),
            *self.couplings(kind),
        ]
        assert torch.autograd.gradcheck(solve, [tensor.requires_grad_() for tensor in inputs], atol=1e-7)

    def test_implicit_equals_unrolled_at_convergence(self):
        for kind in ("dense", "low rank"):
            for correction in ("naive", "tap"):
                assert gradients._difference(kind, correction, seed=3) < 1e-4

    @pytest.mark.slow
    def test_memory_does_not_grow_with_the_steps(self, monkeypatch):
        """In this process: what is judged is counted, and not the peak of a process."""
        monkeypatch.setattr(gradients, "STEPS", (5, 20))
        monkeypatch.setattr(gradients, "run_alone", lambda call: eval(call.partition(":")[2], vars(gradients)))
        outcome = gradients.run()
        assert outcome["growth"]["implicit"] == 0
        assert outcome["growth"]["unrolled"] > 1

    def test_saved_tensors_do_not_grow_with_the_steps(self):
        counts = {}
        for steps in (5, 50):
            fields = torch.randn(1, 8, requires_grad=True)
            saved = []
            with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(1) or t, lambda t: t):
                mean_field(Ising(fields, torch.zeros(1, 8, 8), 1.0), max_steps=steps, tol=1e-30)
            counts[steps] = len(saved)
        assert counts[5] == counts[50]

    def test_unknown_couplings_are_named(self):
        class Mine(DenseCouplings):
            pass

        ising = Ising(torch.zeros(1, 3, requires_grad=True), Mine(torch.zeros(1, 3, 3)), 1.0)
        with pytest.raises(TypeError, match="got Mine; use backward='unrolled'"):
            mean_field(ising)
        assert mean_field(ising, backward="unrolled").converged.all()


@pytest.mark.slow
def test_compiles_to_the_same_numbers():
    fields, matrix = system(dtype=torch.float32)

    def solve(fields, matrix):
        return mean_field(Ising(fields, DenseCouplings(matrix), 0.7), max_steps=15).magnetization

    compiled = torch.compile(solve, backend="aot_eager")
    torch.testing.assert_close(compiled(fields, matrix), solve(fields, matrix), rtol=0, atol=1e-5)


def test_trajectory():
    fields, matrix = system()
    solved = mean_field(Ising(fields, matrix, 0.7), max_steps=5, tol=1e-30, return_trajectory=True)
    assert solved.trajectory.shape == (4, 6, 12)
    torch.testing.assert_close(solved.trajectory[:, -1], solved.magnetization)
    assert float(solved.trajectory[:, 0].abs().max()) == 0
    assert solved.residuals.shape == (4, 6)
    assert torch.equal(solved.residuals[:, -1], solved.residual)
    bare = mean_field(Ising(fields, matrix, 0.7), max_steps=5, tol=1e-30)
    assert bare.trajectory is None
    assert bare.residuals is None


@pytest.mark.parametrize("requires_grad", [False, True])
def test_trajectory_and_residuals_are_those_of_the_iteration(requires_grad):
    """Fields and couplings well below the critical strength: one fixed point, reached to 1e-4 by every solver."""
    fields = torch.randn(5, 12)
    couplings = 0.1 * torch.randn(5, 12, 12)
    ising = Ising(fields.requires_grad_(requires_grad), couplings + couplings.mT, 1.5)
    solved = mean_field(ising, max_steps=200, tol=1e-6, return_trajectory=True)
    m = torch.zeros_like(fields)
    states, residuals = [], []
    for _ in range(solved.trajectory.shape[1]):
        target = ising.update(m).detach()
        states.append(m)
        residuals.append((target - m).abs().amax(-1))
        m = 0.7 * target + 0.3 * m
    torch.testing.assert_close(solved.trajectory, torch.stack(states, 1), atol=2e-6, rtol=0)
    torch.testing.assert_close(solved.residuals, torch.stack(residuals, 1), atol=2e-6, rtol=0)
    assert float(solved.residuals[:, -1].max()) <= 1e-6
    for solver in SOLVERS:
        other = mean_field(ising, max_steps=200, tol=1e-6, solver=solver)
        torch.testing.assert_close(solved.trajectory[:, -1], other.magnetization, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"damping": 0.0}, r"damping must be in \(0, 1\]"),
        ({"max_steps": 0}, "max_steps must be an integer of at least 1"),
        ({"tol": 0.0}, "tol must be finite and positive"),
        ({"correction": "exact"}, "correction must be one of 'naive', 'tap'; got 'exact'"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"solver": "sequential", "correction": "tap"}, "sequential solver is for the naive equations"),
        ({"init": torch.zeros(3)}, "init must have 2 dimensions"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        mean_field(Ising(torch.zeros(1, 3), torch.zeros(1, 3, 3), 1.0), **changes)


@pytest.mark.parametrize("solver", SOLVERS)
def test_padding_acts_on_no_one(solver):
    """Whatever stands in the couplings to it, and wherever it stands."""
    draw = torch.Generator().manual_seed(3)
    fields, pairs = torch.randn(1, 4, generator=draw), torch.randn(1, 4, 4, generator=draw)
    pairs = (pairs + pairs.mT) / 8
    mask = torch.tensor([[False, True, False, True]])
    padded = mean_field(Ising(fields, pairs, 1.0, mask), solver=solver, max_steps=200).magnetization[mask]
    alone = Ising(fields[mask][None], pairs[:, [1, 3]][:, :, [1, 3]], 1.0)
    torch.testing.assert_close(padded[None], mean_field(alone, solver=solver, max_steps=200).magnetization)


def test_states_and_couplings_that_are_none():
    ising = Ising(torch.zeros(1, 2, dtype=torch.float64), torch.eye(2)[None], 1.0)  # of another type
    assert ising.update(torch.zeros(1, 2)).dtype == torch.float64
    nan = torch.full((1, 2), torch.nan)
    for call in (ising.energy, ising.update, ising.reaction, ising.mean_field_free_energy):
        with pytest.raises(ValueError, match="must be finite; 2 of 2 elements are NaN"):
            call(nan)
    with pytest.raises(ValueError, match="init must be finite"):
        mean_field(ising, init=nan)
    with pytest.raises(ValueError, match=r"m must lie within \[-1, 1\]; got numbers up to 1.5 in size"):
        ising.mean_field_free_energy(torch.full((1, 2), 1.5))
    with pytest.raises(ValueError, match="couplings must be symmetric"):
        DenseCouplings(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]))
    with pytest.raises(ValueError, match="factors must be finite"):
        LowRankCouplings(nan[None], torch.ones(1, 2))
    with pytest.raises(TypeError, match="ising must be of class Ising; got str"):
        mean_field("rubbish")


class TestWorkedExample:
    def test_figures_that_follow_from_the_equations(self):
        verdicts = {figure.name: figure.agrees for figure in worked_example()}
        wrong = {name for name, agrees in verdicts.items() if agrees is False}
        assert wrong == {
            "interactions of t1 and t2",
            "J_12",
            "spins at the fixed point",
            "attention at the fixed point",
        }

    def test_fixed_point_and_marginals(self):
        assert example.run()["passed"]


def test_when_a_device_is_checked(monkeypatch):
    done, left = torch.zeros(2, 1, 1).bool(), torch.ones(2, 1, 1).bool()
    assert [stopping.all_done(done, step) for step in range(3)] == [True] * 3  # on the CPU always
    assert [stopping.all_done(done, step, every=3) for step in range(6)] == [False, False, True] * 2
    assert not any(stopping.all_done(left, step) for step in range(8))
    monkeypatch.delitem(stopping.CHECK_EVERY, "cpu")
    assert [stopping.all_done(done, step) for step in range(8)] == (
        [False] * (stopping.CHECK_EVERY_DEFAULT - 1) + [True]
    ) * 2


def test_nothing_is_checked_while_compiling(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not any(stopping.all_done(torch.zeros(2, 1, 1).bool(), step) for step in range(8))
