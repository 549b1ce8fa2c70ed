"""Explanations from masked passes of the classifier, with or without a game to start from."""

import torch
from torch import Tensor

from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import Explained, GameNumbers, from_game
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import GroundedClassifier, attention_errors, attention_of
from spinformer.explain.refine import refine
from spinformer.explain.scoring import decided
from spinformer.models.masked import ConfidenceGame

# The indices whose errors `until` bounds, by the field of `Word` that is the score.
BOUNDED = {"shapley": ("SV",), "banzhaf": ("BV",), "field": ("SV", "BV"), "attention": ("SV", "BV")}


@torch.no_grad()
def explain_by_masking(
    name: str,
    column: str,
    context: Context,
    texts: Texts,
    words: Words,
    target: Tensor | None,
    grounded: GroundedClassifier | None,
) -> list[Explanation]:
    """Explanations from masked passes; where there is a game, only what it misses is estimated (`refine`).

    column: the field of `Word` that is the method's score.
    """
    classifier = context.classifier
    games = None if grounded is None else grounded.games(words)
    classifier.passes += 0 if games is None else len(texts)  # the pass that the game is read from
    probabilities = (classifier.full_probabilities(words) if games is None else games.answers).cpu()
    classes = decided(probabilities, target).cpu()
    refined = refine(
        classifier,
        words,
        probabilities,
        classes,
        games,
        None if grounded is None else grounded.head,
        passes=context.passes,
        until=context.until,
        seconds=context.seconds,
        seed=context.seed,
        indices=BOUNDED[column],
    )
    values = refined.values
    game = ConfidenceGame(classifier, words.to("cpu"), classes)  # says who plays; it is not asked
    ising = attention_of(game, values, context.temperature)
    errors = attention_errors(values, ising, context.temperature)
    spent = [1 + passes for passes in refined.passes]
    exact = [bool(errors.max() == 0) for errors in values.shapley.stderr]
    notes: list[tuple[str, ...]] = [
        () if grounded is None or grounded.head.misfit is None or known else grounded.notes(words, row)
        for row, known in enumerate(exact)
    ]
    batch = Explained(texts, words, context.answers, probabilities, classes, spent, notes)
    numbers = GameNumbers(values, ising, errors, refined.misfit)
    return from_game(name, batch, numbers, column)
