"""A trajectory as pictures: a sheet (images by steps), a moving GIF, and its energies as JSON."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer.data.corruption import Corrupted
from spinformer.extras import require
from spinformer.models.vision import AttractorNetwork


@torch.no_grad()
def follow(network: AttractorNetwork, seen: Corrupted, steps: int, *, pin: bool = False) -> dict[str, Any]:
    """Pictures (steps + 1, B, C, H, W) with the given image at t = 0, energies (steps + 1, B), errors."""
    path = network.trajectory(seen.given, steps, seen.mask, pin=pin, unbounded=True)
    pictures = network.images(path)
    pictures[0] = seen.given.clamp(0, 1)
    energies = torch.stack([network.layer.energy(network.layer.felt(state)) for state in path])
    return {"pictures": pictures, "energies": energies, "errors": [seen.error(p) for p in pictures]}


def sheet(found: dict[str, Any], seen: Corrupted, path: Path, shown: int = 8) -> None:
    """One row for each image: the clean image, then t = 0, 1, 2, ...; energies below."""
    matplotlib = require("matplotlib", extra="plot")
    matplotlib.use("Agg")
    plt = require("matplotlib.pyplot", extra="plot")
    pictures, count = found["pictures"].cpu(), min(shown, len(seen.clean))
    columns = len(pictures) + 1
    figure, axes = plt.subplots(count + 1, columns, figsize=(1.1 * columns, 1.1 * count + 2))
    grid = axes[0, 0].get_gridspec()
    for axis in axes.flat:
        axis.set_axis_off()
    for k in range(count):
        for t, picture in enumerate([seen.clean[k].cpu(), *pictures[:, k]]):
            axes[k, t].imshow(picture.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
            if k == 0:
                axes[k, t].set_title("image" if t == 0 else f"t = {t - 1}", fontsize=8)
    below = figure.add_subplot(grid[-1, :])
    below.plot(found["energies"].cpu()[:, :count].numpy(), marker=".", linewidth=1)
    below.set_xlabel("steps t")
    below.set_ylabel("energy")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


def gif(found: dict[str, Any], path: Path, *, scale: int = 4, hold: int = 350) -> None:
    """All images side by side, one frame a step, `hold` milliseconds each."""
    pillow = require("PIL.Image", extra="images")
    frames = []
    for state in found["pictures"].cpu():
        row = torch.cat(list(state), dim=-1)  # (C, H, B W)
        bytes_ = (row.repeat_interleave(scale, 1).repeat_interleave(scale, 2) * 255).round().byte()
        frames.append(pillow.fromarray(bytes_.permute(1, 2, 0).squeeze(-1).numpy()))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=hold, loop=0)


def energies(found: dict[str, Any], path: Path) -> None:
    """Energies of every image and the mean error, by step."""
    rows: Tensor = found["energies"]
    path.write_text(json.dumps({"energies": rows.T.tolist(), "error": found["errors"]}, indent=1) + "\n")
