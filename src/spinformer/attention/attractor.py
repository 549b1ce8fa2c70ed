"""`AttractorAttention`: self-attention whose every step descends a local energy."""

from typing import Any

import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer.attractor import energy as physics
from spinformer.attractor.couplings import SHAPES, FullCouplings, LowRankSpinCouplings, SpinCouplings, weighted
from spinformer.attractor.gradient import add_energy_gradient, zeros
from spinformer.attractor.relative import RelativeCouplings
from spinformer.attractor.shared import SharedCouplings
from spinformer.attractor.spins import NORMALISATIONS, centred_on_sphere, check_hidden, on_sphere, standard

WORKSPACE = {"cpu": 1 << 23, "cuda": 1 << 28}  # floats; a step that needs more computes the sites in parts


class AttractorAttention(nn.Module):
    """x_i' = λ Σ_{j≠i} α_ij J_ij x_j + γ x_i = -∂e_i/∂x_i + γ x_i,  e_i = -log Σ_{j≠i} exp(λ x_i J_ij x_j).

    x_i in R^d, i = 1..N, are vector spins; J_ij (d, d) are learnt by pseudo-likelihood with the closed gradient
    `coupling_gradient`, without backpropagation. D'Amico and Negri, "Self-attention as an attractor network: transient
    memories without backpropagation", ATT Eqs. 1-6.

    Args:
        n_tokens: N.
        dim: d.
        shape: of the couplings: "full", "low-rank" (J_ij = L_i R_j'), "relative" (by offset on a grid) or "shared"
            (J = W_Q' W_K for all pairs, ATT Eq. 5 with W_V = J).
        rank: of the low-rank and the shared shape.
        grid, reach: (rows, columns) of the relative shape's sites and how far its couplings reach.
        normalisation: between steps: "sphere" (unit spins, as in the paper), "layer" (layer normalisation to unit
            length, the paper's section V-A taken by the word), "standard" (each component over the tokens, inside the
            step, as in the authors' notebook) or "none" (for spins that were centred before).
        strength: λ, multiplies J.
        inertia: γ.
        clamp: upper bound of the scores, or None.
        seed: of the initial couplings, uniform in ±1 / (2d).
    """

    def __init__(
        self,
        n_tokens: int,
        dim: int,
        *,
        shape: str = "full",
        rank: int = 8,
        grid: tuple[int, int] | None = None,
        reach: tuple[int, int] | None = None,
        normalisation: str = "sphere",
        strength: float = 1.0,
        inertia: float = 1.0,
        clamp: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        checks.at_least("n_tokens", n_tokens, 2)
        for name, value in (("strength", strength), ("inertia", inertia), ("clamp", clamp)):
            if name != "clamp" or value is not None:
                checks.finite_number(name, value)
        checks.at_least("seed", seed, 0)
        if normalisation not in NORMALISATIONS:
            raise ValueError(f"normalisation is one of {', '.join(NORMALISATIONS)}; got {normalisation!r}")
        generator = torch.Generator().manual_seed(seed)
        self.pairs: SpinCouplings
        if shape == "full":
            self.pairs = FullCouplings(n_tokens, dim, generator=generator)
        elif shape == "low-rank":
            self.pairs = LowRankSpinCouplings(n_tokens, dim, rank, generator=generator)
        elif shape == "relative":
            if grid is not None:
                checks.integers("grid", grid, 2, 1)
            if grid is None or grid[0] * grid[1] != n_tokens:
                raise ValueError(f"relative couplings need a grid of {n_tokens} sites, got {grid}")
            self.pairs = RelativeCouplings(grid, dim, reach, generator=generator)
        elif shape == "shared":
            self.pairs = SharedCouplings(n_tokens, dim, rank, generator=generator)
        else:
            raise ValueError(f"shape is one of {', '.join(SHAPES)}; got {shape!r}")
        self.dim, self.normalisation = dim, normalisation
        self.strength, self.inertia, self.clamp = strength, inertia, clamp

    @property
    def n_tokens(self) -> int:
        """N."""
        return self.pairs.n_tokens

    @property
    def couplings(self) -> Tensor:
        """J (N, N, d, d), zero where i = j; the parameter itself where the shape is full."""
        return self.pairs.dense()

    def resize(self, grid: tuple[int, int]) -> None:
        """Serve a grid of another size; relative couplings alone can."""
        if not isinstance(self.pairs, RelativeCouplings):
            raise ValueError("only relative couplings serve a grid of another size; build with shape='relative'")
        self.pairs.resize(grid)

    def local_energy(self, x: Tensor) -> Tensor:
        """e_i of every site: (B, N); ATT Eq. 4."""
        return physics.local_energy(self.pairs, self._check(x), **self._options(x))

    def energy(self, x: Tensor) -> Tensor:
        """E = Σ_i e_i: (B,)."""
        return self.local_energy(x).sum(-1)  # ATT Eq. 6

    def attention(self, x: Tensor) -> Tensor:
        """α_ij: (B, N, N); ATT Eq. 2."""
        return physics.attention(self.pairs, self._check(x), strength=self.strength, clamp=self.clamp)

    def step(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One step of ATT Eq. 1, without normalisation; tokens where `mask` (B, N) is true are absent (zero)."""
        x = self._check(x)
        if mask is not None:
            x = x.masked_fill(check_hidden(mask, x)[..., None], 0.0)
        return physics.moved(self.pairs, x, inertia=self.inertia, **self._options(x))

    def retrieve(
        self, x: Tensor, steps: int, mask: Tensor | None = None, return_trajectory: bool = False, *, pin: bool = False
    ) -> Tensor:
        """The state after `steps` steps with normalisation: (B, N, d), or all states (steps + 1, B, N, d).

        Tokens where `mask` is true are absent at the first step. With `pin` the others keep their values.
        """
        checks.at_least("steps", steps, 0)
        x = self._check(x)
        hidden = None if mask is None else check_hidden(mask, x)[..., None]
        state = x if hidden is None else x.masked_fill(hidden, 0.0)
        states = [state]
        for t in range(steps):
            state = self._normalised_step(state, mask if t == 0 else None)
            if pin and hidden is not None:
                state = torch.where(hidden, state, x)
            if return_trajectory:
                states.append(state)
        return torch.stack(states) if return_trajectory else state

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """One step with normalisation: (B, N, d)."""
        return self.retrieve(x, 1, mask)

    def coupling_gradient(self, x: Tensor) -> Tensor:
        """d mean_b(E) / d J (N, N, d, d) in closed form: -λ mean_b(α_ij x_i x_j')."""
        x = self._check_some(x)
        with torch.no_grad():
            scores = physics.scores(self.pairs, x, slice(None), self.strength)
            _, alpha = physics.energy_and_attention(scores, self.clamp)
            hebb = torch.bmm(x.permute(1, 2, 0), weighted(alpha, x)) * (-self.strength / len(x))  # (N, d, d N)
        return hebb.unflatten(-1, (self.dim, self.n_tokens)).permute(0, 3, 1, 2)

    def parameter_gradient(self, x: Tensor) -> dict[str, Tensor]:
        """d mean_b(E) / d the parameters of this shape, in closed form and in their memory layout."""
        gradient = zeros(self.pairs)
        add_energy_gradient(self.pairs, self._check_some(x), gradient, strength=self.strength, clamp=self.clamp)
        return gradient

    def step_input(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The spins that make the fields inside a step, and that training uses: standardised where a step does so."""
        x = self._check(x)
        if mask is not None:
            check_hidden(mask, x)
        return self._step_input(x, mask)

    def _step_input(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return standard(x, mask) if self.normalisation == "standard" else x

    def _normalised_step(self, x: Tensor, mask: Tensor | None) -> Tensor:
        options = self._options(x)
        if self.normalisation == "standard":
            pulled = physics.moved(self.pairs, self._step_input(x, mask), inertia=0.0, **options)
            return pulled + self.inertia * x
        moved = physics.moved(self.pairs, x, inertia=self.inertia, **options)
        after = {"sphere": on_sphere, "layer": centred_on_sphere}.get(self.normalisation)
        return moved if after is None else after(moved)

    def _options(self, x: Tensor) -> dict[str, Any]:
        """λ, the clamp, and as many sites at once as `WORKSPACE` floats hold."""
        budget = WORKSPACE["cuda" if x.is_cuda else "cpu"]
        return {"strength": self.strength, "clamp": self.clamp, "chunk": max(1, budget // max(1, x.numel()))}

    def _check(self, x: Tensor) -> Tensor:
        return self.pairs.check_spins(x)

    def _check_some(self, x: Tensor) -> Tensor:
        if not len(self._check(x)):
            raise ValueError("expected at least one sample, since the gradient is that of their mean; got none")
        return x
