"""Models of sentence pairs over word vectors, in the shape of Hugging Face models: decomposable attention and ESIM."""

from spinformer._base.extras import require

require("transformers", extra="nli")

from spinformer.models.baselines.configuration import WordConfig  # noqa: E402
from spinformer.models.baselines.modeling import WordForSequenceClassification, from_vectors  # noqa: E402
from spinformer.models.baselines.vectors import WordVectors, corpus_words, read_vectors, word_tokenizer  # noqa: E402

__all__ = [
    "WordConfig",
    "WordForSequenceClassification",
    "WordVectors",
    "corpus_words",
    "from_vectors",
    "read_vectors",
    "word_tokenizer",
]
