"""The attractor network behind the page: trained on the embedded digits at the first request, then reused."""

import threading
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from spinformer.app import limits
from spinformer.attractor.spins import add_noise, hide_tokens
from spinformer.data import images as data
from spinformer.data.corruption import Corrupted
from spinformer.evaluate.images import trajectory
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor

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
        chosen = data.load_images("sample").test[list(SHOWN), 0]
        return [bytes((picture * 255).round().byte().flatten().tolist()).hex() for picture in chosen]

    def watch(self, code: object, kind: object, amount: object, steps: object, strength: object, seed: object) -> Film:
        """The trajectory of a damaged picture; what lies outside of the limits is a ValueError for the visitor.

        Hidden patches are restored while the others stay as they are; noise is taken from every pixel.
        """
        pixels = limits.drawing(code)
        damage, damage_amount = limits.damage(kind, amount)
        count = limits.integer("The number of steps", steps, *limits.STEPS)
        attention_strength = limits.number("The strength", strength, *STRENGTHS)
        generator = torch.Generator().manual_seed(limits.integer("The seed", seed, 0, limits.SEEDS))
        clean = torch.tensor(list(pixels)).view(1, 1, limits.SIDE, limits.SIDE).double() / 255
        with self._lock:  # the strength belongs to the network
            network = self._trained()
            corrupted = damage_picture(clean, network, damage, damage_amount, generator)
            network.layer.strength = attention_strength
            path = trajectory.follow(network, corrupted, count, pin=corrupted.mask is not None)
        hidden = corrupted.judged if corrupted.mask is not None else torch.zeros_like(corrupted.judged)
        return Film(
            clean[0, 0],
            path.images[:, 0, 0],
            path.energies[:, 0].tolist(),
            [_error(corrupted, picture) for picture in path.images],
            hidden[0, 0],
        )

    def _trained(self) -> AttractorNetwork:
        if self._network is None:
            images = data.load_images("sample")
            config, recipe = preset("field", patch=PATCH, image=images.shape, seed=self.seed)
            network = AttractorNetwork(config)
            train_attractor(network, images.train, replace(recipe, epochs=self.epochs), quiet=True)
            self._network = network.double()  # energies differ in their seventh digit
        return self._network


def damage_picture(
    clean: Tensor, network: AttractorNetwork, kind: str, amount: float, generator: torch.Generator
) -> Corrupted:
    """A part of the patches hidden, or Gaussian noise of that variance."""
    if kind == "hide patches":
        mask = hide_tokens(len(clean), network.embedding.n_tokens, amount, generator=generator)
        hidden = network.embedding.hide(mask)
        return Corrupted(clean, clean.masked_fill(hidden, 0.0), mask, hidden)
    given = add_noise(clean, amount, generator=generator)
    return Corrupted(clean, given, None, torch.ones_like(clean, dtype=torch.bool))


def _error(corrupted: Corrupted, picture: Tensor) -> float:
    return corrupted.error(picture) if bool(corrupted.judged.any()) else 0.0
