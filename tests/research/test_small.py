"""The small classifier's making, on a tiny one: what the smaller copy keeps, and every step to the finished folder."""

import json

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

pytest.importorskip("transformers")

from transformers import PreTrainedTokenizerFast

from research.experiments import nli_small
from research.experiments.nli_small import Plan, Variant, choose, folder_bytes, make_variant, make_variants, prepare
from research.experiments.small_card import write_card
from research.experiments.smaller import kept_pieces, smaller_copy
from research.reports import nli
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer.cli import main
from spinformer.models import GameHead, NeuroGameForSequenceClassification, load_classifier
from spinformer.models.rounding import are_rounded
from tests.tiny import NLI, WORDS, bert, rows, save_encoder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = [*SPECIAL[:1], *LETTERS, *(f"##{letter}" for letter in LETTERS), "é", "##é", *SPECIAL[1:], *WORDS[1:]]
TEXTS = ["a man runs", "the dog sleeps outside", "a dog eats", "a dog"]


def word_pieces() -> PreTrainedTokenizerFast:
    """A tokenizer of word pieces in which special tokens are not the first, as in BERT."""
    ids = {piece: place for place, piece in enumerate(PIECES)}
    own = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    own.normalizer, own.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    named = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    return PreTrainedTokenizerFast(tokenizer_object=own, model_max_length=64, **named)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    save_encoder(folder / "encoder", bert(vocab_size=len(PIECES), num_hidden_layers=3, max_position_embeddings=64))
    word_pieces().save_pretrained(folder / "encoder")
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(folder / "encoder", labels=NLI)
    model.save_pretrained(folder / "larger")
    word_pieces().save_pretrained(folder / "larger")
    return folder / "larger"


class TestSmallerCopy:
    def test_kept_pieces(self):
        letters = {*LETTERS, *(f"##{letter}" for letter in LETTERS)}
        kept = kept_pieces(word_pieces(), TEXTS, 60)
        assert kept[:5] == SPECIAL
        assert letters <= set(kept)  # every word can still be read
        assert len(kept) == len(set(kept)) == 60
        assert set(kept) - letters - set(SPECIAL) == {"dog", "man", "eats"}  # the most frequent, then by name
        assert "é" in kept_pieces(word_pieces(), ["é"], 60)
        for size in (56, len(PIECES) + 1):
            with pytest.raises(ValueError, match=f"vocabulary must be from 57, the characters, to 72; got {size}"):
                kept_pieces(word_pieces(), TEXTS, size)

    def test_with_everything_kept_it_answers_the_same(self, teacher, tmp_path):
        smaller_copy(teacher, tmp_path, TEXTS, layers=(0, 1, 2), vocabulary=len(PIECES), positions=64)
        (larger, words), (copy, same) = (load_classifier(folder, device="cpu") for folder in (teacher, tmp_path))
        pair = ("a man runs outside", "the dog is red")
        assert words.tokenize(pair[0]) == same.tokenize(pair[0])
        assert same.get_vocab()["[CLS]"] == 2
        with torch.no_grad():
            one, other = (
                model(**own(*pair, return_tensors="pt")).logits for model, own in ((larger, words), (copy, same))
            )
        torch.testing.assert_close(one, other)

    def test_layers_and_pieces(self, teacher, tmp_path):
        smaller_copy(teacher, tmp_path, TEXTS, layers=(0, 2), vocabulary=60, positions=32)
        copy, words = load_classifier(tmp_path, device="cpu")
        larger, before = load_classifier(teacher, device="cpu")
        assert (len(words), words.model_max_length, copy.config.encoder.num_hidden_layers) == (60, 32, 2)
        assert words.tokenize("a dog runs") == ["a", "dog", "r", "##u", "##n", "##s"]
        table, former = (model.get_input_embeddings().weight for model in (copy, larger))
        for piece, row in words.get_vocab().items():
            assert torch.equal(table[row], former[before.get_vocab()[piece]])
        for place, layer in enumerate((0, 2)):
            one, other = copy.model.encoder.encoder.layer[place], larger.model.encoder.encoder.layer[layer]
            assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())
        assert set(copy.config.special_ids) == {0, 1, 2, 3, 4}
        with pytest.raises(ValueError, match=r"layers must be rising numbers from 0 to 2; got \[2, 0\]"):
            smaller_copy(teacher, tmp_path, TEXTS, layers=(2, 0), vocabulary=60, positions=32)


def test_every_step(teacher, tmp_path, monkeypatch, capsys):
    """Copies, answers, training, rounding, game, scores and card; then everything is on file."""
    variant = Variant((0, 2), {"heads": 2, "dim": 8, "hidden": 16, "readout": 16})
    monkeypatch.setattr(nli_small, "VARIANTS", {"two": variant})
    monkeypatch.setattr(nli_small, "measure_misfit", lambda *args, **options: _few_passes(*args, **options))
    data, runs = tmp_path / "data", tmp_path / "runs"
    data.mkdir()
    for number, name in enumerate(("snli_train", "mnli_train", *nli_small.SETS)):
        lines = (json.dumps(row) + "\n" for row in rows(60, seed=number, longest=5))
        (data / f"{name}.jsonl").write_text("".join(lines))
        _gzip(data / f"{name}.jsonl")
    change = {"steps": 3, "batch_size": 32, "views": 2, "max_length": 32, "save_steps": 0}
    plan = Plan(teacher, data, runs, 60, change, {"epochs": 1, "batch_size": 16, "max_length": 32})
    runs.mkdir()
    prepare(["two"], plan)
    make_variant("two", plan)
    record = records.read("two", runs)
    folder, outcome = plan.finished("two"), record["outcome"]
    assert outcome["bytes"] == folder_bytes(folder)
    assert set(outcome["scores"]) == set(nli_small.SETS)
    assert outcome["scores"]["snli_test"]["count"] == 60
    assert set(record["data"]) == {f"{name}.jsonl.gz" for name in ("snli_train", "mnli_train", *nli_small.SETS)}
    assert are_rounded([folder / "model.safetensors"])
    assert are_rounded([folder / "game" / "game.safetensors"])
    model, _ = load_classifier(folder, device="cpu")
    assert GameHead.load(folder, model).misfit.fit == pytest.approx(outcome["fit"])
    assert not (folder / "game" / "run.json").exists()  # what belongs to the run stays there
    assert make_variants(["two"], plan) == {"two": record}  # nothing is made again
    assert "two: snli_dev" in capsys.readouterr().out
    card = write_card(tmp_path, record).read_text()
    assert f"| snli_test | 60 | {100 * outcome['scores']['snli_test']['accuracy']:.2f} |" in card
    assert "an encoder of 2 layers" in card
    result = {"outcome": {"chosen": "two", "variants": {"two": outcome}}, "config": {"two": record["config"]}}
    assert nli.small(result).splitlines()[2].startswith(f"| **1, 3** | 0.0M | {outcome['bytes'] / 1e6:.1f} |")
    renewed = _with_a_new_game(record, folder, plan, tmp_path)
    assert renewed["config"]["two"]["grounding"]["epochs"] == 2
    told = renewed["outcome"]["variants"]["two"]
    assert {**told, "scores": None} != {**outcome, "scores": None}
    assert told["scores"] == outcome["scores"]
    assert GameHead.load(folder, model).misfit.fit == pytest.approx(told["fit"])
    assert renewed["outcome"]["files"]["game/game.safetensors"] == sha256(folder / "game" / "game.safetensors")
    assert f"explains {told['fit']:.1%} of" in " ".join((folder / "README.md").read_text().split())
    larger = {"outcome": {"bytes": 13_000_000, "scores": {"snli_dev": {"accuracy": 2.0}}}}
    assert choose({"two": record, "large": larger}) == "two"
    with pytest.raises(ValueError, match="no variant has at most 12,000,000 bytes"):
        choose({"large": larger})


def _with_a_new_game(record, folder, plan, tmp_path):
    """What `reproduce small --game` writes."""
    outcome = {"chosen": "two", "largest": 1, "files": {}, "variants": {"two": record["outcome"]}}
    given = {"command": "a test", "config": {"two": record["config"]}, "data": record["data"]}
    records.write("nli-small", outcome, directory=tmp_path, **given)
    command = ["reproduce", "small", "--game", "--data", str(plan.data), "--teacher", str(plan.teacher)]
    command += ["--output", str(folder), "--results", str(tmp_path), "--runs", str(tmp_path / "again")]
    command += ["--change", json.dumps(plan.change), "--ground", json.dumps({**plan.ground, "epochs": 2})]
    before = sha256(folder / "model.safetensors")
    assert main(command) == 0
    assert sha256(folder / "model.safetensors") == before
    return records.read("nli-small", tmp_path)


def _few_passes(*args, **options):
    from spinformer.training.calibration import measure_misfit

    return measure_misfit(*args, passes=16, **options)


def _gzip(path):
    import gzip

    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
