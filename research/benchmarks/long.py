"""What an explanation of a long text costs beside a prediction, on the CPU, with the game of a classifier.

Premises of the sample of SNLI's test set are joined until they and a hypothesis have WORDS words. Each text in turn is
predicted, explained by words and by their pairs, and explained hierarchically: by sentences, and then by the words of the
strongest ones. The PAIRS strongest pairs are read off. Medians over TEXTS texts.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import torch

from spinformer._base.progress import progress
from spinformer.data.sources import load_texts

WORDS, PAIRS, TEXTS, WARM = 400, 50, 20, 2
BAR = 3.0  # predictions that an explanation may take
SOURCE = "sample:test"


def run(seed: int, model: str) -> dict[str, Any]:
    """Milliseconds of each, and ratios to a prediction. model: folder of a classifier with a game."""
    from spinformer.explain import Explainer

    explainer = Explainer.from_pretrained(model, device="cpu", game=model, seed=seed)
    times: dict[str, list[float]] = {"prediction": [], "explanation": [], "hierarchical": []}
    counts, pairs = [], []
    texts = _texts()
    for row in progress(range(-WARM, TEXTS), "long texts"):
        pair = next(texts)
        found = explainer(*pair)
        seconds = {
            "prediction": _seconds(partial(_predict, explainer, *pair)),
            "explanation": _seconds(lambda: explainer(*pair).to_row(pairs=PAIRS)),
            "hierarchical": _seconds(partial(explainer, *pair, players="hierarchical")),
        }
        if row >= 0:
            counts.append(len(found.words))
            pairs.append(len(found.pairs))
            for name, value in seconds.items():
                times[name].append(value)
    medians = {name: median(values) for name, values in times.items()}
    ratio = medians["explanation"] / medians["prediction"]
    return {
        "threads": torch.get_num_threads(),
        "words": median(counts),
        "pairs": median(pairs),
        **{f"{name}_ms": 1e3 * value for name, value in medians.items()},
        "ratio": ratio,
        "hierarchical_ratio": medians["hierarchical"] / medians["prediction"],
        "bar": BAR,
        "passed": ratio <= BAR and min(pairs) >= PAIRS,
    }


def _texts() -> Iterator[tuple[str, str]]:
    """A long text of many premises, and a hypothesis."""
    texts = load_texts(SOURCE)
    assert texts.second is not None
    row = 0
    while True:
        hypothesis, premises, count = texts.second[row], [], len(texts.second[row].split())
        while count < WORDS:
            words = texts.first[row % len(texts)].split()[: WORDS - count]
            premises.append(" ".join(words))
            row, count = row + 1, count + len(words)
        yield " ".join(premises), hypothesis


@torch.inference_mode()
def _predict(explainer: Any, premise: str, hypothesis: str) -> None:
    options = {"truncation": True, "max_length": explainer.max_length, "return_tensors": "pt"}
    explainer.model(**explainer.tokenizer(premise, hypothesis, **options)).logits.softmax(-1)


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
