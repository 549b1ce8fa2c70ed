"""Laws of exact tables, of what is measured against them, and of whole studies of a classifier's explanations."""

import json
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import strategies as st

from spinformer.data import Texts
from spinformer.evaluate import (
    Exactness,
    ExactTable,
    GroundingReport,
    Setting,
    Study,
    StudyResult,
    TabulatedClassifier,
    choose,
    measure_exactness,
    measure_peers,
    report,
    tabulate,
)
from tests.properties.cases import assert_near, generator, law, seeds
from tests.properties.models import bare, grounded, masked, pairs, split, texts, tokenizer

some = st.lists(pairs, min_size=1, max_size=2, unique=True)


def joined(rows: list[tuple[str, str]]) -> Texts:
    return Texts([row[0] for row in rows], [row[1] for row in rows])


@law("evaluate.tabulate", "evaluate.ExactTable", "evaluate.TabulatedClassifier", share=6, rows=some, seed=seeds)
def test_tables_answer_as_the_classifier(rows, seed):
    """Every coalition; from the file that they were written to as well, without a pass; a half-made one goes on."""
    given = joined(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.safetensors"
        made = tabulate(masked(), given, path, progress=False)
        before = masked().passes
        again = tabulate(masked(), given, path, progress=False)
        assert masked().passes == before
    assert all(torch.equal(one.values, other.values) for one, other in zip(made, again, strict=True))
    words = split(given)
    answers = TabulatedClassifier(masked(), made)
    coalitions = (torch.rand(len(rows), 4, words.mask.shape[1], generator=generator(seed)) < 0.5) & words.mask[:, None]
    coalitions[:, 0] = words.mask
    real, told = (one.probabilities(words, coalitions) for one in (masked(), answers))
    for row, table in enumerate(made):
        assert isinstance(table, ExactTable)
        assert table.missing == 0
        assert table.words == words.words[row]
        assert len(table.values) == 2 ** len(table.words)
        assert_near(told[row, :, table.target], real[row, :, table.target], 1e-5)
        assert_near(told[row, 0], real[row, 0], 1e-5)
        assert_near(told[row].sum(-1), torch.ones(4), 1e-5)


@law(
    "evaluate.measure_exactness",
    "evaluate.Exactness",
    "evaluate.Setting",
    share=3,
    rows=some,
    method=st.sampled_from(["shapley", "banzhaf", "kernel-shap"]),
)
def test_enough_passes_leave_no_error(rows, method):
    """Of settings that ask every coalition; and a setting is what its words say."""
    setting = Setting.parse(f"{method}:4096")
    assert setting == Setting(method, 4096)
    assert setting.index == ("BV" if method == "banzhaf" else "SV")
    assert Setting.parse(f"{method}:until=0.25") == Setting(method, until=0.25)
    found = measure_exactness(
        grounded(), joined(rows), tabulate(masked(), joined(rows), progress=False), [setting], progress=False
    )
    assert isinstance(found, Exactness)
    assert found.texts == len(rows)
    (row,) = found.settings
    assert row.left_out is None
    assert all(one.largest < 1e-5 and one.covered == one.intervals for one in row.words)
    assert all(gap < 1e-5 for gap in row.gaps)
    assert json.dumps(found.to_dict())


@law("evaluate.measure_peers", share=1, rows=some, seed=st.integers(0, 9), budget=st.sampled_from([6, 10]))
def test_peers_are_the_same_for_the_same_seed(libraries, rows, seed, budget):
    """And leave Python's and numpy's generators as they were; a text with too few coalitions is left out."""
    tables = tabulate(masked(), joined(rows), progress=False)
    one, other = (
        measure_peers(tables, [budget], ["KernelSHAP", "PermutationSamplingSV"], seed=seed, progress=False)
        for _ in range(2)
    )
    assert one[1] == other[1] == {}
    assert [row.to_dict() for row in one[0]] == [row.to_dict() for row in other[0]]
    short = sum(2 ** len(table.words) < budget for table in tables)
    for row in one[0]:
        assert (row.left_out.count if row.left_out else 0) >= short
        assert len(row.words) <= len(tables) - short


@pytest.fixture(scope="module")
def libraries():
    """Imported before: what it changes of the environment on its first import is its own."""
    return pytest.importorskip("shapiq")


@law("evaluate.choose", share=6, count=st.integers(1, 9), low=st.integers(2, 4), more=st.integers(0, 6), seed=seeds)
def test_chosen_texts_have_as_many_words_as_asked_for(count, low, more, seed):
    """No text twice; more of them begin with the same ones."""
    given = texts(20, seed % 50)
    sizes = split(given).counts.tolist()
    fitting = {(given.first[row], given.second[row]) for row, size in enumerate(sizes) if low <= size <= low + more}
    if not fitting:
        with pytest.raises(ValueError, match="no text of"):
            choose(given, tokenizer(), count, low, low + more, seed=seed)
        return
    found = choose(given, tokenizer(), count, low, low + more, seed=seed)
    rows = list(zip(found.first, found.second, strict=True))
    assert len(rows) == len(set(rows)) == min(count, len(fitting))
    assert set(rows) <= fitting
    wider = choose(given, tokenizer(), count + 3, low, low + more, seed=seed)
    assert list(zip(wider.first, wider.second, strict=True))[: len(rows)] == rows


@law(
    "evaluate.Study",
    "evaluate.StudyResult",
    "evaluate.report",
    "evaluate.GroundingReport",
    share=1,
    seed=st.integers(0, 30),
    game=st.booleans(),
)
def test_a_study_measures_every_method(seed, game):
    """The same again; without a game there is no fit; a report says what falls short."""
    explainer, given = (grounded() if game else bare()), texts(4, seed, longest=4)
    names = ["leave-one-out", "random", *(["shapley"] if game else [])]
    study = Study(explainer, given)
    found, again = (study.measure([explainer.scorer(name) for name in names], seeds=(0, 1)) for _ in range(2))
    assert isinstance(found, StudyResult)
    for name in names:
        for metric, values in found.table.values[name].items():
            assert torch.equal(values.nan_to_num(7.0), again.table.values[name][metric].nan_to_num(7.0))
    assert (found.fit is not None) == (found.diagnostics is not None) == game
    assert json.dumps(found.to_dict())
    assert "comprehensiveness" in str(found)
    if not game:
        with pytest.raises(ValueError, match="has no game to measure"):
            study.fit()
        return
    told = report(explainer, given, coalitions=4)
    assert isinstance(told, GroundingReport)
    assert told.texts == 4
    assert ("WARNING" in str(told)) == bool(told.warnings)
    assert told.advice is None
    assert json.dumps(told.to_dict())
    same = report(explainer, given, learnt=given, coalitions=4)
    assert "more texts like these would bring little" in str(same)
