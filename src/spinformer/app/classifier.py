"""The classifier that the page explains: loaded once, asked many times."""

from dataclasses import dataclass
from typing import Any

from spinformer.app import limits
from spinformer.explain import Explanation, explain
from spinformer.explain.grounded import TEMPERATURE
from spinformer.models.load import load_classifier

SAMPLES = 64
# Coalitions for the pairs' values; each costs as many evaluations as there are pairs.
PAIR_SAMPLES = 16


@dataclass(frozen=True)
class Classifier:
    """A model with its tokenizer and its game."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, source: str, device: str = "cpu") -> "Classifier":
        """From a folder, or a name on the hub."""
        return cls(*load_classifier(source, device=device))

    def explain(
        self, premise: object, hypothesis: object, temperature: object = TEMPERATURE, samples: object = SAMPLES
    ) -> Explanation:
        """Of a pair, within the page's limits; what lies outside of them is a ValueError for the visitor."""
        first, second = limits.check_texts(premise, hypothesis)
        found: Explanation = explain(
            self.model,
            self.tokenizer,
            first,
            second,
            method="grounded",
            temperature=limits.number("The temperature", temperature, *limits.TEMPERATURES),
            samples=limits.whole("The number of samples", samples, *limits.SAMPLES),
            pair_samples=PAIR_SAMPLES,
        )
        return found
