import gc
import os
from pathlib import Path

# Two workers on two cores: more threads than that only get in each other's way, in the processes that tests start too.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from research.data import EncoderSample, encoder_sample

torch.set_num_threads(1)
# Warnings are errors here: which test fails must not depend on which ran first.
torch.set_warn_always(True)


def pytest_collection_finish() -> None:
    """Keep the garbage collector off what was imported: a training calls it, and it would look at a million objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20261115)


@pytest.fixture(scope="session")
def sample() -> EncoderSample:
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
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(0)
