"""What a NeuroGame layer did on one shape of input: two CUDA graphs, and the memory that they read and write."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.kernels.tokens import norm_into, norm_slopes

# x as it is; mask and special tokens, of the padded length; that length; the type of 16 bits in which the layer reads x
Inputs = tuple[Tensor, Tensor | None, Tensor | None, int, torch.dtype | None]


class Token:
    """Lives as long as the backward pass of a forward pass may still come."""


class Record:
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


class Step(torch.autograd.Function):
    """A replayed forward pass with its replayed backward."""

    @staticmethod
    def forward(ctx: Any, record: Record, token: Token, x: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of z and of the figures; the weights are given for their gradients alone."""
        ctx.record, ctx.token, ctx.tokens = record, token, x.shape[1]
        pooled, figures = record.forward(x)
        ctx.mark_non_differentiable(figures)
        return pooled, figures

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Any, ...]:
        """Gradients of x and of the weights, once."""
        if ctx.token is None:
            raise RuntimeError("the backward pass of a replayed layer can be run once for each forward pass")
        slopes = ctx.record.backward(slope, ctx.tokens)
        ctx.token = None
        first = [] if ctx.record.x.requires_grad else [None]
        return (None, None, *first, *slopes)
