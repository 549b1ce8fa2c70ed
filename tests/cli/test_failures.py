"""Damaged files, foreign files, full disks, odd numbers: one line and an exit status that is not 0; nothing is lost."""

import json
import os
import shutil
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers")

from spinformer.cli import main
from spinformer.cli.failures import LONGEST, explain_failure
from spinformer.explain import Explanation
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.identity import weights_digest
from tests import fresh
from tests.tiny import NLI, bert, nli_classifier, save_rows, tokenizer

ONE = ["a man", "a dog", "--device", "cpu"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A classifier with a game, and an attractor network beside it."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    model = nli_classifier()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    sizes = {"heads": 4, "dim": 16, "hidden": 8, "readout": 8}
    GameHead(GameHeadConfig((0, 2), 32, 3, model=weights_digest(model), **sizes)).save(folder)
    AttractorNetwork(AttractorConfig(patch=7, shape="relative")).save(folder.parent / "net.safetensors")
    return folder.parent


@pytest.fixture
def place(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_rows(tmp_path / "rows.jsonl", 20)
    return Path(shutil.copytree(saved, tmp_path / "place"))


def fails(capsys, words, *messages, status=2):
    capsys.readouterr()
    assert main(list(map(str, words))) == status
    shown = capsys.readouterr().err
    lines = [line for line in shown.splitlines() if line.strip() and "it/s" not in line]
    assert len(lines) == 1, shown
    assert lines[0].startswith("spinformer ")
    assert "\x1b" not in shown
    for message in messages:
        assert message in lines[0]


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "noise": lambda content: b"\xff\x00\x1b[31m" * 40,
    "list": lambda content: b"[1, 2]",
    "text": lambda content: b"hello\n",
    "nested": lambda content: b"[" * 100_000,
    "zip": lambda content: b"PK\x03\x04" + content[:60],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name",
    [
        "model/config.json",
        "model/model.safetensors",
        "model/tokenizer.json",
        "model/game/game.json",
        "model/game/game.safetensors",
        "net.safetensors",
    ],
)
def test_damaged_files_of_models(place, name, damage, capsys):
    path = place / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    if name == "net.safetensors":
        fails(capsys, ["retrieve", path, "--count", 1, "--steps", 1], "net.safetensors")
    else:
        fails(capsys, ["explain", place / "model", *ONE], "model")


@pytest.mark.parametrize("damage", [*DAMAGES, "object"])
def test_damaged_images_and_states(place, damage, capsys):
    pixels = numpy.zeros((60, 28, 28), dtype=numpy.uint8)
    numpy.savez_compressed("images.npz", train=pixels, test=pixels)
    train = ["train", "attractor", "--patch", 7, "--shape", "relative", "--epochs", 1, "--limit", 40, "--device", "cpu"]
    content = Path("images.npz").read_bytes()
    if damage == "object":
        numpy.savez("images.npz", train=numpy.array([{}], dtype=object), test=pixels)
    else:
        Path("images.npz").write_bytes(DAMAGES[damage](content))
    fails(capsys, [*train, "--images", "images.npz", "--output", "new.safetensors"])
    if damage != "object":
        torch.save({"run": "{}"}, "new.state")
        Path("new.state").write_bytes(DAMAGES[damage](Path("new.state").read_bytes()))
        fails(capsys, [*train, "--output", "new.safetensors"], "new.state")
    assert not Path("new.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["retrieve", "NET", "--count", 0], "--count must be an integer of at least 1; got 0"),
        (["retrieve", "NET", "--steps", -1], "--steps must be"),
        (["retrieve", "NET", "--strength", "nan"], "--strength must be a finite number; got nan"),
        (["retrieve", "NET", "--inertia", "inf"], "--inertia must be a finite number; got inf"),
        (["train", "attractor", "--device", "abacus"], "device must be one of this machine's"),
        (["train", "attractor", "--device", "cuda:99"], "device must be one of this machine's"),
        (["train", "attractor", "--rate", "nan"], "--rate must be finite and positive; got nan"),
        (["train", "attractor", "--epochs", 0], "--epochs must be"),
        (["train", "attractor", "--batch", 0], "--batch must be"),
        (["train", "attractor", "--patch", 0], "--patch must be"),
        (["explain", "MODEL", "a man", "--device", "abacus"], "device must be one of this machine's"),
        (["explain", "MODEL", *ONE, "--samples", 10**9], "samples must be at most 1,048,576; got 1,000,000,000"),
        (["explain", "MODEL", *ONE, "--temperature", "nan"], "temperature must be finite and positive"),
        (["explain", "MODEL", *ONE, "--output", "/proc/none/x.json"], "/proc/none"),
        (["evaluate", "MODEL", "rows.jsonl", "--explanations", "--count", 0, "--device", "cpu"], "--count must be"),
    ],
)
def test_odd_numbers(place, words, message, capsys):
    names = {"NET": place / "net.safetensors", "MODEL": place / "model"}
    fails(capsys, [names.get(word, word) for word in words], message)


def test_weights_that_are_not_finite(place, capsys):
    path = place / "net.safetensors"
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    tensors = load_file(path)
    tensors["mean"][0, 0] = torch.nan
    save_file(tensors, path, metadata=header)
    fails(capsys, ["retrieve", path, "--output", "retrieved"], "mean must be finite; 1 of")
    assert not Path("retrieved").exists()


@pytest.mark.usefixtures("few_dynamics")
def test_a_training_that_diverges_keeps_the_old_network(place, capsys):
    path = place / "net.safetensors"
    old = path.read_bytes()
    words = ["train", "attractor", "--patch", 7, "--limit", 60, "--epochs", 1, "--device", "cpu", "--output", path]
    fails(capsys, [*words, "--rate", "1e30"], "the training diverged", "nothing was saved; a lower --rate may help")
    assert path.read_bytes() == old
    assert main([*map(str, words)]) == 0  # nothing of it stands in the way
    assert path.read_bytes() != old


def test_a_full_disk_is_one_line(place):
    words = ["spinformer", "predict", str(place / "model"), "rows.jsonl", "--device", "cpu"]
    full = "import os, runpy, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)"
    code = f"{full}; sys.argv = {words!r}; runpy.run_module('spinformer', run_name='__main__')"
    done = fresh.run(code, imports=fresh.EVERYTHING)
    assert done.returncode not in (0, 1)
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(place, capsys):
    (place / "model").chmod(0o500)
    fails(capsys, ["ground", place / "model", "rows.jsonl", "--held-out", 4, "--device", "cpu"], "ermission")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RuntimeError("basic_ios::clear: iostream error"), 2, "is there room on the disk? (basic_ios::clear"),
        (RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"), 2, "is there room on the"),
        (Exception("No space left on device (os error 28)"), 2, "a file could not be written; is there room"),
        (Exception("Permission denied (os error 13)"), 2, "spinformer odd: Permission denied (os error 13)"),
        (Exception("odd"), 1, "an error that was not foreseen, Exception: odd"),
        (ValueError("x" * 10**6), 2, f"spinformer odd: {'x' * LONGEST} ..."),
        (ValueError("x" * LONGEST), 2, f"spinformer odd: {'x' * LONGEST}"),
    ],
)
def test_the_line_of_an_error(error, status, message, capsys):
    assert explain_failure("odd", error) == status
    shown = capsys.readouterr().err
    assert message in shown
    assert len(shown) < LONGEST + 100
    assert shown.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="has no pipes in folders")
def test_pipes_are_not_waited_for(place, capsys):
    nli_classifier().save_pretrained(place / "shards", max_shard_size="10KB")
    tokenizer().save_pretrained(place / "shards")
    shard = sorted((place / "shards").glob("model-*"))[1]
    additive = place / "additive"
    additive.mkdir()
    explain = ["explain", place / "model", *ONE]
    exact = ["evaluate", place / "model", "rows.jsonl", "--device", "cpu", "--explanations", "--count", 2, "--exact", 1]
    exact += ["--exact-words", 4, 16, "--methods", "random", "--tables", "tables.safetensors"]
    for path, words in (
        (shard, ["predict", place / "shards", "rows.jsonl", "--device", "cpu"]),
        (place / "model" / "game" / "game.safetensors", explain),
        (additive / "explainer.json", [*explain, "--additive", additive, "--method", "additive-explainer"]),
        (Path("tables.safetensors"), exact),
        (Path("one.json"), None),
    ):
        before = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        if words is not None:
            fails(capsys, words, path.name, "is a pipe or a device; expected a file")
        else:
            with pytest.raises(ValueError, match="is a pipe or a device"):
                Explanation.load(path)
        path.unlink()
        if before is not None:
            path.write_bytes(before)


def test_figures_are_whole(place, monkeypatch, capsys):
    from matplotlib.figure import Figure

    words = ["evaluate", place / "model", "rows.jsonl", "--device", "cpu", "--output", "figures"]
    assert main(list(map(str, words))) == 0
    pictures = {path: path.read_bytes() for path in Path("figures").iterdir()}

    def full(figure, target, **_):
        (target.write if hasattr(target, "write") else Path(target).write_bytes)(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    fails(capsys, words, "No space left on device")
    assert {path: path.read_bytes() for path in Path("figures").iterdir()} == pictures


def test_what_nobody_foresaw_says_how_to_report_it(monkeypatch, capsys):
    def broken(args):
        raise KeyError("odd\x1b[31m")

    monkeypatch.setattr("spinformer.cli.retrieve.run", broken)
    fails(capsys, ["retrieve", "x"], "an error that was not foreseen, KeyError: ", "prints with --verbose", status=1)
    assert main(["retrieve", "x", "--verbose"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert shown.splitlines()[-1].startswith("spinformer retrieve: an error that was not foreseen")


def test_names_reach_the_terminal_without_escape_codes(tmp_path, capsys):
    """Labels of the model, words of the text, names in errors."""
    from transformers import BertForSequenceClassification

    names = ["\x1b]0;x\x07yes", "\x1b[31mno", *NLI[2:]]
    options = {"num_labels": 3, "id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}}
    BertForSequenceClassification(bert(**options)).save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    rows = [{"text": f"a man {name}", "label": name} for name in names for _ in range(2)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    model = str(tmp_path / "model")
    colour = "\x1b[48;5;", "\x1b[0m"
    for words in (
        ["evaluate", model, str(tmp_path / "rows.jsonl"), "--device", "cpu"],
        ["explain", model, "a \x1b]0;x\x07man \x1b[31mruns", "--passes", "16", "--device", "cpu"],
        ["explain", model, "a man", "--target", "\x1b[31mmaybe", "--device", "cpu"],
        ["predict", model, str(tmp_path / "rows.jsonl"), "--device", "cpu"],
        ["predict", "\x1b[31mnowhere/at/all"],
    ):
        main(words)
        captured = capsys.readouterr()
        shown = captured.out + captured.err
        for own in colour:
            shown = shown.replace(own, "")
        assert "\x1b" not in shown, words
        assert "\x07" not in shown, words
        assert len(shown) > 20
