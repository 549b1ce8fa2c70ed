"""Tiny classifiers to explain: a BERT with random weights, and one whose confidence is a sum over words."""

import torch
from transformers import BertForSequenceClassification, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.models.masked import MaskedClassifier
from tests import tiny


def tokenizer():
    """Of tests.tiny, with a mask token."""
    with_mask = tiny.tokenizer()
    with_mask.add_special_tokens({"mask_token": "[MASK]"})
    return with_mask


def bert(sharpness: float = 0.5) -> BertForSequenceClassification:
    """Random weights; `sharpness` spreads its probabilities."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = tiny.bert(num_labels=3, vocab_size=len(tokenizer()), initializer_range=0.3)
        model = BertForSequenceClassification(config).eval()
    with torch.no_grad():
        model.classifier.weight.mul_(sharpness)
    return model


def classifier(**options) -> MaskedClassifier:
    return MaskedClassifier(bert(), tokenizer(), **options)


TEXTS = Texts(
    ["the dog runs", "a man eats outside", "cat", "two red cat not inside the man"],
    ["a cat sleeps", "woman", "not", "the woman"],
)


def words(texts: Texts = TEXTS) -> Words:
    return split_words(tokenizer(), texts, 64)


class AdditiveConfig(PreTrainedConfig):
    model_type = "additive-toy"
    hidden_size = 16
    num_hidden_layers = 0


class Additive(PreTrainedModel):
    """p_1 = 0.5 + sum over visible tokens of worth(token), and its hidden states are the token's embedding."""

    config_class = AdditiveConfig

    def __init__(self) -> None:
        super().__init__(AdditiveConfig(num_labels=2))
        with torch.random.fork_rng():
            torch.manual_seed(2)
            self.embedding = torch.nn.Embedding(len(tokenizer()), 16)
            self.worth = torch.nn.Parameter(0.03 * torch.randn(len(tokenizer())))

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, input_ids, attention_mask, token_type_ids=None, output_hidden_states=False):
        probability = (0.5 + (self.worth[input_ids] * attention_mask).sum(-1)).clamp(0.01, 0.99)
        states = (self.embedding(input_ids),) if output_hidden_states else None
        logits = torch.stack([1 - probability, probability], -1).log()
        return SequenceClassifierOutput(logits=logits, hidden_states=states)
