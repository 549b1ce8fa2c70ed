"""Explanations from masked passes of the classifier, with or without a game to start from."""

from torch import Tensor

from spinformer._base.progress import progress
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import Explained, GameNumbers, from_game, one_by_one
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import GroundedClassifier, attention_errors, attention_of
from spinformer.explain.masked import DELAY
from spinformer.explain.refine import refined_values
from spinformer.explain.scoring import decided
from spinformer.models.masked import ConfidenceGame

# The estimates whose standard errors `until` bounds, by the field of `Word` that is the score.
ESTIMATES = {
    "shapley": ("shapley",),
    "banzhaf": ("banzhaf",),
    "field": ("shapley", "banzhaf"),
    "attention": ("shapley", "banzhaf"),
}


def explain_by_masking(
    name: str,
    column: str,
    context: Context,
    texts: Texts,
    words: Words,
    target: Tensor | None,
    grounded: GroundedClassifier | None,
) -> list[Explanation]:
    """Explanations from masked passes, text by text; where there is a game, only what it misses is estimated.

    column: the field of `Word` that is the method's score.
    """
    classifier = context.classifier
    explanations = []
    for text, one, wanted in progress(one_by_one(texts, words, target), "texts", len(texts), delay=DELAY):
        before = classifier.passes
        games = None if grounded is None else grounded.games(one)
        classifier.passes += games is not None  # the pass that the game is read from
        probabilities = (classifier.full_probabilities(one) if games is None else games.full.exp()).cpu()
        classes = decided(probabilities, wanted)
        predicted = None if games is None else games.game(classes)
        real = ConfidenceGame(classifier, one, classes)
        full_value = float(probabilities[0, int(classes)])
        values, game = refined_values(
            real, predicted, one, full_value, context.passes, context.until, context.seed, ESTIMATES[column]
        )
        ising = attention_of(game, values, context.temperature)
        numbers = GameNumbers(values, ising, attention_errors(values, ising, context.temperature))
        batch = Explained(text, one, context.labels, probabilities, classes, classifier.passes - before)
        explanations += from_game(name, batch, numbers, column, samples=values.shapley.budget)
    return explanations
