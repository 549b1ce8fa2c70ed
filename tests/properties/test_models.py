"""Laws of models: what is saved comes back, answers do not depend on the batch, and hidden words say nothing."""

import tempfile
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import torch
from hypothesis import strategies as st

import spinformer
from spinformer import evaluate
from spinformer.attractor import NORMALISATIONS, SHAPES
from spinformer.data import Texts
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
    load_classifier,
)
from spinformer.models.pooling import POOLING_HEADS
from tests import tiny
from tests.properties.cases import assert_near, generator, law, seeds
from tests.properties.models import classifier, grounded, pairs, split, tokenizer

rows = st.lists(pairs, min_size=1, max_size=3)


def joined(given: list[tuple[str, str]]) -> Texts:
    return Texts([row[0] for row in given], [row[1] for row in given])


@law(
    "models.AttractorConfig",
    "models.AttractorNetwork",
    share=10,
    shape=st.sampled_from(SHAPES),
    normalisation=st.sampled_from(NORMALISATIONS),
    patch=st.sampled_from([1, 2]),
    radius=st.none() | st.floats(0.01, 2),
    strength=st.floats(-2, 2),
    inertia=st.floats(-1, 1),
    clamp=st.none() | st.floats(-1, 2),
    seed=st.integers(0, 99),
)
def test_attractor_networks_come_back_as_they_were_saved(
    shape, normalisation, patch, radius, strength, inertia, clamp, seed
):
    """To the last bit; images become spins and images again; a trajectory begins at the image."""
    free = {"normalisation": normalisation, "radius": radius, "strength": strength, "inertia": inertia, "clamp": clamp}
    config = AttractorConfig(image=(1, 2, 4), patch=patch, shape=shape, rank=2, seed=seed, **free)
    network = AttractorNetwork(config)
    images = torch.rand(3, 1, 2, 4, generator=generator(seed))
    network.centre(images)
    assert_near(network.images(network.spins(images)), images, 1e-3, size=1)
    with tempfile.TemporaryDirectory() as folder:
        network.save(Path(folder) / "network.safetensors", {"note": "mine"})
        loaded = AttractorNetwork.load(Path(folder) / "network.safetensors")
    assert loaded.config == config == AttractorConfig(**asdict(config))
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in network.state_dict().items())
    path = network.trajectory(images, 2)
    assert torch.equal(path, loaded.trajectory(images, 2))
    assert torch.equal(path[0], network.spins(images))
    if radius is not None:
        spins = network.spins(images)
        assert_near(spins.mean(0), torch.zeros_like(spins[0]), 1e-3, size=radius)
        assert_near(spins.square().sum(-1).mean().sqrt(), torch.tensor(radius), 1e-3)


@law(
    "models.MaskedClassifier",
    share=8,
    given=rows,
    masking=st.sampled_from(["attention", "delete"]),
    size=st.integers(1, 9),
    seed=seeds,
)
def test_hidden_words_say_nothing(given, masking, size, seed):
    """Other words in their place change no answer; nor does the batch; every coalition is one pass."""
    words = split(joined(given))
    one, other = (MaskedClassifier(classifier(), tokenizer(), masking, batch) for batch in (size, 64))
    coalitions = (torch.rand(len(given), 3, words.mask.shape[1], generator=generator(seed)) < 0.5) & words.mask[:, None]
    answers = one.probabilities(words, coalitions)
    assert answers.shape == (len(given), 3, 3)
    assert_near(answers.sum(-1), torch.ones(len(given), 3), 1e-5)
    assert_near(answers, other.probabilities(words, coalitions), 1e-4, size=1)
    assert one.passes == other.passes == 3 * len(given)
    with torch.no_grad():
        logits = [classifier()(**tokenizer()(*pair, return_tensors="pt")).logits[0] for pair in given]
    assert_near(one.full_probabilities(words), torch.stack(logits).softmax(-1), 1e-4, size=1)
    chosen = coalitions[:, 0]
    changed = []
    for row, (first, second) in enumerate(given):
        told = [word if chosen[row, place] else "red" for place, word in enumerate(f"{first} {second}".split())]
        changed.append((" ".join(told[: len(first.split())]), " ".join(told[len(first.split()) :])))
    again = one.probabilities(split(joined(changed)), coalitions[:, :1])
    assert_near(again[:, 0], answers[:, 0], 1e-4, size=1)


@law("models.GameHead", share=8, given=rows, target=st.integers(0, 2), seed=seeds)
def test_a_game_is_the_classifiers_answer_to_the_full_text(given, target, seed):
    """v(N) = p_y(N); probabilities of all classes add up; a text alone is as among others; saved and loaded too."""
    head, words = grounded().grounded.head, split(joined(given))
    assert isinstance(head, GameHead)
    games = head.games(classifier(), words)
    full = grounded().classifier.full_probabilities(words)
    game = games.game(torch.full((len(given),), target))
    with torch.no_grad():
        assert_near(game(words.mask[:, None])[:, 0], full[:, target], 1e-4, size=1)
        coalitions = torch.rand(len(given), 4, words.mask.shape[1], generator=generator(seed)) < 0.5
        values = torch.stack([games.game(torch.full((len(given),), one))(coalitions) for one in range(3)])
        assert_near(values.sum(0), torch.ones(len(given), 4), 1e-5)
        assert_near(games.logits(coalitions).exp()[..., target], values[target], 1e-5, size=1)
        with tempfile.TemporaryDirectory() as folder:
            head.save(Path(folder))
            loaded = GameHead.load(Path(folder), classifier())
        again = loaded.games(classifier(), words).game(torch.full((len(given),), target))
        assert torch.equal(again(coalitions), values[target])
        for row, pair in enumerate(given):
            alone = head.games(classifier(), split(joined([pair]))).game(torch.tensor([target]))
            count = int(words.counts[row])
            assert_near(alone(coalitions[row, :, :count])[0], values[target, row], 1e-4, size=1)


@lru_cache(maxsize=16)
def neurogame(head: str) -> NeuroGameForSequenceClassification:
    labels = {"id2label": dict(enumerate(tiny.NLI)), "label2id": {name: place for place, name in enumerate(tiny.NLI)}}
    game = {"eval_samples": 5, "couplings": "dense"} if POOLING_HEADS[head].uses_layer else {}
    grounding = {"heads": 2, "dim": 8, "hidden": 8, "readout": 8}
    config = NeuroGameConfig(
        encoder=tiny.bert(), head=head, game=game, grounding=grounding, special_ids=(0, 2, 3), **labels
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return NeuroGameForSequenceClassification(config).eval()


@law(
    "models.NeuroGameConfig",
    "models.NeuroGameForSequenceClassification",
    "models.NeuroGameModel",
    share=6,
    head=st.sampled_from(sorted(POOLING_HEADS)),
    given=rows,
)
def test_neurogame_classifiers(head, given):
    """Every pooling head: answers depend neither on padding nor on the batch; configurations come back."""
    model = neurogame(head)
    config = model.config
    assert isinstance(config, NeuroGameConfig)
    again = NeuroGameConfig.from_dict(config.to_dict())
    assert again.to_dict() == config.to_dict()
    first, second = ([row[side] for row in given] for side in (0, 1))
    inputs = tokenizer()(first, second, padding=True, return_tensors="pt")
    labels = torch.arange(len(given)) % 3
    with torch.no_grad():
        found = model(**inputs, labels=labels)
        assert found.logits.shape == (len(given), 3)
        assert isinstance(model.model, NeuroGameModel)
        base = model.model(**inputs)
        assert base.last_hidden_state.shape[:2] == inputs["input_ids"].shape
        for row, pair in enumerate(given):
            alone = model(**tokenizer()(*pair, return_tensors="pt"))
            assert_near(alone.logits[0], found.logits[row], 1e-3, size=1)
        loss = torch.nn.functional.cross_entropy(found.logits, labels)
    assert bool(torch.isfinite(found.loss))
    if found.head_logits is None:
        assert_near(found.loss, loss, 1e-5)


@lru_cache(maxsize=4)
def word_model(architecture: str) -> WordForSequenceClassification:
    config = WordConfig(architecture, vocab_size=len(tokenizer()), embedding_dim=6, hidden_size=5, num_labels=3)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return WordForSequenceClassification(config).eval()


@law(
    "models.WordConfig",
    "models.WordForSequenceClassification",
    share=6,
    architecture=st.sampled_from(["dam", "esim"]),
    given=rows,
    seed=seeds,
)
def test_word_models(architecture, given, seed):
    """Answers depend neither on padding, wherever it stands, nor on the batch; configurations come back."""
    model = word_model(architecture)
    assert isinstance(model.config, WordConfig)
    assert WordConfig.from_dict(model.config.to_dict()).to_dict() == model.config.to_dict()
    first, second = ([row[side] for row in given] for side in (0, 1))
    inputs = tokenizer()(first, second, padding=True, return_tensors="pt")
    with torch.no_grad():
        found = model(**inputs).logits
        place = torch.randperm(inputs["input_ids"].shape[1] + 2, generator=generator(seed))[:-2].sort().values
        moved = {
            name: torch.zeros(len(given), len(place) + 2, dtype=torch.long).index_copy(1, place, value)
            for name, value in inputs.items()
        }
        assert_near(model(**moved).logits, found, 1e-4, size=1)
        for row, pair in enumerate(given):
            assert_near(model(**tokenizer()(*pair, return_tensors="pt")).logits[0], found[row], 1e-4, size=1)


@law(
    "models.load_classifier",
    "load_classifier",
    "evaluate.load_classifier",
    share=2,
    kind=st.sampled_from(["bert", "cls", "mean", "dam", "esim"]),
    pair=pairs,
)
def test_classifiers_come_back_as_they_were_saved(kind, pair):
    """With their tokenizers, in evaluation mode, to the last bit; torch's generators stay as they are."""
    assert spinformer.load_classifier is load_classifier is evaluate.load_classifier
    model = classifier() if kind == "bert" else word_model(kind) if kind in ("dam", "esim") else neurogame(kind)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        loaded, own = load_classifier(folder, device="cpu")
    assert not loaded.training
    assert type(loaded) is type(model)
    assert own.get_vocab() == tokenizer().get_vocab()
    inputs = own(*pair, return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)
