"""The documentation as a site: `make docs-site` builds docs/ with Sphinx into build/site, warnings as errors.

`check` then looks at what was built: every page is there, and none asks another machine.

A Sphinx extension with three parts, so that the pages in docs/ stay plain Markdown that any viewer shows: `pages`
translates what Markdown viewers and Sphinx write differently, `docstrings` what our docstrings and reStructuredText do,
`notebooks` makes a Jupyter notebook of every tutorial.
"""

from pathlib import Path
from typing import Any

from research.paths import DOCS
from research.site.docstrings import as_restructured
from research.site.notebooks import TUTORIALS, save_notebooks
from research.site.pages import for_sphinx, with_download


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("build-finished", _notebooks)
    return {"parallel_read_safe": True}


def _read(app: Any, name: str, source: list[str]) -> None:
    text = for_sphinx(source[0], DOCS / f"{name}.md")
    source[0] = with_download(text, name) if name.startswith(f"{TUTORIALS}/") else text


def _docstring(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = as_restructured(lines)


def _notebooks(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        save_notebooks(Path(app.outdir) / TUTORIALS)
