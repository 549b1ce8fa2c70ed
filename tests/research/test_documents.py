"""The Python that the documents show runs, and the README shows what is printed."""

import re
from pathlib import Path

import pytest

from research.paths import DOCS, ROOT
from spinformer.explain.methods import METHODS
from spinformer.games import INDICES
from spinformer.models.pooling import POOLING_HEADS

DOCUMENTS = ("architecture", "attractor", "deviations", "explanations", "nli", "notation")
# What docs/architecture.md registers.
EXTENSIONS = ((INDICES, "QBV"), (POOLING_HEADS, "max"), (METHODS, "length"))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """An empty folder with the checkpoints of the clone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_python_of_documents_runs(name, encoder, clone):
    """As it stands, but for a tiny encoder in place of BERT, and fewer images."""
    names: dict[str, object] = {}
    try:
        for block in blocks(DOCS / f"{name}.md", "python"):
            code = block.replace("google-bert/bert-base-uncased", str(encoder))
            exec(code.replace('load_images("sample")', 'load_images("sample").cut(256)'), names)
    finally:
        for registry, extension in EXTENSIONS:
            if extension in registry:
                registry.unregister(extension)


@pytest.mark.slow
def test_readme_shows_what_is_printed(clone, capsys):
    exec(blocks(ROOT / "README.md", "python")[0], {})
    (shown,) = blocks(ROOT / "README.md", "text")
    digits = re.compile(r"\d")  # which may differ in the last place from machine to machine
    assert digits.sub("0", capsys.readouterr().out).strip() == digits.sub("0", shown).strip()
