"""Draw Figures 1 and 2 of the attractor paper, and overlap against stored examples, from what `compute` wrote."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from spinformer._base.extras import require
from spinformer.data.corruption import TASKS

COLOURS = {
    "paper": "tab:orange",
    "paper-pair": "tab:brown",
    "notebook": "tab:red",
    "field": "tab:purple",
    "recurrent": "tab:blue",
    "vit": "tab:green",
}
RIVALS = {"mean image": ":", "visible neighbours": "-.", "3 x 3 average": "-.", "corrupted": "--"}
LABELS = {
    "paper": "bare layer, the paper's setting, norm of each site constant",
    "paper-pair": "bare layer, the paper's setting, norm of each pair constant",
    "notebook": "bare layer, the notebook's normalisation",
    "field": "bare layer, field setting",
    "recurrent": "transformer block, repeated",
    "vit": "5-layer ViT",
}
BARE = ("paper", "paper-pair", "notebook", "field")
EXAMPLES = ("paper-2", "paper-pair-2", "field-2", "paper-4", "paper-pair-4", "field-4", "recurrent", "vit")
SHOWN = (1, 2, 3, 5, 10, 20)


def require_matplotlib() -> None:
    """Raise the error of a missing matplotlib before any long work."""
    require("matplotlib", extra="plot")


def draw(outcome: dict[str, Any], folder: Path) -> list[Path]:
    """Write the figures into `folder`; returns their paths."""
    matplotlib = require("matplotlib", extra="plot")
    matplotlib.use("Agg")
    plt = require("matplotlib.pyplot", extra="plot")
    folder.mkdir(parents=True, exist_ok=True)
    examples = folder / "examples.safetensors"
    if not examples.is_file():
        stage = "`spinformer reproduce attractor --stage compute` writes them"
        raise FileNotFoundError(f"no examples at {examples}; {stage}")
    paths = []
    for name, build in (
        ("figure-1", _errors),
        ("figure-1-examples", None),
        ("figure-2", _variance),
        ("stored", _stored),
    ):
        figure = build(plt, outcome) if build is not None else _examples(plt, examples)
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=120, bbox_inches="tight")
        plt.close(figure)
        paths.append(path)
    return paths


def _errors(plt: Any, outcome: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), sharex=True, layout="constrained")
    for row, task in zip(axes, TASKS, strict=True):
        for axis, patch in zip(row, (2, 4), strict=True):
            for name in BARE:
                if f"{name}-{patch}" in outcome["bare"]:
                    _curve(axis, outcome["bare"][f"{name}-{patch}"][0][task], name)
            if patch == 4:
                for name in ("recurrent", "vit"):
                    _curve(axis, outcome["backprop"][f"{name}-{task}"], name)
            rivals = outcome["trivial"][f"{task}-{patch}"]
            for rival, style in RIVALS.items():
                if rival in rivals:
                    shade = "black" if rival == "3 x 3 average" else "grey"
                    axis.axhline(rivals[rival], color=shade, linestyle=style, linewidth=1, label=rival)
            axis.set_title(f"{task}, {patch} x {patch} patches")
            axis.set_yscale("log")
            axis.set_xticks(range(0, 21, 5))
            axis.set_ylabel("mean square error on test images")
    for axis in axes[1]:
        axis.set_xlabel("steps t")
    entries = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _curve(axis: Any, record: dict[str, Any], name: str) -> None:
    if len(record["error"]) == 1:
        axis.axhline(record["error"][0], color=COLOURS[name], linestyle="--", label=LABELS[name])
        return
    start = [record["corrupted"]] if "corrupted" in record else []
    steps = range(1 - len(start), len(record["error"]) + 1)
    axis.plot(steps, [*start, *record["error"]], color=COLOURS[name], marker=".", label=LABELS[name])


def _examples(plt: Any, path: Path) -> Any:
    tensors = load_file(path)
    rows = [(model, task) for task in TASKS for model in EXAMPLES if f"{model}.{task}.given" in tensors]
    columns = ["image", "given", *(f"t = {t}" for t in SHOWN)]
    figure, axes = plt.subplots(len(rows), len(columns), figsize=(1.1 * len(columns), 1.1 * len(rows)))
    for axis, title in zip(axes[0], columns, strict=True):
        axis.set_title(title, fontsize=8)
    for axis_row, (model, task) in zip(axes, rows, strict=True):
        trajectory = tensors[f"{model}.{task}.restored"]
        shown = [tensors["clean"][0], tensors[f"{model}.{task}.given"][0]]
        shown += [trajectory[t - 1][0] for t in SHOWN if t <= len(trajectory)]
        for axis in axis_row:
            axis.set_axis_off()
        for axis, picture in zip(axis_row, shown, strict=False):
            axis.imshow(picture.clamp(0, 1).permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
            if picture.isnan().any():
                axis.text(0.5, 0.5, "overflow", transform=axis.transAxes, ha="center", va="center", fontsize=7)
        axis_row[0].text(
            -0.1,
            0.5,
            f"{model}\n{task}",
            transform=axis_row[0].transAxes,
            ha="right",
            va="center",
            fontsize=7,
        )
    return figure


def _variance(plt: Any, outcome: dict[str, Any]) -> Any:
    figure, axis = plt.subplots(figsize=(6, 4))
    variances = outcome["variance"]
    centres = [(a + b) / 2 for a, b in zip(variances["bins"], variances["bins"][1:], strict=False)]
    for name in ("paper-4", "paper-pair-4", "field-4", "recurrent", "vit"):
        key = name.removesuffix("-4")
        if name not in variances:
            continue
        axis.plot(centres, variances[name]["histogram"], color=COLOURS[key], drawstyle="steps-mid", label=LABELS[key])
    axis.plot(
        centres, variances["vit"]["true_histogram"], color="black", linestyle=":", drawstyle="steps-mid", label="images"
    )
    axis.set_yscale("log")
    axis.set_xlabel("variance of the predicted pixels within a hidden 4 x 4 patch")
    axis.set_ylabel("share of patches")
    axis.legend(fontsize=7)
    return figure


def _stored(plt: Any, outcome: dict[str, Any]) -> Any:
    figure, axis = plt.subplots(figsize=(6, 4))
    for name, rows in outcome["stored"].items():
        count = [row["P"] for row in rows]
        for kind, style in (("stored", "-"), ("unseen", "--")):
            best = [row[kind]["best"] for row in rows]
            axis.plot(count, best, style, color=COLOURS[name], marker=".", label=f"{name}, {kind} examples")
    axis.axhline(rows[-1]["unseen"]["floor"], color="grey", linestyle=":", label="the mean spin")
    axis.set_xscale("log")
    axis.set_xlabel("stored examples P")
    axis.set_ylabel("largest overlap along the trajectory, hidden tokens")
    axis.legend(fontsize=7)
    return figure
