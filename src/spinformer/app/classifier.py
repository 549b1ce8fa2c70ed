"""The classifier that the page explains: loaded once, used for every request."""

from dataclasses import dataclass

from spinformer.app import limits
from spinformer.explain.explainer import Explainer
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import TEMPERATURE
from spinformer.explain.methods.game import NO_GAME

SAMPLES = 512


@dataclass(frozen=True)
class Classifier:
    """An explainer of a classifier that has a game."""

    explainer: Explainer

    def __post_init__(self) -> None:
        if self.explainer.grounded is None:
            raise ValueError(NO_GAME)

    @classmethod
    def load(cls, path_or_hub_id: str, device: str = "cpu") -> "Classifier":
        """From a folder, or a name on the hub."""
        return cls(Explainer.from_pretrained(path_or_hub_id, device))

    def explain(
        self, text: object, text_pair: object, temperature: object = TEMPERATURE, samples: object = SAMPLES
    ) -> Explanation:
        """Of a pair, within the page's limits; what lies outside of them is a ValueError for the visitor."""
        assert self.explainer.grounded is not None
        first, second = limits.check_texts(text, text_pair)
        explainer = Explainer(
            self.explainer.model,
            self.explainer.tokenizer,
            game=self.explainer.grounded.head,
            temperature=limits.number("The temperature", temperature, *limits.TEMPERATURES),
            samples=limits.integer("The number of samples", samples, *limits.SAMPLES),
        )
        return explainer(first, second)
