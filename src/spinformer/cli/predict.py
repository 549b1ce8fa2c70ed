"""Classify texts or pairs of texts: one line of JSON for each, with the label and every class's probability.

Standard input, .jsonl and .txt files are answered as they are read, line by line:
  {"premise": ..., "hypothesis": ...}     or {"text": ...}, or other usual names, or those that --columns gives
  premise<TAB>hypothesis
CSV, TSV and Parquet files (with a header) and named sets (snli:test) are read as `spinformer evaluate` reads them.
Answers come in the order of the texts. A bad line stops the command and is named; the lines before it are answered.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import torch

from spinformer import checks
from spinformer.cli.evaluate import columns, words
from spinformer.data.columns import find
from spinformer.data.files import DAMAGED, opened
from spinformer.data.texts import Texts
from spinformer.evaluate import class_names, load_classifier, predict

Row = tuple[str, ...]
LINES = (".jsonl", ".jsonl.gz", ".txt", ".txt.gz")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("model", metavar="MODEL", help="a folder that `save_pretrained` wrote, or a name on the hub")
    parser.add_argument("files", metavar="FILE", nargs="*", help="default, and '-': standard input")
    parser.add_argument("--output", type=Path, help="file for the answers (default: standard output)")
    parser.add_argument("--batch-size", type=int, default=64, help="lines answered at a time (default %(default)s)")
    parser.add_argument("--max-length", type=int, default=128, help="tokens; longer ones are cut (default %(default)s)")
    parser.add_argument("--columns", type=words, help="TEXT or PREMISE,HYPOTHESIS (default: found)")
    parser.add_argument("--labels", type=words, help="the model's class names, in the order of its outputs: A,B,C")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(args: argparse.Namespace) -> int:
    """Answer every line."""
    checks.at_least("--batch-size", args.batch_size, 1)
    options = columns(args.columns, labelled=False)
    sources = args.files or ["-"]
    for source in sources:
        if source != "-" and source.endswith(LINES) and not Path(source).is_file():
            raise FileNotFoundError(f"no file at {source}")
        if args.output is not None and args.output.exists() and args.output.resolve() == Path(source).resolve():
            raise ValueError(f"--output must not be a file that is read; got {args.output}")
    model, tokenizer = load_classifier(args.model, device=args.device)
    names = class_names(model, args.labels)
    count = truncated = 0
    with contextlib.ExitStack() as stack:
        out: IO[str] = sys.stdout
        if args.output is not None:
            args.output.parent.mkdir(parents=True, exist_ok=True)
            out = stack.enter_context(args.output.open("w", encoding="utf-8"))
        rows = (row for source in sources for row in _rows(source, options))
        for chunk in _chunks(rows, args.batch_size):
            texts = Texts([row[0] for row in chunk], [row[1] for row in chunk] if len(chunk[0]) == 2 else None)
            found = predict(
                model, tokenizer, texts, batch_size=args.batch_size, max_length=args.max_length, progress=False
            )
            for shares in found.logits.double().softmax(1).tolist():
                label = names[max(range(len(names)), key=shares.__getitem__)]
                answer = {"label": label, "probabilities": dict(zip(names, shares, strict=True))}
                out.write(json.dumps(answer) + "\n")
            out.flush()
            count, truncated = count + len(chunk), truncated + found.truncated
    if truncated:
        print(f"{truncated:,} of {count:,} were cut to {args.max_length} tokens", file=sys.stderr)
    return 0


def _chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Up to `size` rows at a time, texts and pairs apart; those before a bad line come before its error."""
    chunk: list[Row] = []
    try:
        for row in rows:
            if chunk and len(row) != len(chunk[0]):
                yield chunk
                chunk = []
            chunk.append(row)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except ValueError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _rows(source: str, options: dict[str, Any]) -> Iterator[Row]:
    if source == "-":
        yield from _parse(sys.stdin.buffer, "standard input", options)
    elif source.endswith(LINES):
        with opened(Path(source)) as file:
            try:
                yield from _parse(file, Path(source).name, options)
            except DAMAGED as error:
                raise ValueError(f"{source} is damaged: {error}") from None
    else:
        from spinformer.data.named import load_texts

        texts = load_texts(source, **options)
        pairs = zip(texts.first, strict=True) if texts.second is None else zip(texts.first, texts.second, strict=True)
        for number, row in enumerate(pairs, 1):
            yield _checked(row, f"{texts.source}, row {number}")


def _parse(lines: Iterable[bytes], source: str, options: dict[str, Any]) -> Iterator[Row]:
    """A row a line; lines without anything are a matter of course at the end alone, where answers stay in step."""
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
            _fields("", empty, options)  # refuses it
        yield _checked(_fields(text, where, options), where)


def _fields(text: str, where: str, options: dict[str, Any]) -> Row:
    if not text.lstrip().startswith("{"):
        parts = text.split("\t")
        if len(parts) != 2:
            got = f"{len(parts)} columns: {text[:60]!r}" if len(parts) > 2 else repr(text[:60])
            raise ValueError(f"{where}: expected JSON or premise<TAB>hypothesis; got {got}")
        return tuple(parts)
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: expected a JSON object; {error}") from None
    return tuple(record[key] for key in find(list(record), where, **options).wanted)


def _checked(row: Row, where: str) -> Row:
    for value in row:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{where}: expected text; got {value!r:.60}")
    return row
