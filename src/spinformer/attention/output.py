"""What a NeuroGame layer returns: every quantity of the paper, and diagnostics."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spinformer.ising import Couplings


@dataclass(frozen=True)
class HeadCouplings:
    """Couplings of every attention head, J_ij^(h): `matvec` on (B, heads, n), `dense` as (B, heads, n, n)."""

    flat: Couplings
    heads: int

    def matvec(self, m: Tensor) -> Tensor:
        """sum over j of J_ij m_j."""
        return self._by_head(self.flat.matvec(m.flatten(0, 1)))

    def dense(self) -> Tensor:
        """The matrices; O(n^2) memory, also for low-rank couplings."""
        return self._by_head(self.flat.dense())

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(0, (len(x) // self.heads, self.heads))


@dataclass(frozen=True)
class Diagnostics:
    """How far to trust the numbers, each (B, heads), one for each attention head.

    ess: mean effective sample size of the estimates, at most the number of samples; residual: of the undamped
    mean-field map; converged: whether it is within the tolerance; steps: mean-field steps taken.
    """

    ess: Tensor
    residual: Tensor
    converged: Tensor
    steps: Tensor


@dataclass(frozen=True)
class NeuroGameOutput:
    """Our names and the paper's symbols; B sequences, n tokens, d = dim. Padding is 0 throughout.

    pooled: z or z_cat, (B, d), NGT Eqs. 26-27. The others are (B, heads, n), or (B, heads, n, n) for pairs:
    attention: alpha, NGT Eq. 11.
    shapley, banzhaf: phi and beta as estimated, before any normalisation, NGT Eqs. 4-5; other indices where
    `Settings.player_indices` names them.
    gate: lambda, NGT Eq. 7.
    fields, couplings: J_i and J_ij as they enter the Hamiltonian, NGT Eqs. 6, 9.
    interactions: J_ij as estimated, in the units of shapley and banzhaf.
    magnetization: <s_i>, NGT Eq. 16.
    """

    pooled: Tensor
    attention: Tensor
    shapley: Tensor
    banzhaf: Tensor
    gate: Tensor
    fields: Tensor
    couplings: HeadCouplings
    interactions: HeadCouplings
    magnetization: Tensor
    diagnostics: Diagnostics


for _kind in (HeadCouplings, Diagnostics, NeuroGameOutput):
    torch.export.register_dataclass(_kind, serialized_type_name=f"spinformer.{_kind.__name__}")
