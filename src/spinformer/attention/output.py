"""What a NeuroGame layer gives back: everything a reader of the paper would look for."""

from dataclasses import dataclass

from torch import Tensor

from spinformer.ising import Couplings


@dataclass(frozen=True)
class HeadCouplings:
    """Couplings of every head, J_ij^(h): `matvec` on (B, heads, n), `dense` as (B, heads, n, n)."""

    flat: Couplings
    heads: int

    def matvec(self, m: Tensor) -> Tensor:
        """sum over j of J_ij m_j."""
        return self.flat.matvec(m.flatten(0, 1)).unflatten(0, (-1, self.heads))

    def dense(self) -> Tensor:
        """The matrices; O(n^2) memory whatever their form."""
        return self.flat.dense().unflatten(0, (-1, self.heads))


@dataclass(frozen=True)
class Diagnostics:
    """How far to trust the numbers, each (B, heads).

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

    pooled: z or z_cat, (B, d), Eqs. 26-27; attention: alpha, (B, heads, n), Eq. 11; shapley: phi, banzhaf: beta, as
    estimated, before any normalisation, (B, heads, n), Eqs. 4-5; gate: lambda, (B, heads, n), Eq. 7; fields: J_i as
    they enter the Hamiltonian, (B, heads, n), Eq. 6; couplings: J_ij as they enter it, Eq. 9; interactions: J_ij as
    estimated, in the units of shapley and banzhaf; magnetization: <s_i>, (B, heads, n), Eq. 16.
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
