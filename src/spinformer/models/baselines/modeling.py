"""Decomposable attention and ESIM as Hugging Face models, for `Trainer`, `from_pretrained` and `pipeline`.

    logits = architecture(E a, E b),     loss = cross entropy(logits, labels)

E is the table of word vectors; a and b are the words of premise and hypothesis, token types 0 and 1 of one row.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    initialization,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from spinformer._base import checks
from spinformer.models.baselines.configuration import ARCHITECTURES, WordConfig
from spinformer.models.baselines.dam import DecomposableAttention
from spinformer.models.baselines.esim import SequentialInference
from spinformer.models.baselines.vectors import read_vectors, with_vocabulary, word_tokenizer
from spinformer.models.loading import load_own
from spinformer.models.token_inputs import check_ids, check_labels


class WordForSequenceClassification(PreTrainedModel):
    """Classifies pairs of texts by their words' vectors.

    The logits of a pair depend neither on padding, wherever it stands, nor on the other rows of the batch.
    """

    config_class = WordConfig
    base_model_prefix = "pair"
    main_input_name = "input_ids"
    # The loss is a mean over the rows given, so that Trainer divides it by the number of accumulated batches.
    accepts_loss_kwargs = False

    def __init__(self, config: WordConfig) -> None:
        checks.instance("config", config, WordConfig)
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_dim, padding_idx=config.pad_token_id)
        classes = len(config.id2label or ())
        kind = DecomposableAttention if config.architecture == "dam" else SequentialInference
        self.pair = kind(config.embedding_dim, config.hidden_size, classes, config.dropout)
        self.post_init()
        self._freeze()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *model_args: Any, **kwargs: Any) -> Any:
        """As in Hugging Face; a damaged file, another architecture or missing weights are a clear ValueError, and word
        vectors that training must not change stay so."""
        path, load = pretrained_model_name_or_path, super().from_pretrained
        loaded = load_own(load, WordConfig.model_type, path, *model_args, ignored=(), **kwargs)
        (loaded[0] if isinstance(loaded, tuple) else loaded)._freeze()
        return loaded

    def _freeze(self) -> None:
        self.embedding.weight.requires_grad_(self.config.trainable_embeddings)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            initialization.xavier_uniform_(module.weight)
            if module.bias is not None:
                initialization.zeros_(module.bias)
        elif isinstance(module, nn.LSTM):
            for name, parameter in module.named_parameters():
                if name.startswith("weight_hh"):
                    initialization.orthogonal_(parameter)
                elif name.startswith("weight"):
                    initialization.xavier_uniform_(parameter)
                else:
                    initialization.zeros_(parameter)
        else:
            super()._init_weights(module)

    def get_input_embeddings(self) -> nn.Module:
        """The table of word vectors."""
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the table of word vectors."""
        self.embedding = value  # type: ignore[assignment]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput | tuple[Tensor, ...]:
        """What `tokenizer(premise, hypothesis)` gives, (B, n) each; labels: (B,) -> loss and logits, (B, classes).

        Without attention_mask every token but [PAD] is real. Vectors are looked up before premise and hypothesis are
        split, so that a hook on the table gets them, and their gradients, in the order of `input_ids`.
        """
        if token_type_ids is None:
            raise ValueError(
                "expected token_type_ids, 0 in the premise and 1 in the hypothesis, as tokenizer(...) gives; got None"
            )
        check_ids(input_ids, self.embedding)
        if attention_mask is not None:
            checks.instance("attention_mask", attention_mask, Tensor)
        real = input_ids != self.config.pad_token_id if attention_mask is None else attention_mask.bool()
        for name, tensor in (("attention_mask", real), ("token_type_ids", token_type_ids)):
            checks.shape(name, tensor, input_ids.shape)
        vectors = self.embedding(input_ids)
        premise, premise_mask = _gather("premise", vectors, real & (token_type_ids == 0))
        hypothesis, hypothesis_mask = _gather("hypothesis", vectors, real & (token_type_ids == 1))
        logits = self.pair(premise, hypothesis, premise_mask, hypothesis_mask)
        loss: Any = None
        if labels is not None:
            checks.instance("labels", labels, Tensor)
            check_labels(labels.view(-1), len(logits), logits.shape[1])
            loss = functional.cross_entropy(logits, labels.view(-1))
        output = SequenceClassifierOutput(loss=loss, logits=logits)
        return output.to_tuple() if return_dict is False else output


def _gather(name: str, vectors: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The chosen positions of each row, in order and from the left: (B, n, d), (B, n) -> (B, m, d), (B, m)."""
    lengths = chosen.sum(1)
    shortest, longest = torch.stack(lengths.aminmax()).tolist() if len(lengths) else (1, 1)
    if not shortest:
        rows = (lengths == 0).nonzero().flatten().tolist()
        raise ValueError(f"every row needs a premise and a hypothesis, token types 0 and 1; no {name} in row(s) {rows}")
    order = (~chosen).to(torch.uint8).argsort(dim=1, stable=True)[:, :longest]
    words = torch.arange(order.shape[1], device=vectors.device) < lengths[:, None]
    return vectors.gather(1, order[..., None].expand(-1, -1, vectors.shape[2])), words


def from_vectors(
    path: str | Path,
    architecture: str,
    *,
    num_labels: int = 3,
    labels: Sequence[str] | None = None,
    corpus_words: Iterable[str] | None = None,
    vector_length: float | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[WordForSequenceClassification, PreTrainedTokenizerFast]:
    """A new model on the word vectors of a file, with its tokenizer.

    architecture: "dam" or "esim"; labels: the class names, by default LABEL_0 and so on; corpus_words: words that get a
    random vector, drawn from `seed`, where the file has none, such as `corpus_words(texts)` of the training texts;
    other unknown words share [UNK], the file's mean vector (see `with_vocabulary`). vector_length: scale every vector
    to it; by default 1 for DAM and as in the file for ESIM, as in the papers. options: as in `WordConfig`. The other
    weights come from torch's global random state.

    With length 1 the attention of DAM starts almost uniform; with a greater length it learns to align sooner. Its
    sentences begin with [NULL], as in the paper.
    """
    checks.choice("architecture", architecture, ARCHITECTURES)
    if vector_length is not None:
        checks.positive("vector_length", vector_length)
    if labels is not None and len(labels) != num_labels:
        raise ValueError(f"labels must name the {num_labels} classes of num_labels; got {len(labels)}: {tuple(labels)}")
    file = read_vectors(path)
    words, vectors = with_vocabulary(file, words=corpus_words or (), null=architecture == "dam", seed=seed)
    if vector_length is None and architecture == "dam":
        vector_length = 1.0
    if vector_length is not None:
        vectors = vector_length * functional.normalize(vectors, dim=-1)
    if labels is not None:
        options |= {"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}
    options |= {"vocab_size": len(words), "embedding_dim": file.dim, "num_labels": num_labels}
    model = WordForSequenceClassification(WordConfig(architecture, **options))
    with torch.no_grad():
        model.embedding.weight.copy_(vectors)
    return model, word_tokenizer(words)


AutoConfig.register(WordConfig.model_type, WordConfig)
AutoModelForSequenceClassification.register(WordConfig, WordForSequenceClassification)
