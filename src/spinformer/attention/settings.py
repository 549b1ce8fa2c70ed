"""The choices that make a NeuroGame layer, and the two presets of them."""

from dataclasses import dataclass, fields, replace
from typing import Any

from spinformer import checks

# Above this many tokens `couplings="auto"` takes the linear form (results/crossover.json).
AUTO_LINEAR = 128

CHOICES: dict[str, tuple[str, ...]] = {
    "values": ("raw", "normed"),
    "activation": ("identity", "relu", "tanh", "log1p"),
    "weighting": ("uniform", "gibbs"),
    "proposal": ("uniform", "tilted"),
    "estimator": ("auto", "plain", "paired", "control"),
    "units": ("paper", "share"),
    "couplings": ("auto", "dense", "linear"),
    "solver": ("damped", "anderson", "sequential"),
    "correction": ("naive", "tap"),
    "backward": ("implicit", "unrolled"),
    "pooling": ("sum", "mean"),
}


@dataclass(frozen=True)
class Settings:
    """How the game is played and the spins are solved; `docs/deviations.md` gives the reason for each default.

    values: "raw", v_i = W_v x_i, or "normed", v_i = W_v layernorm(x_i). activation: the paper's f.
    weighting, proposal, estimator: as in `spinformer.games.estimate_values`.
    units: "paper", fields of L1 norm 1 and couplings as they are; or "share", both in units of a player's mean share:
    h_i = gain (n J_i - 1), and couplings at most a learned part of the critical strength.
    couplings: "dense", "linear" (low rank), or "auto", by the number of tokens.
    solver, correction, backward, damping, max_steps, tol: as in `spinformer.ising.mean_field`.
    pooling: "sum", z = sum alpha_i v_i, or "mean", the same over sum alpha_i.
    special_tokens: whether special tokens play; learn_temperature: whether gamma is a parameter.
    """

    values: str = "normed"
    activation: str = "identity"
    weighting: str = "uniform"
    proposal: str = "uniform"
    estimator: str = "auto"
    units: str = "share"
    couplings: str = "auto"
    solver: str = "anderson"
    correction: str = "naive"
    backward: str = "implicit"
    damping: float = 0.7
    max_steps: int = 25
    tol: float = 1e-4
    pooling: str = "mean"
    special_tokens: bool = True
    learn_temperature: bool = True

    def __post_init__(self) -> None:
        for name, valid in CHOICES.items():
            checks.choice(name, getattr(self, name), valid)
        if self.estimator == "control" and (self.weighting, self.proposal) != ("uniform", "uniform"):
            raise ValueError("estimator='control' is for weighting='uniform' and proposal='uniform'")


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
