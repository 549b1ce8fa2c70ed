"""Neither padding nor the order of the players changes an estimate, and equal players get equal values."""

import pytest
import torch

from spinformer.attention import NeuroGameAttention
from spinformer.games import NormGame, SumGame, estimate_values, exact_values, twins
from spinformer.games.twins import content_ranks, mean_of_twin_pairs, mean_of_twins

PROPOSALS = ["uniform", "tilted", "annealed"]
WEIGHTINGS = ["uniform", "gibbs"]
CASES = 4  # one for each index


def vectors(kind, players, generator):
    """normal: all differ; twins: some occur twice or thrice; one-hot: many products with the sum are equal;
    opposite: v and -v, so that the sum, and all products with it, vanish."""
    drawn = torch.randn(players, 4, generator=generator, dtype=torch.float64)
    if kind == "twins":
        return drawn[torch.randint(players // 2 + 1, (players,), generator=generator)]
    if kind == "one-hot":
        return torch.eye(players + 2, dtype=torch.float64)[torch.randint(players + 2, (players,), generator=generator)]
    return torch.cat([drawn, -drawn])[:players] if kind == "opposite" and players % 2 == 0 else drawn


def moved(values, generator):
    """The players in another order, with random padding anywhere; the mask, and the column of each player."""
    players, columns = len(values), len(values) + int(torch.randint(0, 12, (), generator=generator))
    place = torch.randperm(columns, generator=generator)[:players]
    padded = 3 * torch.randn(columns, values.shape[1], generator=generator, dtype=values.dtype)
    padded[place] = values
    mask = torch.zeros(columns, dtype=torch.bool)
    mask[place] = True
    return padded, mask, place


def norm(values, mask=None):
    return NormGame(values, mask)


def learnt(values, mask=None):
    weights = torch.randn(values.shape[1], 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return SumGame(values, lambda sums: torch.tanh(sums @ weights).sum(-1), mask)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("kind", ["normal", "twins", "one-hot", "opposite"])
@pytest.mark.parametrize("make", [norm, learnt])
def test_estimates(make, kind, proposal, weighting):
    """Bound: 1e-9 for values, standard errors and effective sample sizes, in CASES random inputs, masks and orders."""
    generator = torch.Generator().manual_seed(11)
    for case in range(CASES):
        players = int(torch.randint(2, 9, (), generator=generator))
        values = vectors(kind, players, generator)
        padded, mask, place = moved(values, generator)
        index = ("SV", "BV", "BII", "SII")[case % 4]
        arguments = {"weighting": weighting, "proposal": proposal, "temperature": 0.7, "shared": True}
        arguments |= {"seed": torch.tensor(case), "estimator": ("plain", "paired")[case % 2]}
        here = estimate_values(make(values), index, 16, **arguments)
        there = estimate_values(make(padded, mask), index, 16, **arguments)
        for one, other in ((here.values, there.values), (here.stderr, there.stderr)):
            other = other[place][:, place] if one.dim() == 2 else other[place]
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
        same = (values[:, None] - values).abs().amax(-1) == 0
        for i, j in same.nonzero().tolist():
            if here.values.dim() == 1:
                assert here.values[i] == here.values[j]
            else:
                others = [k for k in range(players) if k not in (i, j)]
                assert torch.equal(here.values[i, others], here.values[j, others])


@pytest.mark.parametrize("couplings", ["dense", "linear"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_attention(proposal, weighting, couplings):
    """In float32, with two heads and a word that occurs twice. Bound: 1e-4 for alpha, 0 between the two."""
    generator = torch.Generator().manual_seed(5)
    for case in range(2):
        torch.manual_seed(case)
        options = {"proposal": proposal, "weighting": weighting, "couplings": couplings}
        layer = NeuroGameAttention(8, 2, eval_samples=9, **options).eval()
        x = torch.randn(6, 8, generator=generator)
        x[4] = x[1]
        padded, mask, place = moved(x, generator)
        with torch.no_grad():
            here, there = layer(x[None]).attention[0], layer(padded[None], mask[None]).attention[0]
        torch.testing.assert_close(here, there[:, place], rtol=0, atol=1e-4)
        torch.testing.assert_close(here[:, 1], here[:, 4], rtol=0, atol=1e-6)


def test_more_absences_than_players_or_fewer():
    """Of 20 players, of whom many have the same marginal, the same 16 are held out in any order: bound 1e-9."""
    generator = torch.Generator().manual_seed(2)
    values = torch.eye(12, dtype=torch.float64)[torch.randint(12, (20,), generator=generator)]
    padded, mask, place = moved(values, generator)
    arguments = {"weighting": "gibbs", "proposal": "tilted", "temperature": 0.5, "seed": torch.tensor(1)}
    here = estimate_values(NormGame(values), "BV", 24, **arguments).values
    there = estimate_values(NormGame(padded, mask), "BV", 24, **arguments).values
    torch.testing.assert_close(here, there[place], rtol=1e-9, atol=1e-9)


def test_ranks_and_twins():
    values = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [3.0, 1.0], [1.0, 0.0], [9.0, 9.0]]])
    ranks = content_ranks(values, torch.tensor([[True, True, True, True, False]]))
    assert ranks.rank[0, 4] == 4
    assert ranks.rank[0, 2] == 3
    assert ranks.twins[0, 0] == ranks.twins[0, 3]
    assert len(set(ranks.twins[0].tolist())) == 4
    zeros = content_ranks(torch.zeros(1, 3, 2), torch.tensor([[True, True, False]])).twins[0]
    assert zeros[0] == zeros[1] != zeros[2], "padding is nobody's twin"


def test_means_of_twins_are_those_of_a_loop():
    """Against the plain definition, and the gradient is that of the player's own estimate."""
    generator = torch.Generator().manual_seed(1)
    twins = torch.tensor([[0, 1, 0, 2, 1, 0], [3, 0, 1, 2, 4, 5]])
    x = torch.randn(2, 6, generator=generator, dtype=torch.float64).requires_grad_()
    pairs = torch.randn(2, 6, 6, generator=generator, dtype=torch.float64)
    pairs = (pairs + pairs.mT) * (1 - torch.eye(6, dtype=torch.float64))
    mean, pair_mean = mean_of_twins(x, twins), mean_of_twin_pairs(pairs, twins)
    for row in range(2):
        kin = [[j for j in range(6) if twins[row, j] == twins[row, i]] for i in range(6)]
        for i in range(6):
            torch.testing.assert_close(mean[row, i], x[row, kin[i]].mean())
            for j in range(6):
                over = [pairs[row, a, b] for a in kin[i] for b in kin[j] if a != b]
                expected = torch.stack(over).mean() if i != j else torch.zeros((), dtype=torch.float64)
                torch.testing.assert_close(pair_mean[row, i, j], expected)
    (gradient,) = torch.autograd.grad((mean * x.detach()).sum(), x)
    torch.testing.assert_close(gradient, x.detach())


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_twins_keep_the_gradient(weighting):
    """With two twins: the mean of 200 gradients within 5 standard errors of the exact one, and 0.02 of the ratio's
    bias under Gibbs weights."""
    values = torch.randn(5, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    values[3] = values[1]
    weight = torch.arange(1.0, 6.0, dtype=torch.float64)
    values.requires_grad_()
    exact = exact_values(NormGame(values), "BV", weighting)
    (expected,) = torch.autograd.grad((exact * weight).sum(), values)
    many = values.detach().expand(200, -1, -1).clone().requires_grad_()
    arguments = {"weighting": weighting, "seed": torch.tensor(6), "estimator": "paired", "errors": False}
    estimate = estimate_values(NormGame(many), "BV", 200, **arguments)
    (gradient,) = torch.autograd.grad((estimate.values * weight).sum(), many)
    error = gradient.std(0) / 200**0.5
    assert ((gradient.mean(0) - expected).abs() < 5 * error + (0.02 if weighting == "gibbs" else 1e-9)).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_look_at_near_players_finds_all_twins(monkeypatch, dtype, seed):
    """Every neighbour in rank is compared where the quick way compares those alone whose keys are near."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(3, 14, 5, dtype=dtype, generator=generator) * 10.0 ** (3 * seed - 18)
    if seed % 3 == 0:
        vectors = torch.randint(-1, 2, (3, 14, 5), generator=generator).to(dtype)
    vectors[:, 3] = vectors[:, 9] * (1 + 2 * torch.finfo(dtype).eps)
    vectors[:, 5] = vectors[:, 9] * (1 + 1e3 * torch.finfo(dtype).eps)
    mask = torch.arange(14) < torch.tensor([[14], [10], [12]])
    vectors = vectors * mask[..., None]
    quick = twins.content_ranks(vectors, mask)

    def everyone(vectors, keys, order, direction):
        follow = vectors.gather(1, order[..., None].expand_as(vectors))
        return twins._same(follow[:, :-1], follow[:, 1:])

    monkeypatch.setattr(twins, "_same_of_near", everyone)
    plain = twins.content_ranks(vectors, mask)
    assert torch.equal(quick.rank, plain.rank)
    assert torch.equal(quick.twins, plain.twins)
    if seed % 3:  # among whole numbers another player may have its key between theirs
        assert (quick.twins[:, 3] == quick.twins[:, 9]).all()
