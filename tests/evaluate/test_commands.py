"""`spinformer evaluate` and `spinformer predict` on a saved model, end to end."""

import gzip
import importlib
import io
import json
import sys

import pytest
import torch

from spinformer._base import records
from spinformer._base.files import sha256
from spinformer.cli import main
from spinformer.data.texts import NLI_LABELS, Texts
from spinformer.evaluate import load_classifier, predict
from tests.evaluate.conftest import bert, pairs

DATA = {
    "snli:test": pairs(),
    "folder/hans.jsonl": Texts(
        pairs().first, pairs().second, [label // 2 for label in pairs().labels], ("entailment", "non-entailment")
    ),
    "stars.csv": Texts(["a man"], None, [0], ("one", "two")),
    "pairs.csv": pairs(3, labelled=False),
    "gap.csv": Texts(["a", ""], ["b", "c"], source="gap.csv"),
}


@pytest.fixture
def asked(monkeypatch):
    """What `load_texts` was asked for; it answers from DATA."""
    calls = []

    def load_texts(source, **options):
        calls.append(options)
        if source not in DATA:
            raise FileNotFoundError(f"no file at {source}")
        return DATA[source]

    importlib.import_module("spinformer.cli.evaluate")  # modules that take `load_texts` at the top take the real one
    monkeypatch.setattr("spinformer.data.sources.load_texts", load_texts)
    return calls


def fails(capsys, words, message):
    capsys.readouterr()  # what saving a model printed
    assert main(list(map(str, words))) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1, shown


def test_evaluate(saved, asked, tmp_path, capsys):
    words = ["evaluate", saved, "snli:test", "folder/hans.jsonl", "snli:test", "--name", "tiny"]
    words += ["--results", tmp_path, "--output", tmp_path / "figures", "--batch-size", "16"]
    assert main(list(map(str, words))) == 0
    shown = capsys.readouterr().out
    record = records.read("tiny", tmp_path)
    assert list(record["outcome"]) == ["snli-test", "folder-hans-jsonl", "snli-test-2"]
    accuracy = record["outcome"]["snli-test"]["scores"]["accuracy"]
    assert f"{accuracy:.2%}" in shown
    for part in ("macro F1", "entailment against all others", "classes matched by name", "contradiction", "precision"):
        assert part in shown
    assert record["data"]["drawn.jsonl"] == "0" * 64
    assert record["data"]["model.safetensors"] == sha256(saved / "model.safetensors")
    assert str(saved.parent) not in json.dumps(record)
    made = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert made[0] == "folder-hans-jsonl-confusion.png"
    assert len(made) == 6
    assert asked[0] == {"names": None, "labelled": True}


def test_evaluate_options(saved, asked, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", saved, "snli:test", "--columns", "s1,s2,gold", "--data-labels", "a,b,c"]
    assert main(list(map(str, words))) == 0
    assert asked[0] == {"names": ["a", "b", "c"], "labelled": True, "first": "s1", "second": "s2", "label": "gold"}
    assert list(tmp_path.iterdir()) == []
    fails(
        capsys, ["evaluate", saved, "snli:test", "--columns", "a"], "--columns must be one or two texts and the label"
    )
    fails(capsys, ["evaluate", saved, "stars.csv"], "the model has the classes entailment, neutral, contradiction")
    fails(capsys, ["evaluate", saved, "nothing.csv"], "no file at nothing.csv")
    fails(capsys, ["evaluate", saved, "snli:test", "--labels", "a,b"], "the model has 3 classes; got 2 label names")
    fails(capsys, ["evaluate", saved, "snli:test", "--device", "tpu9"], "device must be one of this machine's")


def test_models_that_cannot_be_used(tokenizer, asked, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def says(message):
        fails(capsys, ["evaluate", folder, "snli:test"], message)

    folder = tmp_path / "nowhere"
    says(f"expected a folder with a saved model at {folder}; there is nothing")
    folder.write_text("x")
    says("there is a file")
    folder = tmp_path / "model"
    folder.mkdir()
    says("no model could be read from")
    model = bert(("LABEL_0", "LABEL_1", "LABEL_2"))
    model.save_pretrained(folder)
    says("has no tokenizer beside the model")
    tokenizer.save_pretrained(folder)
    says("pass the model's label names")
    model.bert.save_pretrained(folder)
    says("not those of a trained classifier; missing keys: classifier.bias, classifier.weight")
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 128}))
    says("not those of a trained classifier; mismatched keys: ")
    (folder / "config.json").write_text(json.dumps(config))
    whole = (folder / "model.safetensors").read_bytes()
    for damaged in (whole[:1000], whole[:-10], b"", b"\xff" * 100):
        (folder / "model.safetensors").write_bytes(damaged)
        says("no model could be read from")
    (folder / "config.json").write_text("{nonsense")
    says("not a valid JSON file")


def expected(model, tokenizer, texts):
    shares = predict(model, tokenizer, texts, progress=False).logits.double().softmax(1)
    return [{"label": NLI_LABELS[int(row.argmax())], "probabilities": row.tolist()} for row in shares]


def same(lines, wanted):
    answers = [json.loads(line) for line in lines]
    assert [answer["label"] for answer in answers] == [answer["label"] for answer in wanted]
    for answer, other in zip(answers, wanted, strict=True):
        assert list(answer["probabilities"]) == list(NLI_LABELS)
        assert list(answer["probabilities"].values()) == pytest.approx(other["probabilities"], abs=1e-5)


def stdin(monkeypatch, text):
    data = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


@pytest.mark.parametrize("kind", ["tab", "json", "sentences", "pipeline", "capitals", "text"])
def test_predict_standard_input(kind, saved, model, tokenizer, capsys, monkeypatch):
    texts = pairs(20)
    both = list(zip(texts.first, texts.second, strict=True))
    lines = {
        "tab": [f"{a}\t{b}" for a, b in both],
        "json": [json.dumps({"premise": a, "hypothesis": b, "id": 1}) for a, b in both],
        "sentences": [json.dumps({"sentence1": a, "sentence2": b}) for a, b in both],
        "pipeline": [json.dumps({"text": a, "text_pair": b}) for a, b in both],
        "capitals": [json.dumps({"Premise": a, "Hypothesis": b}) for a, b in both],
        "text": [json.dumps({"text": a}) for a, _ in both],
    }[kind]
    stdin(monkeypatch, "\n".join(lines) + "\n" * (1 + 2 * (kind == "json")))  # what is empty at the end is nothing
    assert main(["predict", str(saved), *(["-"] if kind == "tab" else []), "--batch-size", "8"]) == 0
    captured = capsys.readouterr()
    same(captured.out.splitlines(), expected(model, tokenizer, Texts(texts.first) if kind == "text" else texts))
    assert captured.err == ""


def test_predict_answers_while_it_reads(saved, tmp_path, monkeypatch):
    out = tmp_path / "new" / "answers.jsonl"
    seen = []

    class Slow:
        def __init__(self):
            self.buffer = self

        def readline(self, _):
            seen.append(len(out.read_text().splitlines()) if out.exists() else 0)
            return f"a man\tdog {len(seen)}\n".encode() if len(seen) <= 10 else b""

    monkeypatch.setattr(sys, "stdin", Slow())
    assert main(["predict", str(saved), "--output", str(out), "--batch-size", "4"]) == 0
    assert seen == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8]
    assert len(out.read_text().splitlines()) == 10


def test_predict_leaves_an_earlier_file_where_it_fails(saved, tmp_path, capsys):
    out, asked = tmp_path / "answers.jsonl", tmp_path / "asked.txt"
    asked.write_text("a man\ta dog\n")
    assert main(["predict", str(saved), str(asked), "--output", str(out)]) == 0
    before = out.read_text()
    asked.write_text("a man\ta dog\na man\n")
    fails(capsys, ["predict", saved, asked, "--output", out, "--batch-size", "1"], "asked.txt, line 2: expected")
    assert out.read_text() == before
    assert {path.name for path in tmp_path.iterdir()} == {"answers.jsonl", "asked.txt"}
    asked.write_text("")
    assert main(["predict", str(saved), str(asked), "--output", str(out)]) == 0
    assert out.read_text() == ""


def test_predict_files(saved, model, tokenizer, asked, tmp_path, capsys):
    texts = pairs(5)
    lines = "".join(f"{a}\t{b}\r\n" for a, b in zip(texts.first, texts.second, strict=True))
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps({"x": "a man " * 20, "text": "a dog"}) + "\n")
    assert main(["predict", str(saved), str(tmp_path / "a.txt"), "pairs.csv"]) == 0
    same(
        capsys.readouterr().out.splitlines(),
        expected(model, tokenizer, texts) + expected(model, tokenizer, DATA["pairs.csv"]),
    )
    assert asked == [{"labelled": False}]
    assert main(["predict", str(saved), str(tmp_path / "b.jsonl.gz"), "--columns", "x", "--max-length", "8"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "1 of 1 were cut to 8 tokens\n"
    same(captured.out.splitlines(), expected(model, tokenizer, Texts(["a man a man a man"])))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no tab here", "expected two texts, a tab between; got 1 text: 'no tab here' (or JSON)"),
        ("a\tb\tc", "expected two texts, a tab between; got 3 texts: "),
        ("", "expected a text; got an empty line"),
        ("a\t ", "expected text; got ' '"),
        ('{"premise": "a"}', "no text column; its columns are 'premise'; looked for premise + hypothesis"),
        ('{"text": null}', "expected text; got None"),
        ('{"text": ', "expected a JSON object; Expecting value"),
        (b"a\t\xff", "expected UTF-8; got b'\\xff'"),
    ],
)
def test_predict_names_a_bad_line(line, message, saved, capsys, monkeypatch):
    data = line if isinstance(line, bytes) else line.encode()
    stdin(monkeypatch, b"a man\ta dog\n" + data + b"\nnever\tread\n")
    assert main(["predict", str(saved)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"spinformer predict: standard input, line 2: {message}")
    assert captured.err.count("\n") == 1
    assert len(captured.out.splitlines()) == 1  # the line before it is answered


def test_predict_errors(saved, asked, tmp_path, capsys):
    fails(capsys, ["predict", saved, "gap.csv"], "gap.csv, row 2: expected text; got ''")
    fails(capsys, ["predict", saved, tmp_path / "none.jsonl"], "no file at")
    fails(capsys, ["predict", saved, "--batch-size", "0"], "--batch-size must be an integer of at least 1")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(b'{"text": "a"}\n' * 100)[:-12])
    assert main(["predict", str(saved), str(cut)]) == 2
    assert "is damaged" in capsys.readouterr().err
    fails(capsys, ["predict", saved, cut, "--output", cut], "--output must not be a file that is read")


def test_load_classifier_gives_what_was_saved(saved, model):
    loaded, tokens = load_classifier(str(saved))
    assert not loaded.training
    assert torch.equal(loaded.classifier.weight, model.classifier.weight)
    assert tokens("a man")["input_ids"][0] == 2
