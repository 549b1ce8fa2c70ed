"""The claims of the attractor paper, each judged from the numbers that `attractor.compute` measured.

A claim about the errors of the bare layer is true if it holds for every seed; `seeds` says for how many it does. Where
the dynamics ends was measured for the first seed only. If states overflow (NaN) there is no end state: claims about it
are false then, and a curve is judged by its finite part.
"""

import math
from collections.abc import Callable
from typing import Any

NOISY_BAR = 0.6
RISE = 1.02  # an error that ends 2% above its minimum has risen
FIRST = 2  # "the first steps" are t = 1 and t = 2
SEVERAL = 3  # "several steps" are three or more
ONE_ATTRACTOR = 0.1  # spread of the ends over that of the images
LIKENESS = 0.8  # correlation with the mean training image


def judge(outcome: dict[str, Any], name: str = "paper") -> dict[str, dict[str, Any]]:
    """Verdict and evidence for every claim, for the bare layer of the setting `name`.

    ATT Figure 1 has the bare layer on 2 x 2 patches. Claims that compare it with transformers use 4 x 4, as these do.
    """
    small, large = outcome["bare"][f"{name}-2"], outcome["bare"][f"{name}-4"]
    end = small[0]["attractor"]
    claims: dict[str, dict[str, Any]] = {}
    for task in ("masked", "noisy"):
        rises = [_rises(_with_start(run[task])) for run in small]
        claims[f"error is not monotone in t ({task})"] = {**_over(rises), **_evidence(small[0][task])}
        record = outcome["backprop"][f"recurrent-{task}"]
        claims[f"error is not monotone in t ({task}, recurrent block)"] = {
            "true": _rises(_with_start(record)),
            **_evidence(record),
        }
    steps = {task: [run[task]["best_step"] for run in small] for task in ("masked", "noisy")}
    claims["masked prediction is best in the first steps"] = {
        **_over([step <= FIRST for step in steps["masked"]]),
        "best_steps": steps["masked"],
    }
    helped = [run["noisy"]["best"] < run["noisy"]["corrupted"] for run in small]
    claims["denoising is best after several steps"] = {
        **_over([step >= SEVERAL and better for step, better in zip(steps["noisy"], helped, strict=True)]),
        "best_steps": steps["noisy"],
        "best": small[0]["noisy"]["best"],
        "corrupted": small[0]["noisy"]["corrupted"],
    }
    share = _worst(max, [end[task]["spread_of_ends"] / end[task]["spread_of_images"] for task in ("masked", "noisy")])
    claims["states from different images end near one attractor"] = {
        "true": share < ONE_ATTRACTOR,
        "spread_of_ends_over_images": share,
        "similarity_of_ends": _worst(min, [end[task]["similarity_of_ends"] for task in ("masked", "noisy")]),
    }
    likeness = _worst(min, [end[task]["correlation_with_mean_digit"] for task in ("masked", "noisy")])
    claims["the attractor resembles the mean digit"] = {"true": likeness > LIKENESS, "correlation": likeness}
    for task in ("masked", "noisy"):
        vit, recurrent = (outcome["backprop"][f"{model}-{task}"]["best"] for model in ("vit", "recurrent"))
        claims[f"ViT better than recurrent block better than bare layer ({task})"] = {
            **_over([vit < recurrent < run[task]["best"] for run in large]),
            "vit": vit,
            "recurrent": recurrent,
            "bare": large[0][task]["best"],
        }
    spread = {model: outcome["variance"][key]["mean"] for model, key in _models(name).items()}
    claims["variance within patches in the same order"] = {
        "true": spread["vit"] > spread["recurrent"] > spread["bare"],
        **spread,
        "images": outcome["variance"]["vit"]["true_mean"],
    }
    return claims


def use(outcome: dict[str, Any]) -> dict[str, Any]:
    """Every setting beside the trivial predictors: the mean over seeds at the step chosen on held-out images."""
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


def _models(name: str) -> dict[str, str]:
    return {"vit": "vit", "recurrent": "recurrent", "bare": f"{name}-4"}


def _with_start(record: dict[str, Any]) -> list[float]:
    start = [record["corrupted"]] if "corrupted" in record else []
    return [*start, *record["error"]]


def _rises(curve: list[float]) -> bool:
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
