"""A game head knows its classifier again: in another precision, in an adapter's wrapper, and no other."""

import random

import peft
import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer.explain import Explainer
from spinformer.models.game_head import GameHead
from spinformer.models.identity import probe_states, same_model, save_probe, weights_digest
from spinformer.models.loading import load_classifier
from tests import tiny
from tests.tiny import WORDS, bert, tokenizer

TEXT = "the man sleeps outside"


def classifier(seed=0):
    torch.manual_seed(seed)
    return BertForSequenceClassification(bert(num_labels=3)).eval()


def texts(count):
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 6))) for _ in range(count)]


def ground(model, folder):
    options = {"epochs": 1, "subsets": 1, "batch_size": 16, "dim": 16, "hidden": 16, "readout": 16}
    return Explainer(model, tokenizer()).ground(texts(40), folder, **options)


@pytest.fixture(scope="module")
def grounded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grounded")
    model = classifier()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder, ground(model, folder)


def test_in_bfloat16(grounded):
    """The game is found, and its values are those of float32 to the precision of bfloat16."""
    folder, explainer = grounded
    model = BertForSequenceClassification.from_pretrained(folder, dtype=torch.bfloat16)
    assert weights_digest(model) != explainer.grounded.head.config.model
    found = Explainer(model, tokenizer())
    assert found.game_error is None
    explanation = found(TEXT)
    assert explanation.method == "shapley"
    assert explanation.importance == pytest.approx(explainer(TEXT).importance, abs=0.02)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_stored_in_half_precision(grounded, tmp_path, dtype):
    """On a CPU such weights are read as float32, which is many times faster there; the numbers are the stored ones."""
    folder, _ = grounded
    half = BertForSequenceClassification.from_pretrained(folder, dtype=dtype)
    half.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    model, _ = load_classifier(tmp_path, device="cpu")
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    for name, weight in half.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight.float()), name


def test_stored_in_double_precision(grounded, tmp_path):
    """It is read as it is."""
    folder, _ = grounded
    BertForSequenceClassification.from_pretrained(folder, dtype=torch.float64).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert load_classifier(tmp_path, device="cpu")[0].dtype == torch.float64


def test_another_model_is_refused(grounded):
    folder, explainer = grounded
    with pytest.raises(ValueError, match="made for another model"):
        GameHead.load(folder, classifier(1))
    near = classifier()
    with torch.no_grad():
        for weight in near.parameters():  # as a training further on would leave them
            weight.add_(0.1 * weight.std(correction=0) * torch.randn(weight.shape))
    with pytest.raises(ValueError, match="made for another model"):
        GameHead.load(folder, near)
    assert explainer.grounded.head.probe is not None


def test_probe(tmp_path):
    model = classifier()
    save_probe(tmp_path, probe_states(model))
    assert same_model(model, "another digest", tmp_path)
    assert not same_model(classifier(1), "another digest", tmp_path)
    (tmp_path / "probe.safetensors").write_bytes(b"damaged")
    assert not same_model(model, "another digest", tmp_path)
    assert same_model(model, weights_digest(model), tmp_path)


def test_the_probe_is_kept_where_the_game_goes(grounded, tmp_path):
    folder, _ = grounded
    head = GameHead.load(folder, classifier())
    head.save(tmp_path)
    assert (tmp_path / "game" / "probe.safetensors").read_bytes() == (
        folder / "game" / "probe.safetensors"
    ).read_bytes()


class TestAdapters:
    """LoRA, by peft."""

    @pytest.fixture
    def adapted(self):
        config = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
        model = peft.get_peft_model(classifier(), config).eval()
        torch.manual_seed(5)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "lora_B" in name:
                    weight.normal_(std=0.5)
        return model

    def test_explained_and_grounded(self, adapted, tmp_path):
        explainer = ground(adapted, tmp_path)
        merged = Explainer(adapted.merge_and_unload(), tokenizer(), game=tmp_path)
        assert merged(TEXT).importance == pytest.approx(explainer(TEXT).importance, abs=1e-4)

    def test_a_game_of_the_merged_model_serves_the_wrapped_one(self, tmp_path):
        config = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
        wrapped = peft.get_peft_model(classifier(), config).eval()  # whose adapter does nothing yet
        explainer = ground(classifier(), tmp_path)
        found = Explainer(wrapped, tokenizer(), game=tmp_path)
        assert found(TEXT).importance == pytest.approx(explainer(TEXT).importance, abs=1e-4)


class Int8(torch.Tensor):
    """A weight as int8 with a scale for each row, as libraries of quantisation keep it; computed with as float32."""

    @staticmethod
    def __new__(cls, numbers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype)

    def __init__(self, numbers, scale):
        self.numbers, self.scale = numbers, scale

    def __tensor_flatten__(self):
        return ["numbers", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return cls(args[0].numbers, args[0].scale)
        plain = [each.numbers * each.scale if isinstance(each, cls) else each for each in args]
        return function(*plain, **kwargs or {})


def quantised(model):
    for module in model.bert.encoder.modules():
        if isinstance(module, torch.nn.Linear):
            scale = module.weight.detach().abs().amax(1, keepdim=True) / 127
            weight = Int8((module.weight.detach() / scale).round().to(torch.int8), scale)
            module.weight = torch.nn.Parameter(weight, requires_grad=False)
    return model


def test_quantised_weights_are_grounded_and_known_again(tmp_path):
    pairs = [(row["premise"], row["hypothesis"]) for row in tiny.rows(32)]
    small = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "batch_size": 8, "epochs": 1}
    model = quantised(tiny.nli_classifier())
    found = Explainer(model, tokenizer()).ground(pairs, tmp_path / "int8", **small)(*pairs[0])
    assert found.method == "shapley"
    again = Explainer(quantised(tiny.nli_classifier()), tokenizer(), game=tmp_path / "int8")
    assert again(*pairs[0]) == found
    Explainer(tiny.nli_classifier(), tokenizer()).ground(pairs, tmp_path / "float", **small)
    assert Explainer(model, tokenizer(), game=tmp_path / "float")(*pairs[0]).method == "shapley"  # close to its states
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.weight.numbers.neg_()
    assert weights_digest(model) != weights_digest(quantised(tiny.nli_classifier()))


def test_entries_that_are_no_tensors():
    """As torch's own dynamically quantised layers have them."""

    class Packed(torch.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def state_dict(self):
            return {"packed": (torch.ones(2), None), "dtype": torch.qint8, "scale": self.number}

    assert weights_digest(Packed(0.5)) == weights_digest(Packed(0.5))
    assert weights_digest(Packed(0.5)) != weights_digest(Packed(0.25))
