"""Coalitions from the Gibbs distribution itself, whatever interacts with what: annealing, for games cheap to ask."""

import torch
from torch import Tensor

from spinformer.games.game import Game
from spinformer.games.proposals import Proposal
from spinformer.rng import uniforms

GROUP = 8
HEATED, SETTLED = 6, 2
# Sweep s of HEATED ends at (s / HEATED)^RISE of the last inverse temperature: smaller steps while all is hot.
RISE = 1.5
# Between the random numbers of one sweep and the next; seeds that are as far apart would share them.
STRIDE = 2**40


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

    Made for games whose values span a few temperatures, as probabilities do; one that spans tens of them, as the norm
    game of an encoder's outputs, leaves most of the weight to one group, and the effective sample size says so. The
    weight of T = C - i, sigmoid(-Delta_i v(T) / gamma), stays uneven for a player on whom much turns.
    """

    def __init__(self, game: Game, temperature: Tensor, group: int = GROUP) -> None:
        self.group = group
        self.game, self.temperature = game, temperature.detach()
        self.log_weight = torch.zeros(game.batch, 1, dtype=game.dtype, device=game.device)  # (B, K) once drawn
        self._last: tuple[tuple[int, int, bool, bool], Tensor] | None = None

    @torch.no_grad()
    def draw(self, game: Game, budget: int, seed: Tensor, *, paired: bool, shared: bool) -> Tensor:
        """K = `budget` coalitions for each game, (B, K, n), and their weights, kept to be asked for again."""
        question = (budget, int(seed), paired, shared)
        if self._last is not None and self._last[0] == question:
            return self._last[1]
        chains = _Chains(game, self.temperature, budget, seed, self.group, paired=paired, shared=shared)
        for sweep in range(1, HEATED + SETTLED + 1):
            start, end = (min(s / HEATED, 1.0) ** RISE for s in (sweep - 1, sweep))
            chains.sweep(sweep, start, end)
            if sweep <= HEATED:
                chains.resample()
        self.log_weight = chains.log_weight
        self._last = question, chains.inside
        return chains.inside

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


class _Chains:
    """K particles of each game on their way: who is in, (B, K, n), v of that, and log-weights, (B, K)."""

    def __init__(
        self, game: Game, temperature: Tensor, budget: int, seed: Tensor, group: int, *, paired: bool, shared: bool
    ) -> None:
        self.game, self.heat, self.budget, self.seed, self.group = game, temperature[:, None], budget, seed, group
        self.paired, self.rows = paired, 1 if shared else game.batch
        self.counts = game.counts()
        rank = game.order()
        if rank is None:
            rank = torch.arange(game.players, device=game.device).expand(game.batch, -1)
            if game.mask is not None:
                rank = (rank + game.players * ~game.mask).argsort(-1).argsort(-1)
        self.turn = rank.argsort(-1)  # (B, n): who is asked first, second and so on; padding last
        numbers = self._numbers(0)[..., 1:].expand(game.batch, -1, -1)
        inside = numbers.gather(-1, rank[:, None].expand(-1, budget, -1)) < 0.5
        self.inside = inside if game.mask is None else inside & game.mask[:, None]
        self.value = game.evaluate(self.inside)
        self.log_weight = torch.zeros_like(self.value)

    def sweep(self, number: int, start: float, end: float) -> None:
        """Every player once, while the inverse temperature goes from `start` to `end` of its last value."""
        numbers = self._numbers(number)
        self.lots = numbers[:, :: self.group, 0]  # (rows, groups)
        place = torch.arange(1, self.game.players + 1, device=self.heat.device)
        passed = (place / self.counts[:, None].clamp_min(1)).clamp_max(1)  # (B, n)
        rate = ((start + (end - start) * passed) / self.heat).unsqueeze(1)  # (B, 1, n)
        rise = rate.diff(dim=-1, prepend=(start / self.heat).unsqueeze(1))
        # A player is in where logit(u) < rate (v(C + i) - v(C - i)); padding is out and stays there.
        logit = numbers[..., 1:].logit().to(self.value.dtype)
        logit = logit.masked_fill((place > self.counts[:, None])[:, None], torch.inf)
        for step in range(int(self.counts.max())):
            if start < end:
                self.log_weight = self.log_weight + rise[..., step] * self.value
            who = self.turn[:, step, None, None].expand(-1, self.budget, -1)  # (B, K, 1)
            now = self.inside.gather(-1, who)
            other = self.inside.scatter(-1, who, ~now)
            value = self.game.evaluate(other)
            bar = torch.where(now.squeeze(-1), -logit[..., step], logit[..., step])
            moves = bar < rate[..., step] * (value - self.value)
            self.inside = torch.where(moves[..., None], other, self.inside)
            self.value = torch.where(moves, value, self.value)

    def resample(self) -> None:
        """Within each group, particle p goes on in about w_p / mean(w) copies, each with the weight mean(w)."""
        each = self.group
        groups = -(-self.budget // each)
        empty = groups * each - self.budget
        weight = torch.nn.functional.pad(self.log_weight, (0, empty), value=-torch.inf).unflatten(1, (groups, each))
        size = torch.full((groups, 1), each, device=weight.device)
        size[-1] -= empty
        place = torch.arange(each, device=weight.device)
        points = (place + self.lots[..., None]) / size  # (rows, groups, group)
        share = weight.softmax(-1).cumsum(-1)
        parent = (points[..., None] > share[..., None, :]).sum(-1).minimum(size - 1)  # (B, groups, group)
        parent = (parent + each * torch.arange(groups, device=weight.device)[:, None]).flatten(1)[:, : self.budget]
        mean = weight.logsumexp(-1, keepdim=True) - size.log()
        self.log_weight = mean.expand_as(weight).flatten(1)[:, : self.budget]
        self.inside = self.inside.gather(1, parent[..., None].expand_as(self.inside))
        self.value = self.value.gather(1, parent)

    def _numbers(self, sweep: int) -> Tensor:
        """Of one sweep: (rows, K, 1 + n), each odd particle's the reflection of the one before it where paired."""
        draws = (self.budget + 1) // 2 if self.paired else self.budget
        numbers = uniforms(self.seed + sweep * STRIDE, self.rows, draws, self.game.players + 1, self.game.device)
        if self.paired:
            numbers = torch.stack([numbers, 1 - numbers], 2).flatten(1, 2)[:, : self.budget]
        return numbers
