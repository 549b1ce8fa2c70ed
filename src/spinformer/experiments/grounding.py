"""How faithful grounded games are: beside every other method, on the same model and the same texts."""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.evaluate import panel as panels
from spinformer.evaluate.explanations import Method, compare
from spinformer.evaluate.methods import GAMES, Source, methods, offered
from spinformer.evaluate.methods import others as rest
from spinformer.evaluate.panel import Panel
from spinformer.experiments.forms import FORMS, START
from spinformer.explain.attribution import AdditiveExplainer, LearntPooling
from spinformer.explain.attribution.additive import RECORD
from spinformer.explain.attribution.pooling import WEIGHTS
from spinformer.explain.grounded import Grounded
from spinformer.models.grounding import CONFIG, FOLDER, GameHead, digest, own_game
from spinformer.models.masked import MaskedClassifier
from spinformer.training.ground import Grounding, ground

MADE = "made.json"  # beside a head or an explainer: how it was made


@dataclass(frozen=True)
class Trial:
    """A frozen classifier, the texts to ground it on, and those to measure on."""

    model: Any
    tokenizer: Any
    train: Texts
    test: Texts
    highlights: Highlights | None = None
    max_length: int = 128
    bf16: bool = False

    def classifier(self, grounded: Grounded) -> MaskedClassifier:
        """The classifier under the masking that its game was learnt with."""
        return MaskedClassifier(self.model, self.tokenizer, grounded.masking, bf16=self.bf16)


def form(trial: Trial, name: str, options: Grounding, folder: Path) -> dict[str, Any]:
    """Ground by one form of the search and measure it: fit, comprehensiveness, sufficiency, seconds."""
    head, seconds = _ground(trial, replace(options, **{**START, **FORMS[name]}), folder)
    grounded = Grounded(trial.model, head)
    source = Source(trial.classifier(grounded), grounded)
    table = compare(methods(["shapley"], source), source.classifier, trial.test, max_length=trial.max_length)
    panel = Panel(source.classifier, trial.test, grounded, trial.max_length)
    return {"form": name, "seconds": seconds, "fit": panels.fit(panel).to_dict(), **table.to_dict()}


def frozen(trial: Trial, options: Grounding, folder: Path) -> dict[str, Any]:
    """Ground by `options` and measure, beside the methods that are cheap."""
    head, seconds = _ground(trial, options, folder)
    found = together(trial, Grounded(trial.model, head), options.seed)
    return {"grounding": asdict(options), "seconds": seconds, **found}


def ess(trial: Trial, options: Grounding, folder: Path) -> dict[str, Any]:
    """Look at the Ising model alone, of the game that the classifier was trained with, or grounded by `options`."""
    grounded = Grounded(trial.model, own_game(trial.model) or _ground(trial, options, folder)[0])
    panel = Panel(trial.classifier(grounded), trial.test, grounded, trial.max_length)
    return {"diagnostics": panels.diagnostics(panel)}


def everything(trial: Trial, options: Grounding, folder: Path, *, additive: bool = True) -> dict[str, Any]:
    """Ground by `options` and compare with every other method, with an additive explainer given as many passes, and a
    softmax attention on the same encoder, where it has none of its own."""
    head, seconds = _ground(trial, options, folder)
    grounded = Grounded(trial.model, head)
    classifier = trial.classifier(grounded)
    explainer = _additive(trial, classifier, options, folder) if additive else None
    own = "attention-pooling" in offered(Source(classifier))
    pooling = None if own else _pooling(trial, classifier, options, folder)
    others = rest(Source(classifier, additive=explainer, seed=options.seed, pooling=pooling))
    return {"grounding": asdict(options), "seconds": seconds, **measure(trial, grounded, classifier, others)}


def pooling(trial: Trial, options: Grounding, folder: Path) -> dict[str, Any]:
    """A softmax attention on the encoder of the frozen classifier, and chance beside it; no game is needed."""
    classifier = MaskedClassifier(trial.model, trial.tokenizer, options.masking, bf16=trial.bf16)
    learnt = _pooling(trial, classifier, options, folder)
    chosen = [learnt, *methods(("random",), Source(classifier, seed=options.seed))]
    panel = Panel(classifier, trial.test, None, trial.max_length)
    return {"pooling": learnt.record, **panels.measure(panel, chosen, highlights=trial.highlights).to_dict()}


def together(trial: Trial, grounded: Grounded, seed: int = 0) -> dict[str, Any]:
    """A classifier with its game, beside the methods that are cheap: gradient times input, leave-one-out, chance."""
    classifier = trial.classifier(grounded)
    cheap = methods(("gradient", "loo", "random"), Source(classifier, seed=seed))
    return measure(trial, grounded, classifier, cheap)


def measure(trial: Trial, grounded: Grounded, classifier: MaskedClassifier, others: Sequence[Method]) -> dict[str, Any]:
    """Every metric of a grounded classifier, frozen or trained together, and of the other methods on it.

    classifier: the one that the others ask, which counts their passes. Highlights are many: only methods of one pass,
    or none, are held against them.
    """
    source = Source(classifier, grounded)
    own = methods(GAMES, source)
    chosen = [*own, *others]
    marked = [method for method in chosen if re.match(r"[01]\b", str(getattr(method, "passes", "")))]
    panel = Panel(source.classifier, trial.test, grounded, trial.max_length)
    return panels.measure(panel, chosen, highlights=trial.highlights, marked=marked).to_dict()


def _additive(trial: Trial, classifier: MaskedClassifier, options: Grounding, folder: Path) -> AdditiveExplainer:
    """Trained with as many passes as the head."""
    passes = len(trial.train) * options.epochs * (options.subsets + 1)
    return _learnt(AdditiveExplainer, RECORD, trial, classifier, options, folder / "additive", passes=passes)


def _pooling(trial: Trial, classifier: MaskedClassifier, options: Grounding, folder: Path) -> LearntPooling:
    """Trained on the texts that the head is, as often."""
    return _learnt(LearntPooling, WEIGHTS, trial, classifier, options, folder / "pooling", epochs=options.epochs)


def _learnt(
    kind: Any, file: str, trial: Trial, classifier: MaskedClassifier, options: Grounding, folder: Path, **budget: int
) -> Any:
    """The method of this kind that lies in the folder, which then has `file`, or else one trained there."""
    _begin(trial, options, folder, file)
    if (folder / file).is_file():
        return kind.load(folder, classifier)
    made = kind(classifier, seed=options.seed)
    made.train(
        trial.train,
        max_length=trial.max_length,
        batch_size=options.batch_size,
        seed=options.seed,
        quiet=True,
        **budget,
    )
    made.save(folder)
    return made


def _ground(trial: Trial, options: Grounding, folder: Path) -> tuple[GameHead, float | None]:
    """A head and the seconds it took; one that lies in the folder is not trained again, one that was begun goes on."""
    options, found = replace(options, max_length=trial.max_length), f"{FOLDER}/{CONFIG}"
    _begin(trial, options, folder, found)
    if (folder / found).is_file():
        return GameHead.load(folder, trial.model).to(next(trial.model.parameters()).device), None
    started = time.perf_counter()
    head = ground(trial.model, trial.tokenizer, trial.train, folder, options, resume=True)
    return head, time.perf_counter() - started


def _begin(trial: Trial, options: Grounding, folder: Path, result: str) -> None:
    """Write down in the folder how its result is made; an error where the one that lies there was made otherwise."""
    made = {
        "options": json.loads(json.dumps(asdict(options))),
        "texts": trial.train.fingerprint(),
        "model": digest(trial.model),
    }
    record = folder / MADE
    if record.is_file() or (folder / result).is_file():
        if not record.is_file() or json.loads(record.read_text()) != made:
            raise ValueError(
                f"{folder} holds what was made with other options or texts, or of another model; name another --runs"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(made) + "\n")
