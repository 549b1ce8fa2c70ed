"""A run of an attractor network on corrupted images: follow it, then save it as a sheet, a GIF or JSON."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from spinformer._base.extras import require
from spinformer._base.files import atomic_text, atomic_write
from spinformer.data.corruption import Corrupted
from spinformer.models.attractor import AttractorNetwork

LIMIT = 30.0  # times the size of the first state that a state may have


@dataclass(frozen=True)
class Trajectory:
    """What the network did with B images in T steps.

    images: (T + 1, B, C, H, W), the corrupted ones at t = 0; energies: (T + 1, B), of the state at each step; errors:
    T + 1 numbers, the mean square error over the judged pixels of all images; grown: the step at which states had grown
    beyond LIMIT times their start, after which nothing was computed, or None.
    """

    images: Tensor
    energies: Tensor
    errors: list[float]
    grown: int | None = None

    @property
    def best(self) -> int:
        """The step with the least error."""
        return min(range(len(self.errors)), key=self.errors.__getitem__)


@torch.no_grad()
def follow(network: AttractorNetwork, corrupted: Corrupted, steps: int, *, pin: bool = False) -> Trajectory:
    """Run `steps` steps from the corrupted images, fewer where states grow without bound.

    pin: visible tokens keep their values.
    """
    states = network.trajectory(corrupted.given, steps, corrupted.mask, pin=pin, unbounded=True)
    size = states.flatten(1).square().mean(1).sqrt()  # (steps + 1,)
    too_large = ~(size <= LIMIT * size[0]) if float(size[0]) else ~size.isfinite()
    grown = int(too_large.nonzero()[0]) if bool(too_large.any()) else None
    states = states[: None if grown is None else grown]
    images = network.images(states)
    images[0] = corrupted.given.clamp(0, 1)
    energies = torch.stack([network.layer.energy(network.layer.step_input(state)) for state in states])
    return Trajectory(images, energies, [corrupted.error(image) for image in images], grown)


def save_sheet(trajectory: Trajectory, corrupted: Corrupted, path: Path, max_images: int = 8) -> None:
    """One row for each image: the clean image, then t = 0, 1, 2, ...; the energies below. Needs matplotlib."""
    images, count = trajectory.images.cpu(), min(max_images, len(corrupted.clean))
    columns = len(images) + 1
    size = (1.1 * columns, 1.1 * count + 2)
    figure = require("matplotlib.figure", extra="plot").Figure(figsize=size)
    axes = figure.subplots(count + 1, columns)
    grid = axes[0, 0].get_gridspec()
    for axis in axes.flat:
        axis.set_axis_off()
    for row in range(count):
        for column, image in enumerate([corrupted.clean[row].cpu(), *images[:, row]]):
            pixels = image.permute(1, 2, 0).squeeze(-1)  # (C, H, W) -> (H, W, C), or (H, W) for grey images
            axes[row, column].imshow(pixels.numpy(), cmap="gray", vmin=0, vmax=1)
            if row == 0:
                axes[row, column].set_title("image" if column == 0 else f"t = {column - 1}", fontsize=8)
    below = figure.add_subplot(grid[-1, :])
    below.plot(trajectory.energies.cpu()[:, :count].numpy(), marker=".", linewidth=1)
    below.set_xlabel("steps t")
    below.set_ylabel("energy")
    with atomic_write(path) as partial:
        figure.savefig(partial, format=path.suffix[1:] or "png", dpi=110, bbox_inches="tight")


def save_gif(trajectory: Trajectory, path: Path, *, scale: int = 4, duration: int = 350) -> None:
    """All images side by side, one frame for each step; scale: enlargement; duration: of a frame, milliseconds."""
    pillow = require("PIL.Image", extra="images")
    frames = []
    for images in trajectory.images.cpu():
        row = torch.cat(list(images), dim=-1)  # (B, C, H, W) -> (C, H, B W)
        enlarged = row.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
        pixels = (enlarged * 255).round().byte().permute(1, 2, 0).squeeze(-1)  # (H, W, C), or (H, W) for grey images
        frames.append(pillow.fromarray(pixels.numpy()))
    with atomic_write(path) as partial:
        frames[0].save(partial, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)


def save_energies(trajectory: Trajectory, path: Path) -> None:
    """JSON: "energies" of each image at every step, and the mean "error" at every step."""
    content = {"energies": trajectory.energies.T.tolist(), "error": trajectory.errors}
    atomic_text(path, json.dumps(content, indent=1) + "\n")
