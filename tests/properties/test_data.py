"""Laws of texts: readers return what was written, and words are the parts of the text that tokens belong to."""

import csv
import gzip
import io
import json
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from hypothesis import assume
from hypothesis import strategies as st

from spinformer.data import Texts, TextStream, Words, load_texts, split_words, stream_rows, stream_texts
from spinformer.data.word_pattern import WORD
from tests import tiny
from tests.properties.cases import generator, law, seeds
from tests.properties.refusals import Call, bad_cases, count, instance, name, refused, refused_at, values

# Characters that are awkward to store: quotes, separators, line ends of other systems, wide and combined ones.
awkward = st.text(
    st.sampled_from("ab \"'\\,;\t\n\r\v\x85\u2028\u3000éß漢😀\u0301\u200d{}[]<>&") | st.characters(codec="utf-8"),
    max_size=12,
)
plain = st.lists(
    st.sampled_from([*tiny.WORDS, "it's", "well-known", "x1", "...", "?", "😀", "naïve"]), min_size=1, max_size=7
)


@lru_cache(maxsize=2)
def tokenizer(types: bool = True):
    return tiny.tokenizer(types)


def written(kind: str, header: list[str], rows: list[list[str]]) -> bytes:
    """The bytes of a file with these rows."""
    if kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({one: [row[place] for row in rows] for place, one in enumerate(header)})
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(table, buffer)
        return buffer.getvalue()
    if kind in ("jsonl", "json"):
        return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows).encode()
    file = io.StringIO(newline="")
    if kind == "csv":
        csv.writer(file).writerows([header, *rows])
    else:
        file.write("".join("\t".join(row) + "\n" for row in [header, *rows]))
    return file.getvalue().encode()


@law(
    "data.load_texts",
    "data.Texts",
    share=20,
    kind=st.sampled_from(["jsonl", "json", "csv", "tsv", "parquet"]),
    zipped=st.booleans(),
    paired=st.booleans(),
    labelled=st.booleans(),
    rows=st.lists(st.tuples(awkward, awkward, st.sampled_from(["no", "yes", "Maybe"])), min_size=1, max_size=4),
)
def test_files_come_back_as_they_were_written(kind, zipped, paired, labelled, rows):
    """But for space at the ends of a text; classes in the order of their names."""
    kept = [row for row in rows if row[0].strip() and row[1].strip()]
    if kind == "tsv":  # which has no quotes
        kept = [row for row in kept if not set("".join(row)) & set("\t\n\r")]
    assume(kept)
    columns = [0, *([1] if paired else []), *([2] if labelled else [])]
    header = [["premise" if paired else "text", "hypothesis", "label"][column] for column in columns]
    content = written(kind, header, [[row[column] for column in columns] for row in kept])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{kind}{'.gz' if zipped else ''}"
        path.write_bytes(gzip.compress(content) if zipped else content)
        found = load_texts(str(path), labelled=labelled)
    assert found.first == [row[0].strip() for row in kept]
    assert found.second == ([row[1].strip() for row in kept] if paired else None)
    assert (found.source, found.dropped, found.paired) == (path.name, 0, paired)
    if labelled:
        assert sorted(found.names) == sorted({row[2] for row in kept})
        assert [found.names[label] for label in found.labels] == [row[2] for row in kept]
    else:
        assert found.labels is None


@law("data.load_texts", share=3, split=st.sampled_from(["train", "dev", "test"]), labelled=st.booleans())
def test_the_sample_by_either_name(split, labelled):
    one, other = load_texts(f"sample:{split}", labelled=labelled), load_texts("sample", split=split, labelled=labelled)
    assert one == other
    both = load_texts(f"sample:{split}+sample:{split}", labelled=labelled)
    assert (list(both.first), len(both)) == (list(one.first) * 2, 2 * len(one))
    assert (one.labels is not None) == labelled
    assert len(both.distinct()) == len(one.distinct())


@law(
    "data.Texts",
    share=10,
    rows=st.lists(st.tuples(awkward, awkward, st.integers(0, 2)), min_size=1, max_size=6),
    paired=st.booleans(),
    labelled=st.booleans(),
    seed=seeds,
)
def test_texts_in_memory(rows, paired, labelled, seed):
    """Rows in another order, their lengths, which of them differ, and a fingerprint that knows all of it."""
    first, second, labels = (list(column) for column in zip(*rows, strict=True))
    texts = Texts(first, second if paired else None, labels if labelled else None, ("a", "b", "c"))
    order = torch.randperm(len(rows), generator=generator(seed)).tolist()
    moved = texts.select(order)
    assert moved.select([order.index(row) for row in range(len(rows))]) == texts
    assert moved.lengths == [len(first[row]) + (len(second[row]) if paired else 0) for row in order]
    for wanted in (1, 3, len(rows)):
        spread = texts.spread(wanted)
        assert len(set(spread)) == len(spread) == min(wanted, len(rows))
        assert [texts.lengths[row] for row in spread] == sorted(texts.lengths[row] for row in spread)
    pairs = [(first[row], second[row] if paired else "") for row in range(len(rows))]
    assert sorted(pairs[row] for row in texts.distinct()) == sorted(set(pairs))
    for labelled_too in (False, True):
        same = [pairs[row] for row in order] == pairs and (
            not labelled_too or not labelled or [labels[row] for row in order] == labels
        )
        assert (texts.fingerprint(labelled=labelled_too) == moved.fingerprint(labelled=labelled_too)) == same
    assert len(texts.select([])) == 0


@law(
    "data.TextStream",
    "data.stream_rows",
    "data.stream_texts",
    share=8,
    rows=st.lists(st.tuples(awkward, awkward), min_size=1, max_size=12),
    paired=st.booleans(),
    size=st.integers(1, 14),
    held=st.integers(1, 3),
    seed=seeds,
)
def test_streams_are_the_texts_in_parts(rows, paired, size, held, seed):
    """Of an iterable and of a file; what is held out is not read, and nothing else is lost."""
    kept = [tuple(text.strip() for text in row[: 1 + paired]) for row in rows if row[0].strip() and row[1].strip()]
    assume(kept)
    names = ["premise", "hypothesis"] if paired else ["text"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(written("jsonl", names, [list(row) for row in kept]))
        for stream in (stream_rows([row if paired else row[0] for row in kept]), stream_texts(path)):
            assert isinstance(stream, TextStream)
            parts = list(stream.parts(size))
            assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
            assert [pair for part in parts for pair in pairs_of(part)] == kept
            rest, out = stream.split(held, seed=seed)
            left = [pair for part in rest.parts(size) for pair in pairs_of(part)]
            assert sorted(left + ([] if out is None else list(pairs_of(out)))) == sorted(kept)
            assert (out is None) == (len(kept) < 10)


def pairs_of(texts: Texts) -> list[tuple[str, ...]]:
    return list(zip(*([texts.first] if texts.second is None else [texts.first, texts.second]), strict=True))


@law(
    "data.split_words",
    "data.Words",
    share=20,
    rows=st.lists(st.tuples(plain, plain), min_size=1, max_size=4),
    paired=st.booleans(),
    glue=st.sampled_from([" ", "  ", "\t", " \n "]),
    seed=seeds,
)
def test_words_are_the_parts_of_the_text(rows, paired, glue, seed):
    """Every word once and in its order; every word has a token; padding and batch change nothing."""
    first, second = ([glue.join(row[side]) for row in rows] for side in (0, 1))
    texts = Texts(first, second if paired else None)
    words = split_words(tokenizer(), texts, 64)
    assert isinstance(words, Words)
    for row in range(len(rows)):
        sides = [first[row], second[row]] if paired else [first[row]]
        assert "".join(words.words[row]) == "".join("".join(side.split()) for side in sides)
        own = words.owner[row]
        count = len(words.words[row])
        assert int(words.counts[row]) == count == len(WORD.findall(" ".join(words.words[row]).replace("...", "x")))
        assert sorted(set(own.tolist()) - {-1}) == list(range(count))
        assert list(words.sides[row]) == sorted(words.sides[row])
        alone = split_words(tokenizer(), texts.select([row]), 64)
        real = words.inputs["attention_mask"][row].bool()
        assert torch.equal(words.owner[row][real], alone.owner[0])
        assert (alone.words[0], alone.sides[0]) == (words.words[row], words.sides[row])
        part = words.rows(row, row + 1)
        assert (part.words, int(part.counts)) == ((words.words[row],), count)
    assert torch.equal(words.mask.sum(1), words.counts)
    assert torch.equal(words.to("cpu").owner, words.owner)
    coalitions = (torch.rand(len(rows), 3, words.mask.shape[1], generator=generator(seed)) < 0.5) & words.mask[:, None]
    tokens = words.tokens(coalitions)
    assert torch.equal(tokens & ~words.inputs["attention_mask"].bool()[:, None], torch.zeros_like(tokens))
    sizes = words.sums(torch.ones_like(words.owner).float())
    assert bool((sizes[words.mask] >= 1).all())
    shown = (words.sums(tokens.float().mT.contiguous()).mT > 0) & words.mask[:, None]
    assert torch.equal(shown, coalitions)


@law(
    "data.split_words",
    share=5,
    words=st.lists(st.sampled_from(tiny.WORDS), min_size=1, max_size=12),
    length=st.integers(1, 10),
)
def test_cut_texts_keep_their_first_words(words, length):
    """A text of which nothing is left is an error."""
    texts = Texts([" ".join(words)])
    if length <= 2:
        with pytest.raises(ValueError, match="has no words" if length == 2 else "max_length must leave room for words"):
            split_words(tokenizer(), texts, length)
    else:
        assert split_words(tokenizer(), texts, length).words == (tuple(words[: length - 2]),)


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    rows = values(
        one_more=["a", "b", "c"],
        number=3,
        none_of_them=[1, 2],
        nothing_in=[None, "a"],
        one_text="ab",
        bytes=[b"a", b"b"],
        half=["a", "\ud83d"],
    )
    labels = values(
        above=[0, 3], below=[-1, 0], words=["a", "b"], fractions=[0.5, 1.0], too_few=[0], number=1, flags=[True, False]
    )
    texts = lambda seed: {"first": ["a man", "a dog"], "second": ["x", "y"], "labels": [0, 1], "names": ("a", "b", "c")}  # noqa: E731
    source = values(
        number=3,
        nothing=None,
        rubbish="rubbish",
        hub="a/b c:train",
        split="sample:rubbish",
        missing="no/such.csv",
        empty="",
        ending="x.rubbish",
    )
    calls = (
        Call(
            "Texts",
            Texts,
            texts,
            {
                "first": values(number=3, nothing=None, numbers=[1, 2], one_text="ab", short=["a"]),
                "second": rows,
                "labels": labels,
                "names": values(number=3, one="abc", numbers=(1, 2, 3)),
            },
        ),
        Call(
            "Texts.select",
            lambda rows: Texts(["a", "b"]).select(rows),
            lambda seed: {},
            {"rows": values(beyond=[2], before=[-3], words=["a"], number=3, nothing=None, fraction=[0.5])},
        ),
        Call(
            "load_texts",
            load_texts,
            lambda seed: {"source": "sample:dev"},
            {
                "source": source,
                "split": name(optional=True),
                "first": name(optional=True),
                "second": name(optional=True),
                "label": name(optional=True),
                "names": values(number=3, one="ab", same=("a", "A"), too_few=("entailment",), numbers=(1, 2, 3)),
            },
        ),
        Call(
            "stream_texts",
            lambda **given: list(stream_texts(**given).parts()),
            lambda seed: {"source": "sample:dev"},
            {"source": source, "first": name(optional=True), "second": name(optional=True)},
        ),
        Call(
            "stream_rows",
            lambda **given: list(stream_rows(**given).parts()),
            lambda seed: {"rows": [{"text": "a man"}]},
            {
                "rows": values(
                    number=3, nothing=None, one_text="ab", numbers=[1, 2], mixed=["a", ("b", "c")], blank=[""]
                ),
                "first": name(optional=True),
                "second": name(optional=True),
            },
        ),
        Call(
            "TextStream.split",
            lambda count, size: next(stream_rows(["a", "b"] * 9).split(count)[0].parts(size)),
            lambda seed: {"count": 2, "size": 3},
            {"count": count(1), "size": count(1)},
        ),
        Call(
            "split_words",
            split_words,
            lambda seed: {"tokenizer": tokenizer(), "texts": Texts(["a man"]), "max_length": 16},
            {"tokenizer": instance(), "texts": instance(), "max_length": count(1)},
        ),
        Call(
            "split_words of none",
            split_words,
            lambda seed: {"tokenizer": tokenizer(), "max_length": 16},
            {"texts": values(empty=Texts([]), space=Texts(["  "]), invisible=Texts(["\u200b"]))},
        ),
    )
    return bad_cases(*calls)


def test_every_bad_argument_once():
    refused(bad())


@law("data.Texts", "data.load_texts", "data.stream_rows", "data.split_words", share=8, place=seeds, number=seeds)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
