"""Where coalitions are drawn from: one set of K serves every player and every pair.

If each of the n players is in C by its own coin, C - i is drawn by the coins of the others, whatever i is. So a
proposal needs only to say with which probability each player enters, and log P(C - i), log P(C - ij):

    subsets   every coin is fair: the contexts of BV and BII
    sizes     all coins of a draw have one bias t, t uniform in (0, 1): every size is equally likely, in C as in
              C - i and in C - ij: the contexts of SV and SII
    tilted    player i has its own bias p_i, from a mean-field approximation of the Gibbs target:
              p_i = sigmoid((E v(C + i) - E v(C - i)) / temperature)

A proposal without coins, the Gibbs distribution itself, is in `spinformer.games.annealed`.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from spinformer.games.game import Game
from spinformer.games.indices import log_size_weight
from spinformer.rng import uniforms

STEPS, DAMPING = 40, 0.5
ABSENCES = 16
DOUBT = 0.01
DEFENCE = 0.01


class Proposal(ABC):
    """Draws coalitions and knows, up to a constant, the log-probability of each with one or two players out."""

    group = 1  # draws that are independent of all others only together

    @abstractmethod
    def draw(self, game: Game, budget: int, seed: Tensor, *, paired: bool, shared: bool) -> Tensor:
        """K = `budget` coalitions for each game: (B, K, n).

        paired: each odd draw is the reflection (u -> 1 - u) of the one before it, which for fair coins is its
        complement. shared: all games of the batch use the same random numbers, so that a game's coalitions do
        not depend on its place in the batch. The players' order is the game's own where it has one.
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

    def own_contexts(self, delta: Tensor, log_weight: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """Delta_i v(T) and log-weights under the Gibbs target, (B, K, n), of what was drawn last, or of better T.

        temperature: (B,), of the target, with its gradient.
        """
        return delta, log_weight


class Coins(Proposal):
    """P(C) = product over i of the chances of what each player's coin shows, or a mixture of such."""

    reflects_bias = False  # whether the reflection of a draw has the bias 1 - t
    spreads_bias = False  # whether the biases of the draws are spread evenly over (0, 1)

    @abstractmethod
    def chances(self, bias: Tensor) -> Tensor:
        """Entry probabilities, broadcastable to (B, K, n); `bias` (B, K, 1) is uniform in (0, 1)."""

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
        order = game.order()
        if order is not None:
            place = order[:, None].expand(game.batch, budget, game.players)
            coins = coins.expand(game.batch, -1, -1).gather(-1, place)
        coalitions = (coins < self.chances(bias)).expand(game.batch, budget, game.players)
        return coalitions if game.mask is None else coalitions & game.mask[:, None]


class SizeWeighted(Coins):
    """Fair coins (`subsets`) or one common, uniform bias (`sizes`): P(C) depends on |C| alone."""

    reflects_bias = True

    def __init__(self, index: str, counts: Tensor) -> None:
        self.index, self.counts = index, counts

    def chances(self, bias: Tensor) -> Tensor:
        """1/2, or the draw's own bias."""
        return bias if self.index in ("SV", "SII") else torch.full_like(bias, 0.5)

    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """By the size of C - i among n - 1 players."""
        inside = coalitions.long()
        size = inside.sum(-1, keepdim=True) - inside
        return log_size_weight(self.index, (self.counts - 1)[:, None, None], size)

    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """By the size of C - ij among n - 2 players."""
        inside = coalitions.long()
        size = inside.sum(-1)[..., None, None] - inside[:, :, rows, None] - inside[:, :, None]
        return log_size_weight(self.index, (self.counts - 2).clamp_min(0)[:, None, None, None], size)

    def log_probability(self, coalitions: Tensor) -> Tensor:
        """By the size of C among n players."""
        return log_size_weight(self.index, self.counts[:, None], coalitions.sum(-1))


class Tilted(Coins):
    """A mixture of mean-field approximations of one game's Gibbs distribution, and a little of fair coins.

    The target around player i is the Gibbs distribution of the game without i. Where one player carries much, the
    others turn elsewhere without it; so beside the solution for all players there is one for each of the players
    that carry most (up to ABSENCES of them), found with that player held out and then let in by its own equation.
    No coin is surer than 1 - DOUBT / n, and the part DEFENCE of fair coins is mixed in: both keep the weights bounded
    where the solutions are too sure, at the price of at most DOUBT + DEFENCE of the effective sample size.
    """

    spreads_bias = True

    def __init__(self, game: Game, temperature: Tensor) -> None:
        with torch.no_grad():
            heat = temperature[:, None, None]
            logits = _solve(game, heat, torch.zeros(game.batch, 1, game.players, dtype=torch.bool, device=game.device))
            marginal = game.expected_marginals(logits.sigmoid()).squeeze(1)
            if game.mask is not None:
                marginal = marginal.masked_fill(~game.mask, -torch.inf)
            absent = marginal.topk(min(ABSENCES, game.players), -1).indices  # (B, M)
            held = torch.nn.functional.one_hot(absent, game.players).bool()
            logits = torch.cat([logits, _solve(game, heat, held)], 1)  # (B, M + 1, n)
            surest = (game.counts() / DOUBT - 1).log()[:, None, None].to(logits.dtype)
            logits = logits.minimum(surest).maximum(-surest)
            fair = torch.zeros_like(logits[:, :1])
            logits = torch.cat([logits, fair], 1)
            self.chance = logits.sigmoid()
            self.log_in, self.log_out = logsigmoid(logits), logsigmoid(-logits)
            if game.mask is not None:
                self.log_out = self.log_out * game.mask[:, None]
            parts = logits.shape[1] - 1
            weight = torch.full(logits.shape[:2], (1 - DEFENCE) / parts, dtype=logits.dtype, device=logits.device)
            weight[:, -1] = DEFENCE
            self.weight = weight  # (B, M + 2)

    def chances(self, bias: Tensor) -> Tensor:
        """The coins of the solution that the draw's bias falls to."""
        edges = self.weight.cumsum(-1)[:, None, :-1]  # (B, 1, M)
        chosen = (bias > edges).sum(-1)  # (B, K)
        return self.chance.gather(1, chosen[..., None].expand(-1, -1, self.chance.shape[-1]))

    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """The coins of all but i."""
        each = self._log_coins(coalitions)
        return self._mix(each.sum(-1, keepdim=True) - each)

    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """The coins of all but i and j, one solution at a time to save memory."""
        total: Tensor | None = None
        for part, log_weight in enumerate(self.weight.log().unbind(-1)):
            each = torch.where(coalitions, self.log_in[:, part, None], self.log_out[:, part, None])
            term = each.sum(-1)[..., None, None] - each[:, :, rows, None] - each[:, :, None]
            term = term + log_weight[:, None, None, None]
            total = term if total is None else torch.logaddexp(total, term)
        assert total is not None
        return total

    def log_probability(self, coalitions: Tensor) -> Tensor:
        """log P(C) itself: (B, K)."""
        return self._mix(self._log_coins(coalitions).sum(-1))

    def _log_coins(self, coalitions: Tensor) -> Tensor:
        return torch.where(coalitions[:, None], self.log_in[:, :, None], self.log_out[:, :, None])  # (B, M + 1, K, n)

    def _mix(self, log_probability: Tensor) -> Tensor:
        weight = self.weight.log().view(*self.weight.shape, *[1] * (log_probability.dim() - 2))
        return (log_probability + weight).logsumexp(1)


def _solve(game: Game, heat: Tensor, held: Tensor) -> Tensor:
    """Logits that solve the mean-field equations, (B, M, n), with the players in `held` out of the others' sight."""
    logits = torch.zeros(held.shape, dtype=game.dtype, device=game.device)
    for _ in range(STEPS):
        chance = logits.sigmoid().masked_fill(held, 0.0)
        target = game.expected_marginals(chance) / heat
        logits = logits + DAMPING * (target - logits)
    return logits
