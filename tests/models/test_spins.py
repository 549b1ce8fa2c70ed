"""The spins of section 7.3: against loops, the energy that defines them, gradients, padding, files, sizes."""

import itertools
import math

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.attention.settings import Settings
from spinformer.attention.spins import solve_spins
from spinformer.ising import Ising
from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification
from spinformer.models.pooling import POOLING_HEADS, SpinPooling
from tests.models.test_neurogame import LABELS, build, inputs, randomise

PAPER = {"preset": "paper", "temperature": 2.0, "max_steps": 200, "tol": 1e-6}


def pooling(spins=6, **game):
    torch.manual_seed(3)
    return SpinPooling(8, spins, **game).eval()


def batch(n=5):
    mask = torch.arange(n).expand(2, n) < torch.tensor([[n], [n - 2]])
    return torch.randn(2, n, 8), mask


@torch.no_grad()
def test_couplings_that_cancel_are_symmetric_all_the_same(monkeypatch):
    """p = 1 throughout and couplings of both signs that add up to nothing: what is left of K is rounding."""
    game = pooling().attention(torch.randn(1, 64, 8))
    wide = torch.randn(64, 64) * 1e3
    wide = wide + wide.T
    wide = wide - wide.mean(0) - wide.mean(1, keepdim=True) + wide.mean()
    monkeypatch.setattr(type(game.couplings), "dense", lambda self: wide[None, None])
    spins = solve_spins(game, torch.ones(1, 64, 128) + 1e-7 * torch.randn(1, 64, 128), torch.ones(1), Settings())
    assert spins.magnetization.shape == (1, 128)


@torch.no_grad()
@pytest.mark.parametrize("game", [{}, PAPER], ids=["default", "paper"])
def test_values_by_a_plain_loop(game):
    module, (x, mask) = pooling(**game), batch()
    z, output, _ = module(x, mask)
    for row in range(2):
        tokens = [i for i in range(x.shape[1]) if mask[row, i]]
        alone = module.attention(x[row : row + 1, : len(tokens)])  # without padding
        J, h = alone.couplings.dense()[0, 0], alone.fields[0, 0]
        p = [[math.tanh(float(u @ x[row, i] + b)) for u, b in zip(*module.projection.parameters(), strict=True)]
             for i in tokens]  # fmt: skip
        pairs = [[sum(p[i][k] * float(J[i, j]) * p[j][other] for i in tokens for j in tokens) for other in range(6)]
                 for k in range(6)]  # fmt: skip
        gamma, s = float(module.attention.temperature), [0.0] * 6
        for _ in range(300):
            fields = []
            for k in range(6):
                field = sum(p[i][k] * float(h[i]) for i in tokens)
                for other in range(6):
                    if other != k:
                        field += pairs[k][other] / 6 * s[other]
                fields.append(field)
            s = [0.7 * math.tanh(field / gamma) + 0.3 * old for field, old in zip(fields, s, strict=True)]
        torch.testing.assert_close(z[row], torch.tensor(s), rtol=0, atol=2e-4)
    assert bool(output.diagnostics.converged.all())
    assert output.pooled is z


def test_the_energy_is_that_of_the_tokens():
    """H(s) = S H(sigma) up to a constant, for every s."""
    module, (x, _) = pooling(4, **PAPER), batch()
    game = module.attention(x[:1])
    weights = torch.tanh(module.projection(x[:1]))
    fields, couplings = game.fields[:, 0], game.couplings.dense()[:, 0]
    tokens = Ising(fields, couplings, 1.0)
    spins = Ising((weights.mT @ fields[..., None])[..., 0], weights.mT @ couplings @ weights / 4, 1.0)
    states = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=4)))[None]  # (1, 16, 4)
    own = spins.energy(states)[0]
    sigma = states @ weights.mT / 4  # (1, 16, n)
    assert float(sigma.detach().abs().max()) <= 1
    difference = 4 * tokens.energy(sigma)[0] - own
    torch.testing.assert_close(difference, difference[:1].expand(16), rtol=0, atol=1e-5)


@pytest.mark.parametrize("backward", ["implicit", "unrolled"])
def test_gradients(backward):
    """Along a random direction of all weights, against finite differences."""
    module = pooling(backward=backward, **PAPER).double()
    x, mask = batch()
    x, aim = x.double(), torch.randn(2, 6, dtype=torch.double)

    def loss():
        return (module(x, mask)[0] * aim).sum()

    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    directions = [torch.randn_like(parameter) for parameter in parameters]
    gradients = torch.autograd.grad(loss(), parameters)
    assert all(float(gradient.abs().max()) > 0 for gradient in gradients)
    values = []
    for step in (1e-5, -2e-5):
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter.add_(step * direction)
            values.append(float(loss()))
    by_hand = (values[0] - values[1]) / 2e-5
    slope = sum(float((a * b).sum()) for a, b in zip(gradients, directions, strict=True))
    assert slope == pytest.approx(by_hand, rel=1e-3)


def test_padding_is_no_player():
    module, (x, mask) = pooling(**PAPER), batch()
    z = module(x, mask)[0]
    other = torch.where(mask[..., None], x, 100 * torch.randn_like(x))
    assert torch.equal(module(other, mask)[0], z)
    longer = torch.cat([x, torch.full((2, 3, 8), torch.nan)], 1)
    with pytest.raises(ValueError, match="x must be finite"):
        module(longer, torch.cat([mask, torch.zeros(2, 3, dtype=torch.bool)], 1))
    longer = torch.cat([x, torch.randn(2, 3, 8)], 1)
    padded, game, _ = module(longer, torch.cat([mask, torch.zeros(2, 3, dtype=torch.bool)], 1))
    torch.testing.assert_close(padded, z, rtol=0, atol=1e-5)
    assert float(game.fields[0, 0, 5:].detach().abs().max()) == 0


def test_it_is_saved_and_loaded(encoder, tmp_path):
    model = randomise(build(encoder, "spins", {**PAPER, "spins": 10}))
    assert model.plays
    assert model.model(**inputs()).pooler_output.shape == (3, 10)
    output = model(**inputs(), labels=LABELS, output_game=True)
    output.loss.backward()
    assert output.game.diagnostics.converged.shape == (3, 1)
    assert output.game.attention.shape == (3, 1, inputs()["input_ids"].shape[1])
    model.save_pretrained(tmp_path)
    loaded = NeuroGameForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.config.game["spins"] == 10
    assert torch.equal(loaded(**inputs()).logits, output.logits)


def test_half_precision_is_solved_in_full(encoder):
    model = randomise(build(encoder, "spins", PAPER))
    with torch.autocast("cpu", torch.bfloat16):
        game = model(**inputs(), output_game=True).game
    assert game.fields.dtype == torch.float32
    assert bool(game.diagnostics.converged.all())


def test_what_is_refused():
    with pytest.raises(ValueError, match="one attention head; got heads 2"):
        pooling(heads=2)
    with pytest.raises(ValueError, match="spins must be an integer of at least 1; got 0"):
        pooling(0)


def test_its_size_at_the_width_of_bert():
    config = NeuroGameConfig(head="spins", num_labels=3, game={"preset": "paper"})  # BERT, 768 wide
    head = POOLING_HEADS["spins"]
    with torch.device("meta"):
        modules = head.pooling(config), head.classifier(config)
    count = sum(parameter.numel() for module in modules for parameter in module.parameters())
    W_v, gate, gamma, projection = 768 * 768, 768 + 1, 1, 768 * 128 + 128
    assert count == W_v + gate + gamma + projection + (128 * 128 + 128) + (128 * 3 + 3) == 705_925
