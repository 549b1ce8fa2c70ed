"""A tiny random classifier with a vocabulary of a few words, built here: nothing is fetched."""

import pytest
import torch

from spinformer.data.texts import NLI_LABELS, Texts

WORDS = ["a", "the", "man", "woman", "dog", "cat", "runs", "sleeps", "eats", "outside", "inside", "not", "two", "red"]


@pytest.fixture(scope="session")
def tokenizer():
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: index for index, word in enumerate([*special, *WORDS])}
    tokens = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=128,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def bert(names=NLI_LABELS):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=4 + len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        initializer_range=0.5,  # so that answers differ
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
    )
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(config).eval()


@pytest.fixture(scope="session")
def model():
    return bert()


@pytest.fixture(scope="session")
def saved(model, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def pairs(count=40, seed=0, labelled=True, names=NLI_LABELS):
    draw = torch.Generator().manual_seed(seed)

    def text():
        length = int(torch.randint(1, 20, (1,), generator=draw))
        return " ".join(WORDS[index] for index in torch.randint(len(WORDS), (length,), generator=draw))

    first, second = zip(*((text(), text()) for _ in range(count)), strict=True)
    labels = torch.randint(len(names), (count,), generator=draw).tolist() if labelled else None
    return Texts(first, second, labels, tuple(names), source="drawn", digests=(("drawn.jsonl", "0" * 64),))
