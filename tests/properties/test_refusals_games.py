"""Bad arguments to games and Ising models: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache

import torch

from spinformer.games import (
    INDICES,
    Index,
    NormGame,
    SumGame,
    TableGame,
    estimate_all,
    estimate_low_rank,
    estimate_norm_values,
    estimate_values,
    exact_values,
    low_rank_from_sums,
    make_proposal,
)
from spinformer.ising import (
    DenseCouplings,
    Ising,
    LowRankCouplings,
    exact_magnetization,
    free_energy,
    glauber,
    log_partition,
    mean_field,
)
from tests.properties.cases import generator, law, masks, numbers, seeds
from tests.properties.refusals import (
    Call,
    bad_cases,
    count,
    instance,
    mask,
    name,
    number,
    per_sample,
    refused,
    refused_at,
    seed,
    tensor,
    values,
)

BATCH, PLAYERS, DIM = 2, 5, 3


def vectors(seed: int) -> torch.Tensor:
    return numbers("normal", seed, BATCH, PLAYERS, DIM)


def norm(seed: int) -> NormGame:
    return NormGame(vectors(seed), masks(seed, BATCH, PLAYERS))


def ising(seed: int) -> Ising:
    pairs = numbers("normal", seed, BATCH, PLAYERS, PLAYERS)
    return Ising(numbers("normal", seed, BATCH, PLAYERS), pairs + pairs.mT, 0.8, masks(seed, BATCH, PLAYERS))


def low_rank(seed: int) -> dict:
    return {"factors": vectors(seed), "weights": numbers("normal", seed, BATCH, DIM)}


def estimating(seed: int) -> dict:
    options = {"weighting": "uniform", "proposal": "uniform", "estimator": "auto", "temperature": torch.ones(BATCH)}
    return {"game": norm(seed), "index": "SV", "budget": 8, "seed": torch.tensor(seed), **options}


def drawing(seed: int) -> dict:
    return {"name": "uniform", "game": norm(seed), "index": "SV", "temperature": torch.ones(BATCH).double()}


def in_low_rank(seed: int) -> dict:
    options = {"weighting": "uniform", "temperature": torch.ones(BATCH).double(), "proposal": "uniform"}
    return {"game": norm(seed), "budget": 8, **options, "seed": torch.tensor(seed), "shared": True}


def from_sums(seed: int) -> dict:
    game = norm(seed)
    return {"game": game, "sums": game.sums(torch.ones(BATCH, 4, PLAYERS, dtype=torch.bool)), "log_weight": None}


def spins(seed: int) -> dict:
    return {"ising": ising(seed)}


COALITIONS = {
    "numbers": torch.ones(4, PLAYERS),
    "too few columns": torch.ones(4, PLAYERS - 1).bool(),
    "one dimension": torch.ones(PLAYERS).bool(),
    "another batch": torch.ones(BATCH + 1, 4, PLAYERS).bool(),
    "a list": [[True] * PLAYERS],
    "none": None,
}
SEED = seed()


@lru_cache(maxsize=1)
def calls() -> tuple[Call, ...]:
    new = {"name": "XX", "order": 1, "title": "x", "log_weight": lambda m, s: torch.zeros_like(s)}
    solver = {"max_steps": count(1), "damping": number(0.0, 1.0), "tol": number(), "init": tensor(0, 1, optional=True)}
    states = {"spins": tensor(0, 1, dims=True)}
    return (
        Call("TableGame", TableGame, lambda s: {"values": numbers("normal", s, 2, 8)}, {"values": tensor(1)}),
        Call(
            "TableGame()",
            lambda seed, c: TableGame(numbers("normal", seed, 2, 32))(c),
            lambda s: {"seed": s},
            {"c": values(**COALITIONS)},
        ),
        Call(
            "NormGame",
            NormGame,
            lambda s: {"values": vectors(s), "mask": masks(s, BATCH, PLAYERS), "scale": torch.ones(BATCH)},
            {"values": tensor(), "mask": mask(), "activation": name(), "scale": per_sample()},
        ),
        Call("NormGame()", lambda seed, c: norm(seed)(c), lambda s: {"seed": s}, {"c": values(**COALITIONS)}),
        Call(
            "SumGame",
            SumGame,
            lambda s: {"features": vectors(s), "readout": lambda sums: sums.sum(-1), "mask": masks(s, BATCH, PLAYERS)},
            {"features": tensor(), "mask": mask(), "readout": instance()},
        ),
        Call(
            "Index",
            Index,
            lambda s: new,
            {
                "order": values(three=3, text="1", nothing=None),
                "log_weight": instance(),
                "name": values(number=3, nothing=None),
                "bias": instance(optional=True),
            },
        ),
        Call("INDICES", lambda name: INDICES[name], lambda s: {}, {"name": name()}),
        Call("INDICES.unregister", lambda name: INDICES.unregister(name), lambda s: {}, {"name": name()}),
        Call("INDICES.register", lambda item: INDICES.register(item), lambda s: {}, {"item": instance()}),
        Call(
            "exact_values",
            exact_values,
            lambda s: {"game": norm(s), "index": "SV", "weighting": "gibbs", "temperature": torch.ones(BATCH)},
            {"game": instance(), "index": name(), "weighting": name(), "temperature": per_sample()},
        ),
        Call(
            "estimate_values",
            estimate_values,
            estimating,
            {
                **{"game": instance(), "index": name(), "budget": count(2), "weighting": name(), "proposal": name()},
                **{"estimator": name(), "temperature": per_sample(), "chunk": count(1), "seed": seed(optional=True)},
                "generator": instance(optional=True),
            },
        ),
        Call(
            "make_proposal",
            make_proposal,
            drawing,
            {"name": name(), "game": instance(), "index": name(), "temperature": per_sample(), "group": count(1)},
        ),
        Call(
            "estimate_all",
            estimate_all,
            lambda s: {"game": norm(s), "budget": 8, "seed": torch.tensor(s)},
            {"game": instance(), "budget": count(0), "seed": SEED, "tolerance": number()},
        ),
        Call(
            "estimate_norm_values",
            estimate_norm_values,
            lambda s: {"game": norm(s), "budget": 8, "seed": torch.tensor(s), "shared": True},
            {"game": instance(), "budget": count(2), "seed": SEED},
        ),
        Call(
            "estimate_low_rank",
            estimate_low_rank,
            in_low_rank,
            {
                **{"game": instance(), "budget": count(2), "weighting": name(), "temperature": per_sample()},
                **{"proposal": name(), "seed": SEED},
            },
        ),
        Call(
            "low_rank_from_sums",
            low_rank_from_sums,
            from_sums,
            {"game": instance(), "sums": instance(), "log_weight": instance(optional=True)},
        ),
        Call("DenseCouplings", DenseCouplings, lambda s: {"matrix": ising(s).couplings.dense()}, {"matrix": tensor(2)}),
        Call("LowRankCouplings", LowRankCouplings, low_rank, {"factors": tensor(0, 2), "weights": tensor(0, 1)}),
        Call(
            "matvec",
            lambda seed, m: ising(seed).couplings.matvec(m),
            lambda s: {"seed": s, "m": numbers("normal", s, BATCH, PLAYERS)},
            {"m": tensor(0, 1, finite=False)},
        ),
        Call(
            "Ising",
            Ising,
            lambda s: {
                "fields": numbers("normal", s, BATCH, PLAYERS),
                "couplings": ising(s).couplings.dense(),
                "temperature": torch.ones(BATCH),
                "mask": masks(s, BATCH, PLAYERS),
            },
            {"fields": tensor(0, 1), "couplings": tensor(0, 1, 2), "temperature": per_sample(), "mask": mask()},
        ),
        Call(
            "Ising.energy",
            lambda seed, spins: ising(seed).energy(spins),
            lambda s: {"seed": s, "spins": numbers("normal", s, BATCH, PLAYERS)},
            states,
        ),
        Call(
            "Ising.effective_field",
            lambda seed, spins: ising(seed).effective_field(spins),
            lambda s: {"seed": s, "spins": numbers("normal", s, BATCH, PLAYERS)},
            states,
        ),
        Call(
            "Ising.update",
            lambda seed, spins: ising(seed).update(spins),
            lambda s: {"seed": s, "spins": numbers("normal", s, BATCH, PLAYERS)},
            states,
        ),
        Call(
            "Ising.reaction",
            lambda seed, spins: ising(seed).reaction(spins),
            lambda s: {"seed": s, "spins": numbers("normal", s, BATCH, PLAYERS)},
            states,
        ),
        Call(
            "Ising.mean_field_free_energy",
            lambda seed, spins: ising(seed).mean_field_free_energy(spins),
            lambda s: {"seed": s, "spins": numbers("normal", s, BATCH, PLAYERS)},
            states,
        ),
        *(Call(f.__name__, f, spins, {"ising": instance()}) for f in (exact_magnetization, log_partition, free_energy)),
        Call(
            "glauber",
            glauber,
            lambda s: {"ising": ising(s), "sweeps": 1, "chains": 1, "burn_in": 0, "generator": generator(s)},
            {
                "ising": instance(),
                "sweeps": count(1),
                "chains": count(1),
                "burn_in": count(0),
                "generator": instance(optional=True),
            },
        ),
        Call(
            "mean_field",
            mean_field,
            lambda s: {"ising": ising(s), "init": numbers("normal", s, BATCH, PLAYERS).tanh()},
            {"ising": instance(), **solver, "correction": name(), "backward": name(), "solver": name()},
        ),
    )


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    return bad_cases(*calls())


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(
        f"games.{one}"
        for one in ("exact_values", "estimate_values", "estimate_all", "TableGame", "NormGame", "SumGame")
    ),
    *(f"games.{one}" for one in ("Index", "INDICES", "make_proposal", "estimate_norm_values", "estimate_low_rank")),
    *(f"ising.{one}" for one in ("Ising", "DenseCouplings", "LowRankCouplings", "mean_field", "glauber")),
    share=30,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
