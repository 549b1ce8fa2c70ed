"""Explanations of a whole corpus in one file: JSONL, CSV or Parquet, a row for each text.

The texts are explained in parts, each of which is written whole. A run that was stopped goes on where it was when the
same command is given again; several processes share the parts (RANK and WORLD_SIZE, as torchrun and accelerate set
them), and the one that ends last joins them. The file is the same whatever the number of processes and of stops.
"""

import csv
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

from filelock import FileLock

from spinformer._base import checks
from spinformer._base.choices import FORMATS, PAIRS
from spinformer._base.extras import require
from spinformer._base.files import atomic_text, atomic_write, sha256
from spinformer._base.progress import progress
from spinformer.data.texts import Texts
from spinformer.explain.exchange import ROW, to_row
from spinformer.explain.explainer import Explainer
from spinformer.explain.explanation import Explanation
from spinformer.explain.inputs import CallOptions
from spinformer.models.identity import weights_digest

PART = (1024, 256)  # texts of a part, on a GPU and on a CPU: what a kill may cost


def explain_corpus(
    explainer: Explainer,
    texts: Texts,
    output: Path,
    *,
    pairs: int = PAIRS,
    part: int | None = None,
    shard: tuple[int, int] | None = None,
    **call: Unpack[CallOptions],
) -> Path | None:
    """Explain every text; the path of the file, or None where other processes are still at work on their parts.

    pairs: the number of strongest pairs that are kept of each text; part: texts in a part, by default PART; shard: the
    number of this process and of all, by default those of the environment. call: as of `Explainer.__call__`.
    """
    checks.instance("texts", texts, Texts)
    checks.at_least("pairs", pairs, 0)
    part = PART[explainer.classifier.device.type == "cpu"] if part is None else part
    checks.at_least("part", part, 1)
    check_output(output)
    if not len(texts):
        raise ValueError(f"{texts.source} has no texts to explain")
    if texts.digests and output.is_file() and sha256(output) in [digest for _, digest in texts.digests]:
        raise ValueError(f"output must not be a file that the texts were read from; got {output}")
    rank, world = shard if shard is not None else _environment()
    if not 0 <= rank < world:
        raise ValueError(f"shard must be the number of a process and of all, as (0, 2); got {(rank, world)}")
    folder = _folder(explainer, texts, output, {"pairs": pairs, "part": part, **call})
    starts = range(0, len(texts), part)
    paths = {start: folder / f"{start:012d}{_kind(output)}" for start in starts}
    own = [start for start in starts if (start // part) % world == rank]
    left = [start for start in own if not paths[start].is_file()]
    for start in progress(left, "explaining", len(own), len(own) - len(left)):
        chosen = texts.select(range(start, min(start + part, len(texts))))
        second = None if chosen.second is None else list(chosen.second)
        explanations = explainer(list(chosen.first), second, **call)
        _write_part(paths[start], [to_row(each, start + place, pairs) for place, each in enumerate(explanations)])
    if not own and not folder.is_dir():
        return None  # the first part is not written yet, or all are joined
    lock = output.resolve().with_name(f".{output.name}.lock")
    with FileLock(lock):
        if not folder.is_dir():
            return output  # joined by another process
        if not all(path.is_file() for path in paths.values()):
            return None
        _join(list(paths.values()), output)
        finished = folder.with_name(f"{folder.name}-done")
        folder.rename(finished)  # at once, so that a kill leaves no half of it
        shutil.rmtree(finished, ignore_errors=True)
    lock.unlink(missing_ok=True)
    return output


def write_rows(explanations: Sequence[Explanation], output: Path, *, pairs: int = PAIRS) -> Path:
    """Explanations that are in memory as such a file; its path."""
    check_output(output)
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / f"rows{_kind(output)}"
        _write_part(part, [to_row(each, number, pairs) for number, each in enumerate(explanations)])
        _join([part], output)
    return output


def check_output(output: Path) -> None:
    """A ValueError unless the name of a file says how it is to be written."""
    checks.instance("output", output, Path)
    if output.suffix.lower() not in FORMATS:
        raise ValueError(f"output must be a file that ends in {', '.join(FORMATS)}; got {output}")


def _environment() -> tuple[int, int]:
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def _kind(output: Path) -> str:
    """How parts are written: as lines, or as a table, which is joined sooner."""
    return ".parquet" if output.suffix.lower() == ".parquet" else ".jsonl"


def _folder(explainer: Explainer, texts: Texts, output: Path, options: dict[str, Any]) -> Path:
    """The folder of the parts, whose name tells everything that decides the rows; the first part makes it."""
    head = None if explainer.grounded is None else weights_digest(explainer.grounded.head)
    settings = (explainer.samples, explainer.temperature, explainer.weighting, explainer.max_length, explainer.seed)
    about = [
        version("spinformer"),
        texts.fingerprint(),
        weights_digest(explainer.model),
        head,
        settings,
        explainer.classifier.masking,
    ]
    digest = hashlib.sha256(json.dumps([about, options], sort_keys=True, default=str).encode()).hexdigest()[:12]
    return output.resolve().with_name(f".{output.name}.parts-{digest}")


def _write_part(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    if path.suffix == ".jsonl":
        atomic_text(path, "".join(json.dumps(row) + "\n" for row in rows))
        return
    arrow, parquet = _arrow()
    listed = [row | {"probabilities": list(row["probabilities"].items())} for row in rows]
    with atomic_write(path) as partial:
        parquet.write_table(arrow.Table.from_pylist(listed, schema=_schema(arrow)), partial)


def _join(parts: Sequence[Path], output: Path) -> None:
    """All parts in one file."""
    with atomic_write(output) as partial:
        if _kind(output) == ".parquet":
            arrow, parquet = _arrow()
            with parquet.ParquetWriter(partial, _schema(arrow)) as writer:
                for path in parts:
                    writer.write_table(parquet.read_table(path))
            return
        with partial.open("w", encoding="utf-8", newline="") as file:
            if output.suffix.lower() == ".jsonl":
                for path in parts:
                    file.write(path.read_text(encoding="utf-8"))
                return
            table = csv.DictWriter(file, list(ROW))
            table.writeheader()
            for path in parts:
                with path.open(encoding="utf-8") as lines:
                    rows = [json.loads(line) for line in lines]
                table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _arrow() -> tuple[Any, Any]:
    return require("pyarrow", extra="nli"), require("pyarrow.parquet", extra="nli")


def _schema(arrow: Any) -> Any:
    return arrow.schema([(name, _type(arrow, kind)) for name, kind in ROW.items()])


def _type(arrow: Any, kind: str) -> Any:
    """A type of Arrow by its name in `ROW`."""
    simple = {"text": arrow.string(), "number": arrow.float64(), "count": arrow.int64()}
    if kind == "shares":
        return arrow.map_(arrow.string(), arrow.float64())
    return arrow.list_(simple[kind.removesuffix("s")]) if kind.endswith("s") else simple[kind]
