"""A NeuroGame layer on a GPU that replays what it once did: a CUDA graph of its forward pass and one of its backward.

On short inputs a layer keeps a GPU busy for a millisecond and its host for ten, with launches; on longer ones the host
is slower than the GPU still. Replayed, all launches of a pass are one.
"""

import gc
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base import checks
from spinformer._base.recording import recording
from spinformer._base.rng import preserved
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.attention.output import Diagnostics
from spinformer.kernels import support
from spinformer.kernels.factors import LARGEST_RANK
from spinformer.kernels.tokens import norm_into, norm_slopes

# Shapes that are kept, the last used, and numbers of all their inputs. Each holds its input, its output and their
# gradients; the rest is shared.
SHAPES, HELD = 48, 2**28
# Lengths are padded to a multiple: of the first up to the second, of the third beyond, and of a 32nd of the next power
# of two where that is more.
SHORT, MIDDLE, LONG = 8, 128, 64
# Tokens beyond which an input is replayed only where surplus steps cost next to nothing. A graph always takes the
# largest number of steps of the mean field; the kernels for low-rank couplings skip samples that are done.
LIMIT = 1024
# Numbers of an input of more tokens, B n d: a graph keeps the memory of a pass, and beyond this a GPU is busy anyway.
MOST = 2**26
# Calls of a shape before it is recorded, which takes as long as some ten calls, in evaluation and beyond LIMIT; shapes
# that are counted.
FIRST_CALLS, COUNTED = 3, 1024

# x as it is; mask and special tokens, of the padded length; that length; the type of 16 bits in which the layer reads x
Inputs = tuple[Tensor, Tensor | None, Tensor | None, int, torch.dtype | None]
Key = tuple[Any, ...]


class Played(NamedTuple):
    """pooled: z, (B, d); diagnostics: how far to trust it."""

    pooled: Tensor
    diagnostics: Diagnostics


class Replay:
    """z and diagnostics of a layer, as the layer itself gives them, from CUDA graphs where they can be recorded

    There is one graph for each batch size and padded length. Inputs on a CPU go through the layer, and so do those of
    more than `LIMIT` tokens with more than `MOST` numbers or with couplings that are not of low rank. In evaluation,
    and beyond `LIMIT`, a shape is recorded when it comes often. In training every replay draws its own coalitions, from
    torch's generator of the GPU. Where a second forward pass comes before the backward of the first, the second goes
    through the layer.

    In a graph the host does not look at numbers: what is not finite in x is not refused, but makes z not finite. And
    every sample counts as converged in the implicit gradient; `diagnostics.converged` tells which did.
    """

    def __init__(self, layer: NeuroGameAttention) -> None:
        checks.instance("layer", layer, NeuroGameAttention)
        self.layer = layer
        self.records: OrderedDict[Key, _Record] = OrderedDict()
        self.calls: dict[Key, int] = {}
        self.given_up = 0
        self.pool: Any = None
        self.pending: weakref.ref[_Token] | None = None
        self.lock = threading.RLock()

    def __reduce__(self) -> tuple[type["Replay"], tuple[NeuroGameAttention]]:
        """Copies and pickles record anew."""
        return Replay, (self.layer,)

    def __call__(self, x: Tensor, mask: Tensor | None = None, special: Tensor | None = None) -> Played:
        """As of `NeuroGameAttention`."""
        if self._possible(x, mask, special):
            inputs = (*self._padded(x, mask, special), self.layer.narrow_kind(x))
            with self.lock:  # one thread at a time: they share the graphs' memory
                record = None if self._waits_for_backward() else self._record_of(inputs)
                if record is not None:
                    return self._replay(record, inputs)
        out = self.layer(x, mask, special=special)
        return Played(out.pooled, out.diagnostics)

    def _record_of(self, inputs: Inputs) -> "_Record | None":
        """What was recorded for such inputs, or is now; None where they did not come often enough."""
        key = self._key(inputs)
        if key not in self.records:
            if len(self.calls) >= COUNTED:
                self.calls.clear()
            self.calls[key] = self.calls.get(key, 0) + 1
            at_once = self.layer.training and inputs[3] <= LIMIT
            # more where shapes had to be given up: texts of ever new shapes are not worth a record
            if not at_once and self.calls[key] < FIRST_CALLS * (1 + self.given_up):
                return None
            self._record(key, inputs)
        self.records.move_to_end(key)
        return self.records[key]

    def _possible(self, x: Tensor, mask: Tensor | None = None, special: Tensor | None = None) -> bool:
        """Whether an input can be replayed. What the layer refuses goes to the layer."""
        if torch.compiler.is_compiling() or not (isinstance(x, Tensor) and x.is_cuda) or recording():
            return False
        usual = x.dim() == 3 and x.shape[-1] == self.layer.dim and x.is_floating_point() and x.numel() > 0
        masks = [one for one in (mask, special) if one is not None]
        fits = usual and (x.shape[1] <= LIMIT or (x.numel() <= MOST and self._skips(x.shape[1])))
        return fits and all(_is_mask(one, x) for one in masks)

    def _skips(self, n: int) -> bool:
        """Whether the mean field of n tokens takes kernels that skip samples that are done."""
        layer, options = self.layer, self.layer.settings
        kernels = support.HAS_TRITON and layer.value.weight.dtype != torch.float64
        rank = layer.head_dim + (layer.samples if layer.training else layer.eval_samples)
        return kernels and options.usual_solver and options.linear(n) and rank <= LARGEST_RANK

    def _waits_for_backward(self) -> bool:
        """Whether what a forward pass left in the graphs' memory is still needed."""
        return self.pending is not None and self.pending() is not None

    @staticmethod
    def _padded(
        x: Tensor, mask: Tensor | None, special: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None, int]:
        """x, a mask and the special tokens, the last two padded to a multiple; x is padded where it is copied to

        Without padding no mask stays none: the kernels have less to do.
        """
        n = x.shape[1]
        step = SHORT if n <= MIDDLE else max(LONG, 2 ** ((n - 1).bit_length() - 5))
        more = -n % step
        if not more:
            return x, None if mask is None else mask.bool(), special, n
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask.bool()
        special = None if special is None else functional.pad(special, (0, more))
        return x, functional.pad(mask, (0, more)), special, n + more

    def _key(self, inputs: Inputs) -> Key:
        """Everything that decides which kernels run, and on which memory; first the padded input's shape."""
        layer, (x, mask, special, length, kind) = self.layer, inputs
        cast = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
        grad, frozen = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        weights = tuple((one.data_ptr(), one.dtype, one.requires_grad) for one in layer.parameters())
        options = (frozen, layer.training, layer.samples, layer.eval_samples, id(layer.settings))
        shape = (x.shape[0], length, x.shape[2])
        return (
            shape,
            kind,
            x.dtype,
            x.device,
            mask is None,
            special is None,
            cast,
            grad,
            grad and x.requires_grad,
            weights,
            options,
        )

    def _record(self, key: Key, inputs: Inputs) -> None:
        while self.records and (
            len(self.records) >= SHAPES or sum(prod(one[0]) for one in (key, *self.records)) > HELD
        ):
            self.calls.pop(self.records.popitem(last=False)[0], None)
            self.given_up += 1
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        with torch.cuda.device(inputs[0].device), preserved():
            self.records[key] = _Record(self.layer, inputs, self.pool)

    def _replay(self, record: "_Record", inputs: Inputs) -> Played:
        x, mask, special, *_ = inputs
        if mask is not None and record.mask is not None:
            record.mask.copy_(mask)
        if special is not None and record.special is not None:
            record.special.copy_(special)
        if record.slopes is None:
            pooled, figures = record.forward(x)
        else:
            token = _Token()
            self.pending = weakref.ref(token)
            pooled, figures = _Step.apply(record, token, x, *record.weights)
        ess, residual, converged, steps = figures.unbind()
        return Played(pooled, Diagnostics(ess, residual, converged.bool(), steps.long()))


def _is_mask(mask: Tensor, x: Tensor) -> bool:
    whole = isinstance(mask, Tensor) and not mask.is_floating_point() and not mask.is_complex()
    return whole and mask.device == x.device and mask.shape == x.shape[:2]


class _Token:
    """Lives as long as the backward pass of a forward pass may still come."""


class _Record:
    """The two graphs of one shape, and the memory that they read and write."""

    def __init__(self, layer: NeuroGameAttention, inputs: Inputs, pool: Any) -> None:
        x, mask, special, length, read = inputs
        learns = torch.is_grad_enabled()
        self.x = x.new_empty(x.shape[0], length, x.shape[2], dtype=x.dtype if read is None else read)
        self.kind = x.dtype
        self.inverse: Tensor | None = None  # 1 / standard deviations of tokens, where those are normed for the graph
        if read is not None and layer.settings.values == "normed":
            self.inverse = x.new_empty(x.shape[0] * length, dtype=torch.float32)
        self._take(x)
        self.x.requires_grad_(learns and x.requires_grad)
        self.mask = None if mask is None else mask.clone()
        self.special = None if special is None else special.clone()
        self.weights = [one for one in layer.parameters() if one.requires_grad] if learns else []
        leaves = [*([self.x] if self.x.requires_grad else []), *self.weights]
        cast = torch.is_autocast_enabled("cuda")
        kind = torch.get_autocast_dtype("cuda")

        def run() -> tuple[Tensor, Tensor]:
            # without the cache: casts of weights that lie outside of the graph would not be replayed
            with torch.autocast("cuda", enabled=cast, dtype=kind, cache_enabled=False):
                if read is not None:
                    pooled, told = layer.from_read(self.x, self.mask, self.special)
                else:
                    out = layer(self.x, self.mask, special=self.special)
                    pooled, told = out.pooled, out.diagnostics
            figures = [part.detach().float() for part in (told.ess, told.residual, told.converged, told.steps)]
            return pooled, torch.stack(figures)

        def slopes_of(pooled: Tensor, slope: Tensor) -> tuple[Tensor | None, ...]:
            with torch.autocast("cuda", enabled=False):
                return torch.autograd.grad(pooled, leaves, slope, allow_unused=True)

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                pooled, _ = run()
                if leaves:
                    slopes_of(pooled, torch.ones_like(pooled))
                del pooled
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with _capture(self.graph, pool):
            self.pooled, self.figures = run()
        self.slopes: tuple[Tensor | None, ...] | None = None
        if leaves:
            self.slope = torch.zeros_like(self.pooled)
            self.back = torch.cuda.CUDAGraph()
            with _capture(self.back, pool):
                self.slopes = slopes_of(self.pooled, self.slope)
        self.pooled = self.pooled.detach()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of what the graph leaves."""
        self._take(x)
        self.graph.replay()
        return self.pooled.clone(), self.figures.clone()

    def backward(self, slope: Tensor, n: int) -> list[Tensor | None]:
        """Gradients of x, if it has one, of its n tokens, and of the weights."""
        assert self.slopes is not None
        self.slope.copy_(slope)
        self.back.replay()
        slopes, first = list(self.slopes), None
        if self.x.requires_grad and slopes[0] is not None:
            if self.inverse is None:
                slopes[0] = slopes[0][:, :n].to(self.kind)
            else:
                first, slopes[0] = norm_slopes(slopes[0], self.x.detach(), self._inverse_of(n), self.kind), None
        given = [one for one in slopes if one is not None]
        copies = [torch.empty_like(one, memory_format=torch.contiguous_format) for one in given]
        if given:
            torch._foreach_copy_(copies, given)  # in one launch, where all are whole
        found = iter(copies)
        slopes = [None if one is None else next(found) for one in slopes]
        return slopes if first is None else [first, *slopes[1:]]

    def _inverse_of(self, n: int) -> Tensor:
        """Room for 1 / standard deviations of texts of n tokens, (B, n)."""
        assert self.inverse is not None
        return self.inverse[: self.x.shape[0] * n].view(-1, n)

    def _take(self, x: Tensor) -> None:
        """Copy x, or x as it is read, to where the graph reads it, with zeros for padding."""
        n, own = x.shape[1], self.x.detach()
        if self.inverse is None:
            own[:, :n].copy_(x.detach())
        else:
            norm_into(x.detach(), own, self._inverse_of(n))
        if n < own.shape[1]:
            own[:, n:].zero_()


@contextmanager
def _capture(graph: torch.cuda.CUDAGraph, pool: Any) -> Iterator[None]:
    """Record what the block launches. Other threads go on; a graph that is collected meanwhile would spoil this one."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            yield
    finally:
        if enabled:
            gc.enable()


class _Step(torch.autograd.Function):
    """A replayed forward pass with its replayed backward."""

    @staticmethod
    def forward(ctx: Any, record: _Record, token: _Token, x: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        ctx.record, ctx.token, ctx.tokens = record, token, x.shape[1]
        pooled, figures = record.forward(x)
        ctx.mark_non_differentiable(figures)
        return pooled, figures

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Any, ...]:
        if ctx.token is None:
            raise RuntimeError("the backward pass of a replayed layer can be run once for each forward pass")
        slopes = ctx.record.backward(slope, ctx.tokens)
        ctx.token = None
        first = [] if ctx.record.x.requires_grad else [None]
        return (None, None, *first, *slopes)
