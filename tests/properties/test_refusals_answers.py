"""Bad arguments to scores and predictions: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache

import torch

from spinformer.data import Texts
from spinformer.evaluate import class_names, evaluate, map_classes, predict, scores
from tests import tiny
from tests.properties.cases import law, numbers, seeds
from tests.properties.models import classifier, texts, tokenizer
from tests.properties.refusals import Call, Kind, Rubbish, bad_cases, both, count, instance, refused, refused_at, values

LOGITS = both(
    values(
        text="rubbish",
        nothing=None,
        rubbish=Rubbish(),
        flat=torch.ones(4),
        deep=torch.ones(4, 3, 1),
        none=torch.ones(0, 3),
    ),
    values(
        narrow=torch.ones(4, 2),
        nan=torch.full((4, 3), torch.nan),
        words=[["a", "b", "c"]] * 4,
        ragged=[[1.0, 2.0, 3.0], [1.0]],
    ),
    values(complex=torch.ones(4, 3, dtype=torch.complex64)),
)
LABELS = values(
    text="rubbish",
    nothing=None,
    short=[0, 1],
    above=[0, 1, 2, 3],
    below=[-1, 0, 1, 2],
    fractions=[0.5] * 4,
    words=["a"] * 4,
    deep=[[0]] * 4,
    flags=[True] * 4,
)
ROWS = both(instance(), values(none=Texts([]), unlabelled=Texts(["a man"] * 2)))
# None stands for the class of the largest logit.
GIVEN = Kind(lambda value, seed: (case for case in LABELS.bad(value, seed) if case[1] is not None))


def judged(seed: int) -> dict:
    return {"logits": numbers("normal", seed, 4, 3), "labels": [0, 1, 2, 0], "names": ("a", "b", "c")}


def predicting(seed: int) -> dict:
    return {"model": classifier(), "tokenizer": tokenizer(), "texts": texts(2), "progress": False}


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    model = {
        "model": instance(),
        "tokenizer": instance(),
        "batch_size": count(1),
        "max_length": both(count(4, optional=True), values(too_long=4096)),
    }
    return bad_cases(
        Call(
            "scores",
            scores,
            judged,
            {
                "logits": LOGITS,
                "labels": LABELS,
                "names": values(two=("a", "b"), number=3, nothing=None, one="abc"),
                "predicted": GIVEN,
            },
        ),
        Call(
            "class_names",
            class_names,
            lambda seed: {"model": classifier()},
            {
                "model": instance(),
                "given": values(two=("a", "b"), same=("a", "A", "b"), number=3, one="abc", numbers=(1, 2, 3)),
            },
        ),
        Call(
            "map_classes",
            map_classes,
            lambda seed: {"model": tiny.NLI, "texts": texts(3)},
            {
                "model": values(other=("a", "b", "c"), number=3, nothing=None, one="entailment", numbers=(1, 2, 3)),
                "texts": ROWS,
            },
        ),
        Call(
            "predict",
            predict,
            predicting,
            {
                **model,
                "texts": both(instance(), values(none=Texts([]), empty=Texts(["a", " "]))),
                "device": values(rubbish="rubbish", number=3.5, cuda="cuda:7"),
                "bf16": values(on_a_cpu=True, text="yes"),
            },
        ),
        Call("evaluate", evaluate, predicting, {**model, "texts": ROWS, "names": values(two=("a", "b"))}),
    )


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"evaluate.{one}" for one in ("scores", "class_names", "map_classes", "predict", "evaluate")),
    share=10,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
