"""Where coalitions are drawn from: one set of K serves every player and every pair.

If each of the n players is in C by a coin of its own, C - i is drawn by the coins of the others, whatever i is. So a
proposal needs only the probability with which each player enters, and log P(C - i), log P(C - ij):

    size-weighted   all coins of a draw have one common bias q. BV, BII: q = 1/2. SV, SII: q uniform in (0, 1), so that
                    every size is equally likely, in C as in C - i and in C - ij.
    tilted          player i has the bias p_i, from a mean-field approximation of the Gibbs target:
                    p_i = sigmoid((E v(C + i) - E v(C - i)) / temperature)

A proposal without coins, the Gibbs distribution itself, is in `spinformer.games.annealed`.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from spinformer._base.binomial import log_binomial
from spinformer._base.rng import uniforms
from spinformer._base.stopping import all_done
from spinformer.games.game import Game
from spinformer.games.indices import INDICES, log_size_weight
from spinformer.games.twins import mean_of_twins

# Iterations of the mean-field equations of the tilted proposal, at most, the part of each step that is taken, and the
# step below which a game is done.
STEPS, DAMPING, SMALL = 40, 0.5, 1e-2
# Players that are held out, one at a time, for further solutions of these equations.
ABSENCES = 16
# No coin is surer than 1 - DOUBT / n; a draw is by fair coins with probability DEFENCE.
DOUBT = 0.01
DEFENCE = 0.01
# The largest logit at the start of the iterations.
LEAN = 1e-2


class Proposal(ABC):
    """Draws coalitions and knows the log-probability of each with one or two players out."""

    group = 1  # draws depend on each other within groups of this size, and not across groups
    sizes: tuple[int, int] | None = None  # games and players that it is for, where these are known

    @abstractmethod
    def draw(self, game: Game, budget: int, seed: Tensor, *, paired: bool, shared: bool) -> Tensor:
        """K = `budget` coalitions for each game: (B, K, n).

        paired: each odd draw is the reflection (u -> 1 - u) of the one before it, which for fair coins is its
        complement. shared: all games of the batch use the same random numbers, so that a game's coalitions do not
        depend on its position in the batch. Players take their numbers in the order of `game.order()`.
        """

    @abstractmethod
    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """log P(C - i): broadcastable to (B, K, n); delta, without: the game's `marginals` around these coalitions."""

    @abstractmethod
    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """log P(C - ij): broadcastable to (B, K, rows, n); delta, without: the game's `interactions`."""

    @abstractmethod
    def log_probability(self, coalitions: Tensor) -> Tensor:
        """log P(C) itself: broadcastable to (B, K)."""

    def elsewhere(self) -> "Proposal":
        """The same for coalitions that were not drawn from it."""
        return self

    def complete(self, starts: Tensor) -> Tensor:
        """Whether the last draw missed no mode of the proposal that a search from `starts` finds: (B, n)."""
        return torch.ones_like(starts[:, 0])

    def player_contexts(self, delta: Tensor, log_weight: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """Delta_i v(T) and log-weights under the Gibbs target, both (B, K, n), of contexts T made for each player.

        Here these are the contexts C - i of the last draw, as they are. temperature: (B,), of the target, with its
        gradient.
        """
        return delta, log_weight


class Coins(Proposal):
    """P(C) = product over i in C of p_i times product over i not in C of 1 - p_i, or a mixture of these."""

    reflects_bias = False  # whether the reflection of a draw made with t has 1 - t
    spreads_bias = False  # whether the t of the draws are spread evenly over (0, 1)

    @abstractmethod
    def probabilities(self, t: Tensor) -> Tensor:
        """p_i, broadcastable to (B, K, n); t (B, K, 1), uniform in (0, 1), chooses among the mixture."""

    def draw(self, game: Game, budget: int, seed: Tensor, *, paired: bool, shared: bool) -> Tensor:
        """One coin for each player and draw."""
        draws = (budget + 1) // 2 if paired else budget
        rows = 1 if shared else game.batch
        numbers = uniforms(seed, rows, draws, game.players + 1, game.device)
        bias, coins = numbers[..., :1], numbers[..., 1:]
        if self.spreads_bias:
            bias = (torch.arange(draws, device=game.device)[:, None] + bias[:, :1]) / draws
        if paired:
            coins = torch.stack([coins, 1 - coins], 2).flatten(1, 2)[:, :budget]
            mirror = 1 - bias if self.reflects_bias else bias
            bias = torch.stack([bias, mirror], 2).flatten(1, 2)[:, :budget]
        rank = game.order()[:, None].expand(game.batch, budget, game.players)
        coins = coins.expand(game.batch, -1, -1).gather(-1, rank)
        coalitions = (coins < self.probabilities(bias)).expand(game.batch, budget, game.players)
        return coalitions if game.mask is None else coalitions & game.mask[:, None]


class SizeWeighted(Coins):
    """P(C) ~ exp(log_weight(n, |C|)), the contexts of one index: drawn with one common bias q for all coins of a draw.

    index: its name; it draws only if it has a `bias`. counts: the number n of players of each game, (B,).
    """

    reflects_bias = True

    def __init__(self, index: str, counts: Tensor) -> None:
        self.index, self.counts = INDICES[index], counts

    def probabilities(self, t: Tensor) -> Tensor:
        """q(t)."""
        if self.index.bias is None:
            raise ValueError(f"index {self.index.name!r} has no bias to draw its contexts with")
        return self.index.bias(t)

    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """By the size of C - i among n - 1 players."""
        inside = coalitions.long()
        size = inside.sum(-1, keepdim=True) - inside
        return self._log_part((self.counts - 1)[:, None, None], size, coalitions.shape[-1])

    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """By the size of C - ij among n - 2 players."""
        inside = coalitions.long()
        size = inside.sum(-1)[..., None, None] - inside[:, :, rows, None] - inside[:, :, None]
        return self._log_part((self.counts - 2).clamp_min(0)[:, None, None, None], size, coalitions.shape[-1])

    def log_probability(self, coalitions: Tensor) -> Tensor:
        """By the size of C among n players."""
        return self._log_part(self.counts[:, None], coalitions.sum(-1), coalitions.shape[-1])

    def _log_part(self, others: Tensor, size: Tensor, columns: int) -> Tensor:
        """log of the probability of one coalition of this size, broadcast; those of all coalitions add up to 1."""
        every = torch.arange(columns + 1, device=others.device)
        each = log_binomial(others[..., None], every) + log_size_weight(self.index, others[..., None], every)
        return log_size_weight(self.index, others, size) - each.logsumexp(-1)


class Tilted(Coins):
    """A mixture of mean-field approximations of one game's Gibbs distribution, and a little of fair coins.

    The target around player i is the Gibbs distribution of the game without i. Without a player of large marginal the
    others behave differently. So beside the solution for all players there is one for each of the ABSENCES players of
    largest marginal, solved with that player held out; its own coin then follows from its own equation.
    No coin is surer than 1 - DOUBT / n, and a draw is by fair coins with probability DEFENCE. Both keep the weights
    bounded where the solutions are too sure, and cost at most DOUBT + DEFENCE of the effective sample size.
    """

    spreads_bias = True

    def __init__(self, game: Game, temperature: Tensor) -> None:
        with torch.no_grad():
            gamma = temperature[:, None, None]
            logits = _solve(game, gamma, _start(game))
            absent = _absent(game, game.expected_marginals(logits.sigmoid()).squeeze(1))  # (B, M)
            held = torch.nn.functional.one_hot(absent, game.players).bool()
            others = _solve(game, gamma, logits.expand(held.shape), held)
            logits = torch.cat([logits, others], 1)  # (B, M + 1, n)
            surest = (game.counts() / DOUBT - 1).log()[:, None, None].to(logits.dtype)
            logits = logits.minimum(surest).maximum(-surest)
            fair = torch.zeros_like(logits[:, :1])
            logits = torch.cat([logits, fair], 1)
            self.probability = logits.sigmoid()
            self.log_in, self.log_out = logsigmoid(logits), logsigmoid(-logits)
            if game.mask is not None:
                self.log_out = self.log_out * game.mask[:, None]
            # Padding that is held out changes nothing: such a solution gets no weight.
            part = torch.arange(logits.shape[1], device=logits.device)
            parts = 1 + game.counts().clamp_max(absent.shape[1])[:, None]  # (B, 1)
            weight = torch.where(part < parts, (1 - DEFENCE) / parts, 0.0).to(logits.dtype)
            weight[:, -1] = DEFENCE
            self.weight = weight  # (B, M + 2)

    def probabilities(self, t: Tensor) -> Tensor:
        """The coins of the solution in whose part of (0, 1) the draw's t lies."""
        edges = self.weight.cumsum(-1)[:, None, :-1]  # (B, 1, M)
        chosen = (t > edges).sum(-1)  # (B, K)
        return self.probability.gather(1, chosen[..., None].expand(-1, -1, self.probability.shape[-1]))

    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """The coins of all but i."""
        each = self._log_coins(coalitions)
        return self._mix(each.sum(-1, keepdim=True) - each)

    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """log of sum over solutions p of w_p P_p(C) / (P_p(i) P_p(j)), a matrix product over the solutions."""
        each = self._log_coins(coalitions)  # (B, P, K, n), P = M + 2
        level = each.sum(-1) + self.weight.log()[..., None]  # (B, P, K)
        most = level.amax(1)
        outside = each.neg().exp()  # at most n / DOUBT
        left = (level - most[:, None]).exp()[..., None] * outside[..., rows]
        mixed = torch.matmul(left.permute(0, 2, 3, 1), outside.transpose(1, 2))  # (B, K, rows, n)
        return mixed.log() + most[..., None, None]

    def log_probability(self, coalitions: Tensor) -> Tensor:
        """log P(C) itself: (B, K)."""
        return self._mix(self._log_coins(coalitions).sum(-1))

    def _log_coins(self, coalitions: Tensor) -> Tensor:
        return torch.where(coalitions[:, None], self.log_in[:, :, None], self.log_out[:, :, None])  # (B, M + 1, K, n)

    def _mix(self, log_probability: Tensor) -> Tensor:
        weight = self.weight.log().view(*self.weight.shape, *[1] * (log_probability.dim() - 2))
        return (log_probability + weight).logsumexp(1)


def _absent(game: Game, marginal: Tensor) -> Tensor:
    """The ABSENCES players of largest marginal, in the order of their ranks, (B, M); of equal ones the first in rank.

    Marginals, (B, n), are compared to a part in 10^4, so that rounding decides nothing. Padding comes last.
    """
    order = game.order().argsort(-1)  # players by rank
    size = marginal.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(marginal.dtype).tiny)
    grade = (mean_of_twins(marginal, game.twins()) / size * 1e4).round().gather(1, order)
    padding = torch.arange(game.players, device=game.device) >= game.counts()[:, None]
    grade = grade.masked_fill(padding, -torch.inf)
    best = grade.argsort(dim=-1, descending=True, stable=True)[:, :ABSENCES]
    return order.gather(1, best.sort(-1).values)


def _start(game: Game) -> Tensor:
    """Logits that lean a little towards players of high rank, twins alike, (B, 1, n).

    Where a solution is one of several that mirror each other, rounding would choose.
    """
    rank = game.order() if (twins := game.twins()) is None else twins
    lean = LEAN * (rank / game.counts()[:, None]).to(game.dtype)
    return (lean if game.mask is None else lean * game.mask)[:, None]


def _solve(game: Game, temperature: Tensor, logits: Tensor, held: Tensor | None = None) -> Tensor:
    """logit p_i = (E v(C + i) - E v(C - i)) / temperature, solved for (B, M, n) by damped iteration, each game alone.

    temperature: (B, 1, 1); logits: to start from; held: (B, M, n), players that are out of every C. The solution with
    a player held out is near that with all, so it starts there.
    """
    padding = None if game.mask is None else ~game.mask[:, None]
    active = torch.ones_like(temperature, dtype=torch.bool)
    for count in range(STEPS):
        if all_done(active, count):
            break
        probability = logits.sigmoid() if held is None else logits.sigmoid().masked_fill(held, 0.0)
        change = DAMPING * (game.expected_marginals(probability) / temperature - logits)
        seen = change.abs() if padding is None else change.abs().masked_fill(padding, 0.0)
        logits = torch.where(active, logits + change, logits)
        active = active & (seen.amax((1, 2), keepdim=True) > SMALL)
    return logits
