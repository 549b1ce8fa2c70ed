"""Which tokens make up which word."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from spinformer.data.texts import Texts
from spinformer.data.word_pattern import WORD
from spinformer.data.words import split_words
from tests.explain.toys import TEXTS, tokenizer, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog runs.", ["The", "dog", "runs", "."]),
        ("well-known rock-and-roll", ["well-known", "rock-and-roll"]),
        ("don't the dogs' o’clock", ["don't", "the", "dogs", "'", "o’clock"]),
        ("a--b -c- 'tis", ["a", "-", "-", "b", "-", "c", "-", "'", "tis"]),
        ("Wait... (what?!)", ["Wait", ".", ".", ".", "(", "what", "?", "!", ")"]),
        ("snake_case 3.14 $5", ["snake_case", "3", ".", "14", "$", "5"]),
        ("good 👍🏽👍 👩‍💻! ❤️ 🇫🇷🇩🇪 1️⃣", ["good", "👍🏽", "👍", "👩‍💻", "!", "❤️", "🇫🇷", "🇩🇪", "1️⃣"]),
        ("שלום עולם!", ["שלום", "עולם", "!"]),
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("مَرْحَبًا بالعالم؟", ["مَرْحَبًا", "بالعالم", "؟"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ("我用iPhone手机。", ["我用", "iPhone", "手机", "。"]),
        ("ฉันชอบ หนัง", ["ฉันชอบ", "หนัง"]),
        ("안녕하세요 세계", ["안녕하세요", "세계"]),
        ("  \t\n ", []),
    ],
)
def test_rule(text, expected):
    assert WORD.findall(text) == expected


def byte_level(trim: bool) -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    bpe.train_from_iterator(["the dog runs... the dog isn't well-known... the dog sleeps..."] * 5, trainer)
    bpe.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=trim),
            processors.TemplateProcessing(
                single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
            ),
        ]
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", mask_token="<mask>")


@pytest.mark.parametrize("trim", [True, False])
def test_byte_level_tokens_with_their_space(trim):
    fast = byte_level(trim)
    texts = Texts(["the dog isn't well-known...", "  the  zebra\n👍🏽 שלום", "dog"], ["the dog", "é!", "the"])
    split = split_words(fast, texts, 128)
    assert split.words[0] == ("the", "dog", "isn't", "well-known", "...", "the", "dog")  # "..." is one token
    assert split.words[1] == ("the", "zebra", "👍🏽", "שלום", "é", "!")
    assert split.sides[1] == (0, 0, 0, 0, 1, 1)
    assert split.counts.tolist() == [7, 6, 2]
    for row, players in enumerate(split.words):  # the tokens of each word spell it
        for position, word in enumerate(players):
            ids = split.inputs["input_ids"][row][split.owner[row] == position]
            assert fast.decode(ids).strip() == word
    special = torch.isin(split.inputs["input_ids"], torch.tensor(fast.all_special_ids))
    assert (split.owner[special] == -1).all()


def test_words_that_share_a_token_are_one_player():
    split = words(Texts(["the dog... runs ?! cat", "a.b"]))
    assert split.words[0] == ("the", "dog", "...", "runs", "?!", "cat")
    assert split.owner[0].tolist() == [-1, 0, 1, 2, 3, 4, 5, -1]
    assert split.words[1] == ("a", ".", "b")


def test_words_of_several_tokens():
    split = words(Texts(["dog-cat isn't"], ["dog"]))
    assert split.words == (("dog-cat", "isn't", "dog"),)
    assert split.owner.tolist() == [[-1, 0, 0, 0, 1, 1, 1, -1, 2, -1]]
    assert split.sides == ((0, 0, 1),)


@pytest.mark.parametrize("side", ["right", "left"])
def test_owner_and_padding(side):
    fast = tokenizer()
    fast.padding_side = side
    split = split_words(fast, TEXTS, 64)
    real = split.inputs["attention_mask"].bool()
    assert (split.owner[~real] == -1).all()
    assert split.mask.sum(-1).tolist() == split.counts.tolist() == [6, 5, 2, 9]
    assert split.mask.shape == (4, 9)
    for row in range(4):
        owner = split.owner[row]
        assert owner[owner >= 0].tolist() == list(range(split.counts[row]))


def test_truncation_drops_words():
    split = split_words(tokenizer(), Texts(["the dog runs", "a"], ["cat", "b"]), 6)
    assert split.words[0] == ("the", "dog", "cat")
    assert split.inputs["input_ids"].shape[1] == 6


def test_visible_tokens():
    split = words(Texts(["dog-cat runs", "a"]))
    coalitions = torch.tensor([[[True, False], [False, True]], [[True, False], [False, False]]])
    assert split.tokens(coalitions).long().tolist() == [
        [[1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 1, 1]],
        [[1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0]],
    ]


def test_sums_over_tokens():
    split = words(Texts(["dog-cat runs", "a"]))
    tokens = torch.arange(12.0).view(2, 6)
    assert split.sums(tokens).tolist() == [[6.0, 4.0], [7.0, 0.0]]
    assert torch.equal(split.sums(torch.stack([tokens, -tokens], -1))[..., 1], -split.sums(tokens))


def test_rows():
    split = words().rows(1, 3)
    assert split.words == (("a", "man", "eats", "outside", "woman"), ("cat", "not"))
    assert split.mask.shape == (2, 5)
    assert split.to("cpu").owner.shape == split.inputs["input_ids"].shape


def test_errors():
    with pytest.raises(ValueError, match=r"row 1 of memory, counted from 0, has no words"):
        words(Texts(["dog", "  "]))
    with pytest.raises(ValueError, match="no rows to split"):
        words(Texts([]))
    with pytest.raises(ValueError, match="max_length must be an integer of at least 1"):
        split_words(tokenizer(), TEXTS, 0)
    without = tokenizer()
    without.pad_token = None
    with pytest.raises(ValueError, match="no padding token"):
        split_words(without, TEXTS, 64)
    with pytest.raises(ValueError, match="only fast tokenizers"):
        split_words(object(), TEXTS, 64)


def characters(splits: bool) -> PreTrainedTokenizerFast:
    """A token for each character; splits: whether the tokenizer parts Chinese letters first, as BERT's does."""
    letters = ["[PAD]", "[UNK]", "[CLS]", *"我喜欢手机用ab"]
    own = Tokenizer(models.WordPiece({piece: place for place, piece in enumerate(letters)}, unk_token="[UNK]"))
    own.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if splits:
        own.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True)
    own.add_tokens(["喜欢"] if not splits else [])
    own.post_processor = processors.TemplateProcessing(single="[CLS] $A", pair=None, special_tokens=[("[CLS]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=own, pad_token="[PAD]", unk_token="[UNK]")


def test_texts_without_spaces_are_cut_by_the_tokenizer():
    split = split_words(characters(True), Texts(["我喜欢 a手机"]), 32)
    assert split.words == (("我", "喜", "欢", "a", "手", "机"),)
    assert split.places == (((0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)),)
    split = split_words(characters(False), Texts(["我喜欢"]), 32)
    assert split.words == (("我", "喜欢"),)
    split = split_words(byte_level(True), Texts(["我喜 the dog"]), 64)  # several tokens of bytes for a letter
    assert split.words == (("我", "喜", "the", "dog"),)


def test_places_are_where_the_words_stand():
    texts = Texts(["the  dog, isn't"], ["a dog"])
    split = split_words(tokenizer(), texts, 64)
    for side, word, (start, end) in zip(split.sides[0], split.words[0], split.places[0], strict=True):
        assert (texts.first[0], texts.second[0])[side][start:end] == word
