"""Judges of what the attractor paper says, from the measurements of `spinformer reproduce attractor`.

A claim of the paper about its bare layer is judged in the two readings of its constant norm: that of each site's
couplings (`paper`) and that of each J_ij (`paper-pair`), and only where the couplings came to rest: where the cosine of
J and minus the gradient of its energy is at least AT_REST for every seed. It holds if it is true in every reading; with
conditions if it, or a part of it, is true in one of them or with the normalisation of the authors' notebook.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any

from research.experiments.attractor_claims import AROUND_TEN, FIRST, rises
from research.reports.markdown import Record
from research.reports.reproduction.entry import Finding, NotMeasuredError, Verdict, decided, graded

AT_REST = 0.99
EPOCHS = 100  # of the transformer block in the paper
ADAM = -10.0  # energy of a site after the paper's training: Adam ends above it, the power method far below
READINGS = {"paper": "norm of each site held", "paper-pair": "norm of each J_ij held"}
TIED = 1e-4  # relative difference of errors below which settings are equally good
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


def readings(outcome: Record) -> dict[str, str]:
    """The readings of the constant norm whose couplings came to rest, and how they are called."""
    rested(outcome)
    return {name: title for name, title in READINGS.items() if (cosine(outcome, name) or 0.0) >= AT_REST}


def evidence(row: Record) -> str:
    """The numbers behind a verdict of `research.experiments.attractor_claims`."""
    numbers = {name: value for name, value in row.items() if name not in ("true", "seeds")}
    return ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in numbers.items())


def _number(value: Any) -> str:
    if isinstance(value, list):
        return " / ".join(map(_number, value))
    return "overflow" if value is None else f"{value:.3g}"


def claims(*names: str, note: Callable[[Record], str] = lambda outcome: "") -> Callable[[Record], Finding]:
    """A judge of claims of `research.experiments.attractor_claims`, which must all be true. note: said at the end."""

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
        full = all(paper) and all(true.get("paper-pair", []))
        text = "; ".join(parts) + "." + others
        return graded(full, any(paper) or any(map(any, true.values())), f"{text} {note(outcome)}".strip())

    return judge


def masked_claims(name: str, *others: str) -> Callable[[Record], Finding]:
    """A judge of claims about masked prediction, of which `name` is also looked at with the error over all pixels.

    The paper does not say over which pixels its error is. Where the claims fail over the hidden pixels, they hold with
    conditions if `name` is true over all of them, in every run that has this error.
    """
    hidden = claims(name, *others)
    true = rises if "grows" in name else _first

    def judge(outcome: Record) -> Finding:
        found = hidden(outcome)
        curves = {title: _all_pixels(outcome, setting) for setting, title in readings(outcome).items()}
        curves = {title: runs for title, runs in curves.items() if runs}
        if not curves:
            return found
        part = all(true(curve) for runs in curves.values() for curve in runs)
        shown = "; ".join(
            f"{title}, {len(runs)} seed{'s' * (len(runs) > 1)}: least {min(runs[0]):.4f}, at step "
            f"{runs[0].index(min(runs[0])) + 1}, and {runs[0][-1]:.4f} at step {len(runs[0])}"
            for title, runs in curves.items()
        )
        text = (
            f"{found.text} This is the error over the hidden pixels. Over all pixels the claim is "
            f"{'true' if part else 'false'} ({shown}). The paper does not say "
            "[which pixels](attractor.md#which-claims-of-the-paper-hold) it takes."
        )
        return Finding(Verdict.CONDITIONS if part and found.verdict is Verdict.FAILS else found.verdict, text)

    return judge


def _all_pixels(outcome: Record, setting: str) -> list[list[float]]:
    """Errors of masked prediction over all pixels, 2 x 2 patches, of each seed that has them."""
    runs = outcome["bare"][f"{setting}-2"]
    return [run["masked"]["all_pixels"] for run in runs if "all_pixels" in run["masked"]]


def _first(curve: list[float]) -> bool:
    """Whether the least error is that of one of the first steps."""
    return curve.index(min(curve)) < FIRST


def around_ten(outcome: Record) -> Finding:
    """Denoising with 2 x 2 patches, as in the paper's Figure 1; where it fails, 4 x 4 patches may meet a part of it."""
    found = claims("denoising is best after around ten steps")(outcome)
    low, high = AROUND_TEN
    true, parts = [], []
    for name, title in readings(outcome).items():
        runs = [run["noisy"] for run in outcome["bare"][f"{name}-4"]]
        true.append(all(low <= run["best_step"] <= high and run["best"] < run["corrupted"] for run in runs))
        steps = " / ".join(str(run["best_step"]) for run in runs)
        parts.append(f"{steps} ({title}), {'true' if true[-1] else 'false'}")
    text = f"{found.text} With 4 x 4 patches the best steps are {'; '.join(parts)}."
    return Finding(Verdict.CONDITIONS if any(true) and found.verdict is Verdict.FAILS else found.verdict, text)


def level_patches(outcome: Record) -> str:
    """By how much the bare layer's least errors with 2 x 2 and with 4 x 4 patches differ, at most."""
    sizes = zip(outcome["bare"]["paper-2"], outcome["bare"]["paper-4"], strict=True)
    apart = [abs(two[task]["best"] / four[task]["best"] - 1) for two, four in sizes for task in ("masked", "noisy")]
    return f"With the norm of each site held, the errors of both sizes differ by at most {max(apart):.1%}."


def block(*names: str, key: str = "backprop", note: str = "") -> Callable[[Record], Finding]:
    """A judge of claims about the transformer block alone, whatever the bare layer does.

    Where it was trained for fewer epochs than the paper's, they hold with conditions if they are true, and nothing is
    decided if they are not. key: where its training is stored; note: said at the end.
    """

    def judge(outcome: Record) -> Finding:
        judged = outcome["claims"]["paper"]
        absent = [name for name in names if name not in judged]
        if absent:
            raise NotMeasuredError(f"The result on file does not judge: {'; '.join(absent)}.")
        true = [judged[name]["true"] for name in names]
        epochs = min(len(run["training"]) for name, run in outcome[key].items() if name.startswith("recurrent"))
        text = "; ".join(f"{name}: {evidence(judged[name])}" for name in names)
        text = f"{text}. Trained for {epochs} epochs, one seed. {note}".strip()
        if epochs < EPOCHS and not all(true):
            raise NotMeasuredError(f"Not run yet with the paper's {EPOCHS} epochs. So far: {text}")
        return graded(all(true) and epochs >= EPOCHS, any(true), text)

    return judge


def stores(outcome: Record) -> Finding:
    """Overlap of restored and true tokens against the mean spin, and the error of denoising against the mean image."""
    named = readings(outcome)
    last = outcome["stored"]["paper"][-1]
    closer = all(last[kind]["best"] > last[kind]["floor"] for kind in ("stored", "unseen"))
    errors = {title: [run["noisy"]["best"] for run in outcome["bare"][f"{name}-2"]] for name, title in named.items()}
    image = outcome["trivial"]["noisy-2"]["mean image"]
    nearer = all(max(runs) < image for runs in errors.values())
    stored, unseen = (f"{last[kind]['best']:.3f}" for kind in ("stored", "unseen"))
    floors = [f"{last[kind]['floor']:.3f}" for kind in ("stored", "unseen")]
    shown = ", ".join(f"{fmean(runs):.4f} ({title})" for title, runs in errors.items())
    text = (
        f"Masked prediction, hidden tokens, 4 x 4 patches, {last['P']:,} examples, one seed, norm of each site held: "
        f"largest cosine {stored} for stored examples (the mean spin of each site has {floors[0]}), {unseen} for "
        f"unseen ones ({floors[1]}). Denoising, 2 x 2 patches: least error {shown}; the mean image has {image:.4f}, so "
        f"the transient state is {'nearer to' if nearer else 'not nearer to'} the image."
    )
    return graded(closer and nearer, closer or nearer, text)


def task_agnostic(outcome: Record) -> Finding:
    """One training, both tasks: errors against the corrupted image and against the mean image, in both readings."""
    mean_image = outcome["trivial"]["masked-2"]["mean image"]
    both, noise, parts = [], [], []
    for name, title in readings(outcome).items():
        runs = outcome["bare"][f"{name}-2"]
        masked, noisy = ([run[task]["best"] for run in runs] for task in ("masked", "noisy"))
        given = runs[0]["noisy"]["corrupted"]
        noise.append(max(noisy) < given)
        both.append(noise[-1] and max(masked) < mean_image)
        parts.append(f"{title}: {fmean(masked):.4f} on hidden patches, {fmean(noisy):.4f} on noisy images")
    text = (
        f"The same couplings for both tasks; {'; '.join(parts)}. On hidden patches the mean image has "
        f"{mean_image:.4f}; noisy images as they are given have {given:.4f}."
    )
    return graded(all(both), any(both) or all(noise), text)


def fast(speed: Record) -> Finding:
    """Seconds of as many steps as the paper's training has."""
    training = speed["training"]
    optimiser = "Adam" if training["energy"][-1] > ADAM else "the power method"
    text = (
        f"{training['epochs']} epochs of {training['images']:,} images, 2 x 2 patches: {training['seconds']:.0f} s on "
        f"one GPU with {optimiser}, with closed gradients {speed['step']['speedup']:.1f} times as fast as autograd."
    )
    return decided(training["seconds"] < 600, text)


def best_strengths(strengths: Record) -> Finding:
    """λ in training and in testing with the least error on held-out digits, in the paper's setting, for each norm."""
    found: list[str] = []
    right: list[bool] = []
    for hold, norm in (("pair", f"{READINGS['paper-pair']}, the paper's words"), ("site", READINGS["paper"])):
        rows = [row for row in strengths["rows"] if row["hold"] == hold]
        theirs = next(row for row in rows if (row["trained"], row["tested"]) == (5.0, 1.0))
        parts = []
        for task in ("masked", "noisy"):
            least = min(row[task]["best"] for row in rows)
            best = [row for row in rows if math.isclose(row[task]["best"], least, rel_tol=TIED)]
            right.append(theirs in best)
            if right[-1]:
                parts.append(f"{task} 5 and 1 (error {least:.4f})")
                continue
            edge = "the largest tried; " if any(_at_the_edge(best, rows, of) for of in ("trained", "tested")) else ""
            above = theirs[task]["best"] / least - 1
            parts.append(
                f"{task} {' and '.join(_values(best, rows, of) for of in ('trained', 'tested'))} ({edge}error "
                f"{least:.4f}; 5 and 1 have {theirs[task]['best']:.4f}, {above:.1%} more)"
            )
        found.append(f"{norm}: {', '.join(parts)}")
    how = (
        "λ multiplies J, so which λ is best depends on the norm that is held ([which norm](#contradiction-att-held)). "
        f"Unit spins, γ = 1, {strengths['rows'][0]['epochs']} epochs on {strengths['train']:,} digits, one seed."
    )
    return graded(all(right), any(right), f"The best λ in training and in testing, {'; '.join(found)}. {how}")


def _values(best: list[Record], rows: list[Record], of: str) -> str:
    """The values of λ among the best rows; "any" if these are all that were tried."""
    values = sorted({row[of] for row in best})
    return "any" if values == sorted({row[of] for row in rows}) else " or ".join(f"{value:g}" for value in values)


def _at_the_edge(best: list[Record], rows: list[Record], of: str) -> bool:
    """Whether only the largest λ that was tried is the best, so that a larger one may be better."""
    return {row[of] for row in best} == {max(row[of] for row in rows)}


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
