"""Word vectors in GloVe's text format, and the tokenizer that goes with them.

A file has one line per word, `word x_1 ... x_d`, with single spaces between, gzipped or not. GloVe was trained on
lower-cased text split as in the Penn Treebank ("do n't", "dog 's"); the tokenizer splits so too, and at hyphens.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from spinformer._base import checks
from spinformer.data.unpacking import GZIP_ERRORS, bounded_lines, open_binary

PAD, UNKNOWN, NULL = "[PAD]", "[UNK]", "[NULL]"
# Frequent words that a reduced vector file may lack, and the word whose vector they then take.
STAND_INS = {"a": "an", "i": "me", "n't": "not", "'re": "are", "'m": "am", "'ve": "have", "'ll": "will", "'d": "would"}
STAND_INS |= {"'s": "its", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven"}
STAND_INS |= {"8": "eight", "9": "nine", "10": "ten"}

_CUT = r"n't\b|'(?:s|m|re|ve|ll|d)\b|[^\W_]+?(?=n't\b)|[^\W_]+|[^\w\s]|_"


@dataclass(frozen=True)
class WordVectors:
    """N words and their vectors, (N, d), in the order of the file."""

    words: list[str]
    vectors: Tensor

    @property
    def dim(self) -> int:
        """d."""
        return self.vectors.shape[1]


def read_vectors(path: str | Path) -> WordVectors:
    """The words and vectors of a text file in GloVe's form; of a word that comes twice, the first."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no word vectors at {path}: expected a text file of `word x1 ... xd` lines, or a .gz")
    words: list[str] = []
    numbers: list[str] = []
    dim = 0
    with path.open("rb") as start:
        zipped = start.read(2) == b"\x1f\x8b"
    with open_binary(path, zipped=zipped) as file:
        try:
            for count, raw in enumerate(bounded_lines(file, str(path)), 1):
                line = raw.decode()
                word, _, rest = line.rstrip("\r\n").rstrip(" ").partition(" ")
                width = rest.count(" ") + 1
                if not word or not rest:
                    raise ValueError(f"{path}:{count}: expected `word x1 ... xd`; got {line.strip()[:60]!r}")
                dim = dim or width
                if width != dim:
                    raise ValueError(f"{path}:{count}: expected {dim} numbers as in line 1; {word!r} has {width}")
                words.append(word)
                numbers.append(rest)
        except (UnicodeDecodeError, *GZIP_ERRORS) as error:
            raise ValueError(f"{path}:{len(words) + 1}: expected gzipped or plain UTF-8 text; {error}") from None
    if not words:
        raise ValueError(f"{path} has no word vectors: expected `word x1 ... xd` lines; the file is empty")
    vectors = torch.from_numpy(_parse(numbers, dim, path))
    first = {word: row for row, word in reversed(list(enumerate(words)))}
    if len(first) < len(words):
        rows = sorted(first.values())
        return WordVectors([words[row] for row in rows], vectors[rows])
    return WordVectors(words, vectors)


def _parse(numbers: list[str], dim: int, path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """All lines at once; one by one only to name the line of an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # what numpy says of text that is not a number
        try:
            values = np.fromstring(" ".join(numbers), dtype=np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            values = np.empty(0, np.float32)
    if values.size == len(numbers) * dim and np.isfinite(values).all():
        return values.reshape(len(numbers), dim)
    for count, line in enumerate(numbers, 1):
        for number in line.split(" "):
            try:
                good = np.isfinite(float(number))
            except ValueError:
                good = False
            if not good:
                raise ValueError(f"{path}:{count}: expected {dim} finite numbers after the word; got {number!r}")
    raise ValueError(f"{path}: expected {len(numbers)} x {dim} numbers in single precision; got {values.size}")


def corpus_words(texts: Iterable[str], min_count: int = 2) -> list[str]:
    """The words that texts have at least `min_count` times, cut as `word_tokenizer` cuts them, most frequent first."""
    checks.at_least("min_count", min_count, 1)
    tokenizer = _word_splitter([])
    counts: Counter[str] = Counter()
    for text in texts:
        if tokenizer.normalizer is not None and tokenizer.pre_tokenizer is not None:
            plain = tokenizer.normalizer.normalize_str(text)
            counts.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain))
    return [word for word, count in counts.most_common() if count >= min_count]


def with_vocabulary(
    file: WordVectors, *, words: Iterable[str] = (), null: bool = False, seed: int = 0
) -> tuple[list[str], Tensor]:
    """The vocabulary of a model and its vectors: special tokens, the file's words, and words that the file lacks.

    [PAD] is zero. [UNK] is the mean of the file's vectors. The words of `STAND_INS` that the file lacks take their
    stand-in's vector. [NULL], and those of `words` that are left, take a random vector each: normal with the mean and
    the standard deviation of the file's vectors in each dimension, drawn from `seed`.
    """
    special = [PAD, UNKNOWN, *([NULL] if null else [])]
    row = {word: index for index, word in enumerate(file.words) if word not in special}
    copied = [word for word, other in STAND_INS.items() if word not in row and other in row]
    known = {*row, *copied, *special}
    added = [word for word in dict.fromkeys(words) if word not in known]

    mean, deviation = file.vectors.mean(0), file.vectors.std(0, unbiased=False)
    generator = torch.Generator().manual_seed(seed)
    drawn = mean + deviation * torch.randn(len(added) + null, file.dim, generator=generator)
    rows = [torch.zeros_like(mean)[None], mean[None], drawn[: int(null)], file.vectors[list(row.values())]]
    rows += [file.vectors[[row[STAND_INS[word]] for word in copied]], drawn[int(null) :]]
    return [*special, *row, *copied, *added], torch.cat(rows)


def word_tokenizer(words: Sequence[str], *, max_length: int = 512) -> PreTrainedTokenizerFast:
    """A Hugging Face tokenizer with one token per word, numbered as in `words`, which has [PAD] and [UNK].

    A pair is the words of the first text (token type 0) followed by those of the second (token type 1), with nothing
    between or around; where `words` has [NULL], each of the two is preceded by it.
    """
    missing = [token for token in (PAD, UNKNOWN) if token not in words]
    if missing:
        raise ValueError(f"words must have the special tokens {PAD} and {UNKNOWN}; missing {', '.join(missing)}")
    tokenizer = _word_splitter(words)
    null = tokenizer.token_to_id(NULL)
    first, second = (f"{NULL}:0 ", f"{NULL}:1 ") if null is not None else ("", "")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first}$A:0",
        pair=f"{first}$A:0 {second}$B:1",
        special_tokens=[(NULL, null)] if null is not None else [],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNKNOWN,
        additional_special_tokens=[NULL] if null is not None else [],
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def _word_splitter(words: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(words)}, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace("’", "'")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_CUT), behavior="removed", invert=True)
    return tokenizer
