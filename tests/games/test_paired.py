"""Sums and differences of paired coalitions against the Gaussian process on all of them."""

import pytest
import torch
from torch.nn import functional

from spinformer.games.designs import paired_design
from spinformer.games.gaussian import Quadrature, order_ratios
from spinformer.games.paired import PairedQuadrature

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def asked() -> torch.Tensor:
    """Coalitions of two games of 9 players, of whom the last is not there in the second."""
    fewer = functional.pad(paired_design(8, 40, torch.tensor(2)), (0, 1))
    return torch.stack([paired_design(9, 40, torch.tensor(1)), fewer])


def both() -> tuple[Quadrature, PairedQuadrature, torch.Tensor]:
    """Of these, with ratios of their own, and values of three games for each."""
    generator = torch.Generator().manual_seed(0)
    ratios = order_ratios(9) * (0.5 + torch.rand(2, 9, dtype=torch.float64, generator=generator))
    ratios[1, -1] = 0
    values = torch.rand(2, 3, 40, dtype=torch.float64, generator=generator)
    return Quadrature(asked(), ratios), PairedQuadrature(asked(), ratios), values


@pytest.mark.parametrize("name", ["SV", "BV", "SII", "BII"])
def test_values_errors_and_gradients_are_the_same(name: str) -> None:
    plain, paired, values = both()
    found = []
    for quadrature in (plain, paired):
        leaf = values.clone().requires_grad_()
        means = quadrature.values(name, quadrature.coefficients(leaf))
        means.square().sum().backward()
        found.append((means.detach(), leaf.grad))
    torch.testing.assert_close(found[1], found[0], **CLOSE)
    torch.testing.assert_close(paired.variances(name), plain.variances(name), **CLOSE)
    torch.testing.assert_close(paired.deviations(name).square(), plain.deviations(name).square(), **CLOSE)
    some = torch.tensor([0, 2]), torch.tensor([5, 3])
    if name in ("SII", "BII"):
        torch.testing.assert_close(paired.variances(name, some), plain.variances(name, some), **CLOSE)


def test_evidence_and_predictions_are_the_same() -> None:
    plain, paired, values = both()
    torch.testing.assert_close(paired.log_determinant(), plain.log_determinant(), **CLOSE)
    ours, theirs = (each.coefficients(values) for each in (paired, plain))
    torch.testing.assert_close(paired.amplitude(values, ours), plain.amplitude(values, theirs), **CLOSE)
    others = torch.rand(2, 7, 9, generator=torch.Generator().manual_seed(1)) < 0.5
    torch.testing.assert_close(paired.predict(others, ours), plain.predict(others, theirs), **CLOSE)


def test_what_was_asked_is_met() -> None:
    _, paired, values = both()
    torch.testing.assert_close(paired.predict(asked(), paired.coefficients(values)), values, rtol=0, atol=1e-6)
