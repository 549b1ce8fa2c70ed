"""Each operator against its plain twin: values and gradients.

They need a GPU. On a machine without one, Triton's interpreter runs them too: TRITON_INTERPRET=1 with Triton installed.
"""

import pytest
import torch

from spinformer import NeuroGameAttention
from spinformer.games import NormGame, estimate_values, low_rank_from_sums
from spinformer.games.one_pass import estimate_norm_pairs, estimate_norm_values
from spinformer.ising import DenseCouplings, Ising, LowRankCouplings, mean_field
from spinformer.kernels import factors as factored
from spinformer.kernels import pairs, players, spins, support

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
pytestmark = [
    pytest.mark.skipif(
        not (support.HAS_TRITON and (torch.cuda.is_available() or support.INTERPRETED)),
        reason="this machine has no CUDA device",
    ),
    # of the interpreter, about roots that are not used
    pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning"),
]
# Relative to the largest element: sums of float32 numbers in another order.
CLOSE = 5e-5
SMALL = support.INTERPRETED


@pytest.fixture
def fused(monkeypatch):
    """A function that switches the operators on and off."""
    return lambda on: monkeypatch.setattr(support, "HAS_TRITON", on)


def assert_twins(plain, fast, tolerance=CLOSE, least=1e-20):
    """least: the size of numbers that count, where all may cancel."""
    for expected, found in zip(plain, fast, strict=True):
        size = max(float(expected.abs().max()), least)
        assert torch.isfinite(found).all()
        assert float((expected - found).abs().max()) <= tolerance * size


def random_mask(batch, n, generator):
    mask = torch.rand(batch, n, generator=generator) < 0.8
    mask[:, 0] = True
    return mask.to(DEVICE)


@pytest.mark.parametrize(("n", "heads", "dim"), [(5, 1, 8), (33, 2, 24), (128, 12, 96), (130, 2, 24), (700, 1, 32)])
@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("training", [True, False])
def test_layer(fused, preset, training, n, heads, dim):
    if SMALL and n > 33:
        n, heads = 12, min(heads, 2)
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(3, n, dim, generator=generator).to(DEVICE)
    mask = random_mask(3, n, generator)
    torch.manual_seed(0)
    layer = NeuroGameAttention(dim, heads=heads, preset=preset).to(DEVICE).train(training)

    def run(on):
        fused(on)
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        out = layer(leaf, mask, torch.Generator().manual_seed(1) if training else None)
        (out.pooled.square().sum() + out.attention.square().sum() + out.fields.sin().sum()).backward()
        slopes = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
        return [out.pooled.detach(), out.attention.detach(), out.fields.detach(), leaf.grad, *slopes]

    # the paper's Gibbs weights multiply rounding by values over temperature
    assert_twins(run(False), run(True), CLOSE if preset == "default" else 3e-3)


@pytest.mark.parametrize("training", [True, False])
def test_layer_in_low_rank(fused, monkeypatch, training):
    """As on long inputs: couplings too large for one program, in several blocks of rows."""
    monkeypatch.setattr(spins, "MAX_FACTORED", 16)
    monkeypatch.setattr(factored, "TILE", 128)
    generator = torch.Generator().manual_seed(0)
    x, mask = torch.randn(2, 37, 8, generator=generator).to(DEVICE), random_mask(2, 37, generator)
    torch.manual_seed(0)
    layer = NeuroGameAttention(8, samples=5, eval_samples=5, couplings="linear").to(DEVICE).train(training)

    def run(on):
        fused(on)
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        out = layer(leaf, mask, generator=torch.Generator().manual_seed(1))
        out.pooled.square().sum().backward()
        return [out.pooled.detach(), out.attention.detach(), leaf.grad, *(p.grad.clone() for p in layer.parameters())]

    assert_twins(run(False), run(True), 1e-3)


@pytest.mark.parametrize("form", ["resident", "streamed"])
@pytest.mark.parametrize("max_steps", [1, 40])  # with 1, no sample converges
def test_a_matrix_of_low_rank_couplings(fused, monkeypatch, form, max_steps):
    """No more tokens than factors: the mean field takes the matrix, and gradients go to the factors at once."""
    if form == "streamed":
        monkeypatch.setattr(spins, "MAX_RESIDENT", 16)
    generator = torch.Generator().manual_seed(0)
    x, mask = torch.randn(3, 19, 24, generator=generator).to(DEVICE), random_mask(3, 19, generator)
    torch.manual_seed(0)
    layer = NeuroGameAttention(24, samples=5, couplings="linear", max_steps=max_steps).to(DEVICE)

    def run(on):
        fused(on)
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        out = layer(leaf, mask, generator=torch.Generator().manual_seed(1))
        loss = out.pooled.square().sum() + out.attention.square().sum() + out.interactions.dense().square().sum()
        loss.backward()
        assert out.diagnostics.converged.all() == (max_steps > 1)
        return [out.pooled.detach(), out.attention.detach(), leaf.grad, *(p.grad.clone() for p in layer.parameters())]

    assert_twins(run(False), run(True))


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
@pytest.mark.parametrize(("n", "budget", "by_column"), [(1, 4, True), (2, 4, True), (9, 5, False), (20, 25, False)])
def test_values_and_pairs(fused, n, budget, by_column, scale):
    generator = torch.Generator().manual_seed(n)
    values = (scale * torch.randn(2, n, 6, generator=generator)).to(DEVICE)
    if n > 8:
        values[0, 1] = values[0, 2]  # twins
    mask = random_mask(2, n, generator)
    slopes = [torch.randn(2, 2, n, generator=generator), torch.randn(2, n, n, generator=generator)]
    slopes = [slope.to(DEVICE) for slope in slopes]
    seed = torch.tensor(12345678901234567)

    def run(on):
        fused(on)
        leaf = values.clone().requires_grad_()
        game = NormGame.of_shares(leaf, mask, "identity", by_column)
        found, sums = estimate_norm_values(game, budget, seed=seed, shared=True)
        pairs = estimate_norm_pairs(game, sums)
        if pairs is None:
            pairs = estimate_values(game, "BII", budget, seed=seed + 1, shared=True, errors=False).values
        factors, weights = low_rank_from_sums(game, sums)
        loss = (found * slopes[0]).sum() + (pairs * slopes[1]).sum()
        (gradient,) = torch.autograd.grad(loss, leaf, retain_graph=True)
        shape = [part / part.detach().abs().amax().clamp_min(1e-30) for part in (factors, weights)]
        (other,) = torch.autograd.grad(shape[0].square().sum() + shape[1].sin().sum(), leaf)
        numbers = [found.detach(), pairs.detach(), factors.detach(), weights.detach(), sums.inside]
        return numbers, [scale * gradient, scale * other]

    for plain, fast, least in zip(run(False), run(True), (1e-20, 1e-2), strict=True):
        assert_twins(plain, fast, least=least)


def test_values_with_many_blocks_of_players(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    values, slope = (torch.randn(shape, generator=generator).to(DEVICE) for shape in [(2, 300, 6), (2, 2, 300)])

    def run(most):
        monkeypatch.setattr(players, "BLOCKS", most)
        leaf = values.clone().requires_grad_()
        found = estimate_norm_values(NormGame(leaf), 5, seed=3, shared=False)
        ((found.values * slope).sum() + found.sums.square.sum()).backward()
        return [found.values.detach(), leaf.grad]

    assert_twins(run(32), run(0))


@pytest.mark.parametrize("weighting", ["gibbs", "uniform"])
@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_pairs_without_control(fused, weighting, scale):
    generator = torch.Generator().manual_seed(0)
    values, slope = torch.randn(2, 37, 8, generator=generator), torch.randn(2, 37, 37, generator=generator).to(DEVICE)
    values *= scale
    mask = random_mask(2, 37, generator)

    def run(on):
        fused(on)
        leaf = values.to(DEVICE).clone().requires_grad_()
        warm = torch.tensor([0.5 * scale, 0.9 * scale], device=DEVICE, requires_grad=True)
        options = {"weighting": weighting, "temperature": warm, "estimator": "plain", "errors": False, "seed": 3}
        found = estimate_values(NormGame(leaf, mask), "BII", 6, **options)
        (found.values * slope).sum().backward()
        shown = (mask[:, None] & mask[:, :, None]) & ~torch.eye(37, dtype=torch.bool, device=DEVICE)
        ess = torch.where(shown, found.ess, 0.0)
        return [found.values.detach(), ess, leaf.grad, *([warm.grad] if weighting == "gibbs" else [])]

    assert_twins(run(False), run(True), 2e-4)


@pytest.mark.parametrize("games", [1, 2])
def test_gradients_of_pairs_a_few_games_at_a_time(monkeypatch, games):
    generator = torch.Generator().manual_seed(0)
    values, slope = (torch.randn(3, 33, d, generator=generator).to(DEVICE) for d in (4, 33))
    inside = (torch.rand(3, 2, 33, generator=generator) < 0.5).to(DEVICE)
    sums = inside.float() @ values
    given = (values, sums @ values.mT, inside, sums.square().sum(-1), values.square().sum(-1))
    cold = torch.tensor([0.5, 0.0, 1.0], device=DEVICE)
    mean, log_sum, _ = pairs.average_pairs(*given, cold)

    def run():
        return pairs.average_pairs_backward(slope, *given, cold, mean, log_sum)

    expected = run()
    monkeypatch.setattr(pairs, "MAX_SHARES", games * 2 * 3 * 33)
    assert_twins(expected, run(), 1e-6)


@pytest.mark.parametrize("form", ["resident", "streamed", "factors", "large"])
@pytest.mark.parametrize(
    ("backward", "solver"), [("implicit", "anderson"), ("implicit", "damped"), ("unrolled", "damped")]
)
@pytest.mark.parametrize("max_steps", [4, 40])  # with 4, no sample converges: gradients go through the steps
def test_mean_field(fused, monkeypatch, form, backward, solver, max_steps):
    generator = torch.Generator().manual_seed(0)
    n = 30
    if form == "streamed":
        monkeypatch.setattr(spins, "MAX_RESIDENT", 16)
    if form == "large":
        monkeypatch.setattr(spins, "MAX_FACTORED", 16)
        monkeypatch.setattr(factored, "TILE", 64)  # several blocks of rows
    mask = random_mask(3, n, generator)
    if form in ("factors", "large"):
        factors = torch.randn(3, n, 5, generator=generator).to(DEVICE) * mask[..., None]
        strength = 0.15 / n**0.5  # nearer to criticality rounding decides the number of steps
        base = LowRankCouplings(factors, torch.randn(3, 5, generator=generator).to(DEVICE) * strength)
    else:
        matrix = torch.randn(3, n, n, generator=generator).to(DEVICE) * 0.2 / n**0.5
        base = DenseCouplings((matrix + matrix.mT) * mask[:, None] * mask[:, :, None])
    fields, slope = (torch.randn(3, n, generator=generator).to(DEVICE) for _ in range(2))

    def run(on):
        fused(on)
        leaves = [tensor.detach().clone().requires_grad_() for tensor in (fields, *base.tensors())]
        warm = torch.tensor([0.5, 0.6, 0.8], device=DEVICE, requires_grad=True)
        couplings = base.of(leaves[1:])
        options = {"solver": solver, "backward": backward, "max_steps": max_steps}
        found = mean_field(Ising(leaves[0], couplings, warm, mask), **options)
        norm = couplings.norm()
        ((found.magnetization * slope).sum() + norm.square().sum()).backward()
        wanted = [leaf.grad for leaf in leaves[: 1 + min(2, len(base.tensors()))]]
        numbers = [found.magnetization.detach(), norm.detach(), found.steps.float(), warm.grad, *wanted]
        return numbers

    assert_twins(run(False), run(True), 1e-3 if max_steps == 40 else 2e-4)


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (30, 5), (37, 20)])
def test_products_and_diagonals_of_low_rank_couplings(fused, monkeypatch, n, rank):
    monkeypatch.setattr(factored, "TILE", 128)  # several blocks of rows
    generator = torch.Generator().manual_seed(n)
    shapes = [(3, n, rank), (3, rank), (3, n, 1), (3, n, 1), (3, n)]
    *given, slope, other = (torch.randn(shape, generator=generator).to(DEVICE) for shape in shapes)

    def run(on):
        fused(on)
        factors, weights, x = leaves = [tensor.clone().requires_grad_() for tensor in given]
        couplings = LowRankCouplings(factors, weights)
        product = couplings.product(x)
        slopes = torch.autograd.grad((product * slope).sum(), leaves)
        more = torch.autograd.grad((couplings.diagonal * other).sum(), leaves[:2])
        return [product.detach(), couplings.diagonal.detach(), couplings.size().detach(), *slopes, *more]

    assert_twins(run(False), run(True), least=1e-2)  # of one spin all cancels


def test_gradients_of_gradients_of_low_rank_couplings(fused):
    fused(True)
    leaves = [torch.randn(shape, device=DEVICE, requires_grad=True) for shape in [(2, 9, 3), (2, 3), (2, 9, 1)]]
    couplings = LowRankCouplings(*leaves[:2])
    (slope,) = torch.autograd.grad(couplings.product(leaves[2]).square().sum(), leaves[:1], create_graph=True)
    assert all(torch.isfinite(one).all() for one in torch.autograd.grad(slope.square().sum(), leaves))


@pytest.mark.parametrize(("n", "budget"), [(1, 2), (19, 7), (40, 25)])
def test_factors_of_a_game(fused, n, budget):
    generator = torch.Generator().manual_seed(n)
    values, slope = torch.randn(2, n, 6, generator=generator), torch.randn(2, n, 6 + budget, generator=generator)
    coalitions = torch.rand(2, budget, n, generator=generator) < 0.5

    def run(on):
        fused(on)
        leaf = values.to(DEVICE).requires_grad_()
        game = NormGame(leaf, by_column=True)
        factors, weights = low_rank_from_sums(game, game.sums(coalitions.to(DEVICE)))
        ((factors * slope.to(DEVICE)).sum() + weights.sum()).backward()
        return [factors.detach(), weights.detach(), leaf.grad]

    assert_twins(run(False), run(True))


def test_the_same_bits_twice():
    x = torch.randn(3, 20, 16, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    torch.manual_seed(0)
    layer = NeuroGameAttention(16, heads=2).to(DEVICE)

    def run():
        layer.zero_grad()
        out = layer(x, generator=torch.Generator().manual_seed(1))
        out.pooled.square().sum().backward()
        return [out.pooled, *(p.grad.clone() for p in layer.parameters())]

    assert all(torch.equal(one, other) for one, other in zip(run(), run(), strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_an_evaluation_in_a_cuda_graph():
    torch.manual_seed(0)
    layer = NeuroGameAttention(32, heads=2).to(DEVICE).eval()
    x = torch.randn(2, 20, 32, device=DEVICE)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                layer(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            pooled = layer(x).pooled
        x.copy_(x.flip(0) + 1)
        graph.replay()
        assert_twins([layer(x).pooled], [pooled])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
@pytest.mark.parametrize(("n", "heads", "preset"), [(20, 2, "default"), (20, 1, "paper"), (2_100, 1, "default")])
def test_training_in_a_cuda_graph(n, heads, preset):
    """Recorded without a generator, every replay draws its own coalitions; their number is the layer's."""

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = NeuroGameAttention(32, heads=heads, preset=preset)

        def forward(self, x):
            return self.layer(x).pooled

    torch.manual_seed(0)
    module = Pooled().to(DEVICE)
    x = torch.randn(2, n, 32, device=DEVICE, requires_grad=True)
    recorded = torch.cuda.make_graphed_callables(module, (x,))
    draws = {True: [], False: []}
    for graph in draws:
        for _ in range(60):
            out = recorded(x) if graph else module.__class__.forward(module, x)
            (slope,) = torch.autograd.grad(out.square().sum(), x)
            draws[graph].append(torch.cat([out.detach().flatten(), slope.flatten()[:100]]))
    mine, plain = torch.stack(draws[True]), torch.stack(draws[False])
    assert float(mine.std(0).max()) > 0  # another draw each time
    spread = (mine.var(0) + plain.var(0)).sqrt() / 60**0.5 + 1e-5
    assert float(((mine.mean(0) - plain.mean(0)).abs() / spread).max()) < 6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")  # of torch, which records an empty one first
@pytest.mark.parametrize(("n", "heads", "preset"), [(20, 2, "default"), (20, 1, "paper"), (600, 1, "default")])
def test_compiled_with_cuda_graphs(n, heads, preset):
    """torch.compile replays graphs: the same values and gradients, again and again."""
    torch.manual_seed(0)
    layer = NeuroGameAttention(32, heads=heads, preset=preset).to(DEVICE).eval()
    compiled = torch.compile(layer, mode="reduce-overhead", fullgraph=True)

    def run(called, x):
        leaf = x.clone().requires_grad_()
        out = called(leaf).pooled
        slopes = torch.autograd.grad(out.square().sum(), [leaf, *(p for p in layer.parameters() if p.requires_grad)])
        return [out.detach().clone(), *(slope.clone() for slope in slopes)]

    for seed in range(5):
        x = torch.randn(2, n, 32, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(seed))
        assert_twins(run(layer, x), run(compiled, x), CLOSE if preset == "default" else 3e-3)
