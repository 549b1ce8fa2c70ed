"""The reproduction report: its links, commands and options are real, and what is not there is "not run yet".

Below: verdicts on the attractor paper, on made-up outcomes.
"""

import ast
import copy
import importlib
import json
import re
from typing import Any

import pytest

from research.experiments.attractor_claims import judge
from research.paths import RESULTS, ROOT
from research.reports.documents import documents
from research.reports.reproduction.contradiction import KINDS
from research.reports.reproduction.entry import Finding, NotMeasuredError, Results, Verdict
from research.reports.reproduction.judges import network
from research.reports.reproduction.page import CONTRADICTIONS, code_file, entries, page
from research.reports.results import UNKNOWN, commit_of, read_result
from research.steps import BY_NAME, STEPS
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.cli import main, parse
from spinformer.games import TableGame, estimate_values
from spinformer.models.attractor import AttractorConfig
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe
from spinformer.training.classifier.recipe import ClassifierRecipe
from tests.research.test_attractor_claims import outcome as attractor_claims_outcome
from tests.research.test_verdicts import change

HOLDS, CONDITIONS, FAILS = Verdict.HOLDS, Verdict.CONDITIONS, Verdict.FAILS
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
    by_machine = step.name.removesuffix("-gpu").removesuffix("-cpu")  # a result for each
    assert getattr(args, "name", None) in (None, step.name, by_machine)
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


# Verdicts on the attractor paper.


def attractor_outcome() -> dict[str, Any]:
    made = attractor_claims_outcome()
    for group in ("backprop", "pair"):
        for record in made[group].values():
            record["training"] = [0.1] * 100
    made["claims"] = {name: judge(made) for name in ("paper", "notebook")}
    return made


def test_claims_of_the_attractor_paper():
    name = "the attractor resembles the mean digit"
    true = attractor_outcome()
    assert network.claims(name)(true).verdict is HOLDS
    true["claims"]["paper-pair"] = copy.deepcopy(true["claims"]["paper"])
    true["claims"]["paper-pair"][name]["true"] = False
    assert network.claims(name)(true).verdict is HOLDS  # its couplings were not measured
    for patch in (2, 4):
        true["bare"][f"paper-pair-{patch}"] = true["bare"][f"paper-{patch}"]
    assert network.claims(name)(true).verdict is CONDITIONS
    for setting, expected in (("paper", CONDITIONS), ("notebook", FAILS)):
        true["claims"][setting][name]["true"] = False
        assert network.claims(name)(true).verdict is expected
    both = "both tasks have the same attractor"
    for setting in ("paper", "notebook"):
        true["claims"][setting][both]["true"] = False
    assert network.claims(name, both)(true).verdict is CONDITIONS  # one of two, with the norm of each J_ij held
    true["claims"]["paper-pair"][both]["true"] = False
    assert network.claims(name, both)(true).verdict is FAILS
    with pytest.raises(NotMeasuredError, match="does not judge: something else"):
        network.claims("something else")(true)


@pytest.mark.parametrize(
    "name", ["error grows after its least (masked)", "masked prediction is best in the first steps"]
)
def test_masked_prediction_over_all_pixels(name):
    made = attractor_outcome()
    assert network.masked_claims(name)(made).verdict is HOLDS
    for claims in made["claims"].values():
        claims[name]["true"] = False
    assert network.masked_claims(name)(made).verdict is FAILS  # no run has the error over all pixels
    made["bare"]["paper-2"][0]["masked"]["all_pixels"] = [0.02, 0.05, 0.07]
    found = network.masked_claims(name)(made)
    assert found.verdict is CONDITIONS
    assert "norm of each site held, 1 seed: least 0.0200, at step 1, and 0.0700 at step 3" in found.text
    made["bare"]["paper-2"][1]["masked"]["all_pixels"] = [0.07, 0.05, 0.02]
    assert network.masked_claims(name)(made).verdict is FAILS


def test_around_ten_steps_with_larger_patches():
    made = attractor_outcome()
    assert network.around_ten(made).verdict is HOLDS
    for claims in made["claims"].values():
        claims["denoising is best after around ten steps"]["true"] = False
    found = network.around_ten(made)
    assert found.verdict is FAILS
    assert "With 4 x 4 patches the best steps are 3 / 3 (norm of each site held), false." in found.text
    for seed in made["bare"]["paper-4"]:
        seed["noisy"]["best_step"] = 7
    assert network.around_ten(made).verdict is CONDITIONS
    made["bare"]["paper-4"][1]["noisy"]["best"] = 0.2  # worse than the noisy image
    assert network.around_ten(made).verdict is FAILS


def test_memories_and_tasks():
    made = attractor_outcome()
    made["trivial"]["masked-2"]["mean image"] = made["trivial"]["noisy-2"]["mean image"] = 0.075
    near, far = {"best": 0.95, "floor": 0.9}, {"best": 0.89, "floor": 0.9}
    made["stored"] = {"paper": [{"P": 10, "stored": near, "unseen": near}]}
    assert network.stores(made).verdict is HOLDS
    made["stored"]["paper"][0]["unseen"] = far
    assert network.stores(made).verdict is CONDITIONS
    made["trivial"]["noisy-2"]["mean image"] = 0.06
    assert network.stores(made).verdict is FAILS
    assert network.task_agnostic(made).verdict is HOLDS
    for patch in (2, 4):
        made["bare"][f"paper-pair-{patch}"] = copy.deepcopy(made["bare"][f"paper-{patch}"])
    made["bare"]["paper-pair-2"][0]["masked"]["best"] = 0.08
    assert network.task_agnostic(made).verdict is CONDITIONS  # in one reading of the norm
    made["trivial"]["masked-2"]["mean image"] = 0.01
    assert network.task_agnostic(made).verdict is CONDITIONS  # noise alone
    made["bare"]["paper-2"][0]["noisy"]["best"] = 0.2
    assert network.task_agnostic(made).verdict is FAILS


def test_time_of_training():
    speed = {"step": {"speedup": 5.0}, "training": {"epochs": 20, "images": 50000, "seconds": 15.0, "energy": [-6.07]}}
    assert network.fast(speed).verdict is HOLDS
    assert "with Adam" in network.fast(speed).text
    slow = change(speed, training__seconds=900.0, training__energy=[-18.5])
    assert network.fast(slow).verdict is FAILS
    assert "with the power method" in network.fast(slow).text


@pytest.mark.parametrize("alignment", [None, 0.65])
def test_couplings_that_did_not_come_to_rest_judge_nothing(alignment):
    made = attractor_outcome()
    made["bare"]["paper-2"][1]["training"][-1].pop("alignment")
    if alignment is not None:
        made["bare"]["paper-2"][1]["training"][-1]["alignment"] = alignment
    with pytest.raises(NotMeasuredError, match="not at the minimum"):
        network.claims("the attractor resembles the mean digit")(made)


def test_claims_of_the_block_need_all_its_epochs():
    name = "error grows after its least (masked, recurrent block)"
    made = attractor_outcome()
    assert network.block(name)(made).verdict is HOLDS
    made["backprop"]["recurrent-masked"]["training"] = [0.1] * 40
    assert network.block(name)(made).verdict is CONDITIONS
    made["claims"]["paper"][name]["true"] = False
    with pytest.raises(NotMeasuredError, match="Not run yet with the paper's 100 epochs"):
        network.block(name)(made)
    made["backprop"]["recurrent-masked"]["training"] = [0.1] * 100
    assert network.block(name)(made).verdict is FAILS


def test_every_entry_of_the_attractor_fills_in():
    """With a result of the present code every claim about it has a verdict."""
    made = attractor_outcome()
    made["trivial"]["masked-2"]["mean image"] = made["trivial"]["noisy-2"]["mean image"] = 0.07
    best = {"best": 0.95, "floor": 0.9}
    made["stored"] = {"paper": [{"P": 10, "stored": best, "unseen": best}]}
    for entry in ENTRIES:
        if entry.results == ("attractor",):
            assert isinstance(entry.judge(made), Finding), entry.anchor
