"""Bad arguments to vector spins and their couplings: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache
from types import SimpleNamespace

import torch

from spinformer.attractor import (
    FullCouplings,
    LowRankSpinCouplings,
    RelativeCouplings,
    SharedCouplings,
    add_noise,
    attention,
    energy_gradient,
    field_gradient,
    hide_tokens,
    layer_norm,
    local_energy,
    standardise,
    step,
    unit,
)
from tests.properties.cases import generator, law, seeds
from tests.properties.refusals import (
    INF,
    Call,
    bad_cases,
    both,
    count,
    instance,
    name,
    number,
    refused,
    refused_at,
    tensor,
    values,
)
from tests.properties.test_refusals_layers import (
    BATCH,
    DIM,
    DRAW,
    HIDDEN,
    PAIR,
    REAL,
    SITES,
    SOME_X,
    X,
    hidden,
    spins,
)

IMAGE = (1, 4, 4)


@lru_cache(maxsize=1)
def things() -> SimpleNamespace:
    """Couplings and models that are only read."""
    return SimpleNamespace(
        couplings=FullCouplings(SITES, DIM, generator=generator(0)),
    )


def images(seed: int) -> torch.Tensor:
    return torch.rand(BATCH, *IMAGE, generator=generator(seed))


def of_couplings(seed: int) -> dict:
    return {"couplings": things().couplings, "x": spins(seed)}


def gradient(seed: int) -> dict:
    into = {name: torch.zeros_like(one) for name, one in things().couplings.storage().items()}
    return {**of_couplings(seed), "into": into}


INTO = values(
    nothing=None,
    a_list=[],
    a_tensor=torch.zeros(3),
    another_name={"rubbish": torch.zeros(2)},
    another_shape={"weight": torch.zeros(2)},
    no_tensor={"weight": "rubbish"},
)
SITES_OF = values(
    text="rubbish", number=3, beyond=range(3, SITES + 1), before=range(-2, 2), a_list=[0, 1], none_left=range(2, 2)
)


def spin_calls() -> tuple[Call, ...]:
    free = {"strength": REAL, "clamp": number(-INF, INF, optional=True)}
    sizes = {"n_tokens": count(2), "dim": count(1), "generator": DRAW}
    ranked = lambda seed: {"n_tokens": SITES, "dim": DIM, "rank": 2}  # noqa: E731
    return (
        Call("FullCouplings", FullCouplings, lambda seed: {"n_tokens": SITES, "dim": DIM}, sizes),
        Call("LowRankSpinCouplings", LowRankSpinCouplings, ranked, {**sizes, "rank": count(1)}),
        Call("SharedCouplings", SharedCouplings, ranked, {**sizes, "rank": count(1)}),
        Call(
            "RelativeCouplings",
            RelativeCouplings,
            lambda seed: {"grid": (2, 3), "dim": DIM},
            {
                "grid": both(PAIR, values(single=(1, 1))),
                "dim": count(1),
                "reach": values(text="ab", negative=(-1, 0), fraction=(0.5, 1)),
                "generator": DRAW,
            },
        ),
        Call(
            "RelativeCouplings.resize",
            RelativeCouplings((2, 3), 2, generator=generator(0)).resize,
            lambda seed: {"grid": (2, 2)},
            {"grid": both(PAIR, values(single=(1, 1)))},
        ),
        Call(
            "FullCouplings.lengths",
            lambda per: things().couplings.lengths(things().couplings.storage(), per),
            lambda seed: {"per": "site"},
            {"per": name()},
        ),
        Call("attention", attention, of_couplings, {"couplings": instance(), "x": X, **free}),
        Call(
            "local_energy",
            local_energy,
            of_couplings,
            {"couplings": instance(), "x": X, **free, "chunk": count(1, optional=True)},
        ),
        Call(
            "step",
            step,
            of_couplings,
            {"couplings": instance(), "x": X, **free, "inertia": REAL, "chunk": count(1, optional=True)},
        ),
        Call(
            "energy_gradient",
            energy_gradient,
            gradient,
            {
                "couplings": instance(),
                "x": SOME_X,
                "into": INTO,
                **free,
                "sites": SITES_OF,
                "chunk": count(1, optional=True),
            },
        ),
        Call(
            "field_gradient",
            field_gradient,
            lambda seed: {**gradient(seed), "visible": spins(seed + 1)},
            {
                "couplings": instance(),
                "x": SOME_X,
                "visible": tensor(0, 1, 2),
                "into": INTO,
                "strength": REAL,
                "sites": SITES_OF,
                "chunk": count(1, optional=True),
            },
        ),
        Call("unit", unit, lambda seed: {"x": spins(seed)}, {"x": tensor(dims=False)}),
        Call("layer_norm", layer_norm, lambda seed: {"x": spins(seed)}, {"x": tensor(dims=False)}),
        Call(
            "standardise",
            standardise,
            lambda seed: {"x": spins(seed), "mask": hidden(seed)},
            {"x": tensor(0, 1), "mask": HIDDEN},
        ),
        Call(
            "hide_tokens",
            hide_tokens,
            lambda seed: {"batch": 2, "n_tokens": 4, "fraction": 0.5, "generator": generator(seed)},
            {"batch": count(0), "n_tokens": count(1), "fraction": number(0.0, 0.999, closed=True), "generator": DRAW},
        ),
        Call(
            "add_noise",
            add_noise,
            lambda seed: {"images": images(seed), "variance": 0.1, "generator": generator(seed)},
            {
                "images": both(tensor(), values(one_pixel=torch.rand(2, 1, 1, 1))),
                "variance": number(0.0, INF, closed=True),
                "generator": DRAW,
            },
        ),
    )


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    return bad_cases(*spin_calls())


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"attractor.{one}" for one in ("attention", "local_energy", "step", "energy_gradient", "field_gradient", "unit")),
    *(f"attractor.{one}" for one in ("layer_norm", "standardise", "hide_tokens", "add_noise")),
    share=25,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
