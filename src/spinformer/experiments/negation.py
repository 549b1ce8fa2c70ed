"""The sign of the interaction between a negation, or "very", and the word that it bears on.

The NeuroGame paper (section 7.4) claims that J_ij is strongly negative for "not good" and positive for "very good".
Here it is asked of a grounded game, in the game of the class that the classifier decides for, and of the classifier
itself by masking: the Banzhaf interaction of that one pair of words.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.texts import Texts
from spinformer.data.words import WORD, split
from spinformer.evaluate.correlation import correlation
from spinformer.evaluate.faithfulness import defined
from spinformer.explain.grounded import Grounded
from spinformer.games.estimate import weighted_mean
from spinformer.games.game import Game
from spinformer.games.proposals import SizeWeighted
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.progress import progress

NEGATIONS = re.compile(r"(?:not|no|never|nobody|nothing|none|without|neither|cannot|\w+n['’]t)", re.IGNORECASE)
BATCH = 32
# Beyond so many standard errors a sign is clear.
CLEAR = 1.96


@dataclass(frozen=True)
class Case:
    """A pair of texts and two words of it, each by its side and its place among the words of that side."""

    premise: str
    hypothesis: str
    first: tuple[int, int]
    second: tuple[int, int]


@dataclass(frozen=True)
class Found:
    """Interactions of cases, (N,), their standard errors, and the class decided for, by name."""

    values: Tensor
    stderr: Tensor
    labels: tuple[str, ...]

    def part(self, places: Sequence[int]) -> "Found":
        """Of the cases at these places alone."""
        chosen = torch.tensor(places)
        return Found(self.values[chosen], self.stderr[chosen], tuple(self.labels[place] for place in places))

    def to_dict(self, claim: int) -> dict[str, Any]:
        """Counts, exact sign test and mean; claim: the sign that the paper expects, 0 for none."""
        values, clear = self.values.tolist(), (self.values.abs() > CLEAR * self.stderr).tolist()
        negative, positive = sum(value < 0 for value in values), sum(value > 0 for value in values)
        labels = sorted(set(self.labels))
        by_label = {
            label: _signs([value for value, own in zip(values, self.labels, strict=True) if own == label])
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
    """P(as uneven or more | each sign has the chance 1/2), two-sided, exact; ties do not count."""
    count, fewer = negative + positive, min(negative, positive)
    tail: float = sum(math.comb(count, k) for k in range(fewer + 1)) / 2**count
    return min(1.0, 2 * tail)


def own_cases() -> dict[str, list[Case]]:
    """50 sentences with "not X" and their twins with "very X", each with a hypothesis that says the opposite of X."""
    found: dict[str, list[Case]] = {"not": [], "very": []}
    lines = files("spinformer.data").joinpath("negation.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        for word, column in (("not", "negated"), ("very", "intensified")):
            words = _words(row[column])
            found[word].append(
                Case(row[column], row["hypothesis"], (0, words.index(word)), (0, words.index(row["target"])))
            )
    return found


def monli_cases(texts: Texts) -> dict[str, list[Case]]:
    """Of MoNLI, whose texts differ in one word: negation and that word, on either side; and the two words that differ,
    in negated texts and in plain ones.
    """
    if texts.second is None:
        raise ValueError(f"{texts.source}: MoNLI has pairs; got single texts")
    found: dict[str, list[Case]] = {
        name: [] for name in ("monli_premise", "monli_hypothesis", "monli_swap_negated", "monli_swap_plain")
    }
    for premise, hypothesis in zip(texts.first, texts.second, strict=True):
        sides = _words(premise), _words(hypothesis)
        if len(sides[0]) != len(sides[1]):
            continue
        changed = [place for place, (one, other) in enumerate(zip(*sides, strict=True)) if one != other]
        negation = next((place for place, word in enumerate(sides[0]) if NEGATIONS.fullmatch(word)), None)
        if not changed or changed[-1] == negation:
            continue
        target = changed[-1]  # an article may have changed before it
        kind = "plain" if negation is None else "negated"
        found[f"monli_swap_{kind}"].append(Case(premise, hypothesis, (0, target), (1, target)))
        if negation is not None:
            for side, name in enumerate(("premise", "hypothesis")):
                found[f"monli_{name}"].append(Case(premise, hypothesis, (side, negation), (side, target)))
    return found


def pair_interactions(game: Game, first: Tensor, second: Tensor, budget: int, seed: int) -> tuple[Tensor, Tensor]:
    """mean over fair coins T of v(T + ij) - v(T + i) - v(T + j) + v(T), and its standard error, (B,) each

    for one pair i, j of each game, (B,) each; 4 `budget` values of the game.
    """
    checks.at_least("budget", budget, 2)
    source = SizeWeighted("BII", game.counts())
    coalitions = source.draw(game, budget, torch.tensor(seed), paired=True, shared=True)  # (B, K, n)
    member = torch.arange(game.players, device=game.device)
    i, j = (member == place[:, None].to(game.device) for place in (first, second))  # (B, n)
    rest = coalitions & ~(i | j)[:, None]
    asked = torch.cat([rest | (i | j)[:, None], rest | i[:, None], rest | j[:, None], rest], 1)
    both, one, other, none = game(asked).unflatten(1, (4, budget)).unbind(1)
    mean, stderr, _ = weighted_mean((both - one - other + none)[..., None].double(), None, 2)
    return mean[:, 0].cpu(), stderr[:, 0].cpu()


@torch.no_grad()
def measure(
    grounded: Grounded, tokenizer: Any, cases: Sequence[Case], *, real: bool, budget: int, seed: int = 0
) -> Found:
    """Interactions by the grounded game, or those of the classifier itself by 4 `budget` masked passes a case."""
    classifier = MaskedClassifier(grounded.model, tokenizer, grounded.masking)
    names = grounded.model.config.id2label
    parts: list[tuple[Tensor, Tensor]] = []
    labels: list[str] = []
    size = 1 if real else BATCH
    starts = range(0, len(cases), size)
    for start in progress(starts, "masked passes" if real else "games"):
        some = cases[start : start + size]
        words = split(tokenizer, Texts([case.premise for case in some], [case.hypothesis for case in some]), 128)
        places = [
            [words.sides[row].index(side) + place for side, place in (case.first, case.second)]
            for row, case in enumerate(some)
        ]
        first, second = torch.tensor(places).unbind(1)
        if real:
            target = classifier.full(words).argmax(-1).cpu()
            game: Game = ConfidenceGame(classifier, words, target)
        else:
            games = grounded.games(words)
            target, game = games.full.argmax(-1).cpu(), games.game()
        parts.append(pair_interactions(game, first, second, budget, seed))
        labels += [names[place] for place in target.tolist()]
    values, stderr = (torch.cat(part) for part in zip(*parts, strict=True))
    return Found(values, stderr, tuple(labels))


# The sign that the paper claims of each set; 0 where it says nothing.
CLAIMS = {"not": -1, "very": 1, "monli_premise": -1, "monli_hypothesis": -1}


def study(
    grounded: Grounded,
    tokenizer: Any,
    cases: Mapping[str, Sequence[Case]],
    *,
    real: int,
    samples: int,
    real_samples: int,
    seed: int = 0,
) -> dict[str, Any]:
    """Every set by the game, and `real` cases of it, evenly spread, by masking too."""
    found = {}
    for name, own in cases.items():
        if not own:
            continue
        claim = CLAIMS.get(name, 0)
        head = measure(grounded, tokenizer, own, real=False, budget=samples, seed=seed)
        places = [place * len(own) // min(real, len(own)) for place in range(min(real, len(own)))]
        some = [own[place] for place in places]
        masked = measure(grounded, tokenizer, some, real=True, budget=real_samples, seed=seed)
        found[name] = {
            "head": head.to_dict(claim),
            "real": masked.to_dict(claim),
            "agreement": agreement(head.part(places), masked),
        }
    return {"sets": found}


def agreement(head: Found, real: Found) -> dict[str, Any]:
    """Whether the game has the signs of the classifier, case by case, where those are clear, and the correlation."""
    clear = real.values.abs() > CLEAR * real.stderr
    same = head.values.sign() == real.values.sign()
    return {
        "texts": len(real.values),
        "same_sign": int(same.sum()),
        "clear": int(clear.sum()),
        "clear_same_sign": int((same & clear).sum()),
        "correlation": defined(correlation(head.values, real.values, "pearson")),
    }


def _signs(values: Sequence[float]) -> dict[str, int]:
    return {"negative": sum(value < 0 for value in values), "positive": sum(value > 0 for value in values)}


def _words(text: str) -> list[str]:
    return WORD.findall(text)
