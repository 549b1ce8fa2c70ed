"""`reproduce corpus`: rows that are missing, doubled or other after a kill are found."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from research.commands import reproduce_corpus
from research.steps import BY_NAME
from spinformer.__main__ import main
from spinformer.cli.commands import command_parser

TEXTS = ["a good film", "a bad film", "no film", "a film again"]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """The command with another way to explain; its calls, exit status and outcome."""
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    monkeypatch.setattr(reproduce_corpus, "weight_digests", lambda model: {})

    def of(explain, *more):
        calls = []

        def explained(args, texts, output, processes, kill=None):
            calls.append((output.stem, processes, kill is not None))
            if kill is None:
                explain(texts, output)
            return 2.0

        monkeypatch.setattr(reproduce_corpus, "_explain", explained)
        words = ["reproduce", "corpus", "--model", "none", "--texts", str(source), "--count", "4", "--few", "2"]
        words += ["--processes", "3", "--kills", "2", "--runs", str(tmp_path / "runs"), "--device", "cpu"]
        status = main([*words, "--results", str(tmp_path), *more])
        return calls, status, json.loads((tmp_path / "corpus-cpu.json").read_text())["outcome"]

    return of


def write(texts: Path, output: Path, change=lambda rows: rows):
    rows = [json.loads(line) | {"row": number} for number, line in enumerate(texts.read_text().splitlines())]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(change(rows)), output)


def test_what_is_run_and_told(run):
    calls, status, outcome = run(write)
    assert calls == [("all", 3, False), ("one", 1, False), ("two", 2, False)] + [("killed", 1, True)] * 2 + [
        ("killed", 1, False)
    ]
    assert status == 0
    assert (outcome["texts"], outcome["seconds"], outcome["words"]) == (4, 2.0, 2.75)
    assert outcome["rows_once"]
    assert outcome["same_by_two"]
    assert outcome["same_after_kills"]


@pytest.mark.parametrize("change", [lambda rows: rows[:-1], lambda rows: [*rows, rows[-1]], lambda rows: rows[::-1]])
def test_rows_that_are_not_there_once_are_found(run, change):
    _, status, outcome = run(lambda texts, output: write(texts, output, change))
    assert status == 1
    assert not outcome["rows_once"]


def test_a_file_that_differs_after_kills_is_found(run):
    def explain(texts, output):
        write(texts, output, (lambda rows: rows[::-1]) if output.stem == "killed" else lambda rows: rows)

    _, status, outcome = run(explain)
    assert status == 1
    assert (outcome["same_by_two"], outcome["same_after_kills"]) == (True, False)


def test_too_few_texts(run, capsys):
    with pytest.raises(FileNotFoundError):
        run(write, "--count", "5")
    assert "--count must be at most the 4 texts" in capsys.readouterr().err


def test_the_step_parses():
    words = BY_NAME["corpus-gpu"].command({"data": "D"})
    assert command_parser("reproduce corpus").parse_args(words[2:]).processes == 12
