"""Methods of explanation by name, as far as a classifier has what they need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from spinformer import checks
from spinformer.evaluate.explanations import Method
from spinformer.explain.attribution import (
    AdditiveExplainer,
    AttentionPooling,
    GradientTimesInput,
    IntegratedGradients,
    KernelShap,
    LearntPooling,
    LeaveOneOut,
    NeuroGameScores,
    RandomScores,
    ShapleySampling,
)
from spinformer.explain.attribution.own import GameScore
from spinformer.explain.grounded import Grounded, GroundedScores, Score
from spinformer.models.masked import MaskedClassifier

EVALUATIONS = 200


@dataclass(frozen=True)
class Source:
    """What methods are made of. grounded: the classifier's game, where it has one; additive: a trained explainer;
    evaluations: masked passes a text for the methods that sample; seed: theirs. pooling: a softmax attention that was
    trained on the classifier's encoder, where its head is another.
    """

    classifier: MaskedClassifier
    grounded: Grounded | None = None
    additive: AdditiveExplainer | None = None
    evaluations: int = EVALUATIONS
    seed: int = 0
    pooling: LearntPooling | None = None


def _game(what: Score) -> Callable[[Source], Method]:
    def make(source: Source) -> Method:
        if source.grounded is None:
            raise ValueError(
                f"{what} is a score of a game, and this classifier has none yet: `spinformer ground MODEL TEXTS` "
                "learns one, without labels"
            )
        return GroundedScores(source.grounded, what, source.seed, source.classifier)

    return make


def _additive(source: Source) -> Method:
    if source.additive is None:
        raise ValueError("additive scores are learnt: they need a trained explainer, or texts to train one on")
    return source.additive


def _attention(source: Source) -> Method:
    """The classifier's own, where it has one."""
    if source.pooling is None or _head(source) == "attention":
        return AttentionPooling(source.classifier)
    return source.pooling


def _head(source: Source) -> str:
    return str(getattr(source.classifier.model.config, "head", None))


def _own(what: GameScore) -> Callable[[Source], Method]:
    return lambda source: NeuroGameScores(source.classifier, what)


GAMES: tuple[Score, ...] = get_args(Score)
ANY: Mapping[str, Callable[[Source], Any]] = {
    "gradient": lambda source: GradientTimesInput(source.classifier),
    "ig": lambda source: IntegratedGradients(source.classifier),
    "sampling": lambda source: ShapleySampling(source.classifier, source.evaluations, source.seed),
    "kernelshap": lambda source: KernelShap(source.classifier, source.evaluations, source.seed),
    "loo": lambda source: LeaveOneOut(source.classifier),
    "random": lambda source: RandomScores(source.seed),
}
METHODS: Mapping[str, Callable[[Source], Method]] = {
    **{what: _game(what) for what in GAMES},
    **ANY,
    "additive": _additive,
    "attention-pooling": _attention,
    **{f"neurogame-{what}": _own(what) for what in get_args(GameScore)},
}


def offered(source: Source) -> list[str]:
    """The methods that this classifier can be explained by: all that need nothing, and those whose need is met."""
    own = {"attention": ["attention-pooling"], "neurogame": ["neurogame-attention", "neurogame-fields"]}
    names = [
        *(GAMES if source.grounded is not None else ()),
        *ANY,
        *(["additive"] if source.additive is not None else []),
        *(["attention-pooling"] if source.pooling is not None else []),
        *own.get(_head(source), []),
    ]
    return list(dict.fromkeys(names))


def methods(names: Sequence[str], source: Source) -> list[Method]:
    """The methods of these names, in their order."""
    for name in names:
        checks.choice("method", name, tuple(METHODS))
    return [METHODS[name](source) for name in names]


def others(source: Source) -> list[Method]:
    """What a game is compared with: every method that this classifier offers but the game's own."""
    without = replace(source, grounded=None)
    return methods(offered(without), without)
