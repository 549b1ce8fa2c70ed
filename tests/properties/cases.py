"""A law: a property with its share of the cases, the public names that it visits, and the caller's world around it.

SPINFORMER_CASES is the number of cases of the whole folder, of which each law has a share in thousandths. The cases
depend on SPINFORMER_CASES_SEED and the law's name alone; nothing is stored.
"""

import functools
import hashlib
import os
from collections import Counter
from collections.abc import Callable

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from tests.explain.world import assert_same, snapshot

DEFAULT = 200
CASES = int(os.environ.get("SPINFORMER_CASES") or DEFAULT)
SEED = int(os.environ.get("SPINFORMER_CASES_SEED") or 0)
WHOLE = 1000  # thousandths

# By the name of the law: its share, the public names that it visits, and the cases that were really run.
SHARES: dict[str, int] = {}
VISITS: dict[str, tuple[str, ...]] = {}
COUNTS: Counter[str] = Counter()

# The seed of everything in a case that torch draws.
seeds = st.integers(0, 2**31 - 1)


def law(*names: str, share: int = 10, **strategies: st.SearchStrategy) -> Callable[[Callable], Callable]:
    """The decorated test for generated arguments. names: what it visits, such as "games.exact_values"."""

    def decorate(test: Callable) -> Callable:
        name = f"{test.__module__.rpartition('.')[2]}::{test.__qualname__}"
        SHARES[name], VISITS[name] = share, names

        @functools.wraps(test)
        def case(*args, **arguments):
            before = snapshot()
            try:
                test(*args, **arguments)
            except UnsatisfiedAssumption:
                raise  # hypothesis does not count it, nor do we
            except BaseException:
                COUNTS[name] += 1
                raise
            COUNTS[name] += 1
            assert_same(before, snapshot())

        options = settings(
            max_examples=max(1, -(-CASES * share // WHOLE)),
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors),
        )
        digest = hashlib.sha256(f"{SEED} {name}".encode()).digest()
        return seed(int.from_bytes(digest[:8], "big"))(options(given(**strategies)(case)))

    return decorate


def generator(number: int) -> torch.Generator:
    """A generator of its own, so that torch's global one stays as it is."""
    return torch.Generator().manual_seed(number)


KINDS = ("normal", "whole", "huge", "tiny", "sparse", "twins", "zeros")
kinds = st.sampled_from(KINDS)


def numbers(kind: str, number: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Normal numbers; small integers; sizes of 1e25 or 1e-25; mostly 0; rows (last dimension but one) that repeat."""
    draw = generator(number)
    values = torch.randn(*shape, generator=draw, dtype=torch.float64)
    if kind == "whole":
        values = torch.randint(-3, 4, shape, generator=draw).double()
    elif kind == "huge":
        values = values * 1e25
    elif kind == "tiny":
        values = values * 1e-25
    elif kind == "sparse":
        values = values * (torch.rand(*shape, generator=draw) < 0.3)
    elif kind == "twins" and len(shape) > 1:
        chosen = torch.randint(max(1, shape[-2] // 2), (shape[-2],), generator=draw)
        values = values.index_select(-2, chosen)
    elif kind == "zeros":
        values = torch.zeros(*shape, dtype=torch.float64)
    return values.to(dtype)


def masks(number: int, batch: int, columns: int) -> torch.Tensor:
    """(batch, columns) booleans, at least one true in every row, true anywhere."""
    draw = generator(number)
    mask = torch.rand(batch, columns, generator=draw) < 0.6
    mask[torch.arange(batch), torch.randint(columns, (batch,), generator=draw)] = True
    return mask


def assert_near(
    one: torch.Tensor, other: torch.Tensor, tolerance: float = 1e-9, message: str = "", size: float = 0.0
) -> None:
    """Equal up to `tolerance`, relative to the largest of all numbers and of `size`, and no number is NaN."""
    one, other = one.detach().double(), other.detach().double()
    assert one.shape == other.shape, f"{message} shapes {tuple(one.shape)} and {tuple(other.shape)}"
    if not one.numel():
        return
    assert bool(torch.isfinite(one).all()), f"{message} {int((~torch.isfinite(one)).sum())} numbers are not finite"
    assert bool(torch.isfinite(other).all()), f"{message} {int((~torch.isfinite(other)).sum())} numbers are not finite"
    size = max(size, float(one.abs().max()), float(other.abs().max()))
    apart = float((one - other).abs().max())
    assert apart <= tolerance * size, f"{message} apart by {apart:.3g} where the largest is {size:.3g}"
