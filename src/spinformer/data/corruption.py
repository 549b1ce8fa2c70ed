"""The two tasks of the attractor paper, and predictors that need no model.

masked   30% of the patches are absent; error on their pixels
noisy    Gaussian noise of variance 0.7 on every pixel, then rescaled to the image's variance; error on all
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d

from spinformer._base.choices import TASKS as TASKS
from spinformer.attractor.embedding import PatchEmbedding
from spinformer.attractor.spins import add_noise, hide_tokens

HIDDEN = 0.3
VARIANCE = 0.7


@dataclass(frozen=True)
class Corrupted:
    """clean: (B, C, H, W); given: (B, C, H, W), the input of a model; mask: (B, N), true for absent tokens; judged:
    (B, C, H, W), true for the pixels whose error counts.
    """

    clean: Tensor
    given: Tensor
    mask: Tensor | None
    judged: Tensor

    def error(self, restored: Tensor) -> float:
        """Mean square error on the judged pixels."""
        return (restored - self.clean)[self.judged].square().mean().item()


def corrupt(images: Tensor, task: str, cutter: PatchEmbedding, *, generator: torch.Generator) -> Corrupted:
    """`images` corrupted for `task`; absent pixels are zero in `given`."""
    if task == "masked":
        mask = hide_tokens(len(images), cutter.n_tokens, HIDDEN, generator=generator).to(images.device)
        hidden = cutter.hide(mask)
        return Corrupted(images, images.masked_fill(hidden, 0.0), mask, hidden)
    if task == "noisy":
        given = add_noise(images, VARIANCE, generator=generator)
        return Corrupted(images, given, None, torch.ones_like(images, dtype=torch.bool))
    raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}")


def trivial_errors(corrupted: Corrupted, mean: Tensor) -> dict[str, float]:
    """Errors of predictors that need no model; mean: the mean training image."""
    images = corrupted.clean
    errors = {
        "zero": corrupted.error(torch.zeros_like(images)),
        "mean image": corrupted.error(mean.expand_as(images)),
    }
    if corrupted.mask is None:
        errors["corrupted"] = corrupted.error(corrupted.given)
        errors["corrupted, clipped to 0..1"] = corrupted.error(corrupted.given.clamp(0, 1))
        errors["3 x 3 average"] = corrupted.error(avg_pool2d(corrupted.given, 3, 1, 1))
    else:
        errors["visible neighbours"] = corrupted.error(visible_neighbours(corrupted.given, corrupted.judged))
    return errors


def visible_neighbours(given: Tensor, hidden: Tensor) -> Tensor:
    """Every pixel as the mean of the visible pixels in the smallest square around it that has any (3, 5, 7, ...)."""
    channels, side = given.shape[1], max(given.shape[-2:])
    visible = (~hidden).to(given.dtype)
    restored, done = torch.zeros_like(given), torch.zeros_like(hidden)
    for width in range(3, 2 * side, 2):
        window = given.new_ones(channels, 1, width, width)
        total = conv2d(given * visible, window, padding=width // 2, groups=channels)
        count = conv2d(visible, window, padding=width // 2, groups=channels)
        new = (count > 0.5) & ~done
        restored = torch.where(new, total / count.clamp(min=1), restored)
        done |= new
        if bool(done.all()):
            break
    return restored
