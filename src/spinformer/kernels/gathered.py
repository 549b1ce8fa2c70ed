"""The gradient of players' vectors, gathered from all that read them, so that one product makes it."""

import torch
from torch import Tensor

from spinformer._base.products import mixed_product


class Gathered:
    """dV = sum of L' R + s V + G,   parts of the gradient of vectors V (B, n, d), from all that read them

    What reads the vectors leaves its parts here in its backward pass, instead of (B, n, d) numbers of its own. The
    vectors' own backward pass comes after all of these and takes them. A part counts in the backward pass that it was
    left in, and in no other: one may end before it gets to the vectors.

    vectors: V, of 16 bits; squares: |v_i|^2, (B, n).
    """

    def __init__(self, vectors: Tensor, squares: Tensor) -> None:
        self.vectors, self.squares = vectors, squares.detach()
        self.run = -1
        self.left: list[Tensor] = []
        self.right: list[Tensor] = []
        self.diagonal: Tensor | None = None
        self.whole: Tensor | None = None

    def add(self, left: Tensor, right: Tensor) -> None:
        """L, (B, P, n), and R, (B, P, d)."""
        self._renew()
        self.left.append(left)
        self.right.append(right)

    def add_diagonal(self, diagonal: Tensor) -> None:
        """s, (B, n)."""
        self._renew()
        self.diagonal = diagonal if self.diagonal is None else self.diagonal + diagonal

    def add_whole(self, whole: Tensor) -> None:
        """G, (B, n, d)."""
        self._renew()
        self.whole = whole if self.whole is None else self.whole + whole

    def add_products(self, weight: Tensor, x: Tensor) -> Tensor:
        """Of V in J m, J = weight V V' off the diagonal, from g, that of J m: w (g_i c + m_i e - 2 g_i m_i v_i)

        with c = V' m and e = V' g, summed over m and g, of which x holds one pair or two: m, g and so on, (B, 2 or 4,
        n). weight: (B, 1). Returns c e - sum over i of g_i m_i |v_i|^2 / d, (B, d), of which the sum is that of the
        weight.
        """
        pulled = mixed_product(x, self.vectors).unflatten(1, (-1, 2))
        crossed = (x[:, ::2] * x[:, 1::2]).sum(1)
        self.add(x, pulled.flip(2).flatten(1, 2) * weight[..., None])
        self.add_diagonal(-2 * weight * crossed)
        return pulled.prod(2).sum(1) - (crossed * self.squares).mean(1, keepdim=True) * (x.shape[2] / pulled.shape[3])

    def take(self) -> tuple[list[Tensor], list[Tensor], Tensor | None, Tensor | None]:
        """All L and R of this backward pass, s and G, None where nobody left any; they are gone then."""
        self._renew()
        found = (self.left, self.right, self.diagonal, self.whole)
        self.run = -1
        self._clear()
        return found

    def _renew(self) -> None:
        run = torch._C._current_graph_task_id()  # a number for each backward pass, -1 outside of one
        if run != self.run:
            self._clear()
            self.run = run

    def _clear(self) -> None:
        self.left, self.right, self.diagonal, self.whole = [], [], None, None


def gathered_of(given: Tensor) -> Gathered | None:
    """Where the gradient of vectors is gathered that this tensor stands for, or stands beside, None where nowhere."""
    return getattr(given, "gathered", None)


def set_gathered(given: Tensor, gathered: Gathered | None) -> Tensor:
    """The tensor, of which `gathered_of` knows this from now on."""
    given.gathered = gathered  # type: ignore[attr-defined]
    return given
