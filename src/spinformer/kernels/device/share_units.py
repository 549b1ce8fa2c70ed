"""From players' values and a matrix of interactions to the mean field, in share units, a sample in one program.

    f_i = beta_i / |beta|_1 + gate_i (phi_i / |phi|_1 - beta_i / |beta|_1),   h_i = gain (n f_i - 1)
    J = factor I,   factor = r part T / (r |I| + SOFTNESS),   r = n / |beta|_1,   |I|: the largest |eigenvalue|
    m_i = tanh((h_i + sum_j J_ij m_j) / T)

phi, beta: Shapley and Banzhaf values; I: interactions; n: players; T: temperature.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.adjoint import _pulled
from spinformer.kernels.device.leading import _leading
from spinformer.kernels.device.players import _inverse
from spinformer.kernels.device.products import RESIDENT, STREAMED, _half_product, _lines, _matrix, _product
from spinformer.kernels.device.spins import _iterate
from spinformer.kernels.device.vectors import _power_of_two


@triton.jit
def _ones(matrix, couplings, scratch, ones, n, N: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr):
    """I 1, and the power of two just below the largest |I_ij| where that is far from 1, else 1."""
    if FORM == STREAMED:
        image, size = _half_product(matrix, couplings, scratch, ones, n, N, ROWS, True)
    else:
        tl.static_assert(FORM == RESIDENT)
        image = _product(matrix, 0.0, couplings, couplings, couplings, scratch, ones, n, 1, 1, N, 1, ROWS, FORM)
        size = tl.max(tl.max(tl.abs(matrix), 1), 0)
    return image, _power_of_two(size)


@triton.jit
def forward(
    values, gate, couplings, temperature, gain, part, counts, mask, scratch,
    fields, factor, leading, image, norm, state, residual, steps,
    n, max_steps, damping, tol, softness,
    N: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr, ANDERSON: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """h, the factor of the interactions, m; and for the backward pass the leading vector x, I x, I m and |I x|."""
    sample = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    known = i < n
    couplings += sample * n * n
    scratch += sample * n * _lines(ROWS, FORM)
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, couplings, scratch, n, 1, 1, N, 1, ROWS, FORM)
    phi = tl.load(values + sample * 2 * n + i, known, 0.0)
    beta = tl.load(values + (sample * 2 + 1) * n + i, known, 0.0)
    phi_sum, beta_sum = tl.sum(tl.abs(phi), 0), tl.sum(tl.abs(beta), 0)
    lam = tl.load(gate + sample * n + i, known, 0.0)
    low, high = beta * _inverse(beta_sum), phi * _inverse(phi_sum)
    count = tl.load(counts + sample).to(tl.float32)
    field = tl.load(gain + sample) * (count * (low + lam * (high - low)) - 1) * keep
    ones, unit = _ones(matrix, couplings, scratch, known.to(tl.float32), n, N, ROWS, FORM)
    x, scaled = _leading(
        matrix, extra, couplings, couplings, couplings, scratch, ones, 1 / unit, n, 1, 1, N, 1, ROWS, FORM
    )
    size = tl.sqrt(tl.sum(scaled * scaled, 0)) * unit
    warm = tl.load(temperature + sample)
    share = count * _inverse(beta_sum)
    strength = share * tl.load(part + sample) * warm / (share * size + softness)
    zero = tl.zeros((N,), tl.float32)
    m, moved, worst, taken = _iterate(
        matrix, extra, couplings, couplings, couplings, scratch, scratch, field / warm, strength / warm, keep,
        zero, zero, n, 1, 1,
        max_steps, 0, damping, tol, N, 1, ROWS, FORM, ANDERSON, False,
    )  # fmt: skip
    tl.store(fields + sample * n + i, field, known)
    tl.store(leading + sample * n + i, x, known)
    tl.store(image + sample * 2 * n + i, scaled * unit, known)
    tl.store(image + (sample * 2 + 1) * n + i, moved, known)
    tl.store(state + sample * n + i, m, known)
    tl.store(factor + sample, strength)
    tl.store(norm + sample, size)
    tl.store(residual + sample, worst)
    tl.store(steps + sample, taken)


@triton.jit
def backward(
    to_state, to_fields, to_factor, values, gate, couplings, temperature, gain, part, counts, mask, scratch, slope,
    fields, factor, leading, image, norm, state, residual,
    to_values, to_gate, to_couplings, to_scalars, solved,
    n, tol, softness,
    N: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr, MASKED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Gradients of values, gate, and of temperature, gain and part, (B, 4); that of the interactions, if WHOLE

    It is a sum of two outer products. slope: the gradient of h times the factor, the first of the first one; and in the
    last of the four numbers what I x counts by in the second.
    """
    sample = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    known = i < n
    couplings += sample * n * n
    scratch += sample * n * _lines(ROWS, FORM)
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, couplings, scratch, n, 1, 1, N, 1, ROWS, FORM)
    warm, strength = tl.load(temperature + sample), tl.load(factor + sample)
    field = tl.load(fields + sample * n + i, known, 0.0)
    m = tl.load(state + sample * n + i, known, 0.0)
    g = tl.load(to_state + sample * n + i, known, 0.0)
    arrived = tl.load(residual + sample) <= tol
    moved = tl.load(image + (sample * 2 + 1) * n + i, known, 0.0)
    pulled, good = _pulled(
        matrix, extra, couplings, couplings, couplings, scratch, g, m, moved, field / warm, strength / warm, keep,
        arrived, n, 1, 1,
        N, 1, ROWS, FORM,
    )  # fmt: skip
    along = pulled / warm  # the gradient of h + J m
    by_factor = tl.sum(along * moved, 0) + tl.load(to_factor + sample)
    by_warm = -tl.sum(along * (field + strength * moved), 0) / warm
    # the factor
    count, size = tl.load(counts + sample).to(tl.float32), tl.load(norm + sample)
    phi = tl.load(values + sample * 2 * n + i, known, 0.0)
    beta = tl.load(values + (sample * 2 + 1) * n + i, known, 0.0)
    phi_inverse, beta_inverse = _inverse(tl.sum(tl.abs(phi), 0)), _inverse(tl.sum(tl.abs(beta), 0))
    share, portion = count * beta_inverse, tl.load(part + sample)
    whole = share * size + softness
    by_share = by_factor * portion * warm * softness / (whole * whole)
    by_size = -by_factor * share * share * portion * warm / (whole * whole)
    by_warm += by_factor * share * portion / whole
    by_part = by_factor * share * warm / whole
    # the fields
    by_field = (along + tl.load(to_fields + sample * n + i, known, 0.0)) * keep
    rise, lam = tl.load(gain + sample), tl.load(gate + sample * n + i, known, 0.0)
    low, high = beta * beta_inverse, phi * phi_inverse
    mixed = count * (low + lam * (high - low)) - 1
    by_gain = tl.sum(by_field * mixed, 0)
    by_mixed = by_field * rise * count
    by_high, by_low = by_mixed * lam, by_mixed * (1 - lam)
    phi_sign = tl.where(phi > 0, 1.0, tl.where(phi < 0, -1.0, 0.0))
    beta_sign = tl.where(beta > 0, 1.0, tl.where(beta < 0, -1.0, 0.0))
    by_phi = phi_inverse * (by_high - phi_sign * tl.sum(by_high * high, 0))
    by_beta = beta_inverse * (by_low - beta_sign * (tl.sum(by_low * low, 0) + by_share * share))
    tl.store(to_values + sample * 2 * n + i, by_phi, known)
    tl.store(to_values + (sample * 2 + 1) * n + i, by_beta, known)
    tl.store(to_gate + sample * n + i, by_mixed * (high - low), known)
    # the interactions: factor (gradient of h) m' + by_size (I x / |I x|) x'
    x = tl.load(leading + sample * n + i, known, 0.0)
    steep = by_size * _inverse(size)
    tl.store(slope + sample * n + i, along * strength, known)
    if WHOLE:
        tl.debug_barrier()
        for start in range(0, n, ROWS):
            row = start + tl.arange(0, ROWS)
            left = tl.load(slope + sample * n + row, row < n, 0.0)
            right = tl.load(image + sample * 2 * n + row, row < n, 0.0) * steep
            tile = left[:, None] * m[None, :] + right[:, None] * x[None, :]
            inside = (row < n)[:, None] & known[None, :]
            tl.store(to_couplings + sample * n * n + row[:, None] * n + i[None, :], tile, inside)
    spot = to_scalars + sample * 4
    tl.store(spot, by_warm)
    tl.store(spot + 1, by_gain)
    tl.store(spot + 2, by_part)
    tl.store(spot + 3, steep)
    tl.store(solved + sample, good.to(tl.int8))
