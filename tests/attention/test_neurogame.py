"""NeuroGame attention: the paper's algorithm, invariances, extremes, and the ways people use a layer."""

import pytest
import torch

from spinformer.attention import PRESETS, NeuroGameAttention, algorithm1
from spinformer.games import NormGame, exact_values
from spinformer.ising import Ising, mean_field

DIM = 16


def layer(preset="default", heads=1, **options):
    torch.manual_seed(1)
    return NeuroGameAttention(DIM, heads, preset=preset, **options).eval()


def batch(n=9, rows=3, shift=1.0):
    x = torch.randn(rows, n, DIM) + shift * torch.randn(DIM)
    mask = torch.arange(n).expand(rows, n) < torch.tensor([[n], [n - 2], [max(1, n - 5)]])[:rows]
    return x, mask


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("heads", [1, 4])
def test_shapes_and_ranges(preset, heads):
    x, mask = batch()
    output = layer(preset, heads)(x, mask)
    assert output.pooled.shape == (3, DIM)
    for name in ("attention", "shapley", "banzhaf", "gate", "fields", "magnetization"):
        tensor = getattr(output, name)
        assert tensor.shape == (3, heads, 9), name
        assert float((tensor * ~mask[:, None]).detach().abs().max()) == 0, name
    assert output.couplings.dense().shape == (3, heads, 9, 9)
    assert output.couplings.matvec(output.magnetization).shape == (3, heads, 9)
    assert output.diagnostics.ess.shape == output.diagnostics.converged.shape == (3, heads)
    inside = output.attention[mask[:, None].expand_as(output.attention)]
    inside = inside.detach()
    assert float(inside.min()) >= 0
    assert float(inside.max()) <= 1


def test_paper_preset_is_algorithm_1(generator):
    """Many samples of a mild game: fields and couplings within 2% of the exact Gibbs ones, and so are the loops'."""
    module = layer("paper", temperature=2.0, eval_samples=20_000)
    x = torch.randn(1, 5, DIM)
    output = module(x)
    V = module.value(x[0]).detach()
    w, b = module.gate.weight[0].detach(), module.gate.bias[0].detach()
    gate = torch.sigmoid(x[0] @ w + b)
    exact = exact_values(NormGame(V), "BV", "gibbs", 2.0)
    fields = gate * exact / exact.abs().sum() + (1 - gate) * exact / exact.abs().sum()
    couplings = exact_values(NormGame(V), "BII", "gibbs", 2.0)
    solved = mean_field(Ising(fields[None], couplings[None], 2.0), max_steps=25)
    attention = (1 + solved.magnetization[0]) / 2
    torch.testing.assert_close(output.gate[0, 0], gate)
    torch.testing.assert_close(output.fields[0, 0], fields, rtol=0.02, atol=0.002)
    torch.testing.assert_close(output.couplings.dense()[0, 0], couplings, rtol=0.02, atol=0.01)
    torch.testing.assert_close(output.attention[0, 0], attention, rtol=0.02, atol=0)
    torch.testing.assert_close(output.pooled[0], output.attention[0, 0] @ V)
    loops = algorithm1.algorithm1(
        x[0], module.value.weight.detach(), w, b, gamma=2.0, K=1000, T=25, generator=generator
    )
    torch.testing.assert_close(loops.fields, fields, rtol=0.1, atol=0.01)
    torch.testing.assert_close(loops.alpha, attention, rtol=0.1, atol=0)
    torch.testing.assert_close(loops.z, output.pooled[0].detach(), rtol=0.2, atol=0.2)


def test_paper_preset_settings():
    settings = PRESETS["paper"]
    assert (settings.damping, settings.max_steps, settings.tol) == (0.7, 25, 1e-4)
    assert (settings.weighting, settings.proposal, settings.couplings, settings.solver) == (
        "gibbs",
        "uniform",
        "dense",
        "damped",
    )


def test_default_fields_are_shares(sample):
    module = NeuroGameAttention(384).eval()
    output = module(sample.hidden[:4], sample.mask[:4])
    count = sample.mask[:4].sum(-1)[:, None, None]
    share = output.gate * output.shapley / output.shapley.abs().sum(-1, keepdim=True)
    share = share + (1 - output.gate) * output.banzhaf / output.banzhaf.abs().sum(-1, keepdim=True)
    torch.testing.assert_close(output.fields, (count * share - 1) * sample.mask[:4, None])
    norm = torch.linalg.matrix_norm(output.couplings.dense(), ord=2)
    assert float((norm / module.temperature).detach().max()) < 0.95
    assert output.diagnostics.converged.all()


def test_default_converges_on_real_inputs(sample):
    for heads in (1, 4):
        output = NeuroGameAttention(384, heads).eval()(sample.hidden, sample.mask)
        assert output.diagnostics.converged.all()
        assert float(output.attention.detach()[sample.mask[:, None].expand_as(output.attention)].std()) > 0.1


class TestInvariance:
    """To 1e-5, in evaluation, for both presets (the paper's where its iteration converges)."""

    options = (("default", {}), ("default", {"couplings": "linear"}), ("paper", {"temperature": 30.0}))

    @pytest.mark.parametrize(("preset", "options"), options)
    def test_batch(self, preset, options):
        x, mask = batch()
        module = layer(preset, 2, **options)
        together = module(x, mask)
        for row in range(3):
            alone = module(x[row : row + 1], mask[row : row + 1])
            torch.testing.assert_close(alone.attention[0], together.attention[row], rtol=0, atol=1e-5)
            torch.testing.assert_close(alone.pooled[0], together.pooled[row], rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize(("preset", "options"), options)
    def test_padding(self, preset, options):
        x, _ = batch()
        module = layer(preset, 2, **options)
        bare = module(x)
        mask = torch.arange(14).expand(3, 14) < 9
        padded = module(torch.cat([x, 100 * torch.randn(3, 5, DIM)], 1), mask)
        torch.testing.assert_close(padded.attention[..., :9], bare.attention, rtol=0, atol=1e-5)
        torch.testing.assert_close(padded.pooled, bare.pooled, rtol=1e-5, atol=1e-5)
        assert float(padded.attention[..., 9:].detach().abs().max()) == 0

    @pytest.mark.parametrize(("preset", "options"), options)
    def test_order(self, preset, options):
        x, mask = batch()
        module = layer(preset, 2, **options)
        order = torch.randperm(9)
        straight, moved = module(x, mask), module(x[:, order], mask[:, order])
        torch.testing.assert_close(moved.attention, straight.attention[..., order], rtol=0, atol=1e-5)
        torch.testing.assert_close(moved.pooled, straight.pooled, rtol=1e-5, atol=1e-5)

    def test_gradients_of_padding_are_zero(self):
        x, mask = batch()
        x.requires_grad_()
        layer()(x, mask).pooled.sum().backward()
        assert float((x.grad * ~mask[..., None]).abs().max()) == 0
        assert float(x.grad.abs().max()) > 0


class TestExtremes:
    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0, 1e2, 1e4])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_finite_for_any_norm_and_type(self, preset, size, dtype):
        x, mask = batch(rows=3)
        x = (size * torch.nn.functional.normalize(x, dim=-1)).to(dtype).requires_grad_()
        module = layer(preset)
        output = module(x, mask)
        output.pooled.sum().backward()
        assert output.pooled.dtype == torch.float32
        for tensor in (output.pooled, output.attention, output.fields, output.couplings.dense(), x.grad):
            assert torch.isfinite(tensor).all()
        for parameter in module.parameters():
            assert parameter.grad is None or torch.isfinite(parameter.grad).all()

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize("n", [1, 2, 3, 64])
    def test_finite_for_few_tokens(self, preset, n):
        x = torch.randn(2, n, DIM, requires_grad=True)
        output = layer(preset, 2)(x)
        output.pooled.sum().backward()
        assert torch.isfinite(output.pooled).all()
        assert torch.isfinite(x.grad).all()

    @pytest.mark.parametrize(("preset", "size"), [("default", 1e-4), ("default", 1e4), ("paper", 1.0)])
    def test_finite_for_many_tokens(self, preset, size):
        options = {"couplings": "linear"} if preset == "paper" else {}
        x = (size * torch.nn.functional.normalize(torch.randn(1, 4096, DIM), dim=-1)).requires_grad_()
        output = layer(preset, **options)(x)
        output.pooled.sum().backward()
        assert torch.isfinite(output.pooled).all()
        assert torch.isfinite(x.grad).all()

    @pytest.mark.parametrize("preset", PRESETS)
    def test_all_padding_but_one(self, preset):
        x = torch.randn(2, 8, DIM, requires_grad=True)
        mask = torch.zeros(2, 8, dtype=torch.bool)
        mask[0, 3], mask[1] = True, True
        output = layer(preset)(x, mask)
        output.pooled.sum().backward()
        assert torch.isfinite(output.pooled).all()
        assert torch.isfinite(x.grad).all()

    @pytest.mark.parametrize("preset", PRESETS)
    def test_equal_tokens_and_zeros(self, preset):
        for x in (
            torch.ones(1, 5, DIM),
            torch.zeros(1, 5, DIM),
            torch.randn(1, 1, DIM).expand(1, 5, DIM).clone(),
        ):
            x.requires_grad_()
            output = layer(preset)(x)
            output.pooled.sum().backward()
            assert torch.isfinite(output.pooled).all()
            assert torch.isfinite(x.grad).all()


class TestUse:
    def test_evaluation_is_repeatable_and_training_is_not(self):
        x, mask = batch()
        module = layer(estimator="plain")
        assert torch.equal(module(x, mask).pooled, module(x, mask).pooled)
        module.train()
        assert not torch.equal(module(x, mask).pooled, module(x, mask).pooled)
        first, second = (module(x, mask, torch.Generator().manual_seed(3)).pooled for _ in range(2))
        assert torch.equal(first, second)

    @pytest.mark.parametrize("preset", PRESETS)
    def test_autocast(self, preset):
        x, mask = batch()
        module = layer(preset)
        plain = module(x, mask)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = module(x, mask)
        assert cast.fields.dtype == torch.float32
        assert torch.isfinite(cast.pooled).all()
        if preset == "default":
            assert float((cast.attention - plain.attention).detach().abs().max()) < 0.1

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [{"couplings": "dense"}, {"couplings": "linear"}])
    def test_compile(self, options):
        x, mask = batch()
        module = layer(max_steps=2, **options)
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        eager, output = module(x, mask), compiled(x, mask)
        torch.testing.assert_close(output.attention, eager.attention, rtol=0, atol=2e-4)
        gradients = []
        for found in (eager, output):
            module.zero_grad()
            found.pooled.sum().backward()
            gradients.append(module.value.weight.grad.clone())
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-2, atol=1e-3)

    @pytest.mark.slow
    def test_export(self):
        x, mask = batch()
        module = layer()
        program = torch.export.export(module, (x, mask))
        assert "spinformer.mean_field.default" in {str(node.target) for node in program.graph.nodes}
        output, expected = program.module()(x, mask), module(x, mask)
        assert isinstance(output, type(expected))
        torch.testing.assert_close(output.pooled, expected.pooled)
        torch.testing.assert_close(output.couplings.dense(), expected.couplings.dense())

    def test_state_dict_round_trip(self, tmp_path):
        x, mask = batch()
        first, second = layer(heads=2), layer(heads=2)
        with torch.no_grad():
            for parameter in first.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        torch.save(first.state_dict(), tmp_path / "layer.pt")
        second.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True))
        assert torch.equal(first(x, mask).pooled, second(x, mask).pooled)

    def test_half_precision_module(self):
        x, mask = batch()
        output = layer().to(torch.bfloat16)(x.to(torch.bfloat16), mask)
        assert output.pooled.dtype == torch.bfloat16
        assert torch.isfinite(output.pooled).all()

    def test_special_tokens_outside_the_game(self):
        x, mask = batch()
        special = torch.zeros_like(mask)
        special[:, 0] = True
        without = layer(special_tokens=False)(x, mask, special=special)
        assert float(without.attention[..., 0].detach().abs().max()) == 0
        alone = layer()(x[:, 1:], mask[:, 1:])
        torch.testing.assert_close(without.attention[..., 1:], alone.attention, rtol=0, atol=1e-5)
        inside = layer()(x, mask, special=special)
        assert float(inside.attention[..., 0].detach().min()) > 0

    def test_heads_are_independent(self):
        x, mask = batch()
        module = layer(heads=2, temperature=[0.2, 0.6])
        torch.testing.assert_close(module.temperature, torch.tensor([0.2, 0.6]))
        before = module(x, mask)
        with torch.no_grad():
            module.value.weight[8:] += 1
            module.log_temperature[1] += 1
        after = module(x, mask)
        assert torch.equal(before.attention[:, 0], after.attention[:, 0])
        assert not torch.equal(before.attention[:, 1], after.attention[:, 1])

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize("couplings", ["dense", "linear"])
    def test_every_parameter_learns(self, preset, couplings):
        x, mask = batch()
        module = layer(preset, 2, couplings=couplings, temperature=2.0)
        module(x, mask).pooled.square().sum().backward()
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                assert parameter.grad is not None, name
                assert float(parameter.grad.abs().max()) > 0, name

    def test_gradient_of_the_whole_layer(self):
        """Finite differences in double: 1e-4 relative."""
        module = layer(max_steps=200, tol=1e-12).double()
        x = torch.randn(1, 6, DIM, dtype=torch.float64, requires_grad=True)
        direction = torch.randn_like(x)
        weight = torch.randn(DIM, dtype=torch.float64)

        def loss(t):
            return (module(x + t * direction).pooled * weight).sum()

        (gradient,) = torch.autograd.grad(loss(0.0), x)
        numeric = (loss(1e-5) - loss(-1e-5)) / 2e-5
        assert float((gradient * direction).sum().detach()) == pytest.approx(float(numeric.detach()), rel=1e-3)

    def test_low_rank_where_it_is_smaller(self, sample):
        """Above n = d + K tokens the linear form keeps factors, below it the smaller matrix; both are the same J."""
        x = sample.hidden[sample.mask][None, :, :DIM]
        module = layer(couplings="linear", eval_samples=20)
        border = DIM + 20
        dense, low = (module(x[:, :n]) for n in (border, border + 1))
        assert type(dense.couplings.flat).__name__ == "DenseCouplings"
        assert type(low.couplings.flat).__name__ == "LowRankCouplings"
        assert low.couplings.flat.factors.shape == (1, border + 1, border)
        # One masked token more does not change the game of the others, but it does change the form.
        mask = torch.arange(border + 1)[None] < border
        padded = module(x[:, : border + 1], mask)
        assert type(padded.couplings.flat).__name__ == "LowRankCouplings"
        for name in ("couplings", "interactions"):
            one, other = (getattr(output, name).dense() for output in (dense, padded))
            torch.testing.assert_close(other[..., :border, :border], one, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(
                getattr(padded, name).matvec(padded.magnetization)[..., :border],
                getattr(dense, name).matvec(dense.magnetization),
                rtol=1e-4,
                atol=1e-5,
            )
        torch.testing.assert_close(padded.attention[..., :border], dense.attention, rtol=0, atol=1e-4)
        torch.testing.assert_close(padded.pooled, dense.pooled, rtol=1e-4, atol=1e-4)

    def test_linear_by_itself_where_long(self, sample):
        x = sample.hidden[sample.mask][None, :, :DIM]
        module, exact = layer(), layer(couplings="dense")
        for n, form in ((128, "DenseCouplings"), (129, "LowRankCouplings")):
            output, wanted = module(x[:, :n]), exact(x[:, :n])
            assert type(output.couplings.flat).__name__ == form
            assert float((output.attention - wanted.attention).detach().abs().max()) < 0.02
        wide = NeuroGameAttention(384).eval()  # 384 + 25 factors: no smaller than the matrix of 129 tokens
        with torch.no_grad():
            assert type(wide(sample.hidden[sample.mask][None, :129]).couplings.flat).__name__ == "DenseCouplings"
            assert type(wide(sample.hidden[sample.mask][None, :410]).couplings.flat).__name__ == "LowRankCouplings"

    def test_linear_is_close_to_dense(self, sample):
        """512 tokens of real encoder outputs: attention within 0.01, couplings within 3% in norm."""
        x = sample.hidden[sample.mask][None, :512]
        modules = [NeuroGameAttention(384, couplings=form).eval() for form in ("dense", "linear")]
        modules[1].load_state_dict(modules[0].state_dict())
        with torch.no_grad():
            dense, linear = (module(x) for module in modules)
        assert float((dense.attention - linear.attention).abs().max()) < 0.01
        one, other = dense.interactions.dense(), linear.interactions.dense()
        assert float((one - other).norm() / one.norm()) < 0.03


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
class TestCuda:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"couplings": "linear"},
            {"weighting": "gibbs", "proposal": "tilted"},
            {"preset": "paper", "temperature": 30.0},
        ],
    )
    def test_equals_cpu(self, options):
        x, mask = batch()
        module = layer(heads=2, **options)
        results = []
        for device in ("cpu", "cuda"):
            module = module.to(device)
            module.zero_grad()
            output = module(x.to(device), mask.to(device))
            output.pooled.square().sum().backward()
            results.append(
                (output.attention.detach().cpu(), output.pooled.detach().cpu(), module.value.weight.grad.clone().cpu())
            )
        for here, there in zip(*results, strict=True):
            torch.testing.assert_close(there, here, rtol=2e-3, atol=2e-4)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_autocast_and_compile(self, dtype):
        x, mask = batch()
        module = layer(heads=2).cuda()
        plain = module(x.cuda(), mask.cuda())
        with torch.autocast("cuda", dtype=dtype):
            cast = module(x.cuda(), mask.cuda())
        assert float((cast.attention - plain.attention).detach().abs().max()) < 0.1
        compiled = torch.compile(module)(x.cuda(), mask.cuda())
        torch.testing.assert_close(compiled.attention, plain.attention, rtol=0, atol=1e-3)

    def test_long_sequences(self):
        x = torch.randn(1, 131_072, DIM, device="cuda", requires_grad=True)
        layer().cuda()(x).pooled.sum().backward()
        assert torch.isfinite(x.grad).all()

    def test_generator_on_the_device(self):
        x, mask = batch()
        module = layer().cuda().train()
        first, second = (module(x.cuda(), mask.cuda(), torch.Generator("cuda").manual_seed(3)).pooled for _ in range(2))
        assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m(torch.randn(2, 5, 7)), ValueError, r"x must have shape \(B, n, 16\); got \(2, 5, 7\)"),
        (lambda m: m(torch.randn(5, 16)), ValueError, "x must have 3 dimensions"),
        (lambda m: m(torch.ones(2, 5, 16).long()), TypeError, "floating-point"),
        (lambda m: m(torch.full((1, 2, 16), float("nan"))), ValueError, "x must be finite; 32 of 32"),
        (
            lambda m: m(torch.randn(2, 5, 16), torch.ones(2, 4).bool()),
            ValueError,
            r"mask must have shape \(2, 5\)",
        ),
        (
            lambda m: m(torch.randn(2, 5, 16), torch.tensor([[1] * 5, [0] * 5])),
            ValueError,
            r"no token at all in row\(s\) \[1\]",
        ),
        (lambda _: NeuroGameAttention(16, 3), ValueError, "dim must be a multiple of heads"),
        (
            lambda _: NeuroGameAttention(16, temperature=-1.0),
            ValueError,
            "temperature must be finite and positive",
        ),
        (
            lambda _: NeuroGameAttention(16, 2, temperature=[0.1] * 3),
            ValueError,
            "temperature must be one number or 2",
        ),
        (
            lambda _: NeuroGameAttention(16, preset="best"),
            ValueError,
            "preset must be one of 'default', 'paper'",
        ),
        (
            lambda _: NeuroGameAttention(16, dampening=0.5),
            TypeError,
            r"unknown option\(s\) dampening; there are: values",
        ),
        (lambda _: NeuroGameAttention(16, couplings="sparse"), ValueError, "couplings must be one of"),
        (
            lambda _: NeuroGameAttention(16, estimator="control", weighting="gibbs"),
            ValueError,
            "estimator='control' is for",
        ),
        (lambda _: NeuroGameAttention(16, samples=1), ValueError, "samples must be an integer of at least 2"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(layer())
