"""From values and interactions to the mean field in share units: one launch forward, one backward."""

import torch
from torch import Tensor

from spinformer.kernels.operator import operator
from spinformer.kernels.spins import Form, form_of, scratch_lines

# The twin's constant: couplings whose norm is well below it are not strengthened.
SOFTNESS = 0.1


def dense_form(matrix: Tensor) -> Form | None:
    """How a program keeps this matrix, None where it is too large."""
    return form_of([matrix])


@operator("settle")
def settle(
    values: Tensor,
    gate: Tensor,
    matrix: Tensor,
    temperature: Tensor,
    gain: Tensor,
    part: Tensor,
    origin: list[Tensor],
    mask: Tensor | None,
    counts: Tensor,
    max_steps: int,
    damping: float,
    tol: float,
    anderson: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """h, factor and m of h_i = gain (n f_i - 1), J = factor I, m_i = tanh((h_i + sum_j J_ij m_j) / T)

    values: phi and beta, (B, 2, n); gate: (B, n); matrix: I, (B, n, n), zero diagonal; temperature, gain, part: (B,);
    origin: factors and weights of I, which then get the gradients in its place, or nothing; mask: bool, (B, n); counts:
    players, (B,). Also residual and steps, (B,), and what the backward pass needs: the leading vector x of I; I x and
    I m, (B, 2, n); and |I x|. Its twin: `spinformer.attention.from_game.attention_from_values`.
    """
    from spinformer.kernels.device import share_units as device

    batch, n = gate.shape
    form = dense_form(matrix)
    if form is None:
        raise ValueError(f"no kernel for a matrix of shape {tuple(matrix.shape)}, {matrix.dtype}")
    fields, leading, state = (gate.new_empty(batch, n) for _ in range(3))
    image, scratch = gate.new_empty(batch, 2, n), gate.new_empty(batch, scratch_lines(form), n)
    factor, norm, residual = (gate.new_empty(batch) for _ in range(3))
    steps = torch.empty(batch, dtype=torch.int64, device=gate.device)
    given = [tensor.contiguous() for tensor in (values, gate, matrix, temperature, gain, part)]
    device.forward[(batch,)](
        *given, counts, counts if mask is None else mask.contiguous(), scratch,
        fields, factor, leading, image, norm, state, residual, steps, n, max_steps, damping, tol, SOFTNESS,
        N=form.spins, ROWS=form.rows, FORM=form.form, ANDERSON=anderson, MASKED=mask is not None,
        num_warps=form.warps,
    )  # fmt: skip
    return fields, factor, state, residual, steps, leading, image, norm


def settle_backward(
    gradients: list[Tensor],
    leaves: list[Tensor],
    mask: Tensor | None,
    counts: Tensor,
    kept: list[Tensor],
    tol: float,
    whole: bool,
) -> tuple[Tensor, Tensor, list[Tensor], Tensor, Tensor]:
    """Gradients of values, gate, matrix, and of temperature, gain and part, (B, 4); which samples have them, (B,)

    gradients: of fields, factor and m; leaves: the first six arguments of `settle`; kept: what it returned. That of the
    matrix is the sum of two outer products g m': the sum, if whole, else both g and both m, (B, n) each.
    """
    from spinformer.kernels.device import share_units as device

    to_fields, to_factor, to_state = gradients
    values, gate, matrix, temperature, gain, part = leaves
    fields, factor, state, residual, _, leading, image, norm = kept
    batch, n = gate.shape
    form = dense_form(matrix)
    assert form is not None
    scalars = (temperature, gain, part)
    given = [tensor.contiguous() for tensor in (to_state, to_fields, to_factor, values, gate, matrix, *scalars)]
    to_values, to_gate = (torch.empty_like(tensor) for tensor in given[3:5])
    to_matrix = torch.empty_like(given[5]) if whole else given[5]  # nothing is written to it
    to_scalars, scratch = gate.new_empty(batch, 4), gate.new_empty(batch, scratch_lines(form), n)
    slope = torch.empty_like(gate)
    solved = torch.empty(batch, dtype=torch.bool, device=gate.device)
    device.backward[(batch,)](
        *given, counts, counts if mask is None else mask.contiguous(), scratch, slope,
        fields, factor, leading, image, norm, state, residual,
        to_values, to_gate, to_matrix, to_scalars, solved.view(torch.int8), n, tol, SOFTNESS,
        N=form.spins, ROWS=form.rows, FORM=form.form, MASKED=mask is not None, WHOLE=whole,
        num_warps=form.warps,
    )  # fmt: skip
    products = [to_matrix] if whole else [slope, image[:, 0] * to_scalars[:, 3:], state, leading]
    return to_values, to_gate, products, to_scalars, solved


@settle.register_fake
def _(
    values: Tensor,
    gate: Tensor,
    matrix: Tensor,
    temperature: Tensor,
    gain: Tensor,
    part: Tensor,
    *rest: object,
) -> tuple[Tensor, ...]:
    batch, n = gate.shape
    steps = torch.empty(batch, dtype=torch.int64, device=gate.device)
    rows, numbers = [gate.new_empty(batch, n) for _ in range(3)], [gate.new_empty(batch) for _ in range(3)]
    return rows[0], numbers[0], rows[1], numbers[1], steps, rows[2], gate.new_empty(batch, 2, n), numbers[2]
