"""shap's text explainer and captum's attributions, given a text word by word and the same masked passes as ours.

Words are hidden in one way for all: every library asks one `MaskedClassifier`, which counts its passes. So they all
estimate the same Shapley values, and differ in which sets of words they ask about and in what they make of the answers.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinformer._base.rng import preserved
from spinformer.data.words import Words
from spinformer.models.masked import MaskedClassifier

SEPARATOR, HIDDEN = "[SEP]", "\N{FULL BLOCK}"
AT_ONCE = 128  # rows of a batch that captum may send


@dataclass(frozen=True)
class Question:
    """v(C) of one text for the class `target`, as a function of sets of words, (K, n) booleans -> (K,)."""

    classifier: MaskedClassifier
    words: Words
    target: int

    def __call__(self, coalitions: Tensor) -> Tensor:
        """One pass for each row."""
        return self.classifier.probabilities(self.words, coalitions[None])[0, :, self.target]

    @property
    def count(self) -> int:
        """How many words the text has."""
        return len(self.words.words[0])


class WhitespaceTokenizer:
    """As shap's own SimpleTokenizer, with a separator: what `shap.maskers.Text` needs of a tokenizer."""

    sep_token = sep_token_id = SEPARATOR

    def __call__(self, text: str, return_offsets_mapping: bool = True) -> dict[str, Any]:
        """Tokens are what stands between spaces."""
        parts = list(re.finditer(r"\S+", text))
        return {"input_ids": [part.group() for part in parts], "offset_mapping": [part.span() for part in parts]}


def shap_values(question: Question, algorithm: str, seed: int, max_evals: int | None = None) -> Tensor:
    """shap's text explainer, (n,): "auto" is what it takes for texts, Partition; max_evals: None for its default.

    Permutation draws from a generator inside compiled code that no seed reaches.
    """
    import shap

    words, sides = question.words.words[0], question.words.sides[0]
    first = sum(side == 0 for side in sides)
    tokens = [*words[:first], *([SEPARATOR] if first < len(words) else []), *words[first:]]
    if any(re.search(r"\s", word) or word in (SEPARATOR, HIDDEN) for word in words):
        raise ValueError(f"expected words without spaces; got {words}")
    own = torch.tensor([place for place in range(len(tokens)) if len(tokens) == len(words) or place != first])

    def answers(texts: Sequence[str]) -> Any:
        rows = [[token != HIDDEN for token in text.split()] for text in texts]
        return question(torch.tensor(rows)[:, own]).numpy()

    masker = shap.maskers.Text(WhitespaceTokenizer(), mask_token=f"{HIDDEN} ", collapse_mask_token=False)
    explainer = shap.Explainer(answers, masker, algorithm=algorithm, seed=seed)
    options = {} if max_evals is None else {"max_evals": max_evals}
    with preserved():
        values = explainer([" ".join(tokens)], silent=True, **options).values[0]
    return torch.as_tensor(np.asarray(values, dtype=np.float64))[own]


def captum_values(question: Question, kind: str, seed: int, samples: int | None = None) -> Tensor:
    """An attribution of captum over a vector with a 1 for each word, (n,); samples: None for its default."""
    import captum.attr

    def forward(rows: Tensor) -> Tensor:
        return question(rows > 0.5)

    visible = torch.ones(1, question.count)
    options: dict[str, Any] = {} if samples is None else {"n_samples": samples}
    with preserved():
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - what captum's permutations may draw from
        attribution = getattr(captum.attr, kind)(forward)
        values = attribution.attribute(visible, baselines=0.0, perturbations_per_eval=AT_ONCE, **options)
    return values[0].double().detach()


@dataclass(frozen=True)
class PeerExplainer:
    """A method of another library with the passes that it may spend: `values(question, seed)` -> (n,)."""

    library: str
    method: str
    setting: str
    values: Callable[[Question, int], Tensor]


def peer_explainers(budgets: Sequence[int]) -> list[PeerExplainer]:
    """shap's and captum's, each with its own defaults and with about as many passes as each of `budgets`."""

    def of_shap(method: str, algorithm: str, budget: int | None) -> PeerExplainer:
        setting = "default" if budget is None else f"max_evals={budget}"
        return PeerExplainer("shap", method, setting, lambda asked, seed: shap_values(asked, algorithm, seed, budget))

    def of_captum(kind: str, setting: str, samples: Callable[[int], int] | None = None) -> PeerExplainer:
        def values(asked: Question, seed: int) -> Tensor:
            return captum_values(asked, kind, seed, None if samples is None else samples(asked.count))

        return PeerExplainer("captum", kind, setting, values)

    def permutations(budget: int) -> Callable[[int], int]:
        return lambda words: max(budget // words, 1)  # a permutation takes a pass for each word

    def exactly(budget: int) -> Callable[[int], int]:
        return lambda words: budget

    # Partition asks about at most n (n - 1) sets of words, fewer than the largest budgets.
    peers = [of_shap("Partition", "auto", budget) for budget in (None, *budgets[:-1])]
    peers += [of_shap("Permutation", "permutation", budget) for budget in (None, *budgets)]
    peers += [of_captum("FeatureAblation", "default"), of_captum("ShapleyValueSampling", "default")]
    peers += [of_captum("ShapleyValueSampling", f"{budget} passes", permutations(budget)) for budget in budgets]
    peers.append(of_captum("KernelShap", "default"))
    peers += [of_captum("KernelShap", f"{budget} passes", exactly(budget)) for budget in budgets]
    return peers
