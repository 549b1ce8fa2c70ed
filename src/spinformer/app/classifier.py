"""The classifier that the page explains: found, loaded once, asked many times."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinformer.app import limits
from spinformer.explain import Explanation, explain
from spinformer.explain.grounded import TEMPERATURE
from spinformer.models.load import load_classifier

VARIABLE, FOLDER = "SPINFORMER_MODEL", "checkpoints"
SAMPLES = 64
# Coalitions for the pairs' values; each costs as many evaluations as there are pairs.
PAIR_SAMPLES = 16


def default_model() -> str:
    """What SPINFORMER_MODEL names, or the only model in `checkpoints/`, here or at the root of the repository."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        found = sorted(path.parent for path in (root / FOLDER).glob("*/config.json"))
        if len(found) == 1:
            return str(found[0])
        if found:
            names = ", ".join(path.name for path in found)
            raise ValueError(f"{FOLDER}/ holds several models ({names}); choose one with --model")
    raise FileNotFoundError(
        f"no model given and none in {FOLDER}/; name the folder of a classifier that has a game with --model"
    )


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
            temperature=limits.number("The temperature", temperature, *limits.TEMPERATURES),
            samples=limits.whole("The number of samples", samples, *limits.SAMPLES),
            pair_samples=PAIR_SAMPLES,
        )
        return found
