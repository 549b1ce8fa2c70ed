"""Shapley values of a classifier's confidence from masked passes: permutations, and least squares."""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import METHOD_SUMMARIES
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import from_scores, one_by_one
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.masked_explanations import explain_by_masking
from spinformer.explain.methods.base import PASSES, Method
from spinformer.explain.scoring import confidences, text_uniforms
from spinformer.games.estimate import Estimate, weighted_mean
from spinformer.games.kernel_shap import KernelSample, every_coalition, least_squares, sample_kernel
from spinformer.models.masked import MaskedClassifier


class SampledScores(ABC):
    """Shapley values from at most `evaluations` masked passes for each text; seed: of the samples."""

    name: str
    min_evaluations: int

    def __init__(self, classifier: MaskedClassifier, evaluations: int = PASSES, seed: int = 0) -> None:
        checks.at_least("evaluations", evaluations, self.min_evaluations)
        self.classifier, self.evaluations, self.seed = classifier, evaluations, seed
        self.passes = f"at most {evaluations}"

    def seeded(self, seed: int) -> Self:
        """The same with another seed."""
        return type(self)(self.classifier, self.evaluations, seed)

    @abstractmethod
    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""


class ShapleySampling(SampledScores):
    """score_i = mean over permutations pi of v(before i in pi, and i) - v(before i in pi),   v(C) = p_y(C)

    Castro, Gomez and Tejada (2009), each permutation followed by its reverse (antithetic; Mitchell et al. 2022). A text
    of W words has (evaluations - 2) // (W - 1) permutations; coalitions met twice are evaluated once. Every permutation
    shares out p_y(N) - p_y(nothing), and so does the mean.
    """

    name = "shapley-sampling"
    min_evaluations = 2

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        return self.estimate(words, target).values

    def estimate(self, words: Words, target: Tensor | None = None) -> Estimate:
        """Values with standard errors, (B, W); the effective sample size is the number of permutations."""
        ranks = [self._ranks(words, row) for row in range(len(words.words))]  # (m, W) each
        prefixes = [rank[:, None] < torch.arange(rank.shape[1] + 1)[:, None] for rank in ranks]  # (m, W + 1, W)
        # The whole text first, as `confidences` asks.
        values = confidences(self.classifier, words, [rows.flip(1).flatten(0, 1) for rows in prefixes], target)
        columns = torch.zeros(3, *words.mask.shape)
        for row, (rank, value) in enumerate(zip(ranks, values, strict=True)):
            gains = value.view(len(rank), -1).flip(1).diff(dim=1)  # by position in the permutation
            mean, stderr, ess = weighted_mean(gains.gather(1, rank)[None], None, block=2)
            if rank.shape[1] == 1:  # one word: no permutation differs from another
                stderr = torch.zeros_like(stderr)
            columns[:, row, : rank.shape[1]] = torch.cat([mean, stderr, ess]).float()
        estimates, stderr, ess = columns.to(words.mask.device)
        return Estimate(estimates, stderr, ess, self.evaluations)

    def _ranks(self, words: Words, row: int) -> Tensor:
        """The position of each word in each permutation, (m, W); every second one reverses the one before."""
        count = len(words.words[row])
        if count == 1:
            return torch.zeros(1, 1, dtype=torch.long)
        permutations = (self.evaluations - 2) // (count - 1)
        if not permutations:
            raise ValueError(f"a text of {count} words needs at least {count + 1} evaluations; got {self.evaluations}")
        pairs = -(-permutations // 2)
        rank = text_uniforms(words, row, self.seed, pairs, count).argsort(dim=-1, stable=True).argsort(dim=-1)
        return torch.stack([rank, count - 1 - rank], 1).flatten(0, 1)[:permutations]


class KernelShap(SampledScores):
    """score = argmin over phi of sum over C of w(C) (v(C) - v(nothing) - sum over C of phi_i)^2
    with sum over all i of phi_i = v(N) - v(nothing),   w(C) = (W - 1) / (binom(W, |C|) |C| (W - |C|)),   v(C) = p_y(C)

    Lundberg and Lee (2017) with the paired sampling of Covert and Lee (2021): C is drawn by w, and comes with its
    complement. Where `evaluations` suffice for all 2^W coalitions these are enumerated, and the scores are exact.
    """

    name = "kernel-shap"
    min_evaluations = 4

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        samples = [self._sample(words, row) for row in range(len(words.words))]
        ends = [torch.tensor([[True], [False]]).expand(2, sample.coalitions.shape[1]) for sample in samples]
        asked = [torch.cat([both, sample.coalitions]) for both, sample in zip(ends, samples, strict=True)]
        values = confidences(self.classifier, words, asked, target)
        scores = torch.zeros(words.mask.shape)
        for row, (sample, value) in enumerate(zip(samples, values, strict=True)):
            shapley = least_squares(*sample, value[2:] - value[1], value[0] - value[1])
            scores[row, : len(shapley)] = shapley.float()
        return scores.to(words.mask.device)

    def _sample(self, words: Words, row: int) -> KernelSample:
        count = len(words.words[row])
        if count.bit_length() < 6 and 2**count <= self.evaluations:
            return every_coalition(count)
        return sample_kernel(
            lambda draws: text_uniforms(words, row, self.seed, draws, count + 1), budget=self.evaluations - 2
        )


class SamplingMethod(Method):
    """A method that spends masked passes, as many as the call asks for."""

    sampled = True
    scores: type[SampledScores]

    def scorer(self, context: Context) -> SampledScores:
        """With the context's passes and seed."""
        return self.scores(context.classifier, context.passes or PASSES, context.seed)


class ShapleySamplingMethod(SamplingMethod):
    """`ShapleySampling`."""

    name, scores = ShapleySampling.name, ShapleySampling
    summary = METHOD_SUMMARIES[name]
    passes = "as many as asked for (200)"

    def explain(self, context: Context, texts: Texts, words: Words, target: Tensor | None) -> list[Explanation]:
        """Values with standard errors; `until` is not for permutations."""
        if context.until is not None:
            raise ValueError(f"until is for the methods of a game and for kernel-shap; got method {self.name!r}")
        sampling = ShapleySampling(context.classifier, context.passes or PASSES, context.seed)
        explanations = []
        for text, word, classes in one_by_one(texts, words, target):
            before = context.classifier.passes
            estimate = sampling.estimate(word, classes)
            explanations += from_scores(
                self.name,
                context,
                text,
                word,
                classes,
                estimate.values,
                before,
                stderr=estimate.stderr,
                columns={"shapley": estimate.values, "shapley_stderr": estimate.stderr},
                samples=estimate.budget,
            )
        return explanations


class KernelShapMethod(SamplingMethod):
    """`KernelShap` for scores; explanations by `refine` without a game.

    They fit pairs and higher orders too, each drawn to 0, and so have interactions, Banzhaf values, standard errors and
    the Ising model from the same passes.
    """

    name, scores = KernelShap.name, KernelShap
    summary = METHOD_SUMMARIES[name]
    passes = "as many as asked for (200; explanations 512)"

    def explain(self, context: Context, texts: Texts, words: Words, target: Tensor | None) -> list[Explanation]:
        """From masked passes alone, whether there is a game or not."""
        if context.weighting != "uniform":
            raise ValueError(f"weighting {context.weighting!r} is for the methods of a game; masked passes count alike")
        return explain_by_masking(self.name, "shapley", context, texts, words, target, None)
