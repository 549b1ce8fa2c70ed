"""The site builds without a warning and asks no other machine; docstrings survive as they are written."""

import re
import subprocess
import sys

import pytest

from research.paths import DOCS
from research.site.docstrings import as_restructured
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


@pytest.mark.slow
def test_site_builds_without_warnings_and_fetches_nothing(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(tmp_path / "cache")]
    done = subprocess.run([*command, str(DOCS), str(tmp_path / "site")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "tutorials" / "classifier.ipynb").is_file()
    assert "exact_values" in (tmp_path / "site" / "reference" / "games.html").read_text()
    fetched = re.compile(r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//|<link[^>]*\shref="(?:https?:)?//')
    for page in (tmp_path / "site").rglob("*.html"):
        assert not fetched.search(page.read_text()), page.name
    for sheet in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", sheet.read_text()), sheet.name
