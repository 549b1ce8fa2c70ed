"""What a word-vector model of sentence pairs is made of."""

from typing import Any

from transformers import PretrainedConfig

from spinformer._base import checks

ARCHITECTURES = ("dam", "esim")
# Sizes and rates of the papers: Parikh et al. 2016, section 5; Chen et al. 2017, section 4.
_HIDDEN = {"dam": 200, "esim": 300}
_DROPOUT = {"dam": 0.2, "esim": 0.5}


class WordConfig(PretrainedConfig):
    """Decomposable attention ("dam") or ESIM ("esim") over `vocab_size` word vectors of `embedding_dim` numbers.

    hidden_size: the width of every layer, for ESIM of each direction of its LSTMs: by default 200 (DAM) or 300 (ESIM);
    dropout: by default 0.2 (DAM) or 0.5 (ESIM); trainable_embeddings: whether training changes the word vectors: by
    default false (DAM) or true (ESIM). `num_labels`, `id2label`, `label2id`: as in any Hugging Face configuration.
    """

    model_type = "spinformer-words"

    def __init__(
        self,
        architecture: str = "dam",
        vocab_size: int = 2,
        embedding_dim: int = 100,
        hidden_size: int | None = None,
        dropout: float | None = None,
        trainable_embeddings: bool | None = None,
        pad_token_id: int = 0,
        **kwargs: Any,
    ) -> None:
        checks.choice("architecture", architecture, ARCHITECTURES)
        self.architecture = architecture
        self.vocab_size = vocab_size
        self.embedding_dim = embedding_dim
        self.hidden_size = _HIDDEN[architecture] if hidden_size is None else hidden_size
        self.dropout = _DROPOUT[architecture] if dropout is None else dropout
        self.trainable_embeddings = architecture == "esim" if trainable_embeddings is None else trainable_embeddings
        for name in ("vocab_size", "embedding_dim", "hidden_size"):
            checks.at_least(name, getattr(self, name), 1)
        checks.at_least("pad_token_id", pad_token_id, 0)
        if pad_token_id >= self.vocab_size:
            raise ValueError(f"pad_token_id must be one of the {self.vocab_size} tokens; got {pad_token_id}")
        checks.flag("trainable_embeddings", self.trainable_embeddings)
        checks.number("dropout", self.dropout)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1; got {self.dropout}")
        super().__init__(**{"pad_token_id": pad_token_id, **kwargs})
