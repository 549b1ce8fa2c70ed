"""`explain`: which words and which pairs of words decided, for any Hugging Face classifier."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch

from spinformer import checks
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.explain.assembling import assemble
from spinformer.explain.explanation import Explanation
from spinformer.explain.grounded import TEMPERATURE, Grounded, play_survey, played_errors
from spinformer.explain.masking import BUDGET, explain_masked
from spinformer.games import Weighting, survey
from spinformer.models.masked import MaskedClassifier

Method = Literal["auto", "grounded", "masked"]
# Coalitions for the values of words and of pairs: as many as leave an explanation at about one and a half predictions.
SAMPLES, PAIR_SAMPLES = 16, 4


def explain(
    model: Any,
    tokenizer: Any,
    premise: str | Sequence[str],
    hypothesis: str | Sequence[str] | None = None,
    *,
    method: Method = "auto",
    grounded: Grounded | None = None,
    budget: int = BUDGET,
    samples: int = SAMPLES,
    pair_samples: int = PAIR_SAMPLES,
    temperature: float = TEMPERATURE,
    weighting: Weighting = "uniform",
    max_length: int = 128,
    seed: int = 0,
) -> Any:
    """An `Explanation` of one text or pair, or a list of them for lists.

    method "grounded": from one forward pass of each text, through the classifier's game, learnt beforehand: `spinformer
    ground` leaves it in the model's folder, where it is found; models with head "grounded" are games themselves; or
    `grounded` is given. "masked": for any classifier, by at most `budget` passes over parts of each text (see
    `explain.masking`). "auto": the first where there is a game.

    samples, pair_samples: coalitions for the values of words and of pairs in a game; temperature: gamma of the Ising
    model; weighting: of its fields and couplings in a game, "uniform", from the same coalitions, or "gibbs", drawn anew
    (the paper's target; slower).
    """
    checks.choice("method", method, get_args(Method))
    checks.at_least("samples", samples, 4)  # fewer give no standard error
    checks.at_least("pair_samples", pair_samples, 4)
    checks.choice("weighting", weighting, get_args(Weighting))
    single = isinstance(premise, str)
    first = [premise] if isinstance(premise, str) else list(premise)
    second = None if hypothesis is None else [hypothesis] if isinstance(hypothesis, str) else list(hypothesis)
    for name, column in (("premise", first), ("hypothesis", second or [])):
        for row, text in enumerate(column):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"{name} {row} must be a text that is not empty; got {text!r}")
    texts = Texts(first, second)
    player = grounded if grounded is not None or method == "masked" else Grounded.find(model)
    if method == "grounded" and player is None:
        raise ValueError(
            "this classifier has no game yet: `spinformer ground MODEL TEXTS` learns one, without labels, in its folder"
        )
    if player is None or method == "masked":
        if weighting != "uniform":
            raise ValueError("weighting 'gibbs' is for a game; masked passes are few and count alike")
        found = explain_masked(
            MaskedClassifier(model, tokenizer),
            texts,
            budget=budget,
            temperature=temperature,
            max_length=max_length,
            seed=seed,
        )
    else:
        words = split(tokenizer, texts, max_length)
        found = _explanations(player, words, texts, samples, pair_samples, temperature, weighting, seed)
    return found[0] if single else found


@torch.inference_mode()
def _explanations(
    grounded: Grounded,
    words: Words,
    texts: Texts,
    samples: int,
    pair_samples: int,
    temperature: float,
    weighting: Weighting,
    seed: int,
) -> list[Explanation]:
    games = grounded.games(words)
    game = games.game()
    found = survey(game, samples, min(samples, pair_samples), seed=torch.tensor(seed))
    if weighting == "uniform":
        played = play_survey(game, found, temperature)
        errors = played_errors(found, played, temperature)
    else:
        errors = None
        played = replace(grounded, samples=samples).play(games, temperature, seed, weighting)
    names = [grounded.model.config.id2label[place] for place in range(games.full.shape[1])]
    return assemble(
        texts,
        words,
        names,
        games.full.exp().tolist(),
        found,
        played,
        method="grounded",
        passes=1,
        samples=samples,
        ess=played.ess.tolist(),
        errors=errors,
    )
