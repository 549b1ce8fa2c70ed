"""`spinformer train nli`: help, from training to predictions, and bad input before any training."""

import json
import re

import pytest

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from spinformer.cli import main
from spinformer.training.classifier.recipe import ClassifierRecipe
from tests.tiny import NLI, rows, save_rows


@pytest.fixture
def words(encoder, tmp_path):
    data = [
        "--train",
        save_rows(tmp_path / "train.jsonl", 120),
        "--dev",
        save_rows(tmp_path / "dev.jsonl", 30, seed=1),
    ]
    sizes = ["--batch-size", "16", "--epochs", "1", "--log-steps", "2", "--quiet"]
    return list(map(str, ["train", "nli", "--encoder", encoder, "--output", tmp_path / "run", *data, *sizes]))


def fails(capsys, words, *messages):
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    captured = capsys.readouterr()
    shown = [line for line in re.split(r"[\n\r]", captured.err) if line.startswith("spinformer")]
    assert len(shown) == 1, captured.err
    assert captured.err.rstrip().endswith(shown[0].rstrip())
    for message in messages:
        assert message in shown[0]
    assert "'loss'" not in captured.out  # nothing was trained
    assert "Traceback" not in captured.err


def test_help(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "nli", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for name in (*ClassifierRecipe().to_dict(), "config", "output", "resume", "quiet"):
        assert f"--{name.replace('_', '-')}" in shown
    assert "torchrun --nproc-per-node 2 -m spinformer train nli" in shown


def test_output_is_asked_for(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "nli"])
    assert stopped.value.code == 2
    assert "--output" in capsys.readouterr().err


def test_train_evaluate_predict(words, tmp_path, capsys):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("head: mean\nepochs: 9\nseed: 3\nlearning_rate: 1e-3\n")
    run = tmp_path / "run"
    assert main([*words, "--config", str(recipe), "--seed", "4"]) == 0
    shown = capsys.readouterr().out
    record = json.loads((run / "training.json").read_text())
    options = {name: record["recipe"][name] for name in ("head", "epochs", "seed", "learning_rate")}
    assert options == {"head": "mean", "epochs": 1, "seed": 4, "learning_rate": 1e-3}
    accuracy = [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry][-1]
    assert f"120 rows in {record['seconds']:.0f} s; accuracy on {tmp_path / 'dev.jsonl'}: {accuracy:.4f}" in shown

    assert main(["evaluate", str(run), str(tmp_path / "dev.jsonl"), "--device", "cpu"]) == 0
    assert f"{accuracy:.2%}" in capsys.readouterr().out
    assert main(["predict", str(run), str(tmp_path / "dev.jsonl"), "--device", "cpu"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    gold = [row["label"] for row in rows(30, seed=1)]
    assert sum(a["label"] == b for a, b in zip(answers, gold, strict=True)) / 30 == pytest.approx(accuracy)
    assert all(list(answer["probabilities"]) == list(NLI) for answer in answers)

    fails(capsys, [*words, "--config", recipe, "--seed", "4"], "already holds a run; resume it, or name another folder")
    fails(capsys, [*words, "--config", recipe, "--resume"], "was begun with another recipe; these differ: seed")
    assert main([*words, "--config", str(recipe), "--seed", "4", "--resume"]) == 0


def test_single_texts(words, tmp_path, capsys):
    for name in ("train", "dev"):
        lines = [json.dumps({"text": row["hypothesis"], "label": row["label"][:1]}) + "\n" for row in rows(40)]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    assert main(words) == 0
    assert main(["evaluate", str(tmp_path / "run"), str(tmp_path / "dev.jsonl"), "--device", "cpu"]) == 0
    assert "macro F1" in capsys.readouterr().out


GOOD = {"premise": "a man", "hypothesis": "a dog", "label": "neutral"}


@pytest.mark.parametrize("which", ["train", "dev"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**GOOD, "label": "perhaps"}, "expected a label among entailment, neutral, contradiction; got 'perhaps'"),
        ({**GOOD, "hypothesis": " "}, "expected a text in 'hypothesis'; got ' ', which is empty"),
        ({"premise": "a man", "label": "neutral"}, "expected a field 'hypothesis'; its fields are 'premise', 'label'"),
        ("{half", "expected one JSON object; got '{half'"),
    ],
    ids=["label", "empty", "field", "json"],
)
def test_a_bad_row_is_named_before_any_training(words, tmp_path, capsys, which, row, message):
    path = tmp_path / f"{which}.jsonl"
    line = row if isinstance(row, str) else json.dumps(row)
    path.write_text(path.read_text() + line + "\n")
    count = {"train": 121, "dev": 31}[which]
    words = [*words, "--names", *NLI] if which == "train" else words
    fails(capsys, words, f"{which}.jsonl:{count}: {message}")
    assert not (tmp_path / "run").exists()


def test_other_bad_input(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    odd = tmp_path / "odd.csv"
    odd.write_text("left,right,label\na,b,neutral\n")
    fails(capsys, [*words, "--train", odd], "odd.csv: no text column; its columns are 'left', 'right', 'label'")
    odd.write_text("premise,hypothesis,answer\na,b,neutral\n")
    fails(capsys, [*words, "--dev", odd], "odd.csv: no label column")
    fails(capsys, [*words, "--train", tmp_path / "none.jsonl"], "no file")
    fails(capsys, [*words, "--first", "text"], "no column 'text'")
    fails(capsys, [*words, "--encoder", tmp_path / "none"], f"{tmp_path / 'none'}")
    fails(capsys, [*words, "--encoder", "brt"], "encoder must be a folder, a hub id or one of bert-base")
    fails(capsys, [*words, "--config", tmp_path / "none.yaml"], "no recipe")
    fails(capsys, [*words, "--game", '{"dampening": 1}'], "unknown option(s) dampening; there are: values")
    fails(capsys, [*words, "--batch-size", "15", "--accumulation", "2"], "batch_size 15 must divide by 2")
    fails(capsys, [*words, "--teacher", tmp_path / "none"], "expected a folder with a saved model at")
    fails(capsys, [*words, "--baseline", "esim", "--vectors", tmp_path / "none.txt"], "no word vectors at")
    assert not (tmp_path / "run" / "recipe.json").exists()
    assert main(words) == 0  # none of these stands in the way
