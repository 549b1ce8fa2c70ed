"""One training step of the attractor's couplings: closed gradient, clip, SGD or Adam, norm held.

No autograd graph anywhere; everything is updated in place. Memory for P parameters: the parameters, their
gradient, Adam's two moments (4 P floats) and B chunk N (d + 2) floats of workspace. The full shape's rows
are independent, so a process that owns the sites `sites` updates only their rows, keeps moments only for
them, and asks nothing of the others: clipping and the held norm are per site.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from spinformer.attractor.couplings import Couplings, FullCouplings
from spinformer.attractor.gradient import energy_gradient, field_gradient, zeros

OBJECTIVES = ("energy", "field")


@dataclass(frozen=True)
class Recipe:
    """How to train couplings.

    objective: "energy" (Eq. 7) or "field" (see `spinformer.attractor.gradient`). strength: λ in training.
    clip: bound on each site's gradient norm. hold: norm held per "site", per "pair" or not at all (None).
    hidden, noise: with "field", the fraction of tokens hidden from the others and the standard deviation of
    the noise on them, in units of the spins' root mean square component. sites: how many random sites a step
    trains (None: all). decay: learning rate "constant" or "linear" to zero. chunk: sites worked on at once.
    """

    objective: str = "energy"
    strength: float = 5.0
    epochs: int = 20
    batch: int = 32
    rate: float = 1e-3
    optimiser: str = "adam"
    decay: str = "constant"
    clip: float | None = 1.0
    hold: str | None = "site"
    hidden: float = 0.0
    noise: float = 0.0
    sites: int | None = None
    chunk: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("objective", self.objective, OBJECTIVES),
            ("optimiser", self.optimiser, ("adam", "sgd")),
            ("decay", self.decay, ("constant", "linear")),
            ("hold", self.hold, ("site", "pair", None)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} is one of {', '.join(map(str, allowed))}; got {value!r}")
        if min(self.epochs, self.batch) < 1 or self.rate <= 0 or not 0 <= self.hidden < 1 or self.noise < 0:
            raise ValueError(f"expected positive epochs, batch and rate, hidden in [0, 1), noise >= 0; got {self}")


class Stepper:
    """Holds the optimiser's state and makes steps; `steps` is their whole number, for the decay."""

    def __init__(
        self,
        couplings: Couplings,
        recipe: Recipe,
        steps: int,
        *,
        sites: range | None = None,
        reduce: bool = False,
        graph: bool = False,
    ) -> None:
        if sites is not None and not isinstance(couplings, FullCouplings):
            raise ValueError("only full couplings shard by sites: in the other shapes sites share parameters")
        self.couplings, self.recipe, self.steps = couplings, recipe, steps
        self.sites = range(couplings.n_tokens) if sites is None else sites
        self.reduce, self.done = reduce, 0
        self.gradient = zeros(couplings)
        scattered = [name for name, tensor in couplings.storage().items() if not tensor.is_contiguous()]
        if scattered:
            raise ValueError(
                f"the memory of {', '.join(scattered)} was rearranged; build the couplings anew and copy into them"
            )
        self.owned = {name: self._own(tensor) for name, tensor in couplings.storage().items()}
        self.owned_gradient = {name: self._own(tensor) for name, tensor in self.gradient.items()}
        for name, tensor in self.owned.items():
            tensor.grad = self.owned_gradient[name]
        device = next(iter(self.owned.values())).device
        cuda = device.type == "cuda"
        self.rate = torch.tensor(recipe.rate, device=device) if cuda else recipe.rate
        self.optimiser: torch.optim.Optimizer
        if recipe.optimiser == "adam":
            self.optimiser = torch.optim.Adam(
                list(self.owned.values()), lr=self.rate, eps=1e-12, fused=True, capturable=cuda
            )
        else:
            self.optimiser = torch.optim.SGD(list(self.owned.values()), lr=self.rate, fused=True)
        self.held = couplings.lengths(self.owned, recipe.hold) if recipe.hold else None
        self.generator = torch.Generator(device=device)
        self.graph = _Graph(self) if graph and cuda and self._capturable() else None

    def _own(self, tensor: Tensor) -> Tensor:
        whole = len(self.sites) == self.couplings.n_tokens
        return tensor if whole else tensor[self.sites.start : self.sites.stop]

    def _capturable(self) -> bool:
        recipe = self.recipe
        return recipe.objective == "energy" and recipe.optimiser == "adam" and recipe.sites is None and not self.reduce

    def step(self, x: Tensor) -> Tensor:
        """One step on spins (B, N, d); returns the mean local energy, or the field's relative error."""
        self._set_rate()
        loss = self.update(x) if self.graph is None else self.graph.replay(x)
        self.done += 1
        return loss

    def _set_rate(self) -> None:
        left = 1 - self.done / self.steps if self.recipe.decay == "linear" else 1.0
        rate = self.recipe.rate * left
        for group in self.optimiser.param_groups:
            if torch.is_tensor(group["lr"]):
                if self.recipe.decay == "linear":
                    group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    @torch.no_grad()
    def update(self, x: Tensor) -> Tensor:
        """Gradient, clip, optimiser, J_ii = 0, norm."""
        for tensor in self.gradient.values():
            tensor.zero_()
        loss = self._accumulate(x)
        if self.recipe.clip is not None:
            for name, length in self.couplings.lengths(self.owned_gradient, "site").items():
                self.owned_gradient[name].mul_((self.recipe.clip / length.clamp(min=1e-30)).clamp(max=1))
        self.optimiser.step()
        self.couplings.clear_diagonal()
        if self.held is not None and self.recipe.hold is not None:
            for name, length in self.couplings.lengths(self.owned, self.recipe.hold).items():
                self.owned[name].mul_(self.held[name] / length.clamp(min=1e-30))
        return loss

    def _accumulate(self, x: Tensor) -> Tensor:
        recipe = self.recipe
        rows = self.sites
        chosen = [rows] if recipe.sites is None else self._drawn(rows)
        seen = self._seen(x) if recipe.objective == "field" else x
        share = 1.0
        if self.reduce:
            rank, world, whole = dist.get_rank(), dist.get_world_size(), len(x)
            x, seen = x[rank::world], seen[rank::world]
            share = len(x) / whole
        loss = x.new_zeros(())
        for sites in chosen if len(x) else []:
            if recipe.objective == "energy":
                part = energy_gradient(
                    self.couplings,
                    x,
                    self.gradient,
                    strength=recipe.strength,
                    sites=sites,
                    chunk=recipe.chunk,
                )
            else:
                part = field_gradient(
                    self.couplings,
                    x,
                    seen,
                    self.gradient,
                    strength=recipe.strength,
                    sites=sites,
                    chunk=recipe.chunk,
                )
            loss += part / len(chosen)
        if self.reduce:
            loss *= share
            for tensor in [*self.gradient.values(), loss]:
                if tensor is not loss:
                    tensor.mul_(share)
                dist.all_reduce(tensor)
        return loss

    def _drawn(self, rows: range) -> list[range]:
        count = min(self.recipe.sites or 0, self.couplings.n_tokens)
        drawn = torch.randperm(
            self.couplings.n_tokens,
            generator=torch.Generator().manual_seed((self.recipe.seed << 32) + self.done),
        )[:count]
        return [range(i, i + 1) for i in sorted(drawn.tolist()) if i in rows]

    def _seen(self, x: Tensor) -> Tensor:
        """What the others show: noise on them, then tokens hidden."""
        self.generator.manual_seed((self.recipe.seed << 32) + self.done)
        seen = x
        if self.recipe.noise:
            spread = self.recipe.noise * x.square().mean().sqrt()
            drawn = torch.randn(x.shape, generator=self.generator, device=x.device)
            seen = seen + spread * drawn
        if self.recipe.hidden:
            kept = torch.rand(*x.shape[:2], 1, generator=self.generator, device=x.device) >= self.recipe.hidden
            seen = seen * kept
        return seen

    def state(self) -> dict[str, object]:
        """What `restore` needs to go on to the same couplings."""
        return {
            "done": self.done,
            "owned": {name: tensor.clone() for name, tensor in self.owned.items()},
            "held": self.held,
            "optimiser": self.optimiser.state_dict(),
        }

    def restore(self, state: dict[str, object]) -> None:
        """Go on from `state`."""
        owned, held = state["owned"], state["held"]
        assert isinstance(owned, dict)
        for name, tensor in self.owned.items():
            tensor.copy_(owned[name])
        if self.held is not None and isinstance(held, dict):
            for name in self.held:
                self.held[name].copy_(held[name])
        self.done = int(str(state["done"]))
        self.optimiser.load_state_dict(state["optimiser"])  # type: ignore[arg-type]
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate
        if self.graph is not None:
            self.graph = _Graph(self)


class _Graph:
    """The whole step as one CUDA graph: a step costs one launch; batches of another size run eagerly."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.x: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.loss: Tensor | None = None
        self.eager = 0

    def replay(self, x: Tensor) -> Tensor:
        if self.eager < 3:  # the optimiser's state and the libraries' workspaces appear in the first steps
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
