"""Learn from a larger classifier: its answers to each pair, and to changed views of it, beside the pair's label."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.files import atomic_write, regular, sha256
from spinformer._base.progress import progress
from spinformer._base.shared_state import evaluation_mode
from spinformer.data.features import Features, batches_by_length
from spinformer.data.neighbours import nearest_seconds, nearest_words
from spinformer.data.texts import Texts
from spinformer.data.views import Changes, make_views
from spinformer.models.hidden_states import encoder
from spinformer.models.identity import weights_digest
from spinformer.models.lengths import check_max_length
from spinformer.models.loading import load_classifier, load_config, load_tokenizer
from spinformer.models.predict import predict

CHANGES = Changes()
PARTNERS = 16  # second texts of other pairs that a first text may be paired with
WORD = re.compile(r"[a-z]{2,}")


def teacher_features(
    texts: Texts,
    teacher: str,
    model: Any,
    tokenizer: Any,
    *,
    weight: float,
    copies: int,
    max_length: int,
    neighbour_model: tuple[Any, Any] | None = None,
    batch_size: int = 1024,
) -> Features:
    """targets = (1 - weight) one_hot(label) + weight p_teacher for a pair as it is, and p_teacher for a changed view

    Tokens, for the student's `tokenizer`, of `copies` views of the texts (`spinformer.data.views`), and their targets.
    teacher: folder or hub id of a classifier with the same class names; in its folder the result is stored, for every
    student that needs the same. neighbour_model: a classifier and its tokenizer, whose encoder decides which words and
    texts are similar; by default the student, `model`.
    """
    if texts.labels is None:
        raise ValueError(f"{texts.source}: a teacher adds to labels, and there are none")
    _check_classes(teacher, texts.names)
    neighbour_model = neighbour_model or (model, tokenizer)
    folder, stored = Path(teacher), None
    if folder.is_dir():
        settings = (
            weight,
            copies,
            max_length,
            CHANGES,
            PARTNERS,
            *(sorted(one.get_vocab().items()) for one in (tokenizer, neighbour_model[1])),
            [sha256(path) for path in weight_files(folder)],
        )
        stored = folder / f"lesson-{_key(texts, neighbour_model[0], settings)}.safetensors"
        if regular(stored).is_file():
            return _fitting(Features.load(stored), stored, texts, tokenizer)
    inputs = texts
    if copies > 1:
        neighbours = neighbour_words(*neighbour_model, texts)
        partners = partner_texts(*neighbour_model, texts, max_length)
        inputs = make_views(texts, copies, CHANGES, 0, neighbours, partners)
    targets = _targets(texts, _teacher_probabilities(inputs, teacher, max_length, batch_size), weight)
    features = Features(inputs, tokenizer, max_length, targets)
    if stored is not None:
        with atomic_write(stored, many=True) as partial:  # every process of a run writes the same file
            features.save(partial)
    return features


def _fitting(features: Features, path: Path, texts: Texts, tokenizer: Any) -> Features:
    """The stored features, if they may be those of the texts; else a ValueError."""
    ids, targets, labels = features.columns["input_ids"], features.targets, features.labels
    fits = targets is not None and labels is not None and targets.shape[1] == len(texts.names) > int(labels.max())
    if not fits or len(features) % len(texts) or int(ids.max()) >= len(tokenizer):
        raise ValueError(f"{path} does not fit the texts that it was made of; remove it, and it is made anew")
    return features


def load_neighbour_model(path: str, max_length: int) -> tuple[Any, Any]:
    """A pretrained encoder, folder or hub id, as the `neighbour_model` of `teacher_features`, with its tokenizer."""
    from spinformer.models.neurogame import NeuroGameForSequenceClassification

    model = NeuroGameForSequenceClassification.from_encoder(path, head="cls")
    tokenizer = load_tokenizer(path)
    check_max_length(model, tokenizer, max_length)
    return model, tokenizer


def neighbour_words(model: Any, tokenizer: Any, texts: Texts) -> Mapping[str, Sequence[str]]:
    """For each word of the texts that is one token, the most similar of these words by the model's embeddings.

    Empty for a model without a table of embeddings.
    """
    embeddings = getattr(model.get_input_embeddings(), "weight", None)
    if embeddings is None:
        return {}
    vocabulary: set[str] = set()
    for column in (texts.first, texts.second or ()):
        for text in column:
            vocabulary.update(WORD.findall(text.lower()))
    words = sorted(vocabulary)
    tokens = tokenizer(words, add_special_tokens=False)["input_ids"] if words else []
    single = {word: ids[0] for word, ids in zip(words, tokens, strict=True) if len(ids) == 1}
    rows = torch.tensor(list(single.values()), dtype=torch.long)
    return nearest_words(list(single), embeddings.detach().cpu()[rows].to(_device()))


def partner_texts(model: Any, tokenizer: Any, texts: Texts, max_length: int) -> Mapping[str, Sequence[str]]:
    """For each first text, the most similar second texts of other pairs, by the mean of the encoder's last layer.

    Empty for single texts, and for a model on word vectors.
    """
    network = encoder(model)
    if texts.second is None or network is model:
        return {}
    original = next(network.parameters()).device
    sides = {"first": texts.first, "second": texts.second}
    network.to(_device())
    vectors = {
        name: _text_vectors(network, tokenizer, list(dict.fromkeys(side)), max_length) for name, side in sides.items()
    }
    network.to(original)
    return nearest_seconds(texts.first, texts.second, vectors, PARTNERS)


@torch.inference_mode()
def _text_vectors(network: Any, tokenizer: Any, texts: Sequence[str], max_length: int, batch_size: int = 512) -> Tensor:
    """(N, d): the mean over tokens of the last layer."""
    rows, device = Features(Texts(texts), tokenizer, max_length), _device()
    batches = batches_by_length(rows, tokenizer, batch_size, device)
    vectors = torch.empty(len(rows), network.config.hidden_size, device=device)
    with evaluation_mode(network), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        for batch, inputs in progress(batches, "similar texts", -(-len(rows) // batch_size), delay=1.0):
            states, mask = network(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
            vectors[batch.to(device)] = ((states * mask).sum(1) / mask.sum(1)).float()
    return vectors


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _targets(texts: Texts, answers: Tensor, weight: float) -> Tensor:
    labels = functional.one_hot(torch.tensor(list(texts.labels or ())), len(texts.names)).float()
    pairs = torch.lerp(labels, answers[: len(texts)], weight)
    # Rounded as in the file, so that a run that reads them learns the same.
    return torch.cat([pairs, answers[len(texts) :]]).half().float()


def _teacher_probabilities(texts: Texts, teacher: str, max_length: int, batch_size: int) -> Tensor:
    """(N, classes)."""
    device = _device()
    model, tokenizer = load_classifier(teacher, device=device.type)
    bf16 = device.type == "cuda"
    prediction = predict(model, tokenizer, texts, batch_size=batch_size, max_length=max_length, bf16=bf16)
    return prediction.logits.softmax(-1)


def _check_classes(teacher: str, expected: tuple[str, ...]) -> None:
    config: Any = load_config(teacher)
    names = tuple(config.id2label[index] for index in range(config.num_labels))
    if names != expected:
        raise ValueError(f"the teacher's classes are {names}; the training data's are {expected}")


def weight_files(folder: Path) -> list[Path]:
    """The weights of a saved model; stored answers of a teacher lie beside them."""
    return sorted(path for path in folder.glob("*.safetensors") if not path.name.startswith("lesson-"))


def _key(texts: Texts, model: Any, settings: tuple[Any, ...]) -> str:
    """Differs for other texts or labels, for other settings, and for an encoder that finds other neighbours."""
    network = encoder(model)
    weights = weights_digest(model.get_input_embeddings() if network is model else network)
    parts = (repr(settings), weights, texts.fingerprint(), repr(list(texts.labels or ())))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
