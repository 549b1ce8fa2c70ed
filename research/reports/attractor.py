"""Tables of docs/attractor.md."""

from collections.abc import Sequence
from typing import Any

from research.reports.markdown import Record, markdown

SETTINGS = ("paper", "notebook", "field")


def claims(record: Record) -> str:
    """The paper's claims: a verdict for each setting of the bare layer, and the evidence for the setting `paper`."""
    judged = record["outcome"]["claims"]
    rows = [[claim, *(_verdict(judged[name][claim]) for name in SETTINGS), _evidence(judged["paper"][claim])]
            for claim in judged["paper"]]  # fmt: skip
    return markdown(["claim", *(f"`{name}`" for name in SETTINGS), "evidence, `paper`"], rows)


def errors(record: Record) -> str:
    """The lowest error of every model on test images and its step, for each seed."""
    rows = []
    for key, runs in record["outcome"]["bare"].items():
        rows.append([f"bare, `{key[:-2]}`", _side(key), *(_lowest([run[task] for run in runs]) for task in _TASKS)])
    for name, label in (("recurrent", "transformer block, repeated"), ("vit", "5-layer ViT")):
        runs = [record["outcome"]["backprop"][f"{name}-{task}"] for task in _TASKS]
        rows.append([label, "4 x 4", *(_lowest([run]) for run in runs)])
    return markdown(["model", "patches", "masked: lowest error (steps)", "noisy: lowest error (steps)"], rows)


def use(record: Record) -> str:
    """Each setting with λ, γ and steps chosen on held-out images, beside the best trivial predictor."""
    rows = []
    for key, row in record["outcome"]["table"].items():
        cells = [f"`{key[:-2]}`", _side(key)]
        for task in _TASKS:
            error = f"{row[task]:.5f} ± {row[f'{task}_spread'] / 2:.5f}"
            cells += [error, f"{row['best_trivial'][task]:.5f}"]
        rows.append([*cells, f"{row['noisy_ratio']:.1%}"])
    header = ["setting", "patches", "masked", "best trivial", "noisy", "best trivial", "noisy, of the corrupted error"]
    return markdown(header, rows)


def knobs(record: Record) -> str:
    """λ, γ and steps that were chosen on held-out images, for each seed."""
    rows = []
    for key, runs in record["outcome"]["settings"].items():
        rows.append([f"`{key[:-2]}`", _side(key), *(_chosen([run[task] for run in runs]) for task in _TASKS)])
    return markdown(["setting", "patches", "masked: λ, γ, t", "noisy: λ, γ, t"], rows)


def trivial(record: Record) -> str:
    """Errors on test images of the predictors that need no model."""
    columns = record["outcome"]["trivial"]
    names = list(dict.fromkeys(name for errors in columns.values() for name in errors))
    rows = [[name, *(f"{errors[name]:.4f}" if name in errors else "" for errors in columns.values())] for name in names]
    return markdown(["predictor", *(f"{key[:-2]}, {_side(key)}" for key in columns)], rows)


def speed(record: Record) -> str:
    """One training step: closed-form gradients against autograd through einsum."""
    step = record["outcome"]["step"]
    rows = [
        ["closed gradients", f"{step['closed']['ms']:.2f} ms", f"{step['closed']['peak_mib']:.0f} MiB"],
        ["autograd and einsum", f"{step['autograd']['ms']:.2f} ms", f"{step['autograd']['peak_mib']:.0f} MiB"],
        ["gain", f"{step['speedup']:.1f} times", f"{step['memory_ratio']:.0%} of the memory"],
    ]
    return markdown([f"{record['hardware']['gpu'] or 'CPU'}", "time a step", "peak memory"], rows)


def sweep(record: Record) -> str:
    """Held-out errors of the setting `field`, by patch size and training corruption: their range over radii."""
    groups: dict[tuple[int, float, float], list[Record]] = {}
    for row in record["outcome"]["rows"]:
        changes = row["changes"]
        if row["preset"] == "field" and "radius" in changes:
            groups.setdefault((changes["patch"], changes["hidden"], changes["noise"]), []).append(row)
    rows = [
        [
            f"{patch} x {patch}",
            f"{hidden:.0%}",
            f"{noise:g}",
            ", ".join(f"{row['changes']['radius']:g}" for row in group),
            *(_range([row[task]["best"] for row in group]) for task in _TASKS),
        ]
        for (patch, hidden, noise), group in groups.items()
    ]
    return markdown(["patches", "tokens hidden", "noise", "radii", "masked", "noisy"], rows)


_TASKS = ("masked", "noisy")


def _side(key: str) -> str:
    side = key.rsplit("-", 1)[1]
    return f"{side} x {side}"


def _verdict(row: dict[str, Any]) -> str:
    word = "true" if row["true"] else "**false**"
    return f"{word} ({row['seeds']})" if "seeds" in row else word


def _evidence(row: dict[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {_number(value)}" for name, value in row.items() if name not in ("true", "seeds")
    )


def _number(value: Any) -> str:
    if isinstance(value, list):
        return " / ".join(map(_number, value))
    if isinstance(value, int):
        return str(value)
    return "overflow" if value is None else f"{value:.3g}"


def _lowest(runs: Sequence[dict[str, Any]]) -> str:
    return " / ".join(f"{run['best']:.4f} ({run['best_step']})" for run in runs)


def _chosen(runs: Sequence[dict[str, Any]]) -> str:
    return " / ".join(dict.fromkeys(f"{run['strength']:g}, {run['inertia']:g}, {run['step']}" for run in runs))


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4f}", f"{max(values):.4f}"
    return low if low == high else f"{low} to {high}"
