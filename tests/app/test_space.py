"""What a Hugging Face Space is made of: versions that agree with the package's, and a page that can be built."""

import re
import tomllib
from pathlib import Path

import pytest

from tests import fresh

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "spaces"


def test_requirements_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {*project["dependencies"], *project["optional-dependencies"]["app"]}
    assert set((SPACE / "requirements.txt").read_text().split()) == known


def test_the_header_agrees_with_the_versions():
    yaml = pytest.importorskip("yaml")
    header = yaml.safe_load((SPACE / "README.md").read_text().split("---")[1])
    assert (header["sdk"], header["app_file"]) == ("gradio", "app.py")
    assert f"gradio=={header['sdk_version']}" in (ROOT / "constraints.txt").read_text().splitlines()
    assert re.search(rf'requires-python = ">={header["python_version"]}"', (ROOT / "pyproject.toml").read_text())


@pytest.mark.slow
def test_the_space_builds_its_page(tmp_path, model_folder):
    """In a folder as `make space` lays it out, with nothing else on the path."""
    pytest.importorskip("gradio")
    for path in SPACE.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "spinformer").symlink_to(ROOT / "src" / "spinformer")
    (tmp_path / "checkpoints").symlink_to(model_folder.parent)
    code = (
        "import os, sys; os.environ.pop('SPINFORMER_MODEL', None); sys.path.insert(0, os.getcwd()); "
        "import runpy, spinformer; found = runpy.run_path('app.py')['demo'].get_config_file(); "
        "print(found['title'], len(found['dependencies']), spinformer.__file__)"
    )
    done = fresh.run(code, imports=fresh.TRANSFORMERS, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "spinformer: which words decided" in done.stdout
    assert str(tmp_path) in done.stdout


def test_make_space_lays_out_what_the_space_needs():
    recipe = (ROOT / "Makefile").read_text().split("\nspace:\n")[1].split("\n\n")[0]
    assert "cp -r spaces/. src/spinformer build/space/" in recipe
    assert {path.name for path in SPACE.iterdir()} == {"app.py", "README.md", "requirements.txt"}
