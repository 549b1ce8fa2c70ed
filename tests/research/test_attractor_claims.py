"""Verdicts on made-up outcomes: every claim comes out true where it holds and false where it does not."""

import copy
import json
import math
from typing import Any

import pytest

from research.experiments.attractor_claims import judge, solved, use
from research.reports import attractor as tables
from spinformer.cli import main

NAN = math.nan


def run(masked: list[float], noisy: list[float], **end: float) -> dict[str, Any]:
    record = {task: curve(errors) for task, errors in (("masked", masked), ("noisy", noisy))}
    record["noisy"]["corrupted"] = 0.12
    record["masked, visible tokens pinned"] = curve(masked)
    ends = {"spread_of_ends": 0.001, "spread_of_images": 0.06, "similarity_of_ends": 0.99}
    ends |= {"correlation_with_mean_digit": 0.9, **end}
    attractor = {"masked": dict(ends), "noisy": dict(ends), "correlation_between_tasks": 0.99}
    rest = {"energy": -9.2, "alignment": 0.999, "least_alignment": 0.99}
    return {**record, "attractor": attractor, "variance": {"mean": 0.03}, "training": [{"loss": -9.0}, rest]}


def curve(errors: list[float]) -> dict[str, Any]:
    best = min(range(len(errors)), key=errors.__getitem__)
    record = {"error": errors, "best": errors[best], "best_step": best + 1}
    return record | {"chosen": errors[best], "chosen_step": best + 1}


def outcome() -> dict[str, Any]:
    """An outcome of which every claim is true."""
    bare = run([0.05, 0.06, 0.07, 0.08], [0.09, 0.085, 0.08, 0.08, 0.08, 0.08, 0.07, 0.08])
    other = run([0.06, 0.07, 0.08, 0.09], [0.1, 0.09, 0.08, 0.09])
    return {
        "bare": {
            key: [{"seed": seed, **copy.deepcopy(one)} for seed in range(2)]
            for key, one in (("paper-2", bare), ("paper-4", other))
        },
        "backprop": {
            "recurrent-masked": curve([0.05, 0.03, 0.02, 0.03]),
            "recurrent-noisy": curve([0.05, 0.04, 0.03, 0.04]),
            "vit-masked": curve([0.01]),
            "vit-noisy": curve([0.02]),
        },
        "pair": {
            "recurrent-2-masked": curve([0.04]),
            "recurrent-4-masked": curve([0.03]),
            "recurrent-2-noisy": curve([0.05]),
            "recurrent-4-noisy": curve([0.04]),
        },
        "variance": {"vit": {"mean": 0.05, "true_mean": 0.06}, "recurrent": {"mean": 0.04}},
        "trivial": {
            "masked-2": {"zero": 0.1, "visible neighbours": 0.06},
            "masked-4": {"zero": 0.1, "visible neighbours": 0.04},
            "noisy-2": {"zero": 0.11, "3 x 3 average": 0.06},
            "noisy-4": {"zero": 0.11, "3 x 3 average": 0.09},
        },
    }


def test_every_claim_can_be_true():
    verdicts = judge(outcome())
    assert len(verdicts) == 19
    assert [claim for claim, row in verdicts.items() if not row["true"]] == []
    assert verdicts["masked prediction is best in the first steps"]["seeds"] == "2 of 2"


def spoil_bare(task: str, errors: list[float], key: str = "paper-2"):
    def spoil(changed: dict[str, Any]) -> None:
        changed["bare"][key][1][task].update(curve(errors))

    return spoil


def spoil_end(**changes: float):
    def spoil(changed: dict[str, Any]) -> None:
        changed["bare"]["paper-2"][1]["attractor"]["noisy"].update(changes)

    return spoil


def spoil_backprop(key: str, errors: list[float]):
    def spoil(changed: dict[str, Any]) -> None:
        changed["backprop"][key].update(curve(errors))

    return spoil


def spoil_variance(changed: dict[str, Any]) -> None:
    changed["bare"]["paper-4"][1]["variance"]["mean"] = 0.045


def spoil_between(changed: dict[str, Any]) -> None:
    changed["bare"]["paper-2"][1]["attractor"]["correlation_between_tasks"] = 0.9


def spoil_pair(key: str, error: float):
    def spoil(changed: dict[str, Any]) -> None:
        changed["pair"][key].update(curve([error]))

    return spoil


@pytest.mark.parametrize(
    ("claim", "spoil"),
    [
        ("error grows after its least (masked)", spoil_bare("masked", [0.08, 0.05, 0.0505])),
        ("error grows after its least (noisy)", spoil_bare("noisy", [0.09, 0.08, 0.07])),
        ("denoising is best after around ten steps", spoil_bare("noisy", [0.09, 0.08, 0.08, 0.07, 0.08])),
        ("recurrent block is best after 3 to 7 repetitions (masked)", spoil_backprop("recurrent-masked", [0.05, 0.02])),
        ("recurrent block is best after 3 to 7 repetitions (noisy)", spoil_backprop("recurrent-noisy", [0.03, 0.04])),
        ("both tasks have the same attractor", spoil_between),
        ("bare layer works better with 2 x 2 than with 4 x 4 patches (masked)", spoil_bare("masked", [0.061, 0.07])),
        ("bare layer works better with 2 x 2 than with 4 x 4 patches (noisy)", spoil_bare("noisy", [0.081, 0.09])),
        (
            "recurrent block works better with 4 x 4 than with 2 x 2 patches (masked)",
            spoil_pair("recurrent-2-masked", 0.02),
        ),
        (
            "recurrent block works better with 4 x 4 than with 2 x 2 patches (noisy)",
            spoil_pair("recurrent-4-noisy", 0.06),
        ),
        ("error grows after its least (masked, recurrent block)", spoil_backprop("recurrent-masked", [0.05, 0.02])),
        ("error grows after its least (noisy, recurrent block)", spoil_backprop("recurrent-noisy", [0.05, 0.03])),
        ("masked prediction is best in the first steps", spoil_bare("masked", [0.08, 0.07, 0.05, 0.09])),
        ("denoising is best after several steps", spoil_bare("noisy", [0.09, 0.07, 0.08])),
        ("denoising is best after several steps", spoil_bare("noisy", [0.15, 0.14, 0.13, 0.14])),
        ("states from different images end near one attractor", spoil_end(spread_of_ends=0.01)),
        ("states from different images end near one attractor", spoil_end(spread_of_ends=NAN)),
        ("the attractor resembles the mean digit", spoil_end(correlation_with_mean_digit=0.7)),
        ("the attractor resembles the mean digit", spoil_end(correlation_with_mean_digit=NAN)),
        (
            "ViT better than recurrent block better than bare layer (masked)",
            spoil_bare("masked", [0.015, 0.1], "paper-4"),
        ),
        ("ViT better than recurrent block better than bare layer (noisy)", spoil_backprop("vit-noisy", [0.035])),
        ("variance within patches in the same order", spoil_variance),
    ],
)
def test_every_claim_can_be_false(claim, spoil):
    changed = outcome()
    spoil(changed)
    verdicts = judge(changed)
    assert not verdicts[claim]["true"]
    if "seeds" in verdicts[claim] and "ViT" not in claim:
        assert verdicts[claim]["seeds"] == "1 of 2"  # the other seed still holds


def test_a_curve_that_overflows_is_judged_by_its_finite_part():
    changed = outcome()
    spoil_bare("masked", [0.05, 0.4, NAN, NAN])(changed)
    assert judge(changed)["error grows after its least (masked)"]["true"]
    from_file = json.loads(json.dumps(changed).replace("NaN", "null"))
    assert judge(from_file)["error grows after its least (masked)"]["true"]


def test_the_block_is_judged_for_both_patch_sizes_only_where_it_was_trained_with_both():
    changed = outcome()
    del changed["pair"]
    assert len(judge(changed)) == 17


def test_the_minimum_is_judged_by_the_cosine_and_by_sgd():
    changed = outcome()
    for patch in (2, 4):
        changed["bare"][f"paper-sgd-{patch}"] = copy.deepcopy(changed["bare"][f"paper-{patch}"])
    judged = solved(changed)
    assert set(judged["optimisers"]) == {"paper-2", "paper-4", "paper-sgd-2", "paper-sgd-4"}
    assert [claim for claim, row in judged["verdicts"].items() if not row["true"]] == []
    changed["bare"]["paper-2"][1]["training"][-1]["alignment"] = 0.98
    changed["bare"]["paper-sgd-4"][0]["training"][-1]["energy"] = -9.3
    verdicts = solved(changed)["verdicts"]
    assert verdicts["cosine of J and -gradient at least 0.99 (2 x 2)"]["seeds"] == "1 of 2"
    assert verdicts["energy at most that of SGD (4 x 4)"]["seeds"] == "1 of 2"
    assert sum(not row["true"] for row in verdicts.values()) == 2
    del changed["bare"]["paper-sgd-4"][0]  # seeds are compared with themselves
    verdict = solved(changed)["verdicts"]["energy at most that of SGD (4 x 4)"]
    assert (verdict["true"], verdict["seeds"]) == (True, "1 of 1")
    assert tables.solved({"outcome": {"solved": judged}}).count("\n") == 5


def test_use_beside_trivial_predictors():
    table = use(outcome())
    assert table["paper-2"]["beats_trivial_masked"]  # 0.05 against 0.06
    assert not table["paper-4"]["beats_trivial_masked"]  # 0.06 against 0.04
    assert not table["paper-2"]["beats_trivial_noisy"]  # 0.07 against 0.06
    assert table["paper-4"]["beats_trivial_noisy"]  # 0.08 against 0.09
    assert table["paper-2"]["noisy_within_bar"]  # 0.07 / 0.12
    changed = outcome()
    spoil_bare("noisy", [0.09, 0.08, 0.08])(changed)
    assert not use(changed)["paper-2"]["noisy_within_bar"]


def test_the_stage_judge_changes_the_verdicts_alone(tmp_path, capsys):
    changed = outcome()
    for name in ("notebook", "field"):
        for patch in (2, 4):
            changed["bare"][f"{name}-{patch}"] = changed["bare"][f"paper-{patch}"]
    record = {"name": "attractor", "config": {}, "written": "then", "outcome": changed}
    (tmp_path / "attractor.json").write_text(json.dumps(record))
    assert main(["reproduce", "attractor", "--stage", "judge", "--results", str(tmp_path)]) == 0
    after = json.loads((tmp_path / "attractor.json").read_text())
    judged = after["outcome"].pop("claims")
    assert after["outcome"].pop("use")["field-2"]["beats_trivial_masked"]
    assert set(after["outcome"].pop("solved")["optimisers"]) == {"paper-2", "paper-4"}
    assert after == record
    assert "true   variance within patches" in capsys.readouterr().out
    text = tables.claims({"outcome": {"claims": judged}})
    assert "| masked prediction is best in the first steps | true (2 of 2) | true (2 of 2) | true (2 of 2) |" in text
