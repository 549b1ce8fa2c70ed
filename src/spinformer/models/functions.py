"""Any function from texts to answers as a classifier: a remote API, a pipeline of scikit-learn, anything.

It is explained by masking: words are left out of the text, or replaced by another, and the function is asked again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, get_args

import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.outputs import Outputs
from spinformer.data.word_pattern import UNSPACED, WORD
from spinformer.models.outputs import PROBLEM_TYPES

# A function of a list of texts, or of a list of pairs, to a row of answers for each.
Function = Callable[[list[Any]], Any]
# Ids that are no words. The third and fourth begin a text and a pair, and are always there.
PADDING, MASK, TEXT, PAIR = range(4)
SMALLEST = 1e-12  # probability whose logarithm is taken


class Encoded(dict[str, list[list[Any]]]):
    """What a tokenizer returns; sides: of every token 0 (first text), 1 (second) or None (neither)."""

    def __init__(self, columns: Mapping[str, list[list[Any]]], sides: list[list[int | None]]) -> None:
        super().__init__(columns)
        self._sides = sides

    def sequence_ids(self, row: int) -> list[int | None]:
        """The text that each token of a row belongs to."""
        return self._sides[row]


class WordTokenizer:
    """One token for each word, with what stands before it, so that tokens in a row give the text back.

    Where a text is written without spaces, every letter is a token.

    mask: what stands in the place of a hidden word under masking="token"; None for masking="delete" alone.
    """

    is_fast = True
    pad_token, pad_token_id, pad_token_type_id = "", PADDING, 0
    padding_side = "right"
    model_max_length = 10**6
    all_special_ids = (PADDING, MASK, TEXT, PAIR)

    def __init__(self, mask: str | None = None) -> None:
        self.mask_token_id = None if mask is None else MASK
        self.pieces = ["", f" {mask}", "", ""]
        self.ids: dict[str, int] = {}

    def __call__(self, first: list[str], second: list[str] | None = None, **options: Any) -> Encoded:
        """As a fast tokenizer of transformers; of `options` only max_length counts."""
        rows = [self._row((text,) if second is None else (text, second[row])) for row, text in enumerate(first)]
        rows = [row[: options.get("max_length", self.model_max_length)] for row in rows]
        longest = max(map(len, rows))
        padded = [row + [(PADDING, (0, 0), None)] * (longest - len(row)) for row in rows]
        columns: dict[str, list[list[Any]]] = {
            "input_ids": [[token for token, _, _ in row] for row in padded],
            "token_type_ids": [[side or 0 for _, _, side in row] for row in padded],
            "attention_mask": [[int(token != PADDING) for token, _, _ in row] for row in padded],
            "offset_mapping": [[offsets for _, offsets, _ in row] for row in padded],
        }
        return Encoded(columns, [[side for _, _, side in row] for row in padded])

    def _row(self, texts: tuple[str, ...]) -> list[tuple[int, tuple[int, int], int | None]]:
        tokens: list[tuple[int, tuple[int, int], int | None]] = [(PAIR if len(texts) == 2 else TEXT, (0, 0), None)]
        for side, text in enumerate(texts):
            before = 0
            for word in WORD.finditer(text):
                for match in UNSPACED.finditer(text, *word.span()) if UNSPACED.match(text, word.start()) else (word,):
                    tokens.append((self._id(text[before : match.end()]), match.span(), side))
                    before = match.end()
        return tokens

    def _id(self, piece: str) -> int:
        if piece not in self.ids:
            self.ids[piece] = len(self.pieces)
            self.pieces.append(piece)
        return self.ids[piece]

    def text(self, ids: Sequence[int]) -> str:
        """The text of these tokens."""
        return "".join(self.pieces[token] for token in ids).strip()


class FunctionModel(nn.Module):
    """logits = log p for classes, log p / (1 - p) for labels, the answer itself for scores

    function: takes a list of texts, or of pairs of texts, and returns a row of answers for each; names: of the answers.
    """

    def __init__(self, function: Function, tokenizer: WordTokenizer, names: Sequence[str], outputs: Outputs) -> None:
        super().__init__()
        self.function, self.tokenizer, self.outputs = function, tokenizer, outputs
        self.name = str(getattr(function, "__name__", type(function).__name__))
        problem = next(name for name, kind in PROBLEM_TYPES.items() if kind == outputs)
        self.config = SimpleNamespace(
            num_labels=len(names), id2label=dict(enumerate(names)), problem_type=problem, pad_token_id=PADDING
        )
        self.place = nn.Parameter(torch.zeros(()), requires_grad=False)  # models have a device

    @property
    def base_model(self) -> "FunctionModel":
        """Itself: it has no layers."""
        return self

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Any:
        """Ask the function about the tokens that are visible."""
        texts: list[Any] = []
        rows = zip(input_ids.tolist(), attention_mask.bool().tolist(), token_type_ids.tolist(), strict=True)
        for ids, visible, sides in rows:
            parts = [
                self.tokenizer.text([i for i, seen, of in zip(ids, visible, sides, strict=True) if seen and of == side])
                for side in (0, 1)
            ]
            texts.append(tuple(parts) if ids[0] == PAIR else parts[0])
        answers = self._numbers(self.function(texts), len(texts)).to(self.place.device)
        checks.finite(f"answers of the function {self.name}", answers)
        return SimpleNamespace(logits=_logits(answers, self.outputs, self.name))

    def _numbers(self, answers: Any, count: int) -> Tensor:
        """What the function returned for so many texts, (count, answers)."""
        width = self.config.num_labels
        expected = f"the function {self.name} must return real numbers, {width} for each of {count} texts"
        try:
            if "complex" in str(getattr(answers, "dtype", "")):  # of which torch would drop a part
                raise TypeError
            made = torch.as_tensor(answers, dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError, ArithmeticError, LookupError):
            raise TypeError(f"{expected}; got {' '.join(repr(answers).split()):.60}") from None
        if made.dim() == 1 and width == 1:
            made = made[:, None]
        if tuple(made.shape) != (count, width):
            raise ValueError(f"{expected}; got shape {tuple(made.shape)}")
        return made


def function_classifier(
    function: Function,
    names: Sequence[str],
    *,
    outputs: Outputs | None = None,
    mask: str | None = None,
) -> tuple[FunctionModel, WordTokenizer]:
    """A function as a model with its tokenizer; outputs: by default scores for one name, classes for several."""
    checks.function("function", function)
    if outputs is not None:
        checks.choice("outputs", outputs, get_args(Outputs))
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a list of the answers' names; got {names!r:.60}")
    named = [str(name) for name in names]
    if not named or len(set(named)) < len(named):
        raise ValueError(f"names must be the different names of the answers; got {named}")
    kind: Outputs = outputs or ("scores" if len(named) == 1 else "classes")
    tokenizer = WordTokenizer(mask)
    return FunctionModel(function, tokenizer, named, kind), tokenizer


def _logits(answers: Tensor, outputs: Outputs, name: str) -> Tensor:
    if outputs == "scores":
        return answers
    low, high = float(answers.min()), float(answers.max())
    if low < -1e-6 or high > 1 + 1e-6:
        raise ValueError(f"answers of the function {name} must be probabilities; got from {low:g} to {high:g}")
    if outputs == "labels":
        return answers.clamp(SMALLEST, 1 - SMALLEST).logit()
    totals = answers.sum(-1)
    worst = float(totals[(totals - 1).abs().argmax()])
    if abs(worst - 1) > 1e-3:
        raise ValueError(f"probabilities of the classes, of the function {name}, must sum to 1; got {worst:g}")
    return answers.clamp_min(SMALLEST).log()
