"""Files of texts: what of them is explained, what is left out, and what is refused, with a sentence that says why."""

import base64
import csv
import io
import re

import pytest

pytest.importorskip("gradio")

from research.torture.page_files import FORMULAS, HEAD, as_value, hostile_files
from spinformer.app import Classifier, limits, markup
from spinformer.app.classifier import CHUNK
from spinformer.app.downloads import FORMULA, spreadsheet
from spinformer.app.file_markup import file_html
from spinformer.app.task import Task
from spinformer.app.uploads import read_upload
from spinformer.explain import ExplanationSet

SINGLE = Task(False, "classes", ("negative", "positive"), False)
PAIRED = Task(True, "classes", ("entailment", "neutral", "contradiction"), True)


@pytest.mark.parametrize(
    ("name", "content", "task", "first", "second"),
    [
        ("a.csv", b'label,Text\n1,a dog\n0,"a, cat"\n', SINGLE, ["a dog", "a, cat"], None),
        ("a.TSV", b'sentence\tlabel\na "dog\t1\n', SINGLE, ['a "dog'], None),
        ("a.jsonl", b'{"review": "a dog", "x": 1}\n\n', SINGLE, ["a dog"], None),
        ("a.txt", b"\xef\xbb\xbfa dog\r\n\r\na\tcat\n", SINGLE, ["a dog", "a cat"], None),
        ("a.csv", b"sentence1,sentence2\na dog,a cat\n", PAIRED, ["a dog"], ["a cat"]),
        ("a.json", b'{"premise": "a dog", "hypothesis": "a cat"}', PAIRED, ["a dog"], ["a cat"]),
        ("a.txt", b"a dog\ta cat\n", PAIRED, ["a dog"], ["a cat"]),
        ("a.csv", b"premise,hypothesis,text\na dog,a cat,a man\n", SINGLE, ["a man"], None),
    ],
)
def test_what_is_read(name, content, task, first, second):
    upload = read_upload(as_value(name, content), task)
    assert (upload.texts.first, upload.texts.second, upload.left_out) == (first, second, ())


def test_what_is_left_out():
    rows = ["dog " * 61, "x" * 601, "\u200b\u202e"] + ["a dog"] * (limits.ROWS + 5)
    upload = read_upload(as_value("a.txt", "\n".join(rows).encode()), SINGLE)
    assert len(upload.texts) == limits.ROWS
    assert upload.left_out == (
        "Rows that are empty, or longer than 600 characters and 60 words, are left out: 3 of 203.",
        "The file has 208 rows; 200 are explained at most.",
    )


SAID = {
    "a zip bomb": r"texts\.zip: expected a file \.csv, \.tsv, \.jsonl, \.json, \.txt\.",
    "a zip bomb by another name": "is no text in UTF-8: it holds zero bytes",
    "a gzip bomb": r"texts\.csv\.gz: expected a file",
    "a gzip bomb by another name": "it holds zero bytes|expected UTF-8; got the byte 0x8b",
    "a program": "it holds zero bytes, as programs, pictures and archives do",
    "a pickle": "it holds zero bytes",
    "UTF-16": "it holds zero bytes",
    "Latin-1": r"texts\.csv:2: expected UTF-8; got the byte 0xe9",
    "nothing": "has no rows: please write a text in each",
    "a header alone": "has no rows: please write a text in each, below the names of the columns",
    "empty lines": "has no rows: please write a text in each",
    "wrong columns": "expected two columns, such as premise and hypothesis or .*; its columns are 'id', 'score'",
    "one column of two": "expected two columns, .*; its columns are 'premise'",
    "5,000 columns": "expected two columns, .*; its columns are 'c0', 'c1', 'c2', 'c3', 'c4', 'c5'",
    "a cell too few": r"texts\.csv:3: expected 2 cells, as in the header; got 1",
    "a quote without end": r"texts\.csv:2: expected (2 cells|a row of complete, quoted cells)",
    "a cell of 200 KB": r"texts\.csv:2: expected a row of complete, quoted cells; field larger than field limit",
    "a line of 250 KB": r"texts\.txt:1: expected two texts with a tab between; got 1",
    "too large": "has 262,148 bytes; a file may have 262,144",
    "deep JSON": r"texts\.jsonl:1: expected one JSON object",
    "a number of 5,000 digits": r"texts\.jsonl:1: expected one JSON object",
    "numbers for texts": r"texts\.jsonl:1: expected a string in 'premise'; got 1",
    "half a character": r"no row has a text within the limits|expected Unicode in 'premise'",
    "a list": r"texts\.jsonl:1: expected one JSON object",
    "NaN": r"texts\.jsonl:1: expected a string in 'premise'; got nan",
    "a name with folders": "The file has no name that can be shown",
    "a name with line ends": "The file has no name that can be shown",
    "a very long name": "The file has no name that can be shown",
    "no ending": "texts: expected a file",
}


@pytest.mark.parametrize("what", hostile_files())
def test_hostile_files_are_refused_in_a_sentence_or_read_as_text(what):
    value = as_value(*hostile_files()[what])
    if what not in SAID:
        assert len(read_upload(value, PAIRED).texts) <= limits.ROWS
        return
    with pytest.raises(ValueError, match=SAID[what]) as raised:
        read_upload(value, PAIRED)
    shown = markup.message_html(str(raised.value))
    assert re.fullmatch(r'<div class="message" role="alert">[^<>\n]{5,300}</div>', shown)


@pytest.mark.parametrize("value", [None, "", 3, "a.csv", "a.csv\n!!!", "\na", "a.csv\nYQ", "a\ud800.csv\nYQ=="])
def test_what_is_no_file(value):
    with pytest.raises(ValueError, match=r"no file yet|arrive as it was sent|has no rows|no name that can be shown"):
        read_upload(value, SINGLE)


@pytest.fixture(scope="module")
def classifier(text_folder):
    return Classifier.load(str(text_folder))


@pytest.fixture(scope="module")
def explained(classifier):
    texts = [*FORMULAS, "a man <script>alert(1)</script>", "the dog runs;=1+1", *["a dog", "two red cat"] * 4]
    told = []
    content = "text\n" + "\n".join('"' + text.replace('"', '""') + '"' for text in texts)
    file = classifier.explain_file(as_value("<b>a.csv", content.encode()), tell=lambda *how: told.append(how))
    assert [one.texts[0] for one in file.explained] == texts
    assert told == [(done, len(texts)) for done in range(0, len(texts), CHUNK)]
    return file


def test_explanations_of_a_file_are_those_of_the_explainer(classifier, explained):
    from spinformer.explain.explainer import QUICK, Explainer

    explainer = Explainer(classifier.explainer.model, classifier.explainer.tokenizer, samples=QUICK)
    texts = [one.texts[0] for one in explained.explained]
    for mine, own in zip(explained.explained, explainer(texts), strict=True):
        assert mine.importance == pytest.approx(own.importance, abs=1e-5)
        assert mine.pairs == mine.pairs[:10]
        assert [pair.interaction for pair in mine.pairs] == pytest.approx(
            [pair.interaction for pair in own.ranked_pairs()[:10]], abs=1e-5
        )
    chosen = classifier.explain_file(as_value("a.txt", b"a dog\na cat"), 0, 1).explained
    assert {(one.target, one.against) for one in chosen} == {("negative", "positive")}


def downloads(shown):
    return [base64.b64decode(code).decode() for code in re.findall(r'href="data:[^"]*base64,([^"]*)"', shown)]


def test_what_is_shown_and_handed_over(explained, tmp_path):
    shown = file_html(explained)
    page, rows, table = downloads(shown)
    assert "<b>a.csv" not in shown
    assert "&lt;b&gt;a.csv" in shown
    assert "<script" not in shown + page
    assert '<iframe sandbox srcdoc="' in shown  # nothing in it can run
    assert "default-src 'none'" in page
    (tmp_path / "rows.jsonl").write_text(rows)
    assert [one.texts for one in ExplanationSet.load(tmp_path / "rows.jsonl")] == [
        one.texts for one in explained.explained
    ]
    head, *cells = csv.reader(io.StringIO(table.removeprefix("\ufeff")))
    assert head == ["row", "text", "answer", "value", "explained for", "words for it", "words against it"]
    assert len(cells) == len(explained.explained)
    assert not [cell for row in cells for cell in row if cell.strip().startswith(("=", "+", "-", "@"))]
    assert cells[0][1] == "'" + FORMULAS[0]
    assert cells[5][1] == "the dog runs;'=1+1"


@pytest.mark.parametrize("cell", ["=1", " +1", "\t-1", "@a", "a;=1", "a\n=1", "\uff1d1"])
def test_no_cell_is_a_formula(cell):
    assert re.fullmatch(r"[\s\w;]*'.*", FORMULA.sub(r"\1\2'", cell))
    assert FORMULA.sub(r"\1\2'", "a well-known dog, 1+1=2") == "a well-known dog, 1+1=2"


def test_a_pair_has_two_columns(model_folder):
    file = Classifier.load(str(model_folder)).explain_file(as_value("a.csv", HEAD + b"a dog,a cat\n"))
    assert spreadsheet(file.explained).startswith('\ufeff"row","text","text_pair","answer"')


def test_time_is_limited(classifier, monkeypatch):
    monkeypatch.setattr(limits, "FILE_SECONDS", 0.0)
    file = classifier.explain_file(as_value("a.txt", b"a dog\n" * (2 * CHUNK + 1)))
    assert len(file.explained) == CHUNK
    over = f"The 0 seconds for a file were over after {CHUNK} rows: the other {CHUNK + 1} are not explained."
    assert file.notes == (over,)
    assert over in file_html(file)
