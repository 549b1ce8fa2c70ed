"""How many operations the layer takes: on a device a short input costs one launch for each, whatever its size."""

import pytest
import torch
from packaging.version import Version
from torch.utils._python_dispatch import TorchDispatchMode

from spinformer.attention import NeuroGameAttention

# Views counted; 929 and 571 when this was written, 90 of them for ranks, equal tokens and values of any size.
# torch 2.6 splits some of them further: 1,005.
FORWARD, BACKWARD = (960, 620) if Version(torch.__version__) >= Version("2.11") else (1_040, 680)
COPIES = 2  # from the host: the streams of two sets of random numbers, for which it does not wait
LOOKS = 16  # on the CPU; at the data by the host, where the device must first catch up; 14 of them, 7 steps and all


class Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = self.looks = self.copies = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.operations += 1
        self.looks += function is torch.ops.aten._local_scalar_dense.default
        self.copies += function is torch.ops.aten.lift_fresh.default
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("training", [True, False])
def test_operations_do_not_creep_up(training):
    torch.manual_seed(3)
    module = NeuroGameAttention(384, couplings="linear", draws="shared").train(training)
    x = torch.randn(8, 40, 384, requires_grad=True)
    mask = torch.arange(40) < 40 - 3 * torch.arange(8)[:, None]
    with Counter() as forward:
        output = module(x, mask)
    assert int(output.diagnostics.steps.max()) <= 8  # the bounds are for as many
    with Counter() as backward:
        output.pooled.sum().backward()
    with torch.no_grad(), Counter() as evaluation:
        module(x, mask)
    assert forward.operations <= FORWARD
    assert evaluation.operations <= FORWARD
    assert backward.operations <= BACKWARD
    assert forward.looks <= LOOKS
    assert forward.copies + backward.copies <= COPIES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("value.weight", "values must be finite"),
        ("gate.weight", "fields must be finite"),
        ("log_temperature", "temperature must be finite and positive"),
    ],
)
def test_weights_gone_wrong_are_still_seen(name, message):
    module = NeuroGameAttention(8)
    with torch.no_grad():
        module.get_parameter(name).fill_(torch.nan)
    with pytest.raises(ValueError, match=message):
        module(torch.randn(2, 5, 8))
