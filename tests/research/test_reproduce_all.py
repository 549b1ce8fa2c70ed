"""`spinformer reproduce all`: what it runs, in which order, and what it says is missing."""

import json

import pytest

from research.commands import reproduce_all
from research.commands.reproduce_all import plan
from research.paths import RESULTS
from research.steps import BY_NAME, STEPS
from spinformer.cli import main


def names(steps):
    return [step.name for step in steps]


def there(folder, *results):
    for name in results:
        (folder / f"{name}.json").write_text(json.dumps({"name": name}))


def test_what_is_there_is_kept(tmp_path):
    runs = tmp_path / "runs"
    every = [step.name for step in STEPS if not step.removed and not step.extra]
    first = names(plan([], tmp_path, runs))
    assert [name for name in first if not BY_NAME[name].extra] == every
    assert "nli-single" in first  # grounding-single needs its model
    assert "torture" not in first
    there(tmp_path, *(name for name in every if name != "theory"))
    assert names(plan([], tmp_path, runs)) == ["theory"]
    assert names(plan(["ess"], tmp_path, runs)) == []
    assert names(plan(["ess"], tmp_path, runs, anew=True)) == ["ess"]


def test_models_that_are_needed_are_made_first(tmp_path):
    there(tmp_path, "nli-teacher", "nli-distil")
    wanted = names(plan(["nli-apart"], tmp_path, tmp_path))
    assert wanted == ["nli-teacher", "nli-distil", "nli-apart"]  # their results are there, their models are not
    for seed in range(3):
        (tmp_path / "nli" / "distil" / f"joint-{seed}").mkdir(parents=True)
    assert names(plan(["nli-apart"], tmp_path, tmp_path)) == ["nli-apart"]
    assert names(plan(["torture"], tmp_path, tmp_path)) == ["torture"]  # by its name alone


def test_every_model_that_a_step_uses_is_made_before():
    made = set()
    for step in STEPS:
        assert set(step.uses) <= made, step.name
        made |= set(step.makes)


def test_steps_run_in_order_and_documents_come_last(tmp_path, monkeypatch, capsys):
    ran = []

    def run(words):
        ran.append(words)
        name = words[1]
        there(tmp_path, name)
        return 1 if name == "ess" else 0  # a benchmark that misses its target has written its result

    monkeypatch.setattr(reproduce_all, "main", run)
    monkeypatch.setattr(reproduce_all, "write_documents", lambda results, output: [output / "README.md"])
    monkeypatch.setattr(reproduce_all, "draw_figures", lambda results, output: [])
    words = ["reproduce", "all", "--only", "ess", "equations", "--results", str(tmp_path), "--output", str(tmp_path)]
    assert main(words) == 0
    assert ran == [["bench", name, "--output", str(tmp_path)] for name in ("equations", "ess")]
    shown = capsys.readouterr().out
    assert "[1 of 2] equations: spinformer bench equations" in shown
    assert shown.endswith("written: README.md\n")


def test_a_step_that_fails_stops_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduce_all, "main", lambda words: 2)
    assert main(["reproduce", "all", "--only", "equations", "--results", str(tmp_path)]) == 2
    assert "equations failed; the same command continues from here" in capsys.readouterr().err


def test_folders_reach_the_commands(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(reproduce_all, "main", lambda words: ran.append(words) or 0)
    monkeypatch.setattr(reproduce_all, "write_documents", lambda results, output: [])
    monkeypatch.setattr(reproduce_all, "draw_figures", lambda results, output: [])
    words = ["reproduce", "all", "--only", "nli-ablations", "negation", "--data", str(tmp_path), "--runs", "elsewhere"]
    assert main([*words, "--encoder", f"minilm={tmp_path}", "--results", str(tmp_path)]) == 0
    nli, negation = ran
    assert nli[:4] == ["reproduce", "nli", "--stage", "ablations"]
    assert nli[4:] == ["--data", str(tmp_path), "--encoder", f"minilm={tmp_path}", "--runs", "elsewhere/nli",
                       "--results", str(tmp_path)]  # fmt: skip
    assert f"{tmp_path}/monli.jsonl.gz" in negation


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "nli-paper"], "missing: --data CORPORA (for nli-paper); --encoder minilm=FOLDER (for nli-paper)"),
        (["--only", "attractor"], "missing: --images MNIST (for attractor)"),
        (["--only", "nothing"], "there is no result nothing"),
        (["--only", "nli-gate"], "nli-gate: the code for it was removed"),
        (["--encoder", "minilm"], "--encoder must be minilm=FOLDER or mpnet=FOLDER; got 'minilm'"),
        (["--only", "negation", "--data", "no/such/folder"], "there is no data no/such/folder"),
    ],
)
def test_what_is_missing_is_one_line(words, message, tmp_path, capsys):
    assert main(["reproduce", "all", *words, "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_list(capsys):
    assert main(["reproduce", "all", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(STEPS)
    assert lines[0].split() == ["equations", "there", "spinformer", "bench", "equations"]
    assert (RESULTS / "equations.json").is_file()
