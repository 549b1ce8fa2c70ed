"""Models no larger than their weights: a configuration that asks for more is refused while the model is built.

Torch reports every parameter, buffer and module that is registered. They are counted, so that a configuration of a
million layers, or of layers a million wide, stops early, whatever the architecture.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from spinformer._base.extras import require
from spinformer._base.files import regular

Network = TypeVar("Network", bound=nn.Module)
# What a model may have beyond its weights: weights that are stored in fewer tensors, or in four bits, heads that are
# new, tables that are computed, and parts that are registered twice while weights are loaded.
TENSOR_FACTOR, TENSOR_MARGIN = 8, 1_000
NUMBER_FACTOR, NUMBER_MARGIN = 4, 1 << 24  # numbers for each byte
MODULE_FACTOR = 8


@dataclass(frozen=True)
class WeightSizes:
    """tensors: how many are stored; size: bytes of all of them."""

    tensors: int
    size: int

    @classmethod
    def of_files(cls, paths: list[Path]) -> "WeightSizes":
        """Of safetensors files by their headers; of other files by their length."""
        tensors = sum(len(tensor_shapes(path)) if path.suffix == ".safetensors" else 100_000 for path in paths)
        return cls(tensors, sum(path.stat().st_size for path in paths))


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a safetensors file, from its header."""
    with safe_open(path, framework="pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def weight_paths(source: str) -> list[Path]:
    """The files of weights of a model in a folder or on the hub; empty where there are none that transformers reads."""
    utils = require("transformers.utils.hub", extra="nli")
    paths: list[str] = []
    for name in ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"):
        try:
            path = utils.cached_file(source, name, _raise_exceptions_for_missing_entries=False)
            if path is not None and name.endswith(".index.json"):
                paths, _ = utils.get_checkpoint_shard_files(source, path)
            elif path is not None:
                paths = [path]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            break  # the loader itself says what is wrong
        if paths:
            break
    return [regular(Path(path)) for path in paths]


@contextmanager
def bounded_by_weights(source: str) -> Iterator[None]:
    """Within the block, models that this thread builds are no larger than the weights of `source` allow."""
    paths = weight_paths(source)
    if not paths:
        yield
        return
    with bounded_build(source, WeightSizes.of_files(paths)):
        yield


@contextmanager
def bounded_build(source: str, weights: WeightSizes) -> Iterator[None]:
    """Within the block a ValueError that names `source` stops this thread from building a larger model than `weights`.

    What cannot be built at all, as tensors of more numbers than memory has addresses, is the same error.
    """
    count = _Count(source, weights)
    with ExitStack() as stack:
        for handle in (
            hooks.register_module_parameter_registration_hook(count.add_tensor),
            hooks.register_module_buffer_registration_hook(count.add_tensor),
            hooks.register_module_module_registration_hook(count.add_module),
        ):
            stack.callback(handle.remove)
        try:
            yield
        except (RuntimeError, OverflowError, MemoryError) as error:
            if not _is_about_memory(error):
                raise
            raise count.refusal("more memory than there is") from error


def _is_about_memory(error: BaseException) -> bool:
    words = ("memory", "overflow", "too large", "invalid dimension", "storage size", "out of range")
    return not isinstance(error, RuntimeError) or any(word in str(error).lower() for word in words)


def built_for(path: Path, weights: Mapping[str, Tensor], build: Callable[[], Network], unfit: str) -> Network:
    """build() with these weights, which are those of the file at `path`; unfit: what to say where they do not fit."""
    with bounded_build(str(path.parent), WeightSizes.of_files([path])):
        network = build()
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(unfit) from error
    return network


class _Count:
    """What was registered in the thread that made this object."""

    def __init__(self, source: str, weights: WeightSizes) -> None:
        self.source, self.weights, self.thread = source, weights, threading.get_ident()
        self.tensors = self.numbers = self.modules = 0
        self.max_tensors = TENSOR_FACTOR * weights.tensors + TENSOR_MARGIN
        self.max_numbers = NUMBER_FACTOR * weights.size + NUMBER_MARGIN

    def add_tensor(self, module: Any, name: str, tensor: Any) -> None:
        if threading.get_ident() != self.thread or tensor is None:
            return
        self.tensors, self.numbers = self.tensors + 1, self.numbers + tensor.numel()
        if self.tensors > self.max_tensors:
            raise self.refusal(f"more than {self.max_tensors:,} tensors")
        if self.numbers > self.max_numbers:
            raise self.refusal(f"{self.numbers:,} numbers or more")

    def add_module(self, module: Any, name: str, part: Any) -> None:
        if threading.get_ident() != self.thread:
            return
        self.modules += 1
        if self.modules > MODULE_FACTOR * self.max_tensors:
            raise self.refusal(f"more than {MODULE_FACTOR * self.max_tensors:,} parts")

    def refusal(self, asked: str) -> ValueError:
        stored = f"{self.weights.tensors:,} tensors of {self.weights.size:,} bytes"
        return ValueError(f"{self.source}: its configuration asks for {asked}; its weights are {stored}")


def check_shape(source: str, shapes: Mapping[str, tuple[int, ...]], name: str, expected: tuple[int, ...]) -> None:
    """A ValueError where the tensor of this name is not stored, or has another shape than its configuration says."""
    if shapes.get(name) != expected:
        raise ValueError(
            f"{source}: its configuration asks for {name} of shape {expected}; its weights have {shapes.get(name)}"
        )
