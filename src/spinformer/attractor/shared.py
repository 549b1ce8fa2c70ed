"""One coupling for all pairs, from queries and keys, as in a transformer's self-attention.

    J_ij = J = W_Q' W_K  for i ≠ j,      x_i' = Σ_{j≠i} softmax_j(x_i J x_j) W_V x_j,   W_V = J            (ATT Eq. 5)

W_Q and W_K are (k, d): row k is W_k^Q or W_k^K, and J = Σ_k W_k^Q ⊗ W_k^K. With values J x_j the step is -∂e_i/∂x_i of
ATT Eq. 4; with any other W_V it is in general the gradient of nothing, since its Jacobian W_V Cov_α(x) J' is then not
symmetric. J knows no positions: tokens that trade places trade their updates. The paper's own couplings depend on the
pair for this reason (ATT section II-B).
"""

import torch
from torch import Tensor

from spinformer.attractor.couplings import SpinCouplings, check_build, factors, without_self


class SharedCouplings(SpinCouplings):
    """J_ij = W_Q' W_K for all i ≠ j: 2 k d parameters, `query` and `key` (k, d); k is the `rank`."""

    linear = False

    def __init__(self, n_tokens: int, dim: int, rank: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        check_build(n_tokens, dim, generator)
        self.n_tokens, self.dim, self.rank = n_tokens, dim, rank
        self.query, self.key = factors((rank, dim), rank, dim, generator)

    def dense(self) -> Tensor:
        """W_Q' W_K for all pairs, zero where i = j."""
        other = ~torch.eye(self.n_tokens, dtype=torch.bool, device=self.query.device)
        return (self.query.T @ self.key) * other[..., None, None]

    def storage(self) -> dict[str, Tensor]:
        """{"query": (k, d), "key": (k, d)}."""
        return {"query": self.query.detach(), "key": self.key.detach()}

    def scores(self, q: Tensor, x: Tensor, sites: slice) -> Tensor:
        """Queries against keys."""
        return (q @ self.query.T @ (x @ self.key.T).transpose(1, 2)).transpose(0, 1)

    def pull(self, w: Tensor | None, x: Tensor, sites: slice) -> Tensor:
        """W_Q' Σ_j w_ij W_K x_j, the term j = i left out."""
        return without_self(w, x, sites).transpose(0, 1) @ (x @ self.key.T) @ self.query

    def outer(
        self, left: Tensor, w: Tensor | None, x: Tensor, sites: slice, into: dict[str, Tensor], scale: float
    ) -> None:
        """d / dW_Q = Σ_i (Σ_j w_ij W_K x_j) l_i',  d / dW_K = Σ_j (Σ_i w_ij W_Q l_i) x_j'."""
        weights = without_self(w, x, sites).transpose(0, 1)  # (B, S, N)
        pulled = weights @ (x @ self.key.T)  # (B, S, k)
        pushed = weights.transpose(1, 2) @ (left @ self.query.T)  # (B, N, k)
        into["query"].add_(torch.einsum("bik,bia->ka", pulled, left), alpha=scale)
        into["key"].add_(torch.einsum("bjk,bja->ka", pushed, x), alpha=scale)

    def clear_diagonal(self, tensors: dict[str, Tensor] | None = None) -> None:
        """Nothing to do: i = j is left out of every sum."""

    def lengths(self, tensors: dict[str, Tensor], per: str) -> dict[str, Tensor]:
        """|W_Q| and |W_K|, which all sites share."""
        if per != "site":
            raise ValueError(f"shared couplings hold their norm per 'site', got {per!r}")
        return {name: torch.linalg.vector_norm(tensor)[None, None] for name, tensor in tensors.items()}
