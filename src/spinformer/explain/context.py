"""What explanation methods work with: the classifier, its game, and the options of one call."""

from dataclasses import dataclass
from typing import NamedTuple

from spinformer._base.outputs import Outputs
from spinformer.explain.grounded import TEMPERATURE, GroundedClassifier
from spinformer.explain.scoring import Scorer
from spinformer.games.indices import Weighting
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import output_names


class Answers(NamedTuple):
    """names: of the outputs, in the order of the logits; outputs: what they mean."""

    names: tuple[str, ...]
    outputs: Outputs


@dataclass(frozen=True)
class Context:
    """classifier: answers for masked texts, and counts its passes; grounded: the classifier with its game, None without
    one; additive: the scorer of a trained additive explainer, None where there is none; passes: masked passes for
    each text, 0 for the method's own number; until: the largest error of any word that is allowed, None to spend
    `passes`; seconds: the time that `until` may take for a batch of texts; temperature, weighting: of the Ising model;
    seed: of the coalitions; game_error: why the game in the model's folder cannot be used, None where it can or there
    is none.
    """

    classifier: MaskedClassifier
    grounded: GroundedClassifier | None = None
    additive: Scorer | None = None
    passes: int = 0
    until: float | None = None
    temperature: float = TEMPERATURE
    weighting: Weighting = "uniform"
    seed: int = 0
    game_error: str | None = None
    seconds: float | None = None

    @property
    def labels(self) -> list[str]:
        """The names of the outputs, in the order of the logits."""
        return output_names(self.classifier.model)

    @property
    def answers(self) -> Answers:
        """What the classifier's outputs are called, and what they mean."""
        return Answers(tuple(self.labels), self.classifier.outputs)
