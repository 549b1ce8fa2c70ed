"""The choices that make a NeuroGame layer, and the two presets of them."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from spinformer import checks
from spinformer.games import EstimatorName, ProposalName, Weighting
from spinformer.ising.mean_field import Backward, Correction, Solver

# Above this many tokens `couplings="auto"` takes the linear form (results/crossover.json).
AUTO_LINEAR = 128


@dataclass(frozen=True)
class Settings:
    """How the game is played and the spins are solved; `docs/deviations.md` gives the reason for each default.

    values: "raw", v_i = W_v x_i, or "normed", v_i = W_v layernorm(x_i). activation: the paper's f.
    weighting, proposal, estimator: as in `spinformer.games.estimate_values`.
    units: "paper", fields of L1 norm 1 and couplings as they are; or "share", both in units of a player's mean share:
    h_i = gain (n J_i - 1), and couplings at most a learned part of the critical strength.
    couplings: "dense", "linear" (low rank), or "auto", which takes the linear form above AUTO_LINEAR columns, padding
    counted; name a form where an answer must not depend on how far its batch is padded.
    solver, correction, backward, damping, max_steps, tol: as in `spinformer.ising.mean_field`.
    pooling: "sum", z = sum alpha_i v_i, or "mean", the same over sum alpha_i.
    draws: in training, "own" coalitions for each row of a batch, or "shared" ones, so that a row's answer depends
    neither on its place in the batch nor on the process that holds it; evaluation always shares them.
    special_tokens: whether special tokens play; learn_temperature: whether gamma is a parameter.
    """

    values: Literal["raw", "normed"] = "normed"
    activation: Literal["identity", "relu", "tanh", "log1p"] = "identity"
    weighting: Weighting = "uniform"
    proposal: ProposalName = "uniform"
    estimator: EstimatorName = "auto"
    units: Literal["paper", "share"] = "share"
    couplings: Literal["auto", "dense", "linear"] = "auto"
    solver: Solver = "anderson"
    correction: Correction = "naive"
    backward: Backward = "implicit"
    damping: float = 0.7
    max_steps: int = 25
    tol: float = 1e-4
    pooling: Literal["sum", "mean"] = "mean"
    draws: Literal["own", "shared"] = "own"
    special_tokens: bool = True
    learn_temperature: bool = True

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            if get_origin(kind) is Literal:
                checks.choice(name, getattr(self, name), get_args(kind))
        if self.estimator == "control" and (self.weighting, self.proposal) != ("uniform", "uniform"):
            raise ValueError("estimator='control' is for weighting='uniform' and proposal='uniform'")

    @property
    def controlled(self) -> bool:
        """Whether the control variate is used, in a norm game."""
        return self.estimator in ("auto", "control") and self.weighting == self.proposal == "uniform"


PRESETS: dict[str, Settings] = {
    "default": Settings(),
    "paper": Settings(
        values="raw",
        weighting="gibbs",
        estimator="plain",
        units="paper",
        couplings="dense",
        solver="damped",
        pooling="sum",
        learn_temperature=False,
    ),
}


def settings(preset: str, overrides: dict[str, Any]) -> Settings:
    """The preset with these fields changed; a name that is none of them is an error that lists them all."""
    checks.choice("preset", preset, tuple(PRESETS))
    names = [field.name for field in fields(Settings)]
    unknown = sorted(set(overrides) - set(names))
    if unknown:
        raise TypeError(f"unknown option(s) {', '.join(unknown)}; there are: {', '.join(names)}")
    return replace(PRESETS[preset], **overrides)
