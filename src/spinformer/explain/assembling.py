"""From tensors of a batch to the explanation of one text of it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer.attention.play import Played
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.explanation import Explanation, Pair, Word
from spinformer.games import Survey


def assemble(
    texts: Texts,
    words: Words,
    names: Sequence[str],
    chances: Sequence[Sequence[float]],
    found: Survey,
    played: Played,
    *,
    method: str,
    passes: int,
    samples: int,
    ess: Sequence[float] | None,
    errors: tuple[Tensor, Tensor] | None,
) -> list[Explanation]:
    """Explanations of a batch; texts, words, chances (probabilities, class by class) and tensors row by row; errors: of
    fields and attention, where they are known."""
    columns = (
        found.shapley.values,
        found.shapley.stderr,
        found.banzhaf.values,
        found.banzhaf.stderr,
        played.gate,
        played.fields,
        played.attention,
        *(errors or ()),
    )
    table = torch.stack([column.float() for column in columns], -1).tolist()
    first, second = torch.triu_indices(words.mask.shape[1], words.mask.shape[1], 1)
    interactions, apart = (
        part.cpu()[:, first, second].tolist() for part in (found.interactions.values, found.interactions.stderr)
    )
    left, right = first.tolist(), second.tolist()
    empty, converged = found.empty.tolist(), played.solved.converged.tolist()
    made = []
    for row, own in enumerate(words.words):
        sides, chance = words.sides[row], chances[row]
        pairs = zip(left, right, interactions[row], apart[row], strict=True)
        made.append(
            Explanation(
                texts=(texts.first[row],) if texts.second is None else (texts.first[row], texts.second[row]),
                label=names[max(range(len(names)), key=chance.__getitem__)],
                probabilities=dict(zip(names, chance, strict=True)),
                words=tuple(Word(own[i], sides[i], *table[row][i]) for i in range(len(own))),
                pairs=tuple(Pair(*pair) for pair in pairs if pair[1] < len(own)),
                empty_value=empty[row],
                method=method,
                passes=passes,
                samples=samples,
                ess=None if ess is None else ess[row],
                converged=converged[row],
            )
        )
    return made
