"""Bar 1: closed gradients, steps and the embedding against autograd and the plain twins."""

import pytest
import torch

from spinformer.attention import AttractorAttention
from spinformer.attractor import PatchEmbedding, add_noise, field_gradient, hide_tokens, reference, standardise
from spinformer.attractor.energy import chunks
from spinformer.attractor.gradient import energy_gradient, zeros

SHAPES = ["full", "low-rank", "relative", "shared"]


def build(shape: str, **options) -> AttractorAttention:
    layer = AttractorAttention(12, 5, shape=shape, rank=3, grid=(3, 4), reach=(1, 2), seed=3, **options).double()
    with torch.no_grad():
        for tensor in layer.pairs.storage().values():
            tensor.mul_(8)
    return layer


def spins(batch: int = 6, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(batch, 12, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


@pytest.mark.parametrize("clamp", [None, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_coupling_gradient_is_autograds(shape, clamp):
    layer, x = build(shape, strength=1.7, clamp=clamp), spins()
    J = layer.couplings.detach().clone().requires_grad_()
    reference.energy(J, x, 1.7, clamp).mean().backward()
    assert relative(layer.coupling_gradient(x), J.grad) < 1e-10

    layer.energy(x).mean().backward()
    closed = layer.parameter_gradient(x)
    for name, parameter in layer.pairs.named_parameters():
        gradient = closed[name].permute(0, 3, 1, 2) if name == "weight" else closed[name]
        assert relative(gradient, parameter.grad) < 1e-10


@pytest.mark.parametrize("shape", SHAPES)
def test_field_gradient_is_autograds(shape):
    layer, x = build(shape), spins()
    seen = x * ~hide_tokens(6, 12, 0.3, generator=torch.Generator().manual_seed(0))[..., None]
    reference.field_loss(layer.couplings, x, seen, 1.3).mean().backward()
    closed = zeros(layer.pairs)
    missed = field_gradient(layer.pairs, x, seen, closed, strength=1.3, chunk=5)
    loss = reference.field_loss(layer.couplings, x, seen, 1.3).sum() * 2 / x.square().sum()
    assert missed.item() == pytest.approx(loss.item(), rel=1e-10)
    for name, parameter in layer.pairs.named_parameters():
        gradient = closed[name].permute(0, 3, 1, 2) if name == "weight" else closed[name]
        assert relative(gradient, parameter.grad) < 1e-10


@pytest.mark.parametrize("shape", SHAPES)
def test_float32_reaches_the_bar(shape):
    layer, x = build(shape, strength=1.7).float(), spins().float()
    layer.energy(x).mean().backward()
    for name, parameter in layer.pairs.named_parameters():
        closed = layer.parameter_gradient(x)[name]
        assert relative(closed.permute(0, 3, 1, 2) if name == "weight" else closed, parameter.grad) < 1e-5


@pytest.mark.parametrize("shape", SHAPES)
def test_energies_and_steps_equal_their_plain_twins(shape):
    layer, x = build(shape, strength=0.9, inertia=0.4), spins()
    J = layer.couplings.detach()
    assert torch.allclose(layer.local_energy(x), reference.local_energy(J, x, 0.9))
    assert torch.allclose(layer.step(x), reference.step(J, x, 0.9, 0.4))
    with torch.no_grad():
        assert torch.allclose(layer.local_energy(x), reference.local_energy(J, x, 0.9))
    assert torch.allclose(layer.attention(x).sum(-1), torch.ones(6, 12, dtype=torch.float64))


@pytest.mark.parametrize("clamp", [None, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_step_is_minus_the_gradient_of_the_local_energy(shape, clamp):
    layer, x = build(shape, strength=1.2, inertia=0.7, clamp=clamp), spins()
    moved = layer.step(x)
    for i in range(12):
        spin = x[:, i].clone().requires_grad_()
        others = torch.cat((x[:, :i], spin[:, None], x[:, i + 1 :]), dim=1)
        (slope,) = torch.autograd.grad(layer.local_energy(others)[:, i].sum(), spin)
        # the derivative of e_i alone: x_i enters e_i only as the site's own spin
        assert torch.allclose(moved[:, i], -slope + 0.7 * x[:, i])


def test_the_diagonal_is_zero_and_stays_out():
    for shape in SHAPES:
        layer, x = build(shape), spins()
        eye = torch.arange(12)
        assert layer.couplings[eye, eye].abs().max() == 0
        assert layer.coupling_gradient(x)[eye, eye].abs().max() == 0
        assert layer.attention(x)[:, eye, eye].abs().max() == 0


def test_chunks_of_sites_change_nothing():
    layer, x = build("full"), spins()
    together, parts = zeros(layer.pairs), zeros(layer.pairs)
    a = energy_gradient(layer.pairs, x, together)
    b = energy_gradient(layer.pairs, x, parts, chunk=5)
    assert torch.allclose(together["weight"], parts["weight"])
    assert a.item() == pytest.approx(b.item())
    assert [(s.start, s.stop) for s in chunks(range(2, 9), 3)] == [(2, 5), (5, 8), (8, 9)]


def test_relative_couplings_serve_another_grid():
    layer = build("relative")
    small = layer.couplings.detach()
    layer.resize((4, 5))
    large = layer.couplings.detach()
    assert large.shape == (20, 20, 5, 5)
    assert torch.equal(large[1, 7], small[1, 6])  # one row down, one column right, on either grid
    assert layer.step(torch.randn(2, 20, 5, dtype=torch.float64)).shape == (2, 20, 5)
    with pytest.raises(ValueError, match="relative"):
        build("full").resize((4, 5))


def test_retrieval_masks_at_the_first_step_and_can_pin():
    layer, x = build("full", normalisation="none", inertia=0.0), spins(scale=0.1)
    mask = hide_tokens(6, 12, 0.25, generator=torch.Generator().manual_seed(2))
    path = layer.retrieve(x, 3, mask, return_trajectory=True)
    assert path.shape == (4, 6, 12, 5)
    assert torch.equal(path[1], layer.step(x, mask))
    assert torch.equal(path[2], layer.step(path[1]))
    assert torch.equal(layer.retrieve(x, 3, mask), path[-1])
    pinned = layer.retrieve(x, 3, mask, pin=True)
    assert torch.equal(pinned[~mask], x[~mask])
    assert not torch.equal(pinned[mask], x[mask])


def test_normalisations():
    x = spins()
    sphere = build("full").retrieve(x, 2)
    assert torch.allclose(sphere.norm(dim=-1), torch.ones(6, 12, dtype=torch.float64))
    mask = hide_tokens(6, 12, 0.25, generator=torch.Generator().manual_seed(2))
    seen = standardise(x, mask)
    visible = seen[0][~mask[0]]
    assert torch.allclose(visible.mean(0), torch.zeros(5, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(visible.std(0, correction=0), torch.ones(5, dtype=torch.float64))
    assert seen[mask].abs().max() == 0
    layer = build("full", normalisation="standard", inertia=0.3)
    expected = reference.step(layer.couplings.detach(), standardise(x), 1.0, 0.0) + 0.3 * x
    assert torch.allclose(layer.retrieve(x, 1), expected)


@pytest.mark.parametrize(("shape", "patch", "dim"), [((1, 8, 12), 2, None), ((3, 8, 8), 4, 100), ((1, 6, 6), 1, 5)])
def test_the_embedding_returns_the_image(shape, patch, dim):
    embedding = PatchEmbedding(shape, patch, dim, seed=4)
    images = torch.rand(5, *shape, generator=torch.Generator().manual_seed(0))
    images[0], images[1] = 0.0, 1.0
    x = embedding.encode(images)
    assert torch.allclose(x.norm(dim=-1), torch.ones(5, embedding.n_tokens), atol=1e-6)
    assert (embedding.decode(x) - images).abs().max() < 1e-5
    assert (embedding.decode(3 * x) - images).abs().max() < 1e-5
    pixels = embedding.hide(hide_tokens(5, embedding.n_tokens, 0.5))
    assert pixels.shape == images.shape


def test_noise_keeps_the_variance_of_the_image():
    images = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    noisy = add_noise(images, 0.7, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(noisy.var((1, 2, 3)), images.var((1, 2, 3)), rtol=1e-4)
    assert not torch.allclose(noisy, images, atol=0.1)
