"""Standard errors by blocks of draws: against a plain loop, and where there is nothing to tell them from."""

import math

import pytest
import torch

from spinformer.games.jackknife import jackknife
from spinformer.games.trust import _first


def by_hand(delta: list[float], weight: list[float], block: int) -> tuple[float, float, float]:
    """stderr, effective blocks and effective terms of one player's draws; the weights add up to 1."""
    mean = sum(w * d for w, d in zip(weight, delta, strict=True))
    starts = range(0, len(delta), block)
    shares = [sum(weight[s : s + block]) for s in starts]
    residuals = [sum(weight[k] * (delta[k] - mean) for k in range(s, min(s + block, len(delta)))) for s in starts]
    change = [r / (1 - share) for r, share in zip(residuals, shares, strict=True)]
    b, total = len(change), sum(c * c for c in change)
    unit = [c / math.sqrt(total) for c in change]
    kurtosis, skewness = b * sum(u**4 for u in unit), b * sum(u**3 for u in unit) ** 2
    widening = 1 + max(1.21 * max(kurtosis - 1, 0) / 2, 1.21 + 1.08 * skewness) / b
    stderr = math.sqrt((b - 1) / b * total) * widening
    return stderr, 1 / sum(share**2 for share in shares), 1 / sum(u**4 for u in unit)


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("heavy", [0.0, 3.0], ids=["even", "skewed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_by_a_plain_loop(block, heavy, weighted, generator):
    """Two games, three players, 11 draws: the last block is shorter. Skewed draws have one that stands out."""
    delta = torch.randn(2, 11, 3, generator=generator, dtype=torch.double)
    delta[:, 4] += heavy * 5
    weight = torch.rand(2, 11, 3, generator=generator, dtype=torch.double) + 0.1 if weighted else torch.ones(2, 11, 3)
    weight = weight.double() / weight.double().sum(1, keepdim=True)
    spread = jackknife(delta, (weight * delta).sum(1), weight if weighted else None, block)
    for game in range(2):
        for player in range(3):
            expected = by_hand(delta[game, :, player].tolist(), weight[game, :, player].tolist(), block)
            found = [float(each[game, player]) for each in spread]
            assert found == pytest.approx(expected, rel=1e-9)


def test_the_larger_effect_counts():
    """Where one of many blocks makes the variance, kurtosis widens the interval more than skewness does, or the
    reverse: both cases against the loop.
    """
    for values in ([10.0, *[0.1 * (-1) ** k for k in range(30)]], [10.0, -10.0, *[0.1 * (-1) ** k for k in range(30)]]):
        delta = torch.tensor(values, dtype=torch.double)[None, :, None]
        spread = jackknife(delta, delta.mean(1), None, 1)
        expected = by_hand(values, [1 / len(values)] * len(values), 1)
        assert float(spread.stderr) == pytest.approx(expected[0], rel=1e-9)


def test_one_block_or_one_draw_with_all_the_weight_has_no_error():
    delta = torch.arange(4.0)[None, :, None]
    weight = torch.full((1, 4, 1), 0.25)
    assert jackknife(delta, delta.mean(1), weight, 4).stderr.isinf().all()
    assert jackknife(delta, delta.mean(1), None, 4).stderr.isinf().all()
    assert jackknife(delta, delta.mean(1), weight, 2).stderr.isfinite().all()
    lone = torch.tensor([1 - 3e-9, 1e-9, 1e-9, 1e-9], dtype=torch.double)[None, :, None]
    assert jackknife(delta.double(), (lone * delta).sum(1), lone, 2).stderr.isinf().all()


def test_coalitions_are_new_once():
    """Copies next to each other and further apart; a coalition of the same size is another one."""
    rows = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert _first(torch.tensor([rows], dtype=torch.bool)).tolist() == [[True, False, True, True, False, True, False]]
