"""How long it takes to learn a game, told beforehand."""

import time
from copy import copy, deepcopy

from spinformer._base.progress import duration
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.training.calibration import PASSES
from spinformer.training.game_loss import add_gradients
from spinformer.training.game_memory import Memory

TRIED = 16  # texts that are timed on a CPU; on a GPU a whole batch


def seconds_per_text(
    head: GameHead,
    classifier: MaskedClassifier,
    texts: Texts,
    coalitions: int,
    batch_size: int,
    max_length: int,
    repeats: int = 1,
) -> float:
    """Seconds for each text and epoch, with so many coalitions: measured on texts of all lengths, on a copy.

    repeats: how often the answers are learnt from; again takes less, as nothing is asked.
    """
    chosen = texts.spread(batch_size if classifier.device.type == "cuda" else TRIED)
    classifier, twin = copy(classifier), deepcopy(head).eval()
    classifier.bf16 = classifier.device.type == "cuda"  # as in training
    words = split_words(classifier.tokenizer, texts.select(chosen), max_length).to(classifier.device)
    asked = words.mask[:, None].repeat(1, coalitions, 1)
    asked[:, :, ::2] = False  # as many words as usual
    add_gradients(twin, classifier, words.rows(0, 1), asked[:1, :, : int(words.counts[0])])  # nothing is warm yet
    memory = Memory() if repeats > 1 else None
    start = time.perf_counter()
    add_gradients(twin, classifier, words, asked, memory)
    taken = time.perf_counter() - start
    if repeats > 1:
        start = time.perf_counter()
        add_gradients(twin, classifier, words, asked, memory)
        taken += (repeats - 1) * (time.perf_counter() - start)
    return taken / len(chosen)


def announcement(texts: int, epochs: int, coalitions: int, held_out: int, seconds: float) -> str:
    """What a run will do, and about how long it takes; seconds: for each text and epoch. No epochs: of a stream."""
    if not epochs:
        taken = duration(10_000 * seconds)
        return f"learning from a stream, until twice as many texts bring little: 10,000 take about {taken}"
    passes = texts * epochs * coalitions + held_out * PASSES
    total = seconds * (texts * epochs + held_out * PASSES / (coalitions + 1))
    return f"learning from {texts:,} texts, {passes:,} masked passes: about {duration(total)}"
