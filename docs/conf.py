"""Settings of the site: `make docs-site`. Nothing is fetched, when it is built and when it is read."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import spinformer  # noqa: E402

project, author = "spinformer", "The spinformer maintainers"
copyright = author
release = version = spinformer.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "research.site"]
exclude_patterns = ["figures"]

# Headings are anchors under the names that other viewers of Markdown give them; [](page.md#anchor) is checked.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
suppress_warnings = ["myst.header"]

default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = f"spinformer {release}"
html_show_sphinx = html_show_copyright = False
html_copy_source = False
