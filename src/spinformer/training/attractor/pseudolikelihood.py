"""One training step of the attractor's couplings: closed gradient, clip, update, constant norm (ATT section V-B).

No autograd graph is built; everything is updated in place. Memory for P parameters: the parameters, their gradient,
Adam's two moments (4 P floats) and B chunk N (d + 2) floats of workspace. The rows of full couplings are independent,
so a process that trains the sites `sites` updates only their rows, keeps moments only for them, and needs nothing from
the other processes: clipping and the constant norm are per site.

The optimiser "power" belongs to the energy with a constant norm c:

    J <- c unit((1 - h) J / c - h g / |g|),   g = dE/dJ,   h: the rate

-E is convex in J, so with all images in one batch and h = 1 this is the power method for a convex function on a sphere:
no step raises E, and it rests where J is parallel to -g, the condition of a constrained minimum (`alignment`). With
small batches h falls to 0, and the noise of the batches averages out.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import OPTIMISERS
from spinformer.attractor.couplings import FullCouplings, SpinCouplings
from spinformer.attractor.gradient import add_energy_gradient, add_field_gradient, zeros
from spinformer.training.checkpoint import check_optimizer, check_step
from spinformer.training.seeding import step_generator, step_seed

OBJECTIVES = ("energy", "field")
STRIDE = 1 << 32


@dataclass(frozen=True)
class AttractorRecipe:
    """How to train couplings.

    objective: "energy" (ATT Eq. 7) or "field" (see `spinformer.attractor.gradient`); strength: λ in training; decay:
    of the learning rate, "constant" or "linear" to zero; clip: bound on the norm of each site's gradient; hold: whose
    norm is kept constant, that of each "site", of each "pair", or of none (None); optimiser: "power", for the energy
    with a constant norm, "sgd" or "adam"; hidden, noise: with "field", the
    fraction of tokens that are hidden from the others and the standard deviation of the noise on them, in units of the
    spins' root mean square component; sites: how many random sites a step trains (None: all); chunk: how many sites
    are computed at once.
    """

    objective: str = "energy"
    strength: float = 5.0
    epochs: int = 20
    batch: int = 32
    rate: float = 1.0
    optimiser: str = "power"
    decay: str = "linear"
    clip: float | None = None
    hold: str | None = "site"
    hidden: float = 0.0
    noise: float = 0.0
    sites: int | None = None
    chunk: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("objective", self.objective, OBJECTIVES),
            ("optimiser", self.optimiser, tuple(OPTIMISERS)),
            ("decay", self.decay, ("constant", "linear")),
            ("hold", self.hold, ("site", "pair", None)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} is one of {', '.join(map(str, allowed))}; got {value!r}")
        for count in ("epochs", "batch", "sites", "chunk"):
            if count in ("epochs", "batch") or getattr(self, count) is not None:
                checks.at_least(count, getattr(self, count), 1)
        checks.at_least("seed", self.seed, 0)
        checks.positive("rate", self.rate)
        for number in ("strength", "hidden", "noise"):
            checks.finite_number(number, getattr(self, number))
        if self.clip is not None:
            checks.positive("clip", self.clip)
        if not 0 <= self.hidden < 1 or self.noise < 0:
            raise ValueError(f"expected hidden in [0, 1) and noise >= 0; got {self.hidden} and {self.noise}")
        if self.optimiser == "power" and (self.objective != "energy" or self.hold is None or self.rate > 1):
            raise ValueError(
                "optimiser 'power' needs objective 'energy', a norm to hold and a rate of at most 1; "
                f"got {self.objective!r}, {self.hold!r} and {self.rate:g}"
            )


class Stepper:
    """The optimiser of a run and its steps.

    steps: how many there will be, for the decay; sites: those that this process trains; reduce: whether each process
    has a part of the batch; graph: whether a step on a GPU may run as one CUDA graph.
    """

    def __init__(
        self,
        couplings: SpinCouplings,
        recipe: AttractorRecipe,
        steps: int,
        *,
        sites: range | None = None,
        reduce: bool = False,
        graph: bool = False,
    ) -> None:
        if sites is not None and not isinstance(couplings, FullCouplings):
            raise ValueError("only full couplings shard by sites: in the other shapes sites share parameters")
        if recipe.optimiser == "power" and not couplings.linear:
            name = type(couplings).__name__
            raise ValueError(f"optimiser 'power' needs couplings that are linear in their parameters; got {name}")
        self.couplings, self.recipe, self.steps = couplings, recipe, steps
        self.sites = range(couplings.n_tokens) if sites is None else sites
        self.reduce, self.done = reduce, 0
        self.gradient = zeros(couplings)
        scattered = [name for name, tensor in couplings.storage().items() if not tensor.is_contiguous()]
        if scattered:
            raise ValueError(
                f"the memory of {', '.join(scattered)} was rearranged; build the couplings anew and copy into them"
            )
        self.rows = {name: self._own_rows(tensor) for name, tensor in couplings.storage().items()}
        self.row_gradient = {name: self._own_rows(tensor) for name, tensor in self.gradient.items()}
        device = next(iter(self.rows.values())).device
        cuda = device.type == "cuda"
        self.rate = torch.tensor(recipe.rate, device=device) if cuda else recipe.rate
        self.optimiser: torch.optim.Optimizer | None = None
        if recipe.optimiser == "adam":
            for name, tensor in self.rows.items():
                tensor.grad = self.row_gradient[name]
            self.optimiser = torch.optim.Adam(
                list(self.rows.values()), lr=self.rate, eps=1e-12, fused=True, capturable=cuda
            )
        self.norms = couplings.lengths(self.rows, recipe.hold) if recipe.hold else None
        self.generator = torch.Generator(device=device)
        self.graph = _Graph(self) if graph and cuda and self._capturable() else None

    def _own_rows(self, tensor: Tensor) -> Tensor:
        """The rows of this process's sites."""
        every = len(self.sites) == self.couplings.n_tokens
        return tensor if every else tensor[self.sites.start : self.sites.stop]

    def _capturable(self) -> bool:
        recipe = self.recipe
        return recipe.objective == "energy" and recipe.sites is None and not self.reduce

    def step(self, x: Tensor) -> Tensor:
        """One step on spins (B, N, d); returns the mean local energy, or the field's relative error."""
        self._set_rate()
        loss = self.update(x) if self.graph is None else self.graph.replay(x)
        self.done += 1
        return loss

    def _set_rate(self) -> None:
        left = 1 - self.done / self.steps if self.recipe.decay == "linear" else 1.0
        rate = self.recipe.rate * left
        if torch.is_tensor(self.rate):
            if self.recipe.decay == "linear":
                self.rate.fill_(rate)  # a group of an optimiser has this tensor
            return
        self.rate = rate
        for group in self.optimiser.param_groups if self.optimiser is not None else ():
            group["lr"] = rate

    @torch.no_grad()
    def update(self, x: Tensor) -> Tensor:
        """Gradient, clip, optimiser, J_ii = 0, constant norm."""
        for tensor in self.gradient.values():
            tensor.zero_()
        loss = self._accumulate(x)
        if self.recipe.clip is not None:
            for name, length in self.couplings.lengths(self.row_gradient, "site").items():
                self.row_gradient[name].mul_((self.recipe.clip / length.clamp(min=1e-30)).clamp(max=1))
        if self.optimiser is not None:
            self.optimiser.step()
        elif self.recipe.optimiser == "power":
            self._turn()
        else:
            for name, tensor in self.rows.items():
                tensor.sub_(self.row_gradient[name] * self.rate)
        self.couplings.clear_diagonal()
        if self.norms is not None and self.recipe.hold is not None:
            for name, length in self.couplings.lengths(self.rows, self.recipe.hold).items():
                self.rows[name].mul_(self.norms[name] / length.clamp(min=1e-30))
        return loss

    def _turn(self) -> None:
        """J <- (1 - h) J - h c g / |g|; a block without a gradient stays."""
        assert self.norms is not None
        assert self.recipe.hold is not None
        for name, length in self.couplings.lengths(self.row_gradient, self.recipe.hold).items():
            moved = self.rate * (length > 0)  # (rows, 1, ...): the rate, or 0
            self.rows[name].mul_(1 - moved).sub_(
                self.row_gradient[name] * (moved * self.norms[name] / length.clamp(min=1e-30))
            )

    def _accumulate(self, x: Tensor) -> Tensor:
        """Add the gradient of the batch to `gradient`; returns the loss."""
        recipe = self.recipe
        parts = [self.sites] if recipe.sites is None else self._random_sites()
        context = self._corrupted(x) if recipe.objective == "field" else x
        share = 1.0
        if self.reduce:
            rank, world, size = dist.get_rank(), dist.get_world_size(), len(x)
            x, context = x[rank::world], context[rank::world]
            share = len(x) / size
        loss = x.new_zeros(())
        for sites in parts if len(x) else []:
            options: dict[str, Any] = {"strength": recipe.strength, "sites": sites, "chunk": recipe.chunk}
            if recipe.objective == "energy":
                part = add_energy_gradient(self.couplings, x, self.gradient, **options)  # ATT Eq. 7
            else:
                part = add_field_gradient(self.couplings, x, context, self.gradient, **options)
            loss += part / len(parts)
        if self.reduce:
            for tensor in [*self.gradient.values(), loss]:
                tensor.mul_(share)
                dist.all_reduce(tensor)
        return loss

    def _random_sites(self) -> list[range]:
        """Those of this process among the random sites of this step."""
        n = self.couplings.n_tokens
        generator = step_generator(self.recipe.seed, self.done, STRIDE)
        drawn = torch.randperm(n, generator=generator)[: min(self.recipe.sites or 0, n)]
        return [range(i, i + 1) for i in sorted(drawn.tolist()) if i in self.sites]

    def _corrupted(self, x: Tensor) -> Tensor:
        """The spins as the others see them: with noise, and some tokens hidden."""
        self.generator.manual_seed(step_seed(self.recipe.seed, self.done, STRIDE))
        result = x
        if self.recipe.noise:
            scale = self.recipe.noise * x.square().mean().sqrt()
            result = result + scale * torch.randn(x.shape, generator=self.generator, device=x.device)
        if self.recipe.hidden:
            visible = torch.rand(*x.shape[:2], 1, generator=self.generator, device=x.device) >= self.recipe.hidden
            result = result * visible
        return result

    def state(self) -> dict[str, Any]:
        """What `restore` needs to continue to the same couplings."""
        return {
            "done": self.done,
            "rows": {name: tensor.clone() for name, tensor in self.rows.items()},
            "norms": self.norms,
            "optimiser": {} if self.optimiser is None else self.optimiser.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for name, tensor in self.rows.items():
            tensor.copy_(state["rows"][name])
        for name, tensor in (self.norms or {}).items():
            tensor.copy_(state["norms"][name])
        self.done = check_step("done", state["done"], self.steps)
        if self.optimiser is not None:
            groups = [dict(group) for group in self.optimiser.param_groups]
            self.optimiser.load_state_dict(state["optimiser"])
            for group in self.optimiser.param_groups:
                group["lr"] = self.rate
            check_optimizer(self.optimiser, groups)
        if self.graph is not None:
            self.graph = _Graph(self)


class _Graph:
    """A step as one CUDA graph, which costs one launch; batches of another size run eagerly."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.x: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.loss: Tensor | None = None
        self.eager = 0

    def replay(self, x: Tensor) -> Tensor:
        if self.eager < 3:  # the first steps allocate the optimiser's state and the libraries' workspaces
            self.eager += 1
            return self.stepper.update(x)
        if self.graph is None:
            self.x = x.clone()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.loss = self.stepper.update(self.x)
        assert self.x is not None
        assert self.loss is not None
        if x.shape != self.x.shape:
            return self.stepper.update(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.loss.clone()
