"""The torture of files, kills and disks: small versions hold, and what is broken on purpose is found."""

import json
import os
import random

import pytest

pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("pyarrow")
pytest.importorskip("resource")

from research.torture.damage import ANY, JSON, TEXT, WITNESS
from research.torture.findings import Findings
from research.torture.forks import ROOT, Ended
from research.torture.formats import all_formats
from research.torture.kills import results
from research.torture.traces import Traces, contents, end_faults
from tests import fresh

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="runs commands in forked children")


@pytest.fixture(scope="module")
def found():
    done = fresh.run("from tests.research.small_torture import main; main()", imports=fresh.EVERYTHING, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_small_versions_hold(found):
    for part, count in (("files", 10), ("kills", 1), ("disks", 2)):
        assert found[part]["failures"] == []
        assert sum(found[part]["cases"].values()) == count
    assert found["files"]["figures"]["formats"] == 4


@pytest.mark.slow
def test_a_training_that_goes_on_otherwise_is_found(found):
    (failure,) = found["broken training"]
    assert "these differ: network.seed, recipe.seed" in failure


@pytest.mark.slow
def test_a_writer_that_is_not_atomic_is_found(found):
    assert any("answers.jsonl was there before, and is damaged" in failure for failure in found["broken writer"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("unpickles", "ran code from outside"),
        ("hangs", "did not end within 2 s"),
        ("half-writes", "failed, and left, changed or removed answers.jsonl"),
        ("says nothing", "not one line on standard error"),
        ("unforeseen", "exit status 1"),
        ("traceback", "a traceback: json.decoder.JSONDecodeError"),
        ("dies", "killed by signal 6"),
        ("no numbers", "wrote found.json with numbers that are none"),
    ],
)
def test_a_broken_reader_is_found(found, name, fault):
    assert any(fault in one for one in found["broken readers"][name])


def test_every_format_has_its_own_damage():
    formats = all_formats()
    assert len(formats) >= 50
    assert sum(len(one.damages) for one in formats) > 1000
    for word in (
        "config",
        "safetensors",
        "tokenizer",
        "game",
        "misfit",
        "explainer",
        "state",
        "complete",
        "rows.jsonl",
    ):
        assert any(word in one.name for one in formats)
    for word in ("csv", "tsv", "parquet", ".gz", "npz", "idx", "pictures", "highlights", "vectors", "tables", "record"):
        assert any(word in one.name for one in formats)


@pytest.mark.parametrize("damages", [ANY, TEXT, JSON], ids=["any", "text", "json"])
def test_damage_changes_a_file_and_depends_on_the_seed_alone(tmp_path, damages):
    text = "".join(json.dumps({"premise": f"a {k}", "label": k}) + "\n" for k in range(9))
    for name, damage in damages.items():
        made = []
        for folder in (tmp_path / f"{name} 1", tmp_path / f"{name} 2"):
            folder.mkdir()
            (folder / "a.jsonl").write_text(text)
            before = contents(folder), (folder / "a.jsonl").stat().st_mode
            damage(folder / "a.jsonl", random.Random(name))
            after = contents(folder), (folder / "a.jsonl").lstat().st_mode
            assert after != before or name == "no line end"
            made.append(after if name != "not readable" else after[1])
        assert made[0] == made[1]


def test_ends_of_commands():
    def faults(status, err, **options):
        return list(end_faults(Ended(status, "", err, 1.0, 0, options.get("hung", False))))

    assert faults(0, "50%|##### | 3/6 [00:01, 3.0it/s]\n") == []
    assert faults(2, "a.pt is damaged; the run goes on from b.pt\nspinformer ground: no\n") == []
    assert faults(2, "spinformer ground: one\nspinformer ground: two\n")
    assert faults(2, "odd\n")
    assert faults(2, f"spinformer ground: {'x' * 2000}\n")
    assert faults(2, "spinformer ground: \x1b[31mred\n")
    assert faults(3, "spinformer ground: no\n")
    assert faults(-9, "", hung=True)
    assert faults(-11, "")


def test_traces_of_commands(tmp_path):
    (tmp_path / "old.json").write_text("{}")
    traces = Traces(tmp_path)
    good, bad = Ended(0, "", "", 1.0, 0, False), Ended(2, "", "spinformer x: no\n", 1.0, 0, False)
    assert traces.faults(good) == []
    assert traces.faults(bad) == []
    assert traces.faults(Ended(0, "error nan\n", "", 1.0, 0, False)) == ["printed error nan"]
    (tmp_path / ".lock").touch()
    assert traces.faults(bad) == []
    (tmp_path / "old.json").unlink()
    assert traces.faults(bad) == ["failed, and left, changed or removed old.json"]
    assert traces.faults(bad, ("old",)) == []
    (tmp_path / "x.json.partial").touch()
    assert "left x.json.partial" in traces.faults(good)
    (tmp_path / WITNESS).touch()
    assert "ran code from outside" in traces.faults(good)


def test_results_are_told_apart_by_all_but_times(tmp_path):
    def made(name, **content):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.json").write_text(json.dumps({"seconds": len(name), "loss": 1.0, **content}))
        return results(folder)

    assert made("one") == made("two")
    assert made("three", loss=2.0) != made("four")


def test_findings_are_single_lines():
    found = Findings()
    found.expect(False, "two\nlines")
    assert found.failures == ["two lines"]
