"""Learning from a larger classifier: what it says of each pair, and of views of it, beside the pair's own label."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer

from spinformer.data.features import Features, by_length
from spinformer.data.near import nearest_seconds, nearest_words
from spinformer.data.texts import Texts
from spinformer.data.views import Changes, views
from spinformer.models.grounding import digest
from spinformer.models.hidden import encoder, evaluating
from spinformer.models.load import load_classifier, load_config
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.models.predict import fits, predict
from spinformer.progress import progress
from spinformer.results import sha256
from spinformer.whole import whole

CHANGES = Changes()
PARTNERS = 16  # second texts of other pairs that a first text may be paired with
WORD = re.compile(r"[a-z]{2,}")


def teach(
    texts: Texts,
    teacher: str,
    model: Any,
    tokenizer: Any,
    *,
    weight: float,
    copies: int,
    max_length: int,
    reader: tuple[Any, Any] | None = None,
    batch_size: int = 1024,
) -> Features:
    """targets = (1 - weight) one_hot(label) + weight p_teacher for a pair as it is; p_teacher for a changed view.

    Tokens, for the student's `tokenizer`, of `copies` views of the texts (`spinformer.data.views`), and their targets.
    The teacher is a folder or hub id of a classifier with the same class names; the lesson is kept in its folder, for
    all students who ask the same. Which words and texts are near is as `reader`, a classifier and its tokenizer, reads
    them; by default the student, `model`.
    """
    if texts.labels is None:
        raise ValueError(f"{texts.source}: a teacher adds to labels, and there are none")
    _same_classes(teacher, texts.names)
    reader = reader or (model, tokenizer)
    folder = Path(teacher)
    kept = None
    if folder.is_dir():
        asked = (
            weight,
            copies,
            max_length,
            CHANGES,
            PARTNERS,
            *(sorted(one.get_vocab().items()) for one in (tokenizer, reader[1])),
            [sha256(f) for f in weight_files(folder)],
        )
        kept = folder / f"lesson-{_key(texts, reader[0], asked)}.safetensors"
        if kept.is_file():
            return Features.load(kept)
    seen = texts
    if copies > 1:
        near = neighbours_of(*reader, texts), partners_of(*reader, texts, max_length)
        seen = views(texts, copies, CHANGES, 0, *near)
    targets = _targets(texts, _answers(seen, teacher, max_length, batch_size), weight)
    lesson = Features(seen, tokenizer, max_length, targets)
    if kept is not None:
        with whole(kept, many=True) as partial:  # by every process of a run
            lesson.save(partial)
    return lesson


def load_reader(path: str, max_length: int) -> tuple[Any, Any]:
    """Who says which words and texts are near, where it is not the student: a pretrained encoder, folder or hub id."""
    model = NeuroGameForSequenceClassification.from_encoder(path, head="cls")
    tokenizer = AutoTokenizer.from_pretrained(path)
    fits(model, tokenizer, max_length)
    return model, tokenizer


def neighbours_of(model: Any, tokenizer: Any, texts: Texts) -> Mapping[str, Sequence[str]]:
    """The nearest words among those of the texts that are one token each, by the model's embeddings; none where it has
    no table of them."""
    embeddings = getattr(model.get_input_embeddings(), "weight", None)
    if embeddings is None:
        return {}
    found: set[str] = set()
    for column in (texts.first, texts.second or ()):
        for text in column:
            found.update(WORD.findall(text.lower()))
    words = sorted(found)
    tokens = tokenizer(words, add_special_tokens=False)["input_ids"] if words else []
    single = {word: ids[0] for word, ids in zip(words, tokens, strict=True) if len(ids) == 1}
    rows = torch.tensor(list(single.values()), dtype=torch.long)
    return nearest_words(list(single), embeddings.detach().cpu()[rows].to(_device()))


def partners_of(model: Any, tokenizer: Any, texts: Texts, max_length: int) -> Mapping[str, Sequence[str]]:
    """For each first text the nearest second texts of other pairs, by the mean of what the model's encoder makes of
    their tokens; none for a model of word vectors, or for single texts."""
    inside = encoder(model)
    if texts.second is None or inside is model:
        return {}
    came = next(inside.parameters()).device
    sides = {"first": texts.first, "second": texts.second}
    inside.to(_device())
    vectors = {name: _vectors(inside, tokenizer, list(dict.fromkeys(side)), max_length) for name, side in sides.items()}
    inside.to(came)
    return nearest_seconds(texts.first, texts.second, vectors, PARTNERS)


@torch.inference_mode()
def _vectors(inside: Any, tokenizer: Any, texts: Sequence[str], max_length: int, batch_size: int = 512) -> Tensor:
    """(N, d): the mean over tokens of the last layer."""
    rows, device = Features(Texts(texts), tokenizer, max_length), _device()
    batches = by_length(rows, tokenizer, batch_size, device)
    found = torch.empty(len(rows), inside.config.hidden_size, device=device)
    with evaluating(inside), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        for batch, inputs in progress(batches, "texts that are near", -(-len(rows) // batch_size), delay=1.0):
            states, mask = inside(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
            found[batch.to(device)] = ((states * mask).sum(1) / mask.sum(1)).float()
    return found


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _targets(texts: Texts, answers: Tensor, weight: float) -> Tensor:
    gold = functional.one_hot(torch.tensor(list(texts.labels or ())), len(texts.names)).float()
    whole = torch.lerp(gold, answers[: len(texts)], weight)
    return torch.cat([whole, answers[len(texts) :]]).half().float()  # as a file has them: a resumed run learns the same


def _answers(texts: Texts, teacher: str, max_length: int, batch_size: int) -> Tensor:
    """p_teacher of every row, (N, classes)."""
    device = _device()
    model, tokenizer = load_classifier(teacher, device=device.type)
    bf16 = device.type == "cuda"
    found = predict(model, tokenizer, texts, batch_size=batch_size, max_length=max_length, bf16=bf16)
    return found.logits.softmax(-1)


def _same_classes(teacher: str, expected: tuple[str, ...]) -> None:
    config = load_config(teacher)
    names = tuple(config.id2label[place] for place in range(config.num_labels))
    if names != expected:
        raise ValueError(f"the teacher's classes are {names}; the training data's are {expected}")


def weight_files(folder: Path) -> list[Path]:
    """Of a saved model; lessons are kept beside them."""
    return sorted(path for path in folder.glob("*.safetensors") if not path.name.startswith("lesson-"))


def _key(texts: Texts, model: Any, asked: tuple[Any, ...]) -> str:
    inside = encoder(model)  # decides which words and texts are near
    near = digest(model.get_input_embeddings() if inside is model else inside)
    parts = (repr(asked), near, texts.fingerprint(), repr(list(texts.labels or ())))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
