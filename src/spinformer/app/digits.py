"""The attractor network behind the page: trained on the embedded digits when first asked, then kept."""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from spinformer.app import limits
from spinformer.attractor.spins import add_noise, hide_tokens
from spinformer.data import images as data
from spinformer.data.corruption import Corrupted
from spinformer.experiments import trajectory
from spinformer.models.vision import AttractorNetwork
from spinformer.training.attractor import train
from spinformer.training.presets import preset

# Test digits that read as 0 to 9.
SHOWN = (3, 5, 1, 30, 27, 15, 21, 17, 61, 12)
PATCH, EPOCHS, STRENGTH = 2, 2, 0.9
STRENGTHS = (0.3, 1.5)


@dataclass(frozen=True)
class Film:
    """What the attractor did: pictures (T + 1, H, W) from the damaged one on, energies and errors of each, the clean
    picture, and the pixels whose error counts.
    """

    clean: Tensor
    pictures: Tensor
    energies: list[float]
    errors: list[float]
    hidden: Tensor


@dataclass
class Digits:
    """Digits to choose from, and a network that restores damaged ones.

    seed: of its training; epochs: passes over the embedded digits.
    """

    seed: int = 0
    epochs: int = EPOCHS
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _network: AttractorNetwork | None = None

    def examples(self) -> list[str]:
        """The digits 0 to 9, each as hexadecimal pixels."""
        chosen = data.load("sample").test[list(SHOWN), 0]
        return [bytes((picture * 255).round().byte().flatten().tolist()).hex() for picture in chosen]

    def watch(self, code: object, kind: object, amount: object, steps: object, strength: object, seed: object) -> Film:
        """The trajectory of a damaged picture; what lies outside of the limits is a ValueError for the visitor.

        Hidden patches are restored while the others stay as they are; noise is taken from every pixel.
        """
        pixels = limits.drawing(code)
        damage, much = limits.damage(kind, amount)
        count = limits.whole("The number of steps", steps, *limits.STEPS)
        pull = limits.number("The strength", strength, *STRENGTHS)
        start = torch.Generator().manual_seed(limits.whole("The seed", seed, 0, limits.SEEDS))
        clean = torch.tensor(list(pixels)).view(1, 1, limits.SIDE, limits.SIDE).double() / 255
        with self._lock:  # the strength belongs to the network
            network = self._trained()
            seen = damaged(clean, network, damage, much, start)
            network.layer.strength = pull
            found: dict[str, Any] = trajectory.follow(network, seen, count, pin=seen.mask is not None)
        return Film(
            clean[0, 0],
            found["pictures"][:, 0, 0],
            found["energies"][:, 0].tolist(),
            [_error(seen, picture) for picture in found["pictures"]],
            seen.judged[0, 0] if seen.mask is not None else torch.zeros_like(clean[0, 0], dtype=torch.bool),
        )

    def _trained(self) -> AttractorNetwork:
        if self._network is None:
            images = data.load("sample")
            config, recipe = preset("field", patch=PATCH, image=images.shape, seed=self.seed)
            network = AttractorNetwork(config)
            train(network, images.train, replace(recipe, epochs=self.epochs), quiet=True)
            self._network = network.double()  # energies differ in their seventh digit
        return self._network


def damaged(
    clean: Tensor, network: AttractorNetwork, kind: str, amount: float, generator: torch.Generator
) -> Corrupted:
    """A share of the patches hidden, or Gaussian noise of that variance."""
    cutter = network.embedding
    if kind == "hide patches":
        mask = hide_tokens(len(clean), cutter.n_tokens, amount, generator=generator)
        hidden = cutter.hide(mask)
        return Corrupted(clean, clean.masked_fill(hidden, 0.0), mask, hidden)
    given = add_noise(clean, amount, generator=generator)
    return Corrupted(clean, given, None, torch.ones_like(clean, dtype=torch.bool))


def _error(seen: Corrupted, picture: Tensor) -> float:
    return seen.error(picture) if bool(seen.judged.any()) else 0.0
