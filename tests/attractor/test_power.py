"""The power method: it lowers the energy at every step, and rests where the couplings are parallel to -gradient."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch.nn.functional import avg_pool2d

from spinformer.attractor import reference
from spinformer.data import images as data
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.training.attractor import PRESETS
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe, Stepper
from spinformer.training.attractor.train import rest, train_attractor

COUNT = 128
WHOLE = AttractorRecipe(batch=COUNT, decay="constant")  # all images in one batch, rate 1: the plain power method


@pytest.fixture(scope="module")
def digits() -> torch.Tensor:
    """At half their size, 14 x 14."""
    return avg_pool2d(data.load_images("sample").train[:COUNT], 2)


def network(**options) -> AttractorNetwork:
    return AttractorNetwork(AttractorConfig(image=(1, 14, 14), **options))


def energy(net: AttractorNetwork, digits: torch.Tensor) -> float:
    return float(reference.local_energy(net.layer.couplings.detach(), net.spins(digits), 5.0).mean())


def cosines(net: AttractorNetwork, digits: torch.Tensor) -> torch.Tensor:
    """By autograd, of each site."""
    couplings = net.layer.couplings.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(reference.local_energy(couplings, net.spins(digits), 5.0).sum(1).mean(), [couplings])
    return torch.cosine_similarity(couplings.detach().flatten(1), -slope.flatten(1), dim=1)


@pytest.mark.parametrize(("options", "hold"), [({}, "site"), ({}, "pair"), ({"shape": "relative"}, "site")])
def test_no_step_raises_the_energy(options, hold, digits):
    net = network(**options)
    norms = {name: length.clone() for name, length in net.layer.pairs.lengths(net.layer.pairs.storage(), hold).items()}
    stepper = Stepper(net.layer.pairs, replace(WHOLE, hold=hold), 14)
    energies = [energy(net, digits)]
    for _ in range(14):
        stepper.step(net.spins(digits))
        energies.append(energy(net, digits))
    assert all(later <= earlier + 1e-5 for earlier, later in pairwise(energies))
    assert energies[-1] < energies[0] - 1
    for name, length in net.layer.pairs.lengths(net.layer.pairs.storage(), hold).items():
        torch.testing.assert_close(length, norms[name], rtol=1e-4, atol=0)


def test_it_rests_at_a_minimum_and_goes_below_the_other_optimisers(digits):
    """16 epochs of 128 digits. Cosine with -gradient above 0.999 for all images at once, 0.99 for batches of 32."""
    least = {}
    for name, recipe in {
        "whole": replace(WHOLE, epochs=16),
        "batches": AttractorRecipe(epochs=16),
        "sgd": AttractorRecipe(epochs=16, optimiser="sgd", decay="constant", clip=1.0),
        "adam": AttractorRecipe(epochs=16, optimiser="adam", rate=1e-3, decay="constant", clip=1.0),
    }.items():
        net = network()
        history = train_attractor(net, digits, recipe, quiet=True)
        exact = cosines(net, digits)
        assert history[-1]["alignment"] == pytest.approx(float(exact.mean()), abs=1e-4)
        assert history[-1]["least_alignment"] == pytest.approx(float(exact.min()), abs=1e-4)
        assert history[-1]["energy"] == pytest.approx(energy(net, digits), abs=1e-4)
        assert "alignment" not in history[0]
        least[name] = (float(exact.min()), energy(net, digits))
    assert least["whole"][0] > 0.999
    assert least["batches"][0] > 0.99
    assert least["adam"][0] < 0.9
    assert max(least["whole"][1], least["batches"][1]) < min(least["sgd"][1] + 0.02, least["adam"][1] - 1)


def test_alignment_of_untrained_couplings_is_nothing(digits):
    assert rest(network(), digits, AttractorRecipe())[1].abs().max() < 0.2


def test_sgd_takes_the_gradient_off_and_restores_the_norm(digits):
    net = network()
    couplings = net.layer.couplings.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(reference.local_energy(couplings, net.spins(digits), 5.0).sum(1).mean(), [couplings])
    moved = couplings.detach() - 0.3 * slope
    norms = (couplings.detach().flatten(1).norm(dim=1) / moved.flatten(1).norm(dim=1))[:, None, None, None]
    recipe = AttractorRecipe(batch=COUNT, optimiser="sgd", rate=0.3, decay="constant")
    Stepper(net.layer.pairs, recipe, 1).step(net.spins(digits))
    torch.testing.assert_close(net.layer.couplings.detach(), moved * norms, rtol=1e-4, atol=1e-6)


def test_sites_without_a_gradient_stay(digits):
    net = network()
    before = net.layer.couplings.detach().clone()
    Stepper(net.layer.pairs, AttractorRecipe(sites=3), 1).step(net.spins(digits[:32]))
    moved = (net.layer.couplings.detach() != before).flatten(1).any(1)
    assert int(moved.sum()) == 3


def test_what_it_cannot_do_is_refused():
    assert PRESETS["paper"][1].optimiser == "power"
    for change in ({"objective": "field"}, {"hold": None}, {"rate": 1.5}):
        with pytest.raises(ValueError, match="optimiser 'power' needs objective 'energy', a norm to hold and a rate"):
            AttractorRecipe(**change)
    for shape, name in (("low-rank", "LowRankSpinCouplings"), ("shared", "SharedCouplings")):
        with pytest.raises(ValueError, match=f"linear in their parameters; got {name}"):
            Stepper(network(shape=shape).layer.pairs, AttractorRecipe(), 1)
