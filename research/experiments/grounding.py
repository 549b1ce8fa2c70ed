"""How faithful grounded games are, beside other explanation methods on the same model and the same texts."""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from research.experiments.methods import AttentionPooling, has_softmax_attention
from research.experiments.softmax_pooling import WEIGHTS, SoftmaxPooling
from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.study import Study
from spinformer.explain.context import Context
from spinformer.explain.explainer import Explainer
from spinformer.explain.grounded import GroundedClassifier
from spinformer.explain.methods import all_methods, get_method
from spinformer.explain.methods.additive import AdditiveExplainer
from spinformer.explain.scoring import Scorer
from spinformer.models.additive import RECORD
from spinformer.models.game_head import CONFIG, FOLDER, GameHead, built_in_game
from spinformer.models.identity import weights_digest
from spinformer.models.masked import MaskedClassifier
from spinformer.training.game import GroundingOptions, hold_out, train_game_head

GAME = ("shapley", "banzhaf", "field", "attention")
CHEAP = ("gradient-times-input", "leave-one-out", "random")
HELD_OUT = 400  # twice as many as `spinformer ground` measures its misfit on
PROVENANCE = "made.json"  # beside a game head or an explainer: options, texts and model that it was trained with


@dataclass(frozen=True)
class Trial:
    """A frozen classifier, the texts to ground it on (train), and those to measure on (test, highlights).

    held_out: of the texts to ground on, at most so many are kept to measure the misfit on.
    """

    model: Any
    tokenizer: Any
    train: Texts
    test: Texts
    highlights: Highlights | None = None
    max_length: int = 128
    bf16: bool = False
    held_out: int = HELD_OUT

    def classifier(self, grounded: GroundedClassifier) -> MaskedClassifier:
        """The classifier under the masking that its game was learnt with."""
        return MaskedClassifier(self.model, self.tokenizer, grounded.masking, bf16=self.bf16)

    def study(self, classifier: MaskedClassifier, grounded: GroundedClassifier | None) -> Study:
        """The measurements of this classifier, which counts its passes, on the test texts."""
        explainer = Explainer(self.model, self.tokenizer, max_length=self.max_length)
        explainer.classifier, explainer.grounded = classifier, grounded
        return Study(explainer, self.test)


def measure_frozen(trial: Trial, options: GroundingOptions, folder: Path) -> dict[str, Any]:
    """Ground by `options`, and measure the game beside the cheap methods."""
    head, seconds = ground(trial, options, folder)
    measurements = measure_game(trial, GroundedClassifier(trial.model, head), options.seed)
    return {"grounding": asdict(options), "seconds": seconds, **measurements}


def measure_game(trial: Trial, grounded: GroundedClassifier, seed: int = 0) -> dict[str, Any]:
    """Measure a classifier with its game beside the cheap methods."""
    context = Context(trial.classifier(grounded), seed=seed)
    return _measure(trial, grounded, context.classifier, [get_method(name).scorer(context) for name in CHEAP])


def measure_ising(trial: Trial, options: GroundingOptions, folder: Path) -> dict[str, Any]:
    """Effective sample size and convergence of a game: the built-in one, or else one grounded by `options`."""
    grounded = GroundedClassifier(trial.model, built_in_game(trial.model) or ground(trial, options, folder)[0])
    return {"diagnostics": trial.study(trial.classifier(grounded), grounded).diagnostics()}


def measure_all(trial: Trial, options: GroundingOptions, folder: Path, *, additive: bool = True) -> dict[str, Any]:
    """Ground by `options`, and measure the game beside every other method.

    The additive explainer is trained with as many passes as the game head. Softmax attention is trained on the encoder
    unless the classifier has it itself.
    """
    head, seconds = ground(trial, options, folder)
    grounded = GroundedClassifier(trial.model, head)
    classifier = trial.classifier(grounded)
    explainer = _additive(trial, classifier, options, folder) if additive else None
    context = Context(classifier, additive=explainer, seed=options.seed)
    pooling = None if has_softmax_attention(context) else _pooling(trial, classifier, options, folder)
    methods = [*all_methods().values(), AttentionPooling(pooling)]
    scorers = [method.scorer(context) for method in methods if method.missing(context) is None]
    return {"grounding": asdict(options), "seconds": seconds, **_measure(trial, grounded, classifier, scorers)}


def measure_pooling(trial: Trial, options: GroundingOptions, folder: Path) -> dict[str, Any]:
    """Softmax attention on the encoder of the frozen classifier beside random scores; no game is needed."""
    classifier = MaskedClassifier(trial.model, trial.tokenizer, options.masking, bf16=trial.bf16)
    pooling = _pooling(trial, classifier, options, folder)
    scorers = [pooling, get_method("random").scorer(Context(classifier, seed=options.seed))]
    result = trial.study(classifier, None).measure(scorers, highlights=trial.highlights)
    return {"pooling": pooling.record, **result.to_dict()}


def _measure(
    trial: Trial, grounded: GroundedClassifier, classifier: MaskedClassifier, others: Sequence[Scorer]
) -> dict[str, Any]:
    """Every metric of the scores of a game and of other methods.

    classifier: the one that all of them ask, which counts their passes. There are many highlights, so only methods of
    one pass or none are compared with them.
    """
    context = Context(classifier, grounded)
    scorers = [*(get_method(name).scorer(context) for name in GAME), *others]
    cheap = [scorer for scorer in scorers if re.match(r"[01]\b", scorer.passes)]
    study = trial.study(classifier, grounded)
    return study.measure(scorers, highlights=trial.highlights, highlight_scorers=cheap).to_dict()


def _additive(trial: Trial, classifier: MaskedClassifier, options: GroundingOptions, folder: Path) -> AdditiveExplainer:
    """An additive explainer, trained with as many passes as the game head."""
    passes = len(trial.train) * options.epochs * (options.subsets + 1)
    return _trained(AdditiveExplainer, RECORD, trial, classifier, options, folder / "additive", passes=passes)


def _pooling(trial: Trial, classifier: MaskedClassifier, options: GroundingOptions, folder: Path) -> SoftmaxPooling:
    """Softmax attention, trained on the texts of the game head, for as many epochs."""
    return _trained(SoftmaxPooling, WEIGHTS, trial, classifier, options, folder / "pooling", epochs=options.epochs)


def _trained(
    kind: Any,
    file: str,
    trial: Trial,
    classifier: MaskedClassifier,
    options: GroundingOptions,
    folder: Path,
    **budget: int,
) -> Any:
    """The method of this class that was saved in the folder as `file`, or else one that is trained and saved there."""
    _claim(trial, options, folder, file)
    if (folder / file).is_file():
        return kind.load(folder, classifier)
    method = kind(classifier, seed=options.seed)
    method.train(
        trial.train,
        max_length=trial.max_length,
        batch_size=options.batch_size,
        seed=options.seed,
        quiet=True,
        **budget,
    )
    method.save(folder)
    return method


def ground(trial: Trial, options: GroundingOptions, folder: Path) -> tuple[GameHead, float | None]:
    """The game head in the folder and None, or else one that is trained there and its seconds; resumes after a stop.

    Some of the texts are held out, and its misfit is measured on them.
    """
    options, file = replace(options, max_length=trial.max_length), f"{FOLDER}/{CONFIG}"
    _claim(trial, options, folder, file)
    if (folder / file).is_file():
        return GameHead.load(folder, trial.model).to(next(trial.model.parameters()).device), None
    started = time.perf_counter()
    texts, held_out = hold_out(trial.train, options.seed, trial.held_out)
    head = train_game_head(trial.model, trial.tokenizer, texts, folder, options, held_out=held_out, resume=True)
    return head, time.perf_counter() - started


def _claim(trial: Trial, options: GroundingOptions, folder: Path, file: str) -> None:
    """Record in the folder how `file` is made; an error if the folder holds one that was made in another way."""
    provenance = {
        "options": json.loads(json.dumps(asdict(options))),
        "texts": trial.train.fingerprint(),
        "model": weights_digest(trial.model),
    }
    record = folder / PROVENANCE
    if record.is_file() or (folder / file).is_file():
        if not record.is_file() or json.loads(record.read_text()) != provenance:
            raise ValueError(
                f"{folder} holds what was made with other options or texts, or of another model; name another --runs"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(provenance) + "\n")
