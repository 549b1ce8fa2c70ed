"""The attractor paper's claims, each judged from the figures that `attractor.compute` measured."""

from typing import Any

NOISY_BAR = 0.6
RISE = 1.02  # an error that ends 2% above its minimum has risen


def judge(outcome: dict[str, Any], name: str = "paper") -> dict[str, dict[str, Any]]:
    """Verdict and evidence for every claim, for the bare layer of the setting `name`.

    Fig. 1 has the bare layer on 2 x 2 patches; claims that compare it with the transformers use 4 x 4, as they do.
    """
    small, large = outcome["bare"][f"{name}-2"][0], outcome["bare"][f"{name}-4"][0]
    end = small["attractor"]
    claims: dict[str, dict[str, Any]] = {}
    for task in ("masked", "noisy"):
        curve = _with_start(small[task])
        claims[f"error is not monotone in t ({task})"] = {"true": _rises(curve), **_evidence(small[task])}
        for other in ("recurrent",):
            record = outcome["backprop"][f"{other}-{task}"]
            claims[f"error is not monotone in t ({task}, {other} block)"] = {
                "true": _rises(_with_start(record)),
                **_evidence(record),
            }
    masked, noisy = small["masked"]["best_step"], small["noisy"]["best_step"]
    claims["masked prediction is best in the first steps"] = {"true": masked <= 2, "best_step": masked}
    claims["denoising is best after several steps"] = {
        "true": noisy >= 3 and small["noisy"]["best"] < small["noisy"]["corrupted"],
        "best_step": noisy,
        "best": small["noisy"]["best"],
        "corrupted": small["noisy"]["corrupted"],
    }
    share = max(end[task]["spread_of_ends"] / end[task]["spread_of_images"] for task in ("masked", "noisy"))
    claims["states from different images end near one attractor"] = {
        "true": share < 0.1,
        "spread_of_ends_over_images": share,
        "similarity_of_ends": min(end[task]["similarity_of_ends"] for task in ("masked", "noisy")),
    }
    likeness = min(end[task]["correlation_with_mean_digit"] for task in ("masked", "noisy"))
    claims["the attractor resembles the mean digit"] = {"true": likeness > 0.8, "correlation": likeness}
    for task in ("masked", "noisy"):
        order = {
            "vit": outcome["backprop"][f"vit-{task}"]["best"],
            "recurrent": outcome["backprop"][f"recurrent-{task}"]["best"],
            "bare": large[task]["best"],
        }
        claims[f"ViT better than recurrent block better than bare layer ({task})"] = {
            "true": order["vit"] < order["recurrent"] < order["bare"],
            **order,
        }
    spread = {model: outcome["variance"][key]["mean"] for model, key in _models(name).items()}
    claims["variance within patches in the same order"] = {
        "true": spread["vit"] > spread["recurrent"] > spread["bare"],
        **spread,
        "images": outcome["variance"]["vit"]["true_mean"],
    }
    return claims


def use(outcome: dict[str, Any]) -> dict[str, Any]:
    """Bar 3: every setting beside the trivial predictors, at the step chosen on held-out images, seeds averaged."""
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
    return curve[-1] > RISE * min(curve)


def _evidence(record: dict[str, Any]) -> dict[str, Any]:
    return {"best": record["best"], "best_step": record["best_step"], "last": record["error"][-1]}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
