"""Padding: a text among others is explained as alone, whatever the model makes of padding; decoders without a token."""

import pytest
import torch
import transformers
from transformers import AutoModelForSequenceClassification

import spinformer
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.models import padding
from spinformer.models.functions import function_classifier
from spinformer.models.hidden_states import frozen_states
from spinformer.models.masked import MaskedClassifier
from spinformer.models.padding import full_states, rows_together
from tests import tiny
from tests.models.test_architectures import COMMON, ENDS, GPT2, tokenizer

XLNET = {"vocab_size": 22, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "num_labels": 3}
FNET = {name: value for name, value in COMMON.items() if name != "num_attention_heads"}
# The name of the configuration, its options, the tokens that its tokenizer adds, and whether padding changes answers.
KINDS = {
    "xlnet": ("XLNetConfig", {**XLNET, "initializer_range": 0.5, "pad_token_id": 0}, "end", True),
    "fnet": ("FNetConfig", FNET, "both", True),
    "nystromformer": ("NystromformerConfig", {**COMMON, "conv_kernel_size": 5}, "both", True),
    "bert": ("BertConfig", COMMON, "both", False),
}
TEXTS = ["the man sleeps", "a dog", "two red cat not inside", "a cat eats"]


def made(kind):
    config, options, ends, changes = KINDS[kind]
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(getattr(transformers, config)(**options)).eval()
    return model, tokenizer(ends), changes


def passes(model):
    """A list of the rows of each pass, which grows."""
    seen = []
    model.register_forward_pre_hook(lambda model, args, inputs: seen.append(len(inputs["input_ids"])), with_kwargs=True)
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_among_others_is_explained_as_alone(kind):
    model, own, changes = made(kind)
    words = split_words(own, Texts(TEXTS), 32)
    assert len(rows_together(model, words.inputs)) == (3 if changes else 1)
    explainer = spinformer.Explainer(model, own)
    for text, among in zip(TEXTS, explainer(TEXTS, method="leave-one-out"), strict=True):
        alone = explainer(text, method="leave-one-out")
        assert among.importance == pytest.approx(alone.importance, abs=1e-5)
        assert list(among.probabilities.values()) == pytest.approx(list(alone.probabilities.values()), abs=1e-5)


@pytest.mark.parametrize("masking", ["attention", "delete"])
@pytest.mark.parametrize("kind", KINDS)
def test_masked_rows_of_any_length(kind, masking):
    model, own, _ = made(kind)
    masked, words = MaskedClassifier(model, own, masking), split_words(own, Texts(TEXTS), 32)
    asked = words.mask[:, None] & (torch.rand(4, 6, 5, generator=torch.Generator().manual_seed(1)) < 0.6)
    asked[:, 0] = words.mask
    together = masked.probabilities(words, asked)
    for row, text in enumerate(TEXTS):
        one = split_words(own, Texts([text]), 32)
        for number, coalition in enumerate(asked[row]):
            alone = masked.probabilities(one, coalition[None, None, : int(one.counts)])[0, 0]
            torch.testing.assert_close(together[row, number], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["fnet", "bert"])
def test_states_of_full_texts(kind):
    """What games are learnt and read from."""
    model, own, _ = made(kind)
    logits, states = full_states(model, split_words(own, Texts(TEXTS), 32).inputs)
    for row, text in enumerate(TEXTS):
        alone, single = frozen_states(model, split_words(own, Texts([text]), 32).inputs)
        torch.testing.assert_close(logits[row], alone[0], atol=1e-5, rtol=1e-4)
        for state, expected in zip(states, single, strict=True):
            torch.testing.assert_close(state[row, : expected.shape[1]], expected[0], atol=1e-5, rtol=1e-4)


def test_it_is_measured_once_and_only_where_rows_differ():
    model, own, _ = made("bert")
    seen, same = passes(model), split_words(own, Texts(["a dog", "the cat"]), 32)
    rows_together(model, same.inputs)
    assert not seen
    for _ in range(3):
        assert rows_together(model, split_words(own, Texts(TEXTS), 32).inputs) == [[0, 1, 2, 3]]
    assert seen == [1, 1]
    MaskedClassifier(model, own, "delete").full_probabilities(split_words(own, Texts(TEXTS), 32))
    assert seen == [1, 1, 4]


def test_half_precision_rounds_more():
    model, own, _ = made("bert")
    words = split_words(own, Texts(TEXTS), 32)
    assert rows_together(model.to(torch.bfloat16), words.inputs) == [[0, 1, 2, 3]]


def test_a_function_is_not_asked():
    """It is given texts, which have no padding, and may be dear."""
    model, own = function_classifier(lambda texts: pytest.fail("it was asked"), ["score"])
    assert rows_together(model, split_words(own, Texts(TEXTS), 32).inputs) == [[0, 1, 2, 3]]
    assert model not in padding._MEASURED


LLAMA = {**COMMON, **ENDS, "num_key_value_heads": 2}


@pytest.mark.parametrize("pad", [None, "[SEP]"], ids=["no token", "in the tokenizer alone"])
@pytest.mark.parametrize(("config", "options"), [("GPT2Config", {**GPT2, **ENDS}), ("LlamaConfig", LLAMA)])
def test_a_decoder_without_a_padding_token(config, options, pad):
    """Its texts are explained, alone and together; the end of the text serves as padding."""
    torch.manual_seed(0)
    options = {**options, "pad_token_id": None, "initializer_range": 0.5}
    model = AutoModelForSequenceClassification.from_config(getattr(transformers, config)(**options)).eval()
    own = tokenizer("none", pad=pad)
    assert model.config.pad_token_id is None
    alone = spinformer.explain(model, own, TEXTS[0])
    assert (own.pad_token, model.config.pad_token_id) == ("[SEP]", 3)
    assert alone.base_value + sum(alone.importance) == pytest.approx(alone.full_value, abs=1e-4)
    with torch.no_grad():
        direct = model(**own(TEXTS[0], return_tensors="pt")).logits.softmax(-1)[0].tolist()
    assert list(alone.probabilities.values()) == pytest.approx(direct, abs=1e-5)
    assert spinformer.explain(model, own, TEXTS)[0].importance == pytest.approx(alone.importance, abs=1e-4)


def test_a_padding_token_that_is_there_stays():
    model, own = tiny.nli_classifier(), tiny.tokenizer()
    padding.set_padding(model, own)
    assert (own.pad_token, model.config.pad_token_id) == ("[PAD]", 0)
