"""Classify texts or pairs of texts: one line of JSON for each, with the label and the probability of every class.

Models of several labels give those that are on, models of scores the scores.

Standard input, .jsonl and .txt files are answered line by line as they are read:
  {"premise": ..., "hypothesis": ...}     or {"text": ...}, or other usual names, or those that --columns gives
  premise<TAB>hypothesis
  a text                                  plain, where the classifier takes one
CSV, TSV and Parquet files (with a header) and named sets (snli:test) are read as `spinformer evaluate` reads them.
Answers come in the order of the texts. A bad line stops the command and is named; the lines before it are answered.
With --output, answers to standard input are written as they come; those to files when all of them are there, so that a
command that fails leaves an earlier file as it was.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from spinformer._base import checks
from spinformer._base.files import atomic_write
from spinformer._base.outputs import ON, Outputs
from spinformer.cli.collecting import no_collection
from spinformer.cli.options import (
    ColumnOptions,
    add_columns,
    add_device,
    add_max_length,
    add_model,
    check_not_read,
    check_output_file,
    names_list,
    text_columns,
)
from spinformer.data.columns import find_columns, inference_names
from spinformer.data.files import split_plain
from spinformer.data.texts import Texts
from spinformer.data.unpacking import GZIP_ERRORS, bounded_lines, open_binary

Row = tuple[str, ...]
LINES = (".jsonl", ".jsonl.gz", ".txt", ".txt.gz")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_model(parser)
    parser.add_argument("files", metavar="FILE", nargs="*", help="files to read; '-', the default, is standard input")
    parser.add_argument("--output", type=Path, help="file for the answers (default: standard output)")
    parser.add_argument("--batch-size", type=int, default=64, help="texts answered at a time (default %(default)s)")
    add_max_length(parser)
    add_columns(parser)
    parser.add_argument("--labels", type=names_list, help="the model's class names, in the order of its outputs: A,B,C")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Answer every text."""
    with no_collection():
        from spinformer.evaluate.answers.class_mapping import class_names
        from spinformer.models.lengths import resolve_max_length
        from spinformer.models.loading import load_classifier
        from spinformer.models.outputs import answers_of, output_names, outputs_of
        from spinformer.models.predict import predict

    checks.at_least("--batch-size", args.batch_size, 1)
    options = text_columns(args.columns, labelled=False)
    sources = args.files or ["-"]
    check_output_file("--output", args.output)
    for source in sources:
        if source != "-" and source.endswith(LINES) and not Path(source).is_file():
            raise FileNotFoundError(f"no file at {source}")
    check_not_read("--output", args.output, *("/dev/stdin" if source == "-" else source for source in sources))
    with no_collection():
        model, tokenizer = load_classifier(args.model, device=args.device)
    outputs = outputs_of(model)
    names = output_names(model) if model.config.num_labels == 1 else class_names(model, args.labels)
    length = resolve_max_length(model, tokenizer, args.max_length)
    count = truncated = 0
    with contextlib.ExitStack() as stack:
        out: IO[str] | None = None  # opened with the first answers
        plain = 2 if inference_names(names, paired=True) else 0
        rows = (row for source in sources for row in _rows(source, options, plain))
        for batch in _batches(rows, args.batch_size):
            texts = Texts([row[0] for row in batch], [row[1] for row in batch] if len(batch[0]) == 2 else None)
            predictions = predict(
                model, tokenizer, texts, batch_size=args.batch_size, max_length=length, progress=False
            )
            out = out or _opened(args.output, stack, whole="-" not in sources)
            for values in answers_of(predictions.logits, outputs).double().tolist():
                out.write(json.dumps(_answer(dict(zip(names, values, strict=True)), outputs)) + "\n")
            out.flush()
            count, truncated = count + len(batch), truncated + predictions.truncated
        if out is None:
            _opened(args.output, stack, whole=True)  # no texts, no answers
    if truncated:
        print(f"{truncated:,} of {count:,} were cut to {length} tokens", file=sys.stderr)
    return 0


def _answer(values: dict[str, float], outputs: Outputs) -> dict[str, Any]:
    """The class, the labels that are on, or the scores."""
    if outputs == "scores":
        return {"scores": values}
    if outputs == "labels":
        return {"labels": [name for name, share in values.items() if share >= ON], "probabilities": values}
    return {"label": max(values, key=values.__getitem__), "probabilities": values}


def _opened(path: Path | None, stack: contextlib.ExitStack, *, whole: bool) -> IO[str]:
    """The file for the answers, or standard output; whole: it is there when `stack` is closed, not before."""
    if path is None:
        return sys.stdout
    path.parent.mkdir(parents=True, exist_ok=True)
    target = stack.enter_context(atomic_write(path)) if whole else path
    return stack.enter_context(target.open("w", encoding="utf-8"))


def _batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Up to `size` rows at a time, either texts or pairs; rows before a bad line come before its error."""
    batch: list[Row] = []
    try:
        for row in rows:
            if batch and len(row) != len(batch[0]):
                yield batch
                batch = []
            batch.append(row)
            if len(batch) == size:
                yield batch
                batch = []
    except ValueError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _rows(source: str, options: ColumnOptions, plain: int) -> Iterator[Row]:
    """plain: the number of texts in a plain line, where it is known; 0 for as many as in the first."""
    if source == "-":
        yield from _parse(bounded_lines(sys.stdin.buffer, "standard input"), "standard input", options, plain)
    elif source.endswith(LINES):
        with open_binary(Path(source)) as file:
            try:
                yield from _parse(bounded_lines(file, source), Path(source).name, options, plain)
            except GZIP_ERRORS as error:
                raise ValueError(f"{source} is damaged: {error}") from None
    else:
        from spinformer.data.sources import load_texts

        texts = load_texts(source, **options)
        pairs = zip(texts.first, strict=True) if texts.second is None else zip(texts.first, texts.second, strict=True)
        for number, row in enumerate(pairs, 1):
            yield _checked(row, f"{texts.source}, row {number}")


def _parse(lines: Iterable[bytes], source: str, options: ColumnOptions, plain: int) -> Iterator[Row]:
    """One row for each line. Empty lines are allowed at the end only: elsewhere answers would fall out of step."""
    empty: str | None = None
    for number, line in enumerate(lines, 1):
        where = f"{source}, line {number}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where}: expected UTF-8; got {line[error.start : error.end]!r}") from None
        if number > 1 and not text:
            empty = empty or where
            continue
        if empty:
            raise ValueError(f"{empty}: expected a text; got an empty line")
        if not text.lstrip().startswith("{"):
            row = _plain(text, where, plain)
            plain = len(row)
        else:
            row = _fields(text, where, options)
        yield _checked(row, where)


def _plain(text: str, where: str, count: int) -> Row:
    try:
        return split_plain(text, where, count)
    except ValueError as error:
        raise ValueError(f"{error} (or JSON)") from None


def _fields(text: str, where: str, options: ColumnOptions) -> Row:
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: expected a JSON object; {error}") from None
    return tuple(record[key] for key in find_columns(list(record), where, **options).wanted)


def _checked(row: Row, where: str) -> Row:
    for value in row:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{where}: expected text; got {value!r:.60}")
    return row
