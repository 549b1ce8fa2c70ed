"""The reproduction report: its links, commands and options are real, and what is not there is "not run yet"."""

import ast
import importlib
import json
import re

import pytest

from research.paths import RESULTS, ROOT
from research.reports.documents import documents
from research.reports.reproduction.contradiction import KINDS
from research.reports.reproduction.entry import Results, Verdict
from research.reports.reproduction.page import CONTRADICTIONS, code_file, entries, page
from research.reports.results import UNKNOWN, commit_of, read_result
from research.steps import BY_NAME, STEPS
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.cli import main, parse
from spinformer.games import TableGame, estimate_values
from spinformer.models.attractor import AttractorConfig
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe
from spinformer.training.classifier.recipe import ClassifierRecipe

ENTRIES = entries()
ALL_CONTRADICTIONS = [one for rows in CONTRADICTIONS.values() for one in rows]


def test_anchors_are_there_once_and_links_lead_to_them():
    text = page(RESULTS)
    anchors = re.findall(r'<a id="([^"]+)"></a>', text)
    assert len(anchors) == len(set(anchors))
    assert {entry.anchor for entry in ENTRIES} | {one.anchor for one in ALL_CONTRADICTIONS} <= set(anchors)
    headings = [re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()
                if line.startswith("#")]  # fmt: skip
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= {*anchors, *headings}


def numbers(where):
    """Equation numbers that a place names: "Eqs. 4, 5", "Eqs. 32 to 36"."""
    found = set()
    for part in re.findall(r"Eqs?\. ([\d, to]+)", where):
        for piece in part.split(","):
            ends = [int(number) for number in re.findall(r"\d+", piece)]
            found |= set(range(ends[0], ends[-1] + 1)) if ends else set()
    return found


@pytest.mark.parametrize(("paper", "last"), [("ngt", 37), ("att", 9)])
def test_every_numbered_equation_is_there(paper, last):
    found = set().union(*(numbers(entry.where) for entry in ENTRIES if entry.anchor.startswith(paper)))
    assert found == set(range(1, last + 1))


def test_every_table_and_figure_is_there():
    places = " ".join(f"{entry.anchor[:3]} {entry.where};" for entry in ENTRIES)
    assert all(f"ngt Table {number}" in places for number in range(1, 6))
    assert all(f"att Figure {number}" in places for number in (1, 2))
    assert "Algorithm 1" in places


@pytest.mark.parametrize("step", [step for step in STEPS if not step.removed], ids=lambda step: step.name)
def test_commands_parse(step):
    args = parse(step.command({}))
    assert getattr(args, "name", None) in (None, step.name)
    assert step.short.startswith("spinformer ")
    assert "{" not in step.short.replace('{"', "")


def test_every_result_has_a_step_and_every_entry_a_command():
    assert {path.stem for path in RESULTS.glob("*.json")} <= set(BY_NAME)
    for entry in ENTRIES:
        for name in entry.results:
            assert BY_NAME[name].words, f"{entry.anchor}: {name} cannot be made again"
    assert parse(["reproduce", "all", "--from-results"]).from_results  # that of entries without a result


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.code], ids=lambda entry: entry.anchor)
def test_code_is_there(entry):
    for code in entry.code:
        assert code_file(code).is_file(), code
        module, _, symbol = code.partition(":")
        if symbol:
            assert hasattr(importlib.import_module(module), symbol), code


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.tests], ids=lambda entry: entry.anchor)
def test_tests_are_there(entry):
    for test in entry.tests:
        path, *names = test.split("::")
        node = ast.parse((ROOT / path).read_text())
        for name in names:
            node = next(child for child in node.body if getattr(child, "name", None) == name)


def test_only_what_cannot_be_tested_has_neither_result_nor_criterion():
    empty = Results(RESULTS)
    for entry in ENTRIES:
        if not entry.results and not entry.criterion:
            assert entry.find(empty).verdict is Verdict.UNTESTED, entry.anchor
        if entry.results:
            assert entry.code, entry.anchor
            assert entry.tests, entry.anchor


def test_what_is_not_there_is_not_run_yet(tmp_path):
    nothing = Results(tmp_path)
    for entry in ENTRIES:
        finding = entry.find(nothing)
        assert (finding.verdict is Verdict.PENDING) == bool(entry.results)
        if entry.results:
            assert BY_NAME[entry.results[0]].short in finding.text
    assert "| not run yet | " in page(tmp_path)


def test_results_say_which_commit_made_them():
    for name in Results(RESULTS).names:
        assert commit_of(read_result(name, RESULTS)) != UNKNOWN, f"{name}: set SPINFORMER_COMMIT where there is no git"
    assert commit_of({"name": "attractor", "commit": None, "written": "later"}) == UNKNOWN


@pytest.mark.parametrize("one", ALL_CONTRADICTIONS, ids=lambda one: one.anchor)
def test_contradictions_are_told_whole(one):
    assert one.here
    assert one.there
    assert one.chosen
    assert one.other()
    for option in one.options:
        values = dict(option.values)
        assert option.kind in KINDS
        if option.kind in ("layer", "size"):
            NeuroGameAttention(8, preset="paper", **values)
        elif option.kind == "estimate":
            import torch

            estimate_values(TableGame(torch.rand(8)), "SV", 4, **values)
        elif option.kind == "recipe":
            ClassifierRecipe(**({"vectors": "glove.txt"} if "baseline" in values else {}), **values)
        else:
            {"network": AttractorConfig, "training": AttractorRecipe}[option.kind](**values)
        assert all(name in option.text() for name in values)


def test_rendering_changes_no_byte(tmp_path, capsys):
    """`reproduce all --from-results` into another folder gives the documents and pictures that are committed."""
    assert main(["reproduce", "all", "--from-results", "--output", str(tmp_path)]) == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path) for path in written} >= {path.relative_to(ROOT) for path in documents()}
    assert any(path.suffix == ".svg" for path in written)
    for path in written:
        kept = ROOT / path.relative_to(tmp_path)
        assert path.read_bytes() == kept.read_bytes(), f"{kept.relative_to(ROOT)} is out of date: run `make docs`"
    assert "written: docs/reproduction.md" in capsys.readouterr().out
    assert main(["reproduce", "all", "--from-results", "--output", str(tmp_path)]) == 0
    assert "reproduction.md" not in capsys.readouterr().out  # what is up to date is left alone


def test_no_path_of_this_machine():
    text = page(RESULTS)
    assert str(ROOT) not in text
    assert json.dumps(str(ROOT))[1:-1] not in text
