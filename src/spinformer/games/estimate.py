"""Monte-Carlo estimates of index values, each with its standard error and effective sample size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from spinformer._base import checks
from spinformer._base.precision import full_precision, safe_divide, safe_sqrt
from spinformer._base.rng import draw_seed
from spinformer.games.annealed import GROUP, Annealed
from spinformer.games.control import SquaredNormControl
from spinformer.games.game import Game
from spinformer.games.indices import INDICES, Index, Weighting, check_index
from spinformer.games.norm import NormGame
from spinformer.games.proposals import Proposal, SizeWeighted, Tilted

EstimatorName = Literal["auto", "plain", "paired", "control"]
ProposalName = Literal["uniform", "tilted", "annealed"]

ESTIMATORS: tuple[EstimatorName, ...] = ("auto", "plain", "paired", "control")
PROPOSALS: tuple[ProposalName, ...] = ("uniform", "tilted", "annealed")

# Below this effective sample size a standard error says little (see docs/deviations.md).
MIN_ESS = 30.0


@dataclass(frozen=True)
class Estimate:
    """values: the estimate; stderr: its standard error; ess: effective sample size, at most the budget.

    All three have the shape of the index. `trusted` is false where the effective sample size is below MIN_ESS: a few
    coalitions carry all the weight there, and the standard error says little.
    """

    values: Tensor
    stderr: Tensor
    ess: Tensor
    budget: int

    @property
    def trusted(self) -> Tensor:
        """Whether the standard error can be relied upon, for each value."""
        return self.ess >= MIN_ESS

    def interval(self, deviations: float = 1.96) -> tuple[Tensor, Tensor]:
        """values -+ deviations * stderr: the 95% interval by default."""
        reach = deviations * self.stderr
        return self.values - reach, self.values + reach

    def __str__(self) -> str:
        text = (
            f"Estimate of {tuple(self.values.shape)} values from {self.budget} coalitions: "
            f"standard error at most {self.stderr.max():.3g}, effective sample size at least {self.ess.min():.1f}"
        )
        distrusted = int((~self.trusted).sum())
        if distrusted:
            text += f"; {distrusted} error bars are NOT to be trusted (effective sample size below {MIN_ESS:g})"
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
    seed: Tensor | None = None,
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
    game's estimate does not depend on its batch. errors: without them stderr is NaN throughout and costs nothing.
    chunk: pairs are computed in blocks of rows of at most about `chunk` elements (B K rows n). Peak memory is about
    30 max(chunk, B K n) numbers, with gradients too, since each block is recomputed in the backward pass.

    Standard errors are the jackknife's over independent draws: over reflected pairs, where drawn so; over groups of
    `annealed.GROUP` draws of the annealed proposal, so they need a budget of several groups.
    """
    known = check_index(index, weighting, temperature)
    if not isinstance(proposal, Proposal):
        checks.choice("proposal", proposal, PROPOSALS)
    checks.choice("estimator", estimator, ESTIMATORS)
    checks.at_least("budget", budget, 2)
    checks.at_least("chunk", chunk, 1)
    uniform = weighting == "uniform" and proposal == "uniform"
    controllable = isinstance(game, NormGame) and uniform
    if estimator == "control" and not controllable:
        raise ValueError("the control variate is for norm games under the uniform weighting and proposal")
    if estimator == "auto":
        estimator = "control" if controllable else "paired"

    gamma = torch.as_tensor(temperature, dtype=game.dtype, device=game.device).expand(game.batch)
    source = proposal if isinstance(proposal, Proposal) else make_proposal(proposal, game, index, gamma)
    seed = draw_seed(generator) if seed is None else seed
    paired = estimator != "plain"
    block = max(source.group, 2 if paired else 1)
    coalitions = source.draw(game, budget, seed, paired=paired, shared=shared)
    control = SquaredNormControl(game) if estimator == "control" and isinstance(game, NormGame) else None
    equal = uniform and known.bias is not None
    sample = _Sample(game, known, weighting, gamma, source, coalitions, control, equal, block, errors)
    values, stderr, ess = sample.pairs(chunk) if known.pairwise else sample.players()
    return Estimate(game.unbatch(values), game.unbatch(stderr), game.unbatch(ess), budget)


def make_proposal(name: ProposalName, game: Game, index: str, temperature: Tensor, *, group: int = GROUP) -> Proposal:
    """The proposal of this name for a game; temperature: (B,).

    index: whose contexts the uniform proposal draws. group: draws of the annealed proposal that are resampled together;
    all of them where no standard errors are needed.
    """
    if name == "uniform":
        return SizeWeighted(index if INDICES[index].bias is not None else "SV", game.counts())
    return Tilted(game, temperature) if name == "tilted" else Annealed(game, temperature, group)


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

    def players(self) -> tuple[Tensor, Tensor, Tensor]:
        """Estimates for every player: values, stderr, ess, each (B, n)."""
        if self.control is None:
            delta, without = self.game.marginals(self.coalitions)
            log_weight = self._log_weight(delta, without, None)
            if log_weight is not None and self.weighting == "gibbs":
                delta, log_weight = self.proposal.player_contexts(delta, log_weight, self.temperature)
            results = self._average(delta, log_weight)
        else:
            singles = self.control.game.singles(self.coalitions)
            delta, without = self.control.game.marginals_of(singles)
            log_weight = self._log_weight(delta, without, None)
            values, stderr, ess = self._average(delta - self.control.marginals(singles), log_weight)
            results = values + self.control.exact(self.index), stderr, ess
        if self.game.mask is None:
            return results
        return results[0] * self.game.mask, results[1] * self.game.mask, results[2]

    def pairs(self, chunk: int) -> tuple[Tensor, Tensor, Tensor]:
        """Estimates for every pair: values, stderr, ess, each (B, n, n), a block of rows at a time."""
        batch, budget, n = self.coalitions.shape
        height = max(1, min(n, chunk // (batch * budget * n)))
        blocks = [slice(start, min(start + height, n)) for start in range(0, n, height)]
        recompute = torch.is_grad_enabled() and len(blocks) > 1
        parts = [
            checkpoint(self._rows, rows, use_reentrant=False) if recompute else self._rows(rows) for rows in blocks
        ]
        values, stderr, ess = (torch.cat(part, 1) for part in zip(*parts, strict=True))
        shown = ~torch.eye(n, dtype=torch.bool, device=values.device)
        if self.game.mask is not None:
            shown = shown & self.game.mask[:, None] & self.game.mask[:, :, None]
        return values * shown, stderr * shown, ess

    def _rows(self, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        if self.control is None:
            delta, without = self.game.interactions(self.coalitions, rows)
            return self._average(delta, self._log_weight(delta, without, rows))
        pairs = self.control.game.pairs(self.coalitions, rows)
        delta, without = self.control.game.interactions_of(pairs)
        log_weight = self._log_weight(delta, without, rows)
        values, stderr, ess = self._average(delta - self.control.interactions(pairs), log_weight)
        return values + self.control.exact(self.index, rows), stderr, ess

    def _log_weight(self, delta: Tensor, without: Tensor, rows: slice | None) -> Tensor | None:
        """log P(T) - log Q(T) up to a constant, or None where it is the same for all."""
        if self.equal_weights:
            return None
        around = (self.coalitions, delta, without)
        log_probability: Callable[[Proposal], Tensor] = (
            (lambda q: q.log_without_one(*around)) if rows is None else (lambda q: q.log_without_two(*around, rows))
        )
        if self.weighting == "gibbs":  # NGT Eq. 31
            target = without / self.temperature.view(-1, *[1] * (without.dim() - 1))
        else:
            target = log_probability(SizeWeighted(self.index.name, self.game.counts()))
        return (target - log_probability(self.proposal)).to(without.dtype)

    def _average(self, delta: Tensor, log_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        return weighted_mean(delta, log_weight, self.block, self.errors)


def weighted_mean(
    delta: Tensor, log_weight: Tensor | None, block: int, errors: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean over draws (dim 1) with normalised weights exp(log_weight), standard error, effective sample size.

    The standard error is the jackknife's over blocks of `block` draws,
    var = (b - 1) / b sum over blocks of (R / (1 - W))^2, with W the block's weight and R its weighted residual, widened
    (see `_widening`) so that mean -+ 1.96 stderr is a 95% interval. It is infinite where one draw carries all the
    weight, since one draw does not show how far off it is.
    """
    budget = delta.shape[1]
    weight = None if log_weight is None else log_weight.softmax(1)
    mean = delta.mean(1) if weight is None else (weight * delta).sum(1)
    with torch.no_grad():
        ess = torch.full_like(mean, budget) if weight is None else 1 / weight.square().sum(1)
        stderr = _jackknife(delta, mean, weight, ess, block) if errors else mean.new_full((), torch.nan).expand_as(mean)
    return mean, stderr, ess


def _jackknife(delta: Tensor, mean: Tensor, weight: Tensor | None, ess: Tensor, block: int) -> Tensor:
    """The standard error of `weighted_mean`."""
    budget = delta.shape[1]
    blocks = -(-budget // block)
    if weight is None:
        residual = _per_block((delta - mean.unsqueeze(1)) / budget, block)
        share = _per_block(torch.full((1, budget), 1 / budget, device=delta.device, dtype=delta.dtype), block)
        share = share.view(1, blocks, *[1] * (delta.dim() - 2))
    else:
        residual = _per_block(weight * (delta - mean.unsqueeze(1)), block)
        share = _per_block(weight, block)
    tiny = torch.finfo(delta.dtype).eps
    change = residual / (1 - share).clamp_min(tiny)  # by how much the mean moves when a block is left out
    stderr = ((blocks - 1) / blocks * change.square().sum(1)).sqrt() * _widening(change)
    single = ess < 1 + 1e-3 if blocks > 1 else torch.ones_like(ess, dtype=torch.bool)
    return stderr.masked_fill(single, torch.inf)


def _widening(change: Tensor) -> Tensor:
    """How much wider than the normal one a 95% interval must be, when only these b terms are known.

    Where few terms make up most of the variance, two effects widen it, and the larger one counts. The variance itself
    is uncertain, with nu = 2 b / (k - 1) degrees of freedom for kurtosis k: Student's interval is wider by
    (z^2 + 1) / (4 nu). And the studentised mean is skewed: for skewness g by g^2 (z^4 + 2 z^2 - 3) / (18 b) (the
    Edgeworth expansion, Hall 1992). With z = 1.96 these are 1.21 / nu and 1.08 g^2 / b.
    """
    blocks = change.shape[1]
    total = change.square().sum(1, keepdim=True)
    unit = safe_divide(change, safe_sqrt(total).expand_as(change))  # squares sum to 1
    kurtosis = blocks * (unit**4).sum(1)
    skewness = blocks * (unit**3).sum(1).square()  # g^2
    student = 1.21 * (kurtosis - 1).clamp_min(0) / 2
    return 1 + torch.maximum(student, 1.21 + 1.08 * skewness) / blocks


def _per_block(terms: Tensor, block: int) -> Tensor:
    """Sums over consecutive blocks along dim 1; a short last block stands alone."""
    if block == 1:
        return terms
    missing = -terms.shape[1] % block
    if missing:
        terms = torch.cat([terms, terms.new_zeros(terms.shape[0], missing, *terms.shape[2:])], 1)
    return terms.unflatten(1, (-1, block)).sum(2)
