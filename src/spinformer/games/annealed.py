"""Coalitions from the Gibbs distribution itself by annealing, for any game that is cheap to evaluate."""

import math
from copy import copy

import torch
from torch import Tensor

from spinformer.games.chains import Chains
from spinformer.games.game import Game
from spinformer.games.proposals import Proposal
from spinformer.games.trust import Peaks, complete

# Particles that are resampled together.
GROUP = 8
# Sweeps at rising inverse temperature, and sweeps at the last one.
ANNEALING_SWEEPS, FINAL_SWEEPS = 6, 2
# Annealing sweep s ends at (s / ANNEALING_SWEEPS)^EXPONENT of the last inverse temperature: small steps at first.
EXPONENT = 1.5
# A player's contexts are resampled where their effective sample size is below this part of their number, and then moved
# by so many sweeps.
RESAMPLE_BELOW, CONTEXT_SWEEPS = 0.95, 1
# Elements of the membership tensor of the contexts that are moved at once.
MAX_ELEMENTS = 2**22


class Annealed(Proposal):
    """P(C) ~ exp(v(C) / temperature) over all players, so   Q(C - i) ~ exp(v(C - i) / T) + exp(v(C + i) / T)

    and the four terms without and with i, j for a pair (NGT Eq. 3). Drawn by sequential Monte Carlo (Del Moral et al.
    2006), in independent groups of `group` particles. Particles start as fair coins. In each of ANNEALING_SWEEPS sweeps
    every player in turn is drawn anew given the others (Glauber), while the inverse temperature rises a step with each
    player, up to 1 / T; what that step adds to log P is added to the particle's log-weight. After each sweep a group is
    resampled (systematic), and its particles share their mean weight. FINAL_SWEEPS sweeps at 1 / T then make the copies
    differ.

    Exact: the weights are proper, that is E[sum of w f(C)] = Z E_P[f(C)] for any number of sweeps and particles. So the
    self-normalised estimate is consistent in K, as with any proposal. Groups are independent, and standard errors are
    the jackknife's over groups. Not exact: the effective sample size measures the spread of the weights, and not how
    similar copies still are after the last sweeps (the tests compare it with the mean squared error).

    The weight of T = C - i is sigmoid(-Delta_i v(T) / gamma). For a player of large marginal it is uneven, however well
    C is drawn. So under the Gibbs target every player has contexts of its own (`player_contexts`); pairs share one set.

    Made for games whose values span a few temperatures, as probabilities do. In a game that spans tens of them, such as
    the norm game of an encoder's outputs, one group gets most of the weight, and the effective sample size shows it.
    """

    def __init__(self, game: Game, temperature: Tensor, group: int = GROUP) -> None:
        self.group = group
        self.game, self.temperature = game, temperature.detach()
        self.log_weight = torch.zeros(game.batch, 1, dtype=game.dtype, device=game.device)  # (B, K) after a draw
        self._last: tuple[tuple[int, int, bool, bool], Chains] | None = None  # arguments of the last draw, its result

    @torch.no_grad()
    def draw(self, game: Game, budget: int, seed: Tensor, *, paired: bool, shared: bool) -> Tensor:
        """K = `budget` coalitions for each game, (B, K, n); the last draw is cached, with its weights."""
        arguments = (budget, int(seed), paired, shared)
        if self._last is not None and self._last[0] == arguments:
            return self._last[1].inside
        chains = Chains(game, self.temperature, budget, seed, self.group, paired=paired, shared=shared)
        for sweep in range(1, ANNEALING_SWEEPS + FINAL_SWEEPS + 1):
            start, end = (min(s / ANNEALING_SWEEPS, 1.0) ** EXPONENT for s in (sweep - 1, sweep))
            chains.sweep(sweep, start, end)
            if sweep <= ANNEALING_SWEEPS:
                chains.resample()
        self.log_weight = chains.log_weight
        self._last = arguments, chains
        return chains.inside

    def player_contexts(self, delta: Tensor, log_weight: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """P(T) ~ exp(v(T) / temperature) over all players but i: resample and move (Gilks and Berzuini 2001)

        The K contexts C - i of a player are resampled within those groups whose effective sample size is below the part
        RESAMPLE_BELOW of their size. Then CONTEXT_SWEEPS sweeps of all other players at 1 / T, with i out, move them,
        which leaves P as it is. Every player's contexts are moved: to move only those that look uneven would favour
        others that look even by chance. It costs CONTEXT_SWEEPS n + 2 evaluations for each draw and player.
        """
        assert self._last is not None  # drawn before
        chains, budget = self._last[1], delta.shape[1]
        everyone = chains.order[:, : int(chains.counts.max())]  # (B, M)
        for players in everyone.split(max(1, MAX_ELEMENTS // (self.game.batch * budget * self.game.players)), 1):
            column = players[:, None].expand(-1, budget, -1)  # (B, K, M)
            with torch.no_grad():
                held = chains.held_out(players, log_weight.gather(2, column).mT)
                held.resample(RESAMPLE_BELOW)
                for sweep in range(1, CONTEXT_SWEEPS + 1):
                    held.sweep(ANNEALING_SWEEPS + FINAL_SWEEPS + sweep, 1.0, 1.0)
            without, within = self._around(players, held.inside)
            target = without / temperature[:, None]
            weight = held.log_weight + target - target.detach()  # equal weights, whose gradient is the target's
            sets = (players.shape[1], budget)
            delta = delta.scatter(2, column, (within - without).unflatten(1, sets).mT)
            log_weight = log_weight.scatter(2, column, weight.unflatten(1, sets).mT)
        return delta, log_weight

    def elsewhere(self) -> "Annealed":
        """With the draws' mean weight for every coalition."""
        twin = copy(self)
        twin.log_weight = self.log_weight.logsumexp(1, keepdim=True) - math.log(self.log_weight.shape[1])
        return twin

    @torch.no_grad()
    def complete(self, starts: Tensor) -> Tensor:
        """Whether the last draw missed no mode of P that a search from `starts` finds, (B, n): see `games.trust`."""
        assert self._last is not None  # drawn before
        game, coalitions = self.game, self._last[1].inside
        delta, without = game.marginals(coalitions)
        single = without / self.temperature[:, None, None] - self.log_without_one(coalitions, delta, without)
        single = single - game.counts()[:, None, None] * math.log(2)  # as the weights of the draws, not 2^n times them

        def log_mass(some: Tensor) -> Tensor:
            return game.evaluate(some) / self.temperature[:, None]

        return complete(Peaks(game, starts, log_mass), coalitions, self.log_weight, single)

    def _log_scale(self) -> Tensor:
        """log of 2^n times the weight, whose mean over the draws estimates the sum of exp(v / gamma): (B, K)."""
        return self.log_weight + self.game.counts()[:, None] * math.log(2)

    def _around(self, players: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """v(T) and v(T + i) for each of `players`, (B, M), and its contexts, (B, M K, n): (B, M K) each."""
        member = torch.nn.functional.one_hot(players, self.game.players).bool()  # (B, M, n)
        if self.game.mask is not None:
            member = member & self.game.mask[:, None]
        member = member.repeat_interleave(contexts.shape[1] // players.shape[1], 1)  # (B, M K, n)
        return self.game.evaluate(contexts), self.game.evaluate(contexts | member)

    @torch.no_grad()
    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """log (e^{v(T) / gamma} + e^{v(T + i) / gamma}) minus the log-weight of the draw."""
        gamma = self.temperature[:, None, None]
        return torch.logaddexp(without / gamma, (without + delta) / gamma) - self._log_scale()[..., None]

    @torch.no_grad()
    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """The same with four terms, where Delta_i v(C - ij) = Delta_i v(C - i) - [j in C] Delta_ij v(C - ij)."""
        gamma = self.temperature[:, None, None, None]
        inside = coalitions.to(delta.dtype)
        single = self.game.marginals(coalitions)[0]
        first = single[:, :, rows, None] - inside[:, :, None] * delta
        second = single[:, :, None] - inside[:, :, rows, None] * delta
        gains = (torch.zeros_like(delta), first, second, first + second + delta)
        total = torch.stack([(without + gain) / gamma for gain in gains]).logsumexp(0)
        return total - self._log_scale()[..., None, None]

    def log_probability(self, coalitions: Tensor) -> Tensor:
        """v(C) / gamma minus the log-weight of the draw: (B, K)."""
        return self.game.evaluate(coalitions).detach() / self.temperature[:, None] - self._log_scale()
