"""Norm and table games: values, and fast differences against their plain twins."""

import pytest
import torch

from spinformer.games import Game, NormGame, TableGame
from spinformer.games.norm import ACTIVATIONS

FUNCTIONS = {"identity": lambda x: x, "relu": torch.relu, "tanh": torch.tanh, "log1p": torch.log1p}


def norm_game(activation="identity", dtype=torch.float64, requires_grad=False):
    values = (0.5 * torch.randn(2, 6, 5, dtype=torch.float64)).to(dtype).requires_grad_(requires_grad)
    mask = torch.tensor([[True] * 6, [True, False, True, True, True, False]])
    return values, mask, NormGame(values, mask, activation, scale=torch.tensor([1.0, 0.7]))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_value_is_the_length_of_the_sum(activation):
    values = torch.randn(4, 3)
    game = NormGame(values, activation=activation, scale=0.5)
    coalitions = torch.tensor([[False] * 4, [True, False, True, False], [True] * 4])
    expected = FUNCTIONS[activation](
        0.5 * torch.stack([torch.zeros(()), (values[0] + values[2]).norm(), values.sum(0).norm()])
    )
    torch.testing.assert_close(game(coalitions), expected)
    assert game(coalitions)[0] == 0


def test_shapes():
    single, batch = NormGame(torch.randn(4, 3)), NormGame(torch.randn(2, 4, 3))
    coalitions = torch.rand(5, 4) < 0.5
    assert single(coalitions).shape == (5,)
    assert batch(coalitions).shape == (2, 5)
    assert batch(coalitions.expand(2, 5, 4)).shape == (2, 5)
    assert TableGame(torch.rand(3, 16))(coalitions).shape == (3, 5)


def test_table_positions_are_bits():
    game = TableGame(torch.arange(8.0))
    assert game(torch.tensor([[False, True, True]])).tolist() == [6.0]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_differences_equal_their_plain_twins(activation, dtype):
    _, mask, game = norm_game(activation, dtype)
    coalitions = (torch.rand(2, 9, 6) < 0.5) & mask[:, None]
    coalitions[:, 0] = False
    coalitions[:, 1] = mask
    tolerance = {"rtol": 0, "atol": 1e-12 if dtype == torch.float64 else 3e-6}
    for fast, plain in zip(game.marginals(coalitions), Game.marginals(game, coalitions), strict=True):
        torch.testing.assert_close(fast, plain, **tolerance)
    rows = slice(1, 4)
    apart = ~torch.eye(6, dtype=torch.bool)[rows]
    for fast, plain in zip(game.interactions(coalitions, rows), Game.interactions(game, coalitions, rows), strict=True):
        torch.testing.assert_close(fast * apart, plain * apart, **tolerance)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_equal_their_plain_twins(activation):
    values, mask, game = norm_game(activation, requires_grad=True)
    coalitions = (torch.rand(2, 9, 6) < 0.5) & mask[:, None]
    apart = ~torch.eye(6, dtype=torch.bool)
    for name in ("marginals", "interactions"):
        arguments = (coalitions,) if name == "marginals" else (coalitions, slice(None))
        gradients = []
        for delta, without in (getattr(game, name)(*arguments), getattr(Game, name)(game, *arguments)):
            keep = apart if name == "interactions" else 1.0
            loss = (delta * keep).sin().sum() + (without * keep).cos().sum()
            gradients.append(torch.autograd.grad(loss, values, retain_graph=True)[0])
        torch.testing.assert_close(*gradients)


def test_no_cancellation_in_long_sums():
    """Interactions near 1e-3 of sums near 1e4: float32 must still agree with float64 to 1e-4."""
    values = torch.randn(400, 64, dtype=torch.float64) + 3
    coalitions = torch.rand(1, 2, 400) < 0.5
    wide = NormGame(values).interactions(coalitions, slice(0, 20))[0]
    narrow = NormGame(values.float()).interactions(coalitions, slice(0, 20))[0].double()
    assert float((wide - narrow).norm() / wide.norm()) < 1e-4


def test_gradient_is_finite_where_vectors_cancel():
    values = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    coalitions = (torch.arange(8)[:, None] >> torch.arange(3) & 1).bool()[None]
    game = NormGame(values)
    for delta, _ in (game.marginals(coalitions), game.interactions(coalitions, slice(None))):
        (gradient,) = torch.autograd.grad(delta.sum(), values, retain_graph=True)
        assert torch.isfinite(gradient).all()
    torch.testing.assert_close(game(coalitions[0])[3], torch.zeros(()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened(dtype):
    values = torch.randn(5, 4).to(dtype)
    game = NormGame(values)
    assert game(torch.ones(1, 5, dtype=torch.bool)).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = game(torch.ones(1, 5, dtype=torch.bool))
    torch.testing.assert_close(inside, values.float().sum(0).norm()[None])


@pytest.mark.parametrize("kind", ["norm", "table"])
def test_expected_marginals(kind):
    """Exact for tables; for norms it is exact when every probability is 0 or 1."""
    probability = torch.tensor([[[0.0, 1.0, 1.0, 0.0]]], dtype=torch.float64)
    values = torch.randn(1, 4, 3, dtype=torch.float64)
    position = (torch.arange(16)[:, None] >> torch.arange(4) & 1).bool()
    norm = NormGame(values)
    table = TableGame(norm(position))
    game = norm if kind == "norm" else table
    expected = norm.marginals(probability.bool())[0]
    torch.testing.assert_close(game.expected_marginals(probability), expected)
    if kind == "table":
        probability = torch.rand(1, 2, 4, dtype=torch.float64)
        coins = torch.where(position, probability[0, :, None], 1 - probability[0, :, None])  # (2, 16, 4)
        for player in range(4):
            others = [k for k in range(4) if k != player]
            weight = coins[..., others].prod(-1) * ~position[:, player]
            delta = norm.marginals(position[None])[0][0, :, player]
            torch.testing.assert_close(table.expected_marginals(probability)[0, :, player], (weight * delta).sum(-1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: NormGame(torch.randn(3)),
            ValueError,
            r"values must have 2 or 3 dimensions; got shape \(3,\)",
        ),
        (
            lambda: NormGame(torch.ones(3, 2, dtype=torch.long)),
            TypeError,
            "floating-point numbers; got torch.int64",
        ),
        (lambda: NormGame(torch.randn(0, 2)), ValueError, "at least one player"),
        (
            lambda: NormGame(torch.tensor([[1.0, float("nan")]])),
            ValueError,
            "1 of 2 elements are NaN or infinite",
        ),
        (lambda: NormGame(torch.randn(3, 2), activation="gelu"), ValueError, "activation must be one of"),
        (lambda: NormGame(torch.randn(3, 2), scale=-1.0), ValueError, "scale must be finite and positive"),
        (
            lambda: NormGame(torch.randn(1, 3, 2), torch.ones(1, 4).bool()),
            ValueError,
            r"mask must have shape \(1, 3\)",
        ),
        (lambda: NormGame(torch.randn(1, 3, 2), torch.ones(1, 3)), TypeError, "boolean or 0/1 integers"),
        (
            lambda: NormGame(torch.randn(2, 3, 2), torch.tensor([[1, 1, 0], [0, 0, 0]])),
            ValueError,
            r"row\(s\) \[1\]",
        ),
        (lambda: TableGame(torch.rand(6)), ValueError, r"2\*\*n numbers .* got 6"),
        (lambda: TableGame(torch.rand(8))(torch.ones(2, 3)), TypeError, "boolean tensor; got torch.float32"),
        (lambda: TableGame(torch.rand(8))(torch.ones(2, 4).bool()), ValueError, r"\(K, 3\)"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
