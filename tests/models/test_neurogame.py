"""The NeuroGame classifier and its baselines: every head, many encoders, padding, files, and Hugging Face's ways in."""

import json

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("transformers")

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, pipeline

from spinformer.models.lengths import check_max_length
from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification, NeuroGameModel
from spinformer.models.pooling import POOLING_HEADS, FirstToken, Mean, SoftmaxAttention
from spinformer.models.token_inputs import is_any_of
from tests.tiny import NLI, WORDS, save_encoder, tokenizer

PAIRS = [("a man runs", "the man sleeps not"), ("two red dog", "a cat"), ("the woman eats outside inside", "a a a dog")]
# Every head with the options of its game; the paper's where its iteration converges.
OTHERS = [head for head in POOLING_HEADS if head != "neurogame"]
ALL = [("neurogame", {}), ("neurogame", {"preset": "paper", "temperature": 30.0}), *((head, {}) for head in OTHERS)]
EVERY_HEAD = pytest.mark.parametrize(("head", "game"), ALL, ids=["neurogame", "paper", *OTHERS])
LABELS = torch.tensor([0, 2, 1])
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
COMMON = {"vocab_size": 4 + len(WORDS), "pad_token_id": 0}
ENCODERS = {
    "bert": SIZES,
    "roberta": {**SIZES, "max_position_embeddings": 130, "type_vocab_size": 1},
    "albert": {**SIZES, "embedding_size": 16},
    "mpnet": {**SIZES, "max_position_embeddings": 130},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "electra": {**SIZES, "embedding_size": 16},
    "modernbert": {**SIZES, "local_attention": 8, "cls_token_id": 2, "sep_token_id": 3},
}
TYPES = ("bert", "albert", "electra")


def inputs(pairs=PAIRS, types=True, **options):
    first, second = zip(*pairs, strict=True)
    return dict(tokenizer(types)(list(first), list(second), padding=True, return_tensors="pt", **options))


def build(encoder, head="neurogame", game=None, **options):
    torch.manual_seed(1)
    return NeuroGameForSequenceClassification.from_encoder(
        str(encoder), labels=NLI, head=head, special_ids=(0, 1, 2, 3), **options, **(game or {})
    ).eval()


def randomise(model):
    """Away from what a fresh head starts with, so that answers differ."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@EVERY_HEAD
def test_every_head(encoder, head, game):
    model = randomise(build(encoder, head, game)).train()
    output = model(**inputs(), labels=LABELS)
    assert output.logits.shape == (3, 3)
    assert output.game is None
    if head != "joint":  # whose loss is the mean of several
        torch.testing.assert_close(output.loss, functional.cross_entropy(output.logits, LABELS))
    output.loss.backward()
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert set(dict(model.named_parameters())) - set(trained) == (
        {"model.pooling.attention.log_temperature"} if game else set()
    )
    for name, parameter in trained.items():
        if name.startswith("game."):  # learns from parts of texts alone (tests/training/test_grounded.py)
            continue
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert float(parameter.grad.abs().max()) > 0 or "key.bias" in name, name  # softmax does not see the keys' bias


@EVERY_HEAD
def test_the_game_comes_on_request_only(encoder, head, game):
    model = build(encoder, head, game)
    batch = inputs()
    with torch.no_grad():
        output = model(**batch, output_game=True)
    assert model.plays == (head in ("neurogame", "spins"))
    if not model.plays:
        assert output.game is None
        return
    shape = (3, 1, batch["input_ids"].shape[1])
    assert output.game.fields.shape == output.game.attention.shape == shape
    assert output.game.couplings.dense().shape == (*shape, shape[-1])
    assert output.game.diagnostics.ess.shape == output.game.diagnostics.residual.shape == (3, 1)
    assert bool(output.game.diagnostics.converged.all())
    assert float((output.game.attention * (batch["attention_mask"][:, None] == 0)).abs().max()) == 0
    with torch.no_grad():
        assert torch.equal(model(**batch).logits, output.logits)
    torch.testing.assert_close(model(**batch).logits, output.logits)  # pairs with gradients are rounded otherwise


@EVERY_HEAD
def test_neither_padding_nor_company_matters(encoder, head, game):
    model = randomise(build(encoder, head, game))
    with torch.no_grad():
        together = model(**inputs()).logits
        assert float(together.std(0).min()) > 1e-3
        near = 1e-5 * max(1.0, float(together.abs().max()))
        for row, pair in enumerate(PAIRS):
            alone = inputs([pair])
            torch.testing.assert_close(model(**alone).logits[0], together[row], rtol=0, atol=near)
            padded = {name: functional.pad(x, (0, 9)) for name, x in alone.items()}
            padded["input_ids"][:, -9:] = 7  # what stands under the mask must not matter either
            torch.testing.assert_close(model(**padded).logits[0], together[row], rtol=0, atol=near)
        turned = model(**inputs(PAIRS[::-1])).logits.flip(0)
        torch.testing.assert_close(turned, together, rtol=0, atol=near)
        one = inputs(PAIRS[:1])
        del one["attention_mask"]
        torch.testing.assert_close(model(**one).logits[0], together[0], rtol=0, atol=near)


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("head", ["neurogame", "cls"])
def test_many_encoders(kind, head, tmp_path):
    config = AutoConfig.for_model(kind, **COMMON, **ENCODERS[kind])
    folder = save_encoder(tmp_path / kind, config, types=kind in TYPES)
    model = build(folder, head, encoder_dropout=0.0).train()
    batch = inputs(types=kind in TYPES)
    assert ("token_type_ids" in batch) == (kind in TYPES)
    own = AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state
    torch.testing.assert_close(model.model(**batch).last_hidden_state, own, rtol=0, atol=1e-5)
    assert model.config.max_position_embeddings == config.max_position_embeddings
    assert not any("pooler" in name for name, _ in model.named_parameters())
    model(**batch, labels=LABELS).loss.backward()
    assert [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None] == []
    model.eval().save_pretrained(tmp_path / "saved")
    loaded = NeuroGameForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert loaded.config.encoder.model_type == kind
    assert str(tmp_path) not in (tmp_path / "saved" / "config.json").read_text()
    assert torch.equal(loaded(**batch).logits, model(**batch).logits)
    base = AutoModel.from_pretrained(tmp_path / "saved").eval()  # of a whole classifier, without its last part
    assert isinstance(base, NeuroGameModel)
    assert torch.equal(base(**batch).pooler_output, model.model(**batch).pooler_output)
    most = base.max_tokens
    assert (most is None) == (kind == "modernbert")
    if most is not None:
        ids = torch.full((1, most + 1), 7)
        model(input_ids=ids[:, :-1])
        with pytest.raises(ValueError, match=rf"at most {most} tokens; got {most + 1}: .* max_length={most}\)"):
            model(input_ids=ids)
        check_max_length(model, None, most)
        with pytest.raises(ValueError, match=f"max_length must be at most {most}"):
            check_max_length(model, None, most + 1)


def test_dropout_of_the_encoder_is_replaced(encoder):
    probabilities = {
        m.p for m in build(encoder, encoder_dropout=0.3).model.encoder.modules() if isinstance(m, nn.Dropout)
    }
    assert probabilities == {0.3}
    probabilities = {m.p for m in build(encoder).model.encoder.modules() if isinstance(m, nn.Dropout)}
    assert probabilities == {0.1}


@EVERY_HEAD
def test_saved_and_loaded_it_is_the_same(encoder, head, game, tmp_path):
    model = randomise(build(encoder, head, game, classifier_layers=2, dropout=0.2, residual=False))
    model.save_pretrained(tmp_path / "saved")
    tokenizer().save_pretrained(tmp_path / "saved")
    batch = inputs()
    wanted = model(**batch).logits
    config = AutoConfig.from_pretrained(tmp_path / "saved")
    assert isinstance(config, NeuroGameConfig)
    assert (config.head, config.game, config.residual, config.classifier_layers) == (head, game, False, 2)
    assert config.id2label == dict(enumerate(NLI))
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert isinstance(loaded, NeuroGameForSequenceClassification)
    assert torch.equal(loaded.eval()(**batch).logits, wanted)
    logits, *_ = loaded(**batch, return_dict=False)
    assert torch.equal(logits, wanted)

    classify = pipeline("text-classification", model=str(tmp_path / "saved"))
    answers = classify([{"text": a, "text_pair": b} for a, b in PAIRS], top_k=None)
    for row, answer in enumerate(answers):
        scores = {item["label"]: item["score"] for item in answer}
        assert [scores[name] for name in NLI] == pytest.approx(wanted.softmax(1)[row].tolist(), abs=1e-5)


def test_the_base_model_alone(encoder, tmp_path):
    model = randomise(build(encoder))
    batch = inputs()
    model.model.save_pretrained(tmp_path / "base")
    loaded = AutoModel.from_pretrained(tmp_path / "base")
    assert isinstance(loaded, NeuroGameModel)
    wanted = model.model(**batch)
    found = loaded.eval()(**batch)
    assert torch.equal(found.pooler_output, wanted.pooler_output)
    assert torch.equal(found.last_hidden_state, wanted.last_hidden_state)
    assert loaded.get_input_embeddings() is loaded.encoder.get_input_embeddings()
    embeds = model.get_input_embeddings()(batch["input_ids"])
    rest = {name: x for name, x in batch.items() if name != "input_ids"}
    torch.testing.assert_close(model(inputs_embeds=embeds, **rest).logits, model(**batch).logits)
    with pytest.raises(ValueError, match="expected input_ids or inputs_embeds; got neither"):
        model(**rest)


def test_half_precision_files_load_in_full(encoder, tmp_path):
    model = randomise(build(encoder))
    wanted = model(**inputs()).logits
    model.half().save_pretrained(tmp_path / "half")
    loaded = NeuroGameForSequenceClassification.from_pretrained(tmp_path / "half", dtype=torch.float32)
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    torch.testing.assert_close(loaded(**inputs()).logits, wanted, rtol=0, atol=0.02)


@torch.no_grad()
def test_special_tokens_stay_out_of_the_game(encoder):
    batch = inputs()
    special = torch.isin(batch["input_ids"], torch.tensor([0, 1, 2, 3]))[:, None]
    outside = build(encoder, game={"special_tokens": False})(**batch, output_game=True).game.attention
    assert float((outside * special).abs().max()) == 0
    assert float(outside[~special].min()) > 0
    inside = build(encoder)(**batch, output_game=True).game.attention
    assert float(inside[special & (batch["attention_mask"][:, None] == 1)].min()) > 0
    by_mask = inputs(return_special_tokens_mask=True)
    again = build(encoder, game={"special_tokens": False})(**by_mask, output_game=True).game.attention
    assert torch.equal(again, outside)


def test_mixup_mixes_the_vectors_of_texts(encoder):
    model, batch = randomise(build(encoder)), inputs()
    order, weight = torch.tensor([2, 0, 1]), torch.tensor(0.3)
    z = model.model(**batch).pooler_output
    wanted = model.classifier(torch.stack([0.3 * z[row] + 0.7 * z[other] for row, other in enumerate(order)]))
    torch.testing.assert_close(model(**batch, mix=(order, weight)).logits, wanted)
    torch.testing.assert_close(model(**batch, mix=(order, torch.tensor(1.0))).logits, model(**batch).logits)


def test_the_residual_is_the_first_token(encoder):
    batch = inputs()
    with_it, without = build(encoder, residual=True), build(encoder, residual=False)
    without.load_state_dict(with_it.state_dict())
    one, other = with_it.model(**batch), without.model(**batch)
    torch.testing.assert_close(one.pooler_output, other.pooler_output + other.last_hidden_state[:, 0])


# The baselines against loops.


def test_poolings_by_hand():
    x = torch.randn(3, 5, 8)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]).bool()
    attention = SoftmaxAttention(8)
    for row in range(3):
        real = [x[row, i] for i in range(5) if mask[row, i]]
        torch.testing.assert_close(Mean()(x, mask)[0][row], sum(real) / len(real))
        assert torch.equal(FirstToken()(x, mask)[0][row], x[row, 0])
        scores = [
            attention.score.weight[0] @ torch.tanh(attention.hidden.weight @ v + attention.hidden.bias) for v in real
        ]
        total = sum(score.exp() for score in scores)
        wanted = sum(score.exp() / total * v for score, v in zip(scores, real, strict=True))
        torch.testing.assert_close(attention(x, mask)[0][row], wanted)
    weights = attention.weights(x, mask).detach()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))
    assert float((weights * ~mask).abs().max()) == 0


def test_the_released_head_is_the_scripts():
    model = NeuroGameForSequenceClassification(
        NeuroGameConfig(encoder={"model_type": "bert", **COMMON, **SIZES}, head="released", num_labels=3)
    )
    count = sum(p.numel() for p in model.classifier.parameters())
    by_hand = (32 * 128 + 128) + (128 * 256 + 256 + 2 * 256) + (256 * 128 + 128 + 2 * 128) + (128 * 3 + 3)
    assert count == by_hand == 71_299
    assert sum(p.numel() for p in model.model.pooling.parameters()) == 0
    kinds = [type(layer).__name__ for layer in model.classifier]
    block = ["Linear", "LayerNorm", "GELU", "Dropout"]
    assert kinds == ["Linear", "Tanh", *block, *block, "Linear"]


# What is refused.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": {"model_type": "t5"}}, "encoder must be an encoder alone; 't5' is an encoder with a decoder"),
        ({"encoder": {"hidden_size": 8}}, "encoder must name its model_type"),
        ({"head": "best"}, "pooling head must be one of 'neurogame', 'cls'.*; got 'best'"),
        ({"layers": [0]}, "option 'layers' was removed; only .* got \\[0\\]. .* is 91dd5b7"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\); got 1.0"),
        ({"classifier_layers": -1}, "classifier_layers must be an integer of at least 0; got -1"),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(ValueError, match=message):
        NeuroGameConfig(**options)


def test_an_encoder_with_a_decoder_is_refused(tmp_path):
    config = AutoConfig.for_model("bart", vocab_size=18, d_model=32, encoder_layers=1, decoder_layers=1)
    config.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'bart' is an encoder with a decoder"):
        build(tmp_path)


def test_labels_are_counted(encoder):
    model = NeuroGameForSequenceClassification.from_encoder(str(encoder), num_labels=2)
    assert model.config.id2label == {0: "LABEL_0", 1: "LABEL_1"}
    assert build(encoder).config.num_labels == len(NLI)
    for labels, count in ((("a", "b"), 4), (("a", "a"), None)):
        with pytest.raises(ValueError, match=f"labels must name num_labels = {count} classes, each once; got "):
            NeuroGameForSequenceClassification.from_encoder(str(encoder), num_labels=count, labels=labels)
    with pytest.raises(TypeError, match=r"unknown option\(s\) dampening"):
        build(encoder, game={"dampening": 1})


@pytest.mark.parametrize("folder", ["missing", "empty", "garbage"])
def test_an_encoder_that_cannot_be_read_is_one_line(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path = tmp_path / folder
    if folder != "missing":
        path.mkdir()
    if folder == "garbage":
        (path / "config.json").write_text(json.dumps({"model_type": "bert", **COMMON, **SIZES}))
        (path / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match=str(path)) as raised:
        build(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("ids", [(), (3,), (0, 1, 2, 3)])
def test_tokens_that_are_special(ids):
    tokens = torch.randint(6, (4, 9))
    assert torch.equal(is_any_of(tokens, ids), torch.isin(tokens, torch.tensor(ids, dtype=torch.long)))


def test_files_with_the_removed_option_layers(encoder, tmp_path):
    model = randomise(build(encoder))
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert "layers" not in config
    (tmp_path / "config.json").write_text(json.dumps({**config, "layers": []}))
    loaded = NeuroGameForSequenceClassification.from_pretrained(tmp_path)
    assert torch.equal(loaded(**inputs()).logits, model(**inputs()).logits)
    (tmp_path / "config.json").write_text(json.dumps({**config, "layers": [0, 3]}))
    with pytest.raises(
        ValueError, match=r"option 'layers' was removed; only .* got \[0, 3\]\. .* is 91dd5b7$"
    ) as raised:
        NeuroGameForSequenceClassification.from_pretrained(tmp_path)
    assert "\n" not in str(raised.value)


def test_hidden_states_come_only_on_request(encoder):
    model = build(encoder)
    assert model(**inputs()).hidden_states is None
    assert len(model(**inputs(), output_hidden_states=True).hidden_states) == 3


def test_options_of_a_layer_that_the_head_does_not_have(encoder):
    with pytest.raises(TypeError, match=r"pooling head 'mean' has no NeuroGame layer to take option\(s\) samples"):
        build(encoder, "mean", {"samples": 3})
