"""Couplings shared by relative position: J_ij = K[row_i - row_j, column_i - column_j].

Parameters stop growing with N², and the same table serves a grid of another size.
"""

import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer.attractor.couplings import RowCouplings, check_build, weighted


class RelativeCouplings(RowCouplings):
    """K (2R + 1, 2C + 1, d, d) for offsets within the reach (R, C); J_ij = 0 beyond it and for i = j.

    Args:
        grid: (rows, columns) of the sites; N = rows * columns.
        reach: (R, C); by default the whole grid, (rows - 1, columns - 1).
    """

    index: Tensor  # (N, N), the position of each pair's offset in `table`; the last entry is the zero block

    def __init__(
        self,
        grid: tuple[int, int],
        dim: int,
        reach: tuple[int, int] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        checks.integers("grid", grid, 2, 1)
        check_build(grid[0] * grid[1], dim, generator)
        reach = (grid[0] - 1, grid[1] - 1) if reach is None else reach
        checks.integers("reach", reach, 2, 0)
        self.dim, self.reach = dim, reach
        self.offsets = (2 * reach[0] + 1) * (2 * reach[1] + 1)
        self.table = nn.Parameter((torch.rand(self.offsets, dim, dim, generator=generator) - 0.5) / dim)
        self.register_buffer("index", torch.empty(0), persistent=False)
        self.resize(grid)
        self.clear_diagonal()

    def resize(self, grid: tuple[int, int]) -> None:
        """Serve a grid of another size with the same table."""
        checks.integers("grid", grid, 2, 1)
        checks.at_least("the number of sites of the grid", grid[0] * grid[1], 2)
        self.grid, self.n_tokens = grid, grid[0] * grid[1]
        row, column = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
        down = row.reshape(-1, 1) - row.reshape(1, -1)
        across = column.reshape(-1, 1) - column.reshape(1, -1)
        (R, C), width = self.reach, 2 * self.reach[1] + 1
        index = (down + R) * width + across + C
        index[(down.abs() > R) | (across.abs() > C)] = self.offsets
        index.fill_diagonal_(self.offsets)
        self.index = index.to(self.table.device)

    def dense(self) -> Tensor:
        """K looked up for every pair."""
        return self._blocks(slice(None))

    def storage(self) -> dict[str, Tensor]:
        """{"table": (offsets, d, d)}."""
        return {"table": self.table.detach()}

    def _blocks(self, sites: slice) -> Tensor:
        padded = torch.cat((self.table, self.table.new_zeros(1, self.dim, self.dim)))
        return padded[self.index[sites]]  # (S, N, d, d)

    def rows(self, sites: slice) -> Tensor:
        """Looked up."""
        return self._blocks(sites).permute(0, 2, 3, 1).flatten(2)

    def outer(
        self, left: Tensor, w: Tensor | None, x: Tensor, sites: slice, into: dict[str, Tensor], scale: float
    ) -> None:
        """The full shape's, summed over the pairs that share an offset."""
        if w is None:
            pairs = (left.flatten(1).T @ x.transpose(1, 2).flatten(1)).unflatten(0, left.shape[1:])  # (S, d, d N)
        else:
            pairs = torch.bmm(left.permute(1, 2, 0), weighted(w, x))
        blocks = pairs.unflatten(-1, (self.dim, self.n_tokens)).permute(0, 3, 1, 2).flatten(0, 1)
        padded = torch.cat((into["table"], self.table.new_zeros(1, self.dim, self.dim)))
        padded.index_add_(0, self.index[sites].flatten(), blocks, alpha=scale)
        into["table"].copy_(padded[:-1])

    @torch.no_grad()
    def clear_diagonal(self, tensors: dict[str, Tensor] | None = None) -> None:
        """Set K[0, 0] = 0."""
        table = (self.storage() if tensors is None else tensors)["table"]
        table[self.offsets // 2].zero_()

    def lengths(self, tensors: dict[str, Tensor], per: str) -> dict[str, Tensor]:
        """|K|, of the whole table ("site": every site has the same couplings) or of each offset ("pair")."""
        axes = {"site": (0, 1, 2), "pair": (1, 2)}
        if per not in axes:
            raise ValueError(f"relative couplings hold their norm per 'site' or per 'pair', got {per!r}")
        return {"table": torch.linalg.vector_norm(tensors["table"], dim=axes[per], keepdim=True)}
