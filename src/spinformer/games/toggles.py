"""Values of a game of many players: what each of them adds to a few coalitions.

    phi_i = E over q of E over C of [v(C + i) - v(C - i)],   every player in C with probability q, q uniform on 0 .. 1

One of the two is v(C) itself, so n + 1 coalitions tell what every player adds to C. Few coalitions of so many players
would tell little more than the prior of `spinformer.games.gaussian` about each. Interactions are second differences, of
the STRONGEST players: those of all n (n - 1) / 2 pairs would be too many. Banzhaf's indices are the same means at
q = 1/2; they are read off the coalitions near it.

What players add differs most between small coalitions: in large ones nobody changes much. So q = u^2, with weights 2 u
and u stratified: half of the coalitions have less than a quarter of the players. These are also read soonest. Player i
is in C where a number of its own is below q; these are stratified over the coalitions too, for each player.
"""

import math

import numpy as np
import torch
from torch import Tensor

from spinformer._base.rng import uniforms
from spinformer.games.game import Game
from spinformer.games.gaussian import share_out

# Players from which this takes less time for the same error than quadrature (docs/concepts/refinement.md).
LONG = 100
# Coalitions: at least, for the standard error, and at most.
CONTEXTS = (6, 16)
# Players whose interactions with each other are told.
STRONGEST = 12
# How near to 1/2 the q of a coalition is that tells of Banzhaf's indices: a standard deviation.
NEAR = 0.2
# Student's t of 95%, over that of many degrees of freedom, for so many of them.
STUDENT = {1: 6.483, 2: 2.195, 3: 1.624, 4: 1.417, 5: 1.312, 6: 1.248, 7: 1.206}

# By the name of the index: values and standard errors.
Values = dict[str, tuple[Tensor, Tensor]]


def context_count(players: int, evaluations: int) -> int:
    """Coalitions that players are added to within so many evaluations, as many as CONTEXTS allows."""
    return min(max(evaluations // (players + 1), CONTEXTS[0]), CONTEXTS[1])


def toggled_values(
    game: Game,
    row: int,
    columns: Tensor,
    count: int,
    seed: Tensor,
    strong: Tensor | None = None,
    *,
    gain: Tensor | None = None,
) -> Values:
    """Values and standard errors of GAME_INDICES of one game of the batch, (n,) or (n, n) each, in float64.

    columns: of its n players; count: of coalitions, a number in CONTEXTS; strong: as of `toggled_pairs`, by default the
    STRONGEST, and none if there are none of them; gain: v(N) - v(nothing), which Shapley values add up to if it is
    given. The standard errors have Student's factor.
    """
    drawn = _Contexts(game, row, columns, count, seed)
    singles = drawn.toggled(torch.arange(len(columns))[:, None])  # (K, n)
    added = drawn.sign * (singles - drawn.base)  # v(C + i) - v(C - i)
    found = {name: _mean(added, drawn.weights(name)) for name in ("SV", "BV")}
    if gain is not None:
        found["SV"] = (share_out(found["SV"][0], gain), found["SV"][1])
    strong = strongest(found["SV"][0]) if strong is None else strong
    return found | _second_differences(drawn, strong, singles[:, strong])


def toggled_pairs(game: Game, row: int, columns: Tensor, count: int, seed: Tensor, strong: Tensor) -> Values:
    """The same of SII and BII alone, (n, n).

    strong: numbers of players, in order, whose interactions with each other are told. Those of other pairs are 0, with
    infinite standard errors.
    """
    drawn = _Contexts(game, row, columns, count, seed)
    return _second_differences(drawn, strong, drawn.toggled(strong[:, None]))


def untold(players: int, device: torch.device) -> Values:
    """SII and BII where nothing is told of any pair: 0, with infinite standard errors, but for the diagonal."""
    nothing = torch.zeros(players, players, dtype=torch.float64, device=device)
    errors = torch.full_like(nothing, math.inf).fill_diagonal_(0)
    return {"BII": (nothing, errors), "SII": (nothing, errors)}


def strongest(shapley: Tensor) -> Tensor:
    """The numbers of the STRONGEST players, in order, by their Shapley values, (n,)."""
    return shapley.detach().abs().topk(min(STRONGEST, len(shapley))).indices.sort().values


class _Contexts:
    """The coalitions C of one game, K of them, to which players are added. sign: 1 for players out of C, -1 for those
    in it, (K, n); base: v(C), (K, 1).
    """

    def __init__(self, game: Game, row: int, columns: Tensor, count: int, seed: Tensor) -> None:
        self.game, self.row, self.columns = game, row, columns
        drawn, self.place = contexts(len(columns), count, seed)
        self.coalitions = torch.zeros(len(drawn), game.players, dtype=torch.bool)
        self.coalitions[:, columns] = drawn
        self.base = game.evaluate_rows([row], self.coalitions[None].to(game.device))[0, :, None].double()
        self.sign = (1 - 2 * drawn.double()).to(self.base.device)

    def toggled(self, sets: Tensor) -> Tensor:
        """v where the players of each set, (P, s), are out instead of in, or in instead of out: (K, P)."""
        return self.game.toggled(self.row, self.coalitions, self.columns[sets.cpu()]).double()

    def weights(self, index: str) -> Tensor:
        """Of each coalition, (K,), with the sum 1."""
        weights = self.place
        if index in ("BV", "BII"):
            weights = weights * (((self.place.square() - 0.5) / NEAR).square() * -0.5).exp()
        return (weights / weights.sum()).to(self.base.device)


def _second_differences(drawn: _Contexts, strong: Tensor, singles: Tensor) -> Values:
    """v(C + ij) - v(C + i) - v(C + j) + v(C) of the strong players; singles: v where each is toggled, (K, s)."""
    count = len(drawn.columns)
    if len(strong) < 2:
        return untold(count, drawn.base.device)
    one, other = torch.combinations(torch.arange(len(strong), device=strong.device), 2).unbind(1)
    first, second = strong[one], strong[other]
    corners = drawn.toggled(torch.stack([first, second], 1)) - singles[:, one] - singles[:, other] + drawn.base
    both = drawn.sign[:, first] * drawn.sign[:, second] * corners
    told, at = untold(count, both.device), (torch.cat([first, second]), torch.cat([second, first]))
    found = {}
    for name, (values, errors) in told.items():
        value, stderr = _mean(both, drawn.weights(name))
        found[name] = (values.index_put(at, value.repeat(2)), errors.index_put(at, stderr.repeat(2)))
    return found


def contexts(players: int, count: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Coalitions, from small to large, (K, n), and the u of each, (K,)."""
    numbers = uniforms(seed, 1, count, 1 + 2 * players, torch.device("cpu"))[0].double()
    place = (torch.arange(count) + numbers[:, 0]) / count
    order, within = numbers[:, 1:].chunk(2, 1)
    level = (order.argsort(0).argsort(0) + within) / count  # stratified over the coalitions, for each player
    return level < place.square()[:, None], place


def _mean(each: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """w . x of K coalitions, from x, (K, N), and its standard error, (N,) each

    stderr^2 = |B x|^2 |w|^2 / |B|^2,   B x = differences of w_k (x_k - w . x) of neighbours

    Neighbours are coalitions of about the same size: what players add to small and to large ones differs without being
    an error. Student's factor has the degrees of freedom of |B x|^2, tr(B B')^2 / tr(B B' B B').
    """
    apart = (torch.diag(weights) - weights[:, None] * weights).diff(dim=0)  # B, (K - 1, K)
    size, degrees = apart.square().sum(), apart.square().sum().square() / (apart @ apart.mT).square().sum()
    spread = (apart @ each.detach()).square().sum(0) * (weights.square().sum() / size)
    return weights @ each, _student(float(degrees)) * spread.sqrt()


def _student(degrees: float) -> float:
    """STUDENT; between whole degrees of freedom its logarithm is on a line in their inverse."""
    inverse, factors = [-1 / whole for whole in STUDENT], np.log(list(STUDENT.values()))
    return math.exp(np.interp(-1 / degrees, inverse, factors))
