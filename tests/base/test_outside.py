"""The way out of an operator: gradients are there, and no thread waits for itself."""

import threading

import torch
from torch import Tensor

from spinformer._base.outside import outside_operators
from spinformer.kernels.operator import operator


def slope(x, scale, threads):
    threads.append(threading.get_ident())
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        loss = scale * x.square().sum()
    return torch.autograd.grad(loss, [x])


def test_work_stays_in_the_thread_of_a_backward_pass():
    """A GPU's gradients are all computed in one thread: another thread that needs it would wait for ever."""
    threads = []

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            threads.append(threading.get_ident())
            return outside_operators(slope, gradient, 3.0, threads)[0]

    x = torch.ones(2, requires_grad=True)
    Function.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    assert threads[0] == threads[1]


def test_a_node_of_a_graph_gets_gradients_from_another_thread():
    threads = []

    @operator("test_outside")
    def sloped(x: Tensor) -> Tensor:
        return outside_operators(lambda own: slope(own, 2.0, threads), x)[0]

    x = torch.ones(2)
    assert sloped.node(x).tolist() == [4.0, 4.0]
    assert threads[0] != threading.get_ident()
    assert sloped(x).tolist() == [4.0, 4.0]
    assert threads[1] == threading.get_ident()
