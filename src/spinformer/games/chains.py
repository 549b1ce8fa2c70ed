"""Particles of annealed sampling: Glauber updates at a falling temperature, and resampling within groups."""

from copy import copy

import torch
from torch import Tensor

from spinformer._base.rng import uniforms
from spinformer.games.game import Game

# Difference between the seeds of one sweep and the next; two draws whose seeds differ by it would share numbers.
STRIDE = 2**40


class Chains:
    """K particles of each game: coalitions `inside`, (B, K, n), their values and log-weights, (B, K).

    Those of `held_out` are M sets of K for each game, one after the other in the second dimension.
    """

    def __init__(
        self, game: Game, temperature: Tensor, budget: int, seed: Tensor, group: int, *, paired: bool, shared: bool
    ) -> None:
        self.game, self.temperature = game, temperature[:, None]  # (B, 1)
        self.budget, self.seed, self.group = budget, seed, group
        self.paired, self.rows = paired, 1 if shared else game.batch
        self.counts = game.counts()
        rank = game.order()
        self.order = rank.argsort(-1)  # (B, n): the players in the order of their updates; padding last
        numbers = self._numbers(0)[..., 1:].expand(game.batch, -1, -1)
        inside = numbers.gather(-1, rank[:, None].expand(-1, budget, -1)) < 0.5
        self.inside = inside if game.mask is None else inside & game.mask[:, None]
        self.value = game.evaluate(self.inside)
        self.log_weight = torch.zeros_like(self.value)
        self.held: Tensor | None = None  # (B, M): the player that is out of each set

    def sweep(self, number: int, start: float, end: float) -> None:
        """Update every player once, while the inverse temperature rises.

        number: of the sweep; each has its own random numbers. start, end: the inverse temperature before and after, as
        parts of its last value.
        """
        numbers = self._numbers(number)
        self.offsets = numbers[:, :: self.group, 0]  # (rows, groups), of the systematic resampling
        position = torch.arange(1, self.game.players + 1, device=self.temperature.device)
        progress = (position / self.counts[:, None].clamp_min(1)).clamp_max(1)  # (B, n)
        rate = ((start + (end - start) * progress) / self.temperature).unsqueeze(1)  # (B, 1, n)
        rise = rate.diff(dim=-1, prepend=(start / self.temperature).unsqueeze(1))
        # A player is in where logit(u) < rate (v(C + i) - v(C - i)); padding and held players stay out.
        logit = numbers[..., 1:].logit().to(self.value.dtype)
        logit = logit.masked_fill((position > self.counts[:, None])[:, None], torch.inf)
        if self.held is not None:
            out = (self.held[..., None] == self.order[:, None]).unsqueeze(2)  # (B, M, 1, n)
            logit = logit[:, None].masked_fill(out, torch.inf).flatten(1, 2)
        for step in range(int(self.counts.max()) if len(self.counts) else 0):
            if start < end:
                self.log_weight = self.log_weight + rise[..., step] * self.value
            player = self.order[:, step, None, None].expand(-1, self.value.shape[1], -1)  # (B, K, 1)
            member = self.inside.gather(-1, player)
            flipped = self.inside.scatter(-1, player, ~member)
            value = self.game.evaluate(flipped)
            threshold = torch.where(member.squeeze(-1), -logit[..., step], logit[..., step])
            moves = threshold < rate[..., step] * (value - self.value)
            self.inside = torch.where(moves[..., None], flipped, self.inside)
            self.value = torch.where(moves, value, self.value)

    def resample(self, below: float = torch.inf) -> None:
        """Within each group, particle p is copied about w_p / mean(w) times, each copy with the weight mean(w).

        below: groups whose effective sample size is at least this part of their size stay as they are.
        """
        each, device = self.group, self.value.device
        groups = -(-self.budget // each)
        empty = groups * each - self.budget
        sets = self.log_weight.unflatten(1, (-1, self.budget))  # (B, M, K)
        weight = torch.nn.functional.pad(sets, (0, empty), value=-torch.inf).unflatten(2, (groups, each))
        size = torch.full((groups, 1), each, device=device)
        size[-1] -= empty
        points = (torch.arange(each, device=device) + self.offsets[:, None, :, None]) / size  # (rows, 1, groups, group)
        share = weight.softmax(-1)
        uneven = 1 / share.square().sum(-1, keepdim=True) < below * size  # (B, M, groups, 1)
        parent = (points[..., None] > share.cumsum(-1)[..., None, :]).sum(-1).minimum(size - 1)  # (.., groups, group)
        parent = torch.where(uneven, parent, torch.arange(each, device=device))
        parent = (parent + each * torch.arange(groups, device=device)[:, None]).flatten(2)[..., : self.budget]
        parent = (parent + self.budget * torch.arange(sets.shape[1], device=device)[:, None]).flatten(1)
        mean = weight.logsumexp(-1, keepdim=True) - size.log()
        self.log_weight = torch.where(uneven, mean, weight).flatten(2)[..., : self.budget].flatten(1)
        self.inside = self.inside.gather(1, parent[..., None].expand_as(self.inside))
        self.value = self.value.gather(1, parent)

    def held_out(self, players: Tensor, log_weight: Tensor) -> "Chains":
        """The same particles with one player out, once for each of `players`, (B, M); log_weight: (B, M, K).

        The player stays out in all further sweeps; random numbers are the same for all M.
        """
        chains = copy(self)
        chains.held = players
        out = torch.nn.functional.one_hot(players, self.game.players).bool()
        chains.inside = (self.inside[:, None] & ~out[:, :, None]).flatten(1, 2)  # (B, M K, n)
        chains.value, chains.log_weight = self.game.evaluate(chains.inside), log_weight.flatten(1)
        return chains

    def _numbers(self, sweep: int) -> Tensor:
        """Random numbers of one sweep, (rows, K, 1 + n); where paired, each odd particle's reflect the one before."""
        draws = (self.budget + 1) // 2 if self.paired else self.budget
        numbers = uniforms(self.seed + sweep * STRIDE, self.rows, draws, self.game.players + 1, self.game.device)
        if self.paired:
            numbers = torch.stack([numbers, 1 - numbers], 2).flatten(1, 2)[:, : self.budget]
        return numbers
