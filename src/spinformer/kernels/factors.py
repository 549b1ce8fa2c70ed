"""The mean field and its adjoint for large low-rank couplings: a few launches a step, and no question to the device."""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.recording import recording
from spinformer._base.stopping import CHECK_EVERY_DEFAULT, all_done
from spinformer.kernels.support import block, usable

WINDOW, SLOTS = 5, 8
TILE = 8192  # numbers of U that a program holds
PROGRAMS = 528  # of a launch, four for each processor of a large GPU
LARGEST_RANK = 1024
MAX_ITERATIONS = 100  # of conjugate gradients
RECORDED_ITERATIONS = 32  # a CUDA graph has no condition: so many are always made
ACCURACY = 1e-4  # largest |A x - b| / |b| of an equation A x = b that counts as solved


class Blocks(NamedTuple):
    """How U is cut: rows that a program holds at once, rows of a block, blocks, and the power of two above the rank."""

    rows: int
    chunk: int
    parts: int
    width: int


def can_factor(tensors: list[Tensor]) -> bool:
    """Whether these are factors, weights and diagonal that the kernels take."""
    return len(tensors) == 3 and usable(*tensors) and tensors[0].shape[2] <= LARGEST_RANK


def blocks_of(batch: int, n: int, rank: int) -> Blocks:
    """Blocks of rows for about PROGRAMS programs."""
    width = block(rank)
    rows = max(TILE // width, 4)
    parts = max(1, min(-(-n // rows), -(-PROGRAMS // batch)))
    chunk = -(-n // (parts * rows)) * rows
    return Blocks(rows, chunk, -(-n // chunk), width)


def solve_factored(
    fields: Tensor,
    cold: Tensor,
    start: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    max_steps: int,
    damping: float,
    tol: float,
    anderson: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """m_i = tanh(cold (h_i + sum_j J_ij m_j)), each sample until its residual is at most tol: m, residual, steps

    As `spinformer.kernels.spins.solve_spins`, for couplings of any size. Its twin: `spinformer.ising.mean_field`.
    """
    from spinformer.kernels.device import factors as device

    factors, weights, diagonal = (tensor.contiguous() for tensor in couplings)
    (batch, n), rank = fields.shape, factors.shape[2]
    rows, chunk, parts, width = blocks_of(batch, n, rank)
    states, gaps = fields.new_zeros(batch, WINDOW, n), fields.new_zeros(batch, WINDOW, n)
    states[:, 0] = start
    gram, mixing = fields.new_zeros(batch, SLOTS, SLOTS), fields.new_zeros(batch, SLOTS)
    step, length = fields.new_full((batch,), damping), fields.new_full((batch,), torch.inf)
    residual = fields.new_empty(batch)
    done, last, steps = (torch.zeros(batch, dtype=torch.int64, device=fields.device) for _ in range(3))
    partial, total = fields.new_empty(batch, parts, width), fields.new_empty(batch, width)
    found, images = fields.new_empty(batch, parts, SLOTS), torch.empty_like(fields)
    fields, cold = fields.contiguous(), cold.contiguous()
    given = fields if mask is None else mask.contiguous()
    sizes = {"LINE": min(1024, block(chunk)), "ROWS": rows, "R": width, "num_warps": 8}
    joins, joined = (batch, -(-width // 32)), {"R": width, "C": min(32, width), "P": min(64, block(parts))}
    for count in range(max_steps + 1):
        slot = count % WINDOW
        device.pull[(batch, parts)](
            factors, states, gaps, mixing, step, done, partial, n, rank, slot, chunk, parts,
            FIRST=count == 0, CLIPPED=anderson, **sizes,
        )  # fmt: skip
        device.join[joins](partial, weights, done, total, rank, parts, **joined)
        device.push[(batch, parts)](
            factors, diagonal, fields, cold, given, states, gaps, images, done, total, found,
            n, rank, slot, chunk, parts,
            MASKED=mask is not None, **sizes,
        )  # fmt: skip
        device.decide[(batch,)](
            found, gram, mixing, step, length, done, residual, steps, last, count, slot, parts, max_steps, damping, tol,
            ANDERSON=anderson, num_warps=1,
        )  # fmt: skip
        if (count + 1) % CHECK_EVERY_DEFAULT == 0 and all_done(done == 0, count):
            break
    state = states[torch.arange(batch, device=fields.device), last]
    return state, residual, steps


def solve_factored_adjoint(right: Tensor, root: Tensor, cold: Tensor, couplings: list[Tensor]) -> tuple[Tensor, Tensor]:
    """x of (I - cold root J root) x = right, (B, n), by conjugate gradients, and which samples have it, (B,)

    right, root: (B, n); cold: (B,). Its twin: `spinformer.ising.implicit`.
    """
    from spinformer.kernels.device import factors as device

    factors, weights, diagonal = (tensor.contiguous() for tensor in couplings)
    (batch, n), rank = right.shape, factors.shape[2]
    rows, chunk, parts, width = blocks_of(batch, n, rank)
    most = RECORDED_ITERATIONS if recording() else MAX_ITERATIONS
    squares = right.new_zeros(batch, most + 1)
    square = right.square().sum(1)
    squares[:, 0] = square
    goal = square * (8 * torch.finfo(right.dtype).eps) ** 2
    stopped, reached = (square <= goal).long(), square.clone()
    solution, residues = torch.zeros_like(right), right.clone()
    directions, images = torch.empty_like(residues), torch.empty_like(residues)
    partial, total = right.new_empty(batch, parts, width), right.new_empty(batch, width)
    sums, curvatures = right.new_empty(batch, parts), right.new_empty(batch, parts)
    root, cold = root.contiguous(), cold.contiguous()
    sizes = {"LINE": min(1024, block(chunk)), "ROWS": rows, "R": width, "num_warps": 8}
    joins, joined = (batch, -(-width // 32)), {"R": width, "C": min(32, width), "P": min(64, block(parts))}
    for count in range(most):
        device.pull_adjoint[(batch, parts)](
            factors, root, residues, directions, images, squares, sums, stopped, partial,
            n, rank, count, chunk, parts, most + 1, FIRST=count == 0, **sizes,
        )  # fmt: skip
        device.join[joins](partial, weights, stopped, total, rank, parts, **joined)
        device.push_adjoint[(batch, parts)](
            factors, diagonal, root, cold, directions, images, stopped, total, curvatures,
            n, rank, chunk, parts, **sizes,
        )  # fmt: skip
        device.step_adjoint[(batch, parts)](
            solution, residues, directions, images, squares, curvatures, sums, stopped,
            n, count, chunk, parts, most + 1, LINE=sizes["LINE"],
        )  # fmt: skip
        device.stop_adjoint[(batch,)](curvatures, sums, goal, stopped, reached, parts, num_warps=1)
        if (count + 1) % CHECK_EVERY_DEFAULT == 0 and all_done(stopped == 0, count):
            break
    return solution, reached <= square * ACCURACY**2
