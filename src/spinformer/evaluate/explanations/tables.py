"""Exact tables of a classifier: what it says of every coalition of a short text's words, kept in one file.

A file holds the tables of one classifier with one masking. It is safetensors: numbers and names, nothing that runs.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import HIGH, LOW
from spinformer._base.files import atomic_write, regular
from spinformer._base.progress import progress_bar
from spinformer._base.shared_state import evaluation_mode
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.games.exact import MAX_PLAYERS
from spinformer.models.identity import weights_digest
from spinformer.models.masked import MaskedClassifier

FORMAT = "spinformer exact tables 1"
CHUNK = 2**12  # coalitions asked at a time
BLOCK = 256  # texts split into words at a time
SAVE_SECONDS = 30.0  # between two writes of the file
MAX_LENGTH = 128


@dataclass(frozen=True)
class ExactTable:
    """values[sum over i in C of 2^i] = p_y(C),   y = argmax over c of p_c(N)

    of one text with the words N, in their order. key: says which text, as `text_key` does; target: y; full: p_c(N) of
    every class; values: (2**n,), float32 on the CPU, NaN where the classifier was not asked yet.
    """

    key: str
    words: tuple[str, ...]
    target: int
    full: tuple[float, ...]
    values: Tensor

    @property
    def missing(self) -> int:
        """Passes that are left to make."""
        return int(self.values.isnan().sum())


def choose(
    texts: Texts, tokenizer: Any, count: int, low: int = LOW, high: int = HIGH, *, seed: int = 0, max_length: int = 128
) -> Texts:
    """The first `count` texts in a random order whose number of words is from `low` to `high`.

    Each text counts once. Fewer than `count` are returned where there are no more; none at all is an error.
    """
    checks.instance("texts", texts, Texts)
    for name, value, least in (("count", count, 1), ("low", low, 0), ("high", high, 0), ("seed", seed, 0)):
        checks.at_least(name, value, least)
    if not 2 <= low <= high <= MAX_PLAYERS:
        raise ValueError(f"words must be a range from 2 to {MAX_PLAYERS}, low before high; got {low} to {high}")
    distinct = texts.distinct()
    order = torch.randperm(len(distinct), generator=torch.Generator().manual_seed(seed)).tolist()
    rows: list[int] = []
    for start in range(0, len(order), BLOCK):
        block = [distinct[place] for place in order[start : start + BLOCK]]
        counts = split_words(tokenizer, texts.select(block), max_length).counts.tolist()
        rows += [row for row, words in zip(block, counts, strict=True) if low <= words <= high]
        if len(rows) >= count:
            break
    if not rows:
        raise ValueError(f"no text of {texts.source} has {low} to {high} words; choose another range")
    return texts.select(rows[:count])


def text_key(words: Words, row: int) -> str:
    """sha256 of the words of a text and of its tokens as the classifier gets them, whatever the padding."""
    real = words.inputs["attention_mask"][row].bool()
    tokens = {name: value[row][real].tolist() for name, value in sorted(words.inputs.items())}
    content = [words.words[row], words.sides[row], words.owner[row][real].tolist(), tokens]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class TableFile:
    """The tables of one classifier with one masking, by key; path: the file that keeps them, None for memory alone.

    A file of another classifier, of another masking, or that is no such file, is refused.
    """

    def __init__(self, path: Path | None, classifier: MaskedClassifier) -> None:
        checks.instance("classifier", classifier, MaskedClassifier)
        if path is not None:
            checks.instance("path", path, Path)
        if classifier.bf16:
            raise ValueError("exact tables are made in float32; got a classifier whose passes are in bfloat16")
        self.path, self.tables = path, dict[str, ExactTable]()
        self.origin = {"model": weights_digest(classifier.model), "masking": classifier.masking}
        if path is not None and path.exists():
            self._load(regular(path))

    def _load(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="pt") as file:
                header = file.metadata() or {}
                if header.get("format") != FORMAT:
                    raise ValueError(f"{path} is no file of exact tables; expected one that this command wrote")
                for name, own in self.origin.items():
                    if header.get(name) != own:
                        stored = str(header.get(name))
                        raise ValueError(f"{path} has tables of another {name}: {stored:.16}; expected {own:.16}")
                for key, text in json.loads(header["texts"]).items():
                    words, full = tuple(map(str, text["words"])), tuple(map(float, text["full"]))
                    target, values = int(text["target"]), file.get_tensor(key).clone()
                    if not _plausible(values, len(words), target, full):
                        raise ValueError(f"{path} is damaged: the table of {' '.join(words)!r:.60} is none")
                    self.tables[key] = ExactTable(key, words, target, full, values)
        except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} cannot be read as exact tables: {' '.join(str(error).split())}") from None

    def save(self) -> None:
        """Write the file, whole or not at all; in memory alone nothing happens."""
        from safetensors.torch import save

        if self.path is None:
            return
        texts = {
            key: {"words": table.words, "target": table.target, "full": table.full}
            for key, table in self.tables.items()
        }
        header = {"format": FORMAT, **self.origin, "texts": json.dumps(texts)}
        with atomic_write(self.path) as partial:
            partial.write_bytes(save({key: table.values for key, table in self.tables.items()}, header))

    def missing(self, words: Words) -> int:
        """Passes that the tables of these texts still take, one more for each text that is not begun."""
        passes = 0
        for row, count in enumerate(words.counts.tolist()):
            table = self.tables.get(text_key(words, row))
            passes += 2**count + 1 if table is None else table.missing
        return passes


def tabulate(
    classifier: MaskedClassifier,
    texts: Texts,
    path: Path | None = None,
    *,
    max_length: int = MAX_LENGTH,
    progress: bool = True,
) -> list[ExactTable]:
    """The exact table of every text: 2^n passes for n words, at most 20; those in the file at `path` cost nothing.

    The file is written every half minute, and when the work is stopped: the next call goes on from there.
    """
    file = TableFile(path, classifier)
    words = split_words(classifier.tokenizer, texts, max_length)
    for row, count in enumerate(words.counts.tolist()):
        if count > MAX_PLAYERS:
            raise ValueError(f"exact tables take at most {MAX_PLAYERS} words a text; text {row} has {count}")
    passes = file.missing(words)
    saved, tables = time.monotonic(), []
    try:
        with evaluation_mode(classifier.model), progress_bar(passes, "exact tables", quiet=not progress) as bar:
            for row in range(len(texts)):
                one = split_words(classifier.tokenizer, texts.select([row]), max_length)
                table = file.tables.get(text_key(one, 0)) or _begin(classifier, one)
                file.tables[table.key] = table
                for start in range(0, len(table.values), CHUNK):
                    part = slice(start, start + CHUNK)
                    if not bool(table.values[part].isnan().any()):
                        continue
                    positions = torch.arange(len(table.values))[part]
                    coalitions = (positions[:, None] >> torch.arange(len(table.words)) & 1).bool()
                    answers = classifier.probabilities(one, coalitions[None])[0, :, table.target].cpu()
                    table.values[part] = answers
                    bar.update(len(answers))
                    if time.monotonic() - saved > SAVE_SECONDS:
                        file.save()
                        saved = time.monotonic()
                table.values[-1] = table.full[table.target]
                tables.append(table)
    finally:
        if passes:
            file.save()
    return tables


def _begin(classifier: MaskedClassifier, words: Words) -> ExactTable:
    """The empty table of a text, for which the classifier decides."""
    full = classifier.full_probabilities(words)[0].cpu()
    values = torch.full((2 ** len(words.words[0]),), torch.nan)
    return ExactTable(text_key(words, 0), words.words[0], int(full.argmax()), tuple(full.tolist()), values)


def _plausible(values: Tensor, words: int, target: int, full: Sequence[float]) -> bool:
    """Whether these may be probabilities of 2^words coalitions, and of classes of which `target` is the likeliest."""
    if values.dtype != torch.float32 or values.shape != (2**words,) or not 0 <= target < len(full):
        return False
    return full[target] == max(full) and not bool(((values < 0) | (values > 1)).any())


class TabulatedClassifier(MaskedClassifier):
    """p_y(C) from a table,   (1 - p_y(C)) / (classes - 1) for every other class

    A classifier that answers for masked texts from their exact tables: `passes` counts what they would have cost. The
    full text has its own probability of every class. Another text is an error.
    """

    def __init__(self, classifier: MaskedClassifier, tables: Sequence[ExactTable]) -> None:
        checks.instance("classifier", classifier, MaskedClassifier)
        checks.items("tables", tables, ExactTable)
        vars(self).update(vars(classifier))
        self.passes = 0
        self.tables = {table.key: table for table in tables}
        for table in tables:
            if table.missing:
                raise ValueError(f"the table of {' '.join(table.words)!r:.60} lacks {table.missing} of its passes")

    def row_probabilities(self, words: Words, texts: Tensor, coalitions: Tensor) -> Tensor:
        """(R, classes), looked up."""
        if coalitions.dtype != torch.bool:
            raise TypeError(f"coalitions must be a boolean tensor; got {coalitions.dtype}")
        checks.shape("coalitions", coalitions, (len(texts), words.mask.shape[1]))
        rows, coalitions = texts.cpu(), coalitions.cpu()
        parts = {row: self._answers(words, row, coalitions[rows == row]) for row in rows.unique().tolist()}
        classes = next(iter(parts.values())).shape[1]
        result = torch.empty(len(rows), classes)
        for row, answers in parts.items():
            result[rows == row] = answers
        self.passes += len(rows)
        return result.to(self.device)

    def _answers(self, words: Words, row: int, coalitions: Tensor) -> Tensor:
        table = self.tables.get(text_key(words, row))
        if table is None:
            raise ValueError(f"there is no exact table of the text {' '.join(words.words[row])!r:.60}")
        bits = 2 ** torch.arange(len(table.words))
        positions = (coalitions[:, : len(bits)] * bits).sum(1)
        chosen = table.values[positions]
        answers = ((1 - chosen) / (len(table.full) - 1))[:, None].repeat(1, len(table.full))
        answers[:, table.target] = chosen
        answers[positions == len(table.values) - 1] = torch.tensor(table.full)
        return answers
