"""`bench` and `reproduce` run research from the clone of the running package, and from nowhere else."""

from pathlib import Path

import pytest

import spinformer
from research.benchmarks.timing import run_alone
from research.paths import DATA, DOCS, RECIPES, RESULTS, ROOT
from spinformer.cli import main
from spinformer.cli.research import find_research, load_command
from tests import fresh

COMMANDS = (
    "bench",
    "reproduce_all",
    "reproduce_nli",
    "reproduce_grounding",
    "reproduce_negation",
    "reproduce_attractor",
)


def test_folders_are_those_of_the_clone():
    assert find_research() == ROOT
    assert all(folder.is_dir() for folder in (DATA, DOCS, RECIPES, RESULTS))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_imported(name):
    module = load_command(name)
    assert module.__doc__
    assert Path(module.__file__).is_relative_to(ROOT / "research" / "commands")
    assert callable(module.configure)
    assert callable(module.run)


def test_from_another_folder(tmp_path, monkeypatch):
    """A package named research in the current folder is not run."""
    (tmp_path / "research" / "commands").mkdir(parents=True)
    for package in ("research", "research/commands"):
        (tmp_path / package / "__init__.py").write_text("raise SystemExit('the wrong folder')\n")
    monkeypatch.chdir(tmp_path)
    words = ["spinformer", "bench", "example", "--output", str(tmp_path)]
    code = f"import runpy, sys; sys.argv = {words!r}; runpy.run_module('spinformer', run_name='__main__')"
    done = fresh.run(code, imports=fresh.TRANSFORMERS)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "example.json").is_file()


def test_a_process_of_its_own_finds_research(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_alone("research.benchmarks.timing:peak_memory()") > 0


@pytest.mark.parametrize("words", [["bench", "example"], ["bench", "--help"], ["reproduce", "nli", "--help"]])
def test_without_a_clone_one_line_says_what_is_needed(words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(spinformer, "__file__", str(tmp_path / "site-packages" / "spinformer" / "__init__.py"))
    monkeypatch.chdir(ROOT)  # the current folder does not count
    with pytest.raises(FileNotFoundError, match="need a clone of the repository"):
        find_research()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "clone the spinformer repository and install it with pip install -e ." in error


def test_reproduce_lists_what_there_is(capsys):
    assert main(["reproduce"]) == 0
    shown = capsys.readouterr().out
    assert all(f"reproduce {name}" in shown for name in ("all", "nli", "grounding", "negation", "attractor"))
