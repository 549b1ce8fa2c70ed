"""Docstrings and pages survive as they are written; a built site that lacks a page or asks another machine is refused.

`make docs-site` builds the site, with warnings as errors, and checks it; .ci/run does so for every commit.
"""

from research.paths import DOCS, ROOT
from research.site.check import problems
from research.site.docstrings import as_restructured
from research.site.notebooks import TUTORIALS, save_notebooks
from research.site.pages import for_sphinx


def test_docstrings_become_what_they_look_like():
    lines = ["v(C) = |sum of v_i|, see `mean_field`s", "", "    a * b", "", "- p_c(C) \\ x"]
    assert as_restructured(lines) == [
        "v(C) = \\|sum of v\\_i\\|, see ``mean_field``\\ s", "", "::", "", "    a * b", "", "- p\\_c(C) \\\\ x", "",
    ]  # fmt: skip


def test_pages_keep_links_of_the_site_alone():
    text = 'See [a](grounding.md#x), [b](../src/c.py), [d](#e), [f](https://g.h), ![p](figures/p.svg)<a id="here"></a>'
    assert for_sphinx(text, DOCS / "nli.md") == (
        "See [a](grounding.md#x), b, [d](#e), [f](https://g.h), ![p](figures/p.svg)[]{#here}"
    )
    assert for_sphinx("[a](../nli.md) [b](../../README.md)", DOCS / "concepts" / "x.md") == "[a](../nli.md) b"


def test_pages_that_are_missing_or_fetch_something_are_told(tmp_path):
    for page in DOCS.rglob("*.md"):
        path = (tmp_path / page.relative_to(DOCS)).with_suffix(".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('<script src="_static/a.js"></script><a href="https://elsewhere.org">exact_values</a>')
    save_notebooks(tmp_path / TUTORIALS)
    (tmp_path / "a.css").write_text("div { background: url(a.png) }")
    assert problems(tmp_path) == []
    (tmp_path / TUTORIALS / "classifier.ipynb").unlink()
    (tmp_path / "limits.html").unlink()
    (tmp_path / "reference" / "games.html").write_text("")
    (tmp_path / "nli.html").write_text('<link rel="stylesheet" href="https://fonts.org/a.css">')
    (tmp_path / "index.html").write_text('<img alt="a" src="//elsewhere.org/a.png">')
    (tmp_path / "a.css").write_text('div { background: url("http://elsewhere.org/a.png") }')
    assert problems(tmp_path) == [
        "limits.html is missing",
        "tutorials/classifier.ipynb is missing",
        "reference/games.html does not describe exact_values",
        'index.html asks another machine: <img alt="a" src="//',
        'nli.html asks another machine: <link rel="stylesheet" href="https://',
        'a.css asks another machine: url("http://',
    ]


def test_every_commit_builds_the_site_with_warnings_as_errors():
    recipe = (ROOT / "Makefile").read_text().split("\ndocs-site:")[1].split("\n\n")[0]
    assert "sphinx -W " in recipe
    assert "research.site.check build/site" in recipe
    assert "make docs-site" in (ROOT / ".ci" / "run").read_text().splitlines()
