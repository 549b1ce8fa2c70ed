"""A trajectory as HTML: the image of each step with its error, and the energy as a curve. No file is written."""

import base64
import io

import torch
from torch import Tensor

from spinformer._base.extras import require
from spinformer.app.digits import Film

# Of the curve, in pixels: its size and the room for numbers around it.
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 220, 100, 34, 14


def film_html(film: Film) -> str:
    """All that the page shows of a trajectory."""
    frames = [_frame(film.clean, "picture", None, None)]
    for step, picture in enumerate(film.pictures):
        name = "damaged" if step == 0 else f"step {step}"
        frames.append(_frame(picture, name, film.errors[step], film.hidden if step == 0 else None))
    lowest = min(range(len(film.energies)), key=lambda step: film.energies[step])
    summary = f"Energy at each step, less that of the damaged picture; lowest at step {lowest}"
    return (
        '<div class="result" aria-live="polite">'
        f'<section class="card"><h3>The trajectory</h3><div class="film">{"".join(frames)}</div>'
        '<p class="legend">Below each picture its mean square error on the damaged pixels; '
        "orange pixels are hidden from the network</p></section>"
        f'<section class="card"><h3>Its energy</h3>{energy_svg(film.energies)}<p class="legend">{summary}</p></section>'
        "</div>"
    )


def _frame(picture: Tensor, name: str, error: float | None, hidden: Tensor | None) -> str:
    source = base64.b64encode(_png(picture, hidden)).decode()
    note = "" if error is None else f'<span class="error">{error:.4f}</span>'
    return (
        f'<figure><img src="data:image/png;base64,{source}" alt="{name}"><figcaption>{name}{note}</figcaption></figure>'
    )


def _png(picture: Tensor, hidden: Tensor | None) -> bytes:
    """A grey image, with hidden pixels in orange."""
    grey = (picture.clamp(0, 1) * 255).round().byte()
    color = torch.stack([grey, grey, grey], -1)
    if hidden is not None:
        color[hidden] = torch.tensor([213, 94, 0], dtype=torch.uint8)
    buffer = io.BytesIO()
    require("PIL.Image", extra="app").fromarray(color.numpy()).save(buffer, format="PNG")
    return buffer.getvalue()


def energy_svg(energies: list[float]) -> str:
    """E(t) - E(0) at each step t as a line, in SVG, which takes the page's colours and any width."""
    values = [energy - energies[0] for energy in energies]
    low, high = min(values), max(values)
    span = high - low or 1.0
    last = max(len(values) - 1, 1)
    xs = [LEFT + (WIDTH - LEFT - 16) * step / last for step in range(len(values))]
    ys = [TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / span for value in values]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in zip(xs, ys, strict=True))
    floor = HEIGHT - BOTTOM
    ticks = "".join(
        f'<text x="{x:.1f}" y="{floor + 18}" text-anchor="middle">{step}</text>' for step, x in enumerate(xs)
    )
    levels = "".join(
        f'<line class="level" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.2g}</text>'
        for value, y in ((high, TOP), (low, floor))
    )
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Energy at each step, less that at step 0: {", ".join(f"{value:.3g}" for value in values)}">'
        f'{levels}{ticks}<polyline points="{points}"/>{dots}</svg>'
    )
