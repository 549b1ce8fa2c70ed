"""The NeuroGame Transformer as published: its rows, whole stages on tiny data, what is read in a layer, the tables."""

import gzip
import json
import shutil

import pytest
import torch

from research.experiments import layer_reading, nli_paper
from research.experiments.layer_reading import LayerReader, class_couplings, read_layer, signs
from research.experiments.negation import Case, negation_cases
from research.experiments.nli import Folders, recipe_of
from research.experiments.nli_stages import STAGES
from research.reports import neurogame as tables
from spinformer._base import records
from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from tests.tiny import NLI, rows, tokenizer

QUICK = {"epochs": 1, "batch_size": 16, "max_length": 32}


def jobs(stage, tmp_path, seeds=(0, 1, 2)):
    folders = Folders(tmp_path, {"minilm": "here/minilm", "mpnet": "here/mpnet"}, None, tmp_path)
    return {(job.name, job.seed): recipe_of(job, folders) for job in STAGES[stage].jobs(seeds, tmp_path)}


def test_the_paper_recipe_is_that_of_section_7_3():
    recipe = nli_paper.paper_recipe()
    assert (recipe["epochs"], recipe["learning_rate"], recipe["weight_decay"]) == (5, 3e-5, 0.02)
    assert (recipe["batch_size"], recipe["accumulation"], recipe["clip"], recipe["warmup"]) == (32, 2, 1.0, 0.1)
    assert (recipe["schedule"], recipe["milestones"], recipe["factor"]) == ("steps", [3, 4], 0.1)
    assert (recipe["dropout"], recipe["label_smoothing"], recipe["mixup"], recipe["ema"]) == (0.15, 0.1, 0.2, 0.999)
    assert recipe["max_length"] == 128
    game = recipe["game"]
    assert (game["preset"], game["temperature"], game["samples"], game["eval_samples"]) == ("paper", 0.25, 15, 25)
    assert (game["damping"], game["max_steps"], game["tol"]) == (0.7, 25, 1e-4)


def test_rows_of_the_paper(tmp_path):
    recipes = jobs("paper", tmp_path)
    assert len(recipes) == 4 * 3 + 4
    for (name, seed), recipe in recipes.items():
        assert (recipe.batch_size, recipe.accumulation, recipe.learning_rate, recipe.ema) == (256, 1, 8.5e-5, 0.992)
        assert (recipe.label_smoothing, recipe.mixup, recipe.dropout, recipe.epochs) == (0.1, 0.2, 0.15, 5)
        assert recipe.encoder == ("here/mpnet" if name.endswith("-mpnet") else "here/minilm")
        assert not name.endswith("-mpnet") or seed == 0
    heads = [recipes[name, 0].head for name in ("paper", "spins", "default", "cls")]
    assert heads == ["neurogame", "spins", "neurogame", "cls"]
    assert recipes["paper", 0].game == recipes["spins", 0].game
    (literal,) = jobs("literal", tmp_path, (0,)).values()
    assert (literal.batch_size, literal.learning_rate, literal.ema) == (32, 3e-5, 0.999)
    assert literal.save_steps > 0


def test_ablations_change_one_thing_each(tmp_path):
    recipes = jobs("ablations", tmp_path)
    paper = recipes["paper", 0]
    assert [name for name, seed in recipes if name == "paper"] == ["paper"] * 3
    others = {name: recipe for (name, _), recipe in recipes.items() if name != "paper"}
    assert len(others) == len(nli_paper.ABLATIONS) == 16
    for name, recipe in others.items():
        assert {**recipe.to_dict(), "game": {}} == {**paper.to_dict(), "game": {}}
        changed = {key for key, value in recipe.game.items() if paper.game.get(key) != value}
        assert changed == set(nli_paper.ABLATIONS[name])
    assert paper.milestones == [0.6, 0.8]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    for seed, name in enumerate(("snli_train", "mnli_train", "snli_dev", "snli_test", "mnli_dev_matched")):
        text = "".join(json.dumps(row) + "\n" for row in rows(40 if "train" in name else 6, seed, longest=5))
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


@pytest.fixture
def small_readings(monkeypatch):
    few = {name: group[:2] for name, group in negation_cases().items()}
    monkeypatch.setattr(layer_reading, "negation_cases", lambda: few)
    monkeypatch.setattr(layer_reading, "DRAWS", 2)
    monkeypatch.setattr(layer_reading, "TARGET_SAMPLES", 32)


@pytest.fixture
def command(corpora, encoder, tmp_path, small_readings):
    words = ["reproduce", "nli", "--data", str(corpora), "--runs", str(tmp_path / "runs"), "--results", str(tmp_path)]
    words += ["--encoder", f"minilm={encoder}", "--encoder", f"mpnet={encoder}", "--seeds", "0"]
    return lambda stage, **change: [*words, "--stage", stage, "--change", json.dumps({**QUICK, **change})]


@pytest.mark.slow
def test_stage_paper(command, tmp_path):
    assert main([*command("paper"), "--only", "paper", "spins", "cls", "default-mpnet"]) == 0
    record = records.read("nli-paper", tmp_path)
    runs = {run["job"]: run for run in record["outcome"]["runs"]}
    assert list(runs) == ["paper", "spins", "cls", "default-mpnet"]
    layer, width = 32 * 32 + 33 + 1, 32  # W_v, gate, temperature
    assert runs["paper"]["added"] == layer + (width * width + width) + (width * 3 + 3)
    assert runs["cls"]["added"] == (width * width + width) + (width * 3 + 3)
    for name, run in runs.items():
        assert set(run["scores"]) == {"snli_dev", "snli_test", "mnli_dev_matched"}
        assert sum(map(sum, run["scores"]["snli_test"]["confusion"])) == 6
        assert run["scores"]["snli_test"]["names"] == list(NLI)
        methods = set(run["reading"]["faithfulness"]["methods"])
        assert {"leave-one-out", "random"} <= methods
        assert ("layer" in methods) == ("signs" in run["reading"]) == (name != "cls")
        assert run["reading"]["texts"] == 6
    assert runs["paper"]["scores"]["snli_test"]["game"]["ess_mean"] <= 25
    assert str(tmp_path) not in json.dumps(record)  # no folder of this machine
    for table in (tables.published, tables.confusion, tables.signs, tables.neutral):
        assert "sections 7.3" in table(record)
        assert "on all-mpnet-base-v2" in table(record)
    assert tables.signs(record).count("\n") == 1 + 3 * 2 * 2  # rows with a layer, two words, two readings


@pytest.mark.slow
def test_stage_ablations(command, tmp_path):
    quick = command("ablations", milestones=[0.6, 0.8])
    names = ["paper", "lambda-1", "no-couplings", "K-50", "heads-4"]
    assert main([*quick, "--only", *names]) == 0
    record = records.read("nli-ablations", tmp_path)
    runs = {run["job"]: run for run in record["outcome"]["runs"]}
    assert list(runs) == names
    assert runs["lambda-1"]["reading"]["gate"] == {"mean": 1.0, "std": 0.0}
    assert "signs" not in runs["no-couplings"]["reading"]
    assert "signs" in runs["heads-4"]["reading"]
    table = tables.ablations(record)
    assert "| none | " in table
    assert " of 50 | " in table


@pytest.mark.slow
def test_a_literal_run_that_was_stopped_continues(command, tmp_path, monkeypatch):
    from spinformer.training.classifier.trainer import ClassifierTrainer

    words = command("literal", save_steps=2, ema=0.9)
    average = ClassifierTrainer.evaluate

    def stop(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ClassifierTrainer, "evaluate", stop)
    assert main(words) == 130
    folder = tmp_path / "runs" / "literal" / "literal-0"
    assert (folder / "checkpoint-4" / "complete").is_file()
    monkeypatch.setattr(ClassifierTrainer, "evaluate", average)
    assert main(words) == 0
    assert json.loads((folder / "training.json").read_text())["resumed"]
    shutil.rmtree(folder)
    assert main(words) == 0  # what is on file is not run again
    assert not folder.exists()


def model(encoder, **game):
    torch.manual_seed(0)
    return NeuroGameForSequenceClassification.from_encoder(
        str(encoder), labels=NLI, special_ids=(0, 1, 2, 3), **game
    ).eval()


CASES = [Case("a man runs not", "the dog eats", (0, 1), (0, 3)), Case("two red cat", "a dog not eats", (1, 1), (1, 2))]


def test_couplings_of_words_are_those_of_the_layer(encoder):
    """Every word of the tiny vocabulary is one token, so words have the couplings of their tokens."""
    own = model(encoder, preset="paper", temperature=2.0)
    reader = LayerReader(own, tokenizer())
    texts = Texts([case.premise for case in CASES], [case.hypothesis for case in CASES])
    batch = reader.encode(texts)
    couplings = reader.couplings(batch, reader.own)
    words = split_words(tokenizer(), texts, 128)
    with torch.no_grad():
        J = own(**words.inputs, output_game=True).game.interactions.dense()[:, 0]
    for row in range(2):
        tokens = [index for index, owner in enumerate(words.owner[row].tolist()) if owner >= 0]
        torch.testing.assert_close(couplings[row, : len(tokens), : len(tokens)], J[row][tokens][:, tokens])
    assert reader.target.settings.proposal == "tilted"
    assert reader.own.settings.proposal == "uniform"
    assert torch.equal(reader.couplings(batch, reader.own), couplings)  # the same coalitions each time
    assert not torch.equal(reader.couplings(batch, reader.own, seed=1), couplings)


def test_signs_are_counted(encoder):
    reader = LayerReader(model(encoder, preset="paper", temperature=2.0), tokenizer())
    found = signs(reader, CASES, -1)
    for name in ("own", "target"):
        row = found[name]
        assert row["negative"] + row["positive"] == row["texts"] == 2
        assert 0 <= row["flips"] <= 1
    assert found["fixed"]["negative"] + found["fixed"]["positive"] == 2
    assert found["target"]["stderr"] is not None


@pytest.mark.usefixtures("small_readings")
def test_couplings_by_class(encoder):
    pairs = rows(12, longest=4)
    texts = Texts(
        [row["premise"] for row in pairs], [row["hypothesis"] for row in pairs],
        [NLI.index(row["label"]) for row in pairs], NLI,
    )  # fmt: skip
    reader = LayerReader(model(encoder), tokenizer())
    found = class_couplings(reader, texts)
    assert sum(row["texts"] for row in found["classes"].values()) == 12
    first = texts.select([0])
    J = reader.couplings(reader.encode(first), reader.own)[0].abs()
    alone = class_couplings(reader, first)["classes"][pairs[0]["label"]]["own"]["all"]["mean"]
    assert alone == pytest.approx(float(J.triu(1).sum() / (len(J) * (len(J) - 1) / 2)), rel=1e-5)
    assert all(0 <= auc <= 1 for auc in found["neutral_auc"].values())
    assert {"attention", "gate", "signs", "classes"} <= set(read_layer(reader.model, tokenizer(), texts.select([0, 1])))


# Tables from made-up records.


def run(job, seed=0, accuracy=0.8, **reading):
    scores = {
        "accuracy": accuracy,
        "names": ["neutral", "entailment", "contradiction"],  # another order than the table's
        "confusion": [[6, 3, 1], [0, 8, 2], [1, 0, 9]],
        "game": None if job == "cls" else {"ess_mean": 1.1, "converged": 0.975},
    }
    return {
        "job": job,
        "seed": seed,
        "pairs": 164653,
        "added": 1_183_493,
        "scores": dict.fromkeys(("snli_test", "mnli_dev_matched"), scores),
        "recipe": {"batch_size": 256, "game": {"eval_samples": 25}},
        "reading": {"attention": {"std": 0.025}, **reading},
    }


def test_table_of_published_rows():
    record = {"outcome": {"runs": [run("paper", 0), run("paper", 1, 0.82), run("cls-mpnet")]}}
    record["outcome"]["runs"][-1]["scores"]["snli_test"] = {**run("cls")["scores"]["snli_test"]}
    lines = tables.published(record).splitlines()
    assert lines[2] == (
        "| NeuroGame, the paper's (sections 3.11, 3.12) | 81.00 ± 1.41 | 81.00 ± 1.41 | 1,183,493 | 1.1 of 25 | 97.5% "
        "| 164,653 (17%) | 256 | 2 |"
    )
    assert lines[3].startswith(
        "| first token (CLS), on all-mpnet-base-v2 | 80.00 | 80.00 | 1,183,493 |  |  | 164,653 (17%) | 256 | 1"
    )


def test_table_of_confusion():
    table = tables.confusion({"outcome": {"runs": [run("paper")]}})
    assert "| SNLI test | 80.0 | 60.0 | 90.0 | 30.0 | 10.0 |" in table  # of neutral pairs 3 of 10 as entailment


def test_table_of_ablations():
    methods = {name: {"comprehensiveness": {"mean": 0.1}, "sufficiency": {"mean": 0.4}} for name in ("layer", "random")}
    runs = [run(name, faithfulness={"methods": methods}) for name in ("gamma-0.05", "heads-4", "paper")]
    lines = tables.ablations({"outcome": {"runs": runs}}).splitlines()
    assert lines[2].startswith("| none | 80.00 | 80.00 | 1.1 of 25 | 98% | 0.025 | 0.100 |  | 0.100 | 0.400 |")
    assert lines[3].startswith("| γ = 0.05 | ")  # whatever the order of the runs
    assert lines[4].startswith("| 4 heads | ")


def test_tables_of_what_the_layer_says():
    row = {"claim": -1, "negative": 20, "positive": 30, "clear_negative": 5, "clear_positive": 9, "mean": 0.5}
    words = {name: {reading: {**row, "flips": 0.25} for reading in ("own", "target")} for name in ("not", "very")}
    sizes = {name: {"all": {"mean": 0.2}} for name in ("own", "target")}
    classes = {"classes": dict.fromkeys(NLI, sizes), "neutral_auc": {"own": 0.5, "target": 0.4}}
    record = {"outcome": {"runs": [run("paper", seed, signs=words, classes=classes) for seed in (0, 1)]}}
    form, line = (
        "NeuroGame, the paper's (sections 3.11, 3.12)",
        '"not X" | − | as evaluated | 40 | 60 | 10 / 18 | +0.5000',
    )
    assert f"| {form} | {line} | 25% |" in tables.signs(record)
    assert "| what it converges to | 0.2000 | 0.2000 | 0.2000 | 0.40 |" in tables.neutral(record)


def test_added_parameters_at_two_widths():
    table = tables.added_parameters()
    assert "| NeuroGame, the paper's (sections 3.11, 3.12) | 296,837 | 1,183,493 |" in table
    assert "| the authors' released head | 116,355 | 165,507 |" in table
    assert "| the paper says |  | 754,000 |" in table
