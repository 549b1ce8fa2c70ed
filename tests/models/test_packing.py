"""Masked passes that leave hidden tokens out: the same answers, for every architecture or not at all."""

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    ModernBertConfig,
    RobertaConfig,
)

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models import NeuroGameForSequenceClassification
from spinformer.models.masked import MaskedClassifier
from tests import tiny

SIZES = {"vocab_size": 18, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 64, "max_position_embeddings": 64, "num_labels": 3, "initializer_range": 0.2}
GPT2 = {"vocab_size": 18, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
SMALL = {"vocab_size": 18, "max_position_embeddings": 64, "num_labels": 3, "initializer_range": 0.2}
# Made when they are needed: some versions of transformers refuse a configuration that others make.
CONFIGS = {
    "bert": (lambda: tiny.bert(num_labels=3, initializer_range=0.2), True),
    "roberta": (lambda: RobertaConfig(**SIZES, pad_token_id=0), True),
    "electra": (lambda: ElectraConfig(**SIZES, embedding_size=16), True),
    "distilbert": (lambda: DistilBertConfig(**SMALL, dim=32, n_layers=2, n_heads=2, hidden_dim=64), None),
    "deberta": (lambda: DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"]), False),
    "gpt2": (lambda: GPT2Config(**GPT2, num_labels=3, pad_token_id=0), None),
    "modernbert": (lambda: ModernBertConfig(**SIZES, pad_token_id=0, global_attn_every_n_layers=2), False),
}
TEXTS = Texts(
    ("a man eats outside not inside the red dog", "two red dogs", "the cat sleeps a woman runs"),
    ("the man sleeps", "not a cat", "the dog runs inside"),
)


def compare(model: torch.nn.Module, types: bool = True) -> tuple[bool | None, float]:
    """Whether hidden tokens are left out, and how far the answers then are from those of the masked attention."""
    own = tiny.tokenizer(types)
    packed, plain = MaskedClassifier(model, own), MaskedClassifier(model, own)
    plain.packs = False
    words = split_words(own, TEXTS, 64)
    coalitions = draw_coalitions(words.mask, 24, seed=0)
    answers = [each.probabilities(words, coalitions) for each in (packed, plain)]
    assert packed.passes == plain.passes == 3 * 24
    assert float(answers[1].std(1).mean()) > 1e-3  # hiding words changes the answer
    return packed.packs, float((answers[0] - answers[1]).abs().max())


@pytest.mark.parametrize("name", CONFIGS)
def test_answers_are_the_same(name: str) -> None:
    make, expected = CONFIGS[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(make()).eval()
    packs, apart = compare(model, types=name in ("bert", "electra"))
    assert apart < 1e-5
    assert packs is not None
    assert expected is None or packs is expected


@pytest.mark.parametrize("head", ["cls", "mean", "neurogame"])
def test_our_own_classifiers(head: str, tmp_path) -> None:
    folder = tiny.save_encoder(tmp_path / "encoder")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model = NeuroGameForSequenceClassification.from_encoder(folder, head=head, labels=tiny.NLI).eval()
        for parameter in model.classifier.parameters():
            parameter.mul_(100)  # a new classifier says nearly the same of all texts
    packs, apart = compare(model)
    assert apart < 1e-4
    assert packs


def test_full_texts_do_not_tell() -> None:
    own = tiny.tokenizer()
    classifier = MaskedClassifier(tiny.nli_classifier(), own)
    words = split_words(own, TEXTS, 64)
    classifier.full_probabilities(words)
    assert classifier.packs is None
    classifier.probabilities(words, draw_coalitions(words.mask, 24, seed=0))
    assert classifier.packs
