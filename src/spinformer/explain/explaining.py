"""`explain`: which words and which pairs of words decided, for any Hugging Face classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.explain.explanation import Explanation, Pair, Word
from spinformer.explain.grounded import TEMPERATURE, Grounded
from spinformer.models.grounding import FOLDER


def explain(
    model: Any,
    tokenizer: Any,
    premise: str | Sequence[str],
    hypothesis: str | Sequence[str] | None = None,
    *,
    grounded: Grounded | None = None,
    samples: int = 64,
    pair_samples: int = 16,
    temperature: float = TEMPERATURE,
    max_length: int = 128,
    seed: int = 0,
) -> Any:
    """An `Explanation` of one text or pair, or a list of them for lists, from one forward pass of each.

    The game of the classifier is learnt beforehand: `spinformer ground` leaves it in the model's folder, where it is
    found; models with head "grounded" are games themselves; or `grounded` is given. samples: coalitions for the words'
    values; pair_samples: for the pairs'; temperature: gamma of the Ising model.
    """
    checks.at_least("samples", samples, 2)
    checks.at_least("pair_samples", pair_samples, 2)
    single = isinstance(premise, str)
    first = [premise] if isinstance(premise, str) else list(premise)
    second = None if hypothesis is None else [hypothesis] if isinstance(hypothesis, str) else list(hypothesis)
    for name, column in (("premise", first), ("hypothesis", second or [])):
        for row, text in enumerate(column):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"{name} {row} must be a text that is not empty; got {text!r}")
    texts = Texts(first, second)
    words = split(tokenizer, texts, max_length)
    player = grounded if grounded is not None else _grounded(model)
    found = _explanations(player, words, texts, samples, pair_samples, temperature, seed)
    return found[0] if single else found


def _grounded(model: Any) -> Grounded:
    if getattr(model.config, "head", None) == "grounded":
        return Grounded(model)
    folder = Path(str(getattr(model, "name_or_path", "") or ""))
    if (folder / FOLDER / "game.json").is_file():
        return Grounded.load(folder, model)
    raise ValueError(
        "this classifier has no game yet: `spinformer ground MODEL TEXTS` learns one, without labels, in its folder"
    )


def _explanations(
    grounded: Grounded, words: Words, texts: Texts, samples: int, pair_samples: int, temperature: float, seed: int
) -> list[Explanation]:
    games = grounded.games(words)
    fine = Grounded(grounded.model, grounded.head, samples)
    coarse = Grounded(grounded.model, grounded.head, pair_samples)
    shapley, banzhaf = fine.values(games, "SV", seed), fine.values(games, "BV", seed + 1)
    pairs = coarse.values(games, "BII", seed + 2)
    played = coarse.play(games, temperature, seed + 3)
    names = [grounded.model.config.id2label[place] for place in range(games.full.shape[1])]
    nothing = torch.zeros(len(words.words), 1, words.mask.shape[1], dtype=torch.bool)
    with torch.no_grad():
        empty = games.game()(nothing.to(games.mask.device)).squeeze(1)
    columns = (
        shapley.values,
        shapley.stderr,
        banzhaf.values,
        banzhaf.stderr,
        played.gate,
        played.fields,
        played.attention,
    )
    table = torch.stack([column.float() for column in columns], -1).cpu()
    found = []
    for row, own in enumerate(words.words):
        count = len(own)
        chances = games.full[row].exp().tolist()
        sides = words.sides[row]
        found.append(
            Explanation(
                texts=(texts.first[row],) if texts.second is None else (texts.first[row], texts.second[row]),
                label=names[int(games.full[row].argmax())],
                probabilities=dict(zip(names, chances, strict=True)),
                words=tuple(Word(own[i], sides[i], *table[row, i].tolist()) for i in range(count)),
                pairs=_pairs(pairs.values[row, :count, :count], pairs.stderr[row, :count, :count]),
                empty_value=float(empty[row]),
                method="grounded",
                passes=1,
                samples=samples,
                ess=float(played.ess[row]),
                converged=bool(played.solved.converged[row]),
            )
        )
    return found


def _pairs(values: Tensor, stderr: Tensor) -> tuple[Pair, ...]:
    first, second = torch.triu_indices(len(values), len(values), 1).tolist()
    chosen = zip(first, second, values[first, second].tolist(), stderr[first, second].tolist(), strict=True)
    return tuple(Pair(*entry) for entry in chosen)
