"""A replayed layer against the layer itself: values and gradients."""

import copy
import gc
import pickle
from contextlib import nullcontext

import pytest
import torch

from spinformer import NeuroGameAttention
from spinformer.attention import replay
from spinformer.attention.replay import Replay
from spinformer.kernels import support
from spinformer.kernels.factors import LARGEST_RANK
from spinformer.models.pooling import NeuroGamePooling

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
CLOSE = 5e-5


def make(n, dim=32, heads=2, preset="default", training=False):
    torch.manual_seed(0)
    layer = NeuroGameAttention(dim, heads=heads, preset=preset).cuda().train(training)
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(3, n, dim, generator=generator).cuda()
    mask = torch.rand(3, n, generator=generator) < 0.8
    mask[:, 0] = True
    return layer, x, mask.cuda()


def step(called, layer, x, mask):
    """Output and gradients of one step."""
    leaf = x.clone().requires_grad_()
    layer.zero_grad()
    out = called(leaf, mask)
    out.pooled.square().sum().backward()
    slopes = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    return [out.pooled.detach(), out.diagnostics.ess, leaf.grad, *slopes]


def assert_same(plain, fast, tolerance=CLOSE):
    for expected, found in zip(plain, fast, strict=True):
        assert torch.isfinite(found).all()
        assert float((expected - found).abs().max()) <= tolerance * max(float(expected.abs().max()), 1e-6)


def test_on_a_cpu_it_is_the_layer():
    torch.manual_seed(0)
    layer = NeuroGameAttention(8, heads=2).eval()
    x = torch.randn(2, 5, 8)
    out, played = layer(x), Replay(layer)(x)
    torch.testing.assert_close(played.pooled, out.pooled)
    torch.testing.assert_close(played.diagnostics.ess, out.diagnostics.ess)


def test_ever_new_shapes_are_seldom_recorded(monkeypatch):
    """On a CPU, with records that record nothing."""
    torch.manual_seed(0)
    fast, recorded = Replay(NeuroGameAttention(8).eval()), []

    def record(layer, inputs, pool):
        recorded.append(tuple(inputs[0].shape))
        return object()

    def played(record, inputs):
        out = fast.layer(inputs[0])
        return replay.Played(out.pooled, out.diagnostics)

    monkeypatch.setattr(replay, "Record", record)
    monkeypatch.setattr(replay.torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(replay.torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(replay, "SHAPES", 3)
    monkeypatch.setattr(fast, "_possible", lambda *inputs: True)
    monkeypatch.setattr(fast, "_replay", played)
    with torch.no_grad():
        for _ in range(12):
            for batch in range(1, 3):
                fast(torch.zeros(batch, 8, 8))
        assert sorted(recorded) == [(1, 8, 8), (2, 8, 8)]  # once each
        for _ in range(12):
            for batch in range(1, 9):
                fast(torch.zeros(batch, 8, 8))
    assert len(fast.records) == 3
    assert len(recorded) <= 12  # and not 96
    monkeypatch.setattr(replay, "HELD", 2 * 9 * 64)  # numbers of two inputs, but not of three
    fast.given_up = 0
    with torch.no_grad():
        for _ in range(12):
            fast(torch.zeros(9, 8, 8))
            fast(torch.zeros(9, 5, 8))  # the same when padded
    assert 1 <= len(fast.records) <= 2
    assert next(reversed(fast.records))[0] == (9, 8, 8)


def test_copies_and_replicas_play_their_own_layer():
    torch.manual_seed(0)
    pooling = NeuroGamePooling(8, residual=False).eval()
    for made in (copy.deepcopy(pooling), pickle.loads(pickle.dumps(pooling))):
        assert made.replay.layer is made.attention is not pooling.attention
    replica = copy.copy(pooling)  # as torch.nn.DataParallel makes one for another GPU
    replica._modules = {"attention": NeuroGameAttention(8).eval()}
    x, mask = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
    expected = replica.attention(x, mask).pooled
    torch.testing.assert_close(replica(x, mask, output_game=False).vector, expected)


@on_gpu
@pytest.mark.parametrize(("n", "heads", "preset"), [(5, 1, "default"), (20, 2, "default"), (24, 2, "paper")])
@pytest.mark.parametrize("half", [False, True])
def test_values_and_gradients(n, heads, preset, half):
    layer, x, mask = make(n, heads=heads, preset=preset)
    fast = Replay(layer)
    with torch.autocast("cuda", torch.bfloat16, enabled=half):
        for seed in range(6):
            other = x + seed
            close = CLOSE if preset == "default" and not half else 5e-2
            assert_same(step(layer, layer, other, mask), step(fast, layer, other, mask), close)
    assert len(fast.records) == 1


@on_gpu
def test_no_gradients():
    layer, x, mask = make(300)
    fast = Replay(layer)
    with torch.no_grad():
        for seed in range(5):
            assert_same([layer(x + seed, mask).pooled], [fast(x + seed, mask).pooled])
    assert len(fast.records) == 1


@on_gpu
@pytest.mark.parametrize(("n", "heads"), [(replay.LIMIT + 30, 2), (2_100, 1)])
@pytest.mark.parametrize("training", [False, True])
def test_long_inputs(monkeypatch, n, heads, training):
    """Recorded when they come often, in training too, unless they are too large; lengths share a record."""
    layer, x, mask = make(n, heads=heads, training=training)
    fast = Replay(layer)
    for seed in range(replay.FIRST_CALLS + 2):
        cut = seed % 3  # within the padding
        other, known = x[:, : n - cut] + 0.1 * seed, mask[:, : n - cut]
        assert len(fast.records) == (seed >= replay.FIRST_CALLS)
        found = step(fast, layer, other, known)
        if not training:
            assert_same(step(layer, layer, other, known), found, 1e-3)
        assert found[2].shape == other.shape
        assert all(torch.isfinite(one).all() for one in found)
    assert len(fast.records) == 1
    monkeypatch.setattr(replay, "MOST", x.numel() - 1)
    slower = Replay(layer)
    for _ in range(replay.FIRST_CALLS + 1):
        step(slower, layer, x, mask)
    assert not slower.records


@on_gpu
def test_long_inputs_with_dense_couplings_go_through_the_layer():
    torch.manual_seed(0)
    fast = Replay(NeuroGameAttention(8, couplings="dense").cuda().eval())
    with torch.no_grad():
        for _ in range(replay.FIRST_CALLS + 1):
            fast(torch.randn(1, replay.LIMIT + 1, 8).cuda())
    assert not fast.records


def test_which_long_inputs_are_replayed(monkeypatch):
    monkeypatch.setattr(support, "HAS_TRITON", True)
    assert Replay(NeuroGameAttention(8))._skips(replay.LIMIT + 1)
    wide = NeuroGameAttention(8, head_dim=LARGEST_RANK)
    others = [{"preset": "paper"}, {"couplings": "dense"}, {"correction": "tap"}, {"backward": "unrolled"}]
    for layer in (wide, NeuroGameAttention(8).double(), *(NeuroGameAttention(8, **other) for other in others)):
        assert not Replay(layer)._skips(replay.LIMIT + 1)
    monkeypatch.setattr(support, "HAS_TRITON", False)
    assert not Replay(NeuroGameAttention(8))._skips(replay.LIMIT + 1)


def test_padding_is_a_small_part_of_a_long_input():
    for n in (129, 1_000, 1_025, 2_049, 5_000, 32_769, 100_000):
        x = torch.zeros(1, n, 1)
        same, mask, special, length = Replay._padded(x, None, x[..., 0] > 0)
        assert same is x
        assert mask.shape == special.shape == (1, length)
        assert n <= mask.shape[1] < n + max(replay.LONG, n / 16)
        assert int(mask.sum()) == n
    for n in (2_048, 8_192, 32_768):
        assert Replay._padded(torch.zeros(1, n, 1), None, None)[1:] == (None, None, n)  # no mask without padding


@on_gpu
def test_in_training_every_replay_draws_anew_and_a_seed_gives_the_same_again():
    layer, x, mask = make(20, training=True)
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        fast = Replay(layer)
        drawn.append([step(fast, layer, x, mask) for _ in range(40)])
    for one, other in zip(*drawn, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    mine = torch.stack([out[0] for out in drawn[0]])
    plain = torch.stack([step(layer, layer, x, mask)[0] for _ in range(40)])
    assert float(mine.std(0).max()) > 0
    spread = (mine.var(0) + plain.var(0)).sqrt() / 40**0.5 + 1e-5
    assert float(((mine.mean(0) - plain.mean(0)).abs() / spread).max()) < 6


@on_gpu
def test_two_forward_passes_before_a_backward():
    layer, x, mask = make(20)
    fast = Replay(layer)
    for _ in range(4):
        step(fast, layer, x, mask)
    first, second = x.clone().requires_grad_(), (x + 1).requires_grad_()
    one, two = fast(first, mask).pooled, fast(second, mask).pooled
    one.square().sum().backward()
    two.square().sum().backward()
    expected = [step(layer, layer, each, mask)[2] for each in (x, x + 1)]
    assert_same(expected, [first.grad, second.grad])
    del one, two
    gc.collect()
    dropped = fast(x.clone().requires_grad_(), mask)  # whose backward pass never comes
    del dropped
    assert_same(step(layer, layer, x, mask), step(fast, layer, x, mask))


@on_gpu
def test_gradients_add_up_and_weights_may_move():
    layer, x, mask = make(20)
    fast = Replay(layer)
    single = step(fast, layer, x, mask)
    for _ in range(4):
        single = step(fast, layer, x, mask)
    layer.zero_grad()
    for _ in range(2):
        fast(x.clone().requires_grad_(), mask).pooled.square().sum().backward()
    assert_same([2 * slope for slope in single[3:]], [p.grad for p in layer.parameters() if p.grad is not None])
    with torch.no_grad():
        layer.value.weight.mul_(1.5)
    assert_same(step(layer, layer, x, mask), step(fast, layer, x, mask))
    layer.value.weight.data = layer.value.weight.data * 0.5  # elsewhere in memory
    for _ in range(4):
        assert_same(step(layer, layer, x, mask), step(fast, layer, x, mask))


@on_gpu
def test_shapes_are_bounded(monkeypatch):
    monkeypatch.setattr(replay, "SHAPES", 2)
    layer, x, mask = make(40)
    fast = Replay(layer)
    for _ in range(4):
        for n in (8, 16, 24, 40):
            assert_same(step(layer, layer, x[:, :n], mask[:, :n]), step(fast, layer, x[:, :n], mask[:, :n]))
    assert len(fast.records) == 2


@on_gpu
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_a_backward_pass_under_autocast(preset):
    layer, x, mask = make(20, preset=preset)

    def run(inside):
        layer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = layer(x, mask).pooled.square().sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        return [p.grad.clone() for p in layer.parameters() if p.grad is not None]

    assert_same(run(False), run(True), 2e-2)
