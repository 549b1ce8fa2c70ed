"""Two runs do not mix, other data are not resumed, a damaged checkpoint costs one step back, files are whole."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading

import numpy
import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from spinformer._base.files import atomic_write, run_lock, sync
from spinformer.cli import main
from spinformer.explain import Explainer
from spinformer.models.game_head import GameHead
from spinformer.training.checkpoint import Checkpoint, previous_path
from spinformer.training.classifier.checkpoints import COMPLETE, is_whole, last_checkpoint
from tests.tiny import nli_classifier, rows, save_rows, tokenizer

SMALL = ["--heads", "4", "--dim", "16", "--hidden", "32", "--readout", "16", "--batch-size", "8", "--device", "cpu"]


def nli_words(encoder, folder):
    """A command that trains a tiny classifier in folder / "run"."""
    train, dev = save_rows(folder / "train.jsonl", 64), save_rows(folder / "dev.jsonl", 16, seed=1)
    data = ["--encoder", encoder, "--head", "mean", "--train", train, "--dev", dev, "--output", folder / "run"]
    return list(map(str, ["train", "nli", *data, "--batch-size", 16, "--epochs", 2, "--save-steps", 2, "--quiet"]))


@pytest.fixture
def nli(encoder, tmp_path):
    return nli_words(encoder, tmp_path)


@pytest.fixture(scope="module")
def finished(encoder, tmp_path_factory):
    """Such a command that was run, and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    words = nli_words(encoder, folder)
    assert main(words) == 0
    return words, folder / "run"


@pytest.fixture
def ended(finished, tmp_path):
    """A copy of that run in tmp_path / "run", and its command."""
    words, folder = finished
    shutil.copytree(folder, tmp_path / "run")
    return [str(tmp_path / "run") if word == str(folder) else word for word in words]


@pytest.fixture
def grounded(tmp_path):
    """The words of a command that learns a tiny game."""
    folder = tmp_path / "model"
    nli_classifier().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return ["ground", str(folder), str(save_rows(tmp_path / "texts.jsonl", 40, longest=5)), "--held-out", "4", *SMALL]


@pytest.fixture
def attractor(tmp_path, few_dynamics):
    sizes = ["--limit", "60", "--epochs", "1", "--batch", "20", "--patch", "7"]
    return ["train", "attractor", "--output", str(tmp_path / "net.safetensors"), *sizes, "--device", "cpu"]


def fails(capsys, words, *messages):
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    last = capsys.readouterr().err.rstrip().splitlines()[-1]
    assert last.startswith("spinformer ")
    for message in messages:
        assert message in last


def test_a_lock_is_for_one_run(tmp_path):
    said = []

    def other():
        try:
            with run_lock(tmp_path):
                said.append("entered")
        except BlockingIOError as error:
            said.append(str(error))

    with run_lock(tmp_path), run_lock(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert said == [f"another run is writing to {tmp_path}; wait until it has ended, or name another"]
    other()
    assert said[1:] == ["entered"]


def test_two_runs_into_one_folder(nli, grounded, attractor, tmp_path, capsys):
    for words, place in (
        (nli, tmp_path / "run" / ".lock"),
        (grounded, tmp_path / "model" / "game" / ".lock"),
        (attractor, tmp_path / ".net.safetensors.lock"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        before = {path: path.stat().st_mtime_ns for path in place.parent.iterdir() if path.is_file()}
        hold = f"lock = filelock.FileLock({str(place)!r}); lock.acquire()"
        code = f"import filelock, sys; {hold}; print(flush=True); sys.stdin.read()"
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            fails(capsys, words, "another run is writing to")
            holder.stdin.close()
        after = {path: path.stat().st_mtime_ns for path in place.parent.iterdir() if path.is_file() and path != place}
        assert after == {path: time for path, time in before.items() if path != place}
        assert main(words) == 0  # the lock ends with its holder


def test_other_data_are_not_resumed(nli, attractor, tmp_path, capsys):
    assert main(nli) == 0
    for name, seed, which in (("train", 5, "train"), ("dev", 7, "dev")):
        kept = (tmp_path / f"{name}.jsonl").read_text()
        save_rows(tmp_path / f"{name}.jsonl", 64 if name == "train" else 16, seed=seed)
        fails(capsys, [*nli, "--resume"], f"was begun with other data; these differ: {which}")
        (tmp_path / f"{name}.jsonl").write_text(kept)
    changed = [{**row, "label": "neutral"} for row in rows(64)]  # the same texts with other labels
    kept = (tmp_path / "train.jsonl").read_text()
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    fails(capsys, [*nli, "--names", "entailment", "neutral", "contradiction", "--resume"], "these differ: ")
    (tmp_path / "train.jsonl").write_text(kept)
    assert main([*nli, "--resume"]) == 0
    (tmp_path / "run" / "data.json").unlink()  # as runs of earlier versions are
    assert main([*nli, "--resume"]) == 0

    assert main(attractor) == 0
    pixels = numpy.random.default_rng(0).random((60, 28, 28), dtype=numpy.float32)
    numpy.savez(tmp_path / "other.npz", train=pixels, test=pixels)
    fails(capsys, [*attractor, "--images", tmp_path / "other.npz"], "belongs to another run; these differ: images")


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "empty"])
def test_a_damaged_checkpoint_falls_back(ended, tmp_path, damage, capsys):
    run = tmp_path / "run"
    whole = (run / "model.safetensors").read_bytes()
    newest = last_checkpoint(run)
    file = newest / ("optimizer.pt" if damage == "flipped" else "model.safetensors")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes({"cut": content[:-50], "flipped": content, "missing": b"", "empty": b""}[damage])
    if damage == "missing":
        file.unlink()
    assert not is_whole(newest)
    capsys.readouterr()
    assert main([*ended, "--resume"]) == 0
    assert f"{newest} is damaged; the run goes on from the one before" in capsys.readouterr().err
    assert (run / "model.safetensors").read_bytes() == whole
    assert json.loads((run / "training.json").read_text())["resumed"]
    assert is_whole(last_checkpoint(run))


def test_checkpoints_of_earlier_versions_are_resumed(ended, tmp_path):
    newest = last_checkpoint(tmp_path / "run")
    (newest / COMPLETE).write_text("1.5\n")
    assert last_checkpoint(tmp_path / "run") == newest
    assert main([*ended, "--resume"]) == 0


def test_a_damaged_state_falls_back(tmp_path, capsys):
    checkpoint = Checkpoint(tmp_path / "state.pt", {"seed": 0})
    for step in (1, 2):
        checkpoint.write({"step": step, "weights": torch.arange(100.0)})
    assert checkpoint.read()["step"] == 2
    content = checkpoint.path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"\xff" * 300, b"PK\x03\x04"):
        checkpoint.path.write_bytes(damaged)
        assert checkpoint.read()["step"] == 1
        shown = capsys.readouterr().err
        assert shown.startswith(f"{checkpoint.path} is damaged")
        assert shown.count("\n") == 1
    checkpoint.path.unlink()  # killed between the two renames
    assert checkpoint.read()["step"] == 1
    previous_path(checkpoint.path).write_bytes(b"x")
    with pytest.raises(ValueError, match=r"state\.pt\.previous is damaged .*; remove it to begin anew") as raised:
        checkpoint.read()
    assert "\n" not in str(raised.value)
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_a_game_that_was_learnt_is_not_learnt_again(grounded, tmp_path, monkeypatch, capsys):
    """Killed while the report was written, or before."""
    from spinformer.evaluate.explanations.report import GroundingReport

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GroundingReport, "save", stopped)
        assert main(grounded) == 130
    game = tmp_path / "model" / "game"
    weights = (game / "game.safetensors").read_bytes()
    assert not (game / "report.json").exists()
    with monkeypatch.context() as patch:
        patch.setattr("spinformer.training.game.fit_game_head", lambda *_, **__: pytest.fail("trained again"))
        assert main([*grounded, "--resume"]) == 0
    assert (game / "report.json").is_file()
    assert (game / "game.safetensors").read_bytes() == weights
    trained = []
    monkeypatch.setattr("spinformer.training.game.fit_game_head", lambda *_, **__: trained.append(1))
    other = [*grounded, "--seed", "1"]
    message = "run.json belongs to another run, which has ended; these differ: options.seed, "
    fails(capsys, [*other, "--resume"], message, "begun without resume, a run replaces its game")
    assert (game / "game.safetensors").read_bytes() == weights
    assert not trained
    assert main(other) == 0
    assert trained == [1]


@pytest.mark.skipif(os.name == "nt", reason="has no umask")
def test_weights_get_the_users_umask(nli, grounded, tmp_path):
    before = os.umask(0o027)
    try:
        assert main(nli) == 0
        assert main(grounded) == 0
        Explainer.from_pretrained(tmp_path / "model", device="cpu").save(tmp_path / "copy")
    finally:
        os.umask(before)
    for folder in (tmp_path / "run", tmp_path / "model" / "game", tmp_path / "copy"):
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix in (".safetensors", ".json", ".pt", ".bin", ".md"):
                assert stat.S_IMODE(path.stat().st_mode) == 0o640, path
    assert not list(tmp_path.rglob(".saving-*"))


def test_files_are_synced_before_they_are_renamed(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(
        "spinformer._base.files.sync", lambda path: order.append((path.name, path.exists())) or sync(path)
    )
    with atomic_write(tmp_path / "file") as partial:
        partial.write_text("x")
    assert order == [("file.partial", True), (tmp_path.name, True)]


def test_reports_are_whole(tmp_path, monkeypatch):
    """A disk that is full leaves the old report."""
    from spinformer.explain.render.html import save_html
    from tests.explain.examples import explanation

    page = save_html(explanation("a man"), tmp_path / "report.html")
    old = page.read_bytes()

    def full(path, *_, **__):
        path.open("w").write("<ht")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OSError, match="No space left"):
        save_html(explanation("a man"), tmp_path / "report.html")
    assert page.read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_game_head_is_whole(tmp_path, grounded, monkeypatch):
    assert main(grounded) == 0
    folder = shutil.copytree(tmp_path / "model", tmp_path / "other")
    model = Explainer.from_pretrained(folder, device="cpu").model
    head = GameHead.load(folder, model)
    before = {path.name: path.read_bytes() for path in (folder / "game").iterdir() if path.is_file()}

    def full(tensors, path, **_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spinformer.models.game_head.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        head.save(folder)
    assert {path.name: path.read_bytes() for path in (folder / "game").iterdir() if path.is_file()} == before
