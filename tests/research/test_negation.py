"""Signs of interactions: the cases, the estimate of one pair, the sign test, the command and its tables."""

import json

import pytest
import torch

from research.experiments.negation import (
    Interactions,
    agreement,
    monli_cases,
    negation_cases,
    pair_interactions,
    sign_test,
)
from research.reports import negation as report
from spinformer._base import records
from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.data.word_pattern import WORD
from spinformer.games import TableGame, exact_values
from spinformer.training.game import GroundingOptions, train_game_head
from tests.tiny import nli_classifier, rows, tokenizer


def test_sign_test():
    """By hand: P(0 or 5 of 5) = 2 / 32; P(at most 1 or at least 9 of 10) = 22 / 1024."""
    assert sign_test(0, 5) == sign_test(5, 0) == 2 / 32
    assert sign_test(9, 1) == 22 / 1024
    assert sign_test(3, 3) == sign_test(0, 0) == 1.0


def test_negation_cases_name_the_words():
    cases = negation_cases()
    assert {name: len(group) for name, group in cases.items()} == {"not": 50, "very": 50}
    for word, group in cases.items():
        for case in group:
            words = WORD.findall(case.premise)
            assert words[case.first[1]] == word
            assert words[case.second[1]] == words[case.first[1] + 1]
    twins = zip(cases["not"], cases["very"], strict=True)
    assert all(one.premise.replace(" not ", " very ") == other.premise for one, other in twins)


def test_monli_cases():
    texts = Texts(
        ["There is not a man outside.", "A dog runs.", "A dog runs far.", "Nobody eats.", "The cat isn't here."],
        ["There is not an adult outside.", "A poodle runs.", "A dog runs.", "Nobody eats.", "The pet isn't here."],
    )
    cases = monli_cases(texts)
    assert [case.first for case in cases["monli_premise"]] == [(0, 2), (0, 2)]
    assert [case.second for case in cases["monli_hypothesis"]] == [(1, 4), (1, 1)]  # the word, and not its article
    assert [(case.first, case.second) for case in cases["monli_swap_plain"]] == [((0, 1), (1, 1))]
    assert len(cases["monli_swap_negated"]) == 2
    with pytest.raises(ValueError, match="MoNLI has pairs"):
        monli_cases(Texts(["a"], None))


def test_one_pair_is_within_four_standard_errors_of_its_exact_interaction():
    games = TableGame(torch.rand(3, 2**6, generator=torch.Generator().manual_seed(0), dtype=torch.double))
    first, second = torch.tensor([0, 5, 2]), torch.tensor([3, 1, 4])
    values, stderr = pair_interactions(games, first, second, 400, 1)
    exact = exact_values(games, "BII")[torch.arange(3), first, second]
    assert bool(((values - exact).abs() <= 4 * stderr).all())
    assert float(stderr.max()) < 0.1


def test_counts_and_agreement():
    predicted = Interactions(torch.tensor([-1.0, 2.0, -0.1, 0.5]), torch.full((4,), 0.2), ("a", "a", "b", "b"))
    row = predicted.to_dict(-1)
    assert (row["negative"], row["positive"], row["clear_negative"], row["clear_positive"]) == (2, 2, 1, 2)
    assert row["by_label"] == {"a": {"negative": 1, "positive": 1}, "b": {"negative": 1, "positive": 1}}
    assert row["mean"] == pytest.approx(0.35)
    real = Interactions(torch.tensor([-1.0, -2.0, 0.1, 0.5]), torch.full((4,), 0.2), predicted.labels)
    both = agreement(predicted, real)
    assert (both["same_sign"], both["clear"], both["clear_same_sign"]) == (2, 3, 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("negation")
    model = nli_classifier()
    model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    pairs = rows(16)
    texts = Texts([row["premise"] for row in pairs], [row["hypothesis"] for row in pairs])
    train_game_head(
        model, tokenizer(), texts, path, GroundingOptions(heads=4, dim=16, hidden=32, readout=16, batch_size=8)
    )
    return path


def test_command_and_tables(folder, tmp_path, capsys):
    pairs = [("the man runs not outside", "the man runs not inside"), ("a red dog eats", "a red cat eats")] * 2
    file = tmp_path / "monli.jsonl"
    lines = [{"premise": one, "hypothesis": two, "label": "neutral"} for one, two in pairs]
    file.write_text("".join(json.dumps(row) + "\n" for row in lines))
    command = ["reproduce", "negation", "--model", str(folder), "--monli", str(file), "--results", str(tmp_path)]
    command += ["--real", "2", "--samples", "8", "--real-samples", "4", "--device", "cpu"]
    assert main(command) == 0
    record = records.read("negation", tmp_path)
    assert set(record["outcome"]["sets"]) == set(report.SETS)
    assert record["outcome"]["sets"]["not"]["head"]["texts"] == 50
    assert record["outcome"]["sets"]["monli_premise"]["real"]["texts"] == 2
    assert str(tmp_path) not in json.dumps(record)
    assert report.signs(record).count("\n") == 1 + 2 * len(report.SETS)
    assert report.agreement(record).count("\n") == 1 + len(report.SETS)
    assert report.classes(record).count("\n") == 1 + 2 * len(report.SETS)
    assert '"very X"' in report.signs(record)


def test_bench_of_an_explanation(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("research.benchmarks.explain.PAIRS", 3)
    monkeypatch.setattr("research.benchmarks.explain.WARM", 1)
    monkeypatch.setattr("research.benchmarks.explain.SAMPLED", 2)
    assert main(["bench", "explain", "--model", str(folder), "--output", str(tmp_path)]) in (0, 1)
    record = records.read("explain", tmp_path)
    assert all(row["ratio"] > 0 and row["sampling_ms"] > row["prediction_ms"] for row in record["outcome"]["rows"])
    assert report.cost(record).startswith(
        "| threads | prediction | explanation | ratio | quick, 128 coalitions | ratio |"
    )
