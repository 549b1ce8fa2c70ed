"""Small classifiers of every architecture: made, trained until they classify, loaded as others load them, grounded."""

import json
import random

import pytest
import torch

from research.experiments.architectures import (
    ARCHITECTURES,
    SPECIAL,
    TEACHER_WEIGHT,
    Lessons,
    fit,
    make_model,
    make_tokenizer,
    start_from_vectors,
    targets,
    teacher_answers,
    train_architecture,
)
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.models.baselines.vectors import WordVectors
from spinformer.models.loading import load_classifier
from spinformer.models.predict import predict

SIGNS = (("dull", "awful", "poor"), ("fine", "lovely", "great"))
FILLERS = ["a", "the", "film", "plot", "of", "and", "with", "it", "is", "actors", "scenes", "music", "very", "quite"]


def reviews(count, seed=0):
    """Texts in which one word tells the class."""
    drawn = random.Random(seed)
    labels = [row % 2 for row in range(count)]
    rows = []
    for label in labels:
        words = drawn.choices(FILLERS, k=drawn.randint(3, 6))
        words.insert(drawn.randint(0, len(words)), drawn.choice(SIGNS[label]))
        rows.append(" ".join(words))
    return Texts(rows, labels=labels, names=("negative", "positive"))


def accuracy(model, tokenizer, texts):
    answers = predict(model, tokenizer, texts, progress=False).logits.argmax(-1)
    return float((answers == torch.tensor(texts.labels)).double().mean())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_is_made_and_learns(name):
    texts = reviews(16)
    tokenizer = make_tokenizer(ARCHITECTURES[name], texts.first, 300)
    model = make_model(ARCHITECTURES[name], tokenizer, texts.names)
    assert model.config.id2label == {0: "negative", 1: "positive"}
    before, state = torch.get_rng_state(), [parameter.clone() for parameter in model.parameters()]
    fit(model, tokenizer, texts, Lessons(), epochs=2, batch_size=8, rate=1e-3, seed=0, device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    assert not all(torch.equal(*pair) for pair in zip(state, model.parameters(), strict=True))
    assert torch.isfinite(predict(model, tokenizer, texts, progress=False).logits).all()


def test_it_finds_the_word_that_tells():
    texts, own = reviews(128), ARCHITECTURES["distilbert"]
    tokenizer = make_tokenizer(own, texts.first, 300)
    model = make_model(own, tokenizer, texts.names)
    fit(model, tokenizer, texts, Lessons(), epochs=8, batch_size=32, rate=2e-3, seed=0, device="cpu")
    assert accuracy(model, tokenizer, reviews(64, seed=1)) >= 0.9


def test_saved_it_loads_as_any_classifier_and_is_the_same_again(tmp_path):
    texts = reviews(64)
    lessons = Lessons(vectors_of(["film", "dull"]), torch.full((64, 2), 0.5))
    for folder in ("one", "two"):
        options = {"epochs": 1, "batch_size": 32, "rate": 1e-3, "seed": 3, "device": "cpu"}
        train_architecture("gpt2", texts, tmp_path / folder, lessons, **options)
    one, two = (load_classifier(tmp_path / folder) for folder in ("one", "two"))
    first, second = (predict(*loaded, texts, progress=False).logits for loaded in (one, two))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def vectors_of(words, dim=5):
    return WordVectors(list(words), torch.randn(len(words), dim, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(("name", "mark"), [("bert", ""), ("gpt2", "Ġ"), ("albert", "▁")])
def test_a_token_that_is_a_word_starts_from_its_vector(name, mark):
    texts = reviews(64)
    tokenizer = make_tokenizer(ARCHITECTURES[name], texts.first, 400)
    model = make_model(ARCHITECTURES[name], tokenizer, texts.names)
    weight = model.get_input_embeddings().weight
    before = weight.detach().clone()
    words = ["lovely", "zebra", "film", "[MASK]", "great"]
    vectors = vectors_of(words)
    assert start_from_vectors(model, tokenizer, vectors) == 3
    expected = before.clone()
    for word in ("lovely", "film", "great"):
        row = vectors.vectors[words.index(word)]
        expected[tokenizer.convert_tokens_to_ids(mark + word)] = torch.nn.functional.pad(row, (0, 128 - 5))
    torch.testing.assert_close(weight.detach(), expected, rtol=0, atol=0)
    assert torch.equal(weight[: len(SPECIAL)], before[: len(SPECIAL)])


def test_vectors_wider_than_the_model_are_refused():
    texts = reviews(16)
    tokenizer = make_tokenizer(ARCHITECTURES["bert"], texts.first, 300)
    model = make_model(ARCHITECTURES["bert"], tokenizer, texts.names)
    with pytest.raises(ValueError, match="at most 128 dimensions; got 200"):
        start_from_vectors(model, tokenizer, vectors_of(["film"], 200))


def test_targets_are_labels_mixed_with_the_answers_of_a_teacher():
    texts = Texts(["good", "bad"], labels=[1, 0], names=("negative", "positive"))
    assert targets(texts, Lessons()).tolist() == [[0, 1], [1, 0]]
    answers = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
    expected = (1 - TEACHER_WEIGHT) * torch.tensor([[0.0, 1.0], [1.0, 0.0]]) + TEACHER_WEIGHT * answers
    torch.testing.assert_close(targets(texts, Lessons(answers=answers)), expected)
    more = torch.tensor([[0.9, 0.1]])
    found = targets(texts, Lessons(answers=answers, more=("so so",), more_answers=more))
    torch.testing.assert_close(found, torch.cat([expected, more]))


def test_the_answers_of_a_teacher_are_in_the_order_of_the_names(tmp_path):
    texts = reviews(8)
    tokenizer = make_tokenizer(ARCHITECTURES["distilbert"], texts.first, 300)
    model = make_model(ARCHITECTURES["distilbert"], tokenizer, ("positive", "negative")).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    expected = predict(model, tokenizer, texts, progress=False).logits.softmax(-1).flip(-1)
    torch.testing.assert_close(teacher_answers(tmp_path, texts, texts.names, "cpu"), expected)
    with pytest.raises(ValueError, match="expected a teacher of the classes no, yes; got positive, negative"):
        teacher_answers(tmp_path, texts, ("no", "yes"), "cpu")


def test_the_command_trains_grounds_and_measures_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for file, count in (("train", 96), ("test", 24)):
        texts = reviews(count, seed=count)
        rows = zip(texts.first, texts.labels, strict=True)
        lines = (json.dumps({"text": text, "label": texts.names[label]}) for text, label in rows)
        (tmp_path / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    words = ["reproduce", "architectures", "--train", "train.jsonl", "--test", "test.jsonl", "--only", "distilbert"]
    words += ["--epochs", "2", "--ground-epochs", "1", "--batch-size", "32", "--count", "4"]
    words += ["--results", "results", "--device", "cpu"]
    (tmp_path / "vectors.txt").write_text("film 1 -2 3\nlovely 0.5 0.25 4\n")
    words += ["--vectors", "vectors.txt"]
    assert main(words) == 0
    assert "distilbert" in capsys.readouterr().out
    record = records.read("architectures", tmp_path / "results")
    assert record["config"]["vectors"] == "vectors.txt"
    assert record["data"]["vectors.txt"] == sha256(tmp_path / "vectors.txt")
    outcome = record["outcome"]["architectures"]["distilbert"]
    assert 0 <= outcome["accuracy"] <= 1
    assert outcome["r2"] == outcome["fit"]["pooled"]
    assert outcome["faithfulness"]["texts"] == 4
    made = (tmp_path / "runs/architectures/distilbert/model.safetensors").stat().st_mtime_ns
    assert main(words) == 0
    assert (tmp_path / "runs/architectures/distilbert/model.safetensors").stat().st_mtime_ns == made


def test_pairs_are_refused(tmp_path, capsys):
    assert main(["reproduce", "architectures", "--train", "sample:dev", "--test", "sample:dev"]) == 2
    assert "expected single texts with labels" in capsys.readouterr().err
