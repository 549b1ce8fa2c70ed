"""What a trained NeuroGame layer says of texts: signs and sizes of its couplings, its attention, how faithful they are.

The NeuroGame paper (section 7.4) reads the layer's own J_ij: negative for "not good", positive for "very good", near 0
in neutral pairs. `negation` measures games of the classifier's answers instead; here it is the layer's own game.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor

from research.experiments.negation import CLAIMS, Case, Interactions, case_texts, negation_cases, word_indices
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.evaluate.explanations.comparison import compare
from spinformer.explain.context import Context
from spinformer.explain.methods import get_method
from spinformer.models.masked import MaskedClassifier
from spinformer.models.token_inputs import is_any_of

METHODS = ("layer", "layer-field", "layer-shapley", "layer-banzhaf", "leave-one-out", "random")
DRAWS = 16  # sets of coalitions over which the sign of a coupling is averaged
TARGET_SAMPLES = 256  # coalitions of an estimate close to what the layer's estimator converges to
BATCH = 64
NEUTRAL = "neutral"


@dataclass(frozen=True)
class Encoded:
    """A batch of texts: words; hidden states (B, n, d); real and special tokens, (B, n); the classes decided for."""

    words: Words
    hidden: Tensor
    mask: Tensor
    special: Tensor
    labels: tuple[str, ...]


class LayerReader:
    """J of words i and j = sum over tokens s of i and t of j of J_st, mean over attention heads     (NGT Eq. 9)

    own: the layer as it is evaluated. target: the same expectation from TARGET_SAMPLES coalitions; under Gibbs weights
    they are drawn from the tilted proposal, since under the uniform one a single coalition has nearly all the weight.
    """

    def __init__(self, model: Any, tokenizer: Any, max_length: int = 128) -> None:
        self.model, self.tokenizer, self.max_length = model.eval(), tokenizer, max_length
        self.own: NeuroGameAttention = model.model.pooling.attention
        self.target = copy.copy(self.own)  # the same weights
        self.target.eval_samples = max(TARGET_SAMPLES, self.own.eval_samples)
        if self.own.settings.weighting == "gibbs":
            self.target.settings = replace(self.own.settings, proposal="tilted")

    @torch.no_grad()
    def encode(self, texts: Texts) -> Encoded:
        """One pass of the classifier."""
        words = split_words(self.tokenizer, texts, self.max_length).to(self.model.device)
        base = self.model.model(**words.inputs)
        decided = self.model.classifier(base.pooler_output).argmax(-1).tolist()
        names = self.model.config.id2label
        special = is_any_of(words.inputs["input_ids"], self.model.config.special_ids)
        mask = words.inputs["attention_mask"].bool()
        return Encoded(words, base.last_hidden_state, mask, special, tuple(names[index] for index in decided))

    @torch.no_grad()
    def couplings(self, batch: Encoded, layer: NeuroGameAttention, seed: int | None = None) -> Tensor:
        """(B, W, W), on the CPU; seed: of the coalitions, None for those of every evaluation."""
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        game = layer(batch.hidden, batch.mask, generator=generator, special=batch.special)
        pairs = game.interactions.dense().mean(1)  # (B, n, n)
        return batch.words.sums(batch.words.sums(pairs).mT).cpu()


def read_layer(model: Any, tokenizer: Any, texts: Texts) -> dict[str, Any]:
    """Faithfulness of the layer's scores on `texts`, its attention and gate there, and its couplings.

    A classifier without a NeuroGame layer has the faithfulness of the methods that need none, and nothing else.
    """
    outcome: dict[str, Any] = {"texts": len(texts), "faithfulness": faithfulness(model, tokenizer, texts)}
    if not getattr(model, "plays", False):
        return outcome
    reader = LayerReader(model, tokenizer)
    outcome |= spread(reader, texts)
    if reader.own.settings.couplings != "none":
        cases = negation_cases()
        outcome["signs"] = {name: signs(reader, group, CLAIMS[name]) for name, group in cases.items()}
        outcome["classes"] = class_couplings(reader, texts)
    return outcome


def faithfulness(model: Any, tokenizer: Any, texts: Texts) -> dict[str, Any]:
    """Comprehensiveness and sufficiency of the layer's scores, of leave-one-out and of random ones."""
    context = Context(MaskedClassifier(model, tokenizer, "attention"))
    methods = [method for method in map(get_method, METHODS) if method.missing(context) is None]
    scorers = [method.scorer(context) for method in methods]
    return compare(scorers, context.classifier, texts, chunk=2 * BATCH, progress=False).to_dict()


@torch.no_grad()
def spread(reader: LayerReader, texts: Texts) -> dict[str, Any]:
    """Mean and standard deviation over tokens of alpha and, where it is learned, of lambda."""
    numbers: dict[str, list[Tensor]] = {"attention": [], "gate": []}
    for batch in _batches(reader, texts):
        game = reader.own(batch.hidden, batch.mask, special=batch.special)
        players = batch.mask if reader.own.settings.special_tokens else batch.mask & ~batch.special
        for name, values in numbers.items():
            tokens: Tensor = getattr(game, name).transpose(1, 2)[players]  # (tokens, heads)
            values.append(tokens.flatten().cpu())
    return {
        name: {"mean": float(torch.cat(values).mean()), "std": float(torch.cat(values).std())}
        for name, values in numbers.items()
    }


def signs(reader: LayerReader, cases: Sequence[Case], claim: int) -> dict[str, Any]:
    """Signs of the coupling of two words of each case, by the layer as it is and by what its estimator converges to.

    Of the layer's own: the mean over DRAWS sets of coalitions, whose standard error says which signs are clear; how
    often a single set has another sign than the mean; and the counts for the set of every evaluation.
    """
    batch = reader.encode(case_texts(cases))
    rows, (first, second) = torch.arange(len(cases)), word_indices(batch.words, cases).unbind(1)

    def of_pairs(layer: NeuroGameAttention, seed: int | None) -> Tensor:
        return reader.couplings(batch, layer, seed)[rows, first, second]

    fixed = of_pairs(reader.own, None).tolist()
    result: dict[str, Any] = {
        "fixed": {"negative": sum(value < 0 for value in fixed), "positive": sum(value > 0 for value in fixed)}
    }
    for name, layer, draws in (("own", reader.own, DRAWS), ("target", reader.target, 4)):
        values = torch.stack([of_pairs(layer, seed) for seed in range(draws)])  # (draws, N)
        mean = values.mean(0)
        flips = (values.sign() != mean.sign()).float().mean()
        interactions = Interactions(mean, values.std(0) / draws**0.5, batch.labels)
        result[name] = {**interactions.to_dict(claim), "flips": float(flips)}
    return result


def class_couplings(reader: LayerReader, texts: Texts) -> dict[str, Any]:
    """Mean |J_ij| over pairs of words of a text, by its gold class; "across": over pairs of both sides alone.

    neutral_auc: how often a neutral text has a smaller mean |J_ij| than another text, 0.5 where J does not tell.
    """
    rows: list[dict[str, Any]] = []
    gold = [texts.names[label] for label in texts.labels or ()]
    for batch in _batches(reader, texts):
        readings = {name: reader.couplings(batch, layer) for name, layer in _layers(reader).items()}
        for row, sides in enumerate(batch.words.sides):
            side = torch.tensor(sides)
            upper = torch.ones(len(side), len(side)).triu(1).bool()
            across = side[:, None] != side
            sizes = {name: J[row, : len(side), : len(side)].abs() for name, J in readings.items()}
            numbers = {name: {"all": float(J[upper].mean()), "across": float(J[across].mean())}
                       for name, J in sizes.items()}  # fmt: skip
            rows.append({"label": gold[len(rows)], "words": len(side), **numbers})
    classes = {}
    for label in dict.fromkeys(gold):
        group = [row for row in rows if row["label"] == label]
        classes[label] = {"texts": len(group), "words": fmean(row["words"] for row in group)} | {
            name: {kind: _mean([row[name][kind] for row in group]) for kind in ("all", "across")}
            for name in _layers(reader)
        }
    auc = {
        name: _auc(
            [row[name]["all"] for row in rows if row["label"] == NEUTRAL],
            [row[name]["all"] for row in rows if row["label"] != NEUTRAL],
        )
        for name in _layers(reader)
    }
    return {"classes": classes, "neutral_auc": auc}


def _layers(reader: LayerReader) -> dict[str, NeuroGameAttention]:
    return {"own": reader.own, "target": reader.target}


def _batches(reader: LayerReader, texts: Texts) -> list[Encoded]:
    starts = range(0, len(texts), BATCH)
    return [reader.encode(texts.select(range(start, min(start + BATCH, len(texts))))) for start in starts]


def _mean(values: Sequence[float]) -> dict[str, float | None]:
    return {"mean": fmean(values), "stderr": stdev(values) / len(values) ** 0.5 if len(values) > 1 else None}


def _auc(smaller: Sequence[float], larger: Sequence[float]) -> float | None:
    """P(x < y) + P(x = y) / 2 for x of `smaller` and y of `larger`."""
    if not smaller or not larger:
        return None
    x, y = torch.tensor(smaller), torch.tensor(larger)
    return float(((x[:, None] < y).double() + 0.5 * (x[:, None] == y)).mean())
