"""The attractor network on images: embedding, bare self-attention, inverse embedding.

    x_i = r (F s_i - m_i) / s,     dynamics of `AttractorAttention`,     image = A⁻¹ F⁻¹ (m_i + s x_i / r)

F, A: the embedding of the attractor paper's section V-A (`PatchEmbedding`); the dynamics is ATT Eq. 1. The paper's
spins are F s_i: m = 0 and r = s = 1. Centred spins have m_i, the mean spin of site i over the training images,
subtracted, so that an absent token (zero) stands for the mean image, and are scaled from the root mean square length s
to r (`radius`). Scores grow with r²: a small radius is a high temperature.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.files import atomic_write
from spinformer.attention.attractor import AttractorAttention
from spinformer.attractor.embedding import PatchEmbedding, check_images
from spinformer.models.attractor.stored import check_sizes, made_of, read_header, read_options

# The fields of `AttractorConfig` that are options of the layer.
LAYER_OPTIONS = ("shape", "rank", "reach", "normalisation", "strength", "inertia", "clamp", "seed")


@dataclass(frozen=True)
class AttractorConfig:
    """Sizes of an attractor network on images; options of the layer are as in `AttractorAttention`."""

    image: tuple[int, int, int] = (1, 28, 28)
    patch: int = 2
    dim: int | None = None
    shape: str = "full"
    rank: int = 8
    reach: tuple[int, int] | None = None
    normalisation: str = "sphere"
    radius: float | None = None
    strength: float = 1.0
    inertia: float = 1.0
    clamp: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Dynamics:
    """How a network restores the images of one task: strength, λ; inertia, γ; steps; pin: visible tokens keep their
    values; error: the mean square error that this had on the images it was chosen on.
    """

    strength: float
    inertia: float
    steps: int
    pin: bool
    error: float


class AttractorNetwork(nn.Module):
    """Images in, trajectories of images out. dynamics: by the name of a task, where it was chosen."""

    mean: Tensor  # (N, d)
    scale: Tensor  # (), s / r

    def __init__(self, config: AttractorConfig) -> None:
        super().__init__()
        checks.instance("config", config, AttractorConfig)
        if config.radius is not None:
            checks.finite_number("radius", config.radius)
        if config.radius is not None and config.radius <= 0:
            raise ValueError(f"expected a positive radius of the centred spins, got {config.radius}")
        self.config = config
        self.embedding = PatchEmbedding(config.image, config.patch, config.dim, config.seed)
        n_tokens, dim, grid = self.embedding.n_tokens, self.embedding.dim, self.embedding.grid
        options: dict[str, Any] = {name: getattr(config, name) for name in LAYER_OPTIONS}
        self.layer = AttractorAttention(n_tokens, dim, grid=grid, **options)
        self.register_buffer("mean", torch.zeros(self.embedding.n_tokens, self.embedding.dim))
        self.register_buffer("scale", torch.ones(()))
        self.dynamics: dict[str, Dynamics] = {}

    @torch.no_grad()
    def centre(self, images: Tensor) -> None:
        """Set m and s from training images; without a radius there is nothing to do."""
        if not len(check_images(images, self.embedding.shape)):
            raise ValueError("expected at least one image to take the mean spin of; got none")
        if self.config.radius is None:
            return
        total, square, count = torch.zeros_like(self.mean), 0.0, len(images)
        for batch in images.split(1024):
            spins = self.embedding.encode(batch)
            total += spins.sum(0)
            square += spins.square().sum().item()
        self.mean.copy_(total / count)
        length = (square / count - self.mean.square().sum().item()) / self.embedding.n_tokens
        self.scale.fill_(max(length, 1e-12) ** 0.5 / self.config.radius)

    def spins(self, images: Tensor, *, unbounded: bool = False) -> Tensor:
        """(B, C, H, W) -> (B, N, d)."""
        return (self.embedding.encode(images, unbounded=unbounded) - self.mean) / self.scale

    def images(self, spins: Tensor) -> Tensor:
        """(..., N, d) -> (..., C, H, W) in 0..1."""
        return self.embedding.decode(self.mean + self.scale * self.embedding.check_spins(spins))

    def trajectory(
        self, images: Tensor, steps: int, mask: Tensor | None = None, *, pin: bool = False, unbounded: bool = False
    ) -> Tensor:
        """Spins at t = 0..steps from corrupted images: (steps + 1, B, N, d)."""
        start = self.spins(images, unbounded=unbounded)
        return self.layer.retrieve(start, steps, mask, return_trajectory=True, pin=pin)

    def use(self, dynamics: Dynamics) -> None:
        """Take over λ and γ."""
        self.layer.strength, self.layer.inertia = dynamics.strength, dynamics.inertia

    def save(self, path: Path, notes: dict[str, str] | None = None) -> None:
        """One safetensors file; configuration and dynamics stand in its header. Weights that are not finite are
        refused, and a file that was there stays."""
        checks.instance("path", path, Path)
        tensors = {name: tensor.contiguous().cpu() for name, tensor in self.state_dict().items()}
        for name, tensor in tensors.items():
            checks.finite(name, tensor)
        dynamics = json.dumps({task: asdict(chosen) for task, chosen in self.dynamics.items()})
        header = {"config": json.dumps(asdict(self.config)), "dynamics": dynamics, **(notes or {})}
        with atomic_write(path) as partial:
            save_file(tensors, partial, metadata=header)

    @classmethod
    def load(cls, path: Path) -> "AttractorNetwork":
        """What `save` wrote; a damaged file, or one whose weights are not finite, is a ValueError of one line."""
        checks.instance("path", path, Path)
        header, tensors = read_header(path)
        raw = read_options(path, "configuration", header["config"])
        for name in ("image", "reach"):
            if isinstance(raw.get(name), list):
                raw[name] = tuple(raw[name])
        config = made_of(path, "configuration", AttractorConfig, raw)
        check_sizes(path, config, tensors)
        try:
            network = cls(config)
            network.load_state_dict(tensors)
        except (RuntimeError, TypeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"{path}: the weights are not those of its configuration ({reason})") from error
        chosen = read_options(path, "dynamics", header.get("dynamics", "{}"))
        network.dynamics = {task: made_of(path, "dynamics", Dynamics, options) for task, options in chosen.items()}
        return network
