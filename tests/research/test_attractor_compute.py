"""The whole experiment on a few small pictures: jobs, their records, verdicts, and what happens after a stop."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from research.experiments import attractor, attractor_figures, attractor_jobs, attractor_pixels, attractor_use
from research.experiments.attractor_jobs import Plan
from research.reports import attractor as tables
from spinformer.cli import main


def crossed(count: int) -> np.ndarray:
    """8 x 8 pictures of one bright row and one bright column, with some haze."""
    generator = torch.Generator().manual_seed(count)
    pictures = 0.1 * torch.rand(count, 8, 8, generator=generator)
    for picture, (row, column) in zip(pictures, torch.randint(8, (count, 2), generator=generator), strict=True):
        picture[row], picture[:, column] = 0.9, 0.9
    return (255 * pictures).round().byte().numpy()


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command line without its stage, and with small settings."""
    monkeypatch.setattr(attractor_use, "STRENGTHS", (0.5, 1.0))
    monkeypatch.setattr(attractor_use, "INERTIAS", (0.0, 1.0))
    monkeypatch.setattr(attractor_use, "STEPS", 2)
    np.savez(tmp_path / "pictures.npz", train=crossed(80), test=crossed(24))
    line = f"reproduce attractor --images {tmp_path / 'pictures.npz'} --device cpu --seeds 2 --bare-epochs 1"
    line += (
        f" --backprop-epochs 1 --pair-epochs 1 --held-out 16 --stored-steps 2 --settle 2 --output {tmp_path / 'out'}"
    )
    return [*line.split(), "--results", str(tmp_path)]


def test_the_experiment_runs_in_parts_and_is_judged(command, tmp_path, capsys, monkeypatch):
    results = tmp_path / "out" / "state" / "results"
    assert main([*command, "--stage", "compute", "--only", "bare-paper-4,trivial"]) == 0
    printed = capsys.readouterr().out
    assert "still to run: backprop-recurrent-masked, " in printed
    assert "bare-paper-4-1" in printed
    assert not (tmp_path / "attractor.json").exists()
    first = (results / "bare-paper-4-0.json").read_bytes()

    assert main([*command, "--stage", "compute"]) == 0
    printed = capsys.readouterr().out
    assert (results / "bare-paper-4-0.json").read_bytes() == first  # not run again
    record = json.loads((tmp_path / "attractor.json").read_text())
    outcome = record["outcome"]
    assert outcome["images"] == {"train": 64, "test": 24}
    assert record["config"]["held_out"] == 16
    assert sum(origin["jobs"] for origin in outcome["measured"]) == len(list(results.glob("*.json")))
    runs = {
        f"{name}-{patch}": 2 for name in ("paper", "paper-pair", "paper-sgd", "notebook", "field") for patch in (2, 4)
    }
    runs |= {"paper-adam-2": 1, "paper-adam-4": 1, "paper-layer-4": 1, "paper-shared-4": 1}
    assert {key: len(value) for key, value in outcome["bare"].items()} == runs
    for run in (*outcome["bare"]["paper-2"], *outcome["bare"]["paper-sgd-2"]):
        last = run["training"][-1]
        assert last["energy"] < 0
        assert -1 <= last["least_alignment"] <= last["alignment"] <= 1
        assert "attractor" in run
    assert set(outcome["pair"]) == {f"recurrent-{p}-{task}" for p in (2, 4) for task in ("masked", "noisy")}
    assert [row["P"] for row in outcome["stored"]["paper"]] == [10, 32]
    assert "cosine of J and -gradient at least 0.99 (2 x 2)" in printed
    for build in (tables.claims, tables.errors, tables.trivial, tables.solved):
        assert build(record).count("\n") > 2

    used = json.loads((tmp_path / "attractor-use.json").read_text())
    assert used["outcome"]["trivial"] == outcome["trivial"]
    elsewhere = ["--stage", "compute", "--restore", "--output", str(tmp_path / "elsewhere")]
    assert main([*command, *elsewhere]) == 0  # nothing is trained: every job is found in the two results
    assert (
        f"restored: {len(list((tmp_path / 'elsewhere/state/results').glob('*.json')))} jobs" in capsys.readouterr().out
    )
    assert not list((tmp_path / "elsewhere" / "state").glob("*.safetensors"))
    for name, before in (("attractor", outcome), ("attractor-use", used["outcome"])):
        after = json.loads((tmp_path / f"{name}.json").read_text())["outcome"]
        assert after == before
    assert main([*command, "--stage", "use"]) == 0
    again = json.loads((tmp_path / "attractor-use.json").read_text())
    assert again["outcome"]["table"] == used["outcome"]["table"]
    assert again["outcome"]["settings"] == used["outcome"]["settings"]
    assert tables.use(again).count("\n") == tables.knobs(again).count("\n") == 5

    pytest.importorskip("matplotlib")
    tensors = load_file(tmp_path / "out" / "examples.safetensors")
    for model in attractor_figures.EXAMPLES:
        assert {f"{model}.{task}.{part}" for task in attractor_figures.TASKS for part in ("given", "restored")} <= set(
            tensors
        )
    monkeypatch.setattr(attractor_figures, "EXAMPLES", ("paper-pair-2", "recurrent", "vit"))  # a row is a row
    monkeypatch.setattr(attractor_figures, "SHOWN", (1, 20))  # and a column a column
    paths = attractor_figures.draw(outcome, tmp_path / "out")
    assert all(path.stat().st_size > 1000 for path in paths)


def test_masked_errors_over_hidden_and_over_all_pixels(command, tmp_path, capsys):
    assert main([*command, "--stage", "pixels", "--limit", "64"]) == 0
    assert "site-2-hidden" in capsys.readouterr().out
    record = json.loads((tmp_path / "attractor-pixels.json").read_text())
    outcome = record["outcome"]
    assert (outcome["train"], outcome["test"], outcome["epochs"]) == (64, 24, 1)
    assert {key: len(runs) for key, runs in outcome["runs"].items()} == {
        f"{hold}-{patch}": 2 for hold in ("site", "pair") for patch in (2, 4)
    }
    assert tables.pixels(record).count("\n") == 9


def test_all_pixels_are_judged_by_the_same_rules():
    falling, rising = [0.1 - 0.002 * t for t in range(20)], [0.02 + 0.002 * t for t in range(20)]
    judged = attractor_pixels.judge({"site-2": [{"hidden": falling, "all": rising}] * 2})
    assert judged["site-2-hidden"] == {"best_steps": [20, 20], "transient": False, "first": False}
    assert judged["site-2-all"] == {"best_steps": [1, 1], "transient": True, "first": True}


def test_jobs_are_chosen_by_the_beginnings_of_their_names():
    every = attractor.jobs(Plan())
    assert len({job.key for job in every}) == len(every)
    assert [job.key for job in attractor.select(Plan(seeds=1), ["bare-field"])] == ["bare-field-2-0", "bare-field-4-0"]
    left = attractor.select(Plan(seeds=1), ["bare-field"], ["bare-field-2"])
    assert [job.key for job in left] == ["bare-field-4-0"]
    with pytest.raises(ValueError, match="no job begins with bares; there are: backprop-recurrent-masked, "):
        attractor.select(Plan(), ["bares"])


def test_a_job_that_fails_is_tried_once_more(command, tmp_path, capsys, monkeypatch):
    calls = []
    measure = attractor_jobs.MEASURES["trivial"]

    def flaky(*args):
        calls.append(args[0].key)
        if len(calls) < needed:
            raise RuntimeError("out of memory")
        return measure(*args)

    monkeypatch.setitem(attractor_jobs.MEASURES, "trivial", flaky)
    needed = 2
    assert main([*command, "--stage", "compute", "--only", "trivial"]) == 0
    assert "failed: trivial-predictors: out of memory" in capsys.readouterr().out
    assert calls == ["trivial-predictors"] * 2
    (tmp_path / "out" / "state" / "results" / "trivial-predictors.json").unlink()
    needed = 9
    assert main([*command, "--stage", "compute", "--only", "trivial"]) == 2
    assert "spinformer reproduce attractor: out of memory" in capsys.readouterr().err
    assert len(calls) == 4
