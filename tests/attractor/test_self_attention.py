"""What the paper takes from self-attention: one J = W_Q' W_K with W_V = J (ATT Eq. 5), and layer normalisation."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import layer_norm as torch_layer_norm

from spinformer.attention import AttractorAttention
from spinformer.attractor import layer_norm, standardise, unit
from spinformer.data import images as data
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.training.attractor import AttractorRecipe, train_attractor

N, D, K = 5, 4, 3


def spins(batch: int = 3) -> Tensor:
    return torch.randn(batch, N, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def build(shape: str = "shared", **options) -> AttractorAttention:
    layer = AttractorAttention(N, D, shape=shape, rank=K, seed=3, **options).double()
    with torch.no_grad():
        for tensor in layer.pairs.storage().values():
            tensor.mul_(3)
    return layer


def self_attention(x: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """ATT Eq. 5 by loops: x (N, d), query and key (k, d), value (d, d)."""
    rows = []
    for i in range(N):
        others = [j for j in range(N) if j != i]
        scores = [sum((x[i] @ query[k]) * (key[k] @ x[j]) for k in range(len(query))) for j in others]
        weights = torch.softmax(torch.stack(scores), 0)
        rows.append(sum(w * (value @ x[j]) for w, j in zip(weights, others, strict=True)))
    return torch.stack(rows)


def asymmetry(update, x: Tensor, i: int) -> float:
    """How far the derivative of x_i's update by x_i is from symmetric, as that of every gradient is."""

    def of_spin(spin: Tensor) -> Tensor:
        return update(torch.cat((x[:i], spin[None], x[i + 1 :])))[i]

    jacobian = torch.autograd.functional.jacobian(of_spin, x[i])
    return float((jacobian - jacobian.T).norm() / jacobian.norm())


def test_shared_couplings_are_self_attention_with_values_j():
    layer, x = build(inertia=0.0), spins()
    query, key = layer.pairs.query.detach(), layer.pairs.key.detach()
    expected = torch.stack([self_attention(one, query, key, query.T @ key) for one in x])
    torch.testing.assert_close(layer.step(x), expected)
    assert layer.couplings.shape == (N, N, D, D)
    torch.testing.assert_close(layer.couplings[0, 1], layer.couplings[3, 2])


def test_only_values_that_equal_j_make_the_update_a_gradient():
    layer, x = build(), spins()[0]
    query, key = layer.pairs.query.detach(), layer.pairs.key.detach()
    other = torch.randn(D, D, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for i in range(N):
        assert asymmetry(lambda y: self_attention(y, query, key, query.T @ key), x, i) < 1e-12
        assert asymmetry(lambda y: self_attention(y, query, key, other), x, i) > 0.01


def test_the_closed_gradient_of_the_shared_shape_is_a_difference_quotient():
    layer, x, width = build(strength=1.4), spins(), 1e-5
    closed = layer.parameter_gradient(x)
    for name, tensor in layer.pairs.storage().items():
        for index in ((0, 0), (K - 1, D - 1), (1, 2)):
            value, energies = float(tensor[index]), []
            for shift in (width, -width):
                tensor[index] = value + shift
                energies.append(float(layer.energy(x).mean().detach()))
            tensor[index] = value
            assert float(closed[name][index]) == pytest.approx((energies[0] - energies[1]) / (2 * width), rel=1e-6)


def test_shared_couplings_know_no_positions():
    x, order = spins(), torch.tensor([3, 0, 4, 1, 2])
    assert torch.allclose(build().step(x[:, order]), build().step(x)[:, order])
    assert not torch.allclose(build("full").step(x[:, order]), build("full").step(x)[:, order])


def test_layer_normalisation_is_torchs_at_unit_length():
    x = spins()
    normal = layer_norm(x)
    torch.testing.assert_close(normal, torch_layer_norm(x, (D,), eps=0.0) / math.sqrt(D))
    for row in normal.flatten(0, 1):
        mean = sum(row.tolist()) / D
        assert mean == pytest.approx(0, abs=1e-12)
        assert sum(value**2 for value in row.tolist()) == pytest.approx(1)
    assert torch.autograd.gradcheck(layer_norm, (x.requires_grad_(),))
    assert layer_norm(torch.zeros(1, 2, D)).abs().max() == 0


@pytest.mark.parametrize("normalisation", ["layer", "sphere"])
def test_the_step_is_a_gradient_before_normalisation_alone(normalisation):
    layer, x = build("full", normalisation=normalisation, inertia=0.6), spins()
    if normalisation == "layer":
        torch.testing.assert_close(layer.retrieve(x, 2), layer_norm(layer.step(layer_norm(layer.step(x)))))
    for i in range(N):
        assert asymmetry(lambda y: layer.step(y[None])[0], x[0], i) < 1e-12
        assert asymmetry(lambda y: layer.retrieve(y[None], 1)[0], x[0], i) > 0.01


@pytest.mark.parametrize("inertia", [0.0, 1.0])
def test_while_the_others_rest_no_step_raises_a_spins_own_energy(inertia):
    layer, x = build("full", strength=2.0, inertia=inertia), unit(spins(40))
    before, moved = layer.local_energy(x), layer.step(x)
    for i in range(N):
        for new in (unit(moved), moved) if inertia == 1 else (unit(moved),):
            state = x.clone()
            state[:, i] = new[:, i]
            assert bool((layer.local_energy(state)[:, i] <= before[:, i] + 1e-12).all())
    if inertia == 0:  # all at once, the sum may rise
        assert bool((layer.energy(unit(moved)) > layer.energy(x)).any())


def test_a_network_with_both_is_trained_saved_and_read(tmp_path):
    digits = data.load_images("sample").train[:96]
    network = AttractorNetwork(AttractorConfig(patch=7, shape="shared", rank=6, normalisation="layer"))
    norms = {name: float(tensor.norm()) for name, tensor in network.layer.pairs.storage().items()}
    recipe = AttractorRecipe(epochs=6, optimiser="sgd", rate=0.1)
    history = train_attractor(network, digits, recipe, quiet=True)
    assert history[-1]["energy"] < history[0]["loss"]
    assert history[-1]["least_alignment"] > 0.99
    assert {n: float(t.norm()) for n, t in network.layer.pairs.storage().items()} == pytest.approx(norms, rel=1e-4)
    network.save(tmp_path / "net.safetensors")
    again = AttractorNetwork.load(tmp_path / "net.safetensors")
    assert again.config == network.config
    assert torch.equal(again.trajectory(digits[:4], 3), network.trajectory(digits[:4], 3))


@pytest.mark.parametrize("size", [1e-30, 1e-13, 1.0, 1e25])
def test_spins_of_any_size_come_to_length_one(size):
    x = size * torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(unit(x).norm(dim=-1), torch.ones(2, 5))
    assert torch.allclose(layer_norm(x).norm(dim=-1), torch.ones(2, 5), atol=1e-5)
    assert not unit(torch.zeros(1, 2, 3)).any()


def test_what_does_not_vary_is_not_made_of_rounding():
    """A token, or a component, whose numbers are all the same comes out as 0."""
    same = torch.full((1, 3, 4), 0.1) * torch.tensor([1.0, 3.0, 7.0])[:, None]
    assert not layer_norm(same).any()
    tokens = torch.tensor([[0.1, 0.7]]).expand(2, 3, 2)
    assert not standardise(tokens).any()
    assert not standardise(tokens, torch.tensor([[True, False, False]] * 2)).any()
