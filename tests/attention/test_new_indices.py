"""New indices, registered in one place and used by exact values, estimates and the layer."""

import math

import pytest
import torch

from spinformer.attention import NeuroGameAttention, Settings
from spinformer.games import INDICES, Index, NormGame, TableGame, estimate_values, exact_values
from spinformer.games.indices import size_distribution

P = 0.3


def weighted_banzhaf(others, size):
    """log of P^s (1 - P)^(m - s)."""
    return size.double() * math.log(P) + (others - size).double() * math.log(1 - P)


def biased(t):
    return torch.full_like(t, P)


def extreme_sizes(others, size):
    """Small and large contexts count more, by a law of |T| that no common bias of coins gives."""
    return ((2 * size - others) / others.clamp_min(1)).double().square()


NEW = (
    Index("WBV", 1, "weighted Banzhaf value", weighted_banzhaf, bias=biased, method="weighted-banzhaf"),
    Index("WBV-no-bias", 1, "weighted Banzhaf value, importance-weighted", weighted_banzhaf),
    Index("XV", 1, "value of extreme sizes", extreme_sizes),
    Index("WBII", 2, "weighted Banzhaf interaction index", weighted_banzhaf, bias=biased),
    Index("XII", 2, "interaction index of extreme sizes", extreme_sizes),
)
NAMES = [index.name for index in NEW]


@pytest.fixture(autouse=True)
def _registered():
    for index in NEW:
        INDICES.register(index)
    yield
    for index in NEW:
        INDICES.unregister(index.name)


def by_definition(table, name):
    """sum over T of P(T) Delta v(T), term by term, for one table of 2**n values."""
    index, n = INDICES[name], (len(table) - 1).bit_length()
    result = torch.zeros([n] * index.order, dtype=table.dtype)
    for around in torch.cartesian_prod(*[torch.arange(n)] * index.order).view(-1, index.order).tolist():
        if len(set(around)) < index.order:
            continue
        bits = [1 << player for player in around]
        contexts = [T for T in range(2**n) if not any(T & bit for bit in bits)]
        sizes = torch.tensor([T.bit_count() for T in contexts])
        weight = index.log_weight(torch.tensor(n - index.order), sizes).softmax(0)
        delta = torch.stack([table[T | bits[0]] - table[T] for T in contexts])
        if index.pairwise:
            delta = torch.stack([table[T | sum(bits)] - table[T | bits[1]] for T in contexts]) - delta
        result[tuple(around)] = (weight * delta).sum()
    return result


@pytest.mark.parametrize("name", NAMES)
def test_exact_values_are_the_definition(name, generator):
    tables = torch.rand(2, 2**5, generator=generator, dtype=torch.float64)
    expected = torch.stack([by_definition(table, name) for table in tables])
    torch.testing.assert_close(exact_values(TableGame(tables), name), expected)


@pytest.mark.parametrize("name", NAMES)
def test_padding_does_not_count(name, generator):
    values = torch.randn(1, 6, 3, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[True, True, False, True, True, True], [True] * 6])
    padded = exact_values(NormGame(values.expand(2, -1, -1), mask), name)[0]
    alone = exact_values(NormGame(values[0, mask[0]]), name)
    index = mask[0].nonzero().flatten()
    torch.testing.assert_close(padded[index[:, None], index] if padded.dim() == 2 else padded[index], alone)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("weighting", "proposal", "estimator"),
    [
        ("uniform", "uniform", "plain"),
        ("uniform", "uniform", "paired"),
        ("uniform", "uniform", "control"),
        ("uniform", "tilted", "paired"),
        ("gibbs", "uniform", "paired"),
        ("gibbs", "annealed", "paired"),
    ],
)
def test_estimates_are_within_their_errors_of_the_exact_values(name, weighting, proposal, estimator, generator):
    """Bound: 5 standard errors for every value, 1.6 in root mean square."""
    values = 0.4 * torch.randn(6, 6, 4, generator=generator, dtype=torch.float64)
    mask = torch.ones(6, 6, dtype=torch.bool)
    mask[3:, 5] = False
    game = NormGame(values, mask)
    options = {"weighting": weighting, "temperature": 0.5}
    estimate = estimate_values(game, name, 2000, proposal=proposal, estimator=estimator, generator=generator, **options)
    moving = estimate.stderr > 1e-6
    z = ((estimate.values - exact_values(game, name, **options)) / estimate.stderr.clamp_min(1e-12))[moving]
    assert float(z.abs().max()) < 5
    assert float(z.square().mean().sqrt()) < 1.6
    equal = weighting == proposal == "uniform" and INDICES[name].bias is not None
    assert bool((estimate.ess == 2000).all()) == equal


@pytest.mark.parametrize("name", NAMES)
def test_the_control_variate_pays(name, sample, generator):
    """It is the default, and takes at least ten times less variance than the plain estimator, on encoder outputs."""
    game = NormGame(sample.normed()[:6], sample.mask[:6])
    plain, auto, control = (
        estimate_values(game, name, 50, estimator=estimator, seed=torch.tensor(1))
        for estimator in ("plain", "auto", "control")
    )
    assert torch.equal(auto.values, control.values)
    assert float(plain.stderr.square().mean() / control.stderr.square().mean()) > 10


@pytest.mark.parametrize("name", ["SV", "BV", "SII", "BII"])
def test_closed_size_distributions_are_those_of_the_weights(name):
    index, others = INDICES[name], torch.tensor([0, 1, 7, 300])
    follows = Index("same", index.order, "the same without its closed form", index.log_weight)
    closed, summed = (size_distribution(one, others, 305) for one in (index, follows))
    torch.testing.assert_close(summed, closed, rtol=1e-10, atol=0)
    torch.testing.assert_close(closed.sum(-1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize(
    ("player_indices", "pair_index"),
    [(("WBV", "XV"), "WBII"), (["SV", "WBV-no-bias"], "XII"), (("BV", "SV"), "BII"), (("WBV", "XV"), "SII")],
)
def test_the_layer_uses_them(player_indices, pair_index):
    """Against exact values: 40,000 coalitions of 5 players, to 1%."""
    torch.manual_seed(2)
    options = {"player_indices": player_indices, "pair_index": pair_index, "couplings": "dense"}
    layer = NeuroGameAttention(8, eval_samples=40_000, **options).eval()
    x = torch.randn(2, 5, 8, requires_grad=True)
    output = layer(x)
    vectors = layer.value(torch.nn.functional.layer_norm(x, (8,))).detach()
    game = NormGame(vectors, scale=1 / vectors.norm(dim=-1).sum(-1))
    for values, name in zip((output.shapley, output.banzhaf), player_indices, strict=True):
        torch.testing.assert_close(values[:, 0].detach(), exact_values(game, name), rtol=0.01, atol=0.001)
    pairs = output.interactions.dense()[:, 0].detach()
    torch.testing.assert_close(pairs, exact_values(game, pair_index), rtol=0.01, atol=0.001)
    output.pooled.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert all(float(parameter.grad.abs().max()) > 0 for parameter in layer.parameters())


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_the_layer_trains_with_them(preset):
    torch.manual_seed(2)
    layer = NeuroGameAttention(8, preset=preset, player_indices=("XV", "WBV"), pair_index="XII", temperature=2.0)
    x = torch.randn(2, 7, 8, requires_grad=True)
    mask = torch.arange(7) < torch.tensor([[7], [4]])
    layer(x, mask).pooled.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert float(x.grad.abs().max()) > 0
    assert float((x.grad * ~mask[..., None]).abs().max()) == 0


def test_long_inputs_stay_dense_where_there_is_no_low_rank_form():
    layer = NeuroGameAttention(4, samples=4, pair_index="WBII", head_dim=4)
    assert type(layer(torch.randn(1, 130, 4)).couplings.flat).__name__ == "DenseCouplings"
    assert type(NeuroGameAttention(4, samples=4)(torch.randn(1, 130, 4)).couplings.flat).__name__ == "LowRankCouplings"


def test_indices_of_the_default_are_the_papers():
    settings = Settings()
    assert (settings.player_indices, settings.pair_index) == (("SV", "BV"), "BII")
    assert Settings(player_indices=["SV", "BV"]) == settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"player_indices": ("SV", "nucleolus")}, "player_indices must be one of 'SV', 'BV', .*; got 'nucleolus'"),
        ({"player_indices": ("SV", "BII")}, "player_indices must be one of 'SV', 'BV', .*; got 'BII'"),
        ({"player_indices": ("SV",)}, r"player_indices must be two names, of phi and beta; got \('SV',\)"),
        ({"player_indices": "SV"}, "player_indices must be two names, of phi and beta; got 'SV'"),
        ({"pair_index": "BV"}, "pair_index must be one of 'SII', 'BII', .*; got 'BV'"),
        ({"pair_index": "WBII", "couplings": "linear"}, "couplings='linear' is for pair_index 'BII'; got 'WBII'"),
    ],
)
def test_bad_indices(options, message):
    with pytest.raises(ValueError, match=message):
        NeuroGameAttention(8, **options)


def test_bad_registrations():
    with pytest.raises(ValueError, match=r"index 'SV' is registered already"):
        INDICES.register(Index("SV", 1, "again", extreme_sizes))
    with pytest.raises(ValueError, match=r"order must be 1 \(players\) or 2 \(pairs\); got 3"):
        Index("triples", 3, "too many", extreme_sizes)
    with pytest.raises(ValueError, match="needs an index of order 1"):
        Index("pairs", 2, "with a method", extreme_sizes, method="pairs")
    with pytest.raises(ValueError, match="index must be one of 'SV', 'BV', 'SII', 'BII'"):
        exact_values(TableGame(torch.rand(8)), "nucleolus")
