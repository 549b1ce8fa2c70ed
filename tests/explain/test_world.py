"""The caller's world is left alone: random states, modes, verbosity and threads, also with six threads at once."""

import pytest
import torch

import spinformer
from spinformer._base.rng import seeded
from spinformer._base.shared_state import SharedChange, attention_of_any_shape, evaluation_mode
from spinformer.attention import AttractorAttention, NeuroGameAttention
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games import (
    NormGame,
    SumGame,
    TableGame,
    estimate_all,
    estimate_low_rank,
    estimate_values,
    exact_values,
)
from spinformer.ising import Ising, exact_magnetization, glauber, mean_field
from tests.explain.world import assert_same, at_once, snapshot
from tests.tiny import tokenizer

SAMPLED = ("kernel-shap", "shapley-sampling")


@pytest.fixture
def training(model):
    """The classifier as a caller may be using it: in training, with a part of it frozen in evaluation."""
    model.train()
    model.base_model.embeddings.eval()
    yield model
    model.eval()


def numeric_calls():
    """Every public function of games, ising and attention, with a seed or a generator of its own."""
    values = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    table = TableGame(torch.rand(2, 8, generator=torch.Generator().manual_seed(1)))
    ising = Ising(values[..., 0], torch.zeros(2, 5, 5), 0.5)
    layer, attractor = NeuroGameAttention(3), AttractorAttention(5, 3)
    seed, temperature = torch.tensor(3), torch.full((2,), 0.5)
    games = (NormGame(values), table, SumGame(values, lambda sums: sums.tanh().sum(-1)))
    calls = [lambda game=game: exact_values(game, "SII") for game in games]
    for game in games:
        for proposal in ("uniform", "tilted", "annealed"):
            options = {"weighting": "gibbs", "proposal": proposal, "seed": seed}
            calls.append(lambda game=game, options=options: estimate_values(game, "BV", 16, **options).values)
    calls.append(lambda: estimate_all(games[0], 0, seed=seed).shapley.values)
    low = {"weighting": "gibbs", "temperature": temperature, "proposal": "tilted", "seed": seed, "shared": True}
    calls.append(lambda: estimate_low_rank(games[0], 8, **low)[0])
    calls.append(lambda: mean_field(ising, backward="implicit").magnetization)
    calls.append(lambda: mean_field(ising, backward="unrolled").magnetization)
    calls.append(lambda: exact_magnetization(ising))
    calls.append(lambda: glauber(ising, 2, chains=2, burn_in=1, generator=torch.Generator().manual_seed(4)))
    calls.append(lambda: layer.eval()(values).attention.detach())
    calls.append(lambda: attractor.retrieve(values, 2).detach())
    return calls


def test_games_ising_and_attention():
    """Nothing changes, and six threads get what one gets."""
    calls = numeric_calls()
    before = snapshot()
    alone = [call() for call in calls]
    assert_same(before, snapshot())
    together = at_once(calls * 2)
    assert_same(before, snapshot())
    for one, other in zip(alone * 2, together, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def importance(explanation):
    return torch.tensor(explanation.importance)


def test_explainer(training):
    """Every method, of a model in training: nothing changes, and the answers are those of evaluation mode."""
    text, pair = "the dog runs outside", "a cat sleeps"
    before = snapshot(training)
    explainer = spinformer.Explainer(training, tokenizer())
    assert_same(before, snapshot(training))
    for name in explainer.methods():
        passes = {"passes": 24} if name in SAMPLED else {}
        first = importance(explainer(text, pair, method=name, **passes))
        assert_same(before, snapshot(training))
        torch.testing.assert_close(first, importance(explainer(text, pair, method=name, **passes)), rtol=0, atol=0)
    spinformer.explain(training, tokenizer(), text, pair)
    assert_same(before, snapshot(training))


def test_six_threads_explain(training):
    """One model, six threads, all methods at once: the answers of one thread, and the model is in training after."""
    explainer = spinformer.Explainer(training, tokenizer())
    pairs = [("the dog runs outside", "a cat sleeps"), ("two red cat", "not"), ("a man eats", "the woman runs inside")]
    jobs = [(name, *pair) for name in explainer.methods() for pair in pairs]

    def explain(name, text, pair):
        return importance(explainer(text, pair, method=name, **({"passes": 24} if name in SAMPLED else {})))

    alone = [explain(*job) for job in jobs]
    before = snapshot(training)
    together = at_once([lambda job=job: explain(*job) for job in jobs])
    assert_same(before, snapshot(training))
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_scorers(training):
    """A scorer leaves the model in its mode, and another seed gives another scorer."""
    explainer = spinformer.Explainer(training, tokenizer())
    words = explainer_words(explainer)
    before = snapshot(training)
    for name in explainer.methods():
        scorer = explainer.scorer(name, passes=24 if name in SAMPLED else 0)
        assert scorer.name == name
        first = scorer(words)
        assert_same(before, snapshot(training))
        torch.testing.assert_close(first, scorer(words), rtol=0, atol=0)
    sampled = explainer.scorer("shapley-sampling", passes=24)
    assert not torch.equal(sampled(words), sampled.seeded(sampled.seed + 1)(words))
    assert_same(before, snapshot(training))


def explainer_words(explainer):
    return split_words(explainer.tokenizer, Texts(["the dog runs", "a cat"], ["not", "two red cat"]), 64)


def test_ground(training, tmp_path):
    """Learning a game changes neither the classifier's weights nor its mode, nor the caller's random numbers."""
    texts = [("the dog runs", "a cat sleeps"), ("a man eats", "not"), ("two red cat", "the woman"), ("a dog", "a cat")]
    before = snapshot(training)
    options = {"epochs": 1, "heads": 2, "dim": 8, "hidden": 8, "readout": 8, "batch_size": 2}
    spinformer.ground(training, tokenizer(), texts * 3, tmp_path, **options)
    assert_same(before, snapshot(training))


def test_the_last_thread_restores():
    """Two that overlap: the state of before comes back once, after both."""
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout())
    model[1].eval()
    first, second = evaluation_mode(model), evaluation_mode(model)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not model.training
    assert not model[0].training
    second.__exit__(None, None, None)
    assert [model.training, model[0].training, model[1].training] == [True, True, False]
    state = {"value": 0}

    def change():
        state["value"] += 1
        return lambda: state.update(value=state["value"] - 1)

    shared = SharedChange(change)
    with shared, shared:
        assert state["value"] == 1
    with pytest.raises(RuntimeError), shared:
        raise RuntimeError
    assert state["value"] == 0


def test_seeded_blocks_do_not_mix():
    """Each of twelve blocks in six threads draws its own numbers, and the global state is that of before."""

    def draw(seed):
        with seeded(seed):
            return torch.rand(1000).add(torch.rand(1000))

    alone = [draw(seed) for seed in range(12)]
    before = snapshot()
    together = at_once([lambda seed=seed: draw(seed) for seed in range(12)])
    assert_same(before, snapshot())
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def test_the_callers_choice_of_attention_kernels_is_left_alone():
    """They are switched within the block alone, and not back on where the caller had switched them off."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        for chosen in (True, False):
            torch.backends.cuda.enable_cudnn_sdp(chosen)
            with attention_of_any_shape, attention_of_any_shape:
                assert not torch.backends.cuda.cudnn_sdp_enabled()
            assert torch.backends.cuda.cudnn_sdp_enabled() == chosen
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
