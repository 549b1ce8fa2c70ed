"""How hard texts are for a game, learnt from errors that are known."""

import pytest
import torch

from spinformer.training.difficulty import LEAST, PARTS, learn_difficulty


def drawn(texts, strength, seed, width=24):
    """Vectors, (T, d), log errors, (T,), and what is known of texts, (T, 2): errors follow both, with noise."""
    draw = torch.Generator().manual_seed(seed)
    vectors = 5 + torch.randn(texts, width, generator=draw) * torch.linspace(0.1, 3, width)
    known = torch.stack([torch.ones(texts), torch.randn(texts, generator=draw)], 1)
    kind = (vectors[:, 20] - 5) / 3
    errors = -3 + 2 * known[:, 1] + strength * kind + 0.3 * torch.randn(texts, generator=draw)
    return vectors, errors, known, strength * kind


def correlation(one, other):
    return float(torch.corrcoef(torch.stack([one.double(), other.double()]))[0, 1])


def test_new_texts_are_told_apart():
    """Noise takes about 0.3 of 0.76: a correlation of at least 0.85 on 500 new texts."""
    vectors, errors, known, _ = drawn(200, strength=0.7, seed=0)
    difficulty, _ = learn_difficulty(vectors, errors, known)
    new, _, _, kind = drawn(500, strength=0.7, seed=1)
    found = difficulty(new)
    assert correlation(found, kind) > 0.85
    slope = float(found @ kind.double() / kind.double().square().sum())
    assert 0.5 < slope < 1.1  # drawn to 0, not beyond what there is


def test_the_others_say_no_more_of_a_text_than_of_a_new_one():
    vectors, errors, known, kind = drawn(200, strength=0.7, seed=0)
    difficulty, told = learn_difficulty(vectors, errors, known)
    rest = errors + 3 - 2 * known[:, 1]
    assert correlation(told, rest) < correlation(difficulty(vectors), rest)
    assert correlation(told, kind) > 0.8
    changed = errors.clone()
    changed[7] += 100.0  # what is said of a text does not depend on its own error, but for what is known of all texts
    again = learn_difficulty(vectors, changed - 100.0 * known[:, 0] / len(errors), known)[1]
    same = torch.arange(200) % PARTS == 7 % PARTS
    assert float((again - told)[same].abs().max()) < float((again - told)[~same].abs().max())


def test_nothing_is_learnt_from_nothing():
    """Errors that have to do with no vector: of 20 draws most say less than nothing, and none says much."""
    absent = 0
    for seed in range(20):
        vectors, errors, known, _ = drawn(100, strength=0.0, seed=seed)
        difficulty, told = learn_difficulty(vectors, errors, known)
        absent += difficulty is None
        assert float(told.abs().max()) < 0.3
        if difficulty is None:
            assert not told.any()
    assert absent >= 10


@pytest.mark.parametrize("count", [1, LEAST - 1])
def test_few_texts(count):
    difficulty, told = learn_difficulty(*drawn(count, strength=5.0, seed=0)[:3])
    assert difficulty is None
    assert told.tolist() == [0.0] * count


def test_the_same_numbers_for_all_texts():
    """Nothing to learn from, and no division by a spread of 0."""
    vectors, errors, known, _ = drawn(50, strength=0.7, seed=0)
    difficulty, told = learn_difficulty(torch.ones_like(vectors), errors, known)
    assert told.isfinite().all()
    assert difficulty is None or difficulty(vectors).isfinite().all()
