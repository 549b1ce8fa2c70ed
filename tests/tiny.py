"""Tiny random encoders with a vocabulary of a few words, and small files of pairs: nothing is fetched."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

WORDS = ["a", "the", "man", "woman", "dog", "cat", "runs", "sleeps", "eats", "outside", "inside", "not", "two", "red"]
NLI = ("entailment", "neutral", "contradiction")


def tokenizer(types: bool = True) -> PreTrainedTokenizerFast:
    """Words alone, [CLS] a [SEP] b [SEP]; types: whether it gives token_type_ids."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    own = Tokenizer(models.WordLevel({word: place for place, word in enumerate([*special, *WORDS])}, unk_token="[UNK]"))
    own.normalizer = normalizers.Lowercase()
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=own,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=128,
        model_input_names=["input_ids", *(["token_type_ids"] if types else []), "attention_mask"],
    )


def bert(**options) -> BertConfig:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    sizes |= {"vocab_size": 4 + len(WORDS), "max_position_embeddings": 128}
    return BertConfig(**{**sizes, "initializer_range": 0.1, **options})  # wide enough that it learns quickly


def save_encoder(folder: Path, config=None, types: bool = True) -> Path:
    """The encoder of `config` (a BERT of two layers) with random weights, and a tokenizer beside it."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModel.from_config(config or bert()).save_pretrained(folder)
    tokenizer(types).save_pretrained(folder)
    assert AutoConfig.from_pretrained(folder).model_type == (config or bert()).model_type
    return folder


def nli_classifier(seed: int = 0) -> BertForSequenceClassification:
    """A classifier of pairs with random weights; the caller's random state stays as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).eval()


def rows(count: int, seed: int = 0, longest: int = 12) -> list[dict[str, str]]:
    """Pairs whose class can be learnt: the hypothesis says "not" (contradiction), or "red" (neutral), or neither."""
    draw = torch.Generator().manual_seed(seed)

    def text(extra: str) -> str:
        length = int(torch.randint(1, longest, (1,), generator=draw))
        words = [WORDS[place] for place in torch.randint(len(WORDS) - 3, (length,), generator=draw)]
        return " ".join([*words, extra] if extra else words)

    labels = torch.randint(3, (count,), generator=draw).tolist()
    extras = ("", "red", "not")
    return [{"premise": text(""), "hypothesis": text(extras[label]), "label": NLI[label]} for label in labels]


def save_rows(path: Path, count: int, seed: int = 0, **options) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count, seed, **options)))
    return path
