"""A product in chunks against the product at once: values and gradients."""

import pytest
import torch

from spinformer._base.products import PROGRAMS, SHORTEST, chunks_of, long_product


@pytest.mark.parametrize(("rows", "n", "columns"), [(1, 1, 1), (3, 7, 5), (2, 97, 9), (5, 160, 1), (4, 129, 6)])
@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 8, 200])
@pytest.mark.parametrize("turned", [False, True])
def test_values_and_gradients(rows, n, columns, chunks, turned):
    generator = torch.Generator().manual_seed(n)
    left = torch.randn(2, n, rows, dtype=torch.float64, generator=generator).mT
    left = (left if turned else left.contiguous()).requires_grad_()
    right = torch.randn(2, n, columns, dtype=torch.float64, generator=generator).requires_grad_()
    slope = torch.randn(2, rows, columns, dtype=torch.float64, generator=generator)
    whole, parts = torch.bmm(left, right), long_product(left, right, chunks)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)
    expected = torch.autograd.grad(whole, (left, right), slope)
    torch.testing.assert_close(torch.autograd.grad(parts, (left, right), slope), expected, rtol=1e-12, atol=1e-12)


def test_a_product_of_no_samples():
    assert long_product(torch.zeros(0, 3, 40), torch.zeros(0, 40, 2), 2).shape == (0, 3, 2)


def test_on_a_cpu_it_is_the_same_to_the_last_bit():
    left, right = torch.randn(1, 3, 20_000), torch.randn(1, 20_000, 5)
    assert torch.equal(long_product(left, right), torch.bmm(left, right))


def test_chunks_are_for_few_samples_and_long_sums():
    assert chunks_of(2, 51, SHORTEST, 768) == 1
    assert chunks_of(PROGRAMS, 51, 32_768, 768) == 1
    for batch, n in ((8, 8_192), (2, 32_768), (1, 131_072)):
        chunks = chunks_of(batch, 51, n, 768)
        assert n % (16 * chunks) == 0
        assert PROGRAMS / 2 < batch * 12 * chunks <= PROGRAMS
