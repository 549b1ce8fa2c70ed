"""Bad arguments to the two layers: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache
from types import SimpleNamespace

import torch

from spinformer.attention import AttractorAttention, NeuroGameAttention, Replay, Settings
from tests.properties.cases import law, masks, numbers, seeds
from tests.properties.refusals import (
    INF,
    NAN,
    Call,
    bad_cases,
    both,
    count,
    instance,
    mask,
    name,
    number,
    refused,
    refused_at,
    tensor,
    values,
)

BATCH, SITES, DIM = 3, 6, 4
REAL = number(-INF, INF)
PAIR = values(
    text="2x3",
    one=(2,),
    three=(2, 1, 3),
    fraction=(1.5, 4),
    zero=(0, 6),
    negative=(-2, -3),
    rubbish=[None, 2],
)


@lru_cache(maxsize=1)
def things() -> SimpleNamespace:
    """Layers that are only read."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = NeuroGameAttention(DIM, 2).eval()
    return SimpleNamespace(layer=layer, attractor=AttractorAttention(SITES, DIM))


def spins(seed: int) -> torch.Tensor:
    return numbers("normal", seed, BATCH, SITES, DIM, dtype=torch.float32)


def hidden(seed: int) -> torch.Tensor:
    return masks(seed, BATCH, SITES)


# A mask of hidden tokens: all may be hidden, and it must be boolean.
HIDDEN = values(
    integers=torch.ones(BATCH, SITES).long(),
    numbers=torch.ones(BATCH, SITES),
    narrow=torch.ones(BATCH, SITES - 1).bool(),
    short=torch.ones(BATCH - 1, SITES).bool(),
    long=torch.ones(BATCH, SITES, 1).bool(),
    a_list=[[True] * SITES] * BATCH,
    text="rubbish",
)
X = tensor(1, 2)
SOME_X = tensor(1, 2, empty=True)
DRAW = instance(optional=True)


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    these = things()
    build = {"dim": DIM, "heads": 2}
    attend = lambda seed: {"x": spins(seed), "mask": masks(seed, BATCH, SITES), "special": ~masks(seed, BATCH, SITES)}  # noqa: E731
    return bad_cases(
        Call(
            "NeuroGameAttention",
            NeuroGameAttention,
            lambda seed: build,
            {
                **{"dim": count(1), "heads": count(1), "head_dim": count(1, optional=True), "samples": count(2)},
                **{"eval_samples": count(2), "preset": name(), "nonsense": values(given=3)},
                "temperature": both(
                    number(), values(three=[1.0, 1.0, 1.0], words=["a", "b"], bad=[1.0, NAN], nested=[[1.0]])
                ),
            },
        ),
        Call(
            "Settings",
            Settings,
            lambda seed: {},
            {
                **{one: name() for one in ("values", "activation", "pair_index", "weighting", "proposal", "estimator")},
                **{
                    one: name()
                    for one in (
                        "units",
                        "normalisation",
                        "couplings",
                        "solver",
                        "correction",
                        "backward",
                        "pooling",
                        "draws",
                    )
                },
                "player_indices": values(
                    one="SV", a_pair=("SV", "BII"), three=("SV", "BV", "SV"), nothing=None, number=3
                ),
                **{"gate": number(0.0, 1.0, closed=True, optional=True), "damping": number(0.0, 1.0)},
                **{"max_steps": count(1), "tol": number(), "special_tokens": values(text="no", number=3)},
                "learn_temperature": values(text="no", nothing=None),
            },
        ),
        Call(
            "NeuroGameAttention()",
            these.layer,
            attend,
            {"x": tensor(2), "mask": mask(), "generator": DRAW},
        ),
        Call("Replay", Replay, lambda seed: {"layer": these.layer}, {"layer": instance()}),
        Call("Replay()", Replay(these.layer), attend, {"x": tensor(2), "mask": mask()}),
        Call(
            "AttractorAttention",
            AttractorAttention,
            lambda seed: {"n_tokens": SITES, "dim": DIM, "seed": seed},
            {
                **{"n_tokens": count(2), "dim": count(1), "shape": name(), "normalisation": name()},
                **{"strength": REAL, "inertia": REAL, "clamp": number(-INF, INF, optional=True), "seed": count(0)},
            },
        ),
        *(
            Call(
                f"AttractorAttention {shape}",
                AttractorAttention,
                lambda seed, shape=shape: {"n_tokens": SITES, "dim": DIM, "shape": shape, "grid": (2, 3)},
                {"rank": count(1)}
                if shape != "relative"
                else {"grid": PAIR, "reach": both(values(text="ab", one=(2,), fraction=(0.5, 1), negative=(-1, 2)))},
            )
            for shape in ("low-rank", "shared", "relative")
        ),
        *(
            Call(
                f"AttractorAttention.{method}",
                getattr(these.attractor, method),
                lambda seed: {"x": spins(seed)},
                {"x": X},
            )
            for method in ("local_energy", "energy", "attention", "step", "step_input", "forward")
        ),
        *(
            Call(
                f"AttractorAttention.{method}",
                getattr(these.attractor, method),
                lambda seed: {"x": spins(seed)},
                {"x": SOME_X},
            )
            for method in ("coupling_gradient", "parameter_gradient")
        ),
        Call(
            "AttractorAttention.step mask",
            these.attractor.step,
            lambda seed: {"x": spins(seed), "mask": hidden(seed)},
            {"mask": HIDDEN},
        ),
        Call(
            "AttractorAttention.retrieve",
            these.attractor.retrieve,
            lambda seed: {"x": spins(seed), "steps": 2, "mask": hidden(seed)},
            {"x": X, "steps": count(0), "mask": HIDDEN},
        ),
        Call(
            "AttractorAttention.resize",
            AttractorAttention(6, 2, shape="relative", grid=(2, 3)).resize,
            lambda seed: {"grid": (2, 2)},
            {"grid": PAIR},
        ),
    )


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"attention.{one}" for one in ("NeuroGameAttention", "AttractorAttention", "Settings")),
    share=25,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
