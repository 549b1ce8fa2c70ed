"""The settings of a NeuroGame layer, and its two presets."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from spinformer._base import checks
from spinformer.games import INDICES, EstimatorName, ProposalName, Weighting
from spinformer.ising import Ising, MeanField, mean_field
from spinformer.ising.mean_field import Backward, Correction, Solver, check_solver

# Above this many tokens `couplings="auto"` takes the linear form (research/results/crossover.json).
AUTO_LINEAR = 128
# The index of pairs that has a low-rank form.
LOW_RANK_INDEX = "BII"
SOLVER_OPTIONS = ("max_steps", "damping", "tol", "correction", "backward", "solver")


@dataclass(frozen=True)
class Settings:
    """How the game is played and the spins are solved; `docs/deviations.md` gives the reason for each default.

    values: "raw", v_i = W_v x_i, or "normed", v_i = W_v layernorm(x_i). activation: f of NGT Eq. 2.
    player_indices: names of two indices of players, phi and beta of NGT Eq. 6; pair_index: name of an index of pairs,
    J_ij of NGT Eq. 9; each as registered in `spinformer.games.INDICES`.
    weighting, proposal, estimator: as in `spinformer.games.estimate_values`.
    units: "paper", fields of L1 norm 1 and couplings as they are; or "share", both in units of a player's mean share:
    h_i = gain (n J_i - 1), and couplings at most a learned part of the critical strength.
    normalisation: phi and beta over their "L1" norm (NGT Algorithm 1), or over their "sum" (NGT Eq. 6), which may be
    near 0 or negative where some values are; where it is 0, they are.
    gate: lambda of every token, from 0 (beta alone) to 1 (phi alone); None, learned (NGT Eq. 7).
    couplings: "dense", "linear" (low rank, for pair_index "BII"), "none" (J_ij = 0), or "auto": linear where there is
    such a form and more than AUTO_LINEAR columns, padding counted. Name a form where an answer must not depend on its
    batch's padding.
    solver, correction, backward, damping, max_steps, tol: as in `spinformer.ising.mean_field`.
    pooling: "sum", z = sum alpha_i v_i, or "mean", the same over sum alpha_i.
    draws: in training, "own" coalitions for each row of a batch, or "shared" ones, so that a row's answer depends
    neither on its position in the batch nor on the process that holds it. Evaluation always shares them.
    special_tokens: whether special tokens play; learn_temperature: whether gamma is a parameter.
    """

    values: Literal["raw", "normed"] = "normed"
    activation: Literal["identity", "relu", "tanh", "log1p"] = "identity"
    player_indices: tuple[str, str] = ("SV", "BV")
    pair_index: str = "BII"
    weighting: Weighting = "uniform"
    proposal: ProposalName = "uniform"
    estimator: EstimatorName = "auto"
    units: Literal["paper", "share"] = "share"
    normalisation: Literal["L1", "sum"] = "L1"
    gate: float | None = None
    couplings: Literal["auto", "dense", "linear", "none"] = "auto"
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
        self._check_indices()
        for name in ("special_tokens", "learn_temperature"):
            checks.flag(name, getattr(self, name))
        if self.gate is not None:
            checks.number("gate", self.gate)
        if self.gate is not None and not 0 <= self.gate <= 1:
            raise ValueError(f"gate must be None or in [0, 1]; got {self.gate}")
        check_solver(self.max_steps, self.damping, self.tol)
        if self.estimator == "control" and (self.weighting, self.proposal) != ("uniform", "uniform"):
            raise ValueError("estimator='control' is for weighting='uniform' and proposal='uniform'")

    @property
    def controlled(self) -> bool:
        """Whether the control variate is used, in a norm game."""
        return self.estimator in ("auto", "control") and self.weighting == self.proposal == "uniform"

    @property
    def usual_solver(self) -> bool:
        """Whether the mean field is solved by steps of all spins at once and differentiated at its fixed point."""
        return (self.correction, self.backward) == ("naive", "implicit") and self.solver != "sequential"

    def linear(self, columns: int) -> bool:
        """Whether the couplings of a norm game of so many columns take the low-rank form."""
        if self.couplings == "auto":
            return self.pair_index == LOW_RANK_INDEX and columns > AUTO_LINEAR
        return self.couplings == "linear"

    def solve(self, ising: Ising) -> MeanField:
        """The mean field of `ising` with these solver options."""
        return mean_field(ising, **{option: getattr(self, option) for option in SOLVER_OPTIONS})

    def _check_indices(self) -> None:
        names: object = self.player_indices
        if not isinstance(names, tuple | list) or len(names) != 2:
            raise ValueError(f"player_indices must be two names, of phi and beta; got {names!r}")
        object.__setattr__(self, "player_indices", tuple(names))  # JSON has lists
        orders = [*((name, 1, "player_indices") for name in names), (self.pair_index, 2, "pair_index")]
        for name, order, option in orders:
            known = [index.name for index in INDICES.values() if index.order == order]
            checks.choice(option, name, known)
        if self.couplings == "linear" and self.pair_index != LOW_RANK_INDEX:
            raise ValueError(
                f"couplings='linear' is for pair_index {LOW_RANK_INDEX!r}; got {self.pair_index!r}, which takes 'dense'"
            )


PRESETS: dict[str, Settings] = {
    "default": Settings(),
    "paper": Settings(
        values="raw",
        weighting="gibbs",
        estimator="plain",
        units="paper",
        couplings="dense",
        solver="damped",
        backward="unrolled",
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
