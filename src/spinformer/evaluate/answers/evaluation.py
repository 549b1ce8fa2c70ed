"""A classifier scored on a data set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from spinformer.data.texts import Texts
from spinformer.evaluate.answers.class_mapping import class_names, map_classes
from spinformer.evaluate.answers.metrics import Scores, scores
from spinformer.models.predict import Predictions, PredictOptions, predict


@dataclass(frozen=True)
class GameDiagnostics:
    """How far to trust the numbers of a NeuroGame layer, over all texts and attention heads.

    ess_mean, ess_min: effective sample size; converged: share of mean fields within the tolerance; residual_mean,
    residual_max: of the mean-field map.
    """

    ess_mean: float
    ess_min: float
    converged: float
    residual_mean: float
    residual_max: float


@dataclass(frozen=True)
class Evaluation:
    """source: the data; count: rows scored; dropped: rows without a gold label, left out; truncated: rows cut to fit;
    rule: how classes were mapped, 'by name' or 'two-class'; game: None for a model without a NeuroGame layer.
    """

    source: str
    count: int
    dropped: int
    truncated: int
    rule: str
    scores: Scores
    game: GameDiagnostics | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("source", "count", "dropped", "truncated", "rule")}
        return {**plain, "scores": self.scores.to_dict(), "game": None if self.game is None else asdict(self.game)}


def evaluate(
    model: Any,
    tokenizer: Any,
    texts: Texts,
    *,
    names: Sequence[str] | None = None,
    **options: Unpack[PredictOptions],
) -> Evaluation:
    """Predict `texts` and score the predictions.

    names: the model's class names in the order of its logits (default: those of its configuration); options: those of
    `predict`.
    """
    mapping = map_classes(class_names(model, names), texts)
    predictions = predict(model, tokenizer, texts, **options)
    return Evaluation(
        source=texts.source,
        count=len(texts),
        dropped=texts.dropped,
        truncated=predictions.truncated,
        rule=mapping.rule,
        scores=scores(
            mapping.logits(predictions.logits),
            mapping.labels(texts.labels or ()),
            mapping.names,
            predicted=mapping.predicted(predictions.logits),
        ),
        game=_diagnostics(predictions),
    )


def _diagnostics(predictions: Predictions) -> GameDiagnostics | None:
    ess, residual, converged = predictions.ess, predictions.residual, predictions.converged
    if ess is None or residual is None or converged is None:
        return None
    return GameDiagnostics(
        ess_mean=float(ess.mean()),
        ess_min=float(ess.min()),
        converged=float(converged.float().mean()),
        residual_mean=float(residual.mean()),
        residual_max=float(residual.max()),
    )
