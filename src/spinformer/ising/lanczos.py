"""Lanczos' method for the largest |eigenvalue| of a symmetric matrix that is only ever multiplied with."""

from collections.abc import Callable

import torch
from torch import Tensor


def leading_vector(product: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """The unit vector x of largest |x' J x| among those that start, J start, J^2 start, ... span, (B, n, 1).

    product: J times a column; start: (B, n, 1); steps: how many of them.
    """
    nothing = start.new_zeros(())
    fresh = unit(start)
    found, images = [fresh], [product(fresh)]  # columns, (B, n, 1)
    for _ in range(min(steps, start.shape[1]) - 1):
        basis, image = torch.cat(found, -1), images[-1]
        rows, fresh = basis.mT, image
        for _ in range(2):  # once more against rounding
            fresh = torch.baddbmm(fresh, basis, torch.bmm(rows, fresh), alpha=-1)
        size, length = _length(fresh), _length(image)
        fresh = torch.where(size > 1e-4 * length, fresh / size, nothing)  # else nothing new but rounding
        found.append(fresh)
        images.append(product(fresh))
    basis = torch.cat(found, -1)  # (B, n, k)
    small = torch.bmm(basis.mT, torch.cat(images, -1))  # J within the basis; eigh reads one half of it
    values, vectors = torch.linalg.eigh(small)
    best = values.abs().argmax(-1)[:, None, None].expand(-1, small.shape[-1], 1)
    return unit(torch.bmm(basis, vectors.gather(2, best)))


def unit(x: Tensor) -> Tensor:
    """x / |x|, each column on its own; 0 stays 0."""
    return x / _length(x).clamp_min(torch.finfo(x.dtype).tiny)


def _length(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=1, keepdim=True)
