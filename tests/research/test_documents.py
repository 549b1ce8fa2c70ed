"""The documents: their Python runs and prints what they show, their commands parse, their links lead somewhere."""

import ast
import importlib
import inspect
import json
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from research.paths import DOCS, ROOT
from research.site.notebooks import notebook, save_notebooks
from spinformer.cli import parse
from tests import tiny
from tests.research.pages import DIGITS, blocks, name, pages, run_page

WITH_PYTHON = [page for page in pages() if blocks(page, "python")]
WITH_COMMANDS = [page for page in pages() if blocks(page, "console")]
LINKED = [*pages(), *ROOT.glob("*.md"), ROOT / "research" / "README.md"]
PUBLIC = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "src" / "spinformer").rglob("*.py")
    if re.search(r"^__all__ = ", path.read_text(), re.MULTILINE)
)
PLACE = re.compile(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with what pages take for granted: a classifier MODEL and a file of texts."""
    monkeypatch.chdir(tmp_path)
    tiny.nli_classifier().save_pretrained("MODEL")
    tiny.tokenizer().save_pretrained("MODEL")
    rows = [f"{row['premise']},{row['hypothesis']}" for row in tiny.rows(160, longest=4)]
    Path("texts.csv").write_text("\n".join(["premise,hypothesis", *rows]) + "\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The set_.* function will be:PendingDeprecationWarning")  # of matplotlib about shap
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_python_of_documents_runs(page, encoder, folder):
    """And prints what stands below it, but for digits."""
    for shown, printed in run_page(page, folder, encoder):
        assert DIGITS.sub("0", printed).strip() == DIGITS.sub("0", shown).strip()


@pytest.mark.slow
def test_readme_shows_what_is_printed(folder, encoder, tmp_path):
    (first, *_), readme = blocks(ROOT / "README.md", "python"), tmp_path / "readme.md"
    (shown,) = (content for _, content in blocks(ROOT / "README.md", "text"))
    readme.write_text(f"```python\n{first[1]}```\n```text\n{shown}```\n")
    ((expected, printed),) = run_page(readme, folder, encoder)
    assert DIGITS.sub("0", printed).strip() == DIGITS.sub("0", expected).strip()


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_commands_of_documents_parse(page):
    for _, content in blocks(page, "console"):
        for line in content.replace("\\\n", " ").splitlines():
            words = shlex.split(line.partition(" > ")[0], comments=True)
            if "spinformer" in words and "..." not in words:
                assert words[0] in ("spinformer", "torchrun", "accelerate", "git"), line
                if words[0] != "git":
                    parse(words[words.index("spinformer") + 1 :])


def anchors(path: Path) -> set[str]:
    """Of headings, as Markdown viewers make them, and those that stand in the page."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"></a>', text))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


@cache
def examples() -> frozenset[str]:
    """Every name that the Python of a page uses, with the module that it was imported from: module.name."""
    used = set()
    for page in WITH_PYTHON:
        origin: dict[str, str] = {}
        for _, content in blocks(page, "python"):
            for node in ast.walk(ast.parse(content)):
                if isinstance(node, ast.ImportFrom):
                    origin |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                elif isinstance(node, ast.Import):
                    origin |= {alias.asname or alias.name: alias.name for alias in node.names}
        for _, content in blocks(page, "python"):
            for node in ast.walk(ast.parse(content)):
                if isinstance(node, ast.Name) and node.id in origin:
                    used.add(origin[node.id])
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in origin:
                    used.add(f"{origin[node.value.id]}.{node.attr}")
    return frozenset(used)


def resolve(path: str) -> object:
    module, _, attribute = path.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    return thing.explain if path == "spinformer.explain" else thing  # a package that can be called as its function


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_described_placed_and_shown(module):
    """A docstring of its own, a place in the reference, and an example that runs; under any of its names."""
    pytest.importorskip("gradio" if module == "spinformer.app" else "transformers")
    placed, shown = reference(), shown_things()
    for one in importlib.import_module(module).__all__:
        thing = resolve(f"{module}.{one}")
        if one == "__version__":
            assert f"`{module}.{one}`" in (DOCS / "reference" / "spinformer.md").read_text()
            continue
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, one
            assert any(other is thing for other in placed.values()), f"{module}.{one} is not in docs/reference"
            assert any(other is thing for other in shown), f"no page shows {module}.{one}"
        else:
            assert f"{module}.{one}" in placed or any(other is thing for other in placed.values()), one
            assert f"{module}.{one}" in examples() or any(other is thing for other in shown), one


@cache
def reference() -> dict[str, object]:
    """What docs/reference describes."""
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    return {path: resolve(path) for path in PLACE.findall(text)}


@cache
def shown_things() -> tuple[object, ...]:
    return tuple(resolve(path) for path in examples() if path.startswith("spinformer.") and is_there(path))


def is_there(path: str) -> bool:
    try:
        resolve(path)
    except (ImportError, AttributeError):
        return False
    return True


def test_notebooks_hold_the_python_of_their_page(tmp_path):
    for path in save_notebooks(tmp_path):
        made = json.loads(path.read_text())
        page = DOCS / "tutorials" / f"{path.stem}.md"
        code = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
        assert code == [content.rstrip("\n") for _, content in blocks(page, "python")]
        assert all(cell["outputs"] == [] for cell in made["cells"] if cell["cell_type"] == "code")
        assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    text = "# A\n\nSee [b](b.md).\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nEnd.\n"
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in notebook(text)["cells"]] == [
        ("markdown", "# A\n\nSee b."), ("code", "print(1)"), ("markdown", "End."),
    ]  # fmt: skip


def test_every_page_is_in_the_contents():
    listed = set(re.findall(r"^([\w/-]+)$", "\n".join(content for content in TOCTREE.findall(
        (DOCS / "index.md").read_text())), re.MULTILINE))  # fmt: skip
    assert listed == {name(page) for page in pages()} - {"index"}


TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
