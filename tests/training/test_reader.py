"""A lesson whose views follow another encoder's reading than the student's: the same lesson for all students."""

import shutil

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.training import distil as teaching
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.train import store_teacher_features, train_classifier
from spinformer.training.distil import teacher_features
from tests.tiny import NLI, save_rows, tokenizer
from tests.training.test_parts import texts

USUAL = {"weight": 0.7, "copies": 3, "max_length": 64}


def other(path, head="cls"):
    """A classifier on an encoder whose weights have moved."""
    model = NeuroGameForSequenceClassification.from_encoder(str(path), labels=NLI, head=head)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.fixture
def folders(encoder, tmp_path):
    """A teacher, and a joint classifier whose encoder a student may take over."""
    for name, head in (("teacher", "neurogame"), ("joint", "joint")):
        other(encoder, head).save_pretrained(tmp_path / name)
        tokenizer().save_pretrained(tmp_path / name)
    return tmp_path / "teacher", tmp_path / "joint"


def lessons(folder):
    return sorted(path.name for path in folder.glob("lesson-*"))


def alike(one, two):
    assert one.columns.keys() == two.columns.keys()
    same = all(torch.equal(column, two.columns[name]) for name, column in one.columns.items())
    return same and torch.equal(one.lengths, two.lengths) and torch.equal(one.targets, two.targets)


def test_the_lesson_is_the_readers(encoder, folders, tmp_path, monkeypatch):
    teacher, joint = folders
    student = NeuroGameForSequenceClassification.from_encoder(str(joint), labels=NLI, head="mean")
    reader = NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI, head="cls"), tokenizer()
    by_reader = teacher_features(texts(20), str(teacher), student, tokenizer(), neighbour_model=reader, **USUAL)
    (kept,) = lessons(teacher)

    apart = shutil.copytree(teacher, tmp_path / "apart", ignore=shutil.ignore_patterns("lesson-*"))
    afresh = teacher_features(texts(20), str(apart), *reader, **USUAL)  # a student who has that encoder, asked anew
    assert lessons(apart) == [kept]
    assert alike(by_reader, afresh)

    own = teacher_features(texts(20), str(teacher), student, tokenizer(), **USUAL)
    assert len(lessons(teacher)) == 2
    assert not alike(own, by_reader)  # what is near by its own encoder is not what is near by the other
    assert torch.equal(own.targets[:20], by_reader.targets[:20])  # of the pairs as they are

    def again(*args, **kwargs):
        raise RuntimeError("asked again")

    monkeypatch.setattr(teaching, "predict", again)
    for asking in (student, *(other(joint, head) for head in ("neurogame", "grounded"))):
        assert alike(
            teacher_features(texts(20), str(teacher), asking, tokenizer(), neighbour_model=reader, **USUAL), by_reader
        )
    with torch.no_grad():
        reader[0].get_input_embeddings().weight[5] += 1
    with pytest.raises(RuntimeError, match="asked again"):
        teacher_features(texts(20), str(teacher), student, tokenizer(), neighbour_model=reader, **USUAL)


def test_the_tokens_are_the_students(encoder, folders):
    """A tokenizer of the reader alone decides what is near, never what the student reads."""
    teacher, joint = folders
    student, without_types = other(joint), tokenizer(types=False)
    reader = NeuroGameForSequenceClassification.from_encoder(str(encoder), head="cls"), without_types
    found = teacher_features(texts(20), str(teacher), student, tokenizer(), neighbour_model=reader, **USUAL)
    assert "token_type_ids" in found.columns
    assert len(found) == 60


@pytest.fixture
def recipe(encoder, folders, tmp_path):
    teacher, _ = folders
    data = {"train": str(save_rows(tmp_path / "train.jsonl", 48)), "dev": str(save_rows(tmp_path / "dev.jsonl", 9, 1))}
    return ClassifierRecipe(
        encoder=str(encoder), teacher=str(teacher), views=3, batch_size=16, epochs=1, log_steps=1, head="cls", **data
    )


def test_runs_by_one_reader_share_a_lesson(recipe, encoder, folders, tmp_path):
    teacher, joint = folders
    store_teacher_features(recipe)  # of the encoder itself
    kept = lessons(teacher)
    near = recipe.change(encoder=str(joint), near=str(encoder))
    store_teacher_features(near)
    for head in ("joint", "mean"):
        record = train_classifier(near.change(head=head), tmp_path / head, quiet=True)
        assert record["recipe"]["near"] == str(encoder)
        assert (record["pairs"], record["rows"]) == (48, 144)
    assert lessons(teacher) == kept
    assert len(kept) == 1
    store_teacher_features(near.change(near=None))
    assert len(lessons(teacher)) == 2


def test_a_reader_that_is_none(recipe, tmp_path):
    with pytest.raises(ValueError, match=r"must be a folder, a hub id or one of bert-base.* got 'nothing'"):
        train_classifier(recipe.change(near="nothing"), tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match="near is for views of texts, and there are none; got near 'minilm' and views"):
        recipe.change(near="minilm", views=1)
    assert not (tmp_path / "run" / "recipe.json").exists()
