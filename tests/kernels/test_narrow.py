"""Operators on players' vectors that 16 bits hold: against the plain twin, values and gradients."""

import pytest
import torch
from torch.nn import functional

from spinformer import NeuroGameAttention
from spinformer.attention.from_game import game_attention
from spinformer.attention.hamiltonian import Units
from spinformer.attention.settings import Settings
from spinformer.games import NormGame
from spinformer.kernels import spins, support
from spinformer.kernels.narrow import narrow_vectors, weighted_sum, width_of
from spinformer.kernels.split import products_across, products_along
from spinformer.kernels.tokens import normed
from tests.kernels.test_twins import DEVICE, assert_twins, fused, pytestmark, random_mask  # noqa: F401

HEADS = 2
FORMS = {  # tokens, columns, couplings
    "narrow": (37, 8, "linear"),
    "large": (37, 8, "linear"),
    "resident": (19, 24, "linear"),
    "streamed": (19, 24, "linear"),
    "pairs": (9, 8, "dense"),
}


def shrink(monkeypatch, form):
    """Make the limits of a form so low that short texts meet it."""
    if form == "large":
        monkeypatch.setattr(spins, "MAX_FACTORED", 16)
    if form == "streamed":
        monkeypatch.setattr(spins, "MAX_RESIDENT", 16)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("max_steps", [1, 25])  # with 1, no sample converges
def test_attention_of_a_game(fused, monkeypatch, form, kind, scale, max_steps):  # noqa: F811
    if support.INTERPRETED and (scale != 1.0 or kind == torch.bfloat16):
        pytest.skip("slow in the interpreter, whose products of bfloat16 are wrong")
    shrink(monkeypatch, form)
    (n, d, couplings), generator = FORMS[form], torch.Generator().manual_seed(0)
    games, width = 2 * HEADS, width_of(HEADS * (d + 1))
    mapped = torch.randn(2, n, width, generator=generator)
    mapped[..., : HEADS * d] *= scale
    mapped = mapped.to(kind).float().to(DEVICE)
    mask, bias = random_mask(2, n, generator), torch.randn(HEADS, generator=generator).to(DEVICE)
    by_head = mask.repeat_interleave(HEADS, 0)
    slope, along = (torch.randn(games, size, generator=generator).to(DEVICE) for size in (n, d))
    options = Settings(couplings=couplings, max_steps=max_steps)

    def run(on):
        fused(on)
        leaf, lean = mapped.clone().requires_grad_(), bias.clone().requires_grad_()
        warm = torch.full((games,), 0.25, device=DEVICE, requires_grad=True)
        units = Units(torch.ones(games, device=DEVICE), torch.full((games,), 0.5, device=DEVICE))
        if on:
            known = narrow_vectors(leaf.to(kind), lean, mask, HEADS, d)
            game, gate = NormGame.of_narrow(known, by_head, "identity", by_column=True), known.gate
            pooled = lambda alpha: weighted_sum(alpha, known)  # noqa: E731
        else:
            values = leaf[..., : HEADS * d].unflatten(-1, (HEADS, d)).transpose(1, 2).flatten(0, 1)
            gate = (leaf[..., HEADS * d : HEADS * (d + 1)] + lean).sigmoid() * mask[..., None]
            game, gate = NormGame.of_shares(values, by_head, "identity", by_column=True), gate.mT.flatten(0, 1)
            pooled = lambda alpha: torch.einsum("bn,bnd->bd", alpha, values)  # noqa: E731
        found = game_attention(game, gate, warm, options, units, budget=5, seed=torch.tensor(7), shared=False)
        z, dense = pooled(found.attention), found.couplings.dense()
        loss = (found.attention * slope).sum() + found.fields.sin().sum() + (z * along).sum() / scale
        (loss + dense.square().sum() + found.shapley.square().sum()).backward()
        slopes = [
            leaf.grad[..., : HEADS * d] * scale,
            leaf.grad[..., HEADS * d : HEADS * (d + 1)],
            lean.grad,
            warm.grad,
        ]
        return [found.attention.detach(), found.fields.detach(), dense.detach(), z.detach(), *slopes]

    assert_twins(run(False), run(True), 8e-3 if kind == torch.bfloat16 else 1e-3)


@pytest.mark.parametrize(("kind", "factor"), [(torch.float16, 1.0), (torch.bfloat16, 1e15), (torch.bfloat16, 1e-15)])
@pytest.mark.parametrize("preset", [{}, {"values": "raw", "gate": 0.3}, {"activation": "tanh"}])
@pytest.mark.parametrize("heard", [False, True])  # by somebody who listens to W_v, which is then a product of its own
def test_layer(fused, preset, kind, factor, heard):  # noqa: F811
    """The whole layer in 16 bits: within what rounding does to the plain one."""
    if support.INTERPRETED and kind == torch.bfloat16:
        pytest.skip("the interpreter's products of bfloat16 are wrong")
    generator = torch.Generator().manual_seed(0)
    x, mask = torch.randn(2, 11, 16, generator=generator).to(DEVICE), random_mask(2, 11, generator)
    torch.manual_seed(0)
    layer = NeuroGameAttention(16, heads=2, samples=5, **preset).to(DEVICE, kind)
    heads = []
    with torch.no_grad():
        layer.value.weight *= factor
    if heard:
        layer.value.register_forward_hook(lambda module, inputs, output: heads.append(output.shape))

    def run(on):
        fused(on)
        layer.zero_grad()
        leaf = x.to(kind).requires_grad_()
        out = layer(leaf, mask, torch.Generator().manual_seed(1))
        (out.attention.square().sum() + out.fields.sin().sum()).backward()
        slopes = [layer.value.weight.grad.float() * factor, leaf.grad.float()]
        return [out.attention.detach(), out.fields.detach(), *slopes]

    assert_twins(run(False), run(True), 2e-2)
    assert len(heads) == 2 * heard


def test_a_part_of_the_gradient_does_not_wait_for_the_rest(fused):  # noqa: F811
    """A backward pass that ends before the vectors leaves nothing for the next one."""
    fused(True)
    kind = torch.float16
    mapped = torch.randn(1, 7, 16, generator=torch.Generator().manual_seed(0)).to(DEVICE, kind).requires_grad_()
    known = narrow_vectors(mapped, None, None, 1, 16)
    alpha = torch.rand(1, 7, device=DEVICE, requires_grad=True)
    pooled = weighted_sum(alpha, known)
    expected = torch.autograd.grad(known.squares.sum(), mapped, retain_graph=True)[0]
    torch.autograd.grad(pooled.sum(), alpha, retain_graph=True)
    found = torch.autograd.grad(known.squares.sum(), mapped, retain_graph=True)[0]
    assert torch.equal(expected, found)
    both = torch.autograd.grad(pooled.sum() + known.squares.sum(), mapped)[0]
    assert_twins([expected.float() + alpha[..., None].detach()], [both.float()], 2e-3)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("d", [24, 768])
def test_normed_tokens(kind, d):
    generator = torch.Generator().manual_seed(0)
    x, slope = (3 * torch.randn(2, 5, d, generator=generator).to(DEVICE) + 1 for _ in range(2))
    slope, leaf, other = slope.to(kind), x.clone().requires_grad_(), x.clone().requires_grad_()
    found, expected = normed(leaf, kind), functional.layer_norm(other, (d,))
    found.backward(slope)
    expected.backward(slope.float())
    rounding = 2 * torch.finfo(kind).eps
    assert_twins([expected.detach(), other.grad], [found.detach().float(), leaf.grad], rounding)


@pytest.mark.parametrize(("n", "d", "draws"), [(5, 8, 3), (300, 64, 51), (33, 72, 130), (70, 768, 51)])
def test_split_products(n, d, draws):
    """As exact as products of float32 numbers."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(4, n, d, generator=generator).to(DEVICE, torch.bfloat16)
    left = [torch.randn(4, draws, size, generator=generator).to(DEVICE) for size in (d, n)]
    wide = vectors.double()
    expected = [left[0].double() @ wide.mT, left[1].double() @ wide]
    found = [products_across(left[0], vectors).double(), products_along(left[1], vectors).double()]
    assert_twins(expected, found, 3e-6)
