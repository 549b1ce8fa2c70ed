"""Judges of what the attractor paper says, from the measurements of `spinformer reproduce attractor`.

A claim of the paper about its bare layer is judged in the two readings of its constant norm: that of each site's
couplings (`paper`) and that of each J_ij (`paper-pair`), and only where the couplings came to rest: where the cosine of
J and minus the gradient of its energy is at least AT_REST for every seed. It holds if it is true in every reading; with
conditions if it is true in one of them, or with the normalisation of the authors' notebook, or in part.
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any

from research.reports.markdown import Record
from research.reports.reproduction.entry import Finding, NotMeasuredError, decided, graded

AT_REST = 0.99
EPOCHS = 100  # of the transformer block in the paper
OTHERS = {"paper-pair": "With the norm of each J_ij held", "notebook": "With the notebook's normalisation"}


def cosine(outcome: Record, setting: str) -> float | None:
    """The least cosine of J and minus the gradient, over seeds and patch sizes; None where it was not measured."""
    runs = [run for patch in (2, 4) for run in outcome["bare"].get(f"{setting}-{patch}", [])]
    cosines = [run["training"][-1].get("alignment") for run in runs]
    return None if not cosines or None in cosines else min(cosines)


def rested(outcome: Record) -> None:
    """Raise NotMeasuredError unless the couplings of the setting `paper` are at their minimum."""
    least = cosine(outcome, "paper")
    if least is None or least < AT_REST:
        how = "was not measured" if least is None else f"is {least:.2f}"
        raise NotMeasuredError(
            f"The couplings on file are not at the minimum of their energy (the cosine of J and minus its gradient "
            f"{how}), so they do not judge the paper."
        )


def evidence(row: Record) -> str:
    """The numbers behind a verdict of `research.experiments.attractor_claims`."""
    numbers = {name: value for name, value in row.items() if name not in ("true", "seeds")}
    return ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in numbers.items())


def _number(value: Any) -> str:
    if isinstance(value, list):
        return " / ".join(map(_number, value))
    return "overflow" if value is None else f"{value:.3g}"


def claims(*names: str) -> Callable[[Record], Finding]:
    """A judge of claims of `research.experiments.attractor_claims`, which must all be true."""

    def judge(outcome: Record) -> Finding:
        rested(outcome)
        judged = outcome["claims"]
        absent = [name for name in names if name not in judged["paper"]]
        if absent:
            raise NotMeasuredError(f"The result on file does not judge: {'; '.join(absent)}.")
        parts = []
        for name in names:
            row = judged["paper"][name]
            seeds = f" ({row['seeds']} seeds)" if "seeds" in row else ""
            parts.append(f"{name}: {'true' if row['true'] else 'false'}{seeds}, {evidence(row)}")
        true = {setting: [row[name]["true"] for name in names] for setting, row in judged.items() if setting in OTHERS}
        if (cosine(outcome, "paper-pair") or 0.0) < AT_REST:
            true.pop("paper-pair", None)
        others = "".join(f" {OTHERS[setting]}: {sum(row)} of {len(names)} true." for setting, row in true.items())
        paper = [judged["paper"][name]["true"] for name in names]
        full = all(paper) and all(true.get("paper-pair", [True]))
        part = any(paper) or any(all(row) for row in true.values())
        return graded(full, part, "; ".join(parts) + "." + others)

    return judge


def block(*names: str, key: str = "backprop") -> Callable[[Record], Finding]:
    """A judge of claims about the transformer block alone, whatever the bare layer does.

    They hold with conditions if it was trained for fewer epochs than the paper's. key: where its training is stored.
    """

    def judge(outcome: Record) -> Finding:
        judged = outcome["claims"]["paper"]
        absent = [name for name in names if name not in judged]
        if absent:
            raise NotMeasuredError(f"The result on file does not judge: {'; '.join(absent)}.")
        true = [judged[name]["true"] for name in names]
        epochs = min(len(run["training"]) for name, run in outcome[key].items() if name.startswith("recurrent"))
        text = "; ".join(f"{name}: {evidence(judged[name])}" for name in names) + f". Trained for {epochs} epochs."
        return graded(all(true) and epochs >= EPOCHS, any(true), text)

    return judge


def stores(outcome: Record) -> Finding:
    """Overlap of restored and true tokens, for stored and for unseen examples, against the mean spin."""
    rested(outcome)
    last = outcome["stored"]["paper"][-1]
    stored, unseen, floor = last["stored"]["best"], last["unseen"]["best"], last["unseen"]["floor"]
    text = (
        f"Largest cosine of hidden tokens with the true ones, {last['P']:,} examples, 4 x 4 patches: {stored:.3f} for "
        f"stored examples, {unseen:.3f} for unseen ones; the mean spin of each site has {floor:.3f}."
    )
    return decided(min(stored, unseen) > floor, text)


def task_agnostic(outcome: Record) -> Finding:
    """One training, both tasks: errors against the corrupted image and against the mean image."""
    rested(outcome)
    runs = outcome["bare"]["paper-2"]
    masked, noisy, corrupted = (
        fmean(values)
        for values in (
            [run["masked"]["best"] for run in runs],
            [run["noisy"]["best"] for run in runs],
            [run["noisy"]["corrupted"] for run in runs],
        )
    )
    mean_image = outcome["trivial"]["masked-2"]["mean image"]
    text = (
        f"The same couplings: error {masked:.4f} on hidden patches (the mean image has {mean_image:.4f}), {noisy:.4f} "
        f"on noisy images (as given {corrupted:.4f})."
    )
    return graded(masked < mean_image and noisy < corrupted, noisy < corrupted, text)


def fast(speed: Record) -> Finding:
    """Seconds of the paper's training."""
    training = speed["training"]
    text = (
        f"{training['epochs']} epochs of {training['images']:,} images, 2 x 2 patches: {training['seconds']:.0f} s on "
        f"one GPU, with closed gradients {speed['step']['speedup']:.1f} times as fast as autograd."
    )
    return decided(training["seconds"] < 600, text)


def best_strengths(sweep: Record) -> Finding:
    """λ in training and in testing with the least error on held-out digits, for the paper's objective."""
    rows = [row for row in sweep["rows"] if row["preset"] == "paper" and row["changes"]["patch"] == 2]
    if not rows:
        raise NotMeasuredError("The result on file has no settings with the paper's objective.")
    best = {task: min(rows, key=lambda row: row[task]["best"]) for task in ("masked", "noisy")}
    pairs = {task: (row["changes"]["strength"], row[task]["strength"]) for task, row in best.items()}
    shown = "; ".join(f"{task} {train:g} and {test:g}" for task, (train, test) in pairs.items())
    right = [pair == (5.0, 1.0) for pair in pairs.values()]
    return graded(all(right), any(right), f"Best λ in training and in testing, on held-out digits: {shown}.")


def norm_lowers(theory: Record) -> Finding:
    """The energy as the couplings are scaled up."""
    energies = [energy for _, energy in sorted(theory["attractor_energy"].items(), key=lambda item: float(item[0]))]
    shown = ", ".join(f"{energy:.2f}" for energy in energies)
    text = f"Mean e_i of random couplings times 1, 10 and 100: {shown}."
    return decided(all(later < earlier for earlier, later in pairwise(energies)), text)


def asymmetric(theory: Record) -> Finding:
    """Asymmetry of trained couplings."""
    row = theory["attractor_couplings"]
    text = f"|J_ij - J_ji'| is {row['asymmetry']:.2f} |J| after {row['epochs']} epochs on {row['digits']} digits."
    return decided(row["asymmetry"] > 0.1, text)


def invertible(theory: Record) -> Finding:
    """Pixels there and back, and the lengths of spins."""
    row: dict[str, Any] = theory["attractor_embedding"]
    text = (
        f"Pixels come back to {row['pixels']:.0e}; lengths of spins are 1 to {row['length']:.0e}, for several d and a."
    )
    return decided(max(row.values()) <= 1e-5, text)
