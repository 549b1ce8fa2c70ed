"""The demo's part with images: an attractor network learns digits without backpropagation, and restores them."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from spinformer.cli.demo_session import Session, heading

if TYPE_CHECKING:
    from torch import Tensor

DRAWN, STEPS, COUNT = 3, 2, 4000
SHADES = " .:-=+*#%@"


def restore_digits(output: Path, *, epochs: int) -> Path | None:
    """Train, print errors and pictures; the path of the figure, None without matplotlib."""
    heading("3. Digits restored by the attractor network, trained now without backpropagation")
    session = Session()
    session.run(f"""
from dataclasses import replace
import torch
from spinformer.data.corruption import corrupt, trivial_errors
from spinformer.data.images import load_images
from spinformer.evaluate.images import trajectory
from spinformer.models import AttractorNetwork
from spinformer.training.attractor import preset, train_attractor

digits = load_images("sample").cut({COUNT})
config, recipe = preset("field", patch=2, image=digits.shape)
network = AttractorNetwork(config)
train_attractor(network, digits.train, replace(recipe, epochs={epochs}))
corrupted = corrupt(digits.test[:200], "masked", network.embedding, generator=torch.Generator().manual_seed(0))
path = trajectory.follow(network, corrupted, {STEPS}, pin=True)
errors = trivial_errors(corrupted, digits.train.mean(0))
""")
    path, corrupted = session["path"], session["corrupted"]
    names = {**session["errors"], "attractor": path.errors[-1]}
    print(
        "mean square error on the hidden pixels: " + ", ".join(f"{name} {error:.4f}" for name, error in names.items())
    )
    columns = {"30% hidden": path.images[0], "restored": path.images[-1], "true": corrupted.clean}
    print("\n" + "".join(f"  {name:<28}" for name in columns))
    for index in range(min(DRAWN, len(corrupted.clean))):
        pictures = [_picture(images[index]) for images in columns.values()]
        print("\n".join("".join(f"  {part}" for part in line) for line in zip(*pictures, strict=True)))
    if find_spec("matplotlib") is None:
        print("the figure is left out: matplotlib is not installed; `pip install 'spinformer[plot]'` brings it")
        return None
    figure = output / "digits.png"
    session.run(f"""
from pathlib import Path

trajectory.save_sheet(path, corrupted, Path({str(figure)!r}))
""")
    print(f"the figure: {figure}")
    return figure


def _picture(image: "Tensor") -> list[str]:
    """(C, H, W) in 0..1 as lines of characters, two pixels high and one wide each."""
    from torch.nn.functional import avg_pool2d

    rows = avg_pool2d(image.mean(0, keepdim=True).clamp(0, 1), (2, 1))[0]
    return ["".join(SHADES[round(value * (len(SHADES) - 1))] for value in row) for row in rows.tolist()]
