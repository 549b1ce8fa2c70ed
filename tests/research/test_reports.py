"""Documents quote results, and only results."""

import json
import math
import re
import runpy
import sys
from statistics import stdev

import pytest

from research.paths import RESULTS
from research.reports import attractor, attractor_text, grounding, neurogame, nli, render
from research.reports.documents import documents, rendered
from research.reports.markdown import markdown
from research.reports.results import RENAMED, read_result
from research.reports.tables import TABLES
from spinformer._base import records
from spinformer._base.extras import require

DOCUMENTS = documents()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_are_in_step_with_results(path):
    assert rendered(path, RESULTS) == path.read_text(), f"{path.name} is out of date: run `make docs`"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_figures_and_tables(tmp_path):
    outcome = {"rows": [], "share": 0.5, "list": [{"n": 12345}]}
    records.write("thing", outcome, command="c", config={}, directory=tmp_path)
    text = "a <!--=thing:share:.1%-->?<!--/=--> b <!--=thing:list.0.n:,-->old<!--/=-->"
    rendered = render(text, tmp_path)
    assert rendered == "a <!--=thing:share:.1%-->50.0%<!--/=--> b <!--=thing:list.0.n:,-->12,345<!--/=-->"
    assert render(rendered, tmp_path) == rendered


def test_runs_by_name(tmp_path):
    runs = [{"job": "mean", "seed": 0, "n": 1}, {"job": "cls", "seed": 0, "n": 2}, {"job": "cls", "seed": 1, "n": 3}]
    records.write("thing", {"runs": runs}, command="c", config={}, directory=tmp_path)
    assert ">2<" in render("<!--=thing:runs.cls-0.n:d--><!--/=-->", tmp_path)
    assert ">3<" in render("<!--=thing:runs.cls-1.n:d--><!--/=-->", tmp_path)
    with pytest.raises(ValueError, match=r"has no outcome 'runs\.cls-2\.n'"):
        render("<!--=thing:runs.cls-2.n:d--><!--/=-->", tmp_path)


def test_methods_have_one_name():
    """Older results have other names of methods; the documents have the current ones only."""
    text = "".join(path.read_text() for path in DOCUMENTS)
    assert not [name for name in RENAMED if name in text]
    methods = read_result("grounding-methods", RESULTS)["outcome"]["runs"][0]["faithfulness"]["methods"]
    assert {"shapley", "banzhaf", "field", "attention", "layer", "layer-field", "leave-one-out"} <= set(methods)
    old = records.read("grounding-methods", RESULTS)["outcome"]["runs"][0]["faithfulness"]["methods"]
    assert old["neurogame-attention"] == methods["layer"]
    assert len(old) == len(methods)


def test_figures_by_the_current_name(tmp_path):
    outcome = {"methods": {"grounded shapley": {"mean": 0.5}}, "differences": [{"neurogame-fields": 1}]}
    records.write("thing", outcome, command="c", config={}, directory=tmp_path)
    assert ">0.5<" in render("<!--=thing:methods.shapley.mean:.1f--><!--/=-->", tmp_path)
    assert ">1<" in render("<!--=thing:differences.0.layer-field:d--><!--/=-->", tmp_path)


def test_unknown_figure_and_table(tmp_path):
    records.write("thing", {"a": 1}, command="c", config={}, directory=tmp_path)
    with pytest.raises(ValueError, match=r"has no outcome 'b\.c'"):
        render("<!--=thing:b.c:d--><!--/=-->", tmp_path)
    with pytest.raises(ValueError, match="no table named 'nothing'"):
        render("<!--table=nothing-->\n<!--/table-->", tmp_path)


def test_nan_and_infinities_become_null(tmp_path):
    outcome = {"a": [1.0, float("nan")], "b": {"c": (float("inf"), 2)}}
    path = records.write("thing", outcome, command="c", config={}, directory=tmp_path)
    assert "NaN" not in path.read_text()
    assert records.read("thing", tmp_path)["outcome"] == {"a": [1.0, None], "b": {"c": [None, 2]}}


def test_every_result_is_json():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    for path in sorted(RESULTS.glob("*.json")):
        json.loads(path.read_text(), parse_constant=refuse)


def test_every_table_is_used_and_drawn():
    text = "".join(path.read_text() for path in DOCUMENTS)
    for name in TABLES:
        assert f"<!--table={name}-->" in text, name
    assert markdown(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_results_say_where_they_come_from():
    for path in RESULTS.glob("*.json"):
        record = records.read(path.stem, RESULTS)
        for source in record["outcome"].get("sources", [record]):
            assert source["command"].startswith("spinformer ")
        assert {"config", "data", "hardware", "versions", "written", "outcome"} <= set(record)


def test_the_commit_of_a_copy_without_history(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for commit in (None, "1234567"):
        if commit:
            monkeypatch.setenv("SPINFORMER_COMMIT", commit)
        else:
            monkeypatch.delenv("SPINFORMER_COMMIT", raising=False)
        records.write("thing", {}, command="c", config={}, directory=tmp_path)
        assert records.read("thing", tmp_path)["commit"] == commit


def test_the_commit_that_was_named_counts(monkeypatch):
    """A copy of the code may lie in the history of something else."""
    monkeypatch.setenv("SPINFORMER_COMMIT", "1234567")
    assert records.commit() == "1234567"


def test_runs_are_gathered(tmp_path, monkeypatch):
    def run(job, seed, accuracy):
        return {"job": job, "seed": seed, "scores": {"dev": {"accuracy": accuracy}}}

    kinds = {"old": [run("a", 0, 0.5), run("a", 1, 0.7), run("b", 0, 0.1)], "new": [run("b", 0, 0.2), run("c", 0, 0.3)]}
    for name, runs in kinds.items():
        records.write(
            name, {"runs": runs}, command=f"spinformer {name}", config={}, data={"f": "0"}, directory=tmp_path
        )

    def gather(name, *files):
        words = [name, *(str(tmp_path / f"{file}.json") for file in files), "--results", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["gather", *words])
        runpy.run_module("research.tools.gather", run_name="__main__")

    for name, second in (("both", "new"), ("again", "both")):  # what was gathered can be gathered again
        gather(name, "old", second)
        outcome = records.read(name, tmp_path)["outcome"]
        assert outcome["means"] == {"a": {"dev": pytest.approx(60)}, "b": {"dev": 20}, "c": {"dev": 30}}
    assert [source["command"] for source in outcome["sources"]] == [
        "spinformer old",
        "spinformer old",
        "spinformer new",
    ]
    score = dict.fromkeys(("accuracy", "interval", "macro_f1", "ece", "names", "confusion"), 0.9)
    scores = {"dev": {"scores": score, "count": 1, "game": None}}
    config, alone = {"recipe": {}}, {"job": "d", "seed": 0, "scores": scores}  # the record of one run
    records.write("d-0", alone, command="spinformer", config=config, data={"f": "0"}, directory=tmp_path)
    gather("more", "old", "d-0")
    assert records.read("more", tmp_path)["outcome"]["means"]["d"] == {"dev": 90}
    records.write("other", {"runs": []}, command="spinformer", config={}, data={"f": "1"}, directory=tmp_path)
    with pytest.raises(SystemExit, match=r"not trained on the same files: old\.json, other\.json"):
        gather("x", "old", "other")


@pytest.mark.parametrize(("kind", "one", "two"), [("tasks", "sst2", "snli"), ("architectures", "bert", "gpt2")])
def test_rows_with_names_are_gathered(kind, one, two, tmp_path, monkeypatch):
    def gather(name, *files):
        words = [name, *(str(tmp_path / f"{file}.json") for file in files), "--results", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["gather", *words])
        runpy.run_module("research.tools.gather", run_name="__main__")
        return records.read(name, tmp_path)

    def record(name, accuracy, command=kind):
        outcome = {"quality": {"accuracy": accuracy}, "data": {f"{name}.gz": "0"}}
        records.write(name, outcome, command=f"spinformer reproduce {command}", config={}, directory=tmp_path)

    record(two, 0.8)
    record(one, 0.7)
    first = gather("both", two, one)
    assert list(first["outcome"][kind]) == [one, two]
    assert first["data"] == {f"{one}.gz": "0", f"{two}.gz": "0"}
    record(one, 0.9)
    again = gather("again", "both", one)["outcome"]  # the later file counts
    assert again[kind][one]["quality"] == {"accuracy": 0.9}
    assert len(again["sources"]) == 3
    record("other", 0.9, "nli")
    with pytest.raises(SystemExit, match=r"different commands: both\.json, other\.json"):
        gather("x", "both", "other")


def test_missing_extra_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'spinformer\[dreams\]'"):
        require("a_package_that_is_not_there", extra="dreams")


def test_points_of_student():
    assert [nli.student(freedom) for freedom in (1, 4, 20, 1000.5)] == [12.706, 2.776, 2.086, 2.086]
    assert nli.student(4) < nli.student(3.9) < nli.student(3.1) < nli.student(3)


def scored(job, seed, accuracy):
    """A run with this accuracy, in percent, on every set that heads are compared on."""
    return {
        "job": job,
        "seed": seed,
        "scores": {name: {"accuracy": accuracy / 100} for name in ("snli_dev", *nli.SETS)},
    }


def test_heads_with_different_numbers_of_seeds_are_compared():
    ours = [scored("neurogame", seed, 80 + 0.001 * (seed % 2)) for seed in range(6)]
    others = [scored(name, seed, 79 + seed) for name in ("cls", "mean", "attention") for seed in range(2)]
    # Nearly all of the spread is that of two runs: one degree of freedom, whatever the others are.
    wide = 12.706 * stdev([79, 80]) / math.sqrt(2)
    shown = float(re.search(r"± ([\d.]+) \|", nli.difference({"outcome": {"runs": [*ours, *others]}}))[1])
    assert shown == pytest.approx(wide, abs=0.02)


def test_heads_are_compared_seed_by_seed():
    ours = [scored("neurogame", seed, 80 + seed) for seed in range(3)]
    others = [
        scored(name, seed, 79 + seed + 0.1 * (seed == 2)) for name in ("cls", "mean", "attention") for seed in (2, 0, 1)
    ]
    record = {"outcome": {"runs": [*ours, *others]}}
    wide = 4.303 * 0.1 / 3  # t times the standard error of differences of 1, 1 and 0.9
    assert f"| +0.97 ± {wide:.2f} |" in nli.paired(record)
    stderr = math.sqrt((stdev([80, 81, 82]) ** 2 + stdev([79, 80, 81.1]) ** 2) / 3)
    shown = float(re.search(r"\| \+0\.97 ± ([\d.]+) \|", nli.difference(record))[1])
    assert 2.776 * stderr - 0.005 < shown < 2.8 * stderr  # a little less than 4 degrees of freedom
    others[0]["seed"] = 3
    with pytest.raises(ValueError, match=r"got \[0, 1, 2\] of neurogame and \[0, 1, 3\] of cls"):
        nli.paired(record)


def test_claims_that_one_reading_alone_judges_are_shown():
    both, one = "a claim", "a claim (all pixels)"
    true, false = {"true": True, "seeds": "3 of 3", "best": 0.02}, {"true": False, "seeds": "0 of 3", "best": 0.07}
    claims = {"paper": {both: false}, "paper-pair": {both: true, one: true}}
    record = {"outcome": {"claims": claims, "solved": {}}}
    table = attractor.claims(record).splitlines()
    assert table[2] == "| a claim | **false** (0 of 3) | true (3 of 3) | best 0.07 |"
    assert table[3] == '| a claim (all pixels) | not judged | true (3 of 3) | `paper`, `hold="pair"`: best 0.02 |'
    assert attractor_text.verdicts(record).splitlines() == [
        '- **True for `hold="pair"`, not judged for `paper`:** a claim (all pixels).',
        '- **True for `hold="pair"` alone:** a claim.',
    ]
    claims["paper-pair"][one] = false
    assert '- **False for `hold="pair"`, not judged for `paper`:**' in attractor_text.verdicts(record)


def test_table_of_faithfulness():
    def run(job, seed, **scores):
        methods = {name.replace("_", "-"): {"comprehensiveness": {"mean": score}, "sufficiency": {"mean": 1 - score}}
                   for name, score in scores.items()}  # fmt: skip
        return {"job": job, "seed": seed, "reading": {"faithfulness": {"methods": methods}}}

    runs = [run("paper", 0, layer=0.2, random=0.1), run("paper", 1, layer=0.4, random=0.1), run("cls", 0, random=0.1)]
    lines = neurogame.faithfulness({"outcome": {"runs": runs}}).splitlines()
    assert len(lines) == 4  # a classifier without the layer has no row
    assert lines[2].endswith("| comprehensiveness ↑ | 0.300 |  |  |  |  | 0.100 | 2 |")
    assert lines[3].endswith("| sufficiency ↓ | 0.700 |  |  |  |  | 0.900 | 2 |")


def test_what_was_measured_is_not_measured_again(tmp_path):
    calls = []

    def measure():
        calls.append(1)
        return {"value": len(calls), "nothing": float("nan")}

    def once(**config):
        return records.once("part", measure, command="test", config=config, directory=tmp_path / "measured")

    assert once(seeds=(0, 1), rate=0.5) == {"value": 1, "nothing": None}
    assert once(seeds=(0, 1), rate=0.5) == {"value": 1, "nothing": None}
    assert once(seeds=(0, 2), rate=0.5)["value"] == 2  # another config
    assert len(calls) == 2


def test_games_of_ever_more_texts_are_gathered(tmp_path, monkeypatch):
    def run(texts, seconds):
        fit = {"pooled": 0.5, "within": 0.4}
        return {"texts": texts, "passes": 8 * texts, "seconds": seconds, "fit": fit, "words": 0.3, "pairs": 0.6}

    command = {"command": "spinformer reproduce grounding --stage enough", "config": {}, "directory": tmp_path}
    records.write("enough-cpu-snli", {"texts": 90, "runs": [run(90, 1.0), run(30, 2.0)]}, data={"f": "0"}, **command)
    records.write("alone", run(90, 3.0), **command)  # the record of one run
    words = ["enough-snli", *(str(tmp_path / f"{file}.json") for file in ("enough-cpu-snli", "alone"))]
    monkeypatch.setattr(sys, "argv", ["gather", *words, "--results", str(tmp_path)])
    runpy.run_module("research.tools.gather", run_name="__main__")
    found = records.read("enough-snli", tmp_path)
    assert [(row["texts"], row["seconds"]) for row in found["outcome"]["runs"]] == [(30, 2.0), (90, 3.0)]
    assert len(found["outcome"]["sources"]) == 2
    assert found["config"]["rows"] == [30, 90]
    assert "| SNLI | 30 | 240 | 0.500 | 0.300 | 0.600 | 2 |" in grounding.enough(found)
