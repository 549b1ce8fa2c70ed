"""Highlights from a small file in e-SNLI's format; what is not as it should be is refused with file:line."""

import gzip
import json

import pytest

from spinformer.data.highlights import read_highlights
from spinformer.data.texts import NLI_LABELS


def row(premise="A red dog runs.", hypothesis="A dog runs.", marks=(), label="entailment", **more):
    """marks: (premise, hypothesis) of each annotator."""
    keys = ("premise_marked", "hypothesis_marked")
    annotations = [{"explanation": "because", **dict(zip(keys, pair, strict=True))} for pair in marks]
    return {"premise": premise, "hypothesis": hypothesis, "label": label, "annotations": annotations} | more


PLAIN = ("A red dog runs.", "A dog runs.")
GOOD = row(
    marks=[
        ("A *red* *dog* runs.", "A *dog* *runs.*"),
        ("A red *dog* runs.", "A dog *runs.*"),
        ("*A* red  dog *runs.*", "A *dog* runs."),
    ]
)


def save(path, *rows):
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def marked(found, number):
    texts = (found.texts.first[number], found.texts.second[number])
    return [[text[start:stop] for start, stop in spans] for text, spans in zip(texts, found.spans[number], strict=True)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_majority(tmp_path, name):
    nothing = row(marks=[("A *red* dog runs.", "A dog runs."), PLAIN, PLAIN])  # one of three
    found = read_highlights(save(tmp_path / name, GOOD, nothing, row(marks=[PLAIN]), GOOD | {"label": "neutral"}))
    assert marked(found, 0) == [["dog"], ["dog", "runs."]]
    assert (len(found), found.unmarked) == (2, 2)
    assert (list(found.texts.labels), found.texts.names) == ([0, 1], NLI_LABELS)
    assert found.texts.source == name
    assert found.texts.digests[0][0] == name
    last = found.select([1])
    assert (len(last), list(last.texts.labels), marked(last, 0)) == (1, [1], marked(found, 0))


def test_half_is_no_majority(tmp_path):
    half = row(marks=[("A *red* *dog* runs.", "A dog runs."), ("A red *dog* runs.", "A dog runs.")])
    assert marked(read_highlights(save(tmp_path / "a.jsonl", half)), 0) == [["dog"], []]


def test_phrases_parts_of_words_and_spaces(tmp_path):
    pairs = [("*A red* d*o*g runs.", " A  dog * runs. *")]
    assert marked(read_highlights(save(tmp_path / "a.jsonl", row(marks=pairs))), 0) == [["A", "red", "dog"], ["runs."]]


def test_punctuation_alone_is_no_word(tmp_path):
    texts = {"premise": "A dog , red .", "hypothesis": "A dog"}
    found = read_highlights(save(tmp_path / "a.jsonl", row(**texts, marks=[("A dog *,* *red* .", "A dog")])))
    assert marked(found, 0) == [["red"], []]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", r"a\.jsonl:2: expected one JSON object"),
        ({"premise": "p"}, r"a\.jsonl:2: expected a field 'hypothesis'"),
        (GOOD | {"premise": " "}, r"a\.jsonl:2: expected a text in 'premise'; got ' '"),
        (GOOD | {"hypothesis": 5}, r"a\.jsonl:2: expected a text in 'hypothesis'; got 5"),
        (GOOD | {"premise": "a * b"}, r"a\.jsonl:2: expected a text without '\*'"),
        (GOOD | {"label": 1}, r"a\.jsonl:2: expected a label that is a string, and annotations"),
        (GOOD | {"label": "maybe"}, r"a\.jsonl:2: expected a label among entailment, neutral, contradiction; got 'may"),
        (GOOD | {"annotations": []}, r"a\.jsonl:2: .* a list of one or more"),
        (GOOD | {"annotations": ["x"]}, r"a\.jsonl:2: expected annotations with a string in 'premise_marked'; got 'x'"),
        (row(marks=[("A *red dog runs.", "A dog runs.")]), r"a\.jsonl:2: expected marks '\*' in pairs; got 'A \*red"),
        (row(marks=[("A *red* cat runs.", "A dog runs.")]), r"a\.jsonl:2: expected 'A red dog runs\.' with marks '\*'"),
    ],
)
def test_bad_rows(tmp_path, bad, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_highlights(save(tmp_path / "a.jsonl", GOOD, bad))
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_highlights(tmp_path / "gone.jsonl")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        read_highlights(tmp_path)
    with pytest.raises(ValueError, match=r"a\.jsonl has no rows with a marked word"):
        read_highlights(save(tmp_path / "a.jsonl", row(marks=[PLAIN])))
    path = save(tmp_path / "b.jsonl.gz", GOOD)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"b\.jsonl\.gz is not a complete gzip file"):
        read_highlights(path)
