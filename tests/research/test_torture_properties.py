"""The part of the torture that runs tests/properties: it counts what was run, and says in a line what does not hold."""

from pathlib import Path

import pytest

from research.torture import properties
from research.torture.findings import Plan
from tests import fresh

BROKEN = """
import pytest
from hypothesis import strategies as st
from tests.properties.cases import law, seeds


@law("games.exact_values", share=1000, number=st.integers(0, 99), seed=seeds)
def test_numbers_are_small(number, seed):
    assert number < 7, "too large"


@law("games.exact_values", share=1000, number=st.integers(0, 99))
def test_the_caller_keeps_its_generator(number):
    import torch

    torch.rand(1)


def test_plain():
    raise ValueError("no example here")
"""


@pytest.mark.parametrize("ci", ["", "true"])
def test_failures_are_told_in_a_line(tmp_path, ci):
    (tmp_path / "test_broken.py").write_text(BROKEN)
    environment = {"SPINFORMER_CASES": "20", "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path), "CI": ci}
    words = ["-q", "--tb=short", "-p", "no:cacheprovider", str(tmp_path)]
    code = f"import os; os.environ.update({environment}); import pytest; raise SystemExit(pytest.main({words}))"
    done = fresh.run(code, folder=properties.ROOT)
    small, world, plain = properties.failures_of(done.stdout)
    assert small.startswith("test_numbers_are_small: AssertionError: too large")
    assert small.endswith("for test_numbers_are_small( number=7, seed=0, )")
    assert "torch changed" in world
    assert plain == "test_plain: ValueError: no example here"


def test_cases_are_counted(monkeypatch):
    monkeypatch.setattr(properties, "TESTS", Path("tests/properties/test_games.py"))
    found = properties.run(Plan(seed=3, scale=0.001))
    assert found.failures == []
    assert 10 <= found.cases["generated inputs"] < 40
    assert found.cases["laws"] == 12


def test_too_few_cases_are_a_failure(monkeypatch, tmp_path):
    (tmp_path / "test_none.py").write_text("def test_no_law():\n    pass\n")
    monkeypatch.setattr(properties, "TESTS", tmp_path)
    found = properties.run(Plan(scale=0.001))
    assert [failure for failure in found.failures if "expected at least 10 generated inputs; there were 0" in failure]
