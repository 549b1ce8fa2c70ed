"""The sign of the interaction between a negation, or "very", and the word that it modifies.

The NeuroGame paper (section 7.4) claims that J_ij is strongly negative for "not good" and positive for "very good".
Measured here is the Banzhaf interaction of that one pair of words towards the class that the classifier decides for:
in a grounded game, and in the classifier itself by masking.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor

from research.data import NEGATION
from spinformer._base import checks
from spinformer._base.progress import progress
from spinformer.data.texts import Texts
from spinformer.data.word_pattern import WORD
from spinformer.data.words import Words, split_words
from spinformer.evaluate.explanations.correlation import correlation
from spinformer.evaluate.explanations.metric import finite_or_none
from spinformer.explain.grounded import GroundedClassifier
from spinformer.games.estimate import weighted_mean
from spinformer.games.game import Game
from spinformer.games.proposals import SizeWeighted
from spinformer.models.masked import ConfidenceGame, MaskedClassifier

NEGATIONS = re.compile(r"(?:not|no|never|nobody|nothing|none|without|neither|cannot|\w+n['’]t)", re.IGNORECASE)
BATCH = 32
CLEAR = 1.96  # standard errors beyond which a sign is clear


@dataclass(frozen=True)
class Case:
    """A pair of texts and two of its words, each given by its side and its position among the words of that side."""

    premise: str
    hypothesis: str
    first: tuple[int, int]
    second: tuple[int, int]


@dataclass(frozen=True)
class Interactions:
    """Interactions of cases, (N,), their standard errors, (N,), and the names of the classes decided for."""

    values: Tensor
    stderr: Tensor
    labels: tuple[str, ...]

    def select(self, indices: Sequence[int]) -> "Interactions":
        """Those of the cases at these indices."""
        rows = torch.tensor(indices)
        return Interactions(self.values[rows], self.stderr[rows], tuple(self.labels[index] for index in indices))

    def to_dict(self, claim: int) -> dict[str, Any]:
        """Counts of signs, exact sign test and mean. claim: the sign that the paper expects, 0 for none."""
        values, clear = self.values.tolist(), (self.values.abs() > CLEAR * self.stderr).tolist()
        negative, positive = sum(value < 0 for value in values), sum(value > 0 for value in values)
        labels = sorted(set(self.labels))
        by_label = {
            label: _signs([value for value, decided in zip(values, self.labels, strict=True) if decided == label])
            for label in labels
        }
        return {
            "texts": len(values),
            "claim": claim,
            "negative": negative,
            "positive": positive,
            "clear_negative": sum(value < 0 and sure for value, sure in zip(values, clear, strict=True)),
            "clear_positive": sum(value > 0 and sure for value, sure in zip(values, clear, strict=True)),
            "p": sign_test(negative, positive),
            "mean": fmean(values),
            "stderr": stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None,
            "by_label": by_label,
        }


def sign_test(negative: int, positive: int) -> float:
    """P(counts as uneven as these, or more), if both signs have probability 1/2; two-sided, exact, without ties."""
    count, fewer = negative + positive, min(negative, positive)
    tail: float = sum(math.comb(count, k) for k in range(fewer + 1)) / 2**count
    return min(1.0, 2 * tail)


def negation_cases() -> dict[str, list[Case]]:
    """50 sentences with "not X" and their twins with "very X", each with a hypothesis that says the opposite of X."""
    cases: dict[str, list[Case]] = {"not": [], "very": []}
    for row in map(json.loads, NEGATION.read_text(encoding="utf-8").splitlines()):
        for word, column in (("not", "negated"), ("very", "intensified")):
            words = _words(row[column])
            cases[word].append(
                Case(row[column], row["hypothesis"], (0, words.index(word)), (0, words.index(row["target"])))
            )
    return cases


def monli_cases(texts: Texts) -> dict[str, list[Case]]:
    """Cases of MoNLI, whose premise and hypothesis differ in one word.

    The negation and that word, on either side; and the two words that differ, in texts with and without negation.
    """
    if texts.second is None:
        raise ValueError(f"{texts.source}: MoNLI has pairs; got single texts")
    cases: dict[str, list[Case]] = {
        name: [] for name in ("monli_premise", "monli_hypothesis", "monli_swap_negated", "monli_swap_plain")
    }
    for premise, hypothesis in zip(texts.first, texts.second, strict=True):
        sides = _words(premise), _words(hypothesis)
        if len(sides[0]) != len(sides[1]):
            continue
        changed = [index for index, (one, other) in enumerate(zip(*sides, strict=True)) if one != other]
        negation = next((index for index, word in enumerate(sides[0]) if NEGATIONS.fullmatch(word)), None)
        if not changed or changed[-1] == negation:
            continue
        target = changed[-1]  # an article may have changed before it
        kind = "plain" if negation is None else "negated"
        cases[f"monli_swap_{kind}"].append(Case(premise, hypothesis, (0, target), (1, target)))
        if negation is not None:
            for side, name in enumerate(("premise", "hypothesis")):
                cases[f"monli_{name}"].append(Case(premise, hypothesis, (side, negation), (side, target)))
    return cases


def case_texts(cases: Sequence[Case]) -> Texts:
    """The pairs of texts of cases."""
    return Texts([case.premise for case in cases], [case.hypothesis for case in cases])


def word_indices(words: Words, cases: Sequence[Case]) -> Tensor:
    """The two words of each case among all words of its pair of texts, (B, 2)."""
    return torch.tensor(
        [
            [words.sides[row].index(side) + position for side, position in (case.first, case.second)]
            for row, case in enumerate(cases)
        ]
    )


def pair_interactions(game: Game, first: Tensor, second: Tensor, budget: int, seed: int) -> tuple[Tensor, Tensor]:
    """mean over T of v(T + ij) - v(T + i) - v(T + j) + v(T), and its standard error, (B,) each

    T: `budget` coalitions of the other players, each a member with probability 1/2; i, j: `first` and `second`, (B,)
    each, one pair of each game. The game is evaluated on 4 `budget` coalitions. (NGT Eqs. 8, 9 with equal weights.)
    """
    checks.at_least("budget", budget, 2)
    source = SizeWeighted("BII", game.counts())
    coalitions = source.draw(game, budget, torch.tensor(seed), paired=True, shared=True)  # (B, K, n)
    member = torch.arange(game.players, device=game.device)
    i, j = (member == index[:, None].to(game.device) for index in (first, second))  # (B, n)
    rest = coalitions & ~(i | j)[:, None]
    stacked = torch.cat([rest | (i | j)[:, None], rest | i[:, None], rest | j[:, None], rest], 1)  # (B, 4 K, n)
    both, one, other, none = game(stacked).unflatten(1, (4, budget)).unbind(1)
    mean, stderr, _ = weighted_mean((both - one - other + none)[..., None].double(), None, 2)
    return mean[:, 0].cpu(), stderr[:, 0].cpu()


@torch.no_grad()
def measure(
    grounded: GroundedClassifier, tokenizer: Any, cases: Sequence[Case], *, real: bool, budget: int, seed: int = 0
) -> Interactions:
    """Interactions in the grounded game or, if `real`, in the classifier itself, by 4 `budget` masked passes a case."""
    classifier = MaskedClassifier(grounded.model, tokenizer, grounded.masking)
    names = grounded.model.config.id2label
    parts: list[tuple[Tensor, Tensor]] = []
    labels: list[str] = []
    size = 1 if real else BATCH
    starts = range(0, len(cases), size)
    for start in progress(starts, "masked passes" if real else "games"):
        batch = cases[start : start + size]
        words = split_words(tokenizer, case_texts(batch), 128)
        first, second = word_indices(words, batch).unbind(1)
        if real:
            target = classifier.full_probabilities(words).argmax(-1).cpu()
            game: Game = ConfidenceGame(classifier, words, target)
        else:
            games = grounded.games(words)
            target, game = games.full.argmax(-1).cpu(), games.game()
        parts.append(pair_interactions(game, first, second, budget, seed))
        labels += [names[index] for index in target.tolist()]
    values, stderr = (torch.cat(part) for part in zip(*parts, strict=True))
    return Interactions(values, stderr, tuple(labels))


# The sign that the paper claims for each set; sets without a claim are left out.
CLAIMS = {"not": -1, "very": 1, "monli_premise": -1, "monli_hypothesis": -1}


def study(
    grounded: GroundedClassifier,
    tokenizer: Any,
    cases: Mapping[str, Sequence[Case]],
    *,
    real: int,
    samples: int,
    real_samples: int,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure every set in the game and `real` cases of it, evenly spread, also by masking."""
    sets = {}
    for name, group in cases.items():
        if not group:
            continue
        claim = CLAIMS.get(name, 0)
        predicted = measure(grounded, tokenizer, group, real=False, budget=samples, seed=seed)
        count = min(real, len(group))
        indices = [number * len(group) // count for number in range(count)]
        masked = measure(
            grounded, tokenizer, [group[index] for index in indices], real=True, budget=real_samples, seed=seed
        )
        sets[name] = {
            "head": predicted.to_dict(claim),
            "real": masked.to_dict(claim),
            "agreement": agreement(predicted.select(indices), masked),
        }
    return {"sets": sets}


def agreement(predicted: Interactions, real: Interactions) -> dict[str, Any]:
    """How often the game has the sign of the classifier, on all cases and on those with a clear sign; correlation."""
    clear = real.values.abs() > CLEAR * real.stderr
    same = predicted.values.sign() == real.values.sign()
    return {
        "texts": len(real.values),
        "same_sign": int(same.sum()),
        "clear": int(clear.sum()),
        "clear_same_sign": int((same & clear).sum()),
        "correlation": finite_or_none(correlation(predicted.values, real.values, "pearson")),
    }


def _signs(values: Sequence[float]) -> dict[str, int]:
    return {"negative": sum(value < 0 for value in values), "positive": sum(value > 0 for value in values)}


def _words(text: str) -> list[str]:
    return WORD.findall(text)
