"""Documents quote results, and only results."""

import re
from pathlib import Path

import pytest

from spinformer import results
from spinformer.extras import require
from spinformer.report import render
from spinformer.report.tables import TABLES, markdown

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_are_in_step_with_results(path):
    text = path.read_text()
    assert render(text, ROOT / "results") == text, f"{path.name} is out of step: run `make docs`"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_figures_and_tables(tmp_path):
    outcome = {"rows": [], "share": 0.5, "list": [{"n": 12345}]}
    results.write("thing", outcome, command="c", config={}, directory=tmp_path)
    text = "a <!--=thing:share:.1%-->?<!--/=--> b <!--=thing:list.0.n:,-->old<!--/=-->"
    rendered = render(text, tmp_path)
    assert rendered == "a <!--=thing:share:.1%-->50.0%<!--/=--> b <!--=thing:list.0.n:,-->12,345<!--/=-->"
    assert render(rendered, tmp_path) == rendered


def test_unknown_figure_and_table(tmp_path):
    results.write("thing", {"a": 1}, command="c", config={}, directory=tmp_path)
    with pytest.raises(ValueError, match=r"has no outcome 'b\.c'"):
        render("<!--=thing:b.c:d--><!--/=-->", tmp_path)
    with pytest.raises(ValueError, match="no table named 'nothing'"):
        render("<!--table=nothing-->\n<!--/table-->", tmp_path)


def test_every_table_is_used_and_drawn():
    text = "".join(path.read_text() for path in DOCUMENTS)
    for name in TABLES:
        assert f"<!--table={name}-->" in text, name
    assert markdown(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_results_say_where_they_come_from():
    for path in (ROOT / "results").glob("*.json"):
        record = results.read(path.stem, ROOT / "results")
        assert record["command"].startswith("spinformer ")
        assert {"config", "data", "hardware", "versions", "written", "outcome"} <= set(record)


def test_missing_extra_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'spinformer\[dreams\]'"):
        require("a_package_that_is_not_there", extra="dreams")
