"""Laws of training: the same seed gives the same weights, also after a stop; what is promised to stay, stays."""

import itertools
import json
import tempfile
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import strategies as st

from spinformer.models import AttractorConfig, AttractorNetwork, GameHead
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
from tests import tiny
from tests.explain.world import assert_same, snapshot
from tests.properties.cases import assert_near, generator, law, seeds
from tests.properties.models import SMALL, classifier, masked, split, texts, tokenizer

objectives = st.sampled_from(
    [
        {"objective": "energy", "optimiser": "power"},
        {"objective": "energy", "optimiser": "sgd", "rate": 0.1},
        {"objective": "energy", "optimiser": "adam", "rate": 0.01, "hold": "pair"},
        {"objective": "field", "optimiser": "adam", "rate": 0.05, "hold": None, "hidden": 0.3},
        {"objective": "field", "optimiser": "sgd", "rate": 0.01, "hold": "site", "noise": 0.1},
    ]
)


def images(seed: int, count: int = 7) -> torch.Tensor:
    return torch.rand(count, 1, 2, 4, generator=generator(seed))


def network(shape: str, seed: int) -> AttractorNetwork:
    return AttractorNetwork(AttractorConfig(image=(1, 2, 4), patch=1, shape=shape, rank=2, seed=seed % 99))


@law(
    "training.train_attractor",
    "training.AttractorRecipe",
    share=5,
    shape=st.sampled_from(["full", "relative"]),
    objective=objectives,
    batch=st.integers(1, 8),
    stop=st.integers(1, 6),
    seed=seeds,
)
def test_attractors_learn_the_same_again_and_after_a_stop(shape, objective, batch, stop, seed):
    """The couplings that have a norm to hold keep it, and those of a site to itself stay 0."""
    recipe = AttractorRecipe(**objective, batch=batch, epochs=2, seed=seed % 1000)
    assert AttractorRecipe(**asdict(recipe)) == recipe
    one, other = network(shape, seed), network(shape, seed)
    start = {
        name: value.clone()
        for name, value in one.layer.pairs.lengths(one.layer.pairs.storage(), recipe.hold or "site").items()
    }
    history = train_attractor(one, images(seed), recipe, quiet=True)
    assert [epoch["epoch"] for epoch in history] == [1, 2]

    def interrupt(step: int) -> None:
        if step == stop:
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.pt"
        try:
            train_attractor(other, images(seed), recipe, checkpoint=path, on_step=interrupt, quiet=True)
        except KeyboardInterrupt:
            other = network(shape, seed)
            train_attractor(other, images(seed), recipe, checkpoint=path, quiet=True)
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
        assert bool(torch.isfinite(value).all())
    dense = one.layer.couplings
    assert not dense[range(8), range(8)].any()
    if recipe.hold is not None:
        for name, value in one.layer.pairs.lengths(one.layer.pairs.storage(), recipe.hold).items():
            assert_near(value, start[name], 1e-4)


@law(
    "training.train_attractor",
    share=4,
    shape=st.sampled_from(["full", "relative"]),
    hold=st.sampled_from(["site", "pair"]),
    strength=st.floats(0.1, 5),
    seed=seeds,
)
def test_the_power_method_never_raises_the_energy(shape, hold, strength, seed):
    """With all images in one batch and the rate 1."""
    one = network(shape, seed)
    recipe = AttractorRecipe(strength=strength, epochs=6, batch=7, rate=1.0, decay="constant", hold=hold)
    history = train_attractor(one, images(seed), recipe, quiet=True)
    energies = [epoch["loss"] for epoch in history] + [history[-1]["energy"]]
    assert all(after <= before + 1e-5 * (1 + abs(before)) for before, after in itertools.pairwise(energies))


@st.composite
def recipes(draw) -> dict:
    """Options of a classifier's training that go together."""
    options = {
        "epochs": st.integers(1, 9),
        "batch_size": st.integers(1, 64),
        "learning_rate": st.floats(1e-6, 1.0),
        "dropout": st.floats(0, 0.9),
        "warmup": st.floats(0, 0.9),
        "schedule": st.sampled_from(["linear", "cosine", "constant"]),
        "head": st.sampled_from(["neurogame", "cls", "mean"]),
        "limit": st.none() | st.integers(1, 999),
        "names": st.lists(st.sampled_from("abcdef"), unique=True),
        "game": st.dictionaries(st.sampled_from(["heads", "samples"]), st.integers(2, 4)),
        "residual": st.booleans(),
        "seed": st.integers(0, 2**31),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(options))))
    return {name: draw(options[name]) for name in sorted(chosen)}


@law("training.ClassifierRecipe", share=12, options=recipes())
def test_recipes_come_back_as_they_were_written(options):
    """From a mapping, from YAML and from YAML with a base; a name that is no option is refused."""
    recipe = ClassifierRecipe(**options)
    assert ClassifierRecipe.of(recipe.to_dict()) == recipe == ClassifierRecipe().change(**options)
    assert json.loads(json.dumps(recipe.to_dict())) == recipe.to_dict()
    with tempfile.TemporaryDirectory() as folder:
        base, own = Path(folder) / "base.yaml", Path(folder) / "own.yaml"
        base.write_text(yaml.safe_dump({**options, "epochs": 7}))
        own.write_text(yaml.safe_dump({"base": "base.yaml", "epochs": recipe.epochs}))
        assert ClassifierRecipe.read(own) == recipe
        assert ClassifierRecipe.read(str(base)) == recipe.change(epochs=7)
    with pytest.raises(ValueError, match=r"unknown option\(s\) rubbish; there are: encoder, head"):
        ClassifierRecipe.of({**options, "rubbish": 1})


@law(
    "training.train_game_head",
    "training.GroundingOptions",
    share=1,
    form=st.sampled_from(["sums", "attending"]),
    masking=st.sampled_from(["attention", "delete"]),
    seed=st.integers(0, 99),
)
def test_games_are_learnt_the_same_again(form, masking, seed):
    """The classifier's weights stay; a run that ended is taken from its folder; the game's own folder is read."""
    options = GroundingOptions(**{**SMALL, "form": form, "masking": masking, "seed": seed})
    assert GroundingOptions(**asdict(options)) == options == replace(options)
    assert {one.name for one in fields(options)} >= set(SMALL)
    model = classifier(2)
    before = snapshot(model)
    with tempfile.TemporaryDirectory() as folder:
        heads = [
            train_game_head(model, tokenizer(), texts(16), Path(folder) / name, options, held_out=texts(4, 1))
            for name in "ab"
        ]
        heads.append(
            train_game_head(
                model, tokenizer(), texts(16), Path(folder) / "a", options, held_out=texts(4, 1), resume=True
            )
        )
        heads.append(GameHead.load(Path(folder) / "b", model))
    assert_same(before, snapshot(model))
    for head in heads[1:]:
        assert head.config == heads[0].config
        assert all(torch.equal(value, head.state_dict()[name]) for name, value in heads[0].state_dict().items())


@law("training.train_additive", share=1, classes=st.sampled_from(["all", "decided"]), seed=st.integers(0, 99))
def test_additive_networks_share_out_the_answer(classes, seed):
    """What they give the words adds up to p(N) - p(nothing), trained or not; the same seed gives the same weights."""
    networks = []
    for _ in range(2):
        made = AdditiveNetwork.for_classifier(masked(), width=8, classes=classes, seed=seed)
        record = train_additive(made, masked(), texts(12), passes=96, batch_size=4, coalitions=2, seed=seed, quiet=True)
        assert (record["steps"], record["passes"]) == (6, 96)
        networks.append(made)
    one, other = (made.state_dict() for made in networks)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    words = split(texts(3, seed))
    with torch.no_grad():
        full, states = networks[0].read(masked(), words)
        given = networks[0](states, words, full - 0.25)
    assert_near(given.sum(1), full - 0.25, 1e-4, size=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("training")
    tiny.save_encoder(place / "encoder")
    tiny.save_rows(place / "train.jsonl", 12, longest=4)
    tiny.save_rows(place / "dev.jsonl", 6, seed=1, longest=4)
    return place


@law(
    "training.train_classifier",
    "training.ClassifierRecipe",
    share=1,
    head=st.sampled_from(["neurogame", "mean"]),
    seed=st.integers(0, 99),
)
def test_classifiers_learn_the_same_again(folder, head, seed):
    """And the caller's generators stay as they are; a folder that holds a run is refused."""
    data = {"train": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl"), "encoder": str(folder / "encoder")}
    recipe = ClassifierRecipe(**data, head=head, epochs=1, batch_size=6, seed=seed, save_steps=0, max_length=16)
    weights = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as place:
            record = train_classifier(recipe, Path(place) / "run", quiet=True)
            assert record["recipe"] == recipe.to_dict()
            weights.append((Path(place) / "run" / "model.safetensors").read_bytes())
            with pytest.raises(FileExistsError, match="already holds a run"):
                train_classifier(recipe, Path(place) / "run", quiet=True)
    assert weights[0] == weights[1]
