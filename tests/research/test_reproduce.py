"""`reproduce nli` and `reproduce grounding` on tiny data: whole stages, their results, what they refuse."""

import gzip
import json
import pickle
import shlex
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from research.experiments import nli
from research.experiments.nli import DEV, TESTS, Folders, recipe_of
from research.experiments.nli_stages import HEADS, STAGES
from research.paths import RECIPES
from research.reports.nli import NAMES, classifiers, search
from spinformer._base import records
from spinformer._base.parallel import run_tasks
from spinformer.cli import main
from spinformer.models.pooling import POOLING_HEADS
from spinformer.training.game import GroundingOptions
from tests.tiny import rows


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    for seed, name in enumerate(("snli_train", "mnli_train", "snli_dev", *TESTS)):
        pairs = rows(40, seed, longest=5)
        if name == "monli":
            pairs = [row for row in pairs if row["label"] != "contradiction"]
        if name == "hans_regenerated":
            for row in pairs:
                row["label"] = "entailment" if row["label"] == "entailment" else "non-entailment"
        text = "".join(json.dumps(row) + "\n" for row in pairs)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


QUICK = json.dumps({"epochs": 1, "batch_size": 16, "ema": 0.9, "max_length": 32, "consistency": 0.5})


@pytest.mark.slow
def test_heads(corpora, encoder, tmp_path, capsys):
    command = ["reproduce", "nli", "--stage", "heads", "--data", str(corpora), "--encoder", f"minilm={encoder}"]
    command += ["--seeds", "0", "--only", "neurogame", "mean", "--change", QUICK]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path)]
    assert main(command) == 0
    record = records.read("nli-heads", tmp_path)
    assert [(run["job"], run["seed"]) for run in record["outcome"]["runs"]] == [("neurogame", 0), ("mean", 0)]
    assert set(record["outcome"]["means"]["mean"]) == {"snli_dev", *TESTS}
    assert record["outcome"]["runs"][0]["pairs"] == 80
    table = classifiers(record)
    assert table.count("\n") == 3
    assert "NeuroGame" in table
    assert str(tmp_path) not in json.dumps(record)  # no folder of this machine
    words = shlex.split(record["command"])  # all that decides what comes out
    assert words == ["spinformer", *command[:4], "--seeds", "0", "--only", "neurogame", "mean", "--change", QUICK]
    shutil.rmtree(tmp_path / "runs" / "heads" / "mean-0")
    assert main(command) == 0  # what is on file is not run again
    assert not (tmp_path / "runs" / "heads" / "mean-0").exists()


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_recipes_that_can_be_read(name, tmp_path):
    jobs, sets = STAGES[name].jobs((0, 1), tmp_path), STAGES[name].sets
    folders = Folders(tmp_path, {"minilm": "here/minilm"}, tmp_path / "vectors.txt", tmp_path)
    recipes = [recipe_of(job, folders) for job in jobs]
    assert len({(job.name, job.seed) for job in jobs}) == len(jobs) > 0
    assert set(sets) in ({DEV, *TESTS}, {DEV}, set(), {DEV, "snli_test", "mnli_dev_matched"})
    assert all(recipe.dev.endswith("snli_dev.jsonl.gz") for recipe in recipes)
    if name in ("tune", "pilot"):
        assert set(sets) == {DEV}  # nothing is chosen on a test set
        assert len({json.dumps(recipe.to_dict()) for recipe in recipes}) == len(jobs)  # each tries something else


def test_rows_of_one_recipe_differ_in_their_pooling_head_alone(tmp_path):
    """As the recipes of two lines had it: head, and nothing else."""
    folders = Folders(tmp_path, {"minilm": "here/minilm"}, None, tmp_path)
    recipes = {job.name: recipe_of(job, folders).to_dict() for job in STAGES["heads"].jobs((0,), tmp_path)}
    assert list(recipes) == list(HEADS)
    for name in ("cls", "mean", "attention", "released"):
        assert recipes[name] == {**recipes["neurogame"], "head": name}
        assert not (RECIPES / "nli" / f"{name}.yaml").exists()


@pytest.mark.parametrize("stage", ["where", "gate"])
def test_retired_stages(stage, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "nli", "--stage", stage, "--data", str(tmp_path)])
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.slow
def test_tune_shows_what_was_searched(corpora, encoder, tmp_path):
    command = ["reproduce", "nli", "--stage", "tune", "--data", str(corpora), "--encoder", f"other={encoder}"]
    change = json.dumps({**json.loads(QUICK), "encoder": "other"})  # a name, and no folder that a stage would make
    command += ["--only", "cls-base", "--change", change, "--runs", str(tmp_path / "runs"), "--results", str(tmp_path)]
    assert main(command) == 0
    assert "cls" in search(records.read("nli-tune", tmp_path))


def test_what_is_refused(corpora, tmp_path, capsys):
    command = ["reproduce", "nli", "--stage", "heads", "--data"]
    assert main([*command, str(tmp_path)]) == 2
    assert "lacks snli_dev.jsonl.gz" in capsys.readouterr().err
    assert main([*command, str(corpora), "--encoder", "minilm"]) == 2
    assert "NAME=FOLDER" in capsys.readouterr().err
    assert main([*command, str(corpora), "--seeds", "1", "1"]) == 2
    assert "--seeds must be numbers from 0 on that differ; got 1 1" in capsys.readouterr().err
    assert main(["reproduce", "nli", "--stage", "apart", "--data", str(corpora), "--change", '{"epochs": 1}']) == 2
    assert "stage apart trains nothing" in capsys.readouterr().err
    assert main([*command, str(corpora), "--only", "best"]) == 2
    assert "is named best" in capsys.readouterr().err


@pytest.fixture
def small_games(monkeypatch):
    small = partial(GroundingOptions, heads=4, dim=16, hidden=32, readout=16)
    monkeypatch.setattr("research.commands.reproduce_grounding.GroundingOptions", small)


@pytest.mark.slow
@pytest.mark.usefixtures("small_games")
def test_grounding_of_a_frozen_classifier(corpora, tmp_path):
    import torch
    from transformers import BertForSequenceClassification

    from tests.tiny import NLI, bert, tokenizer

    torch.manual_seed(0)
    folder = tmp_path / "model"
    BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    command = ["reproduce", "grounding", "--model", str(folder), "--seeds", "2", "--count", "2"]
    command += ["--texts", str(corpora / "snli_train.jsonl.gz"), "--test", str(corpora / "snli_test.jsonl.gz")]
    command += ["--batch-size", "8", "--runs", str(tmp_path / "runs"), "--results", str(tmp_path)]
    assert main([*command, "--stage", "frozen"]) == 0
    runs = records.read("grounding-frozen", tmp_path)["outcome"]["runs"]
    assert [run["seed"] for run in runs] == [0, 1]
    cheap = runs[1]["faithfulness"]["methods"]
    assert {"shapley", "attention", "leave-one-out", "gradient-times-input", "random"} <= set(cheap)
    assert "kernel-shap" not in cheap
    assert cheap["leave-one-out"]["passes"] > 2
    assert all(run["seconds"] > 0 for run in runs)
    assert main([*command, "--stage", "frozen"]) == 0
    assert records.read("grounding-frozen", tmp_path)["outcome"]["runs"] == runs  # from file: nothing took any seconds
    assert main([*command, "--stage", "ess"]) == 0
    alone = records.read("grounding-ess", tmp_path)["outcome"]["runs"]
    for one, run in zip(alone, runs, strict=True):  # the sizes are asked for there alone
        assert run["diagnostics"].items() < one["diagnostics"].items()
        assert one["diagnostics"]["ess_texts"] == 2
        assert 0 < one["diagnostics"]["ess_least"] <= one["diagnostics"]["ess_mean"] <= 1 + 1e-6
    assert main([*command, "--stage", "pooling"]) == 0
    pooled = records.read("grounding-pooling", tmp_path)["outcome"]["runs"]
    assert [set(run["faithfulness"]["methods"]) for run in pooled] == [{"attention-pooling", "random"}] * 2
    assert [(run["pooling"]["texts"], run["pooling"]["steps"]) for run in pooled] == [(40, 5)] * 2
    weights = tmp_path / "runs" / "model-0" / "pooling" / "pooling.safetensors"
    written = weights.stat().st_mtime_ns
    assert main([*command, "--stage", "methods", "--bf16"]) == 0
    (run,) = records.read("grounding-methods", tmp_path)["outcome"]["runs"]
    assert run["seconds"] is None  # the head of seed 0 was there
    methods = run["faithfulness"]["methods"]
    assert {*cheap, "integrated-gradients", "kernel-shap", "shapley-sampling", "attention-pooling"} <= set(methods)
    assert weights.stat().st_mtime_ns == written  # the pooling of seed 0 was there
    assert methods["shapley-sampling"]["passes"] > 10
    assert methods["shapley"]["passes"] == 1
    assert run["fit"]["texts"] == 2
    assert set(run["differences"]["random"]) == {"comprehensiveness", "sufficiency"}


@pytest.mark.slow
def test_rows_that_learn_from_a_teacher(corpora, encoder, tmp_path, capsys, monkeypatch):
    from safetensors.torch import load_file

    def weights(folder, prefix="model.encoder."):
        tensors = load_file(folder / "model.safetensors")
        return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

    def distance(one, other):
        return max(float((value - other[name]).abs().max()) for name, value in one.items())

    runs = tmp_path / "runs"
    common = ["--data", str(corpora), "--encoder", f"minilm={encoder}", "--encoder", f"mpnet={encoder}"]
    common += ["--runs", str(runs), "--results", str(tmp_path)]
    quick = {"epochs": 1, "steps": 4, "batch_size": 16, "ema": 0.9, "max_length": 32}
    assert main(["reproduce", "nli", "--stage", "teacher", *common, "--change", json.dumps(quick)]) == 0
    command = ["reproduce", "nli", *common, "--seeds", "0", "1", "--change", json.dumps(quick), "--stage"]
    assert main([*command, "pilot"]) == 0
    pilots = records.read("nli-pilot", tmp_path)["outcome"]["runs"]
    assert [run["job"] for run in pilots] == ["dropout", "without"]
    assert [(run["recipe"]["dropout"], run["recipe"]["encoder_dropout"]) for run in pilots] == [(0.1, 0.1), (0.0, 0.0)]
    assert all(set(run["scores"]) == {"snli_dev"} for run in pilots)  # nothing is chosen on a test set
    # The pilot's teacher answered in a process of its own; the others, whose start takes long, are spared.
    monkeypatch.setattr(nli, "ProcessPoolExecutor", lambda count, mp_context: ThreadPoolExecutor(count))

    capsys.readouterr()
    assert main([*command, "taught", "--only", "mean"]) == 2
    assert str(runs / "distil" / "joint-0") in capsys.readouterr().err  # there is no encoder yet
    assert main([*command, "distil"]) == 0
    joint = records.read("nli-distil", tmp_path)["outcome"]["runs"]
    assert [(run["job"], run["seed"], run["recipe"]["head"]) for run in joint] == [
        ("joint", 0, "joint"), ("joint", 1, "joint"),
    ]  # fmt: skip
    assert [run["recipe"]["encoder"] for run in (*pilots, *joint)] == [encoder.name] * 4
    assert all(set(run["scores"]) == {"snli_dev", *TESTS} for run in joint)

    processes_asked = []

    def here(function, tasks, *, processes):
        processes_asked.append(processes)
        return run_tasks(*pickle.loads(pickle.dumps((function, tasks))), processes=1)

    plain = ["reproduce", "nli", *common, "--seeds", "0", "1", "--stage"]
    with monkeypatch.context() as patch:
        patch.setattr(nli, "run_tasks", here)
        assert main([*plain, "apart", "--only", "neurogame", "cls", "--jobs", "2"]) == 0
    assert processes_asked == [2]
    parts = records.read("nli-apart", tmp_path)["outcome"]["runs"]
    assert [(run["job"], run["seed"]) for run in parts] == [
        (head, seed) for head in POOLING_HEADS["joint"].parts if head in ("neurogame", "cls") for seed in (0, 1)
    ]
    for run in parts:
        full = joint[run["seed"]]
        assert (run["recipe"], run["train_seconds"]) == (full["recipe"], full["train_seconds"])
        assert run["parameters"] < full["parameters"]
        folder = runs / "apart" / f"{run['job']}-{run['seed']}"
        assert distance(weights(runs / "distil" / f"joint-{run['seed']}"), weights(folder)) == 0

    still = json.dumps({**quick, "learning_rate": 1e-9})  # ends where it began
    assert main([*command, "taught", "--only", "mean", "grounded", "--change", still]) == 0
    record = records.read("nli-taught", tmp_path)
    outcome = record["outcome"]
    table = classifiers(record, records.read("nli-distil", tmp_path))  # one of several results
    names = [line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]]
    assert names == [f"{NAMES[row]}, taught" for row in ("mean", "grounded", "joint")]
    rows = [("mean", 0), ("mean", 1), ("grounded", 0), ("grounded", 1)]
    assert [(run["job"], run["seed"]) for run in outcome["runs"]] == rows
    assert [(run["pairs"], run["rows"]) for run in outcome["runs"]] == [(80, 16 * 200)] * 4
    recipes = [run["recipe"] for run in outcome["runs"]]
    assert [recipe["settle"] for recipe in recipes] == [0, 0, 1, 1]
    assert [recipe["encoder"] for recipe in recipes] == ["joint-0", "joint-1"] * 2
    assert {(recipe["near"], recipe["teacher"], recipe["views"]) for recipe in recipes} == {
        (encoder.name, "teacher-0", 16)
    }
    assert set(outcome["means"]) == {"mean", "grounded"}
    assert str(tmp_path) not in json.dumps(record)  # no folder of this machine
    assert len(list((runs / "teacher" / "teacher-0").glob("lesson-*"))) == 1  # one for all rows of all stages

    prepared = [weights(runs / "distil" / f"joint-{seed}") for seed in (0, 1)]
    assert distance(*prepared) > 1e-4
    assert distance(prepared[0], weights(encoder, "")) > 1e-4
    for name, seed in rows:
        assert distance(prepared[seed], weights(runs / "taught" / f"{name}-{seed}")) < 1e-6, (name, seed)


@pytest.mark.usefixtures("small_games")
def test_a_head_made_otherwise_is_not_taken(corpora, tmp_path, capsys):
    from transformers import BertForSequenceClassification

    from tests.tiny import bert, tokenizer

    folder = tmp_path / "model"
    BertForSequenceClassification(bert(num_labels=3)).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    command = ["reproduce", "grounding", "--stage", "ess", "--model", str(folder), "--seeds", "1", "--count", "2"]
    command += ["--texts", str(corpora / "snli_train.jsonl.gz"), "--test", str(corpora / "snli_test.jsonl.gz")]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path), "--batch-size"]
    assert main([*command, "8"]) == 0
    assert main([*command, "16"]) == 2
    assert "holds what was made with other options or texts" in capsys.readouterr().err
    (tmp_path / "runs" / "model-0" / "made.json").unlink()
    assert main([*command, "8"]) == 0  # as measured before, head or no head
    shutil.rmtree(tmp_path / "runs" / "measured")
    assert main([*command, "8"]) == 2  # nobody knows how it was made
    assert "holds what was made with other options or texts" in capsys.readouterr().err
