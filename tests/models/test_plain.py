"""Classifiers read without transformers: the answers of transformers' own, or none."""

import json

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification, BertTokenizer

from spinformer import Explainer, load_classifier
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain.explanation import Explanation
from spinformer.models import NeuroGameForSequenceClassification
from spinformer.models.identity import weights_digest
from spinformer.models.plain.reading import read_classifier
from spinformer.models.pooling import POOLING_HEADS
from tests import tiny

FIRST = ["A man is not awake.", "Ça va? 他睡觉 [MASK] naïve 😀 ... [SEP] tests-2024", "two\tdogs\u200b \u00ad run", "x"]
SECOND = ["A man sleeps.", "ZZZ [CLS] Über café", "The red cat " * 40, "Nobody is awake."]
PLAIN_HEADS = sorted(name for name, head in POOLING_HEADS.items() if not head.parts and not head.has_game_head)


def save_tokenizer(folder, **options):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tiny.WORDS]
    BertTokenizer(vocab={word: place for place, word in enumerate(words)}, **options).save_pretrained(folder)


@pytest.fixture
def bert(tmp_path):
    """A folder with a classifier of BERT's own."""
    torch.manual_seed(0)
    config = tiny.bert(num_labels=3, id2label=dict(enumerate(tiny.NLI)), vocab_size=30)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def small():
    """Without transformers, and with it."""
    plain = read_classifier("small", "cpu")
    assert plain is not None
    return plain, load_classifier("small", "cpu")


def assert_same_answers(plain, full):
    (own, tokenizer), (model, full_tokenizer) = plain, full
    assert list(own.state_dict()) == list(model.state_dict())
    assert weights_digest(own) == weights_digest(model)
    for texts in (Texts(FIRST, SECOND), Texts(FIRST, None), Texts(FIRST[:1], SECOND[:1])):
        words, expected = (split_words(each, texts, 60) for each in (tokenizer, full_tokenizer))
        assert words.words == expected.words
        inputs = words.inputs
        for changed in ({}, {"position_ids": (inputs["input_ids"].cumsum(1) * 7) % 90}):
            with torch.no_grad():
                found, wanted = (each(**inputs, **changed, output_hidden_states=True) for each in (own, model))
            torch.testing.assert_close(found.logits, wanted.logits, rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(tuple(found.hidden_states), tuple(wanted.hidden_states), rtol=1e-5, atol=1e-5)


class TestSameAnswers:
    def test_small(self, small):
        assert_same_answers(*small)

    def test_larger_in_half_precision(self):
        assert_same_answers(read_classifier("neurogame-minilm-nli"), load_classifier("neurogame-minilm-nli"))

    def test_bert(self, bert):
        assert_same_answers(read_classifier(bert), load_classifier(bert))

    @pytest.mark.parametrize("head", PLAIN_HEADS)
    def test_every_pooling_head(self, tmp_path, head):
        torch.manual_seed(0)
        encoder = tiny.save_encoder(tmp_path / "encoder", tiny.bert(vocab_size=30))
        options = {"residual": True, "dropout": 0.2, "special_ids": (0, 2, 3), "labels": tiny.NLI}
        folder = tmp_path / "model"
        NeuroGameForSequenceClassification.from_encoder(encoder, head=head, **options).save_pretrained(folder)
        save_tokenizer(folder)
        assert_same_answers(read_classifier(folder), load_classifier(folder))


class TestSameTokens:
    @pytest.mark.parametrize("max_length", [8, 60])
    @pytest.mark.parametrize("second", [None, SECOND])
    def test_every_column(self, small, max_length, second):
        asked = {"truncation": True, "max_length": max_length, "padding": True, "padding_side": "right"}
        found, wanted = (
            tokenizer(FIRST, second, **asked, return_offsets_mapping=True, return_attention_mask=True)
            for _, tokenizer in small
        )
        assert dict(found) == dict(wanted)
        for row in range(len(FIRST)):
            assert found.sequence_ids(row) == wanted.sequence_ids(row)
            assert found.word_ids(row) == wanted.word_ids(row)

    def test_what_explanations_ask_of_it(self, small):
        found, wanted = (tokenizer for _, tokenizer in small)
        for name in ("is_fast", "pad_token", "pad_token_id", "mask_token_id", "model_max_length"):
            assert getattr(found, name) == getattr(wanted, name), name
        assert set(found.all_special_ids) == set(wanted.all_special_ids)
        assert len(found) == len(wanted)

    @pytest.mark.parametrize(
        "options", [{"do_lower_case": False}, {"strip_accents": True}, {"tokenize_chinese_chars": False}], ids=str
    )
    def test_options(self, bert, options):
        save_tokenizer(bert, **options)
        assert_same_answers(read_classifier(bert), load_classifier(bert))


def numbers(explanation: Explanation, folder) -> list[float | str | None]:
    """All that is saved of an explanation, in one list."""

    def leaves(value):
        if isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                yield from leaves(part)
        else:
            yield value

    return list(leaves(json.loads(explanation.save(folder / "one.json").read_text())))


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"passes": 16},
        {"target": "neutral", "against": "entailment"},
        {"method": "kernel-shap", "passes": 32},
        {"method": "integrated-gradients"},
        {"method": "leave-one-out"},
    ],
    ids=str,
)
def test_the_same_explanations(small, tmp_path, call):
    found, wanted = (numbers(Explainer(*each)(FIRST[0], SECOND[0], **call), tmp_path) for each in small)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one == (pytest.approx(other, rel=1e-4, abs=1e-6) if isinstance(other, float) else other)


def test_a_game_of_another_model_is_known_as_such(small, tmp_path):
    (model, tokenizer), _ = small
    Explainer(model, tokenizer).grounded.head.save(tmp_path)
    changed = read_classifier("small", "cpu")[0]
    with torch.no_grad():
        changed.classifier[1].weight.add_(1)
    assert Explainer(model, tokenizer, game=tmp_path).grounded is not None
    with pytest.raises(ValueError, match="made for another model"):
        Explainer(changed, tokenizer, game=tmp_path)


def change(folder, name, **options):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | options))


def spoil_tokens(folder):
    stored = json.loads((folder / "tokenizer.json").read_text())
    stored["added_tokens"].append(stored["added_tokens"][0] | {"id": 19, "content": "new"})
    (folder / "tokenizer.json").write_text(json.dumps(stored))


def drop_precision(folder):
    options = json.loads((folder / "config.json").read_text())
    del options["dtype"]
    (folder / "config.json").write_text(json.dumps(options))


def store_integers(folder):
    weights = load_file(folder / "model.safetensors")
    save_file({name: value.int() for name, value in weights.items()}, folder / "model.safetensors")


def drop_a_weight(folder):
    weights = load_file(folder / "model.safetensors")
    weights.pop("classifier.bias")
    save_file(weights, folder / "model.safetensors")


LEFT = {
    "another architecture": lambda folder: change(folder, "config.json", model_type="roberta"),
    "an unknown option": lambda folder: change(folder, "config.json", rope_theta=1),
    "code of its own": lambda folder: change(folder, "config.json", auto_map={"AutoModel": "own.Own"}),
    "quantised": lambda folder: change(folder, "config.json", quantization_config={}),
    "another activation": lambda folder: change(folder, "config.json", hidden_act="relu"),
    "another precision": lambda folder: change(folder, "config.json", dtype="bfloat16"),
    "no precision": drop_precision,
    "too many layers": lambda folder: change(folder, "config.json", num_hidden_layers=10**6),
    "too large a vocabulary": lambda folder: change(folder, "config.json", vocab_size=10**6),
    "too few tokens": lambda folder: change(folder, "config.json", vocab_size=10),
    "a width that heads do not share": lambda folder: change(folder, "config.json", num_attention_heads=5),
    "labels that are not counted": lambda folder: change(folder, "config.json", id2label={"1": "a", "2": "b"}),
    "another token for padding": lambda folder: change(folder, "config.json", pad_token_id=3),
    "no JSON": lambda folder: (folder / "config.json").write_text("{"),
    "no object": lambda folder: (folder / "tokenizer.json").write_text("[]"),
    "another tokenizer": lambda folder: change(folder, "tokenizer_config.json", tokenizer_class="RobertaTokenizer"),
    "an option of the tokenizer": lambda folder: change(folder, "tokenizer_config.json", split_special_tokens=True),
    "a tokenizer of two minds": lambda folder: change(folder, "tokenizer_config.json", do_lower_case=False),
    "new tokens": spoil_tokens,
    "integers": store_integers,
    "a missing weight": drop_a_weight,
    "damaged weights": lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "an adapter": lambda folder: (folder / "adapter_config.json").write_text("{}"),
    "an older vocabulary": lambda folder: (folder / "vocab.txt").write_text("a\n"),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_to_transformers(bert, name):
    assert read_classifier(bert, "cpu") is not None
    LEFT[name](bert)
    assert read_classifier(bert, "cpu") is None


def test_names_on_the_hub_are_left_to_transformers():
    assert read_classifier("someone/model", "cpu") is None


def test_a_device_that_is_not_here():
    with pytest.raises(ValueError, match="device must be one of this machine's"):
        read_classifier("small", "nonsense")
