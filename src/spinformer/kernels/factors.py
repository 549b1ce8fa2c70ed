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
MAX_LANCZOS = 4096  # spins whose vectors one program combines
ACCURACY = 1e-4  # largest |A x - b| / |b| of an equation A x = b that counts as solved


class Blocks(NamedTuple):
    """How U is cut: rows that a program holds at once, rows of a block, blocks, and the power of two above the rank.

    columns, others: such powers for what is read from the narrow columns, and for the rest; all of it and 0 without.
    """

    rows: int
    chunk: int
    parts: int
    width: int
    columns: int
    others: int

    @property
    def sizes(self) -> dict[str, int]:
        """As the kernels take them."""
        lines = min(1024, block(self.chunk))
        return {
            "W": self.width, "LINE": lines, "ROWS": self.rows, "R": self.columns, "A": self.others, "num_warps": 8
        }  # fmt: skip


def can_factor(tensors: list[Tensor]) -> bool:
    """Whether these are factors, weights and diagonal that the kernels take, with or without narrow columns."""
    return len(tensors) in (3, 4) and usable(*tensors[:3]) and tensors[0].shape[2] <= LARGEST_RANK


def blocks_of(batch: int, n: int, rank: int, split: int = 0) -> Blocks:
    """Blocks of rows for about PROGRAMS programs; split: narrow columns, 0 for none."""
    width = block(rank)
    columns, others = (block(split), block(rank - split)) if split else (width, 0)
    rows = max(TILE // columns, 4)
    parts = max(1, min(-(-n // rows), -(-PROGRAMS // batch)))
    chunk = -(-n // (parts * rows)) * rows
    return Blocks(rows, chunk, -(-n // chunk), width, columns, others)


class Factored(NamedTuple):
    """Couplings as the kernels take them: with narrow columns, or without, and then with anything in their place."""

    factors: Tensor
    weights: Tensor
    diagonal: Tensor
    narrow: Tensor
    split: int

    @classmethod
    def of(cls, tensors: list[Tensor]) -> "Factored":
        """From those that `can_factor` knows."""
        factors, weights, diagonal, *narrow = (tensor.contiguous() for tensor in tensors)
        if not narrow:
            return cls(factors, weights, diagonal, factors, 0)
        return cls(factors, weights, diagonal, narrow[0], narrow[0].shape[2])

    def blocks(self) -> Blocks:
        """How the factors are cut."""
        batch, n, rank = self.factors.shape
        return blocks_of(batch, n, rank, self.split)

    def join(self, partial: Tensor, done: Tensor | None, total: Tensor, cut: Blocks) -> None:
        """Add up the blocks' parts of U' x, times the weights, of samples that are not done, or of all."""
        from spinformer.kernels.device import low_rank as device

        batch, _, rank = self.factors.shape
        device.join[(batch, -(-cut.width // 32))](
            partial, self.weights, partial if done is None else done, total, rank, cut.parts,
            W=cut.width, C=min(32, cut.width), P=min(64, block(cut.parts)), CHECKED=done is not None,
        )  # fmt: skip

    def product(self, x: Tensor) -> Tensor:
        """J x, (B, n)."""
        from spinformer.kernels.device import low_rank as device

        cut, (batch, n, rank), x = self.blocks(), self.factors.shape, x.contiguous()
        partial, total = x.new_empty(batch, cut.parts, cut.width), x.new_empty(batch, cut.width)
        grid, out = (batch, cut.parts), torch.empty_like(x)
        device.pull_vector[grid](
            self.factors, self.narrow, x, partial, n, rank, self.split, cut.chunk, cut.parts, **cut.sizes
        )
        self.join(partial, None, total, cut)
        device.push_vector[grid](
            self.factors, self.narrow, self.diagonal, x, total, out, n, rank, self.split, cut.chunk, **cut.sizes
        )
        return out


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

    system = Factored.of(couplings)
    factors, _, diagonal, narrow, split = system
    (batch, n), rank, cut = fields.shape, factors.shape[2], system.blocks()
    chunk, parts, width = cut.chunk, cut.parts, cut.width
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
    sizes = cut.sizes
    for count in range(max_steps + 1):
        slot = count % WINDOW
        device.pull[(batch, parts)](
            factors, narrow, states, gaps, mixing, step, done, partial, n, rank, split, slot, chunk, parts,
            FIRST=count == 0, CLIPPED=anderson, **sizes,
        )  # fmt: skip
        system.join(partial, done, total, cut)
        device.push[(batch, parts)](
            factors, narrow, diagonal, fields, cold, given, states, gaps, images, done, total, found,
            n, rank, split, slot, chunk, parts,
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

    system = Factored.of(couplings)
    factors, _, diagonal, narrow, split = system
    (batch, n), rank, cut = right.shape, factors.shape[2], system.blocks()
    chunk, parts, width = cut.chunk, cut.parts, cut.width
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
    sizes = cut.sizes
    for count in range(most):
        device.pull_adjoint[(batch, parts)](
            factors, narrow, root, residues, directions, images, squares, sums, stopped, partial,
            n, rank, split, count, chunk, parts, most + 1, FIRST=count == 0, **sizes,
        )  # fmt: skip
        system.join(partial, stopped, total, cut)
        device.push_adjoint[(batch, parts)](
            factors, narrow, diagonal, root, cold, directions, images, stopped, total, curvatures,
            n, rank, split, chunk, parts, **sizes,
        )  # fmt: skip
        device.step_adjoint[(batch, parts)](
            solution, residues, directions, images, squares, curvatures, sums, stopped,
            n, count, chunk, parts, most + 1, LINE=cut.sizes["LINE"],
        )  # fmt: skip
        device.stop_adjoint[(batch,)](curvatures, sums, goal, stopped, reached, parts, num_warps=1)
        if (count + 1) % CHECK_EVERY_DEFAULT == 0 and all_done(stopped == 0, count):
            break
    return solution, reached <= square * ACCURACY**2


def factored_leading_vector(couplings: list[Tensor], inverse_unit: Tensor) -> Tensor:
    """The unit vector x of largest |x' J x| in the span of |J 1|, J |J 1|, ..., (B, n), of at most MAX_LANCZOS spins

    As `spinformer.kernels.spins.leading_vector`, for couplings of any size. Its twin: `spinformer.ising.lanczos`.
    """
    from spinformer.kernels.device import lanczos as device

    system, (batch, n, _) = Factored.of(couplings), couplings[0].shape
    inverse_unit = inverse_unit.contiguous()
    basis, images = inverse_unit.new_zeros(2, batch, SLOTS, n).unbind()
    x, sizes = inverse_unit.new_ones(batch, n), {"N": block(n), "num_warps": 8}
    for step in range(-1, SLOTS):
        device.next_vector[(batch,)](
            system.product(x), inverse_unit, basis, images, x, n, max(step, 0), FIRST=step < 0, **sizes
        )
    device.combine[(batch,)](basis, images, x, n, **sizes)
    return x
