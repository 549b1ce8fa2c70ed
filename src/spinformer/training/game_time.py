"""How long it takes to learn a game, told beforehand."""

import time
from copy import copy, deepcopy

from spinformer._base.progress import duration
from spinformer._base.rng import preserved
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.training.calibration import passes_for
from spinformer.training.game_hints import HintMap
from spinformer.training.game_loss import add_gradients
from spinformer.training.game_memory import Memory
from spinformer.training.game_options import GroundingOptions
from spinformer.training.muon import optimizers_of

TRIED = 16  # texts that are timed on a CPU; on a GPU a whole batch


def seconds_per_text(
    head: GameHead,
    classifier: MaskedClassifier,
    texts: Texts,
    options: GroundingOptions,
) -> float:
    """Seconds for each text and epoch, by options that are `suited`: measured on texts of all lengths, on a copy.

    To learn again from the same answers takes less, as nothing is asked.
    """
    chosen = texts.spread(options.batch_size if classifier.device.type == "cuda" else TRIED)
    classifier, twin = copy(classifier), deepcopy(head).eval()
    classifier.bf16 = classifier.device.type == "cuda"  # as in training
    words = split_words(classifier.tokenizer, texts.select(chosen), options.max_length).to(classifier.device)
    with preserved():
        hints = HintMap.measured(head, classifier, texts, options) if options.hints else None
    asked = words.mask[:, None].repeat(1, options.subsets, 1)
    asked[:, :, ::2] = False  # as many words as usual
    first = words.rows(0, 1), asked[:1, :, : int(words.counts[0])]
    add_gradients(twin, classifier, *first, hints=hints)  # nothing is warm yet
    memory = Memory.on(classifier.device) if options.repeats > 1 else None

    def seconds() -> float:
        start = time.perf_counter()
        float(add_gradients(twin, classifier, words, asked, memory, hints=hints))  # waits for the device
        return time.perf_counter() - start

    taken = seconds()
    if options.repeats > 1:
        taken += (options.repeats - 1) * seconds()
    return taken / len(chosen) + options.repeats * _seconds_per_update(twin, hints, options) / options.batch_size


def _seconds_per_update(twin: GameHead, hints: HintMap | None, options: GroundingOptions) -> float:
    """What the optimiser takes to change weights that have gradients."""
    weights = [*twin.parameters(), *(() if hints is None else hints.parameters())]
    optimizers = optimizers_of(weights, 0.0, 0.0, muon=options.optimizer == "muon").values()
    for _ in range(2):  # the first prepares what an optimiser keeps
        start = time.perf_counter()
        for optimizer in optimizers:
            optimizer.step()
        float(weights[0].detach().sum())  # waits for the device
    return time.perf_counter() - start


def announcement(texts: int, epochs: int, coalitions: int, held_out: int, seconds: float) -> str:
    """What a run will do, and about how long it takes; seconds: for each text and epoch. No epochs: of a stream."""
    if not epochs:
        taken = duration(10_000 * seconds)
        return f"learning from a stream, until twice as many texts bring little: 10,000 take about {taken}"
    measured = passes_for(held_out)
    passes = texts * epochs * coalitions + measured
    total = seconds * (texts * epochs + measured / (coalitions + 1))
    return f"learning from {texts:,} texts, {passes:,} masked passes: about {duration(total)}"
