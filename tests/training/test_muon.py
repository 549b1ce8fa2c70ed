"""Muon, against singular values and against torch's own."""

import pytest
import torch
from torch import nn

from spinformer.training.muon import MATRIX_RATE, Muon, is_matrix, optimizers_of, orthogonal

SHAPES = [(9, 9), (12, 40), (40, 12)]


def weights(shape, seed=0):
    return nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(seed)))


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_come_near_one(shape):
    """Their vectors stay, even where the largest is thirty times the smallest."""
    u, _, v = torch.linalg.svd(weights(shape).detach(), full_matrices=False)
    values = torch.logspace(0, -1.5, min(shape))
    found = orthogonal(u * values @ v)
    inside = u.mT @ found @ v.mT
    torch.testing.assert_close(inside, torch.diag(inside.diagonal()), atol=1e-3, rtol=0)
    assert float(inside.diagonal().min()) > 0.5
    assert float(inside.diagonal().max()) < 1.3
    assert torch.equal(orthogonal(torch.zeros(shape)), torch.zeros(shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_as_torch_does(shape):
    """Ten steps on ten gradients; torch rounds to bfloat16 within each."""
    ours, theirs = weights(shape), weights(shape)
    optimizers = (
        Muon([ours], 0.02, 0.1),
        torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn="original"),
    )
    for step in range(10):
        for weight, optimizer in zip((ours, theirs), optimizers, strict=True):
            weight.grad = weights(shape, 1 + step).detach()
            optimizer.step()
    moved, expected = (weight.detach() - weights(shape).detach() for weight in (ours, theirs))
    assert float((moved - expected).norm() / expected.norm()) < 0.02


def test_a_step_by_hand():
    weight, gradient = weights((20, 10)), weights((20, 10), 1).detach()
    before = weight.detach().clone()
    optimizer = Muon([weight], 0.1, 0.5)
    weight.grad = gradient
    optimizer.step()
    torch.testing.assert_close(weight.detach(), 0.95 * before - 0.1 * 2**0.5 * orthogonal(gradient))
    weight.grad = None
    kept = weight.detach().clone()
    optimizer.step()
    assert torch.equal(weight.detach(), kept)


def test_matrices_of_one_shape_together():
    """Each moves as it does alone."""
    several, alone = ([weights((12, 10), seed) for seed in range(3)] for _ in range(2))
    together, each = Muon(several, 0.1, 0.1), [Muon([weight], 0.1, 0.1) for weight in alone]
    for step in range(3):
        for weight, twin in zip(several, alone, strict=True):
            weight.grad = twin.grad = weights((12, 10), 10 + step).detach() * weight.detach()
        together.step()
        for optimizer in each:
            optimizer.step()
    torch.testing.assert_close([w.detach() for w in several], [w.detach() for w in alone])


def test_what_is_a_matrix():
    assert is_matrix(torch.zeros(9, 200))
    assert not any(is_matrix(torch.zeros(shape)) for shape in ((200,), (3, 200), (200, 8), (10, 10, 10)))


def test_which_weights_each_has():
    """Muon the matrices and AdamW the others, or AdamW all; every weight once."""
    layer = nn.Linear(20, 10)
    found = optimizers_of(list(layer.parameters()), 1e-3, 0.1, muon=True)
    held = {name: [weight for group in each.param_groups for weight in group["params"]] for name, each in found.items()}
    assert list(held) == ["adamw", "muon"]
    assert held["adamw"][0] is layer.bias
    assert held["muon"][0] is layer.weight
    assert found["muon"].param_groups[0]["lr"] == MATRIX_RATE * found["adamw"].param_groups[0]["lr"]
    alone = optimizers_of(list(layer.parameters()), 1e-3, 0.1, muon=False)
    assert list(alone) == ["adamw"]
    assert len(alone["adamw"].param_groups[0]["params"]) == 2
