"""Who plays: words, sentences, spans that the caller names, or the words of the sentences that matter most."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from spinformer.data.players import Span, Spans, group_words, sentence_spans
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import one_by_one
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.methods import Method

# Words of the strongest sentences that are players of their own in a hierarchical explanation, at most, unless a single
# sentence has more; a text of no more words is explained by words.
OPENED = 100


def explain_players(
    method: Method,
    context: Context,
    texts: Texts,
    words: Words,
    target: Tensor | None,
    players: str | Sequence[Sequence[Spans]],
) -> list[Explanation]:
    """The explanations of a batch of texts with these players; words: their words."""
    if players == "words":
        return method.explain(context, texts, words, target)
    if players == "hierarchical":
        return _hierarchical(method, context, texts, words, target)
    spans = _sentences(texts) if isinstance(players, str) else players
    found = method.explain(context, texts, group_words(words, _rows(texts), spans), target)
    return [replace(each, players="sentences" if isinstance(players, str) else "spans") for each in found]


def _hierarchical(
    method: Method, context: Context, texts: Texts, words: Words, target: Tensor | None
) -> list[Explanation]:
    """Long texts by sentences, then again with the words of the strongest sentences; the others by words."""
    if int(words.counts.max()) <= OPENED:
        return method.explain(context, texts, words, target)
    explanations: list[Explanation] = []
    for part, own, asked in one_by_one(texts, words, target):
        if int(own.counts) <= OPENED:
            explanations += method.explain(context, part, own, asked)
            continue
        sentences = group_words(own, _rows(part), _sentences(part))
        first = method.explain(context, part, sentences, asked)[0]
        opened = _strongest(first, sentences, own)
        spans = _opened(sentences, own, opened)
        second = method.explain(context, part, group_words(own, _rows(part), [spans]), asked)[0]
        note = f"hierarchical: {len(opened)} of {len(first.words)} sentences, the strongest, by words; the others whole"
        both = first.passes + second.passes
        explanations.append(replace(second, players="hierarchical", passes=both, notes=(note, *second.notes)))
    return explanations


def _strongest(explanation: Explanation, sentences: Words, words: Words) -> set[int]:
    """The sentences with the largest scores, of either sign, that have at most OPENED words together; one at least."""
    sizes = [len(_within(words, side, span)) for side, span in _located(sentences)]
    order = sorted(range(len(sizes)), key=lambda index: -abs(explanation.importance[index]))
    opened, total = {order[0]}, sizes[order[0]]
    for index in order[1:]:
        total += sizes[index]
        if total > OPENED:
            break
        opened.add(index)
    return opened


def _opened(sentences: Words, words: Words, opened: set[int]) -> list[list[Span]]:
    """The spans of one text, or of both: each word of the opened sentences, and the other sentences."""
    spans: list[list[Span]] = [[] for _ in words.unread[0]]
    for index, (side, span) in enumerate(_located(sentences)):
        spans[side] += _within(words, side, span) if index in opened else [span]
    return spans


def _located(words: Words) -> list[tuple[int, Span]]:
    """Side and place of each player of a batch of one."""
    return list(zip(words.sides[0], words.places[0], strict=True))


def _within(words: Words, side: int, span: Span) -> list[Span]:
    """The places of the words in a span of a batch of one."""
    return [place for of, place in _located(words) if of == side and span[0] <= place[0] < span[1]]


def _rows(texts: Texts) -> list[tuple[str, ...]]:
    if texts.second is None:
        return [(text,) for text in texts.first]
    return list(zip(texts.first, texts.second, strict=True))


def _sentences(texts: Texts) -> list[list[list[Span]]]:
    return [[sentence_spans(text) for text in row] for row in _rows(texts)]
