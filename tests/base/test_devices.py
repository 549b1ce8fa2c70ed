"""Which device a name stands for."""

import pytest
import torch

from spinformer._base.devices import own_gpu, usable_device


def test_the_cpu_and_what_is_not_there():
    assert usable_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="device must be one of this machine's, as cpu or cuda; got 'toaster'"):
        usable_device("toaster")


@pytest.mark.parametrize(
    ("rank", "count", "expected"), [("1", 4, "cuda:1"), ("5", 4, "cuda:1"), (None, 4, "cuda"), ("1", 0, "cuda")]
)
def test_processes_share_the_gpus(monkeypatch, rank, count, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert own_gpu() == torch.device(expected)
    assert usable_device(None) == torch.device(expected)
