"""The one-line forms: `explain` a text, `ground` a classifier."""

from pathlib import Path
from typing import Any, Unpack, overload

from spinformer.explain.explainer import Explainer
from spinformer.explain.explanation import Explanation
from spinformer.explain.inputs import CallOptions, Corpus, ExplainOptions


@overload
def explain(
    model: Any, tokenizer: Any, text: str, text_pair: str | None = None, **options: Unpack[ExplainOptions]
) -> Explanation: ...


@overload
def explain(
    model: Any,
    tokenizer: Any,
    text: list[str] | tuple[str, ...],
    text_pair: list[str] | tuple[str, ...] | None = None,
    **options: Unpack[ExplainOptions],
) -> list[Explanation]: ...


def explain(model: Any, tokenizer: Any, text: Any, text_pair: Any = None, **options: Any) -> Any:
    """The one-line form: `Explainer(model, tokenizer, ...)(text, text_pair, ...)`, with the options of both."""
    call = {name: options.pop(name) for name in CallOptions.__annotations__ if name in options}
    return Explainer(model, tokenizer, **options)(text, text_pair, **call)


def ground(
    model: Any,
    tokenizer: Any,
    texts: Corpus,
    output: Path | str | None = None,
    *,
    resume: bool = False,
    **options: Any,
) -> Explainer:
    """Learn the game of a classifier, without labels; an `Explainer` that has it. See `Explainer.ground`."""
    return Explainer(model, tokenizer).ground(texts, output, resume=resume, **options)
