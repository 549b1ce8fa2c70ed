"""What an explanation costs beside a prediction: one pair at a time, on the CPU, through a classifier's game.

Each pair in turn is predicted, explained (the whole result of `explain`) and given Shapley values by permutation
sampling with EVALUATIONS passes, so that whatever else the machine does falls on all three; medians over PAIRS pairs of
the sample of SNLI's test set, with one thread and with as many as torch takes.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from spinformer.data.named import load_texts
from spinformer.data.words import split
from spinformer.progress import progress

PAIRS, WARM, EVALUATIONS, BAR = 100, 5, 200, 1.5
SOURCE = "sample:test"


def run(seed: int, model: str) -> dict[str, Any]:
    """Milliseconds of each and the ratios to a prediction; model: folder of a classifier with a game."""
    before = torch.get_num_threads()
    rows = []
    try:
        for threads in sorted({1, before}):
            torch.set_num_threads(threads)
            rows.append({"threads": threads, **_row(seed, model)})
    finally:
        torch.set_num_threads(before)
    return {"pairs": PAIRS, "bar": BAR, "rows": rows, "passed": all(row["ratio"] <= BAR for row in rows)}


def _row(seed: int, folder: str) -> dict[str, float]:
    """With the threads that torch has now."""
    from spinformer.explain import explain
    from spinformer.explain.attribution import ShapleySampling
    from spinformer.explain.grounded import Grounded
    from spinformer.models.load import load_classifier
    from spinformer.models.masked import MaskedClassifier

    model, tokenizer = load_classifier(folder, device="cpu")
    grounded = Grounded.load(Path(folder), model)
    sampling = ShapleySampling(MaskedClassifier(model, tokenizer, grounded.masking), EVALUATIONS, seed)
    texts = load_texts(SOURCE)

    @torch.inference_mode()
    def predict(premise: str, hypothesis: str) -> None:
        model(**tokenizer(premise, hypothesis, truncation=True, max_length=128, return_tensors="pt")).logits.softmax(-1)

    taken: dict[str, list[float]] = {"prediction": [], "explanation": [], "sampling": []}
    words = []
    for row in progress(range(-WARM, PAIRS), f"explanations, {torch.get_num_threads()} threads"):
        one = texts.select([row % len(texts)])
        assert one.second is not None
        pair = one.first[0], one.second[0]
        seconds = {
            "prediction": _seconds(partial(predict, *pair)),
            "explanation": _seconds(partial(explain, model, tokenizer, *pair, seed=seed)),
        }
        if row >= 0:
            found = split(tokenizer, one, 128)
            words.append(int(found.counts))
            seconds["sampling"] = _seconds(partial(sampling, found))
            for name, value in seconds.items():
                taken[name].append(value)
    middle = {name: median(values) for name, values in taken.items()}
    return {
        "words": median(words),
        **{f"{name}_ms": 1e3 * value for name, value in middle.items()},
        "ratio": middle["explanation"] / middle["prediction"],
        "sampling_ratio": middle["sampling"] / middle["prediction"],
    }


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
