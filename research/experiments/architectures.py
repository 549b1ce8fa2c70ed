"""Architectures of text classifiers, each made small from its configuration class and trained from nothing.

There are no pretrained weights of most of them here, and what a game head has to cope with, positions, pooling, special
tokens, padding, is the same in a small model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.progress import progress
from spinformer._base.rng import seeded
from spinformer.data.features import LengthSampler
from spinformer.data.texts import Texts
from spinformer.training.schedule import schedule

VOCABULARY, MAX_LENGTH = 8000, 96
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN, START, END, MASK = range(len(SPECIAL))
HIDDEN_TOKENS = (
    0.15  # part of the tokens that are hidden in training: a model from nothing learns single words by heart
)

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
        own, trainer = Tokenizer(models.Unigram()), trainers.UnigramTrainer(**common, unk_token="[UNK]")
        own.pre_tokenizer, own.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    own.normalizer = normalizers.Lowercase()
    own.train_from_iterator(texts, trainer)
    if architecture.ends != "none":
        single = "[CLS] $A [SEP]" if architecture.ends == "both" else "$A [SEP]"
        own.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[("[CLS]", START), ("[SEP]", END)]
        )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token="[SEP]", model_input_names=inputs, **names)


def make_model(architecture: Architecture, tokenizer: Any, names: Sequence[str], seed: int = 0) -> Any:
    """An untrained classifier of these classes."""
    import transformers

    labels = {"id2label": dict(enumerate(names)), "label2id": {name: place for place, name in enumerate(names)}}
    options = {**architecture.options, **labels, "vocab_size": len(tokenizer), "pad_token_id": PAD}
    with seeded(seed):
        return transformers.AutoModelForSequenceClassification.from_config(
            getattr(transformers, architecture.config)(**options), trust_remote_code=False
        )


def fit(
    model: Any, tokenizer: Any, train: Texts, *, epochs: int, batch_size: int, rate: float, seed: int, device: str
) -> None:
    """Cross-entropy with AdamW, a part of the tokens hidden."""
    if train.labels is None:
        raise ValueError(f"{train.source}: expected labels to train on; got none")
    labels = torch.tensor(list(train.labels))
    ids = tokenizer(list(train.first), truncation=True, max_length=MAX_LENGTH)["input_ids"]
    sampler = LengthSampler(torch.tensor([len(row) for row in ids]), batch_size, seed)
    steps = epochs * (len(sampler) // batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.05)
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
                functional.cross_entropy(logits.float(), labels[rows].to(device)).backward()
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
    name: str, train: Texts, folder: Path, *, epochs: int, batch_size: int, rate: float, seed: int, device: str
) -> None:
    """Train the architecture of this name and save it in the folder, as `save_pretrained` does."""
    architecture = ARCHITECTURES[name]
    tokenizer = make_tokenizer(architecture, train.first)
    model = make_model(architecture, tokenizer, train.names, seed)
    fit(model, tokenizer, train, epochs=epochs, batch_size=batch_size, rate=rate, seed=seed, device=device)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
