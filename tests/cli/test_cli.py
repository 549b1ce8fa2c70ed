"""The command line: help, errors, the demonstration, and the commands and code that the README shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spinformer import results
from spinformer.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]


def test_usage_lists_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name} " in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*name.split(), "--help"])
    assert stopped.value.code == 0
    assert f"usage: spinformer {name}" in capsys.readouterr().out


def test_group_lists_its_commands(capsys):
    assert main(["train"]) == 0
    assert "train attractor" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["nonsense"], ["train", "nonsense"]])
def test_unknown_command(words, capsys):
    assert main(words) == 2
    assert "usage: spinformer COMMAND" in capsys.readouterr().err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.match(r"spinformer \d+\.\d+\.\d+", capsys.readouterr().out)


def test_bad_input_is_one_line(capsys):
    assert main(["explain", "no/such/folder", "a", "b"]) == 2
    captured = capsys.readouterr()
    assert "no/such/folder" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.slow
def test_demo(tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path), "--epochs", "1", "--small-epochs", "2"]) == 0
    shown = capsys.readouterr().out
    assert "0.7858  0.8587  0.7599" in shown
    accuracy = re.search(r"500 pairs: accuracy ([0-9.]+)%", shown)
    assert accuracy is not None
    assert float(accuracy[1]) > 80  # the shipped classifier, on the embedded test pairs
    assert "2,000 pairs in" in shown
    assert "awake" in (tmp_path / "explanations.html").read_text()
    assert (tmp_path / "trajectory.png").stat().st_size > 1000


def test_bench_writes_a_result(tmp_path, capsys):
    assert main(["bench", "example", "--output", str(tmp_path)]) == 0
    record = results.read("example", tmp_path)
    assert record["command"] == "spinformer bench example --seed 0"
    assert record["outcome"]["passed"]
    assert record["versions"]["torch"] == torch.__version__
    assert "example.json" in capsys.readouterr().out


def test_missing_result_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no result named 'nothing'"):
        results.read("nothing", tmp_path)


@pytest.mark.slow
def test_readme_python_runs(encoder, tmp_path, monkeypatch):
    """As it stands, but for the encoder: one of two layers, 32 wide, in the place of BERT."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block.replace("google-bert/bert-base-uncased", str(encoder)), names)


@pytest.mark.slow
def test_readme_explains_a_pair_by_one_command(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (command,) = re.findall(r"^spinformer (explain checkpoints/.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert main(shlex.split(command)) == 0
    shown = capsys.readouterr().out
    assert "Shapley" in shown
    assert re.search("synergy|antagonism", shown)


def test_readme_names_only_commands_that_exist():
    text = (ROOT / "README.md").read_text()
    for line in re.findall(r"^spinformer ([a-z ]+?)(?: +[A-Z#-].*)?$", text, re.MULTILINE):
        assert any(line.strip().startswith(name) for name in COMMANDS), line
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert f"\n{target}:" in makefile, target


def test_import_needs_torch_alone():
    code = (
        "import sys, spinformer, spinformer.games, spinformer.ising, spinformer.attention, spinformer.cli\n"
        "heavy = {'transformers', 'datasets', 'matplotlib', 'shapiq', 'PIL', 'pyarrow', 'gradio'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
