"""Explanations of a corpus: every row once, whatever the format, the stops and the number of processes."""

import csv
import json
import pickle
import random

import pyarrow.parquet
import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer._base.choices import FORMATS
from spinformer.cli import main
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.explain import Explainer
from spinformer.explain.corpus import PART, explain_corpus
from spinformer.explain.exchange import ROW
from spinformer.explain.rows import load_explanations
from tests.killed import killed_then
from tests.tiny import WORDS, bert, tokenizer

COUNT = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    BertForSequenceClassification(bert(num_labels=3)).save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def explainer(folder):
    return Explainer.from_pretrained(folder, "cpu")


@pytest.fixture(scope="module")
def texts():
    draw = random.Random(4)
    return Texts([" ".join(draw.choices(WORDS, k=draw.randint(2, 5))) for _ in range(COUNT)])


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def left_over(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_rows_are_the_explanations(explainer, texts, tmp_path):
    path = explain_corpus(explainer, texts, tmp_path / "out.jsonl", part=7, pairs=2)
    found = rows(path)
    assert [row["row"] for row in found] == list(range(COUNT))
    assert [row["text"] for row in found] == list(texts.first)
    for row in found[::9]:
        explanation = explainer(row["text"])
        assert row["importance"] == pytest.approx(explanation.importance, abs=1e-5)
        assert (row["label"], row["words"]) == (explanation.label, [word.text for word in explanation.words])
        assert len(row["interaction"]) == min(2, len(explanation.pairs))
    assert left_over(tmp_path) == []


def test_every_format_holds_the_same(explainer, texts, tmp_path):
    paths = {end: explain_corpus(explainer, texts, tmp_path / f"out{end}") for end in (".jsonl", ".csv", ".parquet")}
    plain = rows(paths[".jsonl"])
    table = pyarrow.parquet.read_table(paths[".parquet"]).to_pylist()
    with paths[".csv"].open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(plain) == len(table) == len(cells) == COUNT
    for first, second, third in zip(plain, table, cells, strict=True):
        assert list(first) == list(second) == list(third) == list(ROW)
        assert {**second, "probabilities": dict(second["probabilities"])} == first
        assert json.loads(third["importance"]) == first["importance"]
        assert third["text"] == first["text"]


def test_a_stopped_run_goes_on(explainer, texts, tmp_path, monkeypatch):
    whole = explain_corpus(explainer, texts, tmp_path / "whole.jsonl", part=6)
    real, calls = Explainer.__call__, []

    def stop(self, text, *args, **options):
        calls.append(len(text))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, text, *args, **options)

    monkeypatch.setattr(Explainer, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        explain_corpus(explainer, texts, tmp_path / "out.jsonl", part=6)
    assert not (tmp_path / "out.jsonl").exists()
    assert explain_corpus(explainer, texts, tmp_path / "out.jsonl", part=6) is not None
    assert calls == [6] * 6  # two parts, the one that was stopped, and the three that were left
    assert (tmp_path / "out.jsonl").read_bytes() == whole.read_bytes()


def test_other_options_are_another_run(explainer, texts, tmp_path, monkeypatch):
    """Parts of a stopped run are not mixed with those of other texts, models or options."""
    explain_corpus(explainer, texts, tmp_path / "out.jsonl", part=10, shard=(0, 2))
    path = explain_corpus(explainer, texts, tmp_path / "out.jsonl", part=10, method="leave-one-out")
    assert {row["method"] for row in rows(path)} == {"leave-one-out"}


def test_processes_share_the_parts(explainer, texts, tmp_path):
    alone = explain_corpus(explainer, texts, tmp_path / "alone.parquet", part=4)
    assert explain_corpus(explainer, texts, tmp_path / "shared.parquet", part=4, shard=(1, 2)) is None
    shared = explain_corpus(explainer, texts, tmp_path / "shared.parquet", part=4, shard=(0, 2))
    assert shared.read_bytes() == alone.read_bytes()
    assert left_over(tmp_path) == []


def test_bad_input(explainer, texts, tmp_path):
    with pytest.raises(ValueError, match=r"ends in .jsonl, .csv, .parquet; got"):
        explain_corpus(explainer, texts, tmp_path / "out.txt")
    with pytest.raises(ValueError, match="has no texts"):
        explain_corpus(explainer, Texts([]), tmp_path / "out.jsonl")
    with pytest.raises(ValueError, match="shard must be"):
        explain_corpus(explainer, texts, tmp_path / "out.jsonl", shard=(2, 2))


def test_the_file_of_the_texts_is_not_overwritten(explainer, tmp_path):
    """Not by another spelling of its path either, nor by a link."""
    source, link = tmp_path / "in.jsonl", tmp_path / "link.jsonl"
    source.write_text('{"text": "a man runs"}\n')
    link.symlink_to(source)
    read = load_texts(source, labelled=False)
    for output in (source, link, tmp_path / "." / ".." / tmp_path.name / "in.jsonl"):
        with pytest.raises(ValueError, match="output must not be a file that the texts were read from"):
            explain_corpus(explainer, read, output)
    assert source.read_text() == '{"text": "a man runs"}\n'
    assert explain_corpus(explainer, read, tmp_path / "out.jsonl") is not None
    assert explain_corpus(explainer, read, tmp_path / "out.jsonl") is not None


def test_a_run_that_explains_nothing_leaves_nothing(explainer, texts, tmp_path):
    for call in ({"target": "nope"}, {"method": "kernel-shap", "passes": 1}):
        with pytest.raises(ValueError, match="must be"):
            explain_corpus(explainer, texts, tmp_path / "new" / "out.jsonl", **call)
    assert explain_corpus(explainer, texts.select([0, 1]), tmp_path / "new" / "out.jsonl", shard=(1, 2)) is None
    assert not list(tmp_path.iterdir())


def test_an_explainer_survives_pickling(explainer):
    again = pickle.loads(pickle.dumps(explainer))
    assert again("the man sleeps").importance == explainer("the man sleeps").importance


class TestCommand:
    def test_from_file_to_file(self, folder, texts, tmp_path, capsys):
        source = tmp_path / "texts.jsonl"
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts.first))
        assert main(["explain", str(folder), str(source), "--output", str(tmp_path / "out.csv"), "--pairs", "1"]) == 0
        assert f"{COUNT} explanations" in capsys.readouterr().out
        with (tmp_path / "out.csv").open(newline="") as file:
            assert [row["text"] for row in csv.DictReader(file)] == list(texts.first)

    @pytest.mark.parametrize("end", FORMATS)
    def test_a_row_of_one_text(self, folder, tmp_path, end, capsys):
        path = tmp_path / f"one{end}"
        words = ["--method", "leave-one-out", "--pairs", "1", "--device", "cpu", "--output", str(path)]
        assert main(["explain", str(folder), "the man sleeps", *words]) == 0
        assert f"saved as {path}" in capsys.readouterr().out
        (explained,) = load_explanations(path)
        assert explained.texts == ("the man sleeps",)

    def test_a_page_on_all_texts(self, folder, texts, tmp_path, capsys):
        """From the rows of --output, and without it; a command that cannot write it says so before any work."""
        source, page = tmp_path / "texts.jsonl", tmp_path / "page.html"
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts.first[:8]))
        words = ["explain", str(folder), str(source), "--method", "leave-one-out", "--overview"]
        assert main([*words, str(page), "--output", str(tmp_path / "out.parquet")]) == 0
        from_rows = page.read_text()
        assert main([*words, str(page)]) == 0
        assert page.read_text() == from_rows
        assert "8 explanations of" in capsys.readouterr().out
        assert main([*words, str(tmp_path / "page.txt")]) == 2
        assert "--overview must name a file that ends in .html" in capsys.readouterr().err
        assert main(["explain", str(folder), "the man", "--overview", str(page)]) == 2
        assert "--overview is of the texts of a file" in capsys.readouterr().err

    def test_a_report_does_not_go_with_it(self, folder, texts, tmp_path, capsys):
        source = tmp_path / "texts.jsonl"
        source.write_text(json.dumps({"text": texts.first[0]}) + "\n")
        words = ["--output", str(tmp_path / "out.csv"), "--html", str(tmp_path / "x.html")]
        assert main(["explain", str(folder), str(source), *words]) == 2
        assert "a corpus goes to --output alone" in capsys.readouterr().err

    @pytest.mark.slow
    def test_killed_it_goes_on_and_every_row_is_there_once(self, folder, tmp_path):
        """SIGKILL after the first part, at a moment drawn by a seed."""
        draw, count = random.Random(9), PART[1] + 144
        source, out = tmp_path / "texts.jsonl", tmp_path / "out.jsonl"
        lines = [" ".join(draw.choices(WORDS, k=3)) for _ in range(count)]
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in lines))
        words = ["explain", folder, source, "--output", out, "--method", "leave-one-out"]
        parts = ".out.jsonl.parts-*/*.jsonl"
        killed_then(words, tmp_path, parts, draw.uniform(0, 0.3), [words])
        found = rows(out)
        assert [row["row"] for row in found] == list(range(count))
        assert [row["text"] for row in found] == lines
