"""Ours beside shap's text explainer and captum: CPU seconds, passes of the classifier, error against exact values.

error of a text = |values - exact|_2 / |exact|_2 over its words, where the exact Shapley values are of all 2^n masked
texts. One classifier, TEXTS pairs of LOW to HIGH words of the sample of SNLI's test set, one pair at a time. Errors and
passes are measured on all of them, where the exact tables answer for the classifier; seconds on the first TIMED, where
the classifier itself does, with one thread. They are CPU time of the process, so that other work on the machine counts
less.
"""

import copy
import time
from collections.abc import Callable
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from research import paths
from research.benchmarks.peer_explainers import Question, peer_explainers
from spinformer._base.progress import progress
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate.explanations.closeness import Closeness, ExactIndices, coverage, upper
from spinformer.evaluate.explanations.metric import Summary
from spinformer.evaluate.explanations.tables import ExactTable, TabulatedClassifier, choose, tabulate
from spinformer.explain.explainer import Explainer

TEXTS, TIMED, LOW, HIGH = 16, 4, 11, 13
PASSES = (64, 256)
SOURCE = "sample:test"
OURS, WITH_GAME, WITHOUT = "spinformer", "shapley", "kernel-shap"
# What a method answers about a text: words, (n,); their standard errors; pairs, (n (n - 1) / 2,); theirs.
Answer = tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]
# From a question about a text, the explainer, the text and a seed.
Asked = Callable[[Question, Explainer, Texts, int], Answer]


def run(seed: int, model: str, count: int = TEXTS, timed: int = TIMED) -> dict[str, Any]:
    """A row for each method and setting; `passed`: whether for every row of others one of ours has at most as many
    passes and a smaller error.

    model: folder of a classifier with a game; count: how many texts; timed: how many of them are timed.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        explainer = Explainer.from_pretrained(model, device="cpu", game=model, seed=seed)
        texts = choose(load_texts(SOURCE), explainer.tokenizer, count, LOW, HIGH, seed=seed)
        path = paths.ROOT / "runs" / "versus" / "tables.safetensors"  # a run that was stopped goes on
        path.parent.mkdir(parents=True, exist_ok=True)
        tables = tabulate(explainer.classifier, texts, path)
        rows = []
        for names, asked in progress(_methods(), "methods"):
            accuracy = _accuracy(asked, explainer, texts, tables, seed)
            seconds = _seconds(asked, explainer, texts.select(range(min(timed, len(texts)))), tables, seed)
            rows.append({**names, **accuracy, "cpu_seconds": seconds})
    finally:
        torch.set_num_threads(before)
    words = sorted(len(table.words) for table in tables)
    return {
        "texts": len(texts),
        "timed": min(timed, len(texts)),
        "words": [words[0], words[-1]],
        "rows": rows,
        "versions": _versions(),
        "passed": _passed(rows),
    }


def _methods() -> list[tuple[dict[str, str], Asked]]:
    """Ours and the others: the names of each, and what it answers about a text."""

    def ours(method: str, passes: int) -> Asked:
        def answer(question: Question, explainer: Explainer, one: Texts, seed: int) -> Answer:
            assert one.second is not None
            found = explainer(one.first[0], one.second[0], method=method, passes=passes, target=question.target)
            matrices = (torch.tensor(found.interactions), torch.tensor(found.interactions_stderr))
            words = torch.tensor(found.importance), torch.tensor(found.importance_stderr)
            return *words, upper(matrices[0]), upper(matrices[1])

        return answer

    def other(values: Callable[[Question, int], Tensor]) -> Asked:
        return lambda question, explainer, one, seed: (values(question, seed), None, None, None)

    methods = []
    for method, numbers in ((WITH_GAME, (0, *PASSES)), (WITHOUT, PASSES)):
        for passes in numbers:
            setting = f"passes={passes}" if passes else "default"
            methods.append(({"library": OURS, "method": method, "setting": setting}, ours(method, passes)))
    for peer in peer_explainers(PASSES):
        names = {"library": peer.library, "method": peer.method, "setting": peer.setting}
        methods.append((names, other(peer.values)))
    return methods


def _question(explainer: Explainer, one: Texts, table: ExactTable) -> Question:
    return Question(explainer.classifier, split_words(explainer.tokenizer, one, explainer.max_length), table.target)


def _accuracy(asked: Asked, explainer: Explainer, texts: Texts, tables: list[ExactTable], seed: int) -> dict[str, Any]:
    """Passes, and errors of words and of pairs, over all texts."""
    answering = copy.copy(explainer)
    answering.classifier = TabulatedClassifier(explainer.classifier, tables)
    words, pairs, passes = [], [], []
    for number, table in enumerate(tables):
        one, spent = texts.select([number]), answering.classifier.passes
        values, stderr, interactions, errors = asked(_question(answering, one, table), answering, one, seed + number)
        passes.append(answering.classifier.passes - spent)
        exact = ExactIndices(table)
        words.append(Closeness.of(values, exact["SV"], stderr))
        if interactions is not None:
            pairs.append(Closeness.of(interactions, exact["SII"], errors))
    return {
        "passes": mean(passes),
        "error": Summary.of(torch.tensor([part.error for part in words], dtype=torch.float64)).to_dict(),
        "covered": coverage(words)["pooled"],
        "pairs_error": mean(part.error for part in pairs) if pairs else None,
        "pairs_covered": coverage(pairs)["pooled"] if pairs else None,
    }


def _seconds(asked: Asked, explainer: Explainer, texts: Texts, tables: list[ExactTable], seed: int) -> float:
    """Mean CPU time; the first text is done once before, so that nothing is loaded or compiled while it counts."""
    seconds = []
    for number in (0, *range(len(texts))):
        one = texts.select([number])
        start = time.process_time()
        asked(_question(explainer, one, tables[number]), explainer, one, seed + number)
        seconds.append(time.process_time() - start)
    return mean(seconds[1:])


def _passed(rows: list[dict[str, Any]]) -> bool:
    ours = [row for row in rows if row["library"] == OURS]
    return all(
        any(own["passes"] <= row["passes"] and own["error"]["mean"] < row["error"]["mean"] for own in ours)
        for row in rows
        if row["library"] != OURS
    )


def _versions() -> dict[str, str]:
    import captum
    import shap

    return {"shap": str(shap.__version__), "captum": str(captum.__version__)}
