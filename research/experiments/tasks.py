"""Classifiers of five tasks, fine-tuned from one encoder: single texts and pairs, short and long, of every kind of
output. What users have, as far as it can be made here.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from research.experiments.splices import with_long_splices, with_splices
from spinformer._base.files import sha256
from spinformer._base.outputs import Outputs
from spinformer._base.progress import progress
from spinformer._base.rng import preserved, seeded
from spinformer.data.features import LengthSampler
from spinformer.data.files import read_rows
from spinformer.data.texts import Texts
from spinformer.models.outputs import PROBLEM_TYPES, answers_of
from spinformer.training.schedule import schedule

RATE, BATCH = 1e-4, 64
MAX_LENGTH = 128  # tokens of a text or a pair, unless a task says otherwise
PAIR = ("premise", "hypothesis")


@dataclass(frozen=True)
class Task:
    """One task. train, test: files of the data folder; texts: columns of the texts; answer: the column of what is to
    be learnt, a class, a list of labels or a score; epochs: of fine-tuning; max_length: tokens; passes: what KernelSHAP
    gets for each text; more: files whose texts the classifier is grounded on too, without their labels, and drawn:
    how many of these; splices: of all those texts (`with_splices`, or `with_long_splices` where the texts are long),
    None for the texts as they are; ground_epochs, ground_batch: of grounding.
    """

    train: str
    test: str
    texts: tuple[str, ...] = ("text",)
    answer: str = "label"
    outputs: Outputs = "classes"
    epochs: int = 2
    max_length: int = MAX_LENGTH
    passes: int = 200
    more: tuple[str, ...] = ()
    drawn: int | None = None
    splices: int | None = None
    ground_epochs: int = 4
    ground_batch: int = 256

    @property
    def long(self) -> bool:
        """Whether the texts are longer than a sentence or two."""
        return self.max_length > MAX_LENGTH


TASKS: Mapping[str, Task] = {
    "sst2": Task("sst2_train", "sst2_dev", more=("goemotions_train", "imdb_train"), splices=90_000, ground_epochs=3),
    "goemotions": Task(
        *("goemotions_train", "goemotions_test"),
        answer="labels",
        outputs="labels",
        epochs=6,
        ground_epochs=8,
        ground_batch=128,
    ),
    "stsb": Task(
        *("stsb_train", "stsb_test", PAIR, "score", "scores"),
        epochs=6,
        more=("snli_train",),
        drawn=40_000,
        ground_epochs=8,
        ground_batch=128,
    ),
    "imdb": Task(
        *("imdb_train", "imdb_dev"),
        epochs=6,
        max_length=512,
        passes=1_000,
        splices=8_000,
        ground_epochs=6,
        ground_batch=64,
    ),
    "snli": Task("snli_train", "snli_test", PAIR),
}


@dataclass(frozen=True)
class Learnt:
    """Texts with what is to be learnt of them, (N,) of classes and scores, (N, labels) of labels; and the names."""

    texts: Texts
    answers: Tensor
    names: tuple[str, ...]


def read_task(task: Task, data: Path, split: str, names: Sequence[str] = ()) -> Learnt:
    """The texts and answers of "train" or "test"; names: of the outputs, by default those that occur, in order."""
    file = data / f"{getattr(task, split)}.jsonl.gz"
    cells = [row for _, row in read_rows(file, (*task.texts, task.answer))]
    first, *second = (list(column) for column in list(zip(*cells, strict=True))[:-1])
    given = [row[-1] for row in cells]
    texts = Texts(first, second[0] if second else None, source=file.name, digests=((file.name, sha256(file)),))
    if task.outputs == "scores":
        return Learnt(texts, torch.tensor([float(score) for score in given]), (task.answer,))
    several = [[answer] if isinstance(answer, str) else answer for answer in given]
    found = tuple(names) or tuple(sorted({name for row in several for name in row}))
    on = torch.zeros(len(several), len(found))
    for place, row in enumerate(several):
        on[place, [found.index(name) for name in row]] = 1.0
    return Learnt(texts, on if task.outputs == "labels" else on.argmax(-1), found)


def texts_to_ground(task: Task, train: Texts, data: Path) -> Texts:
    """What the classifier is grounded on: the texts that it learnt from and, where the task says so, others."""
    files = [data / f"{name}.jsonl.gz" for name in task.more]
    rows = [row for file in files for _, row in read_rows(file, task.texts)]
    if task.drawn is not None:
        rows = random.Random(0).sample(rows, min(task.drawn, len(rows)))
    first, second = [*train.first, *(row[0] for row in rows)], train.second
    if second is not None:
        second = [*second, *(row[1] for row in rows)]
    digests = train.digests + tuple((file.name, sha256(file)) for file in files)
    texts = replace(train, first=first, second=second, digests=digests)
    if task.splices is None:
        return texts
    return (with_long_splices if task.long else with_splices)(texts, task.splices)


def loss_of(logits: Tensor, answers: Tensor, outputs: Outputs) -> Tensor:
    """Cross-entropy of classes, of each label, or the squared error of a score."""
    if outputs == "classes":
        return functional.cross_entropy(logits, answers)
    if outputs == "labels":
        return functional.binary_cross_entropy_with_logits(logits, answers)
    return functional.mse_loss(logits.squeeze(-1), answers)


def quality(logits: Tensor, answers: Tensor, outputs: Outputs) -> dict[str, float]:
    """How good a classifier is: accuracy, F1 over all labels of all texts, or the correlation of scores."""
    if outputs == "classes":
        return {"accuracy": float((logits.argmax(-1) == answers).double().mean())}
    if outputs == "labels":
        said, true = answers_of(logits, outputs) > 0.5, answers > 0.5
        return {"f1": float(2 * (said & true).sum() / (said.sum() + true.sum()).clamp_min(1))}
    return {"pearson": float(torch.corrcoef(torch.stack([logits.squeeze(-1).double(), answers.double()]))[0, 1])}


def fine_tune(task: Task, train: Learnt, encoder: Path, folder: Path, *, seed: int, device: str) -> None:
    """Train all weights of the encoder with a new output layer, and save the classifier in the folder."""
    from transformers import AutoModelForSequenceClassification

    from spinformer.models.loading import load_tokenizer

    labels = {"id2label": dict(enumerate(train.names)), "label2id": {name: k for k, name in enumerate(train.names)}}
    problem = next(name for name, outputs in PROBLEM_TYPES.items() if outputs == task.outputs)
    with seeded(seed):
        model = AutoModelForSequenceClassification.from_pretrained(
            encoder, problem_type=problem, trust_remote_code=False, **labels
        )
    tokenizer = load_tokenizer(encoder)
    tokenizer.model_max_length = model.config.max_position_embeddings
    pairs = [train.texts.first] if train.texts.second is None else [train.texts.first, train.texts.second]
    inputs = tokenizer(*pairs, truncation=True, max_length=task.max_length)
    batch = min(BATCH, len(train.texts))
    sampler = LengthSampler(torch.tensor([len(row) for row in inputs["input_ids"]]), batch, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    scheduler = schedule(optimizer, "linear", task.epochs * (len(sampler) // batch), warmup=0.1)
    model.to(device).train()
    answers = train.answers.to(device)
    with preserved():
        torch.manual_seed(seed)  # dropout
        for epoch in progress(range(task.epochs), "fine-tuning"):
            sampler.set_epoch(epoch)
            for rows in torch.tensor(list(sampler)).split(batch):
                part = {name: [column[row] for row in rows.tolist()] for name, column in inputs.items()}
                padded = tokenizer.pad(part, return_tensors="pt").to(device)
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=device != "cpu"):
                    logits = model(**padded).logits
                loss_of(logits.float(), answers[rows.to(device)], task.outputs).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
    model.eval().cpu()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measure_task(task: Task, trial: Any, options: Any, folder: Path) -> dict[str, Any]:
    """Ground the classifier of a trial; its game beside KernelSHAP with the task's passes, and how long it took."""
    from research.experiments.grounding import ground
    from spinformer.explain.context import Context
    from spinformer.explain.grounded import GroundedClassifier
    from spinformer.explain.methods import get_method

    head, seconds = ground(trial, options, folder)
    grounded = GroundedClassifier(trial.model, head)
    classifier = trial.classifier(grounded)
    context = Context(classifier, grounded, passes=task.passes, seed=options.seed)
    own = get_method("shapley").scorer(Context(classifier, grounded, seed=options.seed))
    others = [get_method(name).scorer(context) for name in ("kernel-shap", "leave-one-out", "random")]
    measured = trial.study(classifier, grounded).measure([own, *others], seeds=()).to_dict()
    return {"seconds": seconds, "passes": task.passes, "r2": measured["fit"]["pooled"], **measured}
