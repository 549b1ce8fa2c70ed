"""States of runs that are not as they were written: refused by name in one line; what a kill leaves is cleared away."""

import json
import os
import shutil

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from safetensors.torch import load_file, save_file

from spinformer.cli import main
from spinformer.data.features import Features
from spinformer.data.texts import Texts
from spinformer.training.attractor import preset, train_attractor
from spinformer.training.checkpoint import Checkpoint, check_optimizer, check_step
from spinformer.training.classifier.checkpoints import last_checkpoint, mark_complete
from tests.tiny import nli_classifier, save_rows, tokenizer

SMALL = ["--heads", "4", "--dim", "16", "--hidden", "32", "--readout", "16", "--batch-size", "8", "--device", "cpu"]


@pytest.fixture
def nli(encoder, tmp_path):
    """The words of a command that trains a tiny classifier in tmp_path / "run"."""
    train, dev = save_rows(tmp_path / "train.jsonl", 64), save_rows(tmp_path / "dev.jsonl", 16, seed=1)
    data = ["--encoder", encoder, "--head", "mean", "--train", train, "--dev", dev, "--output", tmp_path / "run"]
    words = ["train", "nli", *data, "--batch-size", 16, "--epochs", 2, "--save-steps", 2, "--ema", 0.5, "--quiet"]
    return list(map(str, words))


def fails(capsys, words, *messages):
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("spinformer ")]
    assert len(lines) == 1
    for message in messages:
        assert message in lines[0]


def change(path, what):
    """Another value in what torch.save wrote."""
    state = torch.load(path, weights_only=False)
    what(state)
    torch.save(state, path)


def test_checkpoints_of_trainer(nli, tmp_path, capsys):
    """Damaged so that their own list says that they are whole: as a stranger could do it."""
    assert main(nli) == 0
    shutil.rmtree(last_checkpoint(tmp_path / "run"))  # there are updates left to make
    newest = last_checkpoint(tmp_path / "run")
    whole = {path: path.read_bytes() for path in newest.iterdir()}
    weights = newest / "model.safetensors"
    tensors = load_file(weights)
    name = next(iter(tensors))
    first = next(iter(torch.load(newest / "optimizer.pt", weights_only=True)["state"]))
    damages = {
        "optimizer.pt": [
            (lambda path: path.write_bytes(b"x" * 300), "cannot be read"),
            (lambda path: change(path, lambda state: state.pop("param_groups")), "cannot be read (KeyError"),
            (lambda path: change(path, lambda s: s["state"][first].update(exp_avg=torch.ones(3))), "must have shape"),
            (
                lambda path: change(path, lambda s: s["param_groups"][0].update(weight_decay=7.0)),
                "another weight_decay",
            ),
        ],
        "scheduler.pt": [
            (lambda path: change(path, lambda s: s.update(last_epoch=3)), "its learning rate is of step 3")
        ],
        "rng_state.pth": [(lambda path: change(path, lambda state: state.pop("numpy")), "cannot be read (KeyError")],
        "trainer_state.json": [
            (
                lambda path: path.write_text(path.read_text().replace('"global_step": 6', '"global_step": 7')),
                "is of step 7",
            ),
            (lambda path: path.write_text("[]"), "cannot be read"),
        ],
        "average.safetensors": [(lambda path: save_file({"x": torch.ones(2)}, path), "the average of another model")],
        "model.safetensors": [
            (
                lambda path: save_file({key: v for key, v in tensors.items() if key != name}, path),
                "are not those of the",
            ),
            (lambda path: save_file({**tensors, name: torch.ones(5)}, path), "cannot be read"),
        ],
    }
    for file, ways in damages.items():
        for damage, message in ways:
            damage(newest / file)
            mark_complete(newest, 1.0)
            fails(capsys, [*nli, "--resume"], str(newest), message)
            for path, content in whole.items():
                path.write_bytes(content)
    assert main([*nli, "--resume"]) == 0


def test_recipes_and_data_of_runs(nli, tmp_path, capsys):
    assert main(nli) == 0
    for name in ("recipe.json", "data.json"):
        path = tmp_path / "run" / name
        before = path.read_text()
        for content, message in (("[1]", "expected a JSON object; got list"), ("{", "is damaged, it is not JSON")):
            path.write_text(content)
            fails(capsys, [*nli, "--resume"], f"{name} is damaged", message)
        path.unlink()
        os.mkfifo(path)
        fails(capsys, [*nli, "--resume"], f"{name} is a pipe or a device")
        path.unlink()
        path.write_text(before)
    record = json.loads((tmp_path / "run" / "training.json").read_text())
    assert main([*nli, "--resume"]) == 0
    again = json.loads((tmp_path / "run" / "training.json").read_text())
    assert again["resumed"]
    assert not [entry for entry in record["history"] if "train_loss" in entry]  # that of a resumed run is of a part

    def scores(one):
        return [{name: value for name, value in e.items() if "runtime" not in name and "per" not in name} for e in one]

    assert scores(again["history"]) == scores(record["history"])


def test_a_training_that_diverges_saves_no_model(nli, encoder, tmp_path, capsys):
    words = [*nli, "--learning-rate", "1e30", "--warmup", "0", "--ema", "0"]
    fails(capsys, words, "the training diverged", "no model was saved")
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.fixture
def grounded(tmp_path):
    """The words of a command that learns a tiny game, stopped at its end: its state is there."""
    folder = tmp_path / "model"
    nli_classifier().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    texts = save_rows(tmp_path / "texts.jsonl", 40, longest=5)
    often = ["--save-steps", "2", "--epochs", "2", "--repeats", "1"]
    return ["ground", str(folder), str(texts), "--held-out", "8", *often, *SMALL]


def test_states_of_games(grounded, tmp_path, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("spinformer.training.game.measure_misfit", stopped)
        assert main(grounded) == 130
    state = tmp_path / "model" / "game" / "state.pt"
    whole = state.read_bytes()
    for more in ([], ["--seed", "1"]):  # not begun anew without a word
        fails(capsys, [*grounded, *more], "holds a run that was stopped; resume it, name another folder, or remove")
    assert state.read_bytes() == whole
    for damage, message in (
        (lambda s: s.pop("step"), "KeyError: 'step'"),
        (lambda s: s.update(step=99), "step must be from 0 to 8; got 99"),
        (lambda s: s.update(step="2"), "step must be from 0 to 8; got '2'"),
        (lambda s: s["head"].popitem(), "Missing key"),
        (lambda s: s["adamw"]["state"][0].update(exp_avg=torch.ones(2)), "exp_avg must have shape"),
        (lambda s: next(iter(s["muon"]["state"].values())).update(mean=torch.ones(2)), "mean must have shape"),
        (lambda s: s["adamw rate"].update(last_epoch=None), "last_epoch must be from 0 to 8"),
    ):
        state.write_bytes(whole)
        change(state, damage)
        fails(capsys, [*grounded, "--resume"], f"{state} is damaged", message, "remove it to begin anew")
    state.write_bytes(os.urandom(300))
    state.with_name("state.pt.previous").unlink()
    fails(capsys, [*grounded, "--resume"], f"{state} is damaged")
    state.unlink()
    os.mkfifo(state)
    fails(capsys, [*grounded, "--resume"], f"{state} is a pipe or a device")
    state.unlink()
    assert main([*grounded, "--resume"]) == 0
    state.with_name("state.pt.previous").write_bytes(whole)  # killed while it cleared up
    assert main([*grounded, "--resume"]) == 0
    assert not list(state.parent.glob("state.pt*"))


def test_states_of_attractors(tmp_path):
    from spinformer.models.attractor import AttractorNetwork

    images, file = torch.rand(20, 1, 8, 8), tmp_path / "net.state"
    config, recipe = preset("field", patch=4, image=(1, 8, 8))

    def train():
        return train_attractor(AttractorNetwork(config), images, recipe, checkpoint=file, quiet=True)

    history = train()
    whole = file.read_bytes()
    for damage, message in (
        (lambda s: s["stepper"].update(done=-1), "done must be from 0 to"),
        (lambda s: s["stepper"].update(rows={}), "KeyError"),
        (lambda s: s["stepper"].update(optimiser={}), "KeyError"),
        (lambda s: s.update(history=[{"loss": "low"}]), "its history has losses that are no numbers"),
        (lambda s: s.update(history="x"), "is damaged"),
        (lambda s: s.update(history=s["history"] * 99), "epochs must be from 0 to"),
    ):
        file.write_bytes(whole)
        change(file, damage)
        with pytest.raises(ValueError, match=message) as raised:
            train()
        assert str(file) in str(raised.value)
    file.write_bytes(whole)
    assert train() == history


def test_optimisers_and_steps():
    weights = torch.nn.Linear(2, 3)
    optimizer = torch.optim.AdamW(weights.parameters())
    groups = [dict(group) for group in optimizer.param_groups]
    weights(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    check_optimizer(optimizer, groups)
    optimizer.state[weights.weight]["exp_avg"][0] = torch.nan
    with pytest.raises(ValueError, match="exp_avg must be finite numbers"):
        check_optimizer(optimizer, groups)
    optimizer.param_groups[0]["lr"] = None
    with pytest.raises(ValueError, match="lr must be a finite number; got None"):
        check_optimizer(optimizer, groups)
    assert check_step("step", 3, 3) == 3
    for odd in (4, -1, True, 2.0, "2", None):
        with pytest.raises(ValueError, match="step must be from 0 to 3"):
            check_step("step", odd, 3)


def test_a_state_that_is_noise(tmp_path):
    path = tmp_path / "state.pt"
    for content in (b"\x80\x02.", b"pp0\n.", os.urandom(64), bytes(1000), b"\x80\x04]\x94.", b"0"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"state\.pt (is damaged|was not written by this version)"):
            Checkpoint(path, {}).read()


def test_stored_answers_of_a_teacher(tmp_path):
    path, targets = tmp_path / "lesson.safetensors", torch.full((2, 3), 1 / 3)
    Features(Texts(["a man", "a dog runs"], None, [0, 1], ("x", "y", "z")), tokenizer(), 16, targets).save(path)
    whole = {name: value.clone() for name, value in load_file(path).items()}  # the file is replaced below

    def fails_with(message, **changed):
        save_file({**whole, **changed}, path, metadata={"truncated": "0"})
        with pytest.raises(ValueError, match=message) as raised:
            Features.load(path)
        assert str(raised.value).endswith("remove it, and it is made anew")

    fails_with("lengths must be whole numbers", lengths=whole["lengths"].double())
    fails_with("input_ids must be", **{"column.input_ids": whole["column.input_ids"][:-1]})
    fails_with("input_ids must be", **{"column.input_ids": whole["column.input_ids"] - 9})
    fails_with("labels must be of 2 rows; got 1", labels=whole["labels"][:1])
    fails_with("targets must be finite", targets=whole["targets"] * torch.nan)
    fails_with("lengths of at least 1", lengths=whole["lengths"] * 0)
    path.write_bytes(b"x")
    with pytest.raises(ValueError, match="is damaged"):
        Features.load(path)
