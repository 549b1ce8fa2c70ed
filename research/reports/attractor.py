"""Tables of docs/attractor.md."""

from collections.abc import Sequence
from typing import Any

from research.reports.markdown import Record, markdown

SETTINGS = ("paper", "paper-pair", "notebook", "field")
OPTIMISERS = {
    "paper": "power method (`paper`)",
    "paper-pair": 'power method, `hold="pair"`',
    "paper-sgd": "SGD, rate 1",
    "paper-adam": "Adam, rate 0.001",
}
VARIANTS = {
    "paper-pair": '`paper`, `hold="pair"`',
    "paper-sgd": "`paper`, SGD",
    "paper-adam": "`paper`, Adam",
    "paper-layer": "`paper`, layer normalisation",
    "paper-shared": "`paper`, one J for all pairs",
}


def claims(record: Record) -> str:
    """The paper's claims: a verdict for each setting of the bare layer that has one, and the evidence.

    It is that of the setting `paper`, or of the first that the claim was judged for, which is then named.
    """
    judged = record["outcome"]["claims"]
    names = [name for name in SETTINGS if name in judged]
    rows = []
    for claim in dict.fromkeys(claim for name in names for claim in judged[name]):
        having = [name for name in names if claim in judged[name]]
        source = "" if having[0] == "paper" else f"{VARIANTS.get(having[0], having[0])}: "
        verdicts = (_verdict(judged[name][claim]) if name in having else "not judged" for name in names)
        rows.append([claim, *verdicts, source + _evidence(judged[having[0]][claim])])
    return markdown(["claim", *(VARIANTS.get(name, f"`{name}`") for name in names), "evidence, `paper`"], rows)


def errors(record: Record) -> str:
    """The lowest error of every model on test images and its step, for each seed."""
    rows = []
    bare = record["outcome"]["bare"]
    for key in sorted(bare, key=lambda key: _rank(key[:-2])):
        name = VARIANTS.get(key[:-2], f"`{key[:-2]}`")
        rows.append([f"bare, {name}", _side(key), *(_lowest([run[task] for run in bare[key]]) for task in _TASKS)])
    for name, label in (("recurrent", "transformer block, repeated"), ("vit", "5-layer ViT")):
        runs = [record["outcome"]["backprop"][f"{name}-{task}"] for task in _TASKS]
        rows.append([label, "4 x 4", *(_lowest([run]) for run in runs)])
    return markdown(["model", "patches", "masked: lowest error (steps)", "noisy: lowest error (steps)"], rows)


def solved(record: Record) -> str:
    """How near the setting `paper` is to a minimum of its energy over all training images, by optimiser."""
    rows = []
    measured = record["outcome"].get("solved", {"optimisers": {}})["optimisers"]
    for key, row in sorted(measured.items(), key=lambda item: (item[0][-1], _rank(item[0][:-2]))):
        cells = (_numbers(row["energy"]), _numbers(row["alignment"], ".4f"), _numbers(row["least_alignment"], ".4f"))
        rows.append([OPTIMISERS.get(key[:-2], key[:-2]), _side(key), *cells])
    return markdown(["optimiser", "patches", "energy of a site", "cosine, mean over sites", "cosine, least"], rows)


def ends(record: Record) -> str:
    """Of the paper's setting and its variants: the error after the last step, and the correlation of the end with the
    mean digit."""
    rows = []
    bare = record["outcome"]["bare"]
    for key in sorted(bare, key=lambda key: _rank(key[:-2])):
        runs = [run for run in bare[key] if "attractor" in run]
        likeness = (
            _numbers([run["attractor"][task]["correlation_with_mean_digit"] for run in runs]) for task in _TASKS
        )
        last = (_numbers([run[task]["error"][-1] for run in runs], ".4f") for task in _TASKS)
        rows.append([VARIANTS.get(key[:-2], f"`{key[:-2]}`"), _side(key), *last, *likeness])
    header = ["setting", "patches", *(f"{task}: last error" for task in _TASKS)]
    return markdown([*header, *(f"{task}: correlation with the mean digit" for task in _TASKS)], rows)


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


def pixels(record: Record) -> str:
    """Masked prediction, the error over the hidden and over all pixels, for both readings of the constant norm."""
    rows = []
    for key, runs in record["outcome"]["runs"].items():
        for kind in ("hidden", "all"):
            row = record["outcome"]["claims"][f"{key}-{kind}"]
            curves = [run[kind] for run in runs]
            errors = (
                _numbers([pick(curve) for curve in curves], ".4f") for pick in (lambda c: c[0], min, lambda c: c[-1])
            )
            verdicts = ("true" if row[name] else "**false**" for name in ("first", "transient"))
            rows.append(
                [f'`hold="{key[:-2]}"`', _side(key), kind, *errors, _numbers(row["best_steps"], "d"), *verdicts]
            )
    header = ["norm", "patches", "pixels", "after 1 step", "least", "after 20 steps", "best steps"]
    return markdown([*header, "best in the first steps", "transient state"], rows)


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
    table = markdown(["patches", "tokens hidden", "noise", "radii", "masked", "noisy"], rows)
    return f"{table}\n\nTrained for {record['config']['epochs']} epochs each."


def strengths(record: Record) -> str:
    """Least errors on held-out images in the paper's setting, by λ in training and in testing; the best are bold."""
    outcome = record["outcome"]
    holds = dict.fromkeys(row["hold"] for row in outcome["rows"])
    least = {
        (hold, task): min(f"{row[task]['best']:.4f}" for row in outcome["rows"] if row["hold"] == hold)
        for hold in holds
        for task in _TASKS
    }
    rows = []
    for row in outcome["rows"]:
        cells = [f'`hold="{row["hold"]}"`', f"{row['trained']:g}", f"{row['tested']:g}"]
        for task in _TASKS:
            error = f"{row[task]['best']:.4f}"
            shown = f"**{error}**" if error == least[row["hold"], task] else error
            cells.append(f"{shown} ({row[task]['step']})")
        rows.append(cells)
    header = ["norm", "λ in training", "λ in testing", *(f"{task}: lowest error (steps)" for task in _TASKS)]
    note = f"Trained for {outcome['rows'][0]['epochs']} epochs on {outcome['train']:,} digits, one seed."
    return f"{markdown(header, rows)}\n\n{note}"


_TASKS = ("masked", "noisy")


def _rank(name: str) -> int:
    """Its place in the tables."""
    return ["paper", *VARIANTS, "notebook", "field"].index(name)


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


def _numbers(values: Sequence[float | None], spec: str = ".3f") -> str:
    return " / ".join("overflow" if value is None else format(value, spec) for value in values)


def _lowest(runs: Sequence[dict[str, Any]]) -> str:
    return " / ".join(f"{run['best']:.4f} ({run['best_step']})" for run in runs)


def _chosen(runs: Sequence[dict[str, Any]]) -> str:
    return " / ".join(dict.fromkeys(f"{run['strength']:g}, {run['inertia']:g}, {run['step']}" for run in runs))


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4f}", f"{max(values):.4f}"
    return low if low == high else f"{low} to {high}"
