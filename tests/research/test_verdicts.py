"""Verdicts of the reproduction report on made-up outcomes: a verdict that cannot fail is none."""

import copy
from typing import Any

import pytest

from research.paths import RESULTS
from research.reports.reproduction.entry import NotMeasuredError, Results, Verdict, equation, graded
from research.reports.reproduction.judges import classifiers, games, layer, network, printed, spins

HOLDS, CONDITIONS, FAILS = Verdict.HOLDS, Verdict.CONDITIONS, Verdict.FAILS
MEASURED = Results(RESULTS)


def outcome(name: str) -> Any:
    record = MEASURED.get(name)
    assert record is not None
    return copy.deepcopy(record["outcome"])


def change(node: Any, **changes: Any) -> Any:
    """A copy with the values under paths such as bias__expected changed."""
    node = copy.deepcopy(node)
    for path, value in changes.items():
        *keys, last = path.split("__")
        inner = node
        for key in keys:
            inner = inner[key]
        inner[last] = value
    return node


THEORY = [
    (games.higher_order, {"orders__more": 0.02}, HOLDS, {"orders__more": 0.001}, FAILS),
    (games.unbiased, {"bias__expected": 0.5, "bias__shapley": 0.5}, HOLDS, {"bias__expected": 0.6}, FAILS),
    (games.linear_complexity, {"evaluations__growth_when_n_doubles": {"fields": 2.0, "couplings": 2.0}}, HOLDS,
     {"evaluations__growth_when_n_doubles": {"fields": 4.0, "couplings": 4.0}}, FAILS),
    (games.normalised, {}, HOLDS, {"properties__encoder outputs__empty": 0.1}, FAILS),
    (games.fair, {"axioms__gibbs": 0.0}, HOLDS, {"axioms__gibbs": 0.1, "axioms__shapley": 0.1}, FAILS),
    (games.stable, {"properties__largest_exponent": 100.0}, HOLDS, {"properties__largest_exponent": 1e3}, CONDITIONS),
    (games.monte_carlo_rate, {"rate__encoder outputs": [4.0, 2.0, 1.0]}, HOLDS,
     {"rate__encoder outputs": [1.0, 1.0, 1.0], "rate__example": [1.0, 1.0, 1.0]}, FAILS),
    (spins.low_importance, {"layer__negative_fields": 0.3}, HOLDS, {"layer__negative_fields": 0.0}, FAILS),
    (spins.independent, {"independence__through a third": 0.0}, HOLDS, {"independence__alone": 0.4}, FAILS),
    (spins.temperature_limits, {}, HOLDS, {"temperatures__hot": 0.2}, FAILS),
    (spins.theorem_1, {"theorem__couplings": 0.0}, HOLDS, {"theorem__no couplings": 0.2}, FAILS),
    (spins.table_1, {}, HOLDS, {"table_1__mean_field": 10**9}, FAILS),
    (network.norm_lowers, {}, HOLDS, {"attractor_energy": {"1": -1.0, "10": -0.5, "100": -3.0}}, FAILS),
    (network.asymmetric, {}, HOLDS, {"attractor_couplings__asymmetry": 0.01}, FAILS),
    (network.invertible, {}, HOLDS, {"attractor_embedding__pixels": 0.1}, FAILS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("judge", "good", "best", "bad", "worst"), THEORY, ids=lambda value: getattr(value, "__name__", "")
)
def test_small_calculations(judge, good, best, bad, worst):
    theory = outcome("theory")
    assert judge(change(theory, **good)).verdict is best
    assert judge(change(theory, **bad)).verdict is worst


def test_monotone_and_bounded():
    theory = outcome("theory")
    assert games.monotone(theory).verdict is CONDITIONS
    assert games.monotone(change(theory, **{"properties__random directions__falls": 0.0})).verdict is HOLDS
    assert games.monotone(change(theory, **{"properties__encoder outputs__falls": 0.1})).verdict is FAILS
    assert games.bounded(theory).verdict is HOLDS
    assert games.bounded(change(theory, **{"properties__encoder outputs__bound": 1.5})).verdict is FAILS


def test_convergence_and_long_sequences():
    theory, trained = outcome("theory"), rows(run("paper"))
    assert spins.converges_quickly(theory, trained).verdict is CONDITIONS
    quick = {f"layer__within__{name}": 0.95 for name in ("algorithm 1", "section 7.3")}
    assert spins.converges_quickly(change(theory, **quick), trained).verdict is HOLDS
    trained["runs"][0]["scores"]["snli_test"]["game"]["converged"] = 0.5
    assert spins.converges_quickly(theory, trained).verdict is FAILS
    linear, crossover = outcome("linear"), outcome("crossover")
    assert spins.thousands_of_tokens(linear, crossover).verdict is CONDITIONS
    slow = change(linear, growth__forward__time=64.0)
    assert spins.thousands_of_tokens(slow, crossover).verdict is FAILS
    crossover["rows"].append({"tokens": 4096, "dense_seconds": 9.0, "batch": 1})
    assert spins.thousands_of_tokens(linear, crossover).verdict is HOLDS


def test_an_equation_holds_to_its_tolerance():
    entry = equation("ngt", "4", "x", "code", "test")
    record = {"differences": {"ngt-4": 1e-12}, "tolerance": 1e-9}
    assert entry.judge(record).verdict is HOLDS
    assert entry.judge({**record, "differences": {"ngt-4": 1e-3}}).verdict is FAILS
    assert games.equation_34({"eq_34_total": 1.0, "players": 5}).verdict is HOLDS
    assert games.equation_34({"eq_34_total": 5.0, "players": 5}).verdict is FAILS


def test_targets_and_samples():
    raw = outcome("targets")["raw"]
    assert games.consistent({"raw": {**raw, "gibbs_to_shapley": 0.001, "gibbs_pairs_to_uniform": 0.0}}).verdict is HOLDS
    assert games.consistent({"raw": raw}).verdict is FAILS
    assert games.gate_chooses({"raw": {**raw, "gibbs_shapley_to_gibbs_banzhaf": 0.1}}).verdict is HOLDS
    ess, efficiency = outcome("ess"), outcome("efficiency")
    assert games.enough_samples(ess).verdict is FAILS
    assert games.focuses(ess, efficiency).verdict is FAILS
    for row in ess["rows"]:
        row["mean"] = 0.9
    assert games.enough_samples(ess).verdict is HOLDS
    for row in efficiency["rows"]:
        row["paper_gibbs"] = 0.0
    assert games.focuses(ess, efficiency).verdict is HOLDS


def test_the_worked_example():
    example = outcome("example")
    judge = printed.figures("spins after 1 step", "spins at the fixed point")
    assert judge(example).verdict is CONDITIONS
    for row in example["rows"]:
        row["agrees"] = row["name"] == "spins after 1 step" or None
    assert printed.figures("spins after 1 step")(example).verdict is HOLDS
    assert printed.figures("J_12")(example).verdict is FAILS
    assert printed.example_order(example).verdict is HOLDS
    next(row for row in example["rows"] if row["name"] == "attention at the fixed point")["computed"] = [0.9, 0.1, 0.2]
    assert printed.example_order(example).verdict is FAILS


def test_what_is_printed(monkeypatch):
    assert printed.surpasses_albert().verdict is CONDITIONS
    assert printed.outperforms_transformers().verdict is FAILS
    assert printed.close_to_albert().verdict is HOLDS
    assert printed.matches_larger().verdict is FAILS
    monkeypatch.setitem(printed.PRINTED, "NGT", (95.0, 95.0))
    monkeypatch.setattr(printed, "ABSTRACT", 95.0)
    monkeypatch.setattr(printed, "PUBLISHED_RUN", 95.0)
    assert printed.surpasses_albert().verdict is HOLDS
    assert printed.outperforms_transformers().verdict is HOLDS
    assert printed.matches_larger().verdict is HOLDS
    monkeypatch.setitem(printed.PRINTED, "NGT", (90.0, 84.0))
    assert printed.matches_larger().verdict is CONDITIONS  # BERT-Large alone
    monkeypatch.setitem(printed.PRINTED, "NGT", (80.0, 70.0))
    assert printed.close_to_albert().verdict is FAILS
    assert printed.competitive_with_roberta().verdict is FAILS
    assert printed.within_two_points().verdict is FAILS


def methods(**scores: float) -> dict[str, Any]:
    rows = {name.replace("_", "-"): {"comprehensiveness": {"mean": score}} for name, score in scores.items()}
    return {"texts": 300, "methods": {"random": {"comprehensiveness": {"mean": 0.2}}, **rows}}


def run(job: str, seed: int = 0, accuracy: float = 0.8, neutral: int = 6, **reading: Any) -> dict[str, Any]:
    scores = {
        "accuracy": accuracy,
        "names": ["entailment", "neutral", "contradiction"],
        "confusion": [[8, 1, 1], [10 - neutral, neutral, 0], [1, 0, 9]],
        "game": {"ess_mean": 1.1, "converged": 0.98},
    }
    recipe = {"encoder": "all-MiniLM-L6-v2", "game": {}}
    sets = ("snli_test", "mnli_dev_matched", "monli", "breaking_nli", "hans_regenerated")
    return {
        "job": job,
        "seed": seed,
        "pairs": 164653,
        "recipe": recipe,
        "scores": dict.fromkeys(sets, scores),
        "reading": reading,
    }


def rows(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"runs": list(runs)}


def test_accuracy_of_the_published_form(monkeypatch):
    def seeds(job, accuracy, **more):
        return [run(job, seed, accuracy + 0.001 * seed, **more) for seed in range(3)]

    better = rows(*seeds("paper", 0.87), *seeds("cls", 0.80), *seeds("spins", 0.87), run("paper-mpnet", accuracy=0.87))
    worse = rows(*seeds("paper", 0.75), *seeds("cls", 0.80), *seeds("spins", 0.85))
    assert classifiers.boosts(better).verdict is HOLDS
    assert classifiers.boosts(worse).verdict is FAILS
    assert classifiers.competitive(better).verdict is CONDITIONS  # in our runs, not by the paper's own table
    assert classifiers.competitive(worse).verdict is FAILS
    with monkeypatch.context() as patch:
        patch.setitem(classifiers.TABLE_5, "NGT", (88.5, 81.0))
        assert classifiers.competitive(better).verdict is HOLDS
        assert classifiers.competitive(worse).verdict is CONDITIONS
    assert classifiers.spins_or_sums(better).verdict is HOLDS
    assert classifiers.spins_or_sums(worse).verdict is FAILS
    better["runs"][-1]["recipe"]["encoder"] = "mpnet"
    assert "all-mpnet-base-v2 87.00" in classifiers.table_5(better).text
    assert classifiers.table_5(better).verdict is Verdict.UNTESTED
    assert classifiers.table_5(rows(*seeds("paper", 0.87))).verdict is Verdict.UNTESTED  # the larger encoder may wait
    for one in better["runs"]:
        one["recipe"]["encoder"] = "bert-base-uncased"
    assert classifiers.table_5(better).verdict is HOLDS
    for one in better["runs"]:
        one["scores"] = {name: {**scores, "accuracy": 0.7} for name, scores in one["scores"].items()}
    assert classifiers.table_5(better).verdict is FAILS
    with pytest.raises(NotMeasuredError, match="no row `cls`"):
        classifiers.boosts(rows(run("paper")))


def test_word_vector_baselines(monkeypatch):
    heads = rows(*(run("paper", seed, 0.86 + 0.001 * seed) for seed in range(3)))
    base = {name: rows(*(run(job, seed, accuracy + 0.001 * seed) for job in ("dam", "esim") for seed in range(3)))
            for name, accuracy in (("worse", 0.80), ("better", 0.90))}  # fmt: skip
    assert classifiers.above_dam(heads, base["worse"]).verdict is HOLDS
    assert classifiers.above_dam(heads, base["better"]).verdict is FAILS
    found = classifiers.competitive_with_esim(heads, base["worse"])
    assert found.verdict is HOLDS
    assert "By Table 5: -0.40 points on SNLI" in found.text
    assert classifiers.competitive_with_esim(heads, base["better"]).verdict is CONDITIONS  # by Table 5 alone
    monkeypatch.setitem(classifiers.TABLE_5, "NGT", (80.0, 90.0))
    assert classifiers.competitive_with_esim(heads, base["better"]).verdict is FAILS


def test_samples_of_a_trained_layer():
    collapsed, whole = rows(run("paper")), rows(run("paper"))
    whole["runs"][0]["scores"]["snli_test"]["game"]["ess_mean"] = 20.0
    assert classifiers.trained_samples(collapsed).verdict is FAILS
    assert classifiers.trained_samples(whole).verdict is HOLDS
    assert "MiniLM-L6" in classifiers.trained_samples(whole).text


def test_classes():
    assert classifiers.neutral_is_hardest(rows(run("paper"))).verdict is HOLDS
    assert classifiers.neutral_is_hardest(rows(run("paper", neutral=9))).verdict is FAILS
    assert classifiers.improves_neutral(rows(run("paper", neutral=8), run("cls"))).verdict is HOLDS
    assert classifiers.improves_neutral(rows(run("paper"), run("cls"))).verdict is FAILS


def test_ablations_move_more_than_seeds_or_not():
    seeds = [run("paper", seed, accuracy) for seed, accuracy in enumerate((0.80, 0.81, 0.82))]
    same, lower, higher = (rows(*seeds, run("K-5", accuracy=a), run("K-50", accuracy=0.815)) for a in (0.81, 0.6, 0.9))
    expected = {
        "moves": (FAILS, HOLDS, HOLDS),
        "worse": (FAILS, HOLDS, FAILS),
        "better": (FAILS, FAILS, HOLDS),
        "best": (CONDITIONS, HOLDS, FAILS),
    }
    for effect, verdicts in expected.items():
        judge = classifiers.changed("K-5", "K-50", expect=effect)
        assert tuple(judge(outcome).verdict for outcome in (same, lower, higher)) == verdicts
    on_one = run("K-5", accuracy=0.81)
    on_one["scores"] = {**on_one["scores"], "mnli_dev_matched": run("K-5", accuracy=0.6)["scores"]["snli_test"]}
    found = classifiers.changed("K-5", expect="worse")(rows(*seeds, on_one))
    assert found.verdict is CONDITIONS
    assert "MNLI matched minus that of the layer as it is, 81.00 ± 1.00: K 5 -21.00" in found.text
    names = ("gamma-0.05", "paper", "gamma-1", "gamma-5", "gamma-25")

    def spreads(*sizes):
        return rows(*(run(name, attention={"std": size}) for name, size in zip(names, sizes, strict=True)))

    assert layer.sharpness(spreads(0.5, 0.4, 0.3, 0.2, 0.1)).verdict is HOLDS
    assert layer.sharpness(spreads(0.4, 0.5, 0.3, 0.2, 0.1)).verdict is CONDITIONS
    assert layer.sharpness(spreads(0.1, 0.2, 0.3, 0.4, 0.5)).verdict is FAILS


def test_faithfulness_lies_between_random_and_leave_one_out():
    judge = layer.faithful("layer")
    assert judge(rows(run("paper", faithfulness=methods(layer=0.5, leave_one_out=0.6)))).verdict is HOLDS
    above, below = (run("paper", seed, faithfulness=methods(layer=score, leave_one_out=0.6)) for seed, score in
                    enumerate((0.3, 0.1)))  # fmt: skip
    assert judge(rows(above)).verdict is CONDITIONS
    assert judge(rows(above, below)).verdict is FAILS  # not above random scores in every seed
    assert "25% of the way" in judge(rows(above)).text
    strict = layer.faithful("layer", partly=False)  # a claim that being above random scores does not meet in part
    assert strict(rows(run("paper", faithfulness=methods(layer=0.2, leave_one_out=0.6)))).verdict is FAILS
    with pytest.raises(NotMeasuredError, match="does not hold `faithfulness`"):
        judge(rows(run("paper")))


def signs(negative: int, positive: int) -> dict[str, Any]:
    return {
        "own": {"negative": negative, "positive": positive},
        "real": {"negative": negative, "positive": positive, "p": 0.0},
    }


def test_what_the_layer_says():
    right, wrong = {"not": signs(45, 5), "very": signs(5, 45)}, {"not": signs(5, 45), "very": signs(45, 5)}
    assert layer.negation_signs(rows(run("paper", signs=right))).verdict is HOLDS
    assert layer.negation_signs(rows(run("paper", signs={**right, "very": signs(26, 24)}))).verdict is CONDITIONS
    assert layer.negation_signs(rows(run("paper", signs=wrong))).verdict is FAILS
    same = {"not": signs(0, 50), "very": signs(0, 50)}  # half of the claim, but no word tells from another
    assert layer.negation_signs(rows(run("paper", signs=same))).verdict is FAILS
    assert layer.classifier_signs({"sets": same}).verdict is FAILS
    assert layer.classifier_signs({"sets": right}).verdict is HOLDS
    assert layer.classifier_signs({"sets": wrong}).verdict is FAILS

    assert layer.no_other_model(rows(run("paper", signs=right))).verdict is CONDITIONS
    assert layer.no_other_model(rows(run("paper", signs=same))).verdict is FAILS
    assert layer.open_gate(rows(run("paper", gate={"mean": 0.5, "std": 0.2}))).verdict is HOLDS
    assert layer.open_gate(rows(run("paper", gate={"mean": 0.9, "std": 0.01}))).verdict is CONDITIONS
    assert layer.open_gate(rows(run("paper", gate={"mean": 0.5, "std": 0.01}))).verdict is FAILS


def test_both_forms_and_encoders_count():
    def classes(job, neutral, auc):
        sizes = {"entailment": 0.4, "neutral": neutral, "contradiction": 0.5}
        by_class = {name: {"own": {"all": {"mean": size}}} for name, size in sizes.items()}
        return run(job, classes={"classes": by_class, "neutral_auc": {"own": auc}})

    small, even, large = (("paper", 0.1, 0.9), ("paper", 0.1, 0.5), ("paper", 0.6, 0.9))
    assert [layer.neutral_couplings(rows(classes(*one))).verdict for one in (small, even, large)] == [
        HOLDS, FAILS, FAILS,
    ]  # fmt: skip
    spins = classes("spins-mpnet", 0.1, 0.71)
    spins["recipe"]["encoder"] = "mpnet"
    assert layer.neutral_couplings(rows(classes(*small), spins)).verdict is HOLDS
    found = layer.neutral_couplings(rows(classes(*large), classes("default", 0.1, 0.9), spins))
    assert found.verdict is CONDITIONS
    assert "met by 128 spins on all-mpnet-base-v2 (1 seed): entailment 0.4, neutral 0.1" in found.text
    assert layer.neutral_couplings(rows(classes(*large), classes("default", 0.1, 0.9))).verdict is FAILS
    with pytest.raises(NotMeasuredError, match="does not hold `classes`"):
        layer.neutral_couplings(rows(run("paper"), spins))

    wide, narrow = ({"mean": 0.5, "std": std} for std in (0.2, 0.01))
    assert layer.spread_of_attention(rows(run("paper", attention=wide))).verdict is HOLDS
    assert layer.spread_of_attention(rows(run("paper", attention=narrow))).verdict is FAILS
    both = rows(run("paper", attention=wide), run("spins", attention=narrow))
    assert layer.spread_of_attention(both).verdict is CONDITIONS


def test_grades():
    assert [graded(*grades, "x").verdict for grades in ((True, True), (False, True), (False, False))] == [
        HOLDS, CONDITIONS, FAILS,
    ]  # fmt: skip
