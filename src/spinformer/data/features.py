"""Texts as token ids: tokenised once, batched with padding, rows of similar length together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from spinformer._base import checks
from spinformer._base.parallel import parallel_map, workers
from spinformer._base.progress import progress
from spinformer.data.texts import Texts

CHUNK = 4096
# Batches whose rows are sorted by length together: more save padding, fewer are closer to a plain shuffle.
GROUP = 32


@dataclass(frozen=True)
class TokenRows:
    """Some rows of `Features`. lengths: tokens of each; tokens: columns with one entry per token, row after row;
    single: columns with one entry per row.
    """

    lengths: Tensor
    tokens: Mapping[str, Tensor]
    single: Mapping[str, Tensor]


class Features(Dataset[dict[str, Tensor]]):
    """Row i: input_ids, whatever else the tokenizer gives (token_type_ids ...), labels where there are any, and targets
    where they are given: (N, classes), probabilities to learn instead of the labels.

    truncated: the number of rows with more than `max_length` tokens; of these the longer text was cut, token by token.
    """

    def __init__(
        self, texts: Texts, tokenizer: Any, max_length: int, targets: Tensor | None = None, *, quiet: bool = False
    ) -> None:
        if not len(texts):
            raise ValueError(f"{texts.source}: no rows to work on")
        self.labels = None if texts.labels is None else torch.tensor(list(texts.labels))
        self.targets = targets

        def tokenise(start: int) -> tuple[dict[str, Any], Any, int]:
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
            lengths = numpy.fromiter(map(len, encoded["input_ids"]), numpy.int64)
            total = int(lengths.sum())
            columns = {
                name: numpy.fromiter(chain.from_iterable(column), numpy.int32, total)
                for name, column in encoded.items()
            }
            return columns, lengths, _truncated_rows(encoded, max_length)

        starts = range(0, len(texts), CHUNK)
        chunks = parallel_map(tokenise, starts, processes=workers(len(texts)))
        parts = list(chunks if quiet else progress(chunks, "tokenising", len(starts), delay=1.0))
        self.truncated = sum(truncated for _, _, truncated in parts)
        self.lengths = torch.from_numpy(numpy.concatenate([lengths for _, lengths, _ in parts]))
        self.ends = self.lengths.cumsum(0)
        self.columns = {
            name: torch.from_numpy(numpy.concatenate([columns[name] for columns, _, _ in parts]))
            for name in parts[0][0]
        }

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
        """What `save` wrote; anything else is a ValueError."""
        features = cls.__new__(cls)
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                features.truncated = int(file.metadata()["truncated"])
            features.labels, targets = tensors.get("labels"), tensors.get("targets")
            features.targets = None if targets is None else targets.float()
            features.lengths = tensors["lengths"]
            start = len("column.")
            features.columns = {name[start:]: value for name, value in tensors.items() if name.startswith("column.")}
            features._check()
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); remove it, and it is made anew") from error
        features.ends = features.lengths.cumsum(0)
        return features

    def _check(self) -> None:
        """A ValueError where the parts do not fit each other."""
        rows, single = len(self.lengths), {"labels": self.labels, "targets": self.targets}
        for name, column in {"lengths": self.lengths, "labels": self.labels, **self.columns}.items():
            if column is not None and (column.dtype not in (torch.int32, torch.int64) or column.dim() != 1):
                raise ValueError(f"{name} must be whole numbers, one dimension; got {column.dtype}")
        if "input_ids" not in self.columns or not rows or int(self.lengths.min()) < 1:
            raise ValueError("expected input_ids, and lengths of at least 1")
        total = int(self.lengths.sum())
        for name, column in self.columns.items():
            if len(column) != total or int(column.min()) < 0:
                raise ValueError(f"{name} must be {total} numbers from 0 on; got {len(column)}")
        for name, column in single.items():
            if column is not None and len(column) != rows:
                raise ValueError(f"{name} must be of {rows} rows; got {len(column)}")
        if self.targets is not None:
            checks.floating("targets", self.targets, (2,))
            checks.finite("targets", self.targets)

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

    def __getitems__(self, rows: Sequence[int]) -> TokenRows:
        """Several rows at once, which is much faster than one by one."""
        chosen = torch.as_tensor(rows)
        lengths = self.lengths[chosen]
        ends = lengths.cumsum(0)
        steps = torch.arange(int(ends[-1])) - (ends - lengths).repeat_interleave(lengths)
        positions = (self.ends[chosen] - lengths).repeat_interleave(lengths) + steps
        tokens = {name: column[positions] for name, column in self.columns.items()}
        single = {"labels": self.labels, "targets": self.targets}
        return TokenRows(
            lengths, tokens, {name: column[chosen] for name, column in single.items() if column is not None}
        )


def _truncated_rows(encoded: Any, max_length: int) -> int:
    """Number of rows that truncation shortened."""
    rows = getattr(encoded, "encodings", None)
    if rows is None:
        return sum(len(ids) >= max_length for ids in encoded["input_ids"])
    return sum(bool(row.overflowing) for row in rows)


class Collate:
    """`TokenRows` to one batch, padded to the longest, or to the next multiple of `multiple` tokens.

    Padding is on the right, so that positions, and with them the answers of some decoders, do not move with the batch.
    """

    def __init__(self, tokenizer: Any, multiple: int = 1) -> None:
        checks.at_least("multiple", multiple, 1)
        self.multiple = multiple
        if tokenizer.pad_token_id is None:
            raise ValueError("the tokenizer has no padding token, which batches need; set tokenizer.pad_token")
        self.padding: Mapping[str, int] = {
            "input_ids": tokenizer.pad_token_id,
            "token_type_ids": tokenizer.pad_token_type_id,
        }

    def __call__(self, rows: Any) -> dict[str, Tensor]:
        """The batch, with its attention_mask."""
        longest = -(-int(rows.lengths.max()) // self.multiple) * self.multiple
        mask = torch.arange(longest) < rows.lengths[:, None]
        batch = {
            name: torch.full(mask.shape, self.padding.get(name, 0)).masked_scatter_(mask, column.long())
            for name, column in rows.tokens.items()
        }
        return batch | {"attention_mask": mask.long()} | dict(rows.single)


def batches_by_length(
    rows: Features, tokenizer: Any, size: int, device: torch.device
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """All rows in batches of similar length, with their indices; the longest first, so that memory fails at once."""
    collate = Collate(tokenizer)

    def move(value: Tensor) -> Tensor:
        return value.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else value.to(device)

    for indices in rows.lengths.argsort(descending=True, stable=True).split(size):
        yield indices, {name: move(value) for name, value in collate(rows.__getitems__(indices)).items()}


class LengthSampler(Sampler[int]):
    """A shuffle in which the rows of a batch have similar lengths; it depends on `seed` and the epoch alone.

    Full batches only: the few rows that are left over are skipped in this epoch, others in the next.
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
        for index in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[index].tolist()
