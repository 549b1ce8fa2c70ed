"""Every architecture: hidden words are hidden, and neither padding nor the batch changes an answer."""

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import Explainer
from spinformer.models.loading import load_classifier
from spinformer.models.masked import MaskedClassifier
from tests.tiny import WORDS

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
COMMON = {**SIZES, "vocab_size": 22, "num_labels": 3, "pad_token_id": 0, "initializer_range": 0.5}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 22, "num_labels": 3}
ENDS = {"bos_token_id": 2, "eos_token_id": 3}
DECODER = {**COMMON, **ENDS, "num_key_value_heads": 2}
# The name of the configuration, its options, and which special tokens its tokenizer adds.
ARCHITECTURES = {
    "bert": ("BertConfig", COMMON, "both"),
    "roberta": ("RobertaConfig", {**COMMON, "max_position_embeddings": 64}, "both"),
    "distilbert": (
        "DistilBertConfig",
        {"vocab_size": 22, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "num_labels": 3}
        | {"initializer_range": 0.5},
        "both",
    ),
    "albert": ("AlbertConfig", {**COMMON, "embedding_size": 16}, "both"),
    "deberta-v2": (
        "DebertaV2Config",
        {**COMMON, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]},
        "both",
    ),
    "electra": ("ElectraConfig", {**COMMON, "embedding_size": 16}, "both"),
    "mpnet": ("MPNetConfig", {**COMMON, "max_position_embeddings": 64}, "both"),
    "modernbert": (
        "ModernBertConfig",
        {**COMMON, **ENDS, "cls_token_id": 2, "sep_token_id": 3, "global_attn_every_n_layers": 2, "local_attention": 8},
        "both",
    ),
    "xlm-roberta": ("XLMRobertaConfig", {**COMMON, "max_position_embeddings": 64}, "both"),
    "t5": (
        "T5Config",
        {"vocab_size": 22, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "num_labels": 3}
        | {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0, "initializer_factor": 3.0},
        "end",
    ),
    "gpt2": ("GPT2Config", {**GPT2, **ENDS, "pad_token_id": 0, "initializer_range": 0.5}, "none"),
    "llama": ("LlamaConfig", DECODER, "none"),
    "qwen2": ("Qwen2Config", DECODER, "none"),
    "mistral": ("MistralConfig", DECODER, "none"),
}
TEXTS = ["the man sleeps outside", "a dog runs", "two red cat not inside the man"]
OTHERS = ["the woman sleeps red", "cat dog not", "two a cat eats inside the dog"]
KEPT = [[1, 0, 1, 0], [0, 1, 0], [1, 0, 1, 0, 1, 1, 0]]  # words that both texts share


def tokenizer(ends, side="right", pad="[PAD]"):
    own = Tokenizer(models.WordLevel({word: place for place, word in enumerate([*SPECIAL, *WORDS])}, unk_token="[UNK]"))
    own.normalizer, own.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    if ends != "none":
        single = "[CLS] $A [SEP]" if ends == "both" else "$A [SEP]"
        own.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(
        tokenizer_object=own,
        pad_token=pad,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        eos_token="[SEP]",
        mask_token="[MASK]",
        padding_side=side,
        model_input_names=["input_ids", "attention_mask"],
    )


def classifier(name):
    config, options, ends = ARCHITECTURES[name]
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(getattr(transformers, config)(**options)).eval()
    return model, ends


def coalitions():
    rows = torch.zeros(len(TEXTS), 2, 7, dtype=torch.bool)  # the second is empty
    for row, kept in enumerate(KEPT):
        rows[row, 0, : len(kept)] = torch.tensor(kept, dtype=torch.bool)
    return rows


@pytest.mark.parametrize("masking", ["attention", "token", "delete"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_hidden_words_are_hidden(name, masking):
    """Two texts that differ in hidden words alone have one answer; visible words change it."""
    model, ends = classifier(name)
    masked = MaskedClassifier(model, tokenizer(ends), masking)
    asked = coalitions()
    first, second = (
        masked.probabilities(split_words(masked.tokenizer, Texts(texts), 32), asked) for texts in (TEXTS, OTHERS)
    )
    assert torch.isfinite(first).all()
    torch.testing.assert_close(first, second, atol=1e-6, rtol=0)
    assert float((first[:, 0] - first[:, 1]).abs().max()) > 1e-3


FIRST = {
    "bigbird": ("BigBirdConfig", {**COMMON, "attention_type": "original_full"}),
    "longformer": ("LongformerConfig", {**COMMON, "attention_window": 4, "max_position_embeddings": 64}),
    "squeezebert": ("SqueezeBertConfig", {**COMMON, "embedding_size": 32}),
}


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "electra", *FIRST])
def test_the_first_word_is_hidden_where_the_answer_is_read_from_it(name):
    """The tokenizer adds no special tokens, so the answer comes from the first word; also of no words at all."""
    config, options = FIRST.get(name, ARCHITECTURES.get(name, ())[:2])
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(getattr(transformers, config)(**options)).eval()
    masked, asked = MaskedClassifier(model, tokenizer("none")), coalitions()
    first, second = (
        masked.probabilities(split_words(masked.tokenizer, Texts(texts), 32), asked) for texts in (TEXTS, OTHERS)
    )
    assert masked.leaks
    torch.testing.assert_close(first, second, atol=1e-6, rtol=0)
    torch.testing.assert_close(first[:, 1], first[:1, 1].expand(3, -1), atol=1e-6, rtol=0)
    assert float((first[:, 0] - first[:, 1]).abs().max()) > 1e-3


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5"])
def test_neither_padding_nor_the_batch_changes_an_answer(name, side):
    model, ends = classifier(name)
    masked = MaskedClassifier(model, tokenizer(ends, side))
    together = masked.probabilities(split_words(masked.tokenizer, Texts(TEXTS), 32), coalitions())
    for row, text in enumerate(TEXTS):
        words = split_words(masked.tokenizer, Texts([text]), 32)
        alone = masked.probabilities(words, coalitions()[row : row + 1, :, : len(KEPT[row])])
        torch.testing.assert_close(together[row], alone[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["t5", "gpt2", "qwen2", "modernbert"])
def test_explained(name):
    """By all 2^4 passes the values are exact, and add up."""
    model, ends = classifier(name)
    explanation = Explainer(model, tokenizer(ends))(TEXTS[0])
    assert explanation.base_value + sum(explanation.importance) == pytest.approx(explanation.full_value, abs=1e-4)


def test_a_model_without_a_padding_token(tmp_path):
    """Loaded from its folder, the end of the text serves as padding."""
    config, options, _ = ARCHITECTURES["gpt2"]
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(
        getattr(transformers, config)(**{**options, "pad_token_id": None})
    )
    model.save_pretrained(tmp_path)
    tokenizer("none", pad=None).save_pretrained(tmp_path)
    loaded, own = load_classifier(tmp_path)
    assert own.pad_token == "[SEP]"
    explanations = Explainer(loaded, own)(TEXTS)
    alone = Explainer(loaded, own)(TEXTS[1])
    assert explanations[1].importance == pytest.approx(alone.importance, abs=1e-4)
