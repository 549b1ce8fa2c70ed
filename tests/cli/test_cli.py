"""The command line: help, errors, the demo, and the commands and code that the README shows."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch

from spinformer._base import records
from spinformer.cli import COMMANDS, main, research
from spinformer.data import sources
from spinformer.models import shipped
from tests import fresh
from tests.tiny import nli_classifier, tokenizer

ROOT = Path(__file__).parents[2]
SMALL_GAME = "heads=4, dim=16, hidden=32, readout=16"


def test_usage_lists_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, (_, summary) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", shown, re.MULTILINE), name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*name.split(), "--help"])
    assert stopped.value.code == 0
    assert f"usage: spinformer {name}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["train"], ["train", "--help"], ["reproduce", "-h"]])
def test_group_lists_its_commands(words, capsys):
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert f"  {words[0]} attractor " in shown
    assert "  predict " not in shown


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


@pytest.fixture
def few(monkeypatch):
    """100 texts to score on, and 200 digits to learn from."""
    load = sources.load_texts

    def few_texts(source, **options):
        texts = load(source, **options)
        return texts if source.endswith("train") else texts.select(range(100))

    monkeypatch.setattr("spinformer.cli.demo_digits.COUNT", 200)
    for module in ("data", "training.classifier.train"):
        monkeypatch.setattr(f"spinformer.{module}.load_texts", few_texts)


@pytest.mark.usefixtures("few")
def test_demo(tmp_path, capsys):
    """With the option that it advises where it finds no classifier: one of pairs, without a game."""
    nli_classifier().save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    output = tmp_path / "out"
    words = ["demo", "--model", str(tmp_path / "model"), "--output", str(output), "--epochs", "1", "--texts", "64"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    parts = [shown.index(f"\n{number}. ") for number in (1, 2, 3, 4)]
    assert parts == sorted(parts)
    for line in (
        f">>> explainer = spinformer.Explainer.from_pretrained({str(tmp_path / 'model')!r})",
        ">>> record = train_classifier(recipe, ",
        ">>> explainer.ground(comments, ",
        ">>> train_attractor(network, ",
        "accuracy on 100 held-out texts: ",
        "95% interval",
        "mean square error on the hidden pixels: zero 0.",
        "printed figures follow from its equations",
    ):
        assert line in shown, line
    pages = [output / name for name in ("pair.html", "sentiment.html", "digits.png")]
    assert shown.rstrip().endswith(f"written: {', '.join(map(str, pages))}")
    assert "indoors" in pages[0].read_text()
    assert "wonderful" in pages[1].read_text()
    assert pages[2].stat().st_size > 1000
    assert (output / "sentiment" / "game" / "game.json").is_file()


@pytest.mark.usefixtures("few")
def test_demo_without_a_classifier(tmp_path, monkeypatch, capsys):
    """Where the package lacks its classifier: one line says what --model is for, and the rest goes on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(shipped.VARIABLE, raising=False)
    monkeypatch.setattr(shipped, "EMBEDDED", tmp_path / "small")
    assert main(["demo", "--epochs", "1"]) == 0
    shown = capsys.readouterr().out
    (left_out,) = [line for line in shown.splitlines() if "left out" in line]
    assert "--model" in left_out
    assert "attractor 0." in shown
    assert (tmp_path / "runs" / "demo" / "digits.png").stat().st_size > 1000
    assert not (tmp_path / "runs" / "demo" / "pair.html").exists()


def missing_model():
    raise FileNotFoundError("no model; name one with --model")


@pytest.mark.usefixtures("few")
def test_demo_without_extras(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr("spinformer.cli.demo_digits.find_spec", lambda name: None)
    assert main(["demo", "--output", str(tmp_path), "--epochs", "1"]) == 0
    left_out = [line for line in capsys.readouterr().out.splitlines() if "left out" in line]
    assert len(left_out) == 2
    assert "spinformer[nli]" in left_out[0]
    assert "spinformer[plot]" in left_out[1]


def test_demo_of_another_model(tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path), "--model", "no/such/folder"]) == 2
    assert "no/such/folder" in capsys.readouterr().err


def test_outside_a_clone_one_line_says_what_to_do(monkeypatch, tmp_path, capsys):
    import spinformer

    monkeypatch.setattr(spinformer, "__file__", str(tmp_path / "site-packages" / "spinformer" / "__init__.py"))
    for words in (["bench", "example"], ["reproduce", "nli", "--help"], ["reproduce", "attractor"]):
        assert main(words) == 2
        shown = capsys.readouterr().err
        assert shown.count("\n") == 1
        assert "need a clone of the repository" in shown
    with pytest.raises(FileNotFoundError):
        research.find_research()


def test_a_command_that_lacks_an_extra_says_so_in_one_line(monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError(f"{name} is not installed; `pip install 'spinformer[nli]'` brings it")

    monkeypatch.setattr(importlib, "import_module", missing)
    assert main(["predict", "model"]) == 2
    assert capsys.readouterr().err == (
        "spinformer predict: spinformer.cli.predict is not installed; `pip install 'spinformer[nli]'` brings it\n"
    )


def test_only_the_module_of_the_command_is_imported():
    code = (
        "import sys\nfrom spinformer.cli import COMMANDS, main\n"
        "try:\n    main(['predict', '--help'])\nexcept SystemExit:\n    pass\n"
        "others = {module for module, _ in COMMANDS.values()} - {'spinformer.cli.predict'}\n"
        "assert not others & set(sys.modules), others & set(sys.modules)\n"
        "assert 'transformers' not in sys.modules"
    )
    done = fresh.run(code)
    assert done.returncode == 0, done.stderr


def test_bench_writes_a_result(tmp_path, capsys):
    assert main(["bench", "example", "--output", str(tmp_path)]) == 0
    record = records.read("example", tmp_path)
    assert record["command"] == "spinformer bench example --seed 0"
    assert record["outcome"]["passed"]
    assert record["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert "example.json" in capsys.readouterr().out


def test_missing_result_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no result named 'nothing'"):
        records.read("nothing", tmp_path)


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
    done = fresh.run(code)
    assert done.returncode == 0, done.stderr
