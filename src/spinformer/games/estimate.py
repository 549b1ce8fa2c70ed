"""Monte-Carlo estimates of index values, each with its standard error and effective sample size."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer._base.rng import as_seed, check_generator, draw_seed
from spinformer.games.control import SquaredNormControl
from spinformer.games.fused_pairs import fused_pairs
from spinformer.games.game import Game
from spinformer.games.indices import Index, Weighting, check_index
from spinformer.games.jackknife import jackknife
from spinformer.games.named_proposals import ProposalName, check_proposal, proposal_of
from spinformer.games.norm import NormGame
from spinformer.games.proposals import Proposal, SizeWeighted
from spinformer.games.trust import HELD_STARTS, MAX_UNSEEN, STARTS, Found, Peaks, ends, every_coalition, light, unseen
from spinformer.games.twins import mean_of_twin_pairs, mean_of_twins

EstimatorName = Literal["auto", "plain", "paired", "control"]

ESTIMATORS: tuple[EstimatorName, ...] = ("auto", "plain", "paired", "control")

# Below this effective sample size a standard error says little (see docs/deviations.md).
MIN_ESS = 30.0
# And so it does below this effective number of independent blocks: Student's distribution has heavy tails there.
MIN_BLOCKS = 6.0
# And where fewer than so many blocks make up the variance: one more may have been missed.
MIN_TERMS = 1.5
# Between the seed of the draws and that of the search for what they missed.
SEARCH = 2**50

Parts = tuple[Tensor, Tensor, Tensor, Tensor]  # values, stderr, ess, covered


@dataclass(frozen=True)
class Estimate:
    """values: the estimate; stderr: its standard error; ess: effective sample size, at most the budget.

    All three have the shape of the index, and so has covered: whether the draws were found to cover the target, None
    where they do by construction. `trusted` is false where the effective sample size is below MIN_ESS, since a few
    coalitions carry all the weight there; and where the draws do not cover the target: they come from fewer than
    MIN_BLOCKS independent blocks, or a search found coalitions of much weight that they missed (`games.trust`).
    """

    values: Tensor
    stderr: Tensor
    ess: Tensor
    budget: int
    covered: Tensor | None = None

    @property
    def trusted(self) -> Tensor:
        """Whether the standard error can be relied upon, for each value."""
        enough = self.ess >= MIN_ESS
        return enough if self.covered is None else enough & self.covered

    def interval(self, deviations: float = 1.96) -> tuple[Tensor, Tensor]:
        """values -+ deviations * stderr: the 95% interval by default."""
        reach = deviations * self.stderr
        return self.values - reach, self.values + reach

    def __str__(self) -> str:
        text = (
            f"Estimate of {tuple(self.values.shape)} values from {self.budget} coalitions: "
            f"standard error at most {self.stderr.max():.3g}, effective sample size at least {self.ess.min():.1f}"
            if self.values.numel()
            else "Estimate of no values"
        )
        distrusted = int((~self.trusted).sum())
        if distrusted:
            reason = f"effective sample size below {MIN_ESS:g}, or coalitions of much weight were not drawn"
            text += f"; {distrusted} error bars are NOT to be trusted ({reason})"
        return text


@full_precision
def estimate_values(
    game: Game,
    index: str,
    budget: int,
    *,
    weighting: Weighting = "uniform",
    temperature: float | Tensor = 1.0,
    proposal: ProposalName | Proposal = "uniform",
    estimator: EstimatorName = "auto",
    generator: torch.Generator | None = None,
    seed: Tensor | int | None = None,
    shared: bool = False,
    errors: bool = True,
    chunk: int = 2**22,
) -> Estimate:
    """sum over k of w_k Delta(T_k) / sum over k of w_k,   w_k = P(T_k) / Q(T_k)      NGT Eqs. 32-36

    P is the target (`weighting`; see `spinformer.games.indices`), Q the proposal. One set of `budget` coalitions C_k is
    drawn for each game. T_k is C_k without the player or the pair in question, so one set serves all of them.

    index: the name of a registered index. proposal: "uniform" draws the index's own contexts, for which uniform weights
    are all equal (an index without a `bias` draws those of SV and weights them); "tilted" draws from a mean-field
    approximation of the Gibbs distribution at `temperature`, good where players interact weakly or alike; "annealed"
    from that distribution itself, for any game, at 8 n evaluations per draw, and n^2 more for players under Gibbs
    weights, who then get contexts of their own. Or an object of `make_proposal` for this game and temperature, whose
    preparations then serve several estimates.
    estimator: "plain"; "paired", each coalition with its reflection; "control", paired and with the squared-norm
    control variate (norm games, uniform weighting and proposal); "auto", the last of these that applies.
    generator or seed: the source of randomness. shared: the same random numbers for every game of the batch, so that a
    game's estimate does not depend on its batch. errors: without them stderr is NaN throughout and costs nothing, and
    nothing is trusted.
    chunk: pairs are computed in blocks of rows of at most about `chunk` elements (B K rows n). Peak memory is about
    30 max(chunk, B K n) numbers, with gradients too, since each block is recomputed in the backward pass.

    Standard errors are the jackknife's over independent draws: over reflected pairs, where drawn so; over groups of
    `annealed.GROUP` draws of the annealed proposal, so they need a budget of several groups.
    """
    known = check_index(index, weighting, temperature)
    checks.instance("game", game, Game)
    check_proposal(proposal, game)
    checks.choice("estimator", estimator, ESTIMATORS)
    checks.at_least("budget", budget, 2)
    checks.at_least("chunk", chunk, 1)
    check_generator(generator)
    checks.each("temperature", temperature, game.batch)
    if not game.batch:
        nothing = torch.zeros(0, *[game.players] * known.order, dtype=game.dtype, device=game.device)
        return Estimate(nothing, nothing, nothing, budget, nothing.bool())
    uniform = weighting == "uniform" and proposal == "uniform"
    controllable = isinstance(game, NormGame) and uniform
    if estimator == "control" and not controllable:
        raise ValueError("the control variate is for norm games under the uniform weighting and proposal")
    if estimator == "auto":
        estimator = "control" if controllable else "paired"

    gamma = torch.as_tensor(temperature, dtype=game.dtype, device=game.device).expand(game.batch)
    source = proposal if isinstance(proposal, Proposal) else proposal_of(proposal, game, index, gamma)
    seed = draw_seed(generator) if seed is None else as_seed(seed)
    paired = estimator != "plain"
    block = max(source.group, 2 if paired else 1)
    coalitions = source.draw(game, budget, seed, paired=paired, shared=shared)
    control = SquaredNormControl(game) if estimator == "control" and isinstance(game, NormGame) else None
    equal = uniform and known.bias is not None
    sample = _Sample(game, known, weighting, gamma, source, coalitions, control, equal, block, errors)
    if errors:
        sample = sample.search(seed, shared)
    values, stderr, ess, covered = sample.pairs(chunk) if known.pairwise else sample.players()
    twins, mean = game.twins(), mean_of_twin_pairs if known.pairwise else mean_of_twins
    stderr = mean(stderr.square(), twins).sqrt()
    single = game.unbatch
    return Estimate(single(mean(values, twins)), single(stderr), single(ess), budget, single(covered))


@dataclass(frozen=True)
class _Sample:
    """One set of coalitions, and what turns it into an estimate."""

    game: Game
    index: Index
    weighting: Weighting
    temperature: Tensor  # (B,)
    proposal: Proposal
    coalitions: Tensor  # (B, K, n)
    control: SquaredNormControl | None
    equal_weights: bool
    block: int  # draws in a block of the jackknife
    errors: bool
    found: Found | None = None

    def players(self) -> Parts:
        """Estimates for every player: values, stderr, ess, covered, each (B, n)."""
        delta, without = self._differences(None)
        log_weight = drawn = self._log_weight(delta, without, None)
        if log_weight is not None and self.weighting == "gibbs":
            delta, log_weight = self.proposal.player_contexts(delta, log_weight, self.temperature)
        values, stderr, ess, covered = self._parts(delta, log_weight, drawn, None)
        if self.control is not None:
            values = values + self.control.exact(self.index)
        if self.game.mask is None:
            return values, stderr, ess, covered
        padding = ~self.game.mask  # 0 there, also where the standard error of others is infinite
        return values.masked_fill(padding, 0.0), stderr.masked_fill(padding, 0.0), ess, covered | padding

    def pairs(self, chunk: int) -> Parts:
        """Estimates for every pair: values, stderr, ess, covered, each (B, n, n), a block of rows at a time."""
        if not self.errors and self.control is None:
            cold = None if self.equal_weights else 1 / self.temperature
            fused = fused_pairs(self.game, self.coalitions, self.proposal, self.weighting, cold)
            if fused is not None:
                unknown = fused[0].new_full((), torch.nan).expand_as(fused[0])
                return fused[0], unknown, fused[1], torch.zeros_like(fused[0], dtype=torch.bool)
        batch, budget, n = self.coalitions.shape
        height = max(1, min(n, chunk // (batch * budget * n)))
        blocks = [slice(start, min(start + height, n)) for start in range(0, n, height)]
        recompute = torch.is_grad_enabled() and len(blocks) > 1
        parts = [
            checkpoint(self._rows, rows, use_reentrant=False) if recompute else self._rows(rows) for rows in blocks
        ]
        values, stderr, ess, covered = (torch.cat(part, 1) for part in zip(*parts, strict=True))
        shown = ~torch.eye(n, dtype=torch.bool, device=values.device)
        if self.game.mask is not None:
            shown = shown & self.game.mask[:, None] & self.game.mask[:, :, None]
        return values.masked_fill(~shown, 0.0), stderr.masked_fill(~shown, 0.0), ess, covered | ~shown

    @torch.no_grad()
    def search(self, seed: Tensor, shared: bool) -> "_Sample":
        """With coalitions that the draws may have missed."""
        game, elsewhere = self.game, self.proposal.elsewhere()
        if self.equal_weights:
            return replace(self, found=Found(*ends(game), game.order() >= 0))
        fair = SizeWeighted("SV", game.counts())
        starts = fair.draw(game, STARTS + HELD_STARTS, seed + SEARCH, paired=False, shared=shared)

        def log_ratio(coalitions: Tensor) -> Tensor:
            if self.weighting == "gibbs":
                target = game.evaluate(coalitions) / self.temperature[:, None]
            else:
                target = SizeWeighted(self.index.name, game.counts()).log_probability(coalitions).to(game.dtype)
            return target - elsewhere.log_probability(coalitions)

        points, new = every_coalition(game) or Peaks(game, starts, log_ratio).with_neighbours()
        return replace(self, found=Found(points, new, self.proposal.complete(starts)))

    @torch.no_grad()
    def _checked(self, parts: Parts, log_weight: Tensor | None, rows: slice | None) -> Parts:
        """`parts` with what the search found in `covered`.

        log_weight: of the draws, (B, K, n) or (B, K, rows, n), None where all are equal.
        """
        assert self.found is not None
        mean, stderr, ess, covered = parts
        points, new, complete = self.found
        there = replace(self, coalitions=points, proposal=self.proposal.elsewhere())
        delta, without = there._differences(rows)
        log_target, log_proposal = there._log_parts(delta, without, rows)
        if log_weight is None:
            log_weight = torch.zeros_like(log_target[:, :1]).expand(-1, self.coalitions.shape[1], *mean.shape[1:])
        missed = unseen(log_target, log_weight, log_proposal, (delta - mean[:, None]).abs(), new)
        rounding = 32 * torch.finfo(delta.dtype).eps * delta.abs().amax(1)
        good = (missed <= MAX_UNSEEN * stderr + rounding) & light(log_weight, log_target - log_proposal)
        complete = complete if rows is None else complete[:, rows, None] & complete[:, None]
        return mean, stderr, ess, covered & good & complete

    def _rows(self, rows: slice) -> Parts:
        delta, without = self._differences(rows)
        log_weight = self._log_weight(delta, without, rows)
        values, stderr, ess, covered = self._parts(delta, log_weight, log_weight, rows)
        if self.control is not None:
            values = values + self.control.exact(self.index, rows)
        return values, stderr, ess, covered

    def _differences(self, rows: slice | None) -> tuple[Tensor, Tensor]:
        """Delta v(T), less that of the control variate, and v(T): (B, K, n), or (B, K, rows, n)."""
        if self.control is None:
            game, around = self.game, self.coalitions
            return game.marginals(around) if rows is None else game.interactions(around, rows)
        norm = self.control.game
        if rows is None:
            singles = norm.singles(self.coalitions)
            delta, without = norm.marginals_of(singles)
            return delta - self.control.marginals(singles), without
        pairs = norm.pairs(self.coalitions, rows)
        delta, without = norm.interactions_of(pairs)
        return delta - self.control.interactions(pairs), without

    def _log_weight(self, delta: Tensor, without: Tensor, rows: slice | None) -> Tensor | None:
        """log P(T) - log Q(T) up to a constant, or None where it is the same for all."""
        if self.equal_weights:
            return None
        target, proposal = self._log_parts(delta, without, rows)
        return target - proposal

    def _log_parts(self, delta: Tensor, without: Tensor, rows: slice | None) -> tuple[Tensor, Tensor]:
        """log P(T), up to a constant, and log Q(T)."""
        around = (self.coalitions, delta, without)
        log_probability: Callable[[Proposal], Tensor] = (
            (lambda q: q.log_without_one(*around)) if rows is None else (lambda q: q.log_without_two(*around, rows))
        )
        if self.weighting == "gibbs":  # NGT Eq. 31
            target = without / self.temperature.view(-1, *[1] * (without.dim() - 1))
        else:
            target = log_probability(SizeWeighted(self.index.name, self.game.counts()))
        return target.to(without.dtype), log_probability(self.proposal).to(without.dtype)

    def _parts(self, delta: Tensor, log_weight: Tensor | None, drawn: Tensor | None, rows: slice | None) -> Parts:
        """The weighted mean with its errors; drawn: log-weights of the draws themselves, for the search's finds."""
        parts = _weighted_mean(delta, log_weight, self.block, self.errors)
        return parts if self.found is None else self._checked(parts, drawn, rows)


def weighted_mean(
    delta: Tensor, log_weight: Tensor | None, block: int, errors: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean over draws (dim 1) with normalised weights exp(log_weight), standard error, effective sample size.

    The standard error is the jackknife's over blocks of `block` draws (see `spinformer.games.jackknife`).
    """
    return _weighted_mean(delta, log_weight, block, errors)[:3]


def _weighted_mean(delta: Tensor, log_weight: Tensor | None, block: int, errors: bool) -> Parts:
    budget = delta.shape[1]
    weight = None if log_weight is None else log_weight.softmax(1)
    mean = delta.mean(1) if weight is None else (weight * delta).sum(1)
    with torch.no_grad():
        ess = torch.full_like(mean, budget) if weight is None else 1 / weight.square().sum(1)
        if not errors:
            unknown = mean.new_full((), torch.nan).expand_as(mean)
            return mean, unknown, ess, torch.zeros_like(mean, dtype=torch.bool)
        stderr, blocks, terms = jackknife(delta, mean, weight, block)
    return mean, stderr, ess, (blocks >= MIN_BLOCKS) & (terms >= MIN_TERMS)
