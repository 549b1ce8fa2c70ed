"""Values of a game of many players: what each of them adds to a few coalitions.

    phi_i = E over q of E over C of [v(C + i) - v(C - i)],   every player in C with probability q, q uniform on 0 .. 1

One of the two is v(C) itself, so n + 1 coalitions tell what every player adds to C. Few coalitions of so many players
would tell little more than the prior of `spinformer.games.gaussian` about each. Interactions are second differences, of
the STRONGEST players: those of all n (n - 1) / 2 pairs would be too many. Banzhaf's indices are the same means at
q = 1/2; they are read off the coalitions near it.

Coalitions come with their complements, in whose mean interactions of two players cancel. Near-empty and near-full ones
differ most from the others: q = sin^2(pi u / 2) is denser there, with weights pi sqrt(q (1 - q)), and u is stratified.
"""

import math

import torch
from torch import Tensor

from spinformer._base.rng import uniforms
from spinformer.games.game import Game

# Players from which this takes less time for the same error than quadrature (docs/concepts/refinement.md).
LONG = 100
# Pairs of coalitions: at least, for the standard error, and at most.
PAIRS = (4, 8)
# Players whose interactions with each other are told.
STRONGEST = 12
# How near to 1/2 the u of a pair of coalitions is that tells of Banzhaf's indices: a standard deviation.
NEAR = 0.15
# Student's t of 95%, over that of many degrees of freedom, for so many of them.
STUDENT = {1: 6.483, 2: 2.195, 3: 1.624, 4: 1.417, 5: 1.312, 6: 1.248, 7: 1.206}

# By the name of the index: values and standard errors.
Values = dict[str, tuple[Tensor, Tensor]]


def pair_count(players: int, evaluations: int) -> int:
    """Pairs of coalitions within so many evaluations, as many as PAIRS allows."""
    return min(max(evaluations // (2 * (players + 1)), PAIRS[0]), PAIRS[1])


def toggled_values(
    game: Game, row: int, columns: Tensor, pairs: int, seed: Tensor, strong: Tensor | None = None
) -> Values:
    """Values and standard errors of GAME_INDICES of one game of the batch, (n,) or (n, n) each, in float64.

    columns: of its n players; pairs: of coalitions, a number in PAIRS; strong: as of `toggled_pairs`, by default the
    STRONGEST, and none if there are none of them. The standard errors have Student's factor.
    """
    drawn = _Contexts(game, row, columns, pairs, seed)
    singles = drawn.toggled(torch.arange(len(columns))[:, None])  # (2 pairs, n)
    added = drawn.sign * (singles - drawn.base)  # v(C + i) - v(C - i)
    found = {name: _mean(added, drawn.weights(name)) for name in ("SV", "BV")}
    strong = strongest(found["SV"][0]) if strong is None else strong
    return found | _second_differences(drawn, strong, singles[:, strong])


def toggled_pairs(game: Game, row: int, columns: Tensor, pairs: int, seed: Tensor, strong: Tensor) -> Values:
    """The same of SII and BII alone, (n, n).

    strong: numbers of players, in order, whose interactions with each other are told. Those of other pairs are 0, with
    infinite standard errors.
    """
    drawn = _Contexts(game, row, columns, pairs, seed)
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
    """The coalitions C of one game, to which players are added. sign: 1 for players out of C, -1 for those in it,
    (2 pairs, n); base: v(C), (2 pairs, 1).
    """

    def __init__(self, game: Game, row: int, columns: Tensor, pairs: int, seed: Tensor) -> None:
        self.game, self.row, self.columns = game, row, columns
        drawn, self.place = contexts(len(columns), pairs, seed)
        self.coalitions = torch.zeros(len(drawn), game.players, dtype=torch.bool)
        self.coalitions[:, columns] = drawn
        self.base = game.evaluate_rows([row], self.coalitions[None].to(game.device))[0, :, None].double()
        self.sign = (1 - 2 * drawn.double()).to(self.base.device)

    def toggled(self, sets: Tensor) -> Tensor:
        """v where the players of each set, (P, s), are out instead of in, or in instead of out: (2 pairs, P)."""
        return self.game.toggled(self.row, self.coalitions, self.columns[sets.cpu()]).double()

    def weights(self, index: str) -> Tensor:
        """Of each pair of coalitions, with the sum 1."""
        if index in ("BV", "BII"):
            weights = (((self.place - 0.5) / NEAR).square() * -0.5).exp()
        else:
            chance = _chance(self.place)
            weights = (chance * (1 - chance)).sqrt()
        return (weights / weights.sum()).to(self.base.device)


def _second_differences(drawn: _Contexts, strong: Tensor, singles: Tensor) -> Values:
    """v(C + ij) - v(C + i) - v(C + j) + v(C) of the strong players; singles: v where each is toggled, (2 pairs, s)."""
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


def contexts(players: int, pairs: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Coalitions, each followed by its complement, (2 pairs, n), and u of the first of each pair, (pairs,)."""
    numbers = uniforms(seed, 1, pairs, players + 1, torch.device("cpu"))[0].double()
    place = (torch.arange(pairs) + numbers[:, 0]) / (2 * pairs)  # half of 0 .. 1: complements have the other half
    half = numbers[:, 1:] < _chance(place)[:, None]
    return torch.stack([half, ~half], 1).flatten(0, 1), place


def _chance(place: Tensor) -> Tensor:
    """q = sin^2(pi u / 2)"""
    return (math.pi / 2 * place).sin().square()


def _mean(each: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The mean over pairs of coalitions, from (2 pairs, N), and its standard error: (N,) each."""
    pairs, part = len(weights), weights[:, None]
    means = each.unflatten(0, (pairs, 2)).mean(1)
    value = (part * means).sum(0)
    count = float(1 / weights.square().sum())  # of pairs of equal weights that would tell as much
    spread = (part * (means - value)).square().sum(0).detach() * count / max(count - 1, 0.5)
    return value, STUDENT[min(max(round(count) - 1, 1), max(STUDENT))] * spread.sqrt()
