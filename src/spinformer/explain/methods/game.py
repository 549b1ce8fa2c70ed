"""Methods of the grounded game: values, fields and attention from one pass, refined by masked passes if asked."""

from dataclasses import replace

import torch
from torch import Tensor

from spinformer._base.choices import METHOD_SUMMARIES
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import Explained, GameNumbers, from_game
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import GroundedClassifier, attention_errors, attention_of
from spinformer.explain.masked_explanations import explain_by_masking
from spinformer.explain.methods.base import Method
from spinformer.explain.scoring import Scorer, decided
from spinformer.games.indices import Index

NO_GAME = "this classifier has no game yet: `spinformer ground MODEL TEXTS` learns one, without labels"


class GameScores:
    """score_i: the value of word i in the grounded game, for an index of players, or its field or attention.

    index: the name of the index ("SV", "BV" ...), or "field" or "attention". They are the numbers of an explanation.
    """

    passes = "1"

    def __init__(self, name: str, index: str, context: Context) -> None:
        assert context.grounded is not None  # `Method.missing` says so before
        self.name, self.index, self.context, self.grounded = name, index, context, context.grounded
        self.seed = context.seed

    def seeded(self, seed: int) -> "GameScores":
        """The same with other coalitions."""
        return GameScores(self.name, self.index, replace(self.context, seed=seed))

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        games = self.grounded.games(words, self.context.classifier)
        self.context.classifier.passes += len(words.words)
        if self.index not in ("field", "attention"):
            return self.grounded.values(games, self.index, self.seed, target).values
        temperature, weighting = self.context.temperature, self.context.weighting
        ising = self.grounded.attention(games, temperature, self.seed, weighting, target)
        return ising.fields if self.index == "field" else ising.attention


class GameMethod(Method):
    """A number of the grounded game as the words' score.

    index: as in `GameScores`; column: the field of `Word` that holds the score, None where the index has none.
    """

    passes = "1"
    sampled = True

    def __init__(self, name: str, summary: str, index: str, column: str | None) -> None:
        self.name, self.summary, self.index, self.column = name, summary, index, column

    def missing(self, context: Context) -> str | None:
        """What is missing without a game."""
        return None if context.grounded is not None else context.game_error or NO_GAME

    def scorer(self, context: Context) -> Scorer:
        """From one pass."""
        return GameScores(self.name, self.index, context)

    def explain(self, context: Context, texts: Texts, words: Words, target: Tensor | None) -> list[Explanation]:
        """All numbers of the game; with `passes` or `until`, corrected by masked passes."""
        assert context.grounded is not None
        if context.passes or context.until is not None:
            if context.weighting != "uniform":
                raise ValueError("passes and until go with weighting 'uniform': masked passes count alike")
            if self.column is None:
                raise ValueError(f"passes and until are for shapley, banzhaf, field and attention; got {self.name!r}")
            return explain_by_masking(self.name, self.column, context, texts, words, target, context.grounded)
        return self._from_one_pass(context, context.grounded, texts, words, target)

    @torch.inference_mode()
    def _from_one_pass(
        self, context: Context, grounded: GroundedClassifier, texts: Texts, words: Words, target: Tensor | None
    ) -> list[Explanation]:
        games = grounded.games(words, context.classifier)
        context.classifier.passes += len(texts)
        probabilities = games.answers
        classes = decided(probabilities, target)
        game = games.game(classes)
        values = grounded.all_values(games, context.seed, classes)
        misfit = grounded.misfit(games, values, classes)
        if misfit is not None:
            values = values.widen(misfit)
        if context.weighting == "uniform":
            ising = attention_of(game, values, context.temperature)
            numbers = GameNumbers(values, ising, attention_errors(values, ising, context.temperature), misfit)
        else:
            ising = grounded.attention(games, context.temperature, context.seed, context.weighting, classes)
            numbers = GameNumbers(values, ising, None, misfit)
        importance = self.column or grounded.values(games, self.index, context.seed, classes)
        notes = [grounded.notes(words, row) for row in range(len(texts))]
        passes = [1] * len(texts)
        batch = Explained(texts, words, context.answers, probabilities.cpu(), classes.cpu(), passes, notes)
        return from_game(self.name, batch, numbers, importance, ess=ising.ess)


def index_method(index: Index) -> GameMethod:
    """The explanation method that an index of players brings with it."""
    assert index.method is not None
    return GameMethod(index.method, f"{index.title}s of the grounded game", index.name, None)


GAME_METHODS = (
    GameMethod("shapley", METHOD_SUMMARIES["shapley"], "SV", "shapley"),
    GameMethod("banzhaf", METHOD_SUMMARIES["banzhaf"], "BV", "banzhaf"),
    GameMethod("field", METHOD_SUMMARIES["field"], "field", "field"),
    GameMethod("attention", METHOD_SUMMARIES["attention"], "attention", "attention"),
)
