"""Operators that read players' vectors in 16 bits, where that is all that there is: against the plain twin."""

import pytest
import torch

from spinformer.attention.from_game import game_attention
from spinformer.attention.hamiltonian import Units
from spinformer.attention.settings import Settings
from spinformer.games import NormGame
from spinformer.kernels import factors as factored
from spinformer.kernels import spins, support
from tests.kernels.test_twins import DEVICE, assert_twins, fused, pytestmark, random_mask  # noqa: F401

FORMS = {"narrow": (37, 8), "large": (37, 8), "resident": (19, 24), "streamed": (19, 24)}  # tokens and columns


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_attention_of_a_game(fused, monkeypatch, form, kind, scale):  # noqa: F811
    if form == "large":
        monkeypatch.setattr(spins, "MAX_FACTORED", 16)
        monkeypatch.setattr(factored, "TILE", 128)  # several blocks of rows
    if form == "streamed":
        monkeypatch.setattr(spins, "MAX_RESIDENT", 16)
    (n, d), generator = FORMS[form], torch.Generator().manual_seed(0)
    if support.INTERPRETED and (scale != 1.0 or kind == torch.bfloat16):
        pytest.skip("slow in the interpreter, whose products of bfloat16 are wrong")
    values = (scale * torch.randn(3, n, d, generator=generator)).to(kind).float().to(DEVICE)
    gate, slope = torch.rand(3, n, generator=generator).to(DEVICE), torch.randn(3, n, generator=generator).to(DEVICE)
    mask = random_mask(3, n, generator)
    options = Settings(couplings="linear")

    def run(on):
        fused(on)
        leaf, warm = values.clone().requires_grad_(), torch.full((3,), 0.25, device=DEVICE, requires_grad=True)
        units = Units(torch.ones(3, device=DEVICE), torch.full((3,), 0.5, device=DEVICE, requires_grad=True))
        game = NormGame.of_shares(leaf, mask, "identity", by_column=True, kind=kind)
        given = {"budget": 5, "seed": torch.tensor(7), "shared": False}
        found = game_attention(game, gate * mask, warm, options, units, **given)
        dense = found.couplings.dense()
        ((found.attention * slope).sum() + found.fields.sin().sum() + (dense * dense.detach()).sum()).backward()
        return [found.attention.detach(), found.fields.detach(), dense.detach(), scale * leaf.grad, warm.grad]

    assert_twins(run(False), run(True), 1e-3)
