"""Learning from a larger model: its probabilities as targets, on the training pairs and on thinned views of them."""

import hashlib
import os
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from spinformer.data.texts import Texts
from spinformer.data.views import views
from spinformer.models.load import load_classifier, load_config
from spinformer.models.predict import predict

# Words that a thinned view leaves out, as a part of all.
THINNING = 0.15


def teach(
    texts: Texts, teacher: str, *, weight: float, copies: int, max_length: int, batch_size: int = 512
) -> tuple[Texts, Tensor]:
    """targets = (1 - weight) one_hot(label) + weight p_teacher for a pair as it is; p_teacher for a thinned view.

    Returns `copies` views of the texts (`spinformer.data.views`) and their targets, (N copies, classes). The teacher is
    a folder or hub id of a classifier with the same class names; what it says is kept beside it and read next time.
    """
    if texts.labels is None:
        raise ValueError(f"{texts.source}: a teacher adds to labels, and there are none")
    seen = views(texts, copies, THINNING, seed=0)
    probabilities = _answers(seen, teacher, max_length, batch_size)
    targets = probabilities.clone()
    gold = functional.one_hot(torch.tensor(list(texts.labels)), len(texts.names)).float()
    targets[: len(texts)] = torch.lerp(gold, probabilities[: len(texts)], weight)
    return seen, targets


def _answers(texts: Texts, teacher: str, max_length: int, batch_size: int) -> Tensor:
    """p_teacher of every row, (N, classes), from the file beside the teacher where there is one."""
    _same_classes(teacher, texts.names)
    folder = Path(teacher)
    kept = folder / f"answers-{_key(texts, max_length)}.safetensors"
    if kept.is_file():
        return load_file(kept)["probabilities"].float()
    cuda = torch.cuda.is_available()
    model, tokenizer = load_classifier(teacher, device="cuda" if cuda else "cpu")
    found = predict(model, tokenizer, texts, batch_size=batch_size, max_length=max_length, bf16=cuda)
    probabilities = found.logits.softmax(-1).half()  # as the file has them, so that a resumed run learns the same
    if folder.is_dir():
        partial = kept.with_suffix(f".partial-{os.getpid()}")  # every process of a run answers for itself
        save_file({"probabilities": probabilities}, partial)
        partial.replace(kept)
    return probabilities.float()


def _same_classes(teacher: str, expected: tuple[str, ...]) -> None:
    config = load_config(teacher)
    names = tuple(config.id2label[place] for place in range(config.num_labels))
    if names != expected:
        raise ValueError(f"the teacher's classes are {names}; the training data's are {expected}")


def _key(texts: Texts, max_length: int) -> str:
    digest = hashlib.sha256(str(max_length).encode())
    for column in (texts.first, texts.second or ()):
        for text in column:
            digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:16]
