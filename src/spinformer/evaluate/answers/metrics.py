"""How well logits agree with gold labels. N rows, C classes; everything is computed in float64.

p: softmax of a row's logits; its prediction: the class of the largest logit, the first of equals; its confidence: the p
of that class.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinformer._base import checks

Array = Tensor | np.ndarray[Any, Any] | Sequence[Any]

BINS = 15  # equal-width bins of the expected calibration error
Z = 1.959963984540054  # of a 95% interval: the normal distribution's 97.5% quantile


@dataclass(frozen=True)
class ClassScores:
    """precision = TP / predicted, recall = TP / support, F1 = 2 TP / (predicted + support); each 0 where 0 / 0.

    support: rows of this gold class; predicted: rows given it.
    """

    name: str
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


@dataclass(frozen=True)
class Bin:
    """Rows whose confidence lies in (low, high]: how many, their mean confidence, the share that is right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Scores:
    """The result of `scores`.

    interval: of the accuracy, 95%, Wilson; macro_f1: over the classes that occur in the gold labels; confusion: gold
    class by row, prediction by column; ece: over 15 equal-width bins; nll: mean of -log p of the gold class.
    """

    names: tuple[str, ...]
    count: int
    accuracy: float
    interval: tuple[float, float]
    macro_f1: float
    ece: float
    nll: float
    classes: tuple[ClassScores, ...]
    confusion: tuple[tuple[int, ...], ...]
    bins: tuple[Bin, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def scores(logits: Array, labels: Array, names: Sequence[str], predicted: Array | None = None) -> Scores:
    """All of `Scores`, of (N, C) logits and N labels, which are positions in the C `names`.

    predicted: the predictions, where they are not the class of the largest logit (see `ClassMapping.predicted`).
    """
    log_p = log_probabilities(logits)
    rows, width = log_p.shape
    checks.items("names", names, str)
    if width != len(names):
        raise ValueError(f"logits must have a column for each of the {len(names)} classes {tuple(names)}; got {width}")
    gold = _classes("labels", labels, rows, width)
    given = _float64(logits).argmax(1) if predicted is None else _classes("predicted", predicted, rows, width)
    confusion = confusion_matrix(gold, given, width)
    right = int(confusion.diagonal().sum())
    bins = reliability_bins(log_p.exp().gather(1, given[:, None]).squeeze(1), given == gold)
    return Scores(
        names=tuple(names),
        count=rows,
        accuracy=right / rows,
        interval=wilson(right, rows),
        macro_f1=macro_f1(confusion),
        ece=expected_calibration_error(bins),
        nll=negative_log_likelihood(logits, gold),
        classes=per_class(confusion, names),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        bins=bins,
    )


def log_probabilities(logits: Array) -> Tensor:
    """log p, (N, C), in float64."""
    wide = _float64(logits)
    if wide.dim() != 2 or not wide.shape[0] or wide.shape[1] < 2:
        raise ValueError(f"logits must have shape (N, C), N at least 1 and C at least 2; got {tuple(wide.shape)}")
    if not bool(torch.isfinite(wide).all()):
        raise ValueError(f"logits must be finite; {int((~torch.isfinite(wide)).sum())} are NaN or infinite")
    return wide.log_softmax(1)


def wilson(right: int, count: int, z: float = Z) -> tuple[float, float]:
    """(p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n), with p = right / n: Wilson's interval of a share."""
    if not 0 <= right <= count or count < 1:
        raise ValueError(f"expected 0 <= right <= count and a count of at least 1; got {right} of {count}")
    p, spread = right / count, z * z / count
    centre = (p + spread / 2) / (1 + spread)
    half = z * math.sqrt(p * (1 - p) / count + spread / (4 * count)) / (1 + spread)
    return (0.0 if right == 0 else centre - half), (1.0 if right == count else centre + half)


def confusion_matrix(labels: Array, predicted: Array, classes: int) -> Tensor:
    """M_ij: rows of gold class i that were given class j, (C, C)."""
    gold, given = torch.as_tensor(labels).long().cpu(), torch.as_tensor(predicted).long().cpu()
    return torch.bincount(gold * classes + given, minlength=classes * classes).reshape(classes, classes)


def per_class(confusion: Tensor, names: Sequence[str]) -> tuple[ClassScores, ...]:
    """Precision, recall, F1 and support of every class, whether it occurs or not."""
    rows = []
    for index, name in enumerate(names):
        hits, support = int(confusion[index, index]), int(confusion[index].sum())
        given = int(confusion[:, index].sum())
        precision, recall, f1 = hits / max(given, 1), hits / max(support, 1), 2 * hits / max(given + support, 1)
        rows.append(ClassScores(name, precision, recall, f1, support, given))
    return tuple(rows)


def macro_f1(confusion: Tensor) -> float:
    """Mean F1 over the classes that occur in the gold labels; a class that never does is left out of the mean."""
    values = [row.f1 for row in per_class(confusion, [""] * len(confusion)) if row.support]
    return sum(values) / len(values)


def reliability_bins(confidence: Array, right: Array, bins: int = BINS) -> tuple[Bin, ...]:
    """Bin k of `bins`: confidence in (k / bins, (k + 1) / bins]; the first also holds 0. Empty bins have 0 and 0."""
    shares, hits = _float64(confidence), _float64(right)
    edges = torch.arange(bins + 1, dtype=torch.float64) / bins
    bin_of = torch.bucketize(shares, edges[1:-1])
    counts = torch.bincount(bin_of, minlength=bins)
    means = [torch.bincount(bin_of, column, minlength=bins) / counts.clamp(min=1) for column in (shares, hits)]
    return tuple(
        Bin(low, high, count, mean, share)
        for low, high, count, mean, share in zip(
            edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), *(mean.tolist() for mean in means), strict=True
        )
    )


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """sum over bins of (rows in it / N) |share right - mean confidence|."""
    return sum(one.count * abs(one.accuracy - one.confidence) for one in bins) / sum(one.count for one in bins)


def negative_log_likelihood(logits: Array, labels: Array) -> float:
    """Mean over rows of -log p of the gold class, in nats."""
    log_p = log_probabilities(logits)
    gold = _classes("labels", labels, *log_p.shape)
    return -float(log_p.gather(1, gold[:, None]).mean())


def _float64(values: Array) -> Tensor:
    """As float64 on the CPU; a list of Python floats must not pass through float32."""
    try:
        tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"expected a table of numbers; got {values!r:.60} ({error})") from None
    if tensor.is_complex():
        raise TypeError(f"expected real numbers; got {tensor.dtype}")
    return tensor.detach().to("cpu", torch.float64)


def _classes(name: str, values: Array, rows: int, classes: int) -> Tensor:
    try:
        indices = torch.as_tensor(values).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be {rows} integers; got {values!r:.60}") from None
    if indices.is_floating_point() or indices.dtype == torch.bool or indices.shape != (rows,):
        raise ValueError(f"{name} must be {rows} integers; got {indices.dtype} of shape {tuple(indices.shape)}")
    indices = indices.long()
    if not 0 <= int(indices.min()) <= int(indices.max()) < classes:
        raise ValueError(f"{name} must be from 0 to {classes - 1}; got {int(indices.min())} to {int(indices.max())}")
    return indices
