"""Coalitions from the Gibbs distribution itself, whatever interacts with what: annealing, for games cheap to ask."""

import torch
from torch import Tensor

from spinformer.games.chains import Chains
from spinformer.games.game import Game
from spinformer.games.proposals import Proposal

GROUP = 8
HEATED, SETTLED = 6, 2
# Sweep s of HEATED ends at (s / HEATED)^RISE of the last inverse temperature: smaller steps while all is hot.
RISE = 1.5
# Of a player's own contexts: below this part of their number as effective sample size they are resampled.
EVEN, MOVED = 0.95, 1
# Numbers that say who is in which of the contexts that are moved at once.
ROOM = 2**22


class Annealed(Proposal):
    """P(C) ~ exp(v(C) / temperature) over all players, so   Q(C - i) ~ exp(v(C - i) / T) + exp(v(C + i) / T)

    and the four terms without and with i, j for a pair. Drawn by sequential Monte Carlo (Del Moral et al. 2006), in
    groups of `group` particles that know nothing of each other. Particles start as fair coins. In each of HEATED sweeps
    every player in turn is taken out and let in with the chance that the others leave it (Glauber), while the inverse
    temperature rises a step with each player, up to 1 / T; what that step adds to log P is the particle's log-weight.
    After each sweep a group is resampled (systematic) and its particles share their mean weight. SETTLED sweeps at
    1 / T then move the copies apart.

    Exact: weights are proper, that is E[sum of w f(C)] = Z E_P[f(C)] for any number of sweeps and particles, so the
    self-normalised estimate is consistent in K, as with any proposal, and groups are independent: standard errors are
    the jackknife's over groups. Not exact: the effective sample size counts the spread of the weights, and not how
    alike copies still are after the last sweeps (the tests hold it against the mean squared error).

    The weight of T = C - i, sigmoid(-Delta_i v(T) / gamma), is uneven for a player on whom much turns, however well C
    is drawn; so under the Gibbs target players get contexts of their own (`own_contexts`). Pairs share those of all.

    Made for games whose values span a few temperatures, as probabilities do; one that spans tens of them, as the norm
    game of an encoder's outputs, leaves most of the weight to one group, and the effective sample size says so.
    """

    def __init__(self, game: Game, temperature: Tensor, group: int = GROUP) -> None:
        self.group = group
        self.game, self.temperature = game, temperature.detach()
        self.log_weight = torch.zeros(game.batch, 1, dtype=game.dtype, device=game.device)  # (B, K) once drawn
        self._last: tuple[tuple[int, int, bool, bool], Chains] | None = None

    @torch.no_grad()
    def draw(self, game: Game, budget: int, seed: Tensor, *, paired: bool, shared: bool) -> Tensor:
        """K = `budget` coalitions for each game, (B, K, n), and their weights, kept to be asked for again."""
        question = (budget, int(seed), paired, shared)
        if self._last is not None and self._last[0] == question:
            return self._last[1].inside
        chains = Chains(game, self.temperature, budget, seed, self.group, paired=paired, shared=shared)
        for sweep in range(1, HEATED + SETTLED + 1):
            start, end = (min(s / HEATED, 1.0) ** RISE for s in (sweep - 1, sweep))
            chains.sweep(sweep, start, end)
            if sweep <= HEATED:
                chains.resample()
        self.log_weight = chains.log_weight
        self._last = question, chains
        return chains.inside

    def own_contexts(self, delta: Tensor, log_weight: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """P(T) ~ exp(v(T) / temperature) over all players but i: resample and move (Gilks and Berzuini 2001)

        The K contexts C - i of a player are resampled within their groups where their weights, as given, have an
        effective sample size below EVEN, and moved by MOVED sweeps of all others at 1 / T, with i out, which leaves P
        as it is. Every player's are moved, since to move only those that look uneven would favour the others that look
        even by chance. Takes MOVED n + 2 values a draw and player.
        """
        assert self._last is not None  # drawn before
        chains, budget = self._last[1], delta.shape[1]
        everyone = chains.turn[:, : int(chains.counts.max())]  # (B, M)
        for players in everyone.split(max(1, ROOM // (self.game.batch * budget * self.game.players)), 1):
            place = players[:, None].expand(-1, budget, -1)  # (B, K, M)
            with torch.no_grad():
                held = chains.held_out(players, log_weight.gather(2, place).mT)
                held.resample(EVEN)
                for sweep in range(1, MOVED + 1):
                    held.sweep(HEATED + SETTLED + sweep, 1.0, 1.0)
            without, within = self._around(players, held.inside)
            target = without / temperature[:, None]
            weight = held.log_weight + target - target.detach()  # equal weights, whose gradient is the target's
            sets = (players.shape[1], budget)
            delta = delta.scatter(2, place, (within - without).unflatten(1, sets).mT)
            log_weight = log_weight.scatter(2, place, weight.unflatten(1, sets).mT)
        return delta, log_weight

    def _around(self, players: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """v(T) and v(T + i) for each of `players`, (B, M), and its contexts, (B, M K, n): (B, M K) each."""
        one = torch.nn.functional.one_hot(players, self.game.players).bool()
        if self.game.mask is not None:
            one = one & self.game.mask[:, None]
        one = one.repeat_interleave(contexts.shape[1] // players.shape[1], 1)
        return self.game.evaluate(contexts), self.game.evaluate(contexts | one)

    @torch.no_grad()
    def log_without_one(self, coalitions: Tensor, delta: Tensor, without: Tensor) -> Tensor:
        """log (e^{v(T) / gamma} + e^{v(T + i) / gamma}) less the log-weight of the draw."""
        heat = self.temperature[:, None, None]
        return torch.logaddexp(without / heat, (without + delta) / heat) - self.log_weight[..., None]

    @torch.no_grad()
    def log_without_two(self, coalitions: Tensor, delta: Tensor, without: Tensor, rows: slice) -> Tensor:
        """The same of four terms, with Delta_i v(C - ij) = Delta_i v(C - i) - [j in C] Delta_ij v(C - ij)."""
        heat = self.temperature[:, None, None, None]
        inside = coalitions.to(delta.dtype)
        single = self.game.marginals(coalitions)[0]
        first = single[:, :, rows, None] - inside[:, :, None] * delta
        second = single[:, :, None] - inside[:, :, rows, None] * delta
        gains = (torch.zeros_like(delta), first, second, first + second + delta)
        total = torch.stack([(without + gain) / heat for gain in gains]).logsumexp(0)
        return total - self.log_weight[..., None, None]

    def log_probability(self, coalitions: Tensor) -> Tensor:
        """v(C) / gamma less the log-weight of the draw: (B, K)."""
        return self.game.evaluate(coalitions).detach() / self.temperature[:, None] - self.log_weight
