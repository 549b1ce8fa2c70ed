"""Files that are not as they should be are refused in one line that names the file, the line and what was expected."""

import gzip
import sys

import pytest

from spinformer.data.files import read_texts

GOOD = '{"premise": "p", "hypothesis": "h", "label": "neutral"}\n'


def fails(path, message, kind=ValueError, **options):
    with pytest.raises(kind, match=message) as caught:
        read_texts(path, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'premise': 1}", r"a\.jsonl:3: expected one JSON object; got \"\{'premise': 1\}\""),
        ('["p", "h"]', r'a\.jsonl:3: expected one JSON object; got \["p", "h"\]'),
        ('{"premise": "p"}', r"a\.jsonl:3: expected a field 'hypothesis'; its fields are 'premise'"),
        ('{"premise": "p", "hypothesis": "h"}', r"a\.jsonl:3: expected a field 'label'"),
        ('{"premise": 5, "hypothesis": "h", "label": "e"}', r"a\.jsonl:3: expected a string in 'premise'; got 5"),
        ('{"premise": "p", "hypothesis": null, "label": "e"}', r"a\.jsonl:3: expected a string in 'hypothesis'"),
        ('{"premise": "p", "hypothesis": " ", "label": "e"}', r"a\.jsonl:3: .*'hypothesis'; got ' ', which is empty"),
        ('{"premise": "p", "hypothesis": "h", "label": true}', r"a\.jsonl:3: expected a label that is a string or an"),
        ('{"premise": "p", "hypothesis": "h", "label": 0.5}', r"a\.jsonl:3: .* a string or an integer; got 0\.5"),
        ('{"premise": "p", "hypothesis": "h", "label": [0]}', r"a\.jsonl:3: .* a string or an integer; got \[0\]"),
        ('{"premise": "p", "hypothesis": "h", "label": 1}', r"all strings or all integers; got \[1, 'neutral'\]"),
    ],
)
def test_json_rows(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{GOOD}\n{line}\n{GOOD}")
    fails(path, message)


def test_labels_outside_the_names(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(GOOD + GOOD.replace('"neutral"', '"maybe"'))
    fails(path, r"a\.jsonl:2: expected a label among entailment, neutral; got 'maybe'", names=("entailment", "neutral"))
    path.write_text(GOOD + GOOD.replace('"neutral"', "2"))
    fails(path, r"a\.jsonl:2: expected a label among 0 to 1, for yes, neutral; got 2", names=("yes", "neutral"))
    path.write_text(GOOD + GOOD.replace('"neutral"', "-2"))
    fails(path, r"a\.jsonl:2: .*; got -2", names=("yes", "neutral"))
    fails(path, r"names must differ in more than their case", names=("Neutral", "neutral"))
    labels = ("entailment", "neutral", "contradicts", "maybe")
    path.write_text("".join(GOOD.replace('"neutral"', f'"{label}"') for label in labels))
    given = "if it is another class, give the names of all classes"
    fails(path, rf"a\.jsonl:4: expected a label among entailment, neutral, contradiction; got 'maybe'; {given}")
    assert read_texts(path, names=labels).labels == [0, 1, 2, 3]


def test_csv_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"two\nlines",x\none,x,y\n')
    fails(path, r"a\.csv:4: expected 2 cells, as in the header; got 3")
    path.write_text("text,label\none\n")
    fails(path, r"a\.csv:2: expected 2 cells, as in the header; got 1")
    path.write_text('text,label\none,x\n"never closed,x\ntwo,x\n')
    fails(path, r"a\.csv:3: expected a row of complete, quoted cells; unexpected end of data")
    path.write_text("text,label\n ,x\n")
    fails(path, r"a\.csv:2: expected a text in 'text'; got ' ', which is empty")
    path.write_text("text;label\none;x\n")
    fails(path, r"a\.csv: no text column; its columns are 'text;label'; looked for premise \+ hypothesis, .* review")
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\none\ttwo\tx\n")
    fails(path, r"a\.tsv:2: expected 2 cells, as in the header; got 3")


def test_parquet(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": ["one", None], "label": [0, 1]}), path)
    fails(path, r"a\.parquet:2: expected a string in 'text'; got None")
    fails(path, r"a\.parquet: no column 'body'; its columns are 'text', 'label'", first="body")
    path.write_bytes(path.read_bytes()[:-20])
    fails(path, r"a\.parquet is not a complete Parquet file")
    path.with_name("b.parquet.gz").write_bytes(gzip.compress(b"x" * 99)[:-9])
    fails(path.with_name("b.parquet.gz"), r"b\.parquet\.gz is not a complete Parquet file")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    fails(path, r"pyarrow is not installed; `pip install 'spinformer\[nli\]'`", ModuleNotFoundError)


def test_columns_that_are_not_there(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"premise": "p", "label": "e"}\n')
    fails(path, r"a\.jsonl: no text column; its columns are 'premise', 'label'; looked for premise \+ hypothesis")
    path.write_text('{"text": "t"}\n')
    fails(path, r"a\.jsonl: no label column; its columns are 'text'; looked for label, gold_label")
    path.write_text("{}\n")
    fails(path, r"a\.jsonl: no text column; its columns are none")


def test_files_as_a_whole(tmp_path):
    fails(tmp_path / "gone.jsonl", r"no file .*gone\.jsonl", FileNotFoundError)
    fails(tmp_path / "a.md", r"a\.md: expected a file \.jsonl, \.json, \.csv, \.tsv, \.parquet, \.txt")
    (tmp_path / "folder.csv").mkdir()
    fails(tmp_path / "folder.csv", r"folder\.csv is a folder; expected a file", FileNotFoundError)
    for name, content in (("e.jsonl", ""), ("b.jsonl", "\n \n"), ("e.csv", ""), ("h.csv", "text,label\n")):
        (tmp_path / name).write_text(content)
        fails(tmp_path / name, rf"{name} has no rows; expected at least one")
    (tmp_path / "none.jsonl").write_text(GOOD.replace("neutral", "-"))
    fails(tmp_path / "none.jsonl", r"none\.jsonl: none of its 1 rows has a gold label and a text")


def test_damage_and_encoding(tmp_path):
    whole = gzip.compress(GOOD.encode() * 100)
    path = tmp_path / "a.jsonl.gz"
    for content in (whole[:-9], whole[:40] + b"\xff" * 9 + whole[49:], GOOD.encode()):
        path.write_bytes(content)
        fails(path, r"a\.jsonl\.gz is not a complete gzip file: ")
    for name in ("a.jsonl", "a.csv"):
        path = tmp_path / name
        path.write_bytes((GOOD if name == "a.jsonl" else "text,label\n").encode() + "café,x\n".encode("latin-1"))
        fails(path, rf"{name}:2: expected UTF-8; got the byte 0xe9")
    path.write_text("text,label\none,x\n", encoding="utf-16")
    fails(path, r"a\.csv:1: expected UTF-8; got the byte 0xff")
