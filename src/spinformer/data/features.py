"""Texts as token numbers: tokenised once, batched with padding, in an order that keeps lengths together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler

from spinformer.data.texts import Texts
from spinformer.progress import progress

CHUNK = 4096
# Batches within whose rows lengths are sorted; larger saves padding, smaller is closer to a plain shuffle.
GROUP = 32
# Columns with one entry a row, not one a token.
ROWWISE = ("labels", "targets")


class Features(Dataset[dict[str, Tensor]]):
    """Row i: input_ids, whatever else the tokenizer gives (token_type_ids ...), labels where there are any, and targets
    where they are given: (N, classes), probabilities to learn in place of the labels.

    truncated: how many rows were longer than `max_length` tokens; of those, the longer text was cut, token by token.
    """

    def __init__(
        self, texts: Texts, tokenizer: Any, max_length: int, targets: Tensor | None = None, *, quiet: bool = False
    ) -> None:
        if not len(texts):
            raise ValueError(f"{texts.source}: no rows to work on")
        self.labels = None if texts.labels is None else torch.tensor(list(texts.labels))
        self.targets = targets
        parts: dict[str, list[Tensor]] = {}
        lengths: list[int] = []
        self.truncated = 0
        starts = range(0, len(texts), CHUNK)
        for start in starts if quiet else progress(starts, "tokenising", delay=1.0):
            rows = slice(start, start + CHUNK)
            second = None if texts.second is None else list(texts.second[rows])
            encoded = tokenizer(
                list(texts.first[rows]),
                second,
                truncation=True,
                max_length=max_length,
                return_attention_mask=False,
                return_overflowing_tokens=False,
            )
            self.truncated += _cut(encoded, max_length)
            lengths += [len(ids) for ids in encoded["input_ids"]]
            for name, column in encoded.items():
                flat = torch.tensor([number for row in column for number in row], dtype=torch.int32)
                parts.setdefault(name, []).append(flat)
        self.lengths = torch.tensor(lengths)
        self.ends = self.lengths.cumsum(0)
        self.columns = {name: torch.cat(column) for name, column in parts.items()}

    def save(self, path: Path) -> None:
        """As safetensors; targets in half precision."""
        tensors = {f"column.{name}": column for name, column in self.columns.items()} | {"lengths": self.lengths}
        if self.labels is not None:
            tensors["labels"] = self.labels
        if self.targets is not None:
            tensors["targets"] = self.targets.half()
        save_file(tensors, path, metadata={"truncated": str(self.truncated)})

    @classmethod
    def load(cls, path: Path) -> "Features":
        """What `save` wrote."""
        found = cls.__new__(cls)
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            found.truncated = int(file.metadata()["truncated"])
        found.labels, targets = tensors.get("labels"), tensors.get("targets")
        found.targets = None if targets is None else targets.float()
        found.lengths = tensors["lengths"]
        found.ends = found.lengths.cumsum(0)
        start = len("column.")
        found.columns = {name[start:]: value for name, value in tensors.items() if name.startswith("column.")}
        return found

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> dict[str, Tensor]:
        end = int(self.ends[row])
        start = end - int(self.lengths[row])
        item = {name: column[start:end] for name, column in self.columns.items()}
        for name, column in (("labels", self.labels), ("targets", self.targets)):
            if column is not None:
                item[name] = column[row]
        return item


def _cut(encoded: Any, max_length: int) -> int:
    """Rows that truncation shortened."""
    rows = getattr(encoded, "encodings", None)
    if rows is None:
        return sum(len(ids) >= max_length for ids in encoded["input_ids"])
    return sum(bool(row.overflowing) for row in rows)


class Collate:
    """Rows of `Features` to one batch, padded to the longest."""

    def __init__(self, tokenizer: Any) -> None:
        if tokenizer.pad_token_id is None:
            raise ValueError("the tokenizer has no padding token, which batches need; set tokenizer.pad_token")
        self.padding: Mapping[str, int] = {
            "input_ids": tokenizer.pad_token_id,
            "token_type_ids": tokenizer.pad_token_type_id,
        }
        self.side = tokenizer.padding_side

    def __call__(self, rows: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """The batch, with its attention_mask."""
        batch = {
            name: pad_sequence(
                [row[name].long() for row in rows],
                batch_first=True,
                padding_value=self.padding.get(name, 0),
                padding_side=self.side,
            )
            for name in rows[0]
            if name not in ROWWISE
        }
        ones = [torch.ones(len(row["input_ids"]), dtype=torch.long) for row in rows]
        batch["attention_mask"] = pad_sequence(ones, batch_first=True, padding_side=self.side)
        return batch | {name: torch.stack([row[name] for row in rows]) for name in ROWWISE if name in rows[0]}


class LengthSampler(Sampler[int]):
    """A shuffle in which the rows of a batch have similar lengths; it depends on `seed` and the epoch alone.

    Whole batches only: the few rows that are left over sit out the epoch, other ones in each.
    """

    def __init__(self, lengths: Tensor, batch: int, seed: int) -> None:
        self.lengths, self.batch, self.seed, self.epoch = lengths, batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Which shuffle the next pass takes."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.batch * self.batch

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(1_000_003 * self.seed + self.epoch)
        order = torch.randperm(len(self.lengths), generator=generator)[: len(self)]
        groups = [part[self.lengths[part].argsort(stable=True)] for part in order.split(GROUP * self.batch)]
        batches = [batch for group in groups for batch in group.split(self.batch)]
        for place in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[place].tolist()
