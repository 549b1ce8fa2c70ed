"""What an explanation costs beside a prediction: one pair at a time, on the CPU, with the game of a classifier.

Each pair in turn is predicted, explained (everything that `explain` returns), explained with QUICK coalitions, and, the
first SAMPLED pairs, given Shapley values by permutation sampling with EVALUATIONS passes, so that other work on the
machine slows all alike. Medians over PAIRS pairs of the sample of SNLI's test set, with one thread and with as many as
torch takes.
"""

from functools import partial
from statistics import median
from typing import Any

import torch

from research.benchmarks.timing import once
from spinformer._base.progress import progress
from spinformer.data.sources import load_texts
from spinformer.data.words import split_words
from spinformer.explain.explainer import QUICK

PAIRS, SAMPLED, WARM, EVALUATIONS = 100, 10, 5, 200
# Predictions that an explanation may take, and a quick one.
BAR, QUICK_BAR = 3.0, 2.0
SOURCE = "sample:test"


def run(seed: int, model: str) -> dict[str, Any]:
    """Milliseconds of each, and ratios to a prediction. model: folder of a classifier with a game."""
    before = torch.get_num_threads()
    rows = []
    try:
        for threads in sorted({1, before}):
            torch.set_num_threads(threads)
            rows.append({"threads": threads, **_row(seed, model)})
    finally:
        torch.set_num_threads(before)
    passed = all(row["ratio"] <= BAR and row["quick_ratio"] <= QUICK_BAR for row in rows)
    return {"pairs": PAIRS, "bar": BAR, "quick_bar": QUICK_BAR, "quick": QUICK, "rows": rows, "passed": passed}


def _row(seed: int, folder: str) -> dict[str, float]:
    """One row, with the number of threads that torch has now."""
    from spinformer.explain import Explainer

    explainer = Explainer.from_pretrained(folder, device="cpu", game=folder, seed=seed)
    model, tokenizer = explainer.model, explainer.tokenizer
    quick = Explainer(model, tokenizer, game=folder, seed=seed, samples=QUICK)
    sampling = explainer.scorer("shapley-sampling", passes=EVALUATIONS)
    texts = load_texts(SOURCE)

    @torch.inference_mode()
    def predict(premise: str, hypothesis: str) -> None:
        model(**tokenizer(premise, hypothesis, truncation=True, max_length=128, return_tensors="pt")).logits.softmax(-1)

    times: dict[str, list[float]] = {"prediction": [], "explanation": [], "quick": [], "sampling": []}
    words = []
    for row in progress(range(-WARM, PAIRS), f"explanations, {torch.get_num_threads()} threads"):
        one = texts.select([row % len(texts)])
        assert one.second is not None
        pair = one.first[0], one.second[0]
        seconds = {
            "prediction": once(partial(predict, *pair)),
            "explanation": once(partial(explainer, *pair)),
            "quick": once(partial(quick, *pair)),
        }
        if row >= 0:
            pair_words = split_words(tokenizer, one, 128)
            words.append(int(pair_words.counts))
            if row < SAMPLED:
                seconds["sampling"] = once(partial(sampling, pair_words))
            for name, value in seconds.items():
                times[name].append(value)
    medians = {name: median(values) for name, values in times.items()}
    return {
        "words": median(words),
        **{f"{name}_ms": 1e3 * value for name, value in medians.items()},
        "ratio": medians["explanation"] / medians["prediction"],
        "quick_ratio": medians["quick"] / medians["prediction"],
        "sampling_ratio": medians["sampling"] / medians["prediction"],
    }
