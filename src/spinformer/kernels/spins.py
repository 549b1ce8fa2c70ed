"""Mean fields, their adjoints and the couplings' norm: all iterations of a sample in one launch."""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer.kernels.support import block, usable

RESIDENT, STREAMED, FACTORS, NARROW = range(4)
MAX_RESIDENT = 128  # spins whose matrix stays on chip
MAX_STREAMED = 1024  # spins whose matrix one program reads again for every product
MAX_FACTORED = 1024  # spins of low-rank couplings that one program iterates over
MAX_RANK = 256
MAX_NARROW = 2**15  # words of 32 bits of factors that a program reads from its cache, half of what there is
STRIP = 4096  # numbers of a matrix that a program reads at once
STRIPS = 128  # at most, whose sums a program keeps
LANCZOS_STEPS = 8


class Form(NamedTuple):
    """How a program keeps the couplings: the form, blocks of spins, of rank and of rows, and warps

    NARROW: blocks of the columns in 16 bits, and of the others, in place of rank and rows.
    """

    form: int
    spins: int
    rank: int
    rows: int
    warps: int


def form_of(tensors: list[Tensor]) -> Form | None:
    """The form for these couplings: a matrix; or factors, weights and diagonal, and with them perhaps what the first
    columns of the factors are in 16 bits. None: they are for the plain twin.
    """
    if not usable(*tensors[:3]):
        return None
    spins = tensors[0].shape[1]
    if len(tensors) == 1:
        if spins <= MAX_RESIDENT:
            size = block(spins)
            return Form(RESIDENT, size, 1, 16, 1 if size <= 32 else 4)
        if spins <= MAX_STREAMED:
            size = block(spins)
            return Form(STREAMED, size, 1, max(min(32, STRIP // size), size // STRIPS), 8 if size <= 512 else 16)
        return None
    rank = tensors[1].shape[1]
    if spins > MAX_FACTORED or rank > MAX_RANK:
        return None
    size = block(spins)
    if len(tensors) == 4:
        columns = tensors[3].shape[2]
        first, others = block(columns), block(rank - columns)
        return Form(NARROW, size, first, others, 8) if size * (first // 2 + others) <= MAX_NARROW else None
    return Form(FACTORS, size, block(rank), 32, 8)


def scratch_lines(form: Form) -> int:
    """How many times n numbers a program needs to exchange what its threads have."""
    return {STREAMED: 3, NARROW: 2 + form.rows}.get(form.form, 1)


def _arguments(tensors: list[Tensor]) -> tuple[list[Tensor], tuple[int, int]]:
    """Couplings, weights, diagonal and narrow columns as the programs take them; the rank, and how many of these."""
    tensors = [tensor.contiguous() for tensor in tensors]
    if len(tensors) == 1:
        return [tensors[0]] * 4, (1, 1)
    rank = tensors[1].shape[1]
    return (tensors, (rank, tensors[3].shape[2])) if len(tensors) == 4 else ([*tensors, tensors[0]], (rank, 1))


def _sizes(form: Form) -> dict[str, int]:
    sizes = {"N": form.spins, "R": form.rank, "ROWS": form.rows, "FORM": form.form, "num_warps": form.warps}
    return {**sizes, "maxnreg": 128} if form.form == NARROW else sizes  # two programs on a processor


def _form(tensors: list[Tensor]) -> Form:
    form = form_of(tensors)
    if form is None:
        raise ValueError(f"no kernel for couplings of shape {tuple(tensors[0].shape)}, {tensors[0].dtype}")
    return form


def solve_spins(
    fields: Tensor,
    cold: Tensor,
    start: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    max_steps: int,
    least_steps: int,
    damping: float,
    tol: float,
    anderson: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """m_i = tanh(cold (h_i + sum_j J_ij m_j)), each sample until its residual is at most tol

    fields, start: (B, n); cold: inverse temperature, (B,); mask: bool, (B, n); couplings: a matrix (B, n, n), or
    factors, weights and diagonal. Returns m (B, n), the residual (B,), steps taken (B,), and with `keep` every state,
    (B, max_steps + 1, n), else (B, n) without meaning. Its twin: `spinformer.ising.mean_field`.
    """
    from spinformer.kernels.device import spins as device

    form, (batch, n) = _form(couplings), fields.shape
    tensors, ranks = _arguments(couplings)
    state, scratch = fields.new_empty(batch, n), fields.new_empty(batch, scratch_lines(form), n)
    residual, steps = fields.new_empty(batch), torch.empty(batch, dtype=torch.int64, device=fields.device)
    path = fields.new_zeros(batch, max_steps + 1, n) if keep else fields.new_empty(batch, n)
    given = fields.contiguous()
    device.solve[(batch,)](
        given, *tensors, cold.contiguous(), start.contiguous(), given if mask is None else mask.contiguous(),
        scratch, state, residual, steps, path, n, *ranks, max_steps, least_steps, damping, tol,
        ANDERSON=anderson, MASKED=mask is not None, KEEP=keep, **_sizes(form),
    )  # fmt: skip
    return state, residual, steps, path


def through_steps(
    gradient: Tensor,
    fields: Tensor,
    cold: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    path: Tensor,
    steps: Tensor,
    damping: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients through damped steps: of cold (h + J m_t) at every step t, (B, max_steps, n), of h, start and cold."""
    from spinformer.kernels.device import spins as device

    form, (batch, n) = _form(couplings), fields.shape
    tensors, ranks = _arguments(couplings)
    max_steps = path.shape[1] - 1
    inner, scratch = fields.new_empty(batch, max_steps, n), fields.new_empty(batch, scratch_lines(form), n)
    to_fields, to_start, to_cold = fields.new_empty(batch, n), fields.new_empty(batch, n), fields.new_empty(batch)
    given = fields.contiguous()
    device.through_steps[(batch,)](
        gradient.contiguous(), given, *tensors, cold.contiguous(), given if mask is None else mask.contiguous(),
        scratch, path, steps, inner, to_fields, to_start, to_cold, n, *ranks, max_steps, damping,
        MASKED=mask is not None, **_sizes(form),
    )  # fmt: skip
    return inner, to_fields, to_start, to_cold


def solve_adjoint(
    gradient: Tensor,
    fields: Tensor,
    cold: Tensor,
    state: Tensor,
    residual: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """D cold (I - J D cold)^-1 g, D = diag(1 - m^2), the gradient of the fields, (B, n); that of cold, (B,)

    And which samples have it, (B,); those with a residual above tol have none. The gradient of J_ij is that of h_i
    times m_j. Its twin: `spinformer.ising.implicit`.
    """
    from spinformer.kernels.device import adjoint as device

    form, (batch, n) = _form(couplings), state.shape
    tensors, ranks = _arguments(couplings)
    scratch = state.new_empty(batch, scratch_lines(form), n)
    to_fields, to_cold = state.new_empty(batch, n), state.new_empty(batch)
    solved = torch.empty(batch, dtype=torch.bool, device=state.device)
    given = gradient.contiguous()
    device.adjoint[(batch,)](
        given, fields.contiguous(), *tensors, cold.contiguous(), state.contiguous(), residual.contiguous(),
        given if mask is None else mask.contiguous(), scratch, to_fields, to_cold, solved.view(torch.int8),
        n, *ranks, tol, MASKED=mask is not None, **_sizes(form),
    )  # fmt: skip
    return to_fields, to_cold, solved


def leading_vector(couplings: list[Tensor], inverse_unit: Tensor) -> Tensor:
    """The unit vector x of largest |x' J x| in the span of |J 1|, J |J 1|, ..., (B, n)

    inverse_unit: a power of two, (B,), that brings J near 1. Its twin: `spinformer.ising.lanczos`.
    """
    from spinformer.kernels.device import leading as device

    form = _form(couplings)
    tensors, ranks = _arguments(couplings)
    batch, n = couplings[0].shape[:2]
    result, scratch = inverse_unit.new_empty(batch, n), inverse_unit.new_empty(batch, scratch_lines(form), n)
    device.leading[(batch,)](*tensors, inverse_unit.contiguous(), scratch, result, n, *ranks, **_sizes(form))
    return result


def top_vector(small: Tensor) -> Tensor:
    """The leading eigenvector of matrices of at most LANCZOS_STEPS rows, (B, k, k) -> (B, k), of any length."""
    from spinformer.kernels.device import leading as device

    batch, size, _ = small.shape
    result = small.new_empty(batch, size)
    device.top[(batch,)](small.contiguous(), result, size, num_warps=1)
    return result


def mixing_weights(gram: Tensor) -> Tensor:
    """a = argmin |sum over k of a_k r_k|, sum a_k = 1, (B, k, 1), from the Gram matrix of the r_k, (B, k, k)

    As `spinformer.ising.anderson` has it, without a wait for the device.
    """
    from spinformer.kernels.device import spins as device

    batch, depth, _ = gram.shape
    weights = gram.new_empty(batch, depth, 1)
    device.mixing[(batch,)](gram.contiguous(), weights, depth, num_warps=1)
    return weights
