"""Bad arguments to embeddings and models of images: one line of our own, never torch's error or a silent NaN."""

from functools import lru_cache
from types import SimpleNamespace

import torch

from spinformer.attractor import PatchEmbedding, check_images
from spinformer.models import AttractorConfig, AttractorNetwork
from tests.properties.cases import law, masks, seeds
from tests.properties.refusals import (
    INF,
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
from tests.properties.test_refusals_attractor import IMAGE, images
from tests.properties.test_refusals_layers import BATCH, REAL

PIXELS = both(tensor(1, 2, 3), values(above=torch.full((1, *IMAGE), 1.5), below=torch.full((1, *IMAGE), -0.5)))
CUT = values(text="rubbish", nothing=None, a_list=[1.0], narrow=torch.ones(BATCH, 1, 4, 3), flat=torch.ones(5))


@lru_cache(maxsize=1)
def things() -> SimpleNamespace:
    """Models that are only read."""
    network = AttractorNetwork(AttractorConfig(image=IMAGE, patch=2))
    return SimpleNamespace(embedding=PatchEmbedding(IMAGE, 2), network=network)


@lru_cache(maxsize=1)
def bad() -> tuple[tuple[Call, str, str], ...]:
    these = things()
    shapes = values(
        text="rubbish",
        two=(4, 4),
        four=(1, 4, 4, 1),
        zero=(1, 0, 4),
        negative=(1, -4, 4),
        fraction=(1, 4.0, 4),
        nothing=None,
    )
    given = lambda seed: {"images": images(seed)}  # noqa: E731
    network = {
        **{
            "image": shapes,
            "patch": both(count(1), values(three=3)),
            "dim": both(count(8, optional=True)),
            "shape": name(),
        },
        **{"normalisation": name(), "radius": number(optional=True), "strength": REAL, "inertia": REAL},
        **{"clamp": number(-INF, INF, optional=True), "seed": count(0)},
    }
    return bad_cases(
        Call(
            "check_images",
            check_images,
            lambda seed: {"images": images(seed), "shape": IMAGE},
            {"images": PIXELS, "shape": shapes},
        ),
        Call(
            "PatchEmbedding",
            PatchEmbedding,
            lambda seed: {"shape": IMAGE, "patch": 2, "seed": seed},
            {
                "shape": shapes,
                "patch": both(count(1), values(three=3)),
                "dim": count(8, optional=True),
                "seed": count(0),
            },
        ),
        Call("PatchEmbedding.encode", these.embedding.encode, given, {"images": PIXELS}),
        Call("PatchEmbedding.patches", these.embedding.patches, given, {"images": CUT}),
        Call(
            "PatchEmbedding.image",
            these.embedding.image,
            lambda seed: {"patches": these.embedding.patches(images(seed))},
            {"patches": CUT},
        ),
        Call(
            "PatchEmbedding.decode",
            these.embedding.decode,
            lambda seed: {"spins": these.embedding.encode(images(seed))},
            {"spins": tensor(1, 2, dims=False, finite=False)},
        ),
        Call(
            "PatchEmbedding.hide",
            these.embedding.hide,
            lambda seed: {"mask": masks(seed, BATCH, 4)},
            {
                "mask": values(
                    narrow=torch.ones(BATCH, 3).bool(),
                    a_list=[[True] * 4],
                    text="rubbish",
                    numbers=torch.ones(BATCH, 4),
                )
            },
        ),
        Call(
            "AttractorNetwork",
            lambda **options: AttractorNetwork(AttractorConfig(**options)),
            lambda seed: {"image": IMAGE, "patch": 2},
            network,
        ),
        Call(
            "AttractorNetwork()",
            AttractorNetwork,
            lambda seed: {"config": AttractorConfig(image=IMAGE)},
            {"config": instance()},
        ),
        Call("AttractorNetwork.spins", these.network.spins, given, {"images": PIXELS}),
        Call(
            "AttractorNetwork.images",
            these.network.images,
            lambda seed: {"spins": these.network.spins(images(seed))},
            {"spins": tensor(1, 2, dims=False, finite=False)},
        ),
        Call(
            "AttractorNetwork.trajectory",
            these.network.trajectory,
            lambda seed: {"images": images(seed), "steps": 2, "mask": masks(seed, BATCH, 4)},
            {
                "images": PIXELS,
                "steps": count(0),
                "mask": values(
                    narrow=torch.ones(BATCH, 3).bool(),
                    a_list=[[True] * 4],
                    text="rubbish",
                    numbers=torch.ones(BATCH, 4),
                ),
            },
        ),
        Call(
            "AttractorNetwork.centre",
            AttractorNetwork(AttractorConfig(image=IMAGE, radius=0.1)).centre,
            given,
            {"images": both(PIXELS, values(nobody=torch.zeros(0, *IMAGE)))},
        ),
    )


def test_every_bad_argument_once():
    refused(bad())


@law(
    *(f"attractor.{one}" for one in ("PatchEmbedding", "check_images")),
    *(f"models.{one}" for one in ("AttractorConfig", "AttractorNetwork")),
    share=15,
    place=seeds,
    number=seeds,
)
def test_bad_arguments(place, number):
    refused_at(bad(), place, number)
