"""What must hold of a wheel, an sdist, the citation and the model cards before they are published."""

import io
import shutil
import tarfile
import zipfile

import pytest

from research.paths import ROOT
from research.tools.release import card_problems, citation_problems, problems
from spinformer import __version__

METADATA = f"""Metadata-Version: 2.4
Name: spinformer
Version: {__version__}
Summary: words
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.11
Description-Content-Type: text/markdown
Provides-Extra: nli
Provides-Extra: plot
Provides-Extra: images
Provides-Extra: app
Provides-Extra: compare
"""
SDIST = ("PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "src/spinformer/__init__.py")
WHEEL = ("spinformer/__init__.py", "spinformer/py.typed")


def make(folder, metadata=METADATA, wheel=WHEEL, licences=True, sdist=SDIST):
    folder.mkdir(exist_ok=True)
    info = f"spinformer-{__version__}.dist-info"
    with zipfile.ZipFile(folder / f"spinformer-{__version__}-py3-none-any.whl", "w") as archive:
        for name in (*wheel, *((f"{info}/licenses/LICENSE",) if licences else ())):
            archive.writestr(name, "")
        archive.writestr(f"{info}/METADATA", metadata)
    with tarfile.open(folder / f"spinformer-{__version__}.tar.gz", "w:gz") as archive:
        for name in sdist:
            archive.addfile(tarfile.TarInfo(f"spinformer-{__version__}/{name}"), io.BytesIO())
    return folder


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("")
    return tmp_path / "site"


def test_what_is_ready(tmp_path, site):
    assert problems(make(tmp_path / "dist"), site) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"metadata": METADATA.replace(__version__, "9.9")}, "is of version 9.9"),
        ({"metadata": METADATA.replace("Summary: words\n", "")}, "lack Summary"),
        ({"metadata": METADATA.replace("Provides-Extra: app\n", "")}, "lack the extras app"),
        ({"metadata": METADATA.replace("License-File: LICENSE\n", "")}, "brings no licence"),
        ({"licences": False}, "the licence LICENSE is named and not there"),
        ({"wheel": ("spinformer/__init__.py",)}, "py.typed is missing"),
        ({"wheel": ("spinformer/py.typed", "tests/a.py")}, "tests/a.py is no part of the package"),
        ({"sdist": SDIST[:-1]}, "src/spinformer/__init__.py is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_what_is_not(tmp_path, site, changed, words):
    (found,) = problems(make(tmp_path / "dist", **changed), site)
    assert words in found


def test_what_is_missing(tmp_path):
    assert problems(tmp_path) == [f"{tmp_path.name}/ must hold one wheel and one sdist; it holds 0 and 0"]
    assert problems(make(tmp_path / "dist"), tmp_path) == ["the site is not built; `make docs-site` builds it"]


def test_citation_and_cards(tmp_path):
    assert citation_problems() == card_problems() == []
    text = (ROOT / "CITATION.cff").read_text()
    (tmp_path / "CITATION.cff").write_text(text.replace(f"version: {__version__}", "version: 0.0.1"))
    assert citation_problems(tmp_path) == [f"CITATION.cff is of version 0.0.1; the package has {__version__}"]
    folder = tmp_path / "checkpoints" / "one"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "checkpoints" / "neurogame-minilm-nli" / "config.json", folder)
    assert len(card_problems(tmp_path)) == 5  # no card at all
