"""Texts by name: files, the corpora of natural language inference, any data set on the Hugging Face Hub, samples."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from spinformer._base.checks import choice, instance
from spinformer._base.extras import require
from spinformer.data.columns import build_texts, find_columns, inference_names
from spinformer.data.files import is_format, read_texts
from spinformer.data.texts import Texts, join_texts, split_source

SPLITS = ("train", "dev", "test")
# The samples inside the package, and the folder of each beside this file.
SAMPLES = {"sample": "snli", "sentiment": "sentiment"}
ROUNDS = ("r1", "r2", "r3")
# The hub id of each corpus, and our names of its splits; the names on the hub are accepted too.
CORPORA = {
    "snli": ("stanfordnlp/snli", {"train": "train", "dev": "validation", "test": "test"}),
    "mnli": (
        "nyu-mll/multi_nli",
        {"train": "train", "dev": "validation_matched", "dev-mismatched": "validation_mismatched"},
    ),
    "anli": (
        "facebook/anli",
        {split: "+".join(f"{split}_{part}" for part in ROUNDS) for split in SPLITS}
        | {f"{split}-{part}": f"{split}_{part}" for split in SPLITS for part in ROUNDS},
    ),
}
HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
ACCEPTED = (
    "a file (.jsonl, .json, .csv, .tsv, .parquet or .txt, with .gz or without), "
    f"{', '.join(f'{name}:SPLIT' for name in (*SAMPLES, *CORPORA))}, OWNER/NAME[/CONFIG]:SPLIT of the Hugging Face "
    "Hub, or several of these joined with +"
)


def load_texts(
    source: str | Path,
    *,
    split: str | None = None,
    first: str | None = None,
    second: str | None = None,
    label: str | None = None,
    names: Sequence[str] | None = None,
    labelled: bool = True,
) -> Texts:
    """The texts that `source` names.

    A file; "snli", "mnli" or "anli" (as in "snli:test", "mnli:dev-mismatched", "anli:test-r3"); a data set on the
    Hugging Face Hub ("owner/name:split", "owner/name/config:split"); or a sample inside the package: "sample:train",
    "sample:dev", "sample:test", 2,000 + 500 + 500 pairs of SNLI, and "sentiment:train", "sentiment:dev",
    "sentiment:test", 4,000 + 500 + 500 comments of GoEmotions, negative or positive. Several of them are joined with
    "+". split: for sources that do not name one; by default the training split. The other options are as in
    `read_texts`.
    """
    instance("source", source, str, Path)
    if split is not None:
        instance("split", split, str)
    load = partial(_load, split=split, first=first, second=second, label=label, names=names, labelled=labelled)
    return join_texts([load(part) for part in split_source(str(source))])


def _load(source: str, *, split: str | None, **options: Any) -> Texts:
    if Path(source).is_file() or is_format(source):
        if split is not None:
            raise ValueError(f"{source} is a file, which has no splits; got split={split!r}")
        return read_texts(source, **options)
    name, colon, named = source.partition(":")
    if colon and split is not None and named != split:
        raise ValueError(f"{source} names its split already; got split={split!r} as well")
    part = named if colon else split or "train"
    if name in SAMPLES:
        return _sample(name, part, options)
    if name in CORPORA:
        hub_id, splits = CORPORA[name]
        if part not in splits.values():
            choice(f"the split of {name}", part, tuple(splits))
        return _hub(hub_id, splits.get(part, part), f"{name}:{part}", options)
    if HUB.fullmatch(name) and part and not Path(name).exists():
        return _hub(name, part, f"{name}:{part}", options)
    raise ValueError(f"no texts named {source!r}; expected {ACCEPTED}")


def _sample(sample: str, split: str, options: dict[str, Any]) -> Texts:
    choice(f"the split of {sample}", split, SPLITS)
    with as_file(files("spinformer.data") / SAMPLES[sample] / f"{split}.jsonl.gz") as path:
        texts = read_texts(path, **options)
    name = f"{sample}:{split}"
    return replace(texts, source=name, digests=tuple((name, digest) for _, digest in texts.digests))


def _hub(hub_id: str, split: str, source: str, options: dict[str, Any]) -> Texts:
    datasets = require("datasets", extra="nli")
    names = options.pop("names")
    path, config = hub_id.rsplit("/", 1) if hub_id.count("/") == 2 else (hub_id, None)
    try:
        rows = datasets.load_dataset(path, config, split=split)
    except ConnectionError as error:
        reason = " ".join(str(error).split())
        raise ConnectionError(
            f"{source}: the Hugging Face Hub cannot be reached and {path} is not in the cache ({reason})"
        ) from None
    except (ValueError, RuntimeError, FileNotFoundError) as error:
        raise ValueError(f"{source}: {' '.join(str(error).split())}") from None
    columns = find_columns(rows.column_names, source, **options)
    cells = rows.select_columns(list(columns.wanted)).with_format(None)[:]
    if columns.label is not None and isinstance(rows.features[columns.label], datasets.ClassLabel):
        # Numbers are indices of the data set's class names.
        class_names = rows.features[columns.label].names
        names = names or inference_names(class_names, paired=columns.second is not None) or tuple(class_names)
        cells[columns.label] = [None if k is None or k < 0 else class_names[k] for k in cells[columns.label]]
    ordered = zip(*(cells[name] for name in columns.wanted), strict=True)
    # A user cannot correct a blank text on the hub: its row is dropped and counted.
    return build_texts(enumerate(ordered, 1), columns, source, names=names, drop_blank=True)
