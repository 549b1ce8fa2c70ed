"""Roots and quotients whose gradient is 0, not infinite, where there is nothing."""

import torch

from spinformer._base.precision import safe_divide, safe_sqrt


def test_safe_sqrt():
    x = torch.tensor([4.0, 0.0, -1e-9, 0.25], requires_grad=True)
    root = safe_sqrt(x)
    root.sum().backward()
    assert root.tolist() == [2.0, 0.0, 0.0, 0.5]
    assert x.grad.tolist() == [0.25, 0.0, 0.0, 1.0]


def test_safe_divide():
    a = torch.tensor([[3.0], [5.0]], requires_grad=True)
    b = torch.tensor([2.0, 0.0], requires_grad=True)
    quotient = safe_divide(a, b)
    quotient.sum().backward()
    assert quotient.tolist() == [[1.5, 0.0], [2.5, 0.0]]
    assert a.grad.tolist() == [[0.5], [0.5]]
    assert b.grad.tolist() == [-2.0, 0.0]


def test_gradients_and_their_gradients():
    a, b = (torch.rand(3, n, dtype=torch.float64).add(0.5).requires_grad_() for n in (4, 1))
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(safe_divide, (a, b))
        assert check(safe_sqrt, (a,))
