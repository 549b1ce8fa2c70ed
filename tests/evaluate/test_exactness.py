"""Explanations against exact values: no error where they are exact, known errors where they are known; a picture."""

import json
import math

import pytest
import torch

pytest.importorskip("transformers")

from spinformer._base import records
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.closeness import Closeness, ClosenessRow, ExactIndices, coverage
from spinformer.evaluate.explanations.exactness import (
    Exactness,
    Setting,
    forecast_exactness,
    measure_exactness,
)
from spinformer.evaluate.explanations.tables import tabulate
from spinformer.explain import METHODS, Explainer
from spinformer.explain.explanation import Explanation
from spinformer.explain.methods import Method
from spinformer.explain.record import Pair, Word
from spinformer.games import TableGame, exact_values

TEXTS = Texts(["the man runs", "a red dog sleeps", "two cat eats"], ["a dog", "not inside", "the woman"])


@pytest.fixture(scope="module")
def explainer(model, tokenizer):
    return Explainer(model, tokenizer)


@pytest.fixture(scope="module")
def tables(explainer):
    return tabulate(explainer.classifier, TEXTS, progress=False)


@pytest.fixture
def invented():
    """Registers a method that says what it is told: invented(explain), where explain(table of the text) -> fields."""

    class Invented(Method):
        name, summary, passes, index = "invented", "what the test says", "0", "SV"

        def scorer(self, context):
            raise NotImplementedError

        def explain(self, context, texts, words, target):
            return [self.say(words.words[0], int(target[0]))]

    method = Invented()
    METHODS.register(method)
    yield method
    METHODS.unregister("invented")


def explanation(words, values, *, stderr=None, base=None, pairs=(), pair_index=None):
    return Explanation(
        texts=("x",),
        label="a",
        target="a",
        probabilities={"a": 1.0},
        words=tuple(Word(word, 0, float(value), stderr) for word, value in zip(words, values, strict=True)),
        pairs=tuple(Pair(*pair) for pair in pairs),
        base_value=base,
        method="invented",
        passes=7,
        samples=0,
        pair_index=pair_index,
    )


def test_exact_methods_have_no_error(explainer, tables):
    settings = [Setting("kernel-shap", 64), Setting("shapley-sampling", 40)]
    before = explainer.classifier.passes
    result = measure_exactness(explainer, TEXTS, tables, settings, progress=False)
    assert explainer.classifier.passes == before  # the tables answered
    exact, sampled = (row.to_dict() for row in result.settings)
    assert exact["values"]["error"]["mean"] == pytest.approx(0, abs=1e-5)
    assert exact["values"]["correlation"]["mean"] == pytest.approx(1)
    assert exact["values"]["coverage"] == {"pooled": 1, "deviation": 0, "lowest": 1, "intervals": 5 + 6 + 5}
    assert exact["additivity"] < 1e-5
    assert exact["base_value"]["largest"] < 1e-6
    assert 2**5 <= exact["passes"]["mean"] <= 2**6 + 1
    assert sampled["values"]["error"]["mean"] > 0.01
    assert sampled["additivity"] < 1e-5
    assert sampled["pairs"] is None


@pytest.mark.parametrize(("method", "passes"), [("kernel-shap", 40), ("shapley-sampling", 20)])
def test_tables_answer_as_the_classifier_does(explainer, tables, method, passes):
    (row,) = measure_exactness(explainer, TEXTS, tables, [Setting(method, passes)], progress=False).settings
    assert row.left_out is None
    for number, table in enumerate(tables):
        real = explainer(TEXTS.first[number], TEXTS.second[number], method=method, passes=passes)
        assert list(real.probabilities).index(real.target) == table.target
        error = Closeness.of(torch.tensor(real.importance), ExactIndices(table)["SV"]).error
        assert row.words[number].error == pytest.approx(error, abs=1e-4)
        assert row.passes[number] == real.passes


def test_known_errors(explainer, tables, invented):
    exact = {table.words: ExactIndices(table) for table in tables}

    def say(words, target):
        own = exact[words]
        assert target == own.table.target
        n, pairs = len(words), []
        for place, (first, second) in enumerate(torch.triu_indices(n, n, 1).T.tolist()):
            pairs.append((first, second, 1.5 * float(own["BII"][place]), 0.0 if place else 10.0))
        return explanation(words, 0.9 * own["SV"], stderr=10.0, base=own.empty + 0.25, pairs=pairs, pair_index="BII")

    invented.say = say
    row = measure_exactness(explainer, TEXTS, tables, [Setting("invented")], progress=False).settings[0].to_dict()
    assert row["values"]["index"] == "SV"
    assert row["pairs"]["index"] == "BII"
    assert row["values"]["error"]["mean"] == pytest.approx(0.1, abs=1e-5)
    assert row["values"]["coverage"]["pooled"] == 1
    assert row["pairs"]["error"]["mean"] == pytest.approx(0.5, abs=1e-5)
    assert row["pairs"]["coverage"]["pooled"] == pytest.approx(3 / (10 + 15 + 10))
    assert row["pairs"]["coverage"]["lowest"] == pytest.approx(1 / 15)
    gains = [own.gain for own in exact.values()]
    assert row["additivity"] == pytest.approx(max(abs(0.9 * gain - (gain - 0.25)) for gain in gains), abs=1e-5)
    assert row["base_value"]["mean"] == row["base_value"]["largest"] == pytest.approx(0.25)
    assert row["passes"] == {"mean": 7, "stderr": 0, "count": 3, "left_out": 0}
    assert row["left_out"] is None


def test_a_text_that_fails_costs_that_text(explainer, tables, invented):
    def say(words, target):
        if len(words) == 6:
            raise ValueError("too\n many words")
        return explanation(words, torch.ones(len(words)))

    invented.say = say
    result = measure_exactness(explainer, TEXTS, tables, [Setting("invented"), Setting("kernel-shap", 2)])
    own, hopeless = (row.to_dict() for row in result.settings)
    assert own["left_out"] == {"count": 1, "reason": "too many words"}
    assert own["values"]["error"]["count"] == 2
    assert own["values"]["coverage"] == {"pooled": None, "deviation": None, "lowest": None, "intervals": 0}
    assert own["base_value"] is None
    assert hopeless["left_out"]["count"] == 3
    assert (hopeless["values"], hopeless["pairs"], hopeless["additivity"]) == (None, None, None)
    assert "invented 0: 1 text left out: too many words" in str(result)
    assert "kernel-shap 2: 3 texts left out" in str(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_indices_are_the_games_own(tables):
    table = tables[0]
    game = TableGame(table.values.double())
    exact = ExactIndices(table)
    assert torch.equal(exact["SV"], exact_values(game, "SV"))
    assert exact["SII"].tolist() == [float(exact_values(game, "SII")[i, j]) for i in range(5) for j in range(i + 1, 5)]
    assert float(exact["SV"].sum()) == pytest.approx(exact.gain)
    assert exact.empty == float(table.values[0])


def test_closeness_by_hand():
    exact, estimate = torch.tensor([3.0, 0.0, 4.0]), torch.tensor([3.0, 1.0, 2.0])
    one = Closeness.of(estimate, exact, torch.tensor([0.0, 0.6, math.nan]))
    assert one.error == pytest.approx(math.sqrt(5) / 5)
    assert (one.covered, one.intervals) == (2, 2)
    assert Closeness.of(estimate, exact, torch.tensor([0.0, 0.5, 1.0])).covered == 1
    assert math.isnan(Closeness.of(estimate, torch.zeros(3)).error)
    shares = coverage([Closeness(0, 0, 1, 2), Closeness(0, 0, 4, 4), Closeness(0, 0)])
    assert shares == {"pooled": 5 / 6, "deviation": pytest.approx(math.sqrt(0.125)), "lowest": 0.5, "intervals": 6}
    with pytest.raises(ValueError, match="estimates must be finite; 1 of 3 are not"):
        Closeness.of(torch.tensor([1.0, math.nan, 0.0]), exact)


def test_promises_are_kept_where_no_word_is_off_by_more():
    exact = torch.tensor([3.0, 0.0, 4.0])
    estimates = [exact + torch.tensor([0.0, off, -off]) for off in (0.02, 0.05, 0.07, 0.01)]
    row = ClosenessRow("shapley", 0, "SV", until=0.055, words=[Closeness.of(one, exact) for one in estimates])
    assert row.name == "shapley until 0.055"
    assert row.to_dict()["promise"] == {"until": 0.055, "kept": 0.75}
    assert row.cells()[-1] == "75%"
    assert ClosenessRow("shapley", 8).to_dict()["promise"] is None


def test_settings():
    assert Setting.parse("shapley") == Setting("shapley", 0)
    assert Setting.parse("kernel-shap:200") == Setting("kernel-shap", 200)
    assert Setting.parse("shapley:until=0.05") == Setting("shapley", until=0.05)
    assert (Setting("banzhaf").index, Setting("shapley-sampling").index) == ("BV", "SV")
    for text, message in (
        ("shapley:many", "expected METHOD, METHOD:PASSES or METHOD:until=ERROR, as shapley:64; got 'shapley:many'"),
        ("attention", "method 'attention' has no exact values; expected one of shapley, banzhaf"),
        ("magic:3", "method must be one of"),
        ("shapley:until=0", "until must be"),
        ("shapley:until=soon", "'shapley:until=soon': could not convert"),
    ):
        with pytest.raises(ValueError, match=message):
            Setting.parse(text)


def test_what_is_refused(explainer, tables):
    with pytest.raises(ValueError, match="a table for each of at least 1 text; got 2 for 3"):
        measure_exactness(explainer, TEXTS, tables[:2])
    with pytest.raises(ValueError, match="the table at 0 must be of text 0; got that of 'two cat eats the woman'"):
        measure_exactness(explainer, TEXTS, tables[::-1])
    same = [Setting("kernel-shap", 64)] * 2
    with pytest.raises(
        ValueError, match="settings must be at least one, all different; got kernel-shap 64, kernel-sha"
    ):
        measure_exactness(explainer, TEXTS, tables, same)


def test_the_forecast(explainer, tmp_path):
    path = tmp_path / "tables.safetensors"
    settings = [Setting("kernel-shap", 40)]
    forecast = forecast_exactness(explainer, TEXTS, path, settings)
    assert forecast.passes == 2**5 + 2**6 + 2**5 + 3
    assert 0 < forecast.seconds < 60
    before = explainer.classifier.passes
    tabulate(explainer.classifier, TEXTS, path, progress=False)
    assert explainer.classifier.passes - before == forecast.passes
    assert forecast_exactness(explainer, TEXTS, path, settings).passes == 0  # all there


def drawn():
    """A result with errors that are known."""

    def row(method, budget, error, index="SV", pairs=None):
        part = {"index": index, "error": {"mean": error, "stderr": error / 10, "count": 5, "left_out": 0}}
        part |= {"coverage": {"pooled": 0.95}}
        other = None if pairs is None else {**part, "index": "SII", "error": {**part["error"], "mean": pairs}}
        numbers = {"method": method, "budget": budget, "passes": {"mean": budget or 1}}
        return {**numbers, "values": part, "pairs": other, "additivity": 1e-7, "left_out": None, "promise": None}

    rows = [row("shapley", 0, 0.2, pairs=0.4), row("shapley", 64, 0.1, pairs=0.3), row("banzhaf", 0, 0.2, "BV")]
    rows.append({**row("shapley", 77, 0.09), "promise": {"until": 0.1, "kept": 0.96}})  # not drawn
    peers = [row("KernelSHAP", 100, 0.4), row("KernelSHAP", 200, 0.2), row("SVARMIQ", 100, 0.5, pairs=20.0)]
    peers += [row("KernelSHAPIQ", 100, 0.3, pairs=2.0), {**row("SPEX", 100, 1.0), "values": None}]
    named = [{f"{one['method']} {one['budget']}": one for one in group} for group in (rows, peers)]
    return {"texts": 5, "words": [4, 6], "settings": named[0], "peers": named[1]}


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    from spinformer.evaluate.explanations.figures import error_figure
    from spinformer.explain.render.canvas import save_figure

    figure = error_figure([drawn(), drawn()], "mine")
    values, pairs = figure.axes
    assert values.get_legend_handles_labels()[1] == [
        "shapley",
        "banzhaf (BV)",
        "shapiq KernelSHAP",
        "shapiq KernelSHAPIQ",
    ]
    assert pairs.get_legend_handles_labels()[1] == ["shapley", "shapiq KernelSHAPIQ"]  # an error of 20 is not drawn
    line = values.containers[0].lines[0]
    assert line.get_xdata().tolist() == [1, 64]
    assert line.get_ydata().tolist() == pytest.approx([0.2, 0.1])
    assert "mine" in figure._suptitle.get_text()
    assert "mean of 2 groundings" in figure._suptitle.get_text()
    for suffix in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"a.{suffix}").stat().st_size > 1000
    with pytest.raises(ValueError, match="at least one result"):
        error_figure([])


def test_the_documents_tables_and_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    from research.reports import exactness

    for name, count in (("a", 2), ("b", 3), ("one", 1)):
        given = {"source": "texts.jsonl.gz", **drawn(), "peers": {}}
        outcome = {"runs": [{"seed": seed, "exactness": given} for seed in range(count)]}
        records.write(f"exactness-{name}", outcome, command="spinformer", config={}, directory=tmp_path)
    rivals = {"runs": [{"peers": drawn()["peers"], "absent": {}}]}
    records.write("exactness-b-peers", rivals, command="spinformer", config={}, directory=tmp_path)
    paths = exactness.draw(tmp_path, tmp_path / "figures")
    assert [path.name for path in paths] == ["exactness-a.svg", "exactness-b.svg"]  # of several groundings
    assert len(paths[1].read_bytes()) > len(paths[0].read_bytes())  # it has the peers
    assert exactness.joined("exactness-a", tmp_path)[0]["peers"] == {}
    assert [run["peers"] for run in exactness.joined("exactness-b", tmp_path)] == [drawn()["peers"]] * 3
    one, three = (exactness.ours(records.read(f"exactness-{name}", tmp_path)) for name in ("one", "b"))
    assert "| `shapley` | 64 | 0.100 | 95.0% | 0.300 | 95.0% | 1e-07 |  |" in one
    assert "| `shapley` | 64 | 0.100 ± 0.000 | 95.0% | 0.300 ± 0.000 | 95.0% | 1e-07 |  |" in three
    assert "| `shapley`, `until=0.1` | 77 | 0.090 ± 0.000 | 95.0% |  |  | 1e-07 | 96% |" in three
    kinds = exactness.kinds(records.read("exactness-one", tmp_path), records.read("exactness-one", tmp_path))
    assert kinds.count("`passes=64` | 64 | 0.100 | 95.0% | 0.300 | 95.0% |  |") == 2
    assert kinds.count("`until=0.1` | 77 | 0.090 | 95.0% |  |  | 96% |") == 2
    others = exactness.peers(records.read("exactness-b-peers", tmp_path))
    assert "| KernelSHAP | words | 0.400 | 0.200 |" in others
    assert "| KernelSHAPIQ | pairs | 2.000 |  |" in others


def test_the_record():
    result = Exactness("x", 2, (4, 6), "attention", (), (), {"SPEX": "not installed"})
    assert result.to_dict()["absent"] == {"SPEX": "not installed"}
    assert "SPEX: not measured: not installed" in str(result)
