"""The worked example of section 5 of the NeuroGame paper, "not good movie", computed from the paper's equations.

Three tokens, t1 = "not", t2 = "good", t3 = "movie"; a table game; K = 3 coalitions at temperature 1; then the spins.
`worked_example` gives each figure of that section beside the one that the paper prints.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from spinformer.games import TableGame, exact_values
from spinformer.ising import Ising, exact_magnetization, mean_field

WORDS = ("not", "good", "movie")
# v of {}, {1}, {2}, {12}, {3}, {13}, {23}, {123}: bit i of the position is token i
TABLE = (0.0, 0.2, 0.5, 1.2, 0.4, 0.8, 1.0, 1.8)
SAMPLES = ((1,), (0, 2), (1, 2))  # C_1 = {t2}, C_2 = {t1, t3}, C_3 = {t2, t3}
FIELDS = (0.423, 0.711, 0.512)
COUPLINGS = ((0.0, 0.466, 0.312), (0.466, 0.0, 0.278), (0.312, 0.278, 0.0))
TEMPERATURE = 1.0


@dataclass(frozen=True)
class Figure:
    """One figure of the example: what the equations give, and what the paper prints (None where it prints nothing)."""

    name: str
    computed: tuple[float, ...]
    printed: tuple[str, ...] | None

    @property
    def agrees(self) -> bool | None:
        """Whether the two agree to one unit of the last printed digit and to 0.01; None where nothing is printed."""
        if self.printed is None:
            return None
        units = (min(0.01, 10.0 ** -len(text.partition(".")[2])) for text in self.printed)
        rows = zip(self.computed, self.printed, units, strict=True)
        return all(abs(ours - float(theirs)) <= unit for ours, theirs, unit in rows)


def worked_example() -> list[Figure]:
    """Every figure of section 5, in its order, then the true fixed point and the exact marginals."""
    game = TableGame(torch.tensor(TABLE, dtype=torch.float64))
    coalitions = torch.zeros(3, 3, dtype=torch.bool)
    for row, members in enumerate(SAMPLES):
        coalitions[row, list(members)] = True
    value = game(coalitions)
    raw = (value / TEMPERATURE).exp()  # NGT Eq. 31
    # The paper weights by v(C_k) itself here, not by v of C_k without the token.
    weight = raw / raw.sum()  # NGT Eq. 32
    marginal = game.marginals(coalitions[None])[0][0, :, 1]  # NGT Eq. 1
    # The context of C_3 = {t2, t3} around t1, t2 is {t3}; the paper takes the empty one and prints 0.5 for 0.4.
    pair = game.interactions(coalitions[None], slice(0, 1))[0][0, :, 0, 1]  # NGT Eq. 8
    printed = torch.tensor([0.5, 0.4, 0.5], dtype=torch.float64)

    ising = Ising(_row(FIELDS), torch.tensor([COUPLINGS], dtype=torch.float64), TEMPERATURE)
    first = ising.update(torch.zeros(1, 3, dtype=torch.float64))  # NGT Eq. 25
    second = ising.update(first)
    fixed = mean_field(ising, max_steps=200, tol=1e-12).magnetization  # NGT Eq. 16
    exact = exact_magnetization(ising)  # NGT Eq. 15
    return [
        Figure("exp(v(C_k) / gamma)", _numbers(raw), ("1.65", "2.23", "2.72")),
        Figure("Z", _numbers(raw.sum()[None]), ("6.60",)),
        Figure("normalised weights", _numbers(weight), ("0.25", "0.34", "0.41")),
        Figure("marginal contributions of t2", _numbers(marginal), ("0.5", "1.0", "0.6")),
        Figure("phi_2 = beta_2", _numbers((weight * marginal).sum()[None]), ("0.711",)),
        Figure("interactions of t1 and t2", _numbers(pair), ("0.5", "0.4", "0.5")),
        Figure("J_12 from the printed interactions", _numbers((weight * printed).sum()[None]), ("0.466",)),
        Figure("J_12", _numbers((weight * pair).sum()[None]), ("0.466",)),
        Figure("spins after 1 step", _numbers(first[0]), ("0.400", "0.611", "0.471")),
        Figure("spins after 2 steps", _numbers(second[0]), ("0.693", "0.773", "0.668")),
        Figure("spins at the fixed point", _numbers(fixed[0]), ("0.721", "0.798", "0.703")),
        Figure("attention at the fixed point", _numbers((1 + fixed[0]) / 2), ("0.861", "0.899", "0.852")),
        Figure("exact marginals of the spins", _numbers(exact[0]), None),
        Figure("exact Shapley values", _numbers(exact_values(game, "SV")), None),
        Figure("exact Banzhaf values", _numbers(exact_values(game, "BV")), None),
        Figure("exact interaction of t1 and t2", _numbers(exact_values(game, "BII")[:1, 1]), None),
    ]


def _row(numbers: tuple[float, ...]) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def _numbers(tensor: Tensor) -> tuple[float, ...]:
    return tuple(tensor.tolist())
