"""The explanation method that only our documents compare: it is not in the registry of the package."""

from research.experiments.softmax_pooling import SoftmaxPooling
from spinformer.explain.context import Context
from spinformer.explain.methods import Method
from spinformer.explain.scoring import Scorer


class AttentionPooling(Method):
    """Softmax attention that was learnt on the frozen encoder of the classifier."""

    name = SoftmaxPooling.name
    summary = "softmax attention learnt on the frozen encoder"
    passes = SoftmaxPooling.passes

    def __init__(self, pooling: SoftmaxPooling | None) -> None:
        self.pooling = pooling

    def missing(self, context: Context) -> str | None:
        """A trained pooling of this classifier, unless it has softmax attention itself, which is method `layer`."""
        if has_softmax_attention(context):
            return "this classifier has softmax attention of its own: method 'layer'"
        if self.pooling is None or self.pooling.classifier.model is not context.classifier.model:
            return "method 'attention-pooling' needs a pooling that was trained on this classifier"
        return None

    def scorer(self, context: Context) -> Scorer:
        """The trained pooling, from one pass."""
        assert self.pooling is not None  # `missing` says so before
        return self.pooling


def has_softmax_attention(context: Context) -> bool:
    """Whether the classifier's own pooling head is softmax attention."""
    return getattr(context.classifier.model.config, "head", None) == "attention"
