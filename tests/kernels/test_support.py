"""Sizes of blocks, which need no GPU."""

import pytest

from spinformer.kernels import support


@pytest.mark.parametrize(("n", "rows"), [(1, 16), (16 * 65_535, 16), (16 * 65_535 + 1, 32), (2**22, 128)])
def test_a_launch_has_no_more_blocks_than_it_may(n, rows):
    assert support.rows_of(n, 16) == rows
