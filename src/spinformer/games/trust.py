"""Whether a sample covers its target: a search for coalitions that it should have met.

The spread of the weights says nothing of coalitions that were never drawn. At a low temperature these can be most of
the target: a sample of one mode has even weights. So we look at coalitions T that the sample may have missed: at all
of them in small games; else at those to which a climb leads, from many starts, with nobody or with one player held out.
P: the target; Q: the proposal. Three questions:

    weight   Had T been drawn, what part of all weight would it have, (P(T) / Q(T)) / sum over k of (P(T_k) / Q(T_k))?
             The climb raises P / Q. If no T has more than a part s, a set that holds a part m of the target is drawn
             m / s times on average.
    unseen   Where T is hardly ever drawn, how much does it add to the mean, P(T) |Delta(T) - mean|, in standard errors?
    mass     Where draws come from a chain, so that Q is only hoped for (annealed): is the part of the target on T and
             its neighbours also the part of the sample there? The climb raises P.

A search proves nothing; the tests measure it against enumeration.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer.games.game import Game

# Starts of the search with nobody held out; players that are held out in turn, and starts for each.
STARTS, HELD, HELD_STARTS = 32, 16, 2
# Steps of one climb, at most.
STEPS = 64
# Largest part of all weight that one coalition may have, and largest part of the target that the sample may miss.
MAX_WEIGHT, MAX_MISSING = 0.1, 0.05
# Coalitions that are drawn less often than this on average count as not drawn; what they add to the mean may be so many
# standard errors.
OFTEN, MAX_UNSEEN = 5.0, 2.0
# Players up to whom all coalitions are looked at, which then costs less than a search.
EVERY = 10
# Peaks whose neighbours are looked at.
SURROUNDED = 4

Function = Callable[[Tensor], Tensor]


class Found(NamedTuple):
    """What a search found. points: coalitions, (B, F, n); new: whether each is there for the first time, (B, F).

    complete: whether the draws missed no mode of the proposal's own distribution, for contexts without i, (B, n).
    """

    points: Tensor
    new: Tensor
    complete: Tensor


class Peaks:
    """Coalitions that no move of a single player improves, (B, F, n); held: the player that is out, (B, F), or -1."""

    def __init__(self, game: Game, starts: Tensor, height: Function) -> None:
        """starts: (B, S, n), S >= STARTS + HELD_STARTS; height: what is climbed, of coalitions (B, M, n), (B, M)."""
        players = game.order().argsort(-1).flip(-1)  # of highest rank first, padding foremost
        padding = game.players - game.counts()[:, None]
        column = (torch.arange(min(HELD, game.players), device=game.device) + padding) % game.players
        held = players.gather(1, column).repeat_interleave(HELD_STARTS, 1)  # (B, H)
        nobody = held.new_full((game.batch, STARTS), -1)
        self.game, self.height = game, height
        self.held = torch.cat([nobody, held], 1)
        self.out = self.held[..., None] == torch.arange(game.players, device=game.device)  # (B, F, n)
        others = starts[:, STARTS : STARTS + HELD_STARTS].repeat(1, held.shape[1] // HELD_STARTS, 1)
        self.coalitions = torch.cat([starts[:, :STARTS], others], 1) & ~self.out
        self._climb()

    def neighbours(self) -> Tensor:
        """Each coalition with one player moved, (B, F, n, n)."""
        member = torch.eye(self.game.players, dtype=torch.bool, device=self.game.device)
        return self.coalitions[:, :, None] ^ member

    def with_neighbours(self) -> tuple[Tensor, Tensor]:
        """The peaks and the neighbours of the highest ones, (B, F, n), and whether each is new, (B, F)."""
        new = _first(self.coalitions)
        heights = self.height(self.coalitions).masked_fill(~new, -torch.inf)
        best = heights.topk(min(SURROUNDED, heights.shape[1]), -1).indices[..., None, None]
        around = self.neighbours().gather(1, best.expand(-1, -1, *[self.game.players] * 2)).flatten(1, 2)
        if self.game.mask is not None:
            around = around & self.game.mask[:, None]
        points = torch.cat([self.coalitions, around], 1)
        return points, _first(points)

    def fixed(self) -> Tensor:
        """Players that may not move, (B, F, n): the held one, and padding."""
        return self.out if self.game.mask is None else self.out | ~self.game.mask[:, None]

    def _climb(self) -> None:
        fixed = self.fixed()
        top = self.height(self.coalitions)
        for _ in range(STEPS):
            around = self.neighbours()
            heights = self.height(around.flatten(1, 2)).unflatten(1, fixed.shape[1:]).masked_fill(fixed, -torch.inf)
            best, player = heights.max(-1)
            better = best > top + 1e-6 * (1 + top.abs())
            if not bool(better.any()):
                break
            chosen = around.gather(2, player[..., None, None].expand(-1, -1, 1, self.game.players)).squeeze(2)
            self.coalitions = torch.where(better[..., None], chosen, self.coalitions)
            top = torch.where(better, best, top)


def every_coalition(game: Game) -> tuple[Tensor, Tensor] | None:
    """All coalitions of each game, (B, 2^n, n), and whether each is new, (B, 2^n); None where n is above EVERY."""
    if game.players > EVERY:
        return None
    number = torch.arange(2**game.players, device=game.device)
    points = (number[:, None] >> torch.arange(game.players, device=game.device) & 1).bool()
    points = points.expand(game.batch, -1, -1)
    if game.mask is None:
        return points, torch.ones_like(points[..., 0])
    return points & game.mask[:, None], ~(points & ~game.mask[:, None]).any(-1)


def ends(game: Game) -> tuple[Tensor, Tensor]:
    """Nobody, all, and their neighbours, (B, 2 n + 2, n), and whether each is new, (B, 2 n + 2)."""
    nobody = torch.zeros(game.batch, 1, game.players, dtype=torch.bool, device=game.device)
    member = torch.eye(game.players, dtype=torch.bool, device=game.device).expand(game.batch, -1, -1)
    points = torch.cat([nobody, ~nobody, member, ~member], 1)
    if game.mask is not None:
        points = points & game.mask[:, None]
    return points, _first(points)


def _first(coalitions: Tensor) -> Tensor:
    """Whether each of (B, F, n) coalitions is not among those before it: (B, F)."""
    inside = coalitions.float()
    moves = inside.sum(-1)[..., None] + inside.sum(-1)[:, None] - 2 * inside @ inside.mT
    return ~(moves < 0.5).tril(-1).any(-1)


def light(log_weight: Tensor, elsewhere: Tensor) -> Tensor:
    """Whether no coalition that was found would have more than MAX_WEIGHT of all weight.

    log_weight: of the draws, (B, K, ...); elsewhere: of coalitions that were found, (B, F, ...); result: (B, ...).
    """
    largest = torch.maximum(elsewhere.amax(1), log_weight.amax(1))
    return (largest - log_weight.logsumexp(1)).exp() <= MAX_WEIGHT


def unseen(log_target: Tensor, log_weight: Tensor, log_proposal: Tensor, distance: Tensor, distinct: Tensor) -> Tensor:
    """max over T of P(T) |Delta(T) - mean|, over coalitions that were found but hardly drawn: how far off it makes us

    log_target, log_proposal, distance: of coalitions that were found, (B, F, ...); log_weight: of the draws,
    (B, K, ...); distinct: (B, F), true once for each coalition; the result is (B, ...).
    """
    budget = log_weight.shape[1]
    log_total = log_weight.logsumexp(1, keepdim=True) - math.log(budget)
    rare = log_proposal < math.log(OFTEN / budget)
    rare = rare & distinct.view(*distinct.shape, *[1] * (rare.dim() - 2))
    return torch.where(rare, (log_target - log_total).exp() * distance, 0.0).amax(1)


def complete(peaks: Peaks, coalitions: Tensor, log_weight: Tensor, without_one: Tensor) -> Tensor:
    """Whether no peak, with its neighbours, holds MAX_MISSING more of the target than of the sample, (B, n).

    peaks: whose height is the log of the target; coalitions: the draws, (B, K, n); log_weight: theirs, (B, K), whose
    exp has the mean 2^-n sum over C of exp(height(C)); without_one: the same for contexts without i, (B, K, n).
    """
    budget, fixed = coalitions.shape[1], torch.nn.functional.pad(peaks.fixed(), (1, 0))
    around = torch.cat([peaks.coalitions[:, :, None], peaks.neighbours()], 2)  # (B, F, 1 + n, n)
    mass = peaks.height(around.flatten(1, 2)).unflatten(1, fixed.shape[1:]).masked_fill(fixed, -torch.inf).logsumexp(-1)
    weights = torch.cat([log_weight[..., None], without_one], -1)  # (B, K, 1 + n)
    own = (peaks.held + 1)[:, None].expand(-1, budget, -1)  # (B, K, F): whose weights count for which peak
    weight = weights.gather(2, own)
    total = weight.logsumexp(1)
    draws, tops = coalitions.to(weight.dtype), peaks.coalitions.to(weight.dtype)
    moves = draws.sum(-1)[..., None] + tops.sum(-1)[:, None] - 2 * draws @ tops.mT  # (B, K, F)
    moves = moves - torch.nn.functional.pad(draws, (1, 0)).gather(2, own)  # the player that is out does not count
    seen = torch.where(moves < 1.5, (weight - total[:, None]).exp(), 0.0).sum(1)  # (B, F)
    states = peaks.game.counts()[:, None] * math.log(2)
    known = (mass - (total - math.log(budget)) - states).exp()  # the peak itself, in units of the sample's mean weight
    due = known / (known + (1 - seen).clamp_min(1e-12))  # beside what the sample says of all others
    failed = (due - seen > MAX_MISSING).to(weight.dtype)
    missed = torch.zeros_like(weights[:, 0]).scatter_add(1, peaks.held + 1, failed) > 0  # (B, 1 + n)
    return ~(missed[:, 1:] | missed[:, :1])
