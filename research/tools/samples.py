"""Samples of labelled texts for the package: drawn with a seed, classes balanced, written as gzipped JSON lines.

The same input gives the same files, byte for byte, with the same version of zlib.
"""

import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Row = Mapping[str, str]


def draw_balanced(rows: Iterable[Row], labels: Sequence[str], count: int, seed: int) -> list[Row]:
    """`count` of the rows, in random order, with the classes in `labels` as balanced as possible."""
    listed, generator = list(rows), random.Random(seed)
    chosen: list[Row] = []
    for index, label in enumerate(labels):
        share = count // len(labels) + (index < count % len(labels))
        chosen += generator.sample([row for row in listed if row["label"] == label], share)
    generator.shuffle(chosen)
    return chosen


def write_sample(rows: Sequence[Row], path: Path) -> str:
    """Write the rows; one line that says what was written."""
    content = "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode(), compresslevel=9, mtime=0))
    return f"{path}: {len(rows)} rows, {path.stat().st_size / 1e3:.1f} kB"
