"""Texts by name: the sample, files, and the hub with a stand-in for the network."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spinformer.data
from spinformer.data.sources import load_texts
from spinformer.data.texts import NLI_LABELS

ROW = '{"premise": "p", "hypothesis": "h", "label": "neutral"}\n'


@pytest.mark.parametrize(("split", "count"), [("train", 2000), ("dev", 500), ("test", 500)])
def test_sample(split, count):
    texts = load_texts(f"sample:{split}")
    assert len(texts) == count
    assert texts.second is not None
    assert texts.names == NLI_LABELS
    assert texts.source == f"sample:{split}"
    assert texts.digests[0][0] == f"sample:{split}"
    shares = Counter(texts.labels).values()
    assert max(shares) - min(shares) <= 1
    assert len(set(zip(texts.first, texts.second, texts.labels, strict=True))) == count


def test_sentiment():
    train, dev, test = (load_texts(f"sentiment:{split}") for split in ("train", "dev", "test"))
    for texts, count in ((train, 4000), (dev, 500), (test, 500)):
        assert (len(texts), texts.second, texts.names) == (count, None, ("negative", "positive"))
        assert sum(texts.labels) == count // 2
    parts = [set(texts.first) for texts in (train, dev, test)]
    assert len(set.union(*parts)) == 5000
    assert train.digests[0][0] == "sentiment:train"


def test_sample_parts_share_no_premise_and_stay_small():
    train, dev, test = (load_texts("sample", split=split) for split in ("train", "dev", "test"))
    assert not set(train.first) & {*dev.first, *test.first}
    folder = Path(spinformer.data.__file__).parent / "snli"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 400_000
    assert "Attribution-ShareAlike 4.0" in (folder / "NOTICE.md").read_text()


def test_files_and_joins(tmp_path):
    one, two, odd = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c+d.jsonl"
    for path in (one, two, odd):
        path.write_text(ROW * 2)
    assert len(load_texts(str(one))) == 2
    assert len(load_texts(str(odd))) == 2
    joined = load_texts(f"{one} + {two}+sample:dev", names=NLI_LABELS)
    assert len(joined) == 504
    assert joined.source == "a.jsonl + b.jsonl + sample:dev"
    assert load_texts(str(one), first="hypothesis", labelled=False).first == ["h", "h"]


@pytest.mark.parametrize(
    ("source", "split", "message"),
    [
        (
            "snil",
            None,
            r"no texts named 'snil'; expected a file .* sample:SPLIT, sentiment:SPLIT, snli:SPLIT, .* joined with \+",
        ),
        ("snli:validate", None, r"the split of snli must be one of 'train', 'dev', 'test'; got 'validate'"),
        ("mnli:test", None, r"the split of mnli must be one of 'train', 'dev', 'dev-mismatched'; got 'test'"),
        ("sample:all", None, r"the split of sample must be one of 'train', 'dev', 'test'; got 'all'"),
        ("sample:", None, r"the split of sample must be one of"),
        ("sample:dev", "test", r"sample:dev names its split already; got split='test' as well"),
        ("a.jsonl", "test", r"a\.jsonl is a file, which has no splits; got split='test'"),
        ("sample:dev+", None, r"no texts named ''; expected"),
    ],
)
def test_names_that_are_not_understood(source, split, message):
    with pytest.raises(ValueError, match=message):
        load_texts(source, split=split)


def test_missing_file_and_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file data/a\.jsonl\.gz"):
        load_texts("data/a.jsonl.gz")
    Path("data/here").mkdir(parents=True)
    with pytest.raises(ValueError, match="no texts named 'data/here'"):
        load_texts("data/here")


def rows(labels: list[int | None], spelt: tuple[str, ...] | None = NLI_LABELS) -> Any:
    datasets = pytest.importorskip("datasets")
    kind = datasets.Value("int64") if spelt is None else datasets.ClassLabel(names=list(spelt))
    text = datasets.Value("string")
    cells = {"premise": [f"p {k}" for k in range(len(labels))], "hypothesis": ["h"] * len(labels), "label": labels}
    features = datasets.Features({"premise": text, "hypothesis": text, "label": kind})
    return datasets.Dataset.from_dict(cells, features=features)


@pytest.fixture
def hub(monkeypatch):
    """Answers `load_dataset` with what is put in `answer`; keeps what was asked."""
    datasets = pytest.importorskip("datasets")
    state: dict[str, Any] = {"asked": [], "answer": rows([0, -1, 2])}

    def load_dataset(path: str, name: str | None = None, *, split: str) -> Any:
        state["asked"].append((path, name, split))
        if isinstance(state["answer"], Exception):
            raise state["answer"]
        return state["answer"]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return state


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("snli", ("stanfordnlp/snli", None, "train")),
        ("snli:dev", ("stanfordnlp/snli", None, "validation")),
        ("snli:validation", ("stanfordnlp/snli", None, "validation")),
        ("mnli:dev", ("nyu-mll/multi_nli", None, "validation_matched")),
        ("mnli:dev-mismatched", ("nyu-mll/multi_nli", None, "validation_mismatched")),
        ("anli:test-r2", ("facebook/anli", None, "test_r2")),
        ("anli:dev", ("facebook/anli", None, "dev_r1+dev_r2+dev_r3")),
        ("some-one/data.v2:test", ("some-one/data.v2", None, "test")),
        ("nyu-mll/glue/rte:validation", ("nyu-mll/glue", "rte", "validation")),
    ],
)
def test_hub(hub, source, asked):
    texts = load_texts(source)
    assert hub["asked"] == [asked]
    assert (texts.first, texts.second, texts.labels) == (["p 0", "p 2"], ["h", "h"], [0, 2])
    assert (texts.names, texts.dropped) == (NLI_LABELS, 1)
    assert texts.source == (source if ":" in source else f"{source}:train")
    assert load_texts(source, labelled=False).dropped == 0


def test_the_hub_s_own_class_names_are_heeded(hub):
    hub["answer"] = rows([0, 1, 2], ("contradiction", "entailment", "neutral"))
    assert load_texts("a/b").labels == [2, 0, 1]
    assert load_texts("a/b", names=("neutral", "entailment", "contradiction")).labels == [2, 1, 0]
    hub["answer"] = rows([0, 1, None], ("not_entailment", "entailment"))
    two = load_texts("a/b")
    assert (two.names, two.labels, two.dropped) == (("entailment", "non-entailment"), [1, 0], 1)
    hub["answer"] = rows([0, 1], ("worse", "better"))
    assert load_texts("a/b").names == ("worse", "better")
    hub["answer"] = rows([2, 0], None)
    assert load_texts("a/b").names == NLI_LABELS


def test_rows_without_text_on_the_hub_are_dropped(hub):
    hub["answer"] = rows([0, 1]).map(lambda row, k: {"premise": " " if k else "p"}, with_indices=True)
    texts = load_texts("a/b")
    assert (texts.labels, texts.dropped) == ([0], 1)


def test_hub_errors(hub):
    hub["answer"] = ConnectionError("Couldn't reach 'stanfordnlp/snli'\non the Hub")
    with pytest.raises(ConnectionError, match=r"^snli:test: the Hugging Face Hub cannot be reached and .* \(.*\)$"):
        load_texts("snli:test")
    hub["answer"] = ValueError('Unknown split "dev".\nShould be one of [train]')
    with pytest.raises(ValueError, match=r'^a/b:dev: Unknown split "dev"\. Should be one of \[train\]$'):
        load_texts("a/b:dev")
    hub["answer"] = rows([0]).rename_column("premise", "left")
    with pytest.raises(ValueError, match=r"a/b:train: no text column; its columns are 'left', 'hypothesis', 'label'"):
        load_texts("a/b")


def test_from_the_cache_of_datasets(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="snli:test: the Hugging Face Hub cannot be reached and stanfordnlp/snli"):
        load_texts("snli:test")

    table = rows([1, -1, 0])
    folder = tmp_path / "stanfordnlp___snli" / "plain_text" / "0.0.0" / "abc"
    table.save_to_disk(tmp_path / "saved")
    folder.mkdir(parents=True)
    (tmp_path / "saved" / "data-00000-of-00001.arrow").rename(folder / "snli-test.arrow")
    info = json.loads((tmp_path / "saved" / "dataset_info.json").read_text())
    split = {"name": "test", "num_bytes": 1, "num_examples": len(table), "dataset_name": "snli"}
    info |= {"config_name": "plain_text", "builder_name": "parquet", "dataset_name": "snli", "splits": {"test": split}}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    texts = load_texts("snli:test")
    assert (texts.first, texts.labels, texts.dropped) == (["p 0", "p 2"], [1, 0], 1)
