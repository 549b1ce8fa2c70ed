"""Shapley values of a classifier's confidence from a budget of masked passes: permutations, and least squares."""

import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.words import Words
from spinformer.explain.attribution.base import confidences, distinct_rows, text_uniforms
from spinformer.games.draws import kernel_sizes, members
from spinformer.games.estimate import Estimate, weighted_mean
from spinformer.models.masked import MaskedClassifier

# Of so many times the coalitions that may be evaluated, draws go on to make up for repeated ones.
PATIENCE = 16


class ShapleySampling:
    """score_i = mean over permutations pi of v(before i in pi, and i) - v(before i in pi),   v(C) = p_y(C)

    Castro, Gomez and Tejada (2009), each permutation followed by its reverse (antithetic; Mitchell et al. 2022). A text
    of W words has (evaluations - 2) // (W - 1) permutations; coalitions met twice are evaluated once. Every permutation
    shares out p_y(N) - p_y(nothing), and so does the mean.
    """

    name = "shapley-sampling"

    def __init__(self, classifier: MaskedClassifier, evaluations: int = 200, seed: int = 0) -> None:
        checks.at_least("evaluations", evaluations, 2)
        self.classifier, self.evaluations, self.seed = classifier, evaluations, seed
        self.passes = f"at most {evaluations}"

    def seeded(self, seed: int) -> "ShapleySampling":
        """The same with other coalitions."""
        return ShapleySampling(self.classifier, self.evaluations, seed)

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        return self.estimate(words).values

    def estimate(self, words: Words) -> Estimate:
        """Values with standard errors, (B, W); the effective sample size is the number of permutations."""
        ranks = [self._ranks(words, row) for row in range(len(words.words))]  # (m, W) each
        prefixes = [rank[:, None] < torch.arange(rank.shape[1] + 1)[:, None] for rank in ranks]  # (m, W + 1, W)
        # The whole text first, as `confidences` asks.
        values = confidences(self.classifier, words, [rows.flip(1).flatten(0, 1) for rows in prefixes])
        whole = torch.zeros(3, *words.mask.shape)
        for row, (rank, value) in enumerate(zip(ranks, values, strict=True)):
            gains = value.view(len(rank), -1).flip(1).diff(dim=1)  # by place in the permutation
            mean, stderr, ess = weighted_mean(gains.gather(1, rank)[None], None, block=2)
            if rank.shape[1] == 1:  # one word: no permutation differs from another
                stderr = torch.zeros_like(stderr)
            whole[:, row, : rank.shape[1]] = torch.cat([mean, stderr, ess]).float()
        estimates, stderr, ess = whole.to(words.mask.device)
        return Estimate(estimates, stderr, ess, self.evaluations)

    def _ranks(self, words: Words, row: int) -> Tensor:
        """The place of each word in each permutation, (m, W); every second one is the reverse of the one before."""
        count = len(words.words[row])
        if count == 1:
            return torch.zeros(1, 1, dtype=torch.long)
        permutations = (self.evaluations - 2) // (count - 1)
        if not permutations:
            raise ValueError(f"a text of {count} words needs at least {count + 1} evaluations; got {self.evaluations}")
        pairs = -(-permutations // 2)
        rank = text_uniforms(words, row, self.seed, pairs, count).argsort(dim=-1, stable=True).argsort(dim=-1)
        return torch.stack([rank, count - 1 - rank], 1).flatten(0, 1)[:permutations]


class KernelShap:
    """score = argmin over phi of sum over C of w(C) (v(C) - v(nothing) - sum over C of phi_i)^2
    with sum over all i of phi_i = v(N) - v(nothing),   w(C) = (W - 1) / (binom(W, |C|) |C| (W - |C|)),   v(C) = p_y(C)

    Lundberg and Lee (2017) with the paired sampling of Covert and Lee (2021): C is drawn by w, and comes with its
    complement. Where `evaluations` suffice for all 2^W coalitions these are enumerated, and the scores are exact.
    Otherwise coalitions drawn again count again and are evaluated once. What too few coalitions leave open is shared
    equally: of all solutions, the one closest to equal shares.
    """

    name = "kernel-shap"

    def __init__(self, classifier: MaskedClassifier, evaluations: int = 200, seed: int = 0) -> None:
        checks.at_least("evaluations", evaluations, 4)
        self.classifier, self.evaluations, self.seed = classifier, evaluations, seed
        self.passes = f"at most {evaluations}"

    def seeded(self, seed: int) -> "KernelShap":
        """The same with other coalitions."""
        return KernelShap(self.classifier, self.evaluations, seed)

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        drawn = [self._coalitions(words, row) for row in range(len(words.words))]
        ends = [torch.tensor([[True], [False]]).expand(2, rows.shape[1]) for rows, _ in drawn]
        asked = [torch.cat([both, rows]) for both, (rows, _) in zip(ends, drawn, strict=True)]
        values = confidences(self.classifier, words, asked)
        scores = torch.zeros(words.mask.shape)
        for row, ((coalitions, weight), value) in enumerate(zip(drawn, values, strict=True)):
            count = coalitions.shape[1]
            scores[row, :count] = least_squares(coalitions, weight, value[2:] - value[1], value[0] - value[1]).float()
        return scores.to(words.mask.device)

    def _coalitions(self, words: Words, row: int) -> tuple[Tensor, Tensor]:
        """Coalitions, (K, W), and the weight of each, (K,)."""
        count = len(words.words[row])
        if count.bit_length() < 6 and 2**count <= self.evaluations:
            return every_coalition(count)
        pairs = (self.evaluations - 2) // 2
        draws, most = 2 * pairs, PATIENCE * pairs
        distinct, place, new = self._drawn(words, row, draws)
        while len(distinct) <= pairs and draws < most:  # more draws begin with the same
            draws = min(2 * draws, most)
            distinct, place, new = self._drawn(words, row, draws)
        counts = place[new.cumsum(0) <= pairs].bincount(minlength=len(distinct))  # as long as the budget lasts
        kept = counts > 0
        half, weight = distinct[kept], counts[kept].double()
        return torch.cat([half, ~half]), torch.cat([weight, weight])

    def _drawn(self, words: Words, row: int, draws: int) -> tuple[Tensor, Tensor, Tensor]:
        """The different coalitions among `draws`, (K, W), which of them each draw is, and whether it is its first."""
        count = len(words.words[row])
        uniform = text_uniforms(words, row, self.seed, draws, count + 1)
        drawn = kernel_coalitions(uniform[None], torch.tensor([count]))[0]
        drawn = drawn ^ ~drawn[:, :1]  # of a coalition and its complement, the one with the first word
        distinct, place = distinct_rows(drawn)
        first = torch.full((len(distinct),), draws).scatter_reduce(0, place, torch.arange(draws), "amin")
        return distinct, place, first[place] == torch.arange(draws)


def every_coalition(count: int) -> tuple[Tensor, Tensor]:
    """All coalitions of `count` players but the empty and the full one, (2^count - 2, count), with w of each."""
    coalitions = (torch.arange(1, 2**count - 1)[:, None] >> torch.arange(count) & 1).bool()
    size = coalitions.sum(-1).double()
    log_binomial = torch.lgamma(torch.tensor(count + 1.0)) - torch.lgamma(size + 1) - torch.lgamma(count - size + 1)
    return coalitions, (count - 1) / (log_binomial.exp() * size * (count - size))


def kernel_coalitions(uniform: Tensor, counts: Tensor) -> Tensor:
    """Coalitions drawn by w: P(|C| = s) ~ 1 / (s (W - s)), all of one size alike.

    uniform: (B, K, columns + 1) numbers in (0, 1), of which the first chooses the size; counts: (B,), players of each
    game -> (B, K, columns). A game of one player has no coalition between none and all, and gets all.
    """
    columns = uniform.shape[-1] - 1
    mask = torch.arange(columns, device=uniform.device) < counts[:, None]
    return members(uniform[..., 1:], kernel_sizes(uniform[..., 0], counts, columns), mask)


def least_squares(coalitions: Tensor, weight: Tensor, values: Tensor, total: Tensor) -> Tensor:
    """argmin over phi of sum over C of weight(C) (values(C) - sum over C of phi_i)^2 with sum of phi_i = total: (W,).

    In float64, by its deviation from equal shares; the smallest where it is not unique.
    """
    count = coalitions.shape[1]
    member = coalitions.double()
    share = total.double() / count
    residual = values.double() - share * member.sum(-1)
    member = member - member.mean(-1, keepdim=True)  # deviations sum to 0
    moment = member.T @ (weight[:, None] * member)
    return share + torch.linalg.pinv(moment, rtol=1e-10, hermitian=True) @ (member.T @ (weight * residual))
