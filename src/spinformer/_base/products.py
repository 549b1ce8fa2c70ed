"""Matrix products with a long inner dimension, cut so that a GPU has enough to do side by side."""

import torch
from torch import Tensor

PROGRAMS = 1056  # that a product should have at least, eight for each processor of a large GPU
TILE = 64  # rows and columns of the result that a program of a product makes
SHORTEST = 256  # terms of a sum that are worth a program
ALIGNED = 16  # numbers: chunks of such a multiple are read fastest


def long_product(left: Tensor, right: Tensor, chunks: int | None = None) -> Tensor:
    """left right = sum over chunks c of left_c right_c,   (B, k, n) and (B, n, d) -> (B, k, d)

    left_c and right_c hold one chunk of the n terms; what is left over after equal chunks is a product of its own. A
    product of few rows and columns is made by few programs, each of which runs through all n terms. Chunks run side by
    side, and their results are added in a fixed order. chunks: how many; by default as many as pay, by the shapes
    alone, and on a CPU one, which is the product as it is.
    """
    batch, rows, n = left.shape
    if chunks is None:
        chunks = chunks_of(batch, rows, n, right.shape[2]) if left.is_cuda and not torch.compiler.is_compiling() else 1
    size = n // chunks
    size -= size % ALIGNED if size > ALIGNED else 0
    if chunks == 1 or size == 0:
        return torch.bmm(left, right)
    whole = chunks * size
    first = left[..., :whole].unflatten(2, (chunks, size)).transpose(1, 2).flatten(0, 1)  # (B chunks, k, size)
    second = right[:, :whole].unflatten(1, (chunks, size)).flatten(0, 1)  # (B chunks, size, d)
    product = torch.bmm(first, second).unflatten(0, (batch, chunks)).sum(1)
    return product if whole == n else torch.baddbmm(product, left[..., whole:], right[:, whole:])


def chunks_of(batch: int, rows: int, n: int, columns: int) -> int:
    """Chunks of n terms that give a product PROGRAMS programs; fewer where they would be short or leave a rest."""
    programs = batch * -(-rows // TILE) * -(-columns // TILE)
    most = max(1, min(PROGRAMS // max(programs, 1), n // SHORTEST))
    even = (count for count in range(most, most // 2, -1) if n % (ALIGNED * count) == 0)
    return next(even, most)


def narrow_product(left: Tensor, right: Tensor) -> Tensor:
    """left right of numbers of 16 bits, (B, k, n) and (B, n, d), with float32 sums and result: nothing is rounded."""
    if not left.is_cuda:
        return torch.bmm(left.float(), right.float())
    return torch.bmm(left, right, out_dtype=torch.float32)


def mixed_product(left: Tensor, narrow: Tensor) -> Tensor:
    """left right of float32 numbers and of numbers of 16 bits, (B, k, n) and (B, n, d), as exact as in float32."""
    return split_product(left, narrow) if narrow.dtype == torch.bfloat16 else torch.bmm(left, narrow.float())


def split_product(left: Tensor, narrow: Tensor) -> Tensor:
    """left right, where right is bfloat16 and left float32, which is a sum of three numbers of bfloat16, one for 8 bits

    (B, k, n) and (B, n, d), as exact as a product in float32, on a GPU's units for 16 bits.
    """
    first = left.to(narrow.dtype)
    rest = left - first
    second = rest.to(narrow.dtype)
    parts = torch.cat([first, second, (rest - second).to(narrow.dtype)], 1)
    return narrow_product(parts, narrow).unflatten(1, (3, -1)).sum(1)
