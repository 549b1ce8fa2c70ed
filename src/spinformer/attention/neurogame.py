"""NeuroGame attention: a pooling layer whose weights are the mean field of an Ising model of the tokens' game."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base import checks
from spinformer._base.precision import full_precision, widen
from spinformer._base.rng import draw_seed
from spinformer.attention.from_game import GameAttention, game_attention
from spinformer.attention.hamiltonian import CRITICAL, Units
from spinformer.attention.output import Diagnostics, NeuroGameOutput
from spinformer.attention.settings import settings
from spinformer.games import NormGame
from spinformer.kernels.narrow import NarrowVectors, can_narrow, narrow_vectors, weighted_sum, width_of
from spinformer.kernels.tokens import can_norm, normed


class NeuroGameAttention(nn.Module):
    """v(C) = f(|sum over C of v_i|)                                       characteristic function (NGT Eq. 2)
    J_i = lambda_i phi_i / |phi|_1 + (1 - lambda_i) beta_i / |beta|_1      field (NGT Eq. 6)
    J_ij = E[Delta_ij v(C)]                                                coupling (NGT Eq. 9)
    <s_i> = tanh((J_i + sum_j J_ij <s_j>) / gamma)                         mean field (NGT Eq. 16)
    alpha_i = (1 + <s_i>) / 2,   z = sum_i alpha_i v_i                     attention (NGT Eq. 11), output (NGT Eq. 26)

    with v_i = W_v x_i and lambda_i = sigmoid(w . x_i + b) (NGT Eq. 7): Algorithm 1 of the NeuroGame Transformer. Every
    attention head has its own W_v, w, b and gamma; their outputs are concatenated and projected (NGT Eq. 27).

    dim: d; heads: H, attention heads; head_dim: d_v, by default d for one head and d / H for several; temperature:
    gamma, one number or one per head; samples, eval_samples: K in training and in evaluation. preset and overrides: see
    `Settings`. preset="paper" is Algorithm 1 with the damping of NGT section 7.3, differentiated through its steps; one
    set of K coalitions serves all tokens, where Algorithm 1 draws one for each token and each pair.

    In evaluation the coalitions are the same in every call, or come from `generator`, and do not depend on the batch,
    on the padding or on the order of the tokens. In training they come from `generator` or torch's global state, and
    tokens take random numbers by their place among the tokens.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        head_dim: int | None = None,
        temperature: float | Sequence[float] = 0.25,
        samples: int = 15,
        eval_samples: int = 25,
        preset: str = "default",
        **overrides: Any,
    ) -> None:
        super().__init__()
        for name, value in (("dim", dim), ("heads", heads)):
            checks.at_least(name, value, 1)
        for name, value in (("samples", samples), ("eval_samples", eval_samples)):
            checks.at_least(name, value, 2)
        if head_dim is None:
            if dim % heads:
                raise ValueError(f"dim must be a multiple of heads, or head_dim given; got dim {dim}, heads {heads}")
            head_dim = dim // heads
        checks.at_least("head_dim", head_dim, 1)
        given: list[Any] = list(temperature) if isinstance(temperature, list | tuple) else [temperature]
        for one in given:
            checks.positive("temperature", one)
        temperatures = torch.as_tensor(temperature, dtype=torch.float32)
        if temperatures.dim() > 1 or (temperatures.dim() == 1 and len(temperatures) != heads):
            raise ValueError(f"temperature must be one number or {heads}; got {temperature}")
        checks.positive("temperature", temperatures)
        self.dim, self.heads, self.head_dim = dim, heads, head_dim
        self.samples, self.eval_samples = samples, eval_samples
        self.preset, self.settings = preset, settings(preset, overrides)

        self.value = nn.Linear(dim, heads * head_dim, bias=False)  # W_v of every head
        self.gate = nn.Linear(dim, heads) if self.settings.gate is None else None  # w and b of every head
        single = heads == 1 and head_dim == dim
        self.output: nn.Module = nn.Identity() if single else nn.Linear(heads * head_dim, dim, bias=False)  # W_O
        learned = self.settings.learn_temperature
        self.log_temperature = nn.Parameter(temperatures.expand(heads).log().clone(), requires_grad=learned)
        if self.settings.units == "share":
            self.log_field_gain = nn.Parameter(torch.zeros(heads))
            self.coupling_logit = nn.Parameter(torch.zeros(heads))

    @property
    def temperature(self) -> Tensor:
        """gamma of each attention head, (heads,)."""
        return widen(self.log_temperature).exp()

    def extra_repr(self) -> str:
        """The sizes and the preset, for print(layer)."""
        return f"dim={self.dim}, heads={self.heads}, head_dim={self.head_dim}, preset={self.preset!r}"

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        special: Tensor | None = None,
    ) -> NeuroGameOutput:
        """x: (B, n, dim); mask: (B, n), true for real tokens; special: (B, n), true for special tokens, which with
        special_tokens=False do not play and get attention 0. `pooled` comes in the type of the layer's weights.
        """
        if torch.compiler.is_compiling():
            return self._forward(x, mask, generator, special)
        with checks.postponed():
            return self._forward(x, mask, generator, special)

    def _forward(
        self, x: Tensor, mask: Tensor | None, generator: torch.Generator | None, special: Tensor | None
    ) -> NeuroGameOutput:
        checks.floating("x", x, (3,))
        if x.shape[-1] != self.dim:
            raise ValueError(f"x must have shape (B, n, {self.dim}); got {tuple(x.shape)}")
        kind = self.narrow_kind(x)
        if kind is not None:
            return self._output(*self._from_read(self.read(x, kind), mask, generator, special))
        players = self._players(x, mask, special)
        read = functional.layer_norm(x, (self.dim,)) if self.settings.values == "normed" else x
        read = read.to(self._kind(x))  # once for values and gate
        values = widen(self.value(read))
        checks.finite("values", values, x=x)  # what is not finite in x is not finite here: one check for both
        values = values.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)  # (B, H, n, d_v)
        if self.gate is None:
            gate = torch.full_like(values[..., 0], self.settings.gate or 0.0)
        else:
            gate = widen(self.gate(read)).sigmoid().transpose(1, 2)  # (B, H, n)  NGT Eq. 7
        if players is not None:
            gate = gate * players[:, None]
        return self._output(*self._play(values.flatten(0, 1), gate.flatten(0, 1), players, generator))

    def _output(self, pooled: Tensor, result: GameAttention) -> NeuroGameOutput:
        return result.output(pooled, self.heads)

    def _kind(self, x: Tensor) -> torch.dtype:
        """The type in which values and gate are made."""
        if not torch.is_autocast_enabled(x.device.type):
            return self.value.weight.dtype
        return x.dtype if x.dtype == torch.float64 else torch.get_autocast_dtype(x.device.type)

    def narrow_kind(self, x: Tensor) -> torch.dtype | None:
        """The type of 16 bits in which values and gate are made, where kernels go on from it, else None."""
        kind = self._kind(x)
        usual = self.settings.units == "share" and not torch.compiler.is_compiling()
        fits = x.numel() > 0 and (self.settings.values == "raw" or can_norm(x))
        return kind if usual and fits and can_narrow(kind, x.device) else None

    def read(self, x: Tensor, kind: torch.dtype) -> Tensor:
        """What values and gate are made of, in 16 bits: the tokens, normed if they are to be."""
        return normed(x, kind) if self.settings.values == "normed" else x.to(kind)

    def from_read(self, read: Tensor, mask: Tensor | None, special: Tensor | None) -> tuple[Tensor, Diagnostics]:
        """z and diagnostics for the tokens that `read` was made of."""
        with checks.postponed():
            pooled, result = self._from_read(read, mask, None, special)
        return pooled, result.diagnostics(self.heads)

    def _from_read(
        self, read: Tensor, mask: Tensor | None, generator: torch.Generator | None, special: Tensor | None
    ) -> tuple[Tensor, GameAttention]:
        players = self._players(read, mask, special)
        mapped, bias = self._mapped(read)
        known = narrow_vectors(mapped, bias, players, self.heads, self.head_dim)
        checks.finite("values", known.squares, x=read)
        return self._play_narrow(known, players, generator)

    def _mapped(self, read: Tensor) -> tuple[Tensor, Tensor | None]:
        """W_v x_i of all heads, w . x_i of all if there is a gate, and zeros, (B, n, width); and b, (H,)

        Made by one product, and so is the gradient of what is read, unless other modules stand in place of these two.
        """
        modules = [self.value] if self.gate is None else [self.value, self.gate]
        rows = self.heads * (self.head_dim + (self.gate is not None))
        more = width_of(rows) - rows
        if not all(_is_linear(module) for module in modules):
            mapped = torch.cat([module(read) for module in modules], -1).to(read.dtype)  # with b
            return functional.pad(mapped, (0, more)), None if self.gate is None else read.new_zeros(self.heads)
        weights = torch.cat([*(module.weight for module in modules), self.value.weight.new_zeros(more, self.dim)])
        return functional.linear(read, weights.to(read.dtype)), None if self.gate is None else self.gate.bias

    def _players(self, x: Tensor, mask: Tensor | None, special: Tensor | None) -> Tensor | None:
        mask = checks.mask("mask", mask, x.shape[:2], x.device)
        if self.settings.special_tokens or special is None:
            return mask
        checks.shape("special", special, x.shape[:2])
        outside = special.to(device=x.device, dtype=torch.bool)
        inside = ~outside if mask is None else mask & ~outside
        return checks.mask("mask without special tokens", inside, x.shape[:2], x.device)

    @full_precision
    def _play(
        self, values: Tensor, gate: Tensor, players: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, GameAttention]:
        """From values, (B H, n, d_v), and gates, (B H, n): every attention head is a sequence of its own."""
        mask, activation = self._by_head(players), self.settings.activation
        if self.settings.units == "paper":
            game = NormGame(values, mask, activation, trusted=True, by_column=self.training)
        else:
            game = NormGame.of_shares(values, mask, activation, self.training)
        return self._answer(game, gate, generator, lambda alpha: _WeightedSum.apply(alpha, values))

    @full_precision
    def _play_narrow(
        self, known: NarrowVectors, players: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, GameAttention]:
        """The same from values of 16 bits."""
        mask, gate = self._by_head(players), known.gate
        if gate is None:
            gate = torch.full_like(known.squares, self.settings.gate or 0.0)
            gate = gate if mask is None else gate * mask
        game = NormGame.of_narrow(known, mask, self.settings.activation, self.training)
        return self._answer(game, gate, generator, lambda alpha: weighted_sum(alpha, known))

    def _by_head(self, players: Tensor | None) -> Tensor | None:
        return players if players is None or self.heads == 1 else players.repeat_interleave(self.heads, 0)

    def _answer(
        self, game: NormGame, gate: Tensor, generator: torch.Generator | None, pool: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, GameAttention]:
        """From games and gates to attention and output; pool: sum_i alpha_i v_i of alpha, (B H, n) -> (B H, d_v)."""
        options, batch = self.settings, game.batch // self.heads
        per_head = self.temperature
        checks.positive("temperature", per_head)
        units = None
        if options.units == "share":
            units = Units(widen(self.log_field_gain).exp().repeat(batch), self.coupling_part.repeat(batch))
        fixed = not self.training and generator is None
        result = game_attention(
            game,
            gate,
            per_head.repeat(batch),  # (B H,)
            options,
            units,
            budget=self.samples if self.training else self.eval_samples,
            seed=self._fixed_seed(game.device) if fixed else draw_seed(generator, game.device),
            shared=not self.training or options.draws == "shared",
        )
        pooled = pool(result.attention)  # NGT Eq. 26
        if options.pooling == "mean":
            pooled = pooled / result.attention.sum(-1, keepdim=True).clamp_min(torch.finfo(pooled.dtype).eps)
        joined = pooled.view(batch, self.heads * self.head_dim)
        return self.output(joined.to(self.value.weight.dtype)), result  # (B, d)  NGT Eq. 27

    @staticmethod
    def _fixed_seed(device: torch.device) -> Tensor:
        """0, on the CPU, or where the values are under torch.compile."""
        return torch.zeros((), dtype=torch.long, device=device if torch.compiler.is_compiling() else None)

    @property
    def coupling_part(self) -> Tensor:
        """The part of the critical strength that couplings may have, of each attention head, (heads,)."""
        return CRITICAL * widen(self.coupling_logit).sigmoid()


def _is_linear(module: nn.Module) -> bool:
    """Whether a module is the linear map that it was made as, which nobody listens to."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return type(module) is nn.Linear and not any(hooks)


class _WeightedSum(torch.autograd.Function):
    """z = sum_i alpha_i v_i,   dalpha_i = v_i . g,   dv_i = alpha_i g, the last by one write, without a product."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(alpha, values)
        return torch.bmm(alpha[:, None], values).squeeze(1)

    @staticmethod
    @full_precision
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        alpha, values = ctx.saved_tensors
        (g,) = gradients
        return torch.bmm(values, g[..., None]).squeeze(-1), alpha[..., None] * g[:, None]
