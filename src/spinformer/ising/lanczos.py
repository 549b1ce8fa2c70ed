"""Lanczos' method for the largest |eigenvalue| of a symmetric matrix, by products with vectors alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spinformer._base.products import long_product
from spinformer.kernels.factors import MAX_LANCZOS, can_factor, factored_leading_vector
from spinformer.kernels.operator import operator
from spinformer.kernels.spins import LANCZOS_STEPS, form_of, top_vector
from spinformer.kernels.spins import leading_vector as fused_leading_vector
from spinformer.kernels.support import usable


@operator("leading_vector")
def leading_of(couplings: list[Tensor], inverse_unit: Tensor) -> Tensor:
    """`leading_vector` of J from the tensors that define it, after LANCZOS_STEPS steps, (B, n), as one operator.

    couplings: a matrix, or factors, weights and diagonal; inverse_unit: a power of two, (B,), that brings J near 1.
    """
    if form_of(couplings) is not None:
        return fused_leading_vector(couplings, inverse_unit)
    if can_factor(couplings) and couplings[0].shape[1] <= MAX_LANCZOS:
        return factored_leading_vector(couplings, inverse_unit)
    unit = inverse_unit[:, None, None]
    if len(couplings) == 4:  # narrow columns, and the others
        couplings = [torch.cat([couplings[3].float(), couplings[0]], -1), *couplings[1:3]]

    def product(x: Tensor) -> Tensor:
        x = x * unit
        if len(couplings) == 1:
            return torch.bmm(couplings[0], x)
        factors, weights, diagonal = couplings[:3]
        inner = weights[..., None] * torch.bmm(factors.mT, x)
        return torch.addcmul(torch.bmm(factors, inner), diagonal[..., None], x, value=-1)

    return leading_vector(product, first_vector(product, couplings[0]), LANCZOS_STEPS).squeeze(-1)


@leading_of.register_fake
def _(couplings: Any, inverse_unit: Tensor) -> Tensor:
    return couplings[0].new_empty(couplings[0].shape[:2])


def first_vector(product: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """|J 1|, which permutes with the spins, and not 0, (B, n, 1)."""
    return product(like.new_ones(*like.shape[:2], 1)).abs() + 1e-3


def leading_vector(product: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """The unit vector x of largest |x' J x| in the span of start, J start, J^2 start, ..., (B, n, 1).

    product: J times a column; start: (B, n, 1); steps: the dimension of the span.
    """
    zero = start.new_zeros(())
    vector = unit(start)
    vectors, images = [vector], [product(vector)]  # columns, (B, n, 1)
    for _ in range(min(steps, start.shape[1]) - 1):
        basis, image = torch.cat(vectors, -1), images[-1]
        rows, vector = basis.mT, image
        for _ in range(2):  # twice, against rounding
            vector = torch.baddbmm(vector, basis, torch.bmm(rows, vector), alpha=-1)
        size, length = _length(vector), _length(image)
        vector = torch.where(size > 1e-4 * length, vector / size, zero)  # a smaller remainder is rounding
        vectors.append(vector)
        images.append(product(vector))
    basis = torch.cat(vectors, -1)  # (B, n, k)
    small = long_product(basis.mT, torch.cat(images, -1))  # J within the basis
    return unit(torch.bmm(basis, _top(small)))


def _top(small: Tensor) -> Tensor:
    """The eigenvector of largest |eigenvalue|, (B, k, k) -> (B, k, 1). On a GPU without a wait for the device."""
    if usable(small) and small.shape[-1] <= LANCZOS_STEPS and not torch.compiler.is_compiling():
        return top_vector(small)[..., None]
    eigenvalues, eigenvectors = torch.linalg.eigh(small)  # which reads one half of it
    best = eigenvalues.abs().argmax(-1)[:, None, None].expand(-1, small.shape[-1], 1)
    return eigenvectors.gather(2, best)


def unit(x: Tensor) -> Tensor:
    """x / |x|, each column on its own; 0 stays 0."""
    return x / _length(x).clamp_min(torch.finfo(x.dtype).tiny)


def _length(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=1, keepdim=True)
