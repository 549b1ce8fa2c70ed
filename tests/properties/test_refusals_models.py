"""Bad arguments to classifiers and games: one line of our own, never torch's error or a silent NaN."""

import tempfile
from functools import lru_cache
from pathlib import Path

import torch

from spinformer.models import (
    AttractorConfig,
    AttractorNetwork,
    GameHead,
    MaskedClassifier,
    NeuroGameConfig,
    NeuroGameForSequenceClassification,
    NeuroGameModel,
    WordConfig,
    WordForSequenceClassification,
)
from tests import tiny
from tests.properties.cases import law, seeds
from tests.properties.models import classifier, grounded, masked, split, texts, tokenizer
from tests.properties.refusals import (
    Call,
    Rubbish,
    bad_cases,
    both,
    count,
    instance,
    name,
    number,
    refused,
    refused_at,
    values,
)
from tests.properties.test_models import neurogame, word_model
from tests.properties.test_training import network

FLAG = values(text="yes", number=3)
FOLDER = values(number=3, nothing=None, rubbish=Rubbish())


def tokens(seed: int) -> dict:
    return dict(tokenizer()(["a man", "the dog"], ["a dog", "red"], padding=True, return_tensors="pt"))


@lru_cache(maxsize=1)
def place() -> Path:
    """A folder for what is begun and refused; it goes with the process."""
    place.kept = tempfile.TemporaryDirectory()
    return Path(place.kept.name)


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    made, words = grounded(), split(texts(2))
    width = words.mask.shape[1]
    coalitions = values(
        text="a",
        nothing=None,
        numbers=torch.ones(2, 1, width),
        narrow=torch.ones(2, 1, width - 1).bool(),
        flat=torch.ones(2, width).bool(),
        other=torch.ones(3, 1, width).bool(),
        a_list=[[True]],
    )
    ids = values(
        text="a",
        fractions=torch.ones(2, 6),
        beyond=torch.full((2, 6), 999),
        below=torch.full((2, 6), -1),
        flat=torch.ones(6).long(),
        a_list=[[1, 2]],
        nothing=None,
    )
    attention = values(
        text="a",
        narrow=torch.ones(2, 3).long(),
        none=torch.zeros(2, tokens(0)["input_ids"].shape[1]).long(),
        a_list=[[1]],
    )
    labels = values(
        text="a",
        beyond=torch.tensor([0, 3]),
        below=torch.tensor([-2, 0]),
        short=torch.tensor([0]),
        fractions=torch.tensor([0.5, 1.0]),
        a_list=[0, 1],
    )
    heads = [neurogame("neurogame"), neurogame("mean")]
    network_options = {"num_labels": 3}
    return bad_cases(
        Call(
            "MaskedClassifier",
            MaskedClassifier,
            lambda seed: {"model": classifier(), "tokenizer": tokenizer()},
            {
                "model": instance(),
                "tokenizer": instance(),
                "masking": both(name(), values(no_mask_token="token")),
                "batch_size": count(1),
                "bf16": FLAG,
            },
        ),
        Call(
            "MaskedClassifier.probabilities",
            masked().probabilities,
            lambda seed: {"words": words, "coalitions": words.mask[:, None]},
            {"words": instance(), "coalitions": coalitions},
        ),
        Call(
            "MaskedClassifier.full_probabilities",
            masked().full_probabilities,
            lambda seed: {"words": words},
            {"words": instance()},
        ),
        Call("GameHead", GameHead, lambda seed: {"config": made.grounded.head.config}, {"config": instance()}),
        Call(
            "GameHead.games",
            made.grounded.head.games,
            lambda seed: {"model": classifier(), "words": words},
            {"model": instance(), "words": instance()},
        ),
        Call(
            "GameHead.load",
            GameHead.load,
            lambda seed: {"folder": place(), "model": classifier()},
            {"folder": both(FOLDER, values(none=Path("./no/such")))},
        ),
        Call("GameHead.save", made.grounded.head.save, lambda seed: {"folder": place() / "head"}, {"folder": FOLDER}),
        Call(
            "NeuroGameConfig",
            NeuroGameConfig,
            lambda seed: {"encoder": tiny.bert(), **network_options},
            {
                "encoder": values(
                    text="bert",
                    number=3,
                    no_type={"hidden_size": 3},
                    other={"model_type": "rubbish"},
                    decoder={"model_type": "t5"},
                ),
                "head": name(),
                "classifier_layers": count(0),
                "dropout": number(0.0, 0.999, closed=True),
                "residual": FLAG,
                "game": values(text="a", a_list=[1]),
                "grounding": values(text="a", a_list=[1]),
                "special_ids": values(text="ab", number=3, words=["a"]),
            },
        ),
        *(
            Call(
                f"NeuroGameForSequenceClassification {model.config.head}",
                model,
                tokens,
                {"input_ids": ids, "attention_mask": attention, "labels": labels},
            )
            for model in heads
        ),
        Call("NeuroGameModel", heads[0].model, tokens, {"input_ids": ids, "attention_mask": attention}),
        Call(
            "NeuroGameModel(config)", NeuroGameModel, lambda seed: {"config": heads[0].config}, {"config": instance()}
        ),
        Call(
            "NeuroGameForSequenceClassification(config)",
            NeuroGameForSequenceClassification,
            lambda seed: {"config": heads[0].config},
            {"config": instance()},
        ),
        Call(
            "from_encoder",
            NeuroGameForSequenceClassification.from_encoder,
            lambda seed: {"path": "./no/such"},
            {"path": values(missing="./no/such/folder", number=3, nothing=None, empty=""), "head": name()},
        ),
        Call(
            "from_pretrained",
            NeuroGameForSequenceClassification.from_pretrained,
            lambda seed: {},
            {"pretrained_model_name_or_path": values(missing="./no/such/folder", empty_folder=str(place()))},
        ),
        Call(
            "WordConfig",
            WordConfig,
            lambda seed: {"architecture": "dam", **network_options},
            {
                "architecture": name(),
                "vocab_size": count(1),
                "embedding_dim": count(1),
                "hidden_size": count(1, optional=True),
                "dropout": number(0.0, 0.999, closed=True, optional=True),
                "trainable_embeddings": FLAG,
                "pad_token_id": both(count(0), values(beyond=99)),
            },
        ),
        Call(
            "WordForSequenceClassification",
            word_model("dam"),
            tokens,
            {
                "input_ids": ids,
                "attention_mask": attention,
                "token_type_ids": values(
                    nothing=None,
                    no_second=torch.zeros_like(tokens(0)["input_ids"]),
                    narrow=torch.ones(2, 2).long(),
                    text="a",
                ),
                "labels": labels,
            },
        ),
        Call(
            "WordForSequenceClassification(config)",
            WordForSequenceClassification,
            lambda seed: {"config": word_model("dam").config},
            {"config": instance()},
        ),
        Call(
            "AttractorNetwork.load",
            AttractorNetwork.load,
            lambda seed: {},
            {"path": both(FOLDER, values(none=Path("no/such")))},
        ),
        Call(
            "AttractorNetwork.save",
            network("full", 0).save,
            lambda seed: {"path": place() / "network"},
            {"path": FOLDER},
        ),
        Call(
            "AttractorConfig",
            lambda **options: AttractorNetwork(AttractorConfig(**options)),
            lambda seed: {"image": (1, 2, 4)},
            {"shape": name()},
        ),
    )


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"models.{one}" for one in ("MaskedClassifier", "GameHead", "NeuroGameConfig", "NeuroGameModel", "WordConfig")),
    share=12,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
