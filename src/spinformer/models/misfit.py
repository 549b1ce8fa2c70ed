"""How far a game is from the classifier that it predicts: a scale for every value, measured on held-out texts."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.files import atomic_write
from spinformer.games.values import GAME_INDICES, GameValues
from spinformer.models.difficulty import Difficulty
from spinformer.models.predicted_games import PredictedGames

FILE = "misfit.json"
# Added to numbers before their logarithm, so that values near 0 are alike.
EPSILON = 0.003
WORD_FEATURES = ("constant", "activity", "text", "words", "doubt", "difficulty")
PAIR_FEATURES = ("constant", "value", "activity", "text", "words", "doubt", "difficulty")
# Masked passes after which the factors `refined` are measured.
REFINED = (32, 64)
# Below this share of the variance of v(C) a game should not be relied upon.
MIN_FIT = 0.5


@dataclass(frozen=True)
class ErrorScale:
    """s = factor exp(sum over k of b_k x_k),   so that value -+ 1.96 s holds the classifier's own value in 95% of cases

    coefficients: b; factor: of one pass; refined: of the standard errors that REFINED masked passes leave. The features
    x of a word: 1, log of its activity (`GameValues.activity`), log of the text's root mean square activity, log of the
    number of words, log of 1 - p, the text's `Difficulty`. Of a pair: also log |interaction|, and the activity is that
    of both.
    """

    coefficients: tuple[float, ...]
    factor: float = 1.0
    refined: tuple[float, float] = (1.0, 1.0)

    def left_by(self, passes: int) -> float:
        """What the standard errors that so many passes leave are multiplied with.

        Between the numbers of REFINED, on a line in log passes; beyond them a Gaussian process knows itself better and
        better: 1 + (refined - 1) sqrt(64 / passes).
        """
        (few, more), (first, last) = REFINED, self.refined
        if passes >= more:
            return 1 + (last - 1) * math.sqrt(more / passes)
        share = max(0.0, math.log(passes / few) / math.log(more / few)) if passes > 0 else 0.0
        return first + (last - first) * share

    def __call__(self, features: Tensor) -> Tensor:
        """s of values with these features, (..., k) -> (...)."""
        weights = torch.tensor(self.coefficients, dtype=torch.float64, device=features.device)
        return self.factor * (features @ weights).exp()


@dataclass(frozen=True)
class Misfit:
    """scales: for each of GAME_INDICES; fit: the share of the variance of v(C) that the game explains on held-out
    texts; texts, passes: on how many, with how many masked passes each; words: in the longest of them; difficulty: of
    a text, None where it is the same for all, as for games of earlier versions.
    """

    scales: dict[str, ErrorScale]
    fit: float
    texts: int
    passes: int
    words: int
    difficulty: Difficulty | None = None

    def stderr(self, index: str, values: GameValues, games: PredictedGames, target: Tensor) -> Tensor:
        """The standard errors of one index that are due to misfit, (B, n) or (B, n, n); target: as of `games.game`.

        Those of pairs of which nothing is told are 0.
        """
        scale, estimate, mask = self.scales[index], values.by_index[index], games.mask
        common = TextFacts(games.confidence(target), self._difficulty(games))
        if estimate.values.dim() == 2:
            return scale(features(index, values, common, mask)) * mask
        pairs = mask[:, None] & mask[:, :, None] & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        places = (pairs & (estimate.ess > 0)).nonzero(as_tuple=True)
        found = scale(pair_features(index, values, common, mask, places))
        return torch.zeros(pairs.shape, dtype=found.dtype, device=mask.device).index_put(places, found)

    def _difficulty(self, games: PredictedGames) -> Tensor:
        """Of each text, (B,); that of all texts alike where nothing is known of it."""
        if self.difficulty is None or games.vectors is None:
            return torch.zeros(len(games.mask), device=games.mask.device)
        return self.difficulty(games.vectors)

    def notes(self, words: int) -> tuple[str, ...]:
        """What a reader of an explanation of so many words must know."""
        lines = []
        if self.fit < MIN_FIT:
            lines.append(
                f"the game explains only {max(self.fit, 0):.0%} of what this classifier does on held-out texts: take "
                "these numbers as a guess, or spend passes"
            )
        if words > 2 * self.words:
            lines.append(
                f"this text has {words} words, the longest that the game's errors were measured on has {self.words}: "
                "standard errors may be too small"
            )
        return tuple(lines)

    def save(self, folder: Path) -> None:
        """As JSON, beside the weights of the game head."""
        with atomic_write(folder / FILE) as partial:
            partial.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Misfit | None":
        """What `save` wrote; None where there is none, as beside games of earlier versions."""
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            stored = json.loads(path.read_text())
            scales = {name: _scale(name, part) for name, part in stored.pop("scales").items()}
            hard = stored.pop("difficulty", None)
            difficulty = None if hard is None else Difficulty.from_dict(hard)
            if set(scales) != set(GAME_INDICES):
                raise ValueError(f"scales must be of {', '.join(GAME_INDICES)}; got {', '.join(scales)}")
            misfit = cls(scales=scales, difficulty=difficulty, **stored)
            numbers = (misfit.fit, misfit.texts, misfit.passes, misfit.words)
            if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
                raise ValueError("fit, texts, passes and words must be finite numbers")
            return misfit
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path}: the measured misfit is damaged ({error})") from error


def _scale(name: str, stored: dict[str, object]) -> ErrorScale:
    coefficients, factor, refined = (stored[key] for key in ("coefficients", "factor", "refined"))
    count = len(WORD_FEATURES) if name in ("SV", "BV") else len(PAIR_FEATURES)
    after = refined if isinstance(refined, list) else [refined, refined]  # one factor for all, in earlier versions
    if isinstance(coefficients, list) and len(coefficients) == count - 1:
        coefficients = [*coefficients, 0.0]  # earlier versions knew no difficulty
    numbers = [*coefficients, factor, *after] if isinstance(coefficients, list) else []
    if len(numbers) != count + 3 or not all(isinstance(x, int | float) and math.isfinite(x) for x in numbers):
        raise ValueError(f"{name} must have {count} coefficients, a factor and two more, all finite")
    weights, (one_pass, *later) = numbers[:count], numbers[count:]
    return ErrorScale(tuple(map(float, weights)), float(one_pass), (float(later[0]), float(later[1])))


class TextFacts(NamedTuple):
    """What is known of B texts beside their values: p_y(N), and their difficulty, (B,) each."""

    confidence: Tensor
    difficulty: Tensor


def features(index: str, values: GameValues, texts: TextFacts, mask: Tensor) -> Tensor:
    """x of `ErrorScale`, (B, n, k) for an index of words, (B, n, n, k) for one of pairs; float64."""
    if index not in ("SV", "BV"):
        batch, count = mask.shape
        every = torch.ones(batch, count, count, dtype=torch.bool, device=mask.device).nonzero(as_tuple=True)
        return pair_features(index, values, texts, mask, every).view(batch, count, count, -1)
    active, common = _of_texts(values, texts, mask)
    wide = common[:, None].expand(-1, mask.shape[1], -1)
    return torch.cat([torch.stack([torch.ones_like(active), (active + EPSILON).log()], -1), wide], -1)


def pair_features(index: str, values: GameValues, texts: TextFacts, mask: Tensor, places: tuple[Tensor, ...]) -> Tensor:
    """x of the pairs at these places of (B, n, n), (N, k)."""
    active, common = _of_texts(values, texts, mask)
    row, first, second = places
    value = values.by_index[index].values[places].double().abs()
    both = (active[row, first] * active[row, second]).sqrt()
    columns = [torch.ones_like(value), (value + EPSILON).log(), (both + EPSILON).log()]
    return torch.cat([torch.stack(columns, -1), common[row]], -1)


def _of_texts(values: GameValues, texts: TextFacts, mask: Tensor) -> tuple[Tensor, Tensor]:
    """What words do, (B, n), and what is known of whole texts, (B, 4)."""
    active = values.activity.double()
    count = mask.sum(-1).double()
    text = ((active.square() * mask).sum(-1) / count).sqrt()
    confidence, difficulty = (part.double().to(active.device) for part in texts)
    doubt = (1 - confidence).clamp_min(0) + 0.01
    return active, torch.stack([(text + EPSILON).log(), count.log(), doubt.log(), difficulty], -1)
