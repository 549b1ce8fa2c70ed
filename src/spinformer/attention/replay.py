"""A NeuroGame layer on a GPU that replays what it once did: a CUDA graph of its forward pass and one of its backward.

On short inputs a layer keeps a GPU busy for a millisecond and its host for ten, with launches; on longer ones the host
is slower than the GPU still. Replayed, all launches of a pass are one.
"""

import threading
import weakref
from collections import OrderedDict
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
from spinformer.attention.record import Inputs, Record, Step, Token
from spinformer.kernels import support
from spinformer.kernels.factors import LARGEST_RANK

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
        self.records: OrderedDict[Key, Record] = OrderedDict()
        self.calls: dict[Key, int] = {}
        self.given_up = 0
        self.pool: Any = None
        self.pending: weakref.ref[Token] | None = None
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

    def _record_of(self, inputs: Inputs) -> "Record | None":
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
            self.records[key] = Record(self.layer, inputs, self.pool)

    def _replay(self, record: "Record", inputs: Inputs) -> Played:
        x, mask, special, *_ = inputs
        if mask is not None and record.mask is not None:
            record.mask.copy_(mask)
        if special is not None and record.special is not None:
            record.special.copy_(special)
        if record.slopes is None:
            pooled, figures = record.forward(x)
        else:
            token = Token()
            self.pending = weakref.ref(token)
            pooled, figures = Step.apply(record, token, x, *record.weights)
        ess, residual, converged, steps = figures.unbind()
        return Played(pooled, Diagnostics(ess, residual, converged.bool(), steps.long()))


def _is_mask(mask: Tensor, x: Tensor) -> bool:
    whole = isinstance(mask, Tensor) and not mask.is_floating_point() and not mask.is_complex()
    return whole and mask.device == x.device and mask.shape == x.shape[:2]
