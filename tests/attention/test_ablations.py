"""Parts of the layer switched off: a gate that is not learned, and no couplings."""

import pytest
import torch

from spinformer.attention import PRESETS, NeuroGameAttention, hamiltonian
from spinformer.attention.settings import Settings

X, MASK = torch.randn(3, 7, 16), torch.arange(7).expand(3, 7) < torch.tensor([[7], [5], [3]])


def layer(preset, **options):
    torch.manual_seed(1)
    return NeuroGameAttention(16, preset=preset, **options)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("gate", [0.0, 0.25, 1.0])
def test_a_fixed_gate(preset, gate):
    """J_i = lambda phi_i / |phi|_1 + (1 - lambda) beta_i / |beta|_1 with one lambda for all tokens."""
    module = layer(preset, gate=gate, couplings="dense").eval()
    output = module(X, MASK)
    assert torch.equal(output.gate, gate * MASK[:, None].float())
    phi, beta = (values / values.abs().sum(-1, keepdim=True) for values in (output.shapley, output.banzhaf))
    fields = gate * phi + (1 - gate) * beta
    if module.settings.units == "share":
        fields = (MASK.sum(-1)[:, None, None] * fields - 1) * MASK[:, None]
    torch.testing.assert_close(output.fields, fields, rtol=1e-5, atol=1e-6)
    assert not any(name.startswith("gate") for name, _ in module.named_parameters())
    module.train()(X, MASK).pooled.sum().backward()
    assert float(module.value.weight.grad.abs().max()) > 0


@pytest.mark.parametrize("preset", PRESETS)
def test_no_couplings(preset):
    """alpha_i = (1 + tanh(J_i / gamma)) / 2."""
    module = layer(preset, couplings="none", tol=1e-7, max_steps=60).train()
    output = module(X, MASK)
    assert float(output.couplings.dense().detach().abs().max()) == 0
    spins = torch.tanh(output.fields / module.temperature)
    torch.testing.assert_close(output.magnetization, spins, rtol=0, atol=1e-6)
    torch.testing.assert_close(output.attention, (1 + spins) / 2 * MASK[:, None], rtol=0, atol=1e-6)
    output.pooled.sum().backward()
    assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in module.parameters())


@pytest.mark.parametrize("preset", PRESETS)
def test_fields_over_their_sum(preset):
    """J_i = lambda phi_i / sum phi + (1 - lambda) beta_i / sum beta, NGT Eq. 6. Values of both signs: the sum is not
    the L1 norm. Gradients against finite differences, in the direction of the gradient.
    """
    module = layer(preset, normalisation="sum", gate=0.25, couplings="dense", activation="log1p").double().eval()
    x = X.double().requires_grad_()
    output = module(x, MASK)
    phi, beta = (values / values.sum(-1, keepdim=True) for values in (output.shapley, output.banzhaf))
    fields = 0.25 * phi + 0.75 * beta
    if module.settings.units == "share":
        fields = (MASK.sum(-1)[:, None, None] * fields - 1) * MASK[:, None]
    torch.testing.assert_close(output.fields, fields, rtol=1e-9, atol=1e-9)
    output.fields.square().sum().backward()
    along = x.grad / x.grad.norm()
    ends = [module(x.detach() + side * 1e-6 * along, MASK).fields.square().sum() for side in (1, -1)]
    assert float((ends[0] - ends[1]).detach() / 2e-6) == pytest.approx(float(x.grad.norm()), rel=1e-3)


def test_values_of_both_signs():
    """Over a sum that is negative each value changes its sign; over one that is 0 there is no field."""
    values = torch.tensor([[[1.0, -3.0, 1.0], [1.0, -1.0, 0.0]]])
    found = hamiltonian._normalised(values, Settings(normalisation="sum"))
    assert found.tolist() == [[[-1.0, 3.0, -1.0], [0.0, 0.0, 0.0]]]
    found = hamiltonian._normalised(values, Settings())
    torch.testing.assert_close(found, torch.tensor([[[0.2, -0.6, 0.2], [0.5, -0.5, 0.0]]]))


def test_what_is_refused():
    with pytest.raises(ValueError, match="normalisation must be one of 'L1', 'sum'; got 'L2'"):
        layer("paper", normalisation="L2")
    with pytest.raises(ValueError, match=r"gate must be None or in \[0, 1\]; got 1.5"):
        layer("paper", gate=1.5)
    with pytest.raises(ValueError, match="couplings must be one of 'auto', 'dense', 'linear', 'none'; got 'off'"):
        layer("paper", couplings="off")
