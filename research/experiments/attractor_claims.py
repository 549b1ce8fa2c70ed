"""The claims of the attractor paper, each judged from the numbers that `attractor.compute` measured.

A claim about the bare layer is true if it holds for every seed; `seeds` says for how many it does. If states overflow
(NaN) there is no end state: claims about it are false then, and a curve is judged by its finite part.
"""

import math
from collections.abc import Callable
from typing import Any

NOISY_BAR = 0.6
RISE = 1.02  # an error that ends 2% above its minimum has risen
FIRST = 2  # "the first steps" are t = 1 and t = 2
SEVERAL = 3  # "several steps" are three or more
AROUND_TEN = (7, 13)
TRAINED_DEPTHS = (3, 7)  # repetitions of the block in its training
ONE_ATTRACTOR = 0.1  # spread of the ends over that of the images
SAME = 0.95  # correlation of the attractors of both tasks
LIKENESS = 0.8  # correlation with the mean training image
AT_REST = 0.99  # cos(J, -dE/dJ), mean over sites
TASKS = ("masked", "noisy")
OPTIMISERS = ("paper", "paper-pair", "paper-sgd", "paper-adam")
MEASURED = ("energy", "alignment", "least_alignment")

Outcome = dict[str, Any]
Claims = dict[str, dict[str, Any]]


def judge(outcome: Outcome, name: str = "paper") -> Claims:
    """Verdict and evidence for every claim, for the bare layer of the setting `name`.

    ATT Figure 1 has the bare layer on 2 x 2 patches; ATT Figure 2 has 4 x 4 patches.
    """
    outcome = _with_nan(outcome)
    small, large = outcome["bare"][f"{name}-2"], outcome["bare"][f"{name}-4"]
    return {
        **_curves(small, outcome["backprop"]),
        **_attractor(small),
        **_order(small, large, outcome["backprop"]),
        **_patches(small, large, outcome.get("pair", {})),
        **_variance(large, outcome["variance"]),
    }


def _curves(small: list[Outcome], backprop: Outcome) -> Claims:
    """Transient states, and when the error is least."""
    claims: Claims = {}
    for task in TASKS:
        risen = [rises(_with_start(run[task])) for run in small]
        claims[f"error grows after its least ({task})"] = {**_over(risen), **_evidence(small[0][task])}
        record = backprop[f"recurrent-{task}"]
        claims[f"error grows after its least ({task}, recurrent block)"] = {
            "true": rises(_with_start(record)),
            **_evidence(record),
        }
    if all("all_pixels" in run["masked"] for run in small):
        whole = [run["masked"]["all_pixels"] for run in small]
        best = [min(range(len(curve)), key=curve.__getitem__) + 1 for curve in whole]
        claims["error grows after its least (masked, all pixels)"] = {
            **_over([rises(curve) for curve in whole]),
            "best": min(whole[0]),
            "best_step": best[0],
            "last": whole[0][-1],
        }
        claims["masked prediction is best in the first steps (all pixels)"] = {
            **_over([step <= FIRST for step in best]),
            "best_steps": best,
        }
    steps = {task: [run[task]["best_step"] for run in small] for task in TASKS}
    helped = [run["noisy"]["best"] < run["noisy"]["corrupted"] for run in small]
    claims["masked prediction is best in the first steps"] = {
        **_over([step <= FIRST for step in steps["masked"]]),
        "best_steps": steps["masked"],
    }
    claims["denoising is best after several steps"] = {
        **_over([step >= SEVERAL and better for step, better in zip(steps["noisy"], helped, strict=True)]),
        "best_steps": steps["noisy"],
        "best": small[0]["noisy"]["best"],
        "corrupted": small[0]["noisy"]["corrupted"],
    }
    low, high = AROUND_TEN
    claims["denoising is best after around ten steps"] = {
        **_over([low <= step <= high and better for step, better in zip(steps["noisy"], helped, strict=True)]),
        "best_steps": steps["noisy"],
    }
    for task in TASKS:
        step = backprop[f"recurrent-{task}"]["best_step"]
        claims[f"recurrent block is best after 3 to 7 repetitions ({task})"] = {
            "true": TRAINED_DEPTHS[0] <= step <= TRAINED_DEPTHS[1],
            "best_step": step,
        }
    return claims


def _attractor(small: list[Outcome]) -> Claims:
    """Where the dynamics ends."""
    ends = [run["attractor"] for run in small if "attractor" in run]
    shares = [_worst(max, [end[t]["spread_of_ends"] / end[t]["spread_of_images"] for t in TASKS]) for end in ends]
    similarity = [_worst(min, [end[t]["similarity_of_ends"] for t in TASKS]) for end in ends]
    between = [end["correlation_between_tasks"] for end in ends]
    likeness = [_worst(min, [end[t]["correlation_with_mean_digit"] for t in TASKS]) for end in ends]
    return {
        "states from different images end near one attractor": {
            **_over([share < ONE_ATTRACTOR for share in shares]),
            "spread_of_ends_over_images": shares,
            "similarity_of_ends": similarity,
        },
        "both tasks have the same attractor": {
            **_over([one > SAME for one in between]),
            "correlation": between,
        },
        "the attractor resembles the mean digit": {
            **_over([one > LIKENESS for one in likeness]),
            "correlation": likeness,
        },
    }


def _order(small: list[Outcome], large: list[Outcome], backprop: Outcome) -> Claims:
    """Which model is best; the bare layer with 2 x 2 patches, as in ATT Figure 1, and with 4 x 4."""
    claims: Claims = {}
    for task in TASKS:
        vit, recurrent = (backprop[f"{model}-{task}"]["best"] for model in ("vit", "recurrent"))
        bare = [[run[task]["best"] for run in runs] for runs in (small, large)]
        claims[f"ViT better than recurrent block better than bare layer ({task})"] = {
            **_over([vit < recurrent < min(pair) for pair in zip(*bare, strict=True)]),
            "vit": vit,
            "recurrent": recurrent,
            "bare_2x2": bare[0][0],
            "bare_4x4": bare[1][0],
        }
    return claims


def _patches(small: list[Outcome], large: list[Outcome], pairs: Outcome) -> Claims:
    """Which patches suit the bare layer and the block; of the latter where it was trained with both."""
    claims: Claims = {}
    for task in TASKS:
        best = [[run[task]["best"] for run in runs] for runs in (small, large)]
        claims[f"bare layer works better with 2 x 2 than with 4 x 4 patches ({task})"] = {
            **_over([two < four for two, four in zip(*best, strict=True)]),
            "error_2x2": best[0],
            "error_4x4": best[1],
        }
    for task in TASKS if pairs else ():
        two, four = (pairs[f"recurrent-{patch}-{task}"]["best"] for patch in (2, 4))
        claims[f"recurrent block works better with 4 x 4 than with 2 x 2 patches ({task})"] = {
            "true": four < two,
            "error_2x2": two,
            "error_4x4": four,
        }
    return claims


def _variance(large: list[Outcome], variance: Outcome) -> Claims:
    """ATT Figure 2."""
    vit, recurrent = variance["vit"]["mean"], variance["recurrent"]["mean"]
    bare = [run["variance"]["mean"] for run in large]
    return {
        "variance within patches in the same order": {
            **_over([vit > recurrent > one for one in bare]),
            "vit": vit,
            "recurrent": recurrent,
            "bare": bare,
            "images": variance["vit"]["true_mean"],
        }
    }


def solved(outcome: Outcome) -> dict[str, Any]:
    """Whether the setting `paper` is at a minimum of its energy, and not above plain SGD, over all training images.

    optimisers: mean e_i, and the cosine of J and -dE/dJ, mean and least over sites, for each optimiser and seed.
    """
    optimisers: dict[str, Any] = {}
    for key, runs in outcome["bare"].items():
        last = [run["training"][-1] for run in runs]
        if key.rsplit("-", 1)[0] in OPTIMISERS and all("energy" in record for record in last):
            measured = {name: [record[name] for record in last] for name in MEASURED}
            optimisers[key] = {"seeds": [run["seed"] for run in runs], **measured}
    verdicts: Claims = {}
    for patch in (2, 4):
        for name, more in (("paper", ""), ("paper-pair", ', hold="pair"')):
            cosines = optimisers.get(f"{name}-{patch}", {}).get("alignment")
            if cosines is not None:
                verdicts[f"cosine of J and -gradient at least {AT_REST} ({patch} x {patch}{more})"] = {
                    **_over([cosine >= AT_REST for cosine in cosines]),
                    "cosine": cosines,
                }
        ours, sgd = (_by_seed(optimisers.get(f"{name}-{patch}")) for name in ("paper", "paper-sgd"))
        both = sorted(ours.keys() & sgd.keys())
        if both:
            verdicts[f"energy at most that of SGD ({patch} x {patch})"] = {
                **_over([ours[seed] <= sgd[seed] for seed in both]),
                "energy": [ours[seed] for seed in both],
                "energy_of_sgd": [sgd[seed] for seed in both],
            }
    return {"optimisers": optimisers, "verdicts": verdicts}


def _by_seed(measured: dict[str, Any] | None) -> dict[int, float]:
    return {} if measured is None else dict(zip(measured["seeds"], measured["energy"], strict=True))


def use(outcome: dict[str, Any]) -> dict[str, Any]:
    """Every setting beside the trivial predictors: the mean over seeds at the step chosen on held-out images."""
    outcome = _with_nan(outcome)
    table: dict[str, Any] = {}
    for key, runs in outcome["bare"].items():
        patch = key.rsplit("-", 1)[1]
        masked_rival = min(outcome["trivial"][f"masked-{patch}"].values())
        noisy_rivals = outcome["trivial"][f"noisy-{patch}"]
        masked = [run["masked"]["chosen"] for run in runs]
        noisy = [run["noisy"]["chosen"] for run in runs]
        pinned = [run["masked, visible tokens pinned"]["chosen"] for run in runs]
        ratio = [run["noisy"]["chosen"] / run["noisy"]["corrupted"] for run in runs]
        table[key] = {
            "masked": _mean(masked),
            "masked_step": runs[0]["masked"]["chosen_step"],
            "masked_pinned": _mean(pinned),
            "best_trivial_masked": masked_rival,
            "beats_trivial_masked": max(masked) < masked_rival,
            "noisy": _mean(noisy),
            "noisy_step": runs[0]["noisy"]["chosen_step"],
            "noisy_ratio": _mean(ratio),
            "noisy_within_bar": max(ratio) <= NOISY_BAR,
            "best_trivial_noisy": min(noisy_rivals.values()),
            "beats_trivial_noisy": max(noisy) < min(noisy_rivals.values()),
        }
    return table


def _with_nan(node: Any) -> Any:
    """Numbers that a JSON file holds as null are NaN."""
    if isinstance(node, dict):
        return {name: _with_nan(value) for name, value in node.items()}
    if isinstance(node, list):
        return [_with_nan(value) for value in node]
    return math.nan if node is None else node


def _with_start(record: dict[str, Any]) -> list[float]:
    start = [record["corrupted"]] if "corrupted" in record else []
    return [*start, *record["error"]]


def rises(curve: list[float]) -> bool:
    """Whether the last finite error is more than 2% above the least."""
    finite = [error for error in curve if math.isfinite(error)]
    return finite[-1] > RISE * min(finite)


def _over(seeds: list[bool]) -> dict[str, Any]:
    return {"true": all(seeds), "seeds": f"{sum(seeds)} of {len(seeds)}"}


def _worst(pick: Callable[[list[float]], float], values: list[float]) -> float:
    """The least favourable of `values`; NaN where any of them is."""
    return math.nan if any(math.isnan(value) for value in values) else pick(values)


def _evidence(record: dict[str, Any]) -> dict[str, Any]:
    return {"best": record["best"], "best_step": record["best_step"], "last": record["error"][-1]}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
