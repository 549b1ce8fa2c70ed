"""Which coalitions to ask about, where some players matter more than others: those that tell most.

    C_k = argmax over C of   sum over i  of cov(phi_i, v(C) - v(N - C) | asked)^2 / var(v(C) - v(N - C) | asked)
          + PAIRS^2 times    sum over ij of cov(I_ij,  v(C) + v(N - C) | asked)^2 / var(v(C) + v(N - C) | asked)

The coalition whose answer, with that of its complement, takes most variance from the values phi_i and from the
interactions I_ij, Shapley's or Banzhaf's, given those asked before, under the Gaussian process of
`spinformer.games.gaussian`. Values are made of differences v(C) - v(N - C) alone and interactions of sums, and the two
are independent: two small problems instead of one. Nothing of v itself is needed, so all is chosen before anything is
asked. Shapley's are told by small and large coalitions, Banzhaf's by those of about half of the players.
"""

import torch
from torch import Tensor

from spinformer.games.designs import paired_design
from spinformer.games.gaussian import CONSTANT, Prior, index_variances, order_ratios

# Mean order of interactions under which coalitions are chosen; more than that of a game: what is left to learn when
# much was asked is of high order.
ORDER = 2.5
# Pairs (C, N - C) that are drawn to choose from, and how many are chosen; the others follow in the order of the draws.
POOL, CHOSEN = 1024, 256
# How much interactions count beside Shapley values, and how many of them: those of the players who matter most.
PAIRS, TARGETS = 0.3, 120
# The interactions that go with values.
PAIR_INDEX = {"SV": "SII", "BV": "BII"}
# Variances below this, in units of a coalition's, are rounding.
FLOOR = 1e-9


def informative_design(
    players: int, count: int, seed: Tensor, weights: Tensor | None = None, index: str = "SV"
) -> Tensor:
    """At most `count` different coalitions: none, all, then C_k and N - C_k in turn, as above; (K, n) booleans.

    weights: of the players (`player_weights`), (n,); None where all count alike. index: of the values that they are to
    tell, SV or BV. A larger count begins with the same coalitions. Where 2^n is at most `count`, all of them.
    """
    if 2 ** min(players, 62) <= count:
        return paired_design(players, count, seed)
    wanted = (count - 2) // 2
    pool = _pairs(players, POOL, seed)
    chosen = _choose(pool, order_ratios(players, ORDER, weights).cpu(), min(wanted, CHOSEN), index)
    half = pool[chosen]
    if wanted > len(chosen):
        half = torch.cat([half, _others(_pairs(players, wanted + len(chosen), seed), half)])[:wanted]
    ends = torch.tensor([[False], [True]]).expand(2, players)
    return torch.cat([ends, torch.stack([half, ~half], 1).flatten(0, 1)])


def _pairs(players: int, count: int, seed: Tensor) -> Tensor:
    """(count, n), at most: one coalition of each pair, none of them empty or full."""
    design = paired_design(players, 2 * count + 2, seed)
    if len(design) == 2**players:  # none, all, then the others in the order of a table: complements mirror each other
        return design[2 : 1 + len(design) // 2]
    return design[2::2]


def _others(pairs: Tensor, chosen: Tensor) -> Tensor:
    """The pairs that are not among those chosen."""
    known = {row.tobytes() for half in (chosen, ~chosen) for row in half.numpy()}
    return pairs[[row.tobytes() not in known for row in pairs.numpy()]]


def _choose(pool: Tensor, ratios: Tensor, count: int, index: str) -> list[int]:
    """The rows of the pool in the order in which they are chosen; the empty and the full coalition are known."""
    prior = Prior(torch.cat([torch.zeros_like(pool[:1]), pool]), ratios)
    first, second = _targets(ratios)
    pairs = prior.cross_covariance(PAIR_INDEX[index], (first, second))
    scales = [index_variances(name, ratios).sum().sqrt() for name in (index, PAIR_INDEX[index])]
    scale = prior.scale
    own = torch.atanh(prior.ratios).sum().expand(len(prior.spins))  # exponents of each coalition with itself
    difference = _Part(scale * own.sinh(), prior.cross_covariance(index) / scales[0], count + 1)
    together = _Part(scale * own.cosh() + CONSTANT, PAIRS * pairs / scales[1].clamp_min(FLOOR), count + 1)
    taken = torch.zeros(len(own), dtype=torch.bool)
    order = [0]
    while len(order) <= count:
        exponents = prior.exponents(prior.spins[order[-1], None])[0]  # with this one
        difference.ask(order[-1], scale * exponents.sinh())
        together.ask(order[-1], scale * exponents.cosh() + CONSTANT)
        taken[order[-1]] = True
        if bool(taken.all()):
            break
        gain = (difference.gain() + together.gain()).masked_fill(taken, -1.0)
        order.append(int(gain.argmax()))
    return [row - 1 for row in order[1:]]


def _targets(ratios: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs of players, i < j, that count: at most TARGETS, with the largest r_i r_j."""
    first, second = torch.triu_indices(len(ratios), len(ratios), 1)
    kept = (ratios[first] * ratios[second]).argsort(descending=True, stable=True)[:TARGETS]
    return first[kept], second[kept]


class _Part:
    """Sums or differences of the pairs of the pool: what asking them takes from the variance of the index values.

    A Cholesky decomposition of their covariance, (R, R), one column at a time in the order of asking; variance: its
    diagonal; cross: covariances of the
    index values with the pairs before anything was asked, (m, R); shares: what each asking takes from every index
    value, in standard deviations. So cov(phi, pairs | asked) = cross - shares^T columns, of which only the sums of
    squares over the index values are kept.
    """

    def __init__(self, variance: Tensor, cross: Tensor, most: int) -> None:
        self.cross, self.variance, self.count = cross.contiguous(), variance, 0
        self.columns, self.shares = cross.new_zeros(most, cross.shape[1]), cross.new_zeros(most, len(cross))
        self.squares = cross.square().sum(0)

    def gain(self) -> Tensor:
        """The variance of all index values together that each pair would take, (R,)."""
        return self.squares / self.variance.clamp_min(FLOOR)

    def ask(self, row: int, covariance: Tensor) -> None:
        """Take this pair as known; covariance: its row, (R,)."""
        columns, shares = self.columns[: self.count], self.shares[: self.count]
        deviation, before = self.variance[row].clamp_min(FLOOR).sqrt(), columns[:, row]
        column = (covariance - before @ columns) / deviation
        share = (self.cross[:, row] - before @ shares) / deviation
        along = share @ self.cross - (shares @ share) @ columns  # share . cov(phi, pairs | asked), (R,)
        self.squares = (self.squares + column * ((share @ share) * column - 2 * along)).clamp_min(0)
        self.variance = (self.variance - column.square()).clamp_min(0)
        self.columns[self.count], self.shares[self.count] = column, share
        self.count += 1
