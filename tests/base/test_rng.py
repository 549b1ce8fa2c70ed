"""Counter-based random numbers: uniform, independent, and functions of their place alone."""

import torch

from spinformer._base.rng import draw_seed, uniforms

CPU = torch.device("cpu")


def test_do_not_depend_on_how_many_are_asked_for():
    seed = torch.tensor(12345678901234567)
    few, many = uniforms(seed, 2, 3, 4, CPU), uniforms(seed, 5, 7, 11, CPU)
    assert torch.equal(few, many[:2, :3, :4])


def test_uniform_in_every_direction():
    """Bound: means and lag-one products within 5 standard errors, in each of the three directions."""
    numbers = uniforms(torch.tensor(7), 64, 64, 64, CPU).double()
    assert float(numbers.min()) > 0
    assert float(numbers.max()) < 1
    assert abs(float(numbers.mean()) - 0.5) < 5 * 12**-0.5 / 64**1.5
    for dim in range(3):
        means = numbers.mean(dim)
        spread = float((means - 0.5).std() * 64**0.5 / 12**-0.5)
        assert abs(spread - 1) < 0.05
        centred = numbers - 0.5
        product = (centred.narrow(dim, 1, 63) * centred.narrow(dim, 0, 63)).mean()
        assert abs(float(product)) < 5 / 12 / 64**1.5


def test_histogram():
    """Chi squared of 256 cells within 5 standard deviations of its mean."""
    numbers = uniforms(torch.tensor(3), 1, 1000, 1000, CPU)
    counts = torch.histc(numbers, 256, 0, 1).double()
    chi = float(((counts - 1e6 / 256).square() / (1e6 / 256)).sum())
    assert abs(chi - 255) < 5 * (2 * 255) ** 0.5


def test_seeds_differ():
    a, b = (uniforms(torch.tensor(seed), 1, 1, 10_000, CPU).flatten() for seed in (1, 2))
    assert abs(float(torch.corrcoef(torch.stack([a, b]))[0, 1])) < 0.05
    high = uniforms(torch.tensor(1 + 2**40), 1, 1, 10_000, CPU).flatten()
    assert abs(float(torch.corrcoef(torch.stack([a, high]))[0, 1])) < 0.05


def test_seed_comes_from_the_generator():
    first, second = (draw_seed(torch.Generator().manual_seed(3)) for _ in range(2))
    assert first == second
    torch.manual_seed(1)
    one = draw_seed(None)
    assert one != draw_seed(None)


def test_streams_of_tensors_equal_those_of_the_host(monkeypatch):
    """Under torch.compile the seed is a tensor that nobody may look at."""
    seed = torch.tensor(2**61 + 12345)
    eager = uniforms(seed, 3, 4, 5, CPU)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(uniforms(seed, 3, 4, 5, CPU), eager)
