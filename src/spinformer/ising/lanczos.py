"""Lanczos' method for the largest |eigenvalue| of a symmetric matrix, by products with vectors alone."""

from collections.abc import Callable

import torch
from torch import Tensor


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
    small = torch.bmm(basis.mT, torch.cat(images, -1))  # J within the basis; eigh reads one half of it
    eigenvalues, eigenvectors = torch.linalg.eigh(small)
    best = eigenvalues.abs().argmax(-1)[:, None, None].expand(-1, small.shape[-1], 1)
    return unit(torch.bmm(basis, eigenvectors.gather(2, best)))


def unit(x: Tensor) -> Tensor:
    """x / |x|, each column on its own; 0 stays 0."""
    return x / _length(x).clamp_min(torch.finfo(x.dtype).tiny)


def _length(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=1, keepdim=True)
