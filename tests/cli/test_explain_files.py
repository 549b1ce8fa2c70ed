"""Files of commands: what is read is not overwritten, other files are no texts, an odd output is refused, at once."""

import os
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from spinformer.cli import main
from spinformer.cli.explain_files import names_texts

ROWS = '{"text": "a man runs"}\n'
READ = "expected .jsonl, .json, .csv, .tsv, .parquet, .txt, with .gz or without"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with files of one text, links to them, and no model: none is needed."""
    monkeypatch.chdir(tmp_path)
    for name in ("in.jsonl", "in.json", "0001.json", "other.xlsx", "plain"):
        Path(name).write_text(ROWS)
    Path("page.html").write_text(ROWS)
    Path("images.npz").write_text("")
    os.symlink("in.jsonl", "link.jsonl")
    os.symlink("page.html", "page.jsonl")
    Path("folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (f"explain MODEL {source} --output {output}", f"--output must not be a file that is read; got {shown}")
            for source, output, shown in (
                ("in.jsonl", "in.jsonl", "in.jsonl"),
                ("in.jsonl", "folder/../in.jsonl", "folder/../in.jsonl"),
                ("link.jsonl", "in.jsonl", "in.jsonl"),
                ("in.jsonl", "link.jsonl", "link.jsonl"),
                ("--file in.json+in.jsonl", "in.jsonl", "in.jsonl"),
                ("0001.json", ".", "0001.json"),
            )
        ),
        ("explain MODEL page.jsonl --html page.html", "--html must not be a file that is read; got page.html"),
        ("explain MODEL page.jsonl --overview page.html", "--overview must not be a file that is read; got page.html"),
        ("predict MODEL in.jsonl+in.json --output link.jsonl", "--output must not be a file that is read"),
        ("evaluate MODEL in.json --explanations --output in.json", "--output must not be a file that is read"),
        ("evaluate MODEL in.json --results . --name in", "--name must not be a file that is read; got in.json"),
        ("train attractor --images images.npz --output images.npz", "--output must not be a file that is read"),
        ("explain MODEL other.xlsx --output one.csv", f"other.xlsx is a file of an unknown kind; {READ}"),
        ("explain MODEL plain", f"plain is a file of an unknown kind; {READ}"),
        ("explain other.xlsx", f"other.xlsx is a file of an unknown kind; {READ}"),
        ("explain MODEL data/none.jsonl", "no file data/none.jsonl"),
        ("explain MODEL none.JSON.gz", "no file none.JSON.gz"),
        ("explain MODEL in.jsonl second", "in.jsonl is a file of texts, which is named alone; got a TEXT and a SECOND"),
        ("explain MODEL word --output one.txt", "--output of one text must end in .json, .jsonl, .csv, .parquet; got"),
        ("explain MODEL word --output one.csv --pairs -1", "--pairs must be an integer of at least 0; got -1"),
        ("explain MODEL in.json --output o.xlsx", "--output of a file must end in .jsonl, .csv, .parquet, or be a fol"),
        ("explain MODEL in.json --output o.json", "or be a folder, there or without a suffix; got o.json"),
    ],
)
def test_refused_before_a_model_is_looked_for(place, words, message, capsys):
    before = {path: path.read_bytes() for path in place.iterdir() if path.is_file()}
    assert main(words.split(" ")) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert {path: path.read_bytes() for path in place.iterdir() if path.is_file()} == before


def test_words_that_name_files(place):
    assert names_texts("in.json")
    assert names_texts("link.jsonl")
    Path("model.json").mkdir()
    for word in ("a man", "word", "see in.txt, none.json", "folder", "model.json", "x" * 10_000, "a\0b"):
        assert not names_texts(word)


def test_outputs_that_are_taken(place, capsys):
    """A folder that is there may have any name; a new one has no suffix. Only then is MODEL looked for."""
    Path("v1.2").mkdir()
    for output in ("v1.2", "new", "new.csv"):
        assert main(["explain", "./MODEL", "in.json", "--output", output]) == 2
        assert "expected a folder with a saved model at ./MODEL" in capsys.readouterr().err
    assert not Path("new").exists()


def test_standard_input_is_not_overwritten(place, capsys):
    with Path("in.jsonl").open() as file:
        kept = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            assert main(["predict", "MODEL", "--output", "in.jsonl"]) == 2
        finally:
            os.dup2(kept, 0)
            os.close(kept)
    assert "--output must not be a file that is read; got in.jsonl" in capsys.readouterr().err
    assert Path("in.jsonl").read_text() == ROWS
