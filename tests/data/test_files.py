"""Texts are read alike from every format; columns and labels are found, or taken as given."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spinformer._base.files import sha256
from spinformer.data.files import read_texts
from spinformer.data.texts import NLI_LABELS, join_texts
from tests import fresh

Row = dict[str, Any]
PAIRS: list[Row] = [
    {"premise": "A man sleeps.", "hypothesis": "A man is awake.", "label": "contradiction"},
    {"premise": ' Größe, "quoted" ', "hypothesis": "日本, yes", "label": "entailment"},
    {"premise": "Two dogs run.", "hypothesis": "They race.", "label": "neutral"},
    {"premise": "No agreement.", "hypothesis": "None here.", "label": "-"},
]


def write(path: Path, rows: list[Row]) -> Path:
    ending = Path(path.name.removesuffix(".gz")).suffix
    if ending == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        whole = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.Table.from_pylist(rows), whole)
        content = whole.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        if ending in (".jsonl", ".json"):
            file.writelines(json.dumps(row) + "\n" for row in rows)
        elif ending == ".csv":
            writer = csv.writer(file)
            writer.writerows([list(rows[0]), *(row.values() for row in rows)])
        else:
            file.writelines("\t".join(map(str, cells)) + "\n" for cells in (rows[0], *(row.values() for row in rows)))
    return path


@pytest.mark.parametrize(
    "ending",
    [f"{ending}{packed}" for ending in (".jsonl", ".json", ".csv", ".tsv", ".parquet") for packed in ("", ".gz")],
)
def test_each_format_gives_the_same(tmp_path, ending):
    path = write(tmp_path / f"pairs{ending}", PAIRS)
    texts = read_texts(str(path))
    assert texts.first == ["A man sleeps.", 'Größe, "quoted"', "Two dogs run."]
    assert texts.second == ["A man is awake.", "日本, yes", "They race."]
    assert texts.labels == [2, 0, 1]
    assert texts.names == NLI_LABELS
    assert texts.dropped == 1
    assert texts.source == f"pairs{ending}"
    assert texts.digests == ((f"pairs{ending}", sha256(path)),)


def test_labels_of_tables_with_gaps(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("premise,hypothesis,label\na,b,2.0\na,c,0.0\na,d,\na,e,-1.0\n")
    texts = read_texts(path)
    assert (texts.labels, texts.names, texts.dropped) == ([2, 0], NLI_LABELS, 2)
    path.write_text("text,label\none,version 3.0\ntwo,4.0\n")  # one of these is no number
    assert read_texts(path).names == ("4", "version 3.0")


def test_quotes_newlines_byte_order_mark_and_blank_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufefftext,label\r\n"one,\nstill ""one""",x\r\n\r\ntwo,y\r\n'.encode())
    texts = read_texts(path)
    assert texts.first == ['one,\nstill "one"', "two"]
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"open quote\tx\n\n"closed"\ty\n')
    assert read_texts(path).first == ['"open quote', '"closed"']
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"text": "one", "label": "x"}\r\n\n{"text": "two", "label": "y"}'.encode())
    assert read_texts(path).first == ["one", "two"]


@pytest.mark.parametrize(
    ("columns", "first", "second"),
    [
        (["sentence1", "sentence2", "gold_label"], "sentence1", "sentence2"),
        (["id", "Sentence_A", "Sentence_B", "entailment_label"], "Sentence_A", "Sentence_B"),
        (["text", "text_pair", "labels"], "text", "text_pair"),
        (["question", "sentence", "class"], "question", "sentence"),
        (["idx", "sentence", "label"], "sentence", None),
        (["text", "sentence", "label"], "text", None),
        (["review", "sentiment"], "review", None),
    ],
)
def test_columns_are_found_by_their_usual_names(tmp_path, columns, first, second):
    labels = ("entailment_label", "gold_label", "labels", "class", "label", "sentiment")
    path = write(tmp_path / "a.jsonl", [{name: "c" if name in labels else f"in {name}" for name in columns}])
    texts = read_texts(path)
    assert texts.first == [f"in {first}"]
    assert texts.second == (None if second is None else [f"in {second}"])
    assert texts.paired == (second is not None)
    assert texts.names == (NLI_LABELS if second else ("c",))


def test_given_columns_win(tmp_path):
    row = {"premise": "p", "hypothesis": "h", "label": "neutral", "context": "c", "claim": "d", "verdict": "entailment"}
    path = write(tmp_path / "a.csv", [row])
    texts = read_texts(path, first="context", second="claim", label="verdict")
    assert (texts.first, texts.second, texts.labels) == (["c"], ["d"], [0])
    alone = read_texts(path, first="hypothesis")
    assert (alone.first, alone.second, alone.labels) == (["h"], None, [1])
    with pytest.raises(ValueError, match=r"second='claim' was given without first"):
        read_texts(path, second="claim")
    with pytest.raises(ValueError, match=r"a\.csv: no column 'Context'; its columns are 'premise', 'hypothesis', .*"):
        read_texts(path, first="Context")


def test_labels_are_optional_and_ignored_where_not_asked_for(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "one"}, {"text": "two", "label": "-"}])
    texts = read_texts(path, labelled=False, names=("x", "y"))
    assert (texts.first, texts.labels, texts.names, texts.dropped) == (["one", "two"], None, ("x", "y"), 0)
    assert read_texts(path, labelled=False, label="nowhere").labels is None


def pairs(labels: list[Any]) -> list[Row]:
    return [{"premise": "p", "hypothesis": "h", "label": label} for label in labels]


def singles(labels: list[Any]) -> list[Row]:
    return [{"text": "t", "label": label} for label in labels]


@pytest.mark.parametrize(
    ("rows", "given", "names", "labels"),
    [
        (pairs(["neutral", "entailment"]), None, NLI_LABELS, [1, 0]),
        (pairs(["E", "n", "Contradict", " ENTAIL "]), None, NLI_LABELS, [0, 1, 2, 0]),
        (pairs([0, 2, 1]), None, NLI_LABELS, [0, 2, 1]),
        (pairs(["not_entailment", "entailment"]), None, ("entailment", "non-entailment"), [1, 0]),
        (pairs(["Non-Entailment"]), None, ("entailment", "non-entailment"), [1]),
        (pairs(["SUPPORTS", "refutes", "Refutes"]), None, ("Refutes", "SUPPORTS"), [1, 0, 0]),
        (pairs([0, 3]), None, ("0", "3"), [0, 1]),
        (pairs([0, 1]), ("duplicate", "different"), ("duplicate", "different"), [0, 1]),
        (pairs(["c", "entailment"]), ("contradiction", "entailment"), ("contradiction", "entailment"), [0, 1]),
        (pairs(["non-entailment", 1]), ("entailment", "not_entailment"), ("entailment", "not_entailment"), [1, 1]),
        (singles(["n", "e"]), None, ("e", "n"), [1, 0]),
        (singles([1, 0]), None, ("0", "1"), [1, 0]),
        (singles([5, 1, 10]), None, ("1", "5", "10"), [1, 0, 2]),
        (singles(["2", "10", "other"]), None, ("10", "2", "other"), [1, 0, 2]),
        (singles(["POSITIVE", "negative"]), ("negative", "positive"), ("negative", "positive"), [1, 0]),
        (singles([1.0, 0.0]), ("bad", "good"), ("bad", "good"), [1, 0]),
    ],
)
def test_names(tmp_path, rows, given, names, labels):
    texts = read_texts(write(tmp_path / "a.jsonl", rows), names=given)
    assert texts.names == names
    assert texts.labels == labels


def test_numbers_in_csv_are_numbers(tmp_path):
    assert read_texts(write(tmp_path / "a.csv", pairs([2, -1, 0]))).labels == [2, 0]
    assert read_texts(write(tmp_path / "b.tsv", singles([3, 4])), names=("3", "4")).labels == [0, 1]


def test_rows_without_a_gold_label_are_dropped_whatever_else_they_hold(tmp_path):
    rows = [*pairs([-1, "-", "", " ", None, float("nan"), "-1", "e"]), {"premise": "", "hypothesis": 3, "label": None}]
    texts = read_texts(write(tmp_path / "a.jsonl", rows))
    assert (len(texts), texts.dropped) == (1, 8)


def test_joined(tmp_path):
    one = read_texts(write(tmp_path / "a.jsonl", PAIRS))
    two = read_texts(write(tmp_path / "b.csv", PAIRS[:1]))
    both = join_texts([one, two])
    assert (len(both), both.dropped, both.source) == (4, 1, "a.jsonl + b.csv")
    assert [name for name, _ in both.digests] == ["a.jsonl", "b.csv"]
    with pytest.raises(ValueError, match=r"a\.jsonl and c\.jsonl cannot be joined: one has pairs"):
        join_texts([one, read_texts(write(tmp_path / "c.jsonl", singles(["x"])))])


def test_nothing_beyond_the_core_is_imported():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('datasets', 'pyarrow', 'transformers'))); "
        "from spinformer.data.sources import load_texts; print(len(load_texts('sample:dev')))"
    )
    done = fresh.run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "500"
