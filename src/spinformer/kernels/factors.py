"""The mean field and its adjoint for large low-rank couplings: a few launches a step, and no question to the device."""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.recording import recording
from spinformer._base.stopping import CHECK_EVERY_DEFAULT, all_done
from spinformer.kernels.support import block, usable

WINDOW, SLOTS = 5, 8
TILE = 8192  # numbers of U that a program holds
PIECE = 256  # columns of a row that one warp holds
MOST_ADDED = 1024  # numbers of the blocks' parts that every program adds up by itself
STAGES = 4  # tiles that a program holds or is loading, and one
PROGRAMS = 528  # of a launch, four for each processor of a large GPU
LARGEST_RANK = 1024
MAX_ITERATIONS = 100  # of conjugate gradients
RECORDED_ITERATIONS = 32  # a CUDA graph has no condition: so many are always made
RENEWED = 6  # iterations after which U' r is no longer only updated
MAX_LANCZOS = 2**23  # spins: blocks of rows are numbered within 16 bits
ACCURACY = 1e-4  # largest |A x - b| / |b| of an equation A x = b that counts as solved


class Blocks(NamedTuple):
    """How U is cut: rows that a program holds at once, rows of a block, blocks, and the power of two above the rank."""

    rows: int
    chunk: int
    parts: int
    width: int

    @property
    def line(self) -> int:
        """Rows that a program takes at once where it holds no tile."""
        return min(1024, block(self.chunk))

    @property
    def few(self) -> int:
        """The power of two above the number of blocks, where each program adds up their parts itself; 0 elsewhere."""
        return block(self.parts, 2) if self.parts * self.width <= MOST_ADDED else 0

    @property
    def joined(self) -> dict[str, int]:
        """Columns and blocks whose parts of U' x are added at once, as the kernels take them."""
        return {"W": self.width, "JOINED": min(32, self.width), "PARTS": min(64, block(self.parts))}


def can_factor(tensors: list[Tensor]) -> bool:
    """Whether these are factors, weights and diagonal that the kernels take; or those and the columns before them."""
    return len(tensors) in (3, 4) and usable(*tensors[:3]) and tensors[1].shape[1] <= LARGEST_RANK


def blocks_of(batch: int, n: int, rank: int) -> Blocks:
    """Blocks of rows for about PROGRAMS programs."""
    width = block(rank)
    rows = max(TILE // width, 4)
    parts = max(1, min(-(-n // rows), -(-PROGRAMS // batch)))
    chunk = -(-n // (parts * rows)) * rows
    return Blocks(rows, chunk, -(-n // chunk), width)


class Factored(NamedTuple):
    """Couplings as the kernels take them: U in its first `split` columns, in 16 bits or all of it, and in the others.

    unit: 4 where rows of the others start at multiples of 16 bytes.
    """

    first: Tensor
    others: Tensor
    weights: Tensor
    diagonal: Tensor
    stride: int
    unit: int

    @classmethod
    def of(cls, tensors: list[Tensor]) -> "Factored":
        """From those that `can_factor` knows."""
        factors, weights, diagonal, *narrow = (tensor.contiguous() for tensor in tensors)
        if not narrow:
            return cls(factors, factors, weights, diagonal, 0, 1)
        many = factors.shape[2]
        return cls(narrow[0], factors, weights, diagonal, *((many // 4, 4) if many % 4 == 0 else (many, 1)))

    @property
    def rank(self) -> int:
        """Columns of U."""
        return self.weights.shape[1]

    def blocks(self) -> Blocks:
        """How the factors are cut."""
        batch, n, _ = self.first.shape
        return blocks_of(batch, n, self.rank)

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers and sizes that every pass takes."""
        (_, n, split), cut = self.first.shape, self.blocks()
        return {
            "n": n, "rank": self.rank, "split": split, "stride": self.stride, "chunk": cut.chunk, "parts": cut.parts,
            "W": cut.width, "LINE": cut.line, "ROWS": cut.rows, "C": min(PIECE, block(split)), "P": -(-split // PIECE),
            "A": block(self.rank - split) if split < self.rank else 0, "UNIT": self.unit, "STAGES": STAGES,
            "num_warps": 8,
        }  # fmt: skip

    def join(self, partial: Tensor, done: Tensor | None, total: Tensor, cut: Blocks) -> None:
        """Add up the blocks' parts of U' x, times the weights, of samples that are not done, or of all."""
        from spinformer.kernels.device import passes as device

        device.join[(len(total), -(-cut.width // 32))](
            partial, self.weights, partial if done is None else done, total, self.rank, cut.parts,
            CHECKED=done is not None, **cut.joined,
        )  # fmt: skip

    def pulled(self, x: Tensor, cut: Blocks, joined: bool = True) -> tuple[Tensor, Tensor]:
        """The blocks' parts of U' x, and w U' x, or room for it."""
        from spinformer.kernels.device import passes as device

        batch = len(x)
        partial, total = x.new_empty(batch, cut.parts, cut.width), x.new_empty(batch, cut.width)
        device.pull_vector[(batch, cut.parts)](self.first, self.others, x, partial, **self.sizes)
        if joined:
            self.join(partial, None, total, cut)
        return partial, total

    def product(self, x: Tensor) -> Tensor:
        """J x, (B, n)."""
        from spinformer.kernels.device import passes as device

        cut, x = self.blocks(), x.contiguous()
        partial, total = self.pulled(x, cut, not cut.few)
        out = torch.empty_like(x)
        device.push_vector[(len(x), cut.parts)](
            self.first, self.others, self.weights, self.diagonal, x, partial, total, out, PARTS=cut.few, **self.sizes
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
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """m_i = tanh(cold (h_i + sum_j J_ij m_j)), each sample until its residual is at most tol: m, residual, steps, J m

    As `spinformer.kernels.spins.solve_spins`, for couplings of any size. Its twin: `spinformer.ising.mean_field`.
    """
    from spinformer.kernels.device import factors as device

    system = Factored.of(couplings)
    (batch, n), cut, sizes = fields.shape, system.blocks(), system.sizes
    states, gaps = fields.new_zeros(batch, WINDOW, n), fields.new_zeros(batch, WINDOW, n)
    states[:, 0] = start
    gram, mixing = fields.new_zeros(batch, SLOTS, SLOTS), fields.new_zeros(batch, SLOTS)
    step, length = fields.new_full((batch,), damping), fields.new_full((batch,), torch.inf)
    residual = fields.new_empty(batch)
    done, last, steps = (torch.zeros(batch, dtype=torch.int64, device=fields.device) for _ in range(3))
    partial, total = fields.new_empty(batch, cut.parts, cut.width), fields.new_empty(batch, cut.width)
    found, images = fields.new_empty(batch, cut.parts, SLOTS), torch.zeros_like(fields)
    fields, cold = fields.contiguous(), cold.contiguous()
    given = fields if mask is None else mask.contiguous()
    for count in range(max_steps + 1):
        slot = count % WINDOW
        device.pull[(batch, cut.parts)](
            system.first, system.others, states, gaps, mixing, step, done, partial,
            slot=slot, FIRST=count == 0, CLIPPED=anderson, **sizes,
        )  # fmt: skip
        if not cut.few:
            system.join(partial, done, total, cut)
        device.push[(batch, cut.parts)](
            system.first, system.others, system.weights, system.diagonal, fields, cold, given, states, gaps, images,
            done, partial, total, found, slot=slot, FIRST=count == 0, MASKED=mask is not None, PARTS=cut.few, **sizes,
        )  # fmt: skip
        device.decide[(batch,)](
            found, gram, mixing, step, length, done, residual, steps, last, count, slot, cut.parts,
            max_steps, damping, tol, ANDERSON=anderson, num_warps=1,
        )  # fmt: skip
        if (count + 1) % CHECK_EVERY_DEFAULT == 0 and all_done(done == 0, count):
            break
    state = states[torch.arange(batch, device=fields.device), last]
    return state, residual, steps, torch.addcmul(images, system.diagonal, state, value=-1)


def solve_factored_adjoint(right: Tensor, root: Tensor, cold: Tensor, couplings: list[Tensor]) -> tuple[Tensor, Tensor]:
    """x of (I - cold root J root) x = right, (B, n), by conjugate gradients, and which samples have it, (B,)

    right, root: (B, n); cold: (B,). Its twin: `spinformer.ising.implicit`.
    """
    from spinformer.kernels.device import factor_adjoint as device

    system = Factored.of(couplings)
    (batch, n), cut, sizes = right.shape, system.blocks(), system.sizes
    matrix, grid = (system.first, system.others), (batch, cut.parts)
    most = RECORDED_ITERATIONS if recording() else MAX_ITERATIONS
    squares = right.new_zeros(batch, most + 1)
    square = right.square().sum(1)
    squares[:, 0] = square
    goal = square * (8 * torch.finfo(right.dtype).eps) ** 2
    stopped = (square <= goal).long()
    solution, residues = torch.zeros_like(right), right.clone()
    directions, images = torch.empty_like(residues), torch.empty_like(residues)
    partial, pulled = right.new_empty(batch, cut.parts, cut.width), right.new_empty(batch, cut.width)
    along, curvatures = right.new_empty(batch, 2, cut.width), right.new_empty(batch, 2, cut.parts)
    sums = right.new_zeros(batch, cut.parts)
    root, cold = root.contiguous(), cold.contiguous()
    for count in range(most):
        if count % RENEWED == 0:
            device.pull_residue[grid](*matrix, root, residues, images, stopped, partial, **sizes)
            device.join_residue[(batch, -(-cut.width // 32))](
                partial, stopped, pulled, system.rank, cut.parts, **cut.joined
            )
        device.image_adjoint[grid](
            *matrix, system.diagonal, system.weights, root, cold, goal, residues, directions, images, pulled, along,
            squares, sums, curvatures, stopped, partial, count=count, width=most + 1, FIRST=count == 0, **sizes,
        )  # fmt: skip
        device.step_adjoint[grid](
            solution, residues, directions, images, pulled, partial, squares, curvatures, sums, stopped,
            n, system.rank, cut.chunk, cut.parts, count, most + 1, LINE=cut.line, **cut.joined,
        )  # fmt: skip
        if (count + 1) % CHECK_EVERY_DEFAULT == 0 and all_done(stopped == 0, count):
            break
    return solution, sums.sum(1) <= square * ACCURACY**2


def factored_leading_vector(couplings: list[Tensor], inverse_unit: Tensor) -> Tensor:
    """The unit vector x of largest |x' J x| in the span of |J 1|, J |J 1|, ..., (B, n), of at most MAX_LANCZOS spins

    As `spinformer.kernels.spins.leading_vector`, for couplings of any size. Its twin: `spinformer.ising.lanczos`.
    """
    from spinformer.kernels.device import lanczos as device

    system, inverse_unit = Factored.of(couplings), inverse_unit.contiguous()
    (batch, n, _), cut, sizes = system.first.shape, system.blocks(), system.sizes
    matrix, grid = (system.first, system.others), (batch, cut.parts)
    out = inverse_unit.new_ones(batch, n)
    basis, pulls = out.new_empty(batch, SLOTS, n), out.new_empty(batch, SLOTS, cut.width)
    growth, dots = out.new_zeros(batch, SLOTS), out.new_empty(batch, SLOTS, SLOTS)
    found, more = out.new_empty(2, batch, cut.parts, 2 * SLOTS).unbind()
    image, rest = out.new_empty(2, batch, n).unbind()
    partial, total = system.pulled(out, cut)
    for step in range(-1, SLOTS):
        first, last = step < 0, step == SLOTS - 1
        device.image[grid](
            *matrix, system.diagonal, inverse_unit, total, basis, image, partial, found,
            step=step, FIRST=first, LAST=last, **sizes,
        )  # fmt: skip
        if last:
            break
        if not first:
            device.remainder[grid](*matrix, basis, image, rest, growth, partial, found, more, step=step, **sizes)
        device.advance[grid](
            image if first else rest, system.weights, basis, pulls, growth, partial, found, more, total, dots,
            n, system.rank, cut.chunk, cut.parts, step, FIRST=first, LINE=cut.line, **cut.joined,
        )  # fmt: skip
    shares = out.new_empty(batch, SLOTS)
    device.combine[(batch,)](dots, found, shares, cut.parts, num_warps=1)
    line = min(256, block(n))
    device.mixture[(batch, -(-n // line))](basis, shares, out, n, LINE=line)
    return out
