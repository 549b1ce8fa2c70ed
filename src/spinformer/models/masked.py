"""What a classifier answers when words are hidden: the game that explanations are measured against."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base import checks
from spinformer._base.choices import MASKINGS as MASKINGS
from spinformer._base.choices import Masking
from spinformer._base.shared_state import attention_of_any_shape, evaluation_mode
from spinformer.data.words import Words
from spinformer.games.game import Game
from spinformer.models.hidden_states import hidden_states
from spinformer.models.hints import hints_of
from spinformer.models.leaks import sees_hidden_tokens
from spinformer.models.nothing import Nothing
from spinformer.models.outputs import answers_of, check_target, logits_of, outputs_of, value_of
from spinformer.models.packing import move_together, pack, position_offset, same_answers
from spinformer.models.padding import known_to_read_padding, reads_padding, row_ends

# From the inputs of some rows, (R, n) each, and which of their tokens are visible, (R, n), to the inputs for the model.
Hide = Callable[[dict[str, Tensor], Tensor], dict[str, Tensor]]
# From the inputs of some rows to what is wanted of each of them.
Read = Callable[[dict[str, Tensor]], tuple[Tensor, ...]]

BATCH_SIZE = 256
ROW_TOKENS = 128  # tokens of a row for which `batch_size` counts on a GPU
# Rows of a batch on a CPU, at least and at most, and tokens of all of them: more do not fit into its caches, and the
# rows of a batch are padded to the longest.
CPU_ROWS, CPU_TOKENS = (8, 128), 512


def stack_coalitions(coalitions: Sequence[Tensor], width: int) -> tuple[Tensor, Tensor]:
    """Coalitions of several texts, (K, words of it) each, as rows for `row_probabilities`: (R,) texts, (R, width)."""
    texts = torch.arange(len(coalitions)).repeat_interleave(torch.tensor([len(rows) for rows in coalitions]))
    return texts, torch.cat([functional.pad(rows, (0, width - rows.shape[1])) for rows in coalitions])


class MaskedClassifier:
    """p_c(C) = P(class c | the words of C alone)

    For a model with several labels p_c(C) is the probability that label c is on, for one that gives scores it is score
    c (`spinformer.models.outputs`). masking: how the other words are hidden: "attention", their tokens are masked out
    of the attention and positions stay (where it makes no difference to the model the tokens are left out, see
    `spinformer.models.packing`; where the model sees them nevertheless they become padding, see
    `spinformer.models.leaks`); "token", their tokens are replaced by the tokenizer's mask token; "delete", their tokens
    are removed and the rest moves together; or a function that hides them as the model needs it, `Hide`. Special tokens
    always stay. batch_size: the maximal number of coalitions in one batch; on a GPU of 128 tokens each, so that a batch
    holds more of shorter ones. bf16: matrix products in bfloat16. `passes` counts the forward passes so far, one for
    each coalition, but not those of `empty_probabilities`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        masking: Masking | Hide = "attention",
        batch_size: int = BATCH_SIZE,
        bf16: bool = False,
    ) -> None:
        checks.instance("model", model, nn.Module)
        checks.function("tokenizer", tokenizer)
        checks.flag("bf16", bf16)
        self.outputs = outputs_of(model)
        self.hide: Hide | None = None if isinstance(masking, str) else masking
        if masking == "own":
            raise ValueError("masking 'own' stands for a function that hides words; hand in that function as masking")
        checks.choice_or_function("masking", masking, MASKINGS)
        masking = masking if isinstance(masking, str) else "own"
        checks.at_least("batch_size", batch_size, 1)
        if masking == "token" and tokenizer.mask_token_id is None:
            raise ValueError("masking='token' needs a tokenizer with a mask token; this one has none")
        if masking == "delete" and tokenizer.pad_token_id is None:
            raise ValueError("masking='delete' needs a tokenizer with a padding token; set tokenizer.pad_token")
        self.masking: Masking = masking
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.passes, self.bf16 = 0, bf16
        self.offset = position_offset(model) if masking == "attention" else None
        self.nothing = Nothing()
        self.packs: bool | None = False if self.offset is None else None  # None: not known yet
        self.leaks: bool | None = None if masking == "attention" else False  # the same

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def probabilities(self, words: Words, coalitions: Tensor) -> Tensor:
        """(B, K, classes), float32, for coalitions of words, (B, K, W) booleans."""
        rows = self.row_probabilities(words, *_rows_of(words, coalitions))
        return rows.unflatten(0, coalitions.shape[:2])

    def probabilities_and_hints(self, words: Words, coalitions: Tensor) -> tuple[Tensor, Tensor]:
        """`probabilities`, and what the layers made of each coalition, (B, K, layers d) (`spinformer.models.hints`)."""
        rows = self._row_answers(words, *_rows_of(words, coalitions), self._read_hints)
        answers, hints = (part.unflatten(0, coalitions.shape[:2]) for part in rows)
        return answers, hints

    def row_probabilities(self, words: Words, texts: Tensor, coalitions: Tensor) -> Tensor:
        """(R, classes), float32, for R coalitions, (R, W) booleans, of the texts with these numbers, (R,).

        As `probabilities`, where the texts have different numbers of coalitions.
        """
        return self._row_answers(words, texts, coalitions, self._read_answers)[0]

    @torch.no_grad()
    def _row_answers(self, words: Words, texts: Tensor, coalitions: Tensor, read: Read) -> tuple[Tensor, ...]:
        """What `read` makes of the inputs of each coalition."""
        checks.instance("words", words, Words)
        checks.instance("coalitions", coalitions, Tensor)
        if coalitions.dtype != torch.bool:
            raise TypeError(f"coalitions must be a boolean tensor; got {coalitions.dtype}")
        checks.shape("coalitions", coalitions, (len(texts), words.mask.shape[1]))
        device = self.device
        words, texts, coalitions = words.to(device), texts.to(device), coalitions.to(device)
        owner, real = words.owner[texts], words.inputs["attention_mask"][texts].bool()
        visible = torch.where(owner >= 0, coalitions.gather(1, owner.clamp_min(0)), real)  # (R, n)
        with evaluation_mode(self.model), attention_of_any_shape:
            return self._evaluated(words, texts, visible, real, read)

    def _evaluated(self, words: Words, texts: Tensor, visible: Tensor, real: Tensor, read: Read) -> tuple[Tensor, ...]:
        """`_row_answers` of tokens that are visible, (R, n), among the real ones, (R, n)."""
        device = self.device
        self._decide(words, texts, visible, real)
        # Rows of like length together, without the columns at the end that are padding in all of them.
        lengths = visible.sum(-1) if self._moves else real.sum(-1)
        order = lengths.argsort(descending=True, stable=True)
        ends = row_ends(real)
        # Numbers are copied from the device only once: every copy makes it wait.
        columns, tokens = torch.stack([ends[order], lengths[order]]).tolist()
        sizes, parts = tokens if self._moves else columns, []
        apart = self._reads_padding(words, texts[order], visible[order], sizes)
        for start, stop in self._batches(sizes, apart):
            rows, width = order[start:stop], max(columns[start:stop])
            inputs = {name: value[texts[rows], :width] for name, value in words.inputs.items()}
            inputs = self._masked(inputs, visible[rows, :width], max(tokens[start], 1))  # no model reads no token
            with torch.autocast(device.type, torch.bfloat16, enabled=self.bf16):
                parts.append(read(inputs))
        self.passes += len(texts)
        joined = (torch.cat(part) for part in zip(*parts, strict=True))
        return tuple(torch.empty_like(part).index_copy_(0, order, part) for part in joined)

    def _read_answers(self, inputs: dict[str, Tensor]) -> tuple[Tensor]:
        return (answers_of(logits_of(self.model, inputs), self.outputs),)

    def _read_hints(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits, states = hidden_states(self.model, inputs)
        return answers_of(logits, self.outputs), hints_of(states, inputs.get("attention_mask"))

    def empty_probabilities(self, words: Words) -> Tensor:
        """(B, classes) for the texts without any of their words (`spinformer.models.nothing`)."""
        checks.instance("words", words, Words)
        return self.nothing(self, words)

    def full_probabilities(self, words: Words) -> Tensor:
        """(B, classes) for the full texts."""
        checks.instance("words", words, Words)
        return self.probabilities(words, words.mask[:, None]).squeeze(1)

    def _batches(self, sizes: list[int], apart: bool) -> Iterator[tuple[int, int]]:
        """From and to which row they go through the model together; sizes: their tokens, the longest row first.

        apart: whether only rows of one size share a batch.
        """
        start = 0
        while start < len(sizes):
            stop = min(start + self._batch_rows(max(sizes[start], 1)), len(sizes))
            if apart:
                stop = next((row for row in range(start, stop) if sizes[row] != sizes[start]), stop)
            yield start, stop
            start = stop

    def _reads_padding(self, words: Words, texts: Tensor, visible: Tensor, sizes: list[int]) -> bool:
        """Whether rows of these sizes must not share a batch, as padding changes answers; the longest row comes first.

        Rows that are packed were compared with masked ones, so padding is known to change nothing.
        """
        if self.packs or not sizes or sizes[-1] == sizes[0]:
            return False
        shorter = next(row for row, size in enumerate(sizes) if size < sizes[0])
        known = known_to_read_padding(self.model)
        if not sizes[shorter] or known is not None:
            return not sizes[shorter] or bool(known)
        row = {name: value[texts[shorter : shorter + 1]] for name, value in words.inputs.items()}
        if self.masking == "delete":
            row = self._masked(row, visible[shorter : shorter + 1], sizes[0])
        return reads_padding(self.model, row, sizes[shorter])

    def _batch_rows(self, columns: int) -> int:
        """Rows of so many tokens in one batch."""
        if self.device.type == "cuda":
            return max(1, self.batch_size * ROW_TOKENS // columns)
        least, most = CPU_ROWS
        return min(self.batch_size, most, max(least, CPU_TOKENS // columns))

    def _masked(self, inputs: dict[str, Tensor], visible: Tensor, tokens: int) -> dict[str, Tensor]:
        """The inputs with the other tokens hidden; tokens: the maximal number of visible ones in a row."""
        if self.hide is not None:
            return _checked(self.hide(inputs, visible), len(visible))
        if self.masking == "delete":
            return move_together(inputs, visible, tokens, self.tokenizer.pad_token_id)
        if self.packs and self.offset is not None:
            return pack(inputs, visible, tokens, self._padding, self.offset)
        return self.hidden_in_place(inputs, visible)

    def hidden_in_place(self, inputs: dict[str, Tensor], visible: Tensor) -> dict[str, Tensor]:
        """The inputs with the other tokens hidden where they stand, for masking by attention or by token."""
        if self.masking == "token":
            hidden = ~visible & inputs["attention_mask"].bool()
            return {**inputs, "input_ids": inputs["input_ids"].masked_fill(hidden, self.tokenizer.mask_token_id)}
        if not self.leaks:
            return {**inputs, "attention_mask": visible.long()}
        # Where nothing is left, one token of padding is read: with a mask of zeros alone some models read them all.
        first = torch.arange(visible.shape[1], device=visible.device) == 0
        shown = visible | (first & ~visible.any(1, keepdim=True))
        ids = inputs["input_ids"].masked_fill(~visible, self._padding)
        return {**inputs, "input_ids": ids, "attention_mask": shown.long()}

    @property
    def _moves(self) -> bool:
        """Whether hidden tokens are left out."""
        return self.masking == "delete" or bool(self.packs)

    @property
    def _padding(self) -> int:
        """What stands in the place of hidden tokens: what the model itself takes for padding."""
        own = getattr(getattr(self.model, "config", None), "pad_token_id", None)
        return own if isinstance(own, int) and own >= 0 else self.tokenizer.pad_token_id or 0

    def _decide(self, words: Words, texts: Tensor, visible: Tensor, real: Tensor) -> None:
        """Measure, once, whether hidden tokens are seen nevertheless, and whether they can be left out."""
        if self.leaks is None and bool((real & ~visible).any()):
            special = set(getattr(self.tokenizer, "all_special_ids", ()))
            self.leaks = sees_hidden_tokens(self.model, self.outputs, words.inputs, words.owner, special)
            self.packs = False if self.leaks else self.packs
        if self.packs is None and self.offset is not None:
            rows = slice(0, CPU_ROWS[1])
            inputs = {name: value[texts[rows]] for name, value in words.inputs.items()}
            self.packs = same_answers(self.model, self.outputs, inputs, visible[rows], self._padding, self.offset)


def _rows_of(words: Words, coalitions: Tensor) -> tuple[Tensor, Tensor]:
    """Coalitions of words, (B, K, W), as rows: the number of the text of each, (B K,), and the coalition, (B K, W)."""
    checks.instance("words", words, Words)
    checks.instance("coalitions", coalitions, Tensor)
    if coalitions.dim() != 3:
        raise ValueError(f"coalitions must have shape (B, K, W); got {tuple(coalitions.shape)}")
    checks.shape("coalitions", coalitions, (len(words.counts), coalitions.shape[1], words.mask.shape[1]))
    texts = torch.arange(len(words.counts), device=coalitions.device).repeat_interleave(coalitions.shape[1])
    return texts, coalitions.flatten(0, 1)


def _checked(inputs: Any, rows: int) -> dict[str, Tensor]:
    """What the caller's function made of the inputs of so many rows."""
    if not isinstance(inputs, dict) or not all(isinstance(value, Tensor) for value in inputs.values()):
        raise TypeError(f"masking must return the inputs of the model, tensors by name; got {type(inputs).__name__}")
    for name, value in inputs.items():
        if value.dim() < 1 or len(value) != rows:
            raise ValueError(f"masking must return {rows} rows of {name}; got shape {tuple(value.shape)}")
    return inputs


class ConfidenceGame(Game):
    """v(C) = p_y(C), the classifier's probability of the class y that it decides for (or that `target` names).

    target: y, (B,), or (y, z), (B, 2), for v(C) = p_y(C) - p_z(C).

    One game per text; a coalition costs a forward pass. `spinformer.games` has its exact indices for up to 20 words.
    """

    def __init__(self, classifier: MaskedClassifier, words: Words, target: Tensor | None = None) -> None:
        self.classifier, self.words = classifier, words
        self.mask = words.mask
        self.batch, self.players = self.mask.shape
        self.batched, self.dtype, self.device = True, torch.float32, self.mask.device
        if target is None:
            target = classifier.full_probabilities(words).argmax(-1)
        check_target(target, self.batch)
        self.target = target.to(self.device)

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """One pass for each coalition."""
        probabilities = self.classifier.probabilities(self.words, coalitions).to(self.device)  # (B, K, classes)
        return value_of(probabilities, self.target)
