"""Streams give the texts that were written, part by part, and keep no more than a part."""

import json
from itertools import count, islice

import pytest

from spinformer.data import streams
from spinformer.data.sources import load_texts
from spinformer.data.streams import TextStream, stream_rows, stream_texts
from spinformer.data.texts import Texts
from tests.data.test_files import write

ROWS = [{"text": f"text {number}"} for number in range(25)]
PAIRS = [{"premise": f"one {number}", "hypothesis": f"other {number}"} for number in range(25)]


@pytest.mark.parametrize("size", [1, 7, 25, 100])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "jsonl.gz", "parquet"])
def test_a_file_in_parts(tmp_path, monkeypatch, ending, size):
    monkeypatch.setattr(streams, "CHUNK", 4)
    path = write(tmp_path / f"rows.{ending}", PAIRS)
    whole = load_texts(path, labelled=False)
    parts = list(stream_texts(path).parts(size))
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert [text for part in parts for text in part.first] == whole.first
    assert [text for part in parts for text in part.second] == whole.second
    assert {part.source for part in parts} == {path.name}


def test_several_files_and_named_columns(tmp_path):
    one, other = write(tmp_path / "one.jsonl", ROWS), write(tmp_path / "other.csv", ROWS[:5])
    (part,) = stream_texts(f"{one}+{other}", first="text").parts()
    assert part.first == [row["text"] for row in [*ROWS, *ROWS[:5]]]
    (sample,) = stream_texts("sample:dev").parts()
    assert sample.first == load_texts("sample:dev", labelled=False).first
    pairs = write(tmp_path / "pairs.jsonl", PAIRS)
    with pytest.raises(ValueError, match=r"one\.jsonl \+ pairs\.jsonl: expected single texts throughout; got both"):
        list(stream_texts(f"{one}+{pairs}").parts())


def test_rows_of_every_kind():
    texts = ["a man", "a dog"]
    (strings,) = stream_rows(texts).parts()
    assert (strings.first, strings.second) == (texts, None)
    (pairs,) = stream_rows([("a", "b"), ["c", "d"]]).parts()
    assert (pairs.first, pairs.second) == (["a", "c"], ["b", "d"])
    (named,) = stream_rows([{"label": 1, "sentence": "a"}]).parts()
    assert named.first == ["a"]
    (chosen,) = stream_rows([{"x": "a", "y": "b"}], first="y", second="x").parts()
    assert (chosen.first, chosen.second) == (["b"], ["a"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a", 3], "a stream:2: expected a text, as before; got 3"),
        (["a", ("b", "c")], "a stream:2: expected a text, as before"),
        ([("a", "b"), ("c",)], "a stream:2: expected a pair of texts, as before"),
        (["a", " "], "a stream:2: expected a text in 'text'"),
        ([{"text": "a"}, {"other": "b"}], "a stream: expected rows with text; got 'text'"),
        ([3], "a stream:1: expected a pair of texts"),
        ([{"number": 3}], "no text column"),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(ValueError, match=message):
        list(stream_rows(rows).parts())


def test_what_is_no_stream():
    for rows in ("a text", {"text": "a"}, 3, None):
        with pytest.raises(TypeError, match="rows must be an iterable of texts"):
            stream_rows(rows)
    with pytest.raises(FileNotFoundError, match=r"no file nowhere\.jsonl"):
        stream_texts("nowhere.jsonl")
    with pytest.raises(ValueError, match="a stream has no texts; expected at least one"):
        stream_rows([]).split(3)


def test_an_endless_stream_is_read_as_far_as_needed(monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 10)
    taken = []

    def rows():
        for number in count():
            taken.append(number)
            yield f"text {number}"

    parts = list(islice(stream_rows(rows()).parts(15), 3))
    assert [len(part) for part in parts] == [15, 15, 15]
    assert parts[2].first[-1] == "text 44"
    assert len(taken) <= 50


def test_an_iterator_is_begun_again_within_its_first_part(monkeypatch):
    monkeypatch.setattr(streams, "CHUNK", 10)
    monkeypatch.setattr(streams, "PART", 20)
    stream = stream_rows(f"text {number}" for number in range(50))
    first = next(stream.parts(20))
    again = next(stream.parts(20))
    assert first == again
    assert sum(len(part) for part in stream.parts(20)) == 50
    with pytest.raises(ValueError, match="an iterator can be read once alone"):
        next(stream.parts(20))


def test_split():
    rows = [f"text {number}" for number in range(40)]
    stream, held = stream_rows(rows).split(3, seed=1)
    left = [text for part in stream.parts(16) for text in part.first]
    assert len(held) == 3
    assert sorted([*left, *held.first]) == sorted(rows)
    assert left == [text for part in stream.parts(7) for text in part.first]  # the same each time
    assert stream_rows(rows).split(3, seed=1)[1] == held != stream_rows(rows).split(3, seed=2)[1]
    assert len(stream_rows(rows).split(100)[1]) == 4  # a tenth
    assert stream_rows(rows[:9]).split(3)[1] is None
    with pytest.raises(ValueError, match="was split before"):
        stream.split(3)


def test_no_more_than_a_chunk_of_a_file_is_built_at_once(tmp_path, monkeypatch):
    """Of a file that is larger, each chunk is made when it is asked for."""
    monkeypatch.setattr(streams, "CHUNK", 5)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "not json\n")
    parts = stream_texts(path).parts(10)
    assert next(parts).first == [row["text"] for row in ROWS[:10]]
    with pytest.raises(ValueError, match=r"rows\.jsonl:26: expected one JSON object"):
        list(parts)


def test_chunks_of_ones_own():
    stream = TextStream(lambda: [Texts(["a"]), Texts(["b", "c"])], "mine")
    assert [part.first for part in stream.parts(2)] == [["a", "b"], ["c"]]
