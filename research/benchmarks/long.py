"""What an explanation of a long text costs beside a prediction, on the CPU, with the game of a classifier; and how near
Shapley values of many words are to the game's own.

Premises of the sample of SNLI's test set are joined until they and a hypothesis have so many words. Each text of WORDS
words in turn is predicted, explained by words and by their pairs, and explained hierarchically: by sentences, and then
by the words of the strongest ones. The PAIRS strongest pairs are read off. Medians over TEXTS texts.

Errors are of both ways to read Shapley values and interactions off the game, quadrature and toggles, relative to the
mean of REFERENCE runs of the latter with other seeds, for EACH texts of every length in LENGTHS. Interactions are those
of the words that toggles found to be the strongest.
"""

import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

import torch

from research.benchmarks.timing import once
from spinformer._base.progress import progress
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games import quadrature
from spinformer.games.gaussian import share_out
from spinformer.games.toggles import CONTEXTS, context_count, toggled_values

WORDS, PAIRS, TEXTS, WARM = 400, 50, 5, 1
LENGTHS, EACH, REFERENCE = (50, 100, 150, 200, 250, 400), 3, 8
BUDGETS = (512, 2048)  # coalitions of quadrature
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
            "prediction": once(partial(_predict, explainer, *pair)),
            "explanation": once(partial(_explain, explainer, *pair)),
            "hierarchical": once(partial(explainer, *pair, players="hierarchical")),
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
        "errors": [_errors(explainer, count, seed) for count in LENGTHS],
        "passed": ratio <= BAR and min(pairs) >= PAIRS,
    }


@torch.inference_mode()
def _errors(explainer: Any, count: int, seed: int) -> dict[str, Any]:
    """Of texts of so many words: relative errors of words and of pairs, and seconds, of each way; means over texts."""
    texts = _texts(count)
    found: dict[str, dict[str, float]] = {}
    for _ in progress(range(EACH), f"{count} words"):
        one, other = next(texts)
        words = split_words(explainer.tokenizer, Texts([one], [other]), explainer.max_length)
        game = explainer.grounded.games(words).game()
        ways = {f"quadrature {size}": partial(_quadrature, game, size, seed) for size in BUDGETS}
        ways["toggles"] = partial(_toggles, game, context_count(game.players, quadrature.TOGGLED), seed)
        read, seconds = {}, {}
        for name, way in ways.items():
            start = time.perf_counter()
            read[name] = way()
            seconds[name] = time.perf_counter() - start
        first, second = (read["toggles"]["SII"] != 0).triu(1).nonzero(as_tuple=True)
        strong = torch.cat([first, second]).unique()
        exact = [_toggles(game, CONTEXTS[1], seed + 1 + run, strong) for run in range(REFERENCE)]
        for name, values in read.items():
            row = found.setdefault(name, {"words": 0.0, "pairs": 0.0, "seconds": 0.0})
            row["seconds"] += seconds[name] / EACH
            for what, index, at in (("words", "SV", ()), ("pairs", "SII", (first, second))):
                reference = torch.stack([each[index][at] for each in exact]).mean(0)
                row[what] += float((values[index][at] - reference).norm() / reference.norm()) / EACH
    return {"words": count, "ways": found}


def _toggles(game: Any, count: int, seed: int, strong: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """Shapley values, (n,), and interactions, (n, n), of the strongest words or of these."""
    found = toggled_values(game, 0, torch.arange(game.players), count, torch.tensor(seed), strong)
    return {name: found[name][0] for name in ("SV", "SII")}


def _quadrature(game: Any, size: int, seed: int) -> dict[str, torch.Tensor]:
    """The same of all words from so many coalitions, however many players the game has."""
    values = quadrature._evaluate(game, [0], size, seed)
    process = quadrature._quadrature(game.players, size, seed, "cpu")
    coefficients = process.coefficients(values)
    found = {name: process.values(name, coefficients)[0] for name in ("SV", "SII")}
    return found | {"SV": share_out(found["SV"], (values[0, 1] - values[0, 0]).double())}


def _texts(words_in_all: int = WORDS) -> Iterator[tuple[str, str]]:
    """A long text of many premises, and a hypothesis."""
    texts = load_texts(SOURCE)
    assert texts.second is not None
    row = 0
    while True:
        hypothesis, premises, count = texts.second[row], [], len(texts.second[row].split())
        while count < words_in_all:
            words = texts.first[row % len(texts)].split()[: words_in_all - count]
            premises.append(" ".join(words))
            row, count = row + 1, count + len(words)
        yield " ".join(premises), hypothesis


@torch.inference_mode()
def _predict(explainer: Any, premise: str, hypothesis: str) -> None:
    options = {"truncation": True, "max_length": explainer.max_length, "return_tensors": "pt"}
    explainer.model(**explainer.tokenizer(premise, hypothesis, **options)).logits.softmax(-1)


def _explain(explainer: Any, premise: str, hypothesis: str) -> None:
    explainer(premise, hypothesis).to_row(pairs=PAIRS)
