"""Architectures of text classifiers, each made small from its configuration class and trained from nothing.

There are no pretrained weights of most of them here, and what a game head has to cope with, positions, pooling, special
tokens, padding, is the same in a small model.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.progress import progress
from spinformer._base.rng import seeded
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.training.schedule import schedule

if TYPE_CHECKING:
    from spinformer.models.baselines.vectors import WordVectors

VOCABULARY, MAX_LENGTH = 20000, 96  # most words of SST-2 are one token each
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN, START, END, MASK = RESERVED = range(len(SPECIAL))
HIDDEN_TOKENS = (
    0.15  # part of the tokens that are hidden in training: a model from nothing learns single words by heart
)

TEACHER_WEIGHT = 0.7  # part of a target that is the teacher's answer, the rest the label

SIZES = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}
ENDS = {"bos_token_id": START, "eos_token_id": END}
ENCODER = {**SIZES, "max_position_embeddings": 128}
DECODER = {**ENCODER, **ENDS, "num_key_value_heads": 2}


@dataclass(frozen=True)
class Architecture:
    """config: its configuration class in transformers; options: of that; pieces: how its tokenizer cuts words; ends:
    the special tokens around a text.
    """

    config: str
    options: Mapping[str, Any] = field(default_factory=lambda: ENCODER)
    pieces: Literal["wordpiece", "bpe", "unigram"] = "wordpiece"
    ends: Literal["both", "last", "none"] = "both"


ARCHITECTURES: Mapping[str, Architecture] = {
    "bert": Architecture("BertConfig"),
    "roberta": Architecture("RobertaConfig", pieces="bpe"),
    "distilbert": Architecture(
        "DistilBertConfig",
        {"dim": 128, "n_layers": 3, "n_heads": 4, "hidden_dim": 512, "max_position_embeddings": 128},
    ),
    "albert": Architecture("AlbertConfig", {**ENCODER, "embedding_size": 128}, pieces="unigram"),
    "deberta-v2": Architecture(
        "DebertaV2Config",
        {**ENCODER, "relative_attention": True, "position_buckets": 32, "pos_att_type": ["p2c", "c2p"]},
        pieces="unigram",
    ),
    "electra": Architecture("ElectraConfig", {**ENCODER, "embedding_size": 128}),
    "mpnet": Architecture("MPNetConfig"),
    "modernbert": Architecture(
        "ModernBertConfig",
        {**ENCODER, **ENDS, "cls_token_id": START, "sep_token_id": END, "local_attention": 16},
        pieces="bpe",
    ),
    "xlm-roberta": Architecture("XLMRobertaConfig", pieces="unigram"),
    "t5": Architecture(
        "T5Config",
        {"d_model": 128, "d_kv": 32, "d_ff": 512, "num_layers": 3, "num_heads": 4, "eos_token_id": END}
        | {"decoder_start_token_id": PAD},
        pieces="unigram",
        ends="last",
    ),
    "gpt2": Architecture(
        "GPT2Config",
        {"n_embd": 128, "n_layer": 3, "n_head": 4, "n_positions": 128, **ENDS},
        pieces="bpe",
        ends="none",
    ),
    "llama": Architecture("LlamaConfig", DECODER, pieces="bpe", ends="none"),
    "qwen2": Architecture("Qwen2Config", DECODER, pieces="bpe", ends="none"),
    "mistral": Architecture("MistralConfig", DECODER, pieces="bpe", ends="none"),
}


@dataclass(frozen=True)
class Lessons:
    """What a model learns from beside texts and labels. vectors: of words, which its embeddings start from; answers:
    the probabilities that a teacher gives the classes of each text; more: texts without labels, of which it has but
    the teacher's answers, `more_answers`.
    """

    vectors: "WordVectors | None" = None
    answers: Tensor | None = None
    more: tuple[str, ...] = ()
    more_answers: Tensor | None = None


def teacher_answers(folder: Path, texts: Texts, names: Sequence[str], device: str | None) -> Tensor:
    """The probabilities that a trained classifier gives the classes of these names, in their order, for each text."""
    from spinformer.evaluate.answers.class_mapping import class_names
    from spinformer.models.loading import load_classifier
    from spinformer.models.predict import predict

    model, tokenizer = load_classifier(folder, device=device)
    own = class_names(model)
    if sorted(own) != sorted(names):
        raise ValueError(f"{folder}: expected a teacher of the classes {', '.join(names)}; got {', '.join(own)}")
    logits = predict(model, tokenizer, texts, batch_size=512, max_length=MAX_LENGTH).logits
    return logits[:, [own.index(name) for name in names]].softmax(-1)


def make_tokenizer(architecture: Architecture, texts: Sequence[str], vocabulary: int = VOCABULARY) -> Any:
    """A tokenizer of the architecture's kind, learnt from the texts."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    trainer: Any
    common: dict[str, Any] = {"vocab_size": vocabulary, "special_tokens": list(SPECIAL), "show_progress": False}
    if architecture.pieces == "wordpiece":
        own, trainer = Tokenizer(models.WordPiece(unk_token="[UNK]")), trainers.WordPieceTrainer(**common)
        own.pre_tokenizer, own.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    elif architecture.pieces == "bpe":
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        own, trainer = Tokenizer(models.BPE()), trainers.BpeTrainer(**common, initial_alphabet=alphabet)
        own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
    else:
        common["vocab_size"] = vocabulary // 2
        own, trainer = Tokenizer(models.Unigram()), trainers.UnigramTrainer(**common, unk_token="[UNK]")
        own.pre_tokenizer, own.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    own.normalizer = normalizers.Lowercase()
    own.train_from_iterator(texts, trainer)
    if architecture.pieces == "unigram":
        own.model = models.Unigram(_add_words(own, texts, vocabulary), UNKNOWN, False)
    if architecture.ends != "none":
        single = "[CLS] $A [SEP]" if architecture.ends == "both" else "$A [SEP]"
        own.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[("[CLS]", START), ("[SEP]", END)]
        )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token="[SEP]", model_input_names=inputs, **names)


def _add_words(own: Any, texts: Sequence[str], vocabulary: int) -> list[tuple[str, float]]:
    """The pieces of a Unigram tokenizer and then the most frequent words, each with the logarithm of its part.

    The trainer counts a piece once for each different word that has it, so a word that is part of no other is never a
    piece to it, however frequent: on SST-2 most words, and even the full stop, would be cut.
    """
    pieces = [(piece, score) for piece, score in json.loads(own.to_str())["model"]["vocab"]]
    known = {piece for piece, _ in pieces}
    cut, plain = own.pre_tokenizer.pre_tokenize_str, own.normalizer.normalize_str
    counts = Counter(word for text in texts for word, _ in cut(plain(text)))
    total = counts.total()
    words = [(word, log(count / total)) for word, count in counts.most_common() if word not in known]
    return pieces + words[: vocabulary - len(pieces)]


def make_model(architecture: Architecture, tokenizer: Any, names: Sequence[str], seed: int = 0) -> Any:
    """An untrained classifier of these classes."""
    import transformers

    labels = {"id2label": dict(enumerate(names)), "label2id": {name: place for place, name in enumerate(names)}}
    options = {**architecture.options, **labels, "vocab_size": len(tokenizer), "pad_token_id": PAD}
    with seeded(seed):
        return transformers.AutoModelForSequenceClassification.from_config(
            getattr(transformers, architecture.config)(**options), trust_remote_code=False
        )


def start_from_vectors(model: Any, tokenizer: Any, vectors: "WordVectors") -> int:
    """Each token that is a whole word takes that word's vector, with zeros after it; returns how many do.

    A word is what the model's own tokenizer makes one token of, so its marks of pieces and spaces need no care.
    """
    from spinformer.models.baselines.vectors import with_vocabulary

    weight = model.get_input_embeddings().weight
    if vectors.dim > weight.shape[1]:
        raise ValueError(f"expected word vectors of at most {weight.shape[1]} dimensions; got {vectors.dim}")
    words, rows = with_vocabulary(vectors)
    pieces = tokenizer(words, add_special_tokens=False)["input_ids"]
    tokens = {
        row[0]: index for index, row in reversed(list(enumerate(pieces))) if len(row) == 1 and row[0] not in RESERVED
    }
    padded = functional.pad(rows[list(tokens.values())], (0, weight.shape[1] - vectors.dim))
    with torch.no_grad():
        weight[list(tokens)] = padded.to(weight)
    return len(tokens)


def targets(train: Texts, lessons: Lessons) -> Tensor:
    """(1 - w) [label = k] + w p_k, in (texts, classes): what to learn, with w = TEACHER_WEIGHT.

    p: the probabilities that a teacher gives the classes; without, w = 0. Texts without labels follow, with w = 1.
    """
    if train.labels is None:
        raise ValueError(f"{train.source}: expected labels to train on; got none")
    labels = functional.one_hot(torch.tensor(list(train.labels)), len(train.names)).float()
    if lessons.answers is not None:
        labels = labels.lerp(lessons.answers, TEACHER_WEIGHT)
    return labels if lessons.more_answers is None else torch.cat([labels, lessons.more_answers])


class FitOptions(TypedDict):
    """The options of `fit`. rate: the highest learning rate."""

    epochs: int
    batch_size: int
    rate: float
    seed: int
    device: str


def fit(model: Any, tokenizer: Any, train: Texts, lessons: Lessons, **options: Unpack[FitOptions]) -> None:
    """Cross-entropy with AdamW, a part of the tokens hidden."""
    epochs, batch_size, seed, device = options["epochs"], options["batch_size"], options["seed"], options["device"]
    wanted = targets(train, lessons).to(device)
    ids = tokenizer([*train.first, *lessons.more], truncation=True, max_length=MAX_LENGTH)["input_ids"]
    sampler = LengthSampler(torch.tensor([len(row) for row in ids]), batch_size, seed)
    steps = epochs * (len(sampler) // batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options["rate"], weight_decay=0.05)
    scheduler = schedule(optimizer, "cosine", steps, warmup=0.1)
    model.to(device).train()
    generator = torch.Generator().manual_seed(seed)
    with seeded(seed):
        for epoch in progress(range(epochs), "training"):
            sampler.set_epoch(epoch)
            order = torch.tensor(list(sampler))
            for rows in order.split(batch_size):
                inputs = _batch([ids[row] for row in rows.tolist()], generator)
                optimizer.zero_grad(set_to_none=True)
                logits = model(**{name: value.to(device) for name, value in inputs.items()}).logits
                functional.cross_entropy(logits.float(), wanted[rows.to(device)]).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
    model.eval()


def _batch(rows: Sequence[Sequence[int]], generator: torch.Generator) -> dict[str, Tensor]:
    """Padded rows of token numbers, in which some tokens of words are hidden."""
    ids = torch.full((len(rows), max(len(row) for row in rows)), PAD)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
    mask = (ids != PAD).long()
    hidden = (torch.rand(ids.shape, generator=generator) < HIDDEN_TOKENS) & (ids >= len(SPECIAL))
    return {"input_ids": ids.masked_fill(hidden, MASK), "attention_mask": mask}


def train_architecture(
    name: str, train: Texts, folder: Path, lessons: Lessons | None = None, **options: Unpack[FitOptions]
) -> None:
    """Train the architecture of this name and save it in the folder, as `save_pretrained` does."""
    architecture, lessons = ARCHITECTURES[name], lessons or Lessons()
    tokenizer = make_tokenizer(architecture, train.first)
    model = make_model(architecture, tokenizer, train.names, options["seed"])
    if lessons.vectors is not None:
        start_from_vectors(model, tokenizer, lessons.vectors)
    fit(model, tokenizer, train, lessons, **options)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
