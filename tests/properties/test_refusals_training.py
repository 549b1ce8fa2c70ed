"""Bad arguments to recipes and training: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache

import torch

from spinformer.data import Texts
from spinformer.models.additive import AdditiveNetwork
from spinformer.training import (
    AttractorRecipe,
    ClassifierRecipe,
    GroundingOptions,
    train_additive,
    train_attractor,
    train_classifier,
    train_game_head,
)
from tests.properties.cases import law, seeds
from tests.properties.models import SMALL, classifier, masked, texts, tokenizer
from tests.properties.refusals import (
    INF,
    NAN,
    Call,
    bad_cases,
    both,
    count,
    instance,
    name,
    number,
    refused,
    refused_at,
    tensor,
    values,
)
from tests.properties.test_refusals_models import FLAG, FOLDER, place
from tests.properties.test_training import images, network

SOME = both(instance(), values(none=Texts([])))


def learning(seed: int) -> dict:
    return {
        "model": classifier(),
        "tokenizer": tokenizer(),
        "texts": texts(8),
        "output": place() / f"game-{seed % 7}",
        "options": GroundingOptions(**SMALL),
    }


def training(seed: int) -> dict:
    return {"network": network("full", 0), "images": images(0), "recipe": AttractorRecipe(epochs=1), "quiet": True}


def additive(seed: int) -> dict:
    return {
        "network": AdditiveNetwork.for_classifier(masked(), width=8),
        "classifier": masked(),
        "texts": texts(8),
        "passes": 64,
        "batch_size": 4,
        "quiet": True,
    }


def recipe(**changes) -> ClassifierRecipe:
    return ClassifierRecipe(**{"encoder": "./no/such", "train": "no-such.jsonl", "dev": "no-such.jsonl", **changes})


RECIPE = {
    **{one: count(1) for one in ("epochs", "batch_size", "accumulation", "log_steps", "views", "max_length")},
    **{one: count(1, optional=True) for one in ("limit", "steps")},
    **{one: count(0) for one in ("seed", "workers", "settle", "classifier_layers")},
    **{
        one: values(text="x", nan=NAN, inf=INF, zero=0.0, negative=-1.0, nothing=None, a_list=[1.0])
        for one in ("learning_rate", "head_factor", "ground_factor", "factor", "clip")
    },
    **{
        one: values(text="x", nan=NAN, inf=INF, negative=-0.1, one=1.0, nothing=None)
        for one in ("dropout", "warmup", "label_smoothing", "ema", "whole")
    },
    **{
        one: values(text="x", nan=NAN, inf=INF, negative=-0.1)
        for one in ("mixup", "consistency", "weight_decay", "ground_weight", "masked_weight", "teacher_weight")
    },
    **{one: name() for one in ("head", "schedule", "objective", "precision")},
    **{one: values(number=3, nothing=None, a_list=["a"]) for one in ("encoder", "train", "dev")},
    **{
        "residual": FLAG,
        "compile": FLAG,
        "names": values(text="ab", number=3, numbers=[1]),
        "game": values(text="ab", a_list=[1]),
    },
}


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    return bad_cases(
        Call(
            "AttractorRecipe",
            AttractorRecipe,
            lambda seed: {},
            {
                "objective": name(),
                "strength": number(-INF, INF),
                "epochs": count(1),
                "batch": count(1),
                "rate": number(),
                "optimiser": name(),
                "decay": name(),
                "clip": number(optional=True),
                "hold": values(other="rubbish", number=3),
                "hidden": number(0.0, 0.999, closed=True),
                "noise": number(0.0, closed=True),
                "sites": count(1, optional=True),
                "chunk": count(1, optional=True),
                "seed": count(0),
            },
        ),
        Call(
            "train_attractor",
            train_attractor,
            training,
            {
                "network": instance(),
                "images": both(tensor(1, 2, 3, empty=True), values(above=2 + images(0))),
                "recipe": instance(),
                "held_out": values(
                    text="a",
                    narrow=torch.zeros(2, 1, 2, 3),
                    nan=torch.full((2, 1, 2, 4), NAN),
                    none=torch.zeros(0, 1, 2, 4),
                ),
                "shard": name(),
                "save_every": count(1),
                "checkpoint": values(number=3),
                "on_step": values(number=3),
            },
        ),
        Call(
            "GroundingOptions",
            GroundingOptions,
            lambda seed: {},
            {
                "epochs": count(0),
                "batch_size": count(0),
                "subsets": count(1),
                "dim": count(0),
                "learning_rate": number(0.0, closed=True),
                "gain": number(0.0, 1.0, closed=True),
                "weight_decay": number(0.0, closed=True),
                "warmup": number(0.0, 1.0, closed=True),
                "masking": name(),
                "form": name(),
                "max_length": count(0),
                "heads": count(1),
                "seed": count(0),
                "layers": values(words=("a",), number=3, fraction=(0.5,), nothing=None),
            },
        ),
        Call(
            "train_game_head",
            train_game_head,
            learning,
            {
                "model": instance(),
                "tokenizer": instance(),
                "texts": SOME,
                "output": FOLDER,
                "options": instance(),
                "held_out": values(text="a", number=3, none=Texts([])),
            },
        ),
        Call(
            "train_additive",
            train_additive,
            additive,
            {
                "network": instance(),
                "classifier": instance(),
                "texts": SOME,
                "passes": both(count(1), values(few=3)),
                "max_length": count(1),
                "batch_size": count(1),
                "coalitions": both(count(2), values(odd=3)),
                "learning_rate": number(),
                "seed": count(0),
                "save_every": count(1),
                "checkpoint": values(number=3),
            },
        ),
        Call("ClassifierRecipe", recipe, lambda seed: {}, RECIPE),
        Call(
            "ClassifierRecipe.of",
            ClassifierRecipe.of,
            lambda seed: {"options": {}},
            {"options": values(number=3, nothing=None, text="ab", unknown={"rubbish": 1}, removed={"gate": True})},
        ),
        Call(
            "ClassifierRecipe.read",
            ClassifierRecipe.read,
            lambda seed: {},
            {"path": values(number=3, nothing=None, missing="no-such.yaml")},
        ),
        Call(
            "train_classifier",
            train_classifier,
            lambda seed: {"recipe": recipe(), "output": place() / "run", "quiet": True},
            {"recipe": both(instance(), values(no_data=recipe())), "output": FOLDER},
        ),
    )


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"training.{one}" for one in ("AttractorRecipe", "ClassifierRecipe", "GroundingOptions", "train_additive")),
    *(f"training.{one}" for one in ("train_attractor", "train_classifier", "train_game_head")),
    share=12,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
