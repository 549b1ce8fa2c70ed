"""A classifier scored on a data set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from spinformer.data.texts import Texts
from spinformer.evaluate.mapping import class_names, map_classes
from spinformer.evaluate.metrics import Scores, scores
from spinformer.models.predict import Predictions, predict


@dataclass(frozen=True)
class Game:
    """How far to trust a game's numbers, over all texts and heads.

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
    rule: how classes were mapped, 'by name' or 'two-class'; game: None for a model that plays none.
    """

    source: str
    count: int
    dropped: int
    truncated: int
    rule: str
    scores: Scores
    game: Game | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {name: getattr(self, name) for name in ("source", "count", "dropped", "truncated", "rule")}
        return {**own, "scores": self.scores.to_dict(), "game": None if self.game is None else asdict(self.game)}


def evaluate(
    model: Any,
    tokenizer: Any,
    texts: Texts,
    *,
    names: Sequence[str] | None = None,
    batch_size: int = 64,
    max_length: int = 128,
    device: torch.device | str | None = None,
    bf16: bool = False,
    progress: bool = True,
) -> Evaluation:
    """Predict `texts` and score the predictions.

    names: the model's class names in the order of its logits (default: those of its configuration); the rest: see
    `predict`.
    """
    mapping = map_classes(class_names(model, names), texts)
    found = predict(
        model,
        tokenizer,
        texts,
        batch_size=batch_size,
        max_length=max_length,
        device=device,
        bf16=bf16,
        progress=progress,
    )
    return Evaluation(
        source=texts.source,
        count=len(texts),
        dropped=texts.dropped,
        truncated=found.truncated,
        rule=mapping.rule,
        scores=scores(
            mapping.logits(found.logits),
            mapping.labels(texts.labels or ()),
            mapping.names,
            predicted=mapping.predicted(found.logits),
        ),
        game=_game(found),
    )


def _game(found: Predictions) -> Game | None:
    if found.ess is None or found.residual is None or found.converged is None:
        return None
    return Game(
        ess_mean=float(found.ess.mean()),
        ess_min=float(found.ess.min()),
        converged=float(found.converged.float().mean()),
        residual_mean=float(found.residual.mean()),
        residual_max=float(found.residual.max()),
    )
