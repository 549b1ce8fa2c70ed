"""How faithful grounded games are: beside every other method, on the same model and the same texts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.data.words import split
from spinformer.evaluate.decisions import decide
from spinformer.evaluate.explanations import Method, Table, compare
from spinformer.evaluate.faithfulness import Comprehensiveness, LeaveOneOutCorrelation, Sufficiency
from spinformer.evaluate.games import MAX_WORDS, Agreement, Fit, GameFit, InteractionAgreement
from spinformer.evaluate.plausibility import HighlightAgreement
from spinformer.explain.attribution import (
    AdditiveExplainer,
    AttentionPooling,
    GradientTimesInput,
    IntegratedGradients,
    KernelShap,
    LeaveOneOut,
    NeuroGameScores,
    RandomScores,
    ShapleySampling,
)
from spinformer.explain.grounded import Grounded, GroundedScores
from spinformer.models.masked import MaskedClassifier
from spinformer.progress import progress
from spinformer.training.ground import Grounding, ground

EVALUATIONS = 200
SHORT = 20  # texts for the exact interactions, 2^W passes each

# What the search for a form changes, one thing at a time, in `Grounding`.
FORMS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "last layer alone": {"layers": (-1,)},
    "embeddings alone": {"layers": (0,)},
    "one head": {"heads": 1},
    "narrow": {"dim": 32, "heads": 4, "hidden": 128},
    "wide": {"dim": 256, "hidden": 1024, "readout": 256},
    "two subsets": {"subsets": 2},
    "eight subsets": {"subsets": 8},
    "Shapley kernel": {"draw": "kernel"},
    "near full and empty": {"draw": "edges"},
    "mask token": {"masking": "token"},
    "deletion": {"masking": "delete"},
}


@dataclass(frozen=True)
class Trial:
    """A frozen classifier, the texts to ground it on, and those to measure on."""

    model: Any
    tokenizer: Any
    train: Texts
    test: Texts
    highlights: Highlights | None = None
    max_length: int = 128


def form(trial: Trial, name: str, options: Grounding, folder: Path) -> dict[str, Any]:
    """Ground by one form of the search and measure it: fit, comprehensiveness, sufficiency, seconds."""
    head, seconds = _ground(trial, replace(options, **FORMS[name]), folder)
    grounded = Grounded(trial.model, head)
    classifier = MaskedClassifier(trial.model, trial.tokenizer, grounded.masking)
    table = compare([GroundedScores(grounded, "shapley")], classifier, trial.test, max_length=trial.max_length)
    return {"form": name, "seconds": seconds, "fit": fit(trial, grounded).to_dict(), **table.to_dict()}


def frozen(trial: Trial, options: Grounding, folder: Path, *, additive: bool = True) -> dict[str, Any]:
    """Ground by `options` and compare with every other method, with an additive explainer given as many passes."""
    head, seconds = _ground(trial, options, folder)
    grounded = Grounded(trial.model, head)
    classifier = MaskedClassifier(trial.model, trial.tokenizer, grounded.masking)
    others = _others(classifier, options.seed)
    if additive:
        explainer = AdditiveExplainer(classifier, seed=options.seed)
        passes = len(trial.train) * options.epochs * (options.subsets + 1)
        explainer.train(
            trial.train,
            passes=passes,
            max_length=trial.max_length,
            batch_size=min(32, options.batch_size),
            seed=options.seed,
            quiet=True,
        )
        others.append(explainer)
    return {"grounding": asdict(options), "seconds": seconds, **measure(trial, grounded, others)}


def measure(trial: Trial, grounded: Grounded, others: Sequence[Method] = ()) -> dict[str, Any]:
    """Every metric of a grounded classifier, frozen or trained together, and of the other methods on it."""
    classifier = MaskedClassifier(trial.model, trial.tokenizer, grounded.masking)
    own: list[Method] = [GroundedScores(grounded, what) for what in ("shapley", "banzhaf", "field", "attention")]
    methods = [*own, *(others or _others(classifier, 0))]
    metrics = [Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()]
    table = compare(methods, classifier, trial.test, metrics, seeds=(0, 1, 2), max_length=trial.max_length)
    found: dict[str, Any] = {"faithfulness": table.to_dict(), "differences": _differences(table)}
    found["fit"] = fit(trial, grounded).to_dict()
    found["interactions"] = interactions(trial, grounded).to_dict()
    found["diagnostics"] = diagnostics(trial, grounded)
    if trial.highlights is not None:
        one_pass = [method for method in methods if str(getattr(method, "passes", "")).startswith(("0", "1"))]
        agreement = HighlightAgreement(trial.highlights)
        chosen = compare(one_pass, classifier, trial.highlights.texts, [agreement], max_length=trial.max_length)
        found["highlights"] = chosen.to_dict()
    return found


def fit(trial: Trial, grounded: Grounded, coalitions: int = 32) -> Fit:
    """R squared of v(C) on the test texts."""
    classifier = MaskedClassifier(trial.model, trial.tokenizer, grounded.masking)
    parts, gauge = [], GameFit(coalitions)
    for rows in progress(_chunks(len(trial.test)), "fit"):
        decisions = decide(classifier, split(trial.tokenizer, trial.test.select(rows), trial.max_length), rows)
        parts.append(gauge(decisions, grounded.games(decisions.words).game(decisions.target)))
    return Fit.join(parts)


def interactions(trial: Trial, grounded: Grounded) -> Agreement:
    """The game's pairwise interactions against the model's own, exact, on the first short texts."""
    classifier = MaskedClassifier(trial.model, trial.tokenizer, grounded.masking, batch_size=1024)
    parts, gauge = [], InteractionAgreement()
    short = [row for row in range(len(trial.test)) if 4 <= _count(trial, row) <= MAX_WORDS][:SHORT]
    if not short:
        raise ValueError(f"{trial.test.source} has no texts of 4 to {MAX_WORDS} words, which exact interactions need")
    for row in progress(short, "interactions"):
        decisions = decide(classifier, split(trial.tokenizer, trial.test.select([row]), trial.max_length), [row])
        parts.append(gauge(decisions, grounded.games(decisions.words).game(decisions.target)))
    return Agreement.join(parts)


def diagnostics(trial: Trial, grounded: Grounded) -> dict[str, float]:
    """Effective sample size as a part of K, and convergence of the mean field, over the test texts."""
    ess, converged = [], []
    for rows in progress(_chunks(len(trial.test)), "mean field"):
        words = split(trial.tokenizer, trial.test.select(rows), trial.max_length)
        played = grounded.play(grounded.games(words))
        ess.append(played.ess.cpu() / grounded.samples)
        converged.append(played.solved.converged.float().cpu())
    share = torch.cat(ess)
    return {
        "ess_mean": float(share.mean()),
        "ess_least": float(share.min()),
        "converged": float(torch.cat(converged).mean()),
    }


def _others(classifier: MaskedClassifier, seed: int) -> list[Method]:
    """What the game is compared with; those that the model's own head offers come where it has them."""
    methods: list[Any] = [
        GradientTimesInput(classifier),
        IntegratedGradients(classifier),
        ShapleySampling(classifier, EVALUATIONS, seed),
        KernelShap(classifier, EVALUATIONS, seed),
        LeaveOneOut(classifier),
        RandomScores(seed),
    ]
    head = getattr(classifier.model.config, "head", None)
    if head == "attention":
        methods.append(AttentionPooling(classifier))
    if head == "neurogame":
        methods += [NeuroGameScores(classifier, "attention"), NeuroGameScores(classifier, "fields")]
    return methods


def _differences(table: Table) -> dict[str, Any]:
    """Of the game's Shapley values and every other method, on the same texts."""
    ours = "grounded shapley"
    others = [name for name in table.values if name != ours]
    return {
        name: {metric: asdict(table.difference(metric, ours, name)) for metric in ("comprehensiveness", "sufficiency")}
        for name in others
    }


def _ground(trial: Trial, options: Grounding, folder: Path) -> tuple[Any, float]:
    started = time.perf_counter()
    options = replace(options, max_length=trial.max_length)
    return ground(trial.model, trial.tokenizer, trial.train, folder, options), time.perf_counter() - started


def _chunks(count: int, size: int = 32) -> list[list[int]]:
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]


def _count(trial: Trial, row: int) -> int:
    return int(split(trial.tokenizer, trial.test.select([row]), trial.max_length).counts)
