"""Shapley and Banzhaf values and interactions of a batch of games, from the same coalitions, each asked once."""

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer._base.remembering import Remembering
from spinformer._base.rng import as_seed
from spinformer.games.designs import paired_design
from spinformer.games.estimate import Estimate
from spinformer.games.exact import exact_values
from spinformer.games.game import Game, TableGame
from spinformer.games.gaussian import RATIOS, Quadrature, order_ratios, share_out
from spinformer.games.indices import INDICES
from spinformer.games.paired import PairedQuadrature
from spinformer.games.rows import (
    Estimates,
    alike,
    empty_estimates,
    places_of,
    player_columns,
    write,
    write_one,
)
from spinformer.games.toggles import LONG, STRONGEST, context_count, strongest, toggled_pairs, toggled_values, untold
from spinformer.games.values import GAME_INDICES, PLAYER_INDICES, GameValues, activity, player_weights

# Coalitions of one game: at first, and at most, where their number follows the error that it leaves.
FIRST, MOST = 512, 2048
# Coalitions of a game of many players, and the smallest budget that is enough for it.
TOGGLED, SMALL = 3328, 512
# The standard error of a Shapley value that sampling may leave, unless MOST coalitions leave more.
TOLERANCE = 0.015
# Players up to which each game is read again with a prior of its own, in which those count that do something.
OWN = 40
# Numbers in the matrices of games that are read again at once: on a GPU, and on a CPU.
OWN_BLOCK = (2**26, 2**22)
# Pairs whose variance stands for that of all pairs of more than OWN players: before anything is asked they are alike,
# and their errors differ by about a tenth. For all pairs these would take seconds.
SOME_PAIRS = 256
# Bytes of quadratures that are kept for the next texts of as many words, on a GPU and on a CPU: on a CPU those of 200
# lengths with FIRST coalitions. On a GPU it takes longer to make one anew than to use it.
MEMORY = (2**31, 2**29)

NOBODY = torch.zeros(0, dtype=torch.long)


@full_precision
def estimate_all(
    game: Game, budget: int = 0, *, seed: Tensor | int, tolerance: float = TOLERANCE, pairs: bool = True
) -> GameValues:
    """SV, BV, BII and SII of every game of a batch, as `spinformer.games.gaussian` reads them from `budget` coalitions

    Shapley values add up to v(N) - v(nothing). A game of few players, 2^n <= budget, is enumerated, and its values are
    exact. Others are read twice: with all players alike, then with a prior in which those count that do something;
    gradients take that prior as given. budget: coalitions of each game; 0 begins with FIRST and doubles them until
    every Shapley value has a standard error of at most `tolerance`, or there are MOST. Coalitions depend on the number
    of players and the seed alone, and each game is asked until its own errors are small, so its values do not depend on
    its batch. The effective sample size is the number of coalitions.

    Interactions of more than OWN players, and all values of more than LONG, are those of `spinformer.games.toggles`,
    which tells of the pairs of the strongest players alone: the others have effective sample size 0. It takes TOGGLED
    coalitions or `budget`, but what CONTEXTS[0] need at least; a budget smaller than SMALL is kept, and quadrature does
    what it can. pairs: whether interactions are needed; without them nothing is told of any pair of so many players.
    """
    checks.instance("game", game, Game)
    checks.positive("tolerance", tolerance)
    checks.at_least("budget", budget, 0)
    seed = as_seed(seed)
    if budget and budget < 4:
        raise ValueError(f"budget must be 0 or at least 4; got {budget}")
    size, most = (budget, budget) if budget else (FIRST, MOST)
    counts = game.counts().tolist()
    many = [row for row, count in enumerate(counts) if count > LONG and most >= SMALL]
    some = [row for row, count in enumerate(counts) if OWN < count <= LONG and most >= SMALL]
    rows = [row for row in range(game.batch) if row not in many]
    estimates, sizes = empty_estimates(game), _sizes(game, size)
    empty = torch.zeros(game.batch, dtype=game.dtype, device=game.device)
    for row in many:
        sizes[row], empty[row] = _toggle(estimates, row, game, budget or TOGGLED, seed, pairs)
    if rows:
        values = _evaluate(game, rows, size, int(seed))
        empty[rows] = values[:, 0]
        _estimate(estimates, rows, game, values, size, int(seed))
        while size < most and bool((too_large := estimates["SV"][1].amax(1)[rows] > tolerance).any()):
            size *= 2
            rows = [row for row, more in zip(rows, too_large.tolist(), strict=True) if more]
            values = _evaluate(game, rows, size, int(seed), values[too_large])
            _estimate(estimates, rows, game, values, size, int(seed))
            sizes[rows] = _sizes(game, size)[rows]
    for row in some:
        if pairs:
            sizes[row] += _toggle_pairs(estimates, row, game, budget or TOGGLED, seed)
        else:
            write_one(estimates, row, player_columns(game)[row], untold(counts[row], game.device))
    parts = {}
    for name, (mean, stderr) in estimates.items():
        value, error = (game.unbatch(part.to(game.dtype)) for part in (mean, stderr))
        ess = sizes.to(mean).view(-1, *[1] * (mean.dim() - 1)) * stderr.isfinite()
        parts[name] = Estimate(value, error, game.unbatch(ess.to(value)), size)
    return GameValues.of(parts, game.unbatch(empty))


def _sizes(game: Game, size: int) -> Tensor:
    """Coalitions of each game, (B,)."""
    return torch.tensor([min(size, 2 ** min(count, 62)) for count in game.counts().tolist()])


def _toggle(estimates: Estimates, row: int, game: Game, budget: int, seed: Tensor, told: bool) -> tuple[int, Tensor]:
    """Set the estimates of a game of many players; the number of coalitions that it took, and v of the empty one.

    told: whether interactions are.
    """
    where = player_columns(game)[row]
    count, strong = context_count(len(where), budget), None if told else NOBODY
    ends = torch.zeros(1, 2, game.players, dtype=torch.bool)
    ends[0, 1, where] = True
    empty, whole = game.evaluate_rows([row], ends.to(game.device))[0].unbind()
    found = toggled_values(game, row, where, count, seed, strong, gain=(whole - empty).double())
    write_one(estimates, row, where, found)
    return count * (1 + len(where) + told * math.comb(STRONGEST, 2)), empty


def _toggle_pairs(estimates: Estimates, row: int, game: Game, budget: int, seed: Tensor) -> int:
    """Set the interactions of a game whose Shapley values are known; the number of coalitions that it took."""
    where = player_columns(game)[row]
    strong = strongest(estimates["SV"][0][row, where.to(game.device)])
    count = context_count(len(strong) + math.comb(len(strong), 2), budget)
    found = toggled_pairs(game, row, where, count, seed, strong)
    write_one(estimates, row, where, found)
    return count * (1 + len(strong) + math.comb(len(strong), 2))


def _evaluate(game: Game, rows: Sequence[int], size: int, seed: int, known: Tensor | None = None) -> Tensor:
    """v of these games' coalitions, (rows, K), after those that are known; games of fewer repeat the empty one."""
    counts, columns = game.counts().tolist(), player_columns(game)
    if any(size // 2 < 2 ** min(counts[row], 62) <= size for row in rows):
        known = None  # all coalitions are in another order than some of them
    coalitions = _designs([columns[row] for row in rows], game.players, size, seed, game.device)
    values = game.evaluate_rows(rows, coalitions if known is None else coalitions[:, known.shape[1] :])
    return values if known is None else torch.cat([known, values], 1)


def _designs(columns: Sequence[Tensor], width: int, size: int, seed: int, device: torch.device) -> Tensor:
    """The coalitions of games with these columns, (games, K, width); games of fewer repeat the empty one."""
    groups = alike(columns)
    designs = [_design_at(len(where), size, seed, str(device)) for where, _ in groups]
    whole = torch.zeros(len(columns), max(map(len, designs)), width, dtype=torch.bool, device=device)
    for (where, places), design in zip(groups, designs, strict=True):
        one = torch.zeros(len(design), width, dtype=torch.bool, device=device)
        one[:, where.to(device)] = design
        whole[torch.tensor(places, device=device), : len(design)] = one
    return whole


def _estimate(estimates: Estimates, rows: Sequence[int], game: Game, values: Tensor, size: int, seed: int) -> None:
    """Set the estimates of these games, from the values of their coalitions, (rows, K)."""
    columns = player_columns(game)
    again: list[int] = []  # their places among the rows
    groups = alike([columns[row] for row in rows])
    for where, places in groups:
        design = _design(len(where), size, seed)
        found = _of_one_size(values[places, : len(design)], design, size, seed)
        write(estimates, [rows[place] for place in places], where, found)
        again += places if len(design) < 2 ** len(where) and len(where) <= OWN else []
    block = max(1, OWN_BLOCK[values.device.type == "cpu"] // size**2)
    for start in range(0, len(again), block):
        part = again[start : start + block]
        own = [columns[rows[place]] for place in part]
        _estimate_own(estimates, [rows[place] for place in part], own, values[part], size, seed)
    shapley, gains = estimates["SV"][0], (values[:, 1] - values[:, 0]).double()  # none and all come first
    for where, places in groups:
        at = places_of([rows[place] for place in places], where, shapley)
        shapley[at] = share_out(shapley[at], gains[places])


def _of_one_size(values: Tensor, design: Tensor, size: int, seed: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and standard error of GAME_INDICES for games of equally many players, who count alike.

    Without those of pairs, where they are toggled.
    """
    players = design.shape[1]
    if len(design) == 2**players:  # none and all come first, then the others in the order of a table
        game = TableGame(torch.cat([values[:, :1], values[:, 2:], values[:, 1:2]], 1).double())
        exact = {name: exact_values(game, name) for name in GAME_INDICES}
        return {name: (value, torch.zeros_like(value)) for name, value in exact.items()}
    key = (players, size, seed, str(values.device))
    quadrature = _quadrature(*key)
    coefficients = quadrature.coefficients(values)
    scale = _scale(quadrature, values, coefficients)
    told = PLAYER_INDICES if players > OWN and size >= SMALL else GAME_INDICES  # pairs are toggled
    errors = {name: _times(_deviations(name, *key), scale) for name in told}
    needed = ("SV", "SII") if players <= OWN else told  # the others are read again
    means = {name: quadrature.values(name, coefficients) for name in needed}
    return {name: (means.get(name, torch.zeros_like(errors[name])), errors[name]) for name in told}


def _estimate_own(
    estimates: Estimates, rows: Sequence[int], columns: Sequence[Tensor], values: Tensor, size: int, seed: int
) -> None:
    """Read these games again, each with the weights that its players' activity gives, all at once.

    values: (b, K). Standard errors of pairs stay: for all pairs they would take longer than everything else, and with
    players alike they are on the safe side. Games of fewer players than others have players of ratio 0.
    """
    width = max(map(len, columns))
    coalitions = _designs([torch.arange(len(one)) for one in columns], width, size, seed, values.device)
    counts = torch.tensor([len(one) for one in columns], device=values.device)
    where = pad_sequence(list(columns), batch_first=True).to(values.device)
    row, there = torch.tensor(rows, device=values.device), torch.arange(width, device=values.device) < counts[:, None]
    shapley = estimates["SV"][0][row[:, None], where] * there
    pairs = estimates["SII"][0][row[:, None, None], where[:, :, None], where[:, None]]
    active = activity(shapley, pairs * (there[:, :, None] & there[:, None])).detach()
    shares = torch.stack([order_ratios(len(one))[0] for one in columns]).to(values.device)
    ratios = (shares[:, None] * player_weights(active, there)).clamp(*RATIOS) * there
    quadrature = PairedQuadrature(coalitions, ratios)
    coefficients = quadrature.coefficients(values[:, None])  # (b, 1, K)
    scale = _scale(quadrature, values[:, None], coefficients)  # (b, 1)
    groups = alike(columns)
    for name in GAME_INDICES:
        found = [quadrature.values(name, coefficients)[:, 0]]
        if not INDICES[name].pairwise:
            found.append(quadrature.deviations(name) * scale)
        for own, places in groups:
            count = len(own)
            cut = [part[places, :count] if part.dim() == 2 else part[places, :count, :count] for part in found]
            write(estimates, [rows[place] for place in places], own, {name: cut})


@torch.no_grad()
def _scale(quadrature: Quadrature, values: Tensor, coefficients: Tensor) -> Tensor:
    """sqrt(t) of each game, (B,)."""
    total = quadrature.amplitude(values, coefficients)
    return (total / values.shape[-1]).clamp_min(0).sqrt()


def _times(deviation: Tensor, scale: Tensor) -> Tensor:
    """Standard deviations for t = 1, (n,) or (n, n), of games with these scales: (B, n) or (B, n, n)."""
    return deviation * scale.view(-1, *[1] * deviation.dim())


@lru_cache(maxsize=256)
def _design(players: int, size: int, seed: int) -> Tensor:
    with torch.inference_mode(False):
        return paired_design(players, size, torch.tensor(seed))


@lru_cache(maxsize=256)
def _design_at(players: int, size: int, seed: int, device: str) -> Tensor:
    with torch.inference_mode(False):
        return _design(players, size, seed).to(device)


def _bytes(players: int, size: int, seed: int, device: str) -> int:
    """About what a quadrature holds: its two factors, and a matrix for each of some 16 nodes."""
    return 4 * size * (size + 16 * players)


def _make_quadrature(players: int, size: int, seed: int, device: str) -> Quadrature:
    with torch.inference_mode(False), torch.no_grad():
        return PairedQuadrature(_design_at(players, size, seed, device), order_ratios(players))


_KEPT = tuple(Remembering(_make_quadrature, _bytes, most) for most in MEMORY)


def _quadrature(players: int, size: int, seed: int, device: str) -> Quadrature:
    return _KEPT[device == "cpu"](players, size, seed, device)


@lru_cache(maxsize=1024)
def _deviations(index: str, players: int, size: int, seed: int, device: str) -> Tensor:
    """(n,) or (n, n); of many players, all pairs have the mean of SOME_PAIRS."""
    with torch.inference_mode(False), torch.no_grad():
        quadrature = _quadrature(players, size, seed, device)
        if players <= OWN or not INDICES[index].pairwise:
            return quadrature.deviations(index)
        first, second = torch.triu_indices(players, players, 1)
        some = torch.linspace(0, len(first) - 1, SOME_PAIRS).long()
        deviation = quadrature.variances(index, (first[some], second[some])).mean().sqrt()
        return deviation.expand(players, players) * (1 - torch.eye(players, dtype=deviation.dtype, device=device))
