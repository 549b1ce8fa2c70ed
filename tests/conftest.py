from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

# Two workers on two cores: more threads than that only get in each other's way, in the processes that tests start too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What shap compiles takes longer than what it computes here.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

import pytest

from tests import fresh

if TYPE_CHECKING:  # the process that hands tests to workers runs none, and needs no torch
    import torch

    from research.data import EncoderSample


def pytest_configure() -> None:
    """Before there are workers: they share it."""
    fresh.start()


def pytest_collection_finish() -> None:
    import torch

    torch.set_num_threads(1)
    # Warnings are errors here: which test fails must not depend on which ran first.
    torch.set_warn_always(True)
    # Keep the garbage collector off what was imported: a training calls it, and it would look at a million objects.
    gc.collect()
    gc.freeze()


@pytest.fixture
def generator() -> torch.Generator:
    import torch

    return torch.Generator().manual_seed(20261115)


@pytest.fixture(scope="session")
def sample() -> EncoderSample:
    from research.data import encoder_sample

    return encoder_sample()


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of two layers, 32 wide, with random weights, and a tokenizer of a few words."""
    pytest.importorskip("transformers")
    from tests.tiny import save_encoder

    return save_encoder(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture
def few_dynamics(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its training, `train attractor` tries one λ and one γ, in place of 20 pairs."""
    from spinformer.evaluate.images import dynamics

    monkeypatch.setattr(dynamics, "STRENGTHS", (0.6,))
    monkeypatch.setattr(dynamics, "INERTIAS", (0.0,))


@pytest.fixture(autouse=True)
def _same_start() -> None:
    """Every test begins with the same random state and one thread, whatever ran before it."""
    import torch

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(0)
