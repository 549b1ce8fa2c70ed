"""Four shapes of couplings J_ij (d, d) between N vector spins, behind one interface.

    full       J_ij free                                N² d²   parameters
    low-rank   J_ij = L_i R_j'                          2 N d k
    relative   J_ij = K[row_i - row_j, column_i - column_j]     (2R+1)(2C+1) d²,  0 beyond the reach (R, C)
    shared     J_ij = W_Q' W_K for all i ≠ j            2 k d   (ATT Eq. 5, W_V = J)

Every shape offers the three contractions that energies, attention, dynamics and training are made of,
for a range of sites i (its rows) and all j:

    scores(q, x)_ij = q_i J_ij x_j,     pull(w, x)_i = Σ_j w_ij J_ij x_j,     outer(l, w, x) = Σ_b l_i w_ij x_j'

`outer` gives the last in terms of the shape's parameters: it is the derivative of Σ_b Σ_ij w_ij l_i J_ij x_j.
Tensors over pairs have the shape (sites, B, N); x is (B, N, d); w = None stands for w_ij = 1, which needs no tensor
over pairs.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.choices import SHAPES as SHAPES
from spinformer._base.rng import check_generator


class SpinCouplings(nn.Module, ABC):
    """J_ij (d, d) for N sites and d components: the interface of the four shapes. linear: in the parameters."""

    n_tokens: int
    dim: int
    linear: ClassVar[bool] = True

    def check_spins(self, x: Tensor, name: str = "spins") -> Tensor:
        """`x`, which must be finite spins (B, N, d) in the type of the couplings; anything else is an error."""
        checks.instance(name, x, Tensor)
        if x.dim() != 3 or x.shape[1:] != (self.n_tokens, self.dim):
            raise ValueError(f"expected {name} (batch, {self.n_tokens}, {self.dim}), got {tuple(x.shape)}")
        checks.same_type(name, x, next(self.parameters()).dtype, "the couplings")
        checks.finite(name, x)
        return x

    @abstractmethod
    def dense(self) -> Tensor:
        """J as (N, N, d, d), zero where i = j."""

    @abstractmethod
    def storage(self) -> dict[str, Tensor]:
        """The parameters as contiguous tensors without gradient, for updates in place."""

    @abstractmethod
    def scores(self, q: Tensor, x: Tensor, sites: slice) -> Tensor:
        """q_i J_ij x_j for q (B, sites, d): (sites, B, N)."""

    @abstractmethod
    def pull(self, w: Tensor | None, x: Tensor, sites: slice) -> Tensor:
        """Σ_j w_ij J_ij x_j for w (sites, B, N): (B, sites, d)."""

    @abstractmethod
    def outer(
        self, left: Tensor, w: Tensor | None, x: Tensor, sites: slice, into: dict[str, Tensor], scale: float
    ) -> None:
        """Add `scale` Σ_b l_i w_ij x_j', by parameter, to `into` (shaped as `storage`)."""

    @abstractmethod
    def clear_diagonal(self, tensors: dict[str, Tensor] | None = None) -> None:
        """Set J_ii = 0 in the parameters, or in tensors shaped as `storage`."""

    @abstractmethod
    def lengths(self, tensors: dict[str, Tensor], per: str) -> dict[str, Tensor]:
        """Euclidean norms of parameters or gradients, per site or per pair, shaped to multiply them.

        `tensors` are shaped as `storage`; of the full shape they may be the rows of some sites alone.
        """


class RowCouplings(SpinCouplings):
    """Shapes that are contracted by the rows of J: one matrix (d, d N) for each site."""

    @abstractmethod
    def rows(self, sites: slice) -> Tensor:
        """J_ij of these sites as (S, d, d N)."""

    def scores(self, q: Tensor, x: Tensor, sites: slice) -> Tensor:
        """One batched matrix product over sites, then a sum over components."""
        return row_scores(self.rows(sites), q, x)

    def pull(self, w: Tensor | None, x: Tensor, sites: slice) -> Tensor:
        """One batched matrix product over sites."""
        return row_pull(self.rows(sites), w, x)


class FullCouplings(RowCouplings):
    """J free: `weight` is (N, N, d, d) by name and [i, a, b, j] in memory: rows i are matrices, sites j adjacent.

    One pass over S sites and B samples takes S B N (d + 2) floats of workspace beside the parameters.
    """

    def __init__(self, n_tokens: int, dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        check_build(n_tokens, dim, generator)
        self.n_tokens, self.dim = n_tokens, dim
        memory = (torch.rand(n_tokens, dim, dim, n_tokens, generator=generator) - 0.5) / dim  # ±1 / (2d)
        self.weight = nn.Parameter(memory.permute(0, 3, 1, 2))
        self.clear_diagonal()

    def dense(self) -> Tensor:
        """The parameter itself."""
        return self.weight

    def storage(self) -> dict[str, Tensor]:
        """{"weight": (N, d, d, N)}, [i, a, b, j]."""
        return {"weight": self.weight.detach().permute(0, 2, 3, 1)}

    def rows(self, sites: slice) -> Tensor:
        """As they lie in memory."""
        return self.weight[sites].permute(0, 2, 3, 1).flatten(2)

    def outer(
        self, left: Tensor, w: Tensor | None, x: Tensor, sites: slice, into: dict[str, Tensor], scale: float
    ) -> None:
        """One batched matrix product over sites, the batch contracted."""
        target = into["weight"][sites].view(-1, self.dim, self.dim * self.n_tokens)
        if w is None:
            target.view(-1, self.dim * self.n_tokens).addmm_(
                left.flatten(1).T, x.transpose(1, 2).flatten(1), alpha=scale
            )
        else:
            target.baddbmm_(left.permute(1, 2, 0), weighted(w, x), alpha=scale)

    @torch.no_grad()
    def clear_diagonal(self, tensors: dict[str, Tensor] | None = None) -> None:
        """Set J_ii = 0."""
        weight = (self.storage() if tensors is None else tensors)["weight"]
        weight.diagonal(dim1=0, dim2=3).zero_()

    def lengths(self, tensors: dict[str, Tensor], per: str) -> dict[str, Tensor]:
        """|J_i| of every site's row ("site") or |J_ij| of every pair ("pair")."""
        axes = {"site": (1, 2, 3), "pair": (1, 2)}
        if per not in ("site", "pair"):
            raise ValueError(f"full couplings hold their norm per 'site' or per 'pair', got {per!r}")
        return {"weight": torch.linalg.vector_norm(tensors["weight"], dim=axes[per], keepdim=True)}


def check_build(n_tokens: int, dim: int, generator: torch.Generator | None) -> None:
    """Couplings are between at least two sites of at least one component."""
    checks.at_least("n_tokens", n_tokens, 2)
    checks.at_least("dim", dim, 1)
    check_generator(generator)


def factors(
    shape: tuple[int, ...], rank: int, dim: int, generator: torch.Generator | None
) -> tuple[nn.Parameter, nn.Parameter]:
    """Two factors of couplings of this rank, drawn so that entries of J are as large as the full shape's."""
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise ValueError(f"expected a rank of at least 1, got {rank!r:.60}")
    bound = (1 / (2 * dim)) ** 0.5 * (3 / rank) ** 0.25
    first, second = ((2 * torch.rand(*shape, generator=generator) - 1) * bound for _ in range(2))
    return nn.Parameter(first), nn.Parameter(second)


class LowRankSpinCouplings(SpinCouplings):
    """J_ij = L_i R_j': scores are queries L_i' x_i against keys R_j' x_j, as in a transformer's layer."""

    linear = False

    def __init__(self, n_tokens: int, dim: int, rank: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        check_build(n_tokens, dim, generator)
        self.n_tokens, self.dim, self.rank = n_tokens, dim, rank
        self.left, self.right = factors((n_tokens, dim, rank), rank, dim, generator)

    def dense(self) -> Tensor:
        """L_i R_j' for all pairs, zero where i = j."""
        pairs = torch.einsum("iak,jbk->ijab", self.left, self.right)
        other = ~torch.eye(self.n_tokens, dtype=torch.bool, device=pairs.device)
        return pairs * other[..., None, None]

    def storage(self) -> dict[str, Tensor]:
        """{"left": (N, d, k), "right": (N, d, k)}."""
        return {"left": self.left.detach(), "right": self.right.detach()}

    def scores(self, q: Tensor, x: Tensor, sites: slice) -> Tensor:
        """Queries against keys."""
        queries = torch.einsum("bia,iak->bik", q, self.left[sites])
        keys = torch.einsum("bja,jak->bjk", x, self.right)
        return (queries @ keys.transpose(1, 2)).transpose(0, 1)

    def pull(self, w: Tensor | None, x: Tensor, sites: slice) -> Tensor:
        """L_i Σ_j w_ij R_j' x_j, the term j = i left out."""
        keys = torch.einsum("bja,jak->bjk", x, self.right)
        mixed = without_self(w, x, sites).transpose(0, 1) @ keys  # (B, S, k)
        return torch.einsum("bik,iak->bia", mixed, self.left[sites])

    def outer(
        self, left: Tensor, w: Tensor | None, x: Tensor, sites: slice, into: dict[str, Tensor], scale: float
    ) -> None:
        """d / dL_i = l_i (Σ_j w_ij R_j' x_j)',  d / dR_j = x_j (Σ_i w_ij L_i' l_i)'."""
        weights = without_self(w, x, sites).transpose(0, 1)  # (B, S, N)
        keys = torch.einsum("bja,jak->bjk", x, self.right)
        queries = torch.einsum("bia,iak->bik", left, self.left[sites])
        into["left"][sites].add_(torch.einsum("bia,bik->iak", left, weights @ keys), alpha=scale)
        into["right"].add_(torch.einsum("bja,bjk->jak", x, weights.transpose(1, 2) @ queries), alpha=scale)

    def clear_diagonal(self, tensors: dict[str, Tensor] | None = None) -> None:
        """Nothing to do: i = j is left out of every sum."""

    def lengths(self, tensors: dict[str, Tensor], per: str) -> dict[str, Tensor]:
        """|L_i| and |R_j| of every site."""
        if per != "site":
            raise ValueError(f"low-rank couplings hold their norm per 'site', got {per!r}")
        return {name: torch.linalg.vector_norm(t, dim=(1, 2), keepdim=True) for name, t in tensors.items()}


def row_scores(rows: Tensor, q: Tensor, x: Tensor) -> Tensor:
    """q_i J_ij x_j from rows (S, d, d N)."""
    components = x.transpose(1, 2).contiguous()  # (B, d, N): sites adjacent, as in the rows
    pulled = torch.bmm(q.transpose(0, 1), rows).unflatten(-1, components.shape[1:])  # q_i J_ij: (S, B, d, N)
    if torch.is_grad_enabled():
        return (pulled * components).sum(-2)
    return pulled.mul_(components).sum(-2)


def row_pull(rows: Tensor, w: Tensor | None, x: Tensor) -> Tensor:
    """Σ_j w_ij J_ij x_j from rows (S, d, d N)."""
    if w is None:
        return (x.transpose(1, 2).flatten(1) @ rows.flatten(0, 1).T).unflatten(-1, rows.shape[:2])
    return torch.bmm(weighted(w, x), rows.transpose(1, 2)).transpose(0, 1)


def weighted(w: Tensor, x: Tensor) -> Tensor:
    """w_ij x_j: (S, B, d N)."""
    return (w[:, :, None] * x.transpose(1, 2).contiguous()).flatten(2)


def without_self(w: Tensor | None, x: Tensor, sites: slice) -> Tensor:
    """w_ij (S, B, N), 0 where i = j; None stands for w_ij = 1."""
    columns = torch.arange(x.shape[1], device=x.device)
    other = columns[sites, None] != columns
    return (x.new_ones(()).expand(len(other), len(x), len(columns)) if w is None else w) * other[:, None]
