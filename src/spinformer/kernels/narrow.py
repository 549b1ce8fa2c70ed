"""Players' vectors that 16 bits hold: never made wider, and their gradient by one product."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from spinformer._base.products import mixed_product
from spinformer.kernels.gathered import Gathered, gathered_of, set_gathered
from spinformer.kernels.support import INTERPRETED, block, has_kernels, rows_of

KINDS = (torch.bfloat16, torch.float16)
ALIGNED = 16  # numbers: of rows of such a multiple it is known that they can be read 16 bytes at a time
PADDED = 4  # float32 numbers, for the same reason


class NarrowVectors(NamedTuple):
    """Of B games: vectors v_i, (B, n, d), of 16 bits, that were divided by `unit`, (B,), a power of two

    given: (B, n, 0), stands for the vectors where a gradient is asked for: what reads them leaves its part of it with
    `given.gathered`. squares: |v_i|^2, (B, n); scale: 1 / sum of |v_i|, (B,); gate: lambda, (B, n), or None.
    """

    given: Tensor
    vectors: Tensor
    unit: Tensor
    squares: Tensor
    scale: Tensor
    gate: Tensor | None


def can_narrow(kind: torch.dtype, device: torch.device) -> bool:
    """Whether there are kernels for vectors of this type."""
    return kind in KINDS and has_kernels(device)


def width_of(numbers: int) -> int:
    """Of a row that holds so many numbers and is aligned."""
    return -(-numbers // ALIGNED) * ALIGNED


def narrow_vectors(mapped: Tensor, bias: Tensor | None, mask: Tensor | None, heads: int, d: int) -> NarrowVectors:
    """v_i of every head, |v_i|^2, 1 / sum of |v_i| and, with a bias b, lambda_i = sigmoid(w . x_i + b)

    mapped: (B, n, width), a row of a token: d numbers of each head's vector, then w . x_i of each head, then anything;
    mask: bool, (B, n), false for padding, whose vectors and lambda become 0. Its twin: `NormGame.of_shares`.
    """
    own: list[Gathered] = []
    given, vectors, unit, squares, scale, gate = _NarrowVectors.apply(mapped, bias, mask, heads, d, own)
    set_gathered(given, own[0])
    return NarrowVectors(given, vectors, unit, squares, scale, None if bias is None else gate)


def _blocks(n: int, d: int) -> dict[str, int]:
    return {"N": rows_of(n, min(16, block(n))), "D": min(256, block(d))}


class _NarrowVectors(torch.autograd.Function):
    """Four launches forward; backward one, and two for each part of the gradient."""

    @staticmethod
    def forward(
        ctx: Any, mapped: Tensor, bias: Tensor | None, mask: Tensor | None, heads: int, d: int, own: list[Gathered]
    ) -> tuple[Tensor, ...]:
        from spinformer.kernels.device import narrow as device
        from spinformer.kernels.device import vectors as shared

        mapped = mapped.contiguous()
        batch, n, width = mapped.shape
        games, gated = batch * heads, bias is not None
        most = torch.empty(games, n, device=mapped.device)
        squares, unit, scale = torch.empty_like(most), most.new_empty(games), most.new_empty(games)
        vectors = mapped.new_empty(games, n, d)
        gate = most.new_empty((games, n) if gated else (0,))
        sizes, whole = _blocks(n, d), min(1024, block(n))
        grid = (games, -(-n // sizes["N"]))
        shared.largest[grid](mapped, most, n, heads, d, width, **sizes)
        shared.units[(games,)](most, unit, n, N=whole)
        given = mapped if mask is None else mask.contiguous()
        device.ready[grid](
            mapped, given, unit, unit if bias is None else bias, vectors, squares, gate, n, heads, d, width,
            MASKED=mask is not None, GATED=gated, **sizes,
        )  # fmt: skip
        shared.shares[(games,)](squares, scale, n, N=whole)
        ctx.save_for_backward(vectors, unit, squares, scale, gate, mask)
        own.append(Gathered(vectors.detach(), squares))
        ctx.gathered, ctx.shape, ctx.heads = own[0], mapped.shape, heads
        ctx.bias = None if bias is None else bias.dtype
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(vectors, unit)
        return most.new_empty(games, n, 0), vectors, unit, squares, scale, gate

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:
        from spinformer.kernels.device import narrow as device

        vectors, unit, squares, scale, gate, mask = ctx.saved_tensors
        _, _, _, to_squares, to_scale, to_gate = slopes
        (batch, n, width), heads, d = ctx.shape, ctx.heads, vectors.shape[2]
        left, right, diagonal, whole = ctx.gathered.take()
        to_squares = torch.zeros_like(squares) if to_squares is None else to_squares.contiguous()
        to_scale = torch.zeros_like(scale) if to_scale is None else to_scale.contiguous()
        gated = to_gate is not None and gate.numel() > 0
        to_gate = squares if to_gate is None else to_gate.contiguous()
        out = vectors.new_empty(batch, n, width)
        rest = heads * d + (heads if gated else 0)
        out[..., rest:] = 0
        blank = squares
        sides = [_halves(left, False), _halves(right, True)]
        parts = 0 if sides[0] is None else sides[0].shape[1]
        sizes = {"N": min(128, block(n)), "D": min(128, block(d)), "P": 64 if parts > 48 else 16, "STAGES": 3}
        grid = (batch * heads, -(-n // sizes["N"]), -(-d // sizes["D"]))
        given = [blank if part is None else part.contiguous() for part in (*sides, diagonal, whole)]
        device.gathered[grid](
            *given, vectors, squares, scale, to_squares, to_scale, unit, blank if mask is None else mask.contiguous(),
            gate, to_gate, out, parts, n, heads, d, width,
            MASKED=mask is not None, DIAGONAL=diagonal is not None, WHOLE=whole is not None, GATED=gated,
            num_warps=8, **sizes,
        )  # fmt: skip
        to_bias = None
        if ctx.bias is not None and gated:
            to_bias = (to_gate * gate * (1 - gate)).view(batch, heads, n).sum((0, 2)).to(ctx.bias)
        return out, to_bias, None, None, None, None


def _halves(rows: list[Tensor], right: bool) -> Tensor | None:
    """Rows one below the other, (B, P, length), for one product: each as a sum of two of bfloat16, in three rows

    Under the interpreter, which multiplies these wrongly, as they are.
    """
    from spinformer.kernels.device import narrow as device

    if not rows:
        return None
    if INTERPRETED:
        return torch.cat(rows, 1)
    (batch, _, length), parts, first = rows[0].shape, sum(part.shape[1] for part in rows), 0
    out, size = rows[0].new_empty(batch, 3 * parts, length, dtype=torch.bfloat16), min(1024, block(length))
    for part in rows:
        many = part.shape[1]
        device.halves[(batch * many, -(-length // size))](
            part.contiguous(), out, first, many, parts, length, RIGHT=right, L=size
        )
        first += many
    return out


class _Widened(torch.autograd.Function):
    """The vectors as float32 numbers, with a gradient."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, vectors: Tensor) -> Tensor:
        ctx.gathered = gathered_of(given)
        return vectors.float()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.gathered.add_whole(gradient)
        return gradient[..., :0], None


def widened(given: Tensor, vectors: Tensor) -> Tensor:
    """v_i, (B, n, d), as float32 numbers."""
    result: Tensor = _Widened.apply(given, vectors)
    return result


class _WeightedSum(torch.autograd.Function):
    """z = unit sum_i alpha_i v_i,   dalpha_i = unit v_i . g,   dv_i = unit alpha_i g."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, given: Tensor, vectors: Tensor, unit: Tensor) -> Tensor:
        ctx.save_for_backward(alpha, vectors, unit)
        ctx.gathered = gathered_of(given)
        return mixed_product(alpha[:, None], vectors).squeeze(1) * unit[:, None]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        alpha, vectors, unit = ctx.saved_tensors
        slope = (gradient * unit[:, None])[:, None]
        ctx.gathered.add(alpha[:, None], slope)
        to_alpha = mixed_product(slope, vectors.mT).squeeze(1)
        return to_alpha, to_alpha.new_empty(*to_alpha.shape, 0), None, None


def weighted_sum(alpha: Tensor, narrow: NarrowVectors) -> Tensor:
    """z = sum_i alpha_i v_i of the vectors before they were divided by their unit, (B, d); alpha: (B, n)."""
    result: Tensor = _WeightedSum.apply(alpha, narrow.given, narrow.vectors, narrow.unit)
    return result


def directions(
    products: Tensor, inside: Tensor, totals: Tensor, squares: Tensor, scale: Tensor, d: int
) -> tuple[Tensor, Tensor, Tensor]:
    """A_ik = (S_k . v_i + (1/2 - c_ki) |v_i|^2) / |S_k|, (B, n, K), weights (B, d + K) and diagonal of interactions

    products: S_k . v_i, (B, K, n); inside: c, (B, K, n); totals: |S_k|^2, (B, K); squares: |v_i|^2, (B, n); scale:
    (B,). The first d weights are mean over k of scale / |S_k|, the others -scale / (K |S_k|). There are zeros after K
    columns, up to a multiple of PADDED. The diagonal of U diag(w) U', (B, n), has no gradient. Its twin:
    `spinformer.games.lowrank`.
    """
    result: tuple[Tensor, Tensor, Tensor] = _Directions.apply(products, inside, totals, squares, scale, d)
    return result


class _Directions(torch.autograd.Function):
    """One launch forward, one backward."""

    @staticmethod
    def forward(
        ctx: Any, products: Tensor, inside: Tensor, totals: Tensor, squares: Tensor, scale: Tensor, d: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        from spinformer.kernels.device import narrow as device

        products, totals = products.contiguous(), totals.contiguous()
        inside = inside if inside.stride()[1:] == (inside.shape[2], 1) else inside.contiguous()
        batch, draws, n = products.shape
        width = -(-draws // PADDED) * PADDED
        out, weights = products.new_empty(batch, n, width), products.new_empty(batch, d + width)
        size, diagonal = _players(n), products.new_empty(batch, n)
        device.directions[(batch, -(-n // size))](
            products, inside, totals, squares.contiguous(), scale.contiguous(), out, weights, diagonal,
            n, draws, d, width, inside.stride(0), N=size, K=block(width), R=256,
        )  # fmt: skip
        ctx.save_for_backward(out, inside, totals, scale)
        ctx.split = d
        ctx.mark_non_differentiable(diagonal)
        ctx.set_materialize_grads(False)
        return out, weights, diagonal

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor | None, to_weights: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        from spinformer.kernels.device import narrow as device

        out, inside, totals, scale = ctx.saved_tensors
        (batch, n, width), draws, size = out.shape, totals.shape[1], _players(out.shape[1])
        gradient = torch.zeros_like(out) if gradient is None else gradient
        to_weights = out.new_zeros(batch, ctx.split + width) if to_weights is None else to_weights
        blocks = -(-n // size)
        to_products, to_squares = out.new_empty(batch, draws, n), out.new_empty(batch, n)
        norms = out.new_empty(batch, blocks, draws)
        device.directions_backward[(batch, blocks)](
            gradient.contiguous(), out, inside, totals, to_products, to_squares, norms, n, draws, width, blocks,
            inside.stride(0), N=size, K=block(draws),
        )  # fmt: skip
        inverse = totals.rsqrt().masked_fill(totals <= 0, 0.0)
        spread = to_weights[:, : ctx.split].sum(1, keepdim=True)
        along = spread - to_weights[:, ctx.split : ctx.split + draws]  # of scale / (K |S_k|)
        to_scale = (along * inverse).mean(1)
        pulled = norms.sum(1) + along * (scale / draws)[:, None] * inverse
        return to_products, None, -0.5 * pulled * inverse.square(), to_squares, to_scale, None


def _players(n: int) -> int:
    """Players of a program."""
    return rows_of(n, min(128, block(n)))
