"""Over which pixels is the error of masked prediction taken: the hidden ones, or all of the image?

The paper says "mean square error of a prediction" and does not say over which. The bare layer moves visible tokens too,
towards its attractor, so over all pixels the error can rise while that over the hidden ones falls. Both are measured
here, for both readings of the constant norm. The optimiser "power" is at the minimum after a few hundred steps, so some
thousand images and one epoch are enough; `alignment` in the result says how near it came.
"""

from dataclasses import replace
from itertools import product
from typing import Any

from torch import Tensor

from research.experiments import attractor_measures as measures
from research.experiments.attractor_claims import FIRST, rises
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor

HOLDS, PATCHES, STEPS = ("site", "pair"), (2, 4), 20


def run(train: Tensor, test: Tensor, *, seeds: int = 3, epochs: int = 1) -> dict[str, Any]:
    """For each reading, patch size and seed: how near the minimum the couplings are, and both errors by step."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for hold, patch, seed in product(HOLDS, PATCHES, range(seeds)):
        config, recipe = preset("paper", patch=patch, image=measures.image_shape(train), seed=seed)
        network = AttractorNetwork(config).to(train.device)
        training = train_attractor(network, train, replace(recipe, hold=hold, epochs=epochs), quiet=True)
        curves = measures.errors(network, test, "masked", STEPS)
        record = {"seed": seed, **training[-1], "hidden": curves["error"], "all": curves["all_pixels"]}
        runs.setdefault(f"{hold}-{patch}", []).append(record)
        print(f"  {hold}, {patch} x {patch}, seed {seed}: cosine {record['alignment']:.4f}", flush=True)
    return {"train": len(train), "test": len(test), "epochs": epochs, "runs": runs, "claims": judge(runs)}


def judge(runs: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """For each reading, patch size and kind of pixels: best steps, transient states, best in the first steps."""
    claims = {}
    for (key, records), pixels in product(runs.items(), ("hidden", "all")):
        steps = [min(range(STEPS), key=record[pixels].__getitem__) + 1 for record in records]
        claims[f"{key}-{pixels}"] = {
            "best_steps": steps,
            "transient": all(rises(record[pixels]) for record in records),
            "first": all(step <= FIRST for step in steps),
        }
    return claims
