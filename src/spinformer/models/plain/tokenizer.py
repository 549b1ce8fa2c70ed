"""BERT's tokenizer (WordPiece) by the package `tokenizers` alone, which transformers calls too."""

import json
from collections.abc import Mapping
from typing import Any

from spinformer._base.extras import require

require("tokenizers", extra="nli")

from tokenizers import Encoding, Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402

from spinformer.models.functions import Encoded  # noqa: E402
from spinformer.models.plain.options import Rule, any_value, check_options, usual  # noqa: E402

NAMED = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
UNLIMITED = 10**30
# What tokenizer_config.json may say; `any_value` where what a text is split into does not depend on it.
OPTIONS: dict[str, Rule] = {
    **dict.fromkeys(("backend", "clean_up_tokenization_spaces", "is_local", "local_files_only"), any_value),
    **dict.fromkeys(("max_length", "stride", "truncation_strategy"), any_value),
    **dict.fromkeys(("do_lower_case", "tokenize_chinese_chars"), usual(False, True)),
    **dict.fromkeys(("padding_side", "truncation_side"), usual("right")),
    **dict.fromkeys(NAMED, lambda value: isinstance(value, str)),
    "do_basic_tokenize": usual(True),
    "model_max_length": lambda value: type(value) in (int, float) and value > 0,
    **dict.fromkeys(("never_split", "pad_to_multiple_of"), usual(None)),
    "pad_token_type_id": usual(0),
    "strip_accents": usual(None, False, True),
    "tokenizer_class": usual("BertTokenizer", "BertTokenizerFast"),
}
PARTS = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "model")


class PieceRows(Encoded):
    """Texts as word pieces, a row for each."""

    def __init__(self, rows: list[Encoding]) -> None:
        columns: dict[str, list[list[Any]]] = {
            "input_ids": [row.ids for row in rows],
            "token_type_ids": [row.type_ids for row in rows],
            "attention_mask": [row.attention_mask for row in rows],
            "offset_mapping": [row.offsets for row in rows],
        }
        super().__init__(columns, [row.sequence_ids for row in rows])
        self._first_splits = [row.word_ids for row in rows]

    def word_ids(self, row: int) -> list[int | None]:
        """For each token of a row the number of the first split that it belongs to."""
        return self._first_splits[row]


class PieceTokenizer:
    """[CLS] first [SEP] second [SEP], each text in pieces of words. As `BertTokenizer` of transformers.

    stored: tokenizer.json; options: tokenizer_config.json. Where the two do not say the same, or say more, it is a
    ValueError.
    """

    is_fast = True

    def __init__(self, stored: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        check_options(options, OPTIONS)
        named = {name: options[name] for name in NAMED}
        vocabulary = stored["model"]["vocab"]
        self.backend = Tokenizer(models.WordPiece(vocabulary, unk_token=named["unk_token"]))
        self.backend.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=options.get("tokenize_chinese_chars", True),
            strip_accents=options.get("strip_accents"),
            lowercase=options.get("do_lower_case", True),
        )
        self.backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        start, end = named["cls_token"], named["sep_token"]
        self.backend.post_processor = processors.TemplateProcessing(
            single=f"{start}:0 $A:0 {end}:0",
            pair=f"{start}:0 $A:0 {end}:0 $B:1 {end}:1",
            special_tokens=[(token, vocabulary[token]) for token in (start, end)],
        )
        self.backend.add_special_tokens(list(named.values()))
        own = json.loads(self.backend.to_str())
        different = [name for name in PARTS if own[name] != stored[name]]
        if different or "tokenizer_class" not in options or len(vocabulary) <= len(NAMED):
            raise ValueError(f"the tokenizer is not that of BERT: {', '.join(different)}")
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError("the tokens of tokenizer.json must be numbered from 0 on")
        self.pad_token, self.pad_token_id = named["pad_token"], vocabulary[named["pad_token"]]
        self.mask_token_id: int = vocabulary[named["mask_token"]]
        self.all_special_ids = [vocabulary[token] for token in named.values()]
        self.model_max_length = options.get("model_max_length", UNLIMITED)

    def __len__(self) -> int:
        """The number of tokens."""
        return int(self.backend.get_vocab_size())

    def __call__(
        self, first: list[str], second: list[str] | None = None, *, max_length: int, padding: bool, **options: Any
    ) -> PieceRows:
        """As a fast tokenizer of transformers that truncates; of `options` nothing counts."""
        self.backend.enable_truncation(max_length)
        if padding:
            self.backend.enable_padding(pad_id=self.pad_token_id, pad_token=self.pad_token)
        else:
            self.backend.no_padding()
        return PieceRows(self.backend.encode_batch(first if second is None else list(zip(first, second, strict=True))))
