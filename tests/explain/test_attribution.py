"""Attribution methods against loops, exact values and their own laws."""

import math

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from spinformer.data.texts import Texts
from spinformer.explain import ConfidenceGame, MaskedClassifier
from spinformer.explain.attribution import (
    AttentionPooling,
    GradientTimesInput,
    IntegratedGradients,
    KernelShap,
    LeaveOneOut,
    NeuroGameScores,
    RandomScores,
    ShapleySampling,
)
from spinformer.explain.attribution.base import distinct_rows
from spinformer.explain.attribution.shapley import every_coalition, kernel_coalitions, least_squares
from spinformer.games import TableGame, exact_values
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.models.words import WordConfig, WordForSequenceClassification
from spinformer.rng import uniforms
from tests.explain.toys import TEXTS, bert, classifier, tokenizer, words


def headed(folder, head: str, **game) -> MaskedClassifier:
    model = NeuroGameForSequenceClassification.from_encoder(str(folder), head=head, **game)
    return MaskedClassifier(model, AutoTokenizer.from_pretrained(folder))


def methods(made: MaskedClassifier) -> list:
    return [
        RandomScores(3),
        LeaveOneOut(made),
        GradientTimesInput(made),
        IntegratedGradients(made, steps=8),
        ShapleySampling(made, evaluations=60),
        KernelShap(made, evaluations=60),
    ]


def test_batch_and_padding_change_nothing(encoder):
    made = classifier(batch_size=3)
    game = headed(encoder, "neurogame", couplings="dense")
    attention = headed(encoder, "attention")
    found = words()
    for method in [*methods(made), NeuroGameScores(game), NeuroGameScores(game, "fields"), AttentionPooling(attention)]:
        scores = method(found)
        assert scores.shape == (4, 9), method.name
        assert scores.dtype == torch.float32, method.name
        assert (scores[~found.mask] == 0).all(), method.name
        assert not scores.requires_grad, method.name
        for row in range(4):
            alone = method(words(TEXTS.select([row])))
            torch.testing.assert_close(alone[0], scores[row, : alone.shape[1]], atol=2e-5, rtol=1e-4, msg=method.name)


def test_passes_are_what_they_say():
    made = classifier()
    found = words(TEXTS.select([0]))  # 6 words
    spent = {}
    for method in methods(made):
        before = made.passes
        method(found)
        spent[method.name] = made.passes - before
    assert spent["random"] == 0
    assert spent["leave-one-out"] == 7
    assert spent["gradient-times-input"] == 1
    assert spent["integrated-gradients"] == 9
    assert spent["shapley-sampling"] <= 60
    assert spent["kernel-shap"] <= 60


def test_integrated_gradients_spend_what_is_said():
    made = classifier()
    calls = []
    made.model.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    method = IntegratedGradients(made, steps=5)
    method(words())
    assert sum(calls) == 4 * 6
    assert method.passes == "6, and 5 backward"


def test_random_scores():
    found = words()
    assert torch.equal(RandomScores(1)(found), RandomScores(1)(found))
    assert not torch.equal(RandomScores(1)(found), RandomScores(2)(found))


@pytest.mark.parametrize("masking", ["attention", "delete"])
def test_leave_one_out_by_loops(masking):
    made, found = classifier(masking=masking), words()
    scores = LeaveOneOut(made)(found)
    for row in range(4):
        alone = words(TEXTS.select([row]))
        full = made.full(alone)[0]
        for place in range(alone.mask.shape[1]):
            coalition = alone.mask.clone()
            coalition[0, place] = False
            without = made.probabilities(alone, coalition[None])[0, 0]
            expected = full[full.argmax()] - without[full.argmax()]
            torch.testing.assert_close(scores[row, place], expected, atol=1e-6, rtol=1e-4)


def test_gradient_is_the_derivative():
    """d log p_y(s e_t) / ds at s = 1, by finite differences in float64."""
    made = MaskedClassifier(bert().double(), tokenizer())
    found = words(TEXTS.select([0]))
    scores = GradientTimesInput(made)(found)
    embeddings = made.model.get_input_embeddings()(found.inputs["input_ids"]).detach()
    rest = {name: value for name, value in found.inputs.items() if name != "input_ids"}

    def log_chance(scale: float, place: int) -> float:
        moved = torch.where((found.owner == place)[..., None], scale * embeddings, embeddings)
        with torch.no_grad():
            logits = made.model(inputs_embeds=moved, **rest).logits
        return logits.log_softmax(-1)[0, made.full(found)[0].argmax()].item()

    for place in range(6):
        slope = (log_chance(1 + 1e-5, place) - log_chance(1 - 1e-5, place)) / 2e-5
        assert scores[0, place].item() == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("baseline", ["pad", "mask"])
def test_integrated_gradients_are_complete(baseline):
    made, found = classifier(), words()
    method = IntegratedGradients(made, steps=50, baseline=baseline)
    scores = method(found)
    full = made.full(found)
    with torch.no_grad():
        start = made.model(**{**found.inputs, "input_ids": method.replaced(found)}).logits.softmax(-1)
    rows, target = torch.arange(4), full.argmax(-1)
    torch.testing.assert_close(scores.sum(-1), full[rows, target] - start[rows, target], atol=2e-3, rtol=0)
    assert all(parameter.grad is None for parameter in made.model.parameters())
    assert not made.model.get_input_embeddings()._forward_hooks


@pytest.mark.parametrize("baseline", ["pad", "mask"])
@pytest.mark.parametrize("batch_size", [256, 10, 3])
def test_integrated_gradients_agree_with_captum(baseline, batch_size):
    attr = pytest.importorskip("captum.attr")
    made, found = classifier(batch_size=batch_size), words()
    method = IntegratedGradients(made, steps=32, baseline=baseline)
    ids, others = found.inputs["input_ids"], {k: v for k, v in found.inputs.items() if k != "input_ids"}

    def shares(ids, *values):
        return made.model(input_ids=ids, **dict(zip(others, values, strict=True))).logits.softmax(-1)

    theirs = attr.LayerIntegratedGradients(shares, made.model.get_input_embeddings()).attribute(
        ids,
        baselines=method.replaced(found),
        additional_forward_args=tuple(others.values()),
        target=made.full(found).argmax(-1),
        n_steps=32,
    )
    torch.testing.assert_close(method(found), found.sums(theirs.sum(-1).detach().float()), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["dam", "esim"])
def test_gradients_of_word_models(architecture):
    config = WordConfig(architecture, vocab_size=len(tokenizer()), embedding_dim=8, hidden_size=8, num_labels=3)
    made = MaskedClassifier(WordForSequenceClassification(config), tokenizer())
    found = words()
    for method in (GradientTimesInput(made), IntegratedGradients(made, steps=20)):
        assert method(found)[found.mask].abs().max() > 0


def test_own_scores(encoder):
    made, found = headed(encoder, "neurogame", heads=2, couplings="dense"), words()
    with torch.no_grad():
        game = made.model(**found.inputs, output_game=True).game
    for what in ("attention", "fields", "shapley", "banzhaf"):
        expected = torch.zeros(4, 9)
        tokens = getattr(game, what).mean(1)
        for row, token in (found.owner >= 0).nonzero().tolist():
            expected[row, found.owner[row, token]] += tokens[row, token]
        torch.testing.assert_close(NeuroGameScores(made, what)(found), expected)
    pooled = headed(encoder, "attention")
    scores = AttentionPooling(pooled)(found)
    assert (scores[found.mask] > 0).all()
    assert (scores.sum(-1) < 1).all()  # the rest is with the special tokens
    assert not pooled.model.model.pooling._forward_pre_hooks


def test_sampling_is_within_its_errors():
    made, found = classifier(), words()
    exact = exact_values(ConfidenceGame(made, found), "SV")
    estimate = ShapleySampling(made, evaluations=1000, seed=5).estimate(found)
    off = (estimate.values - exact).abs()
    assert (off <= 3 * estimate.stderr + 1e-6).all()
    assert estimate.stderr[found.mask].max() < 0.02
    assert (estimate.values[3] != exact[3]).any()
    full = made.full(found)
    empty = made.probabilities(found, torch.zeros_like(found.mask[:, None])).squeeze(1)
    rows, target = torch.arange(4), full.argmax(-1)
    torch.testing.assert_close(estimate.values.sum(-1), (full - empty)[rows, target], atol=1e-5, rtol=0)


def test_sampling_of_one_and_two_words():
    made = classifier()
    lone = words(TEXTS.select([2]))
    torch.testing.assert_close(ShapleySampling(made, 10)(lone), exact_values(ConfidenceGame(made, lone), "SV"))
    single = words(Texts(["dog"]))
    estimate = ShapleySampling(made, 10).estimate(single)
    torch.testing.assert_close(estimate.values, exact_values(ConfidenceGame(made, single), "SV"))
    torch.testing.assert_close(KernelShap(made, 10)(single), estimate.values)
    assert estimate.stderr.item() == 0


def test_sampling_is_unbiased():
    made, found = classifier(), words(TEXTS.select([1]))
    exact = exact_values(ConfidenceGame(made, found), "SV")
    runs = torch.stack([ShapleySampling(made, evaluations=10, seed=seed)(found)[0] for seed in range(100)])
    error = (runs.mean(0) - exact[0]).abs()
    assert (error < 3.5 * runs.std(0) / 10).all()


def test_kernel_shap_is_exact_when_enumerated():
    made, found = classifier(), words()
    exact = exact_values(ConfidenceGame(made, found), "SV")
    torch.testing.assert_close(KernelShap(made, evaluations=512)(found), exact, atol=1e-5, rtol=0)


def test_kernel_shap_comes_close_and_shares_out_everything():
    made, found = classifier(), words(TEXTS.select([3]))  # 9 words, 512 coalitions
    exact = exact_values(ConfidenceGame(made, found), "SV")
    errors = {}
    for budget in (40, 400):
        scores = torch.stack([KernelShap(made, evaluations=budget, seed=seed)(found)[0] for seed in range(5)])
        errors[budget] = (scores - exact).norm(dim=-1).mean() / exact.norm()
        torch.testing.assert_close(scores.sum(-1), exact.sum().expand(5), atol=1e-5, rtol=0)
    assert errors[400] < 0.05
    assert errors[400] < errors[40] / 2


def test_kernel_shap_of_a_table_by_weighted_regression():
    generator = torch.Generator().manual_seed(3)
    table = torch.rand(32, generator=generator, dtype=torch.float64)
    coalitions, weight = every_coalition(5)
    values = table[1:-1] - table[0]
    phi = least_squares(coalitions, weight, values, table[-1] - table[0])
    torch.testing.assert_close(phi, exact_values(TableGame(table), "SV"))


def test_kernel_shap_agrees_with_shapiq():
    shapiq = pytest.importorskip("shapiq")
    made, found = classifier(), words(TEXTS.select([0]))
    game = ConfidenceGame(made, found)

    def value(coalitions: np.ndarray) -> np.ndarray:
        return game(torch.tensor(coalitions, dtype=torch.bool).view(1, -1, 6))[0].numpy()

    theirs = shapiq.KernelSHAP(n=6, random_state=0).approximate(budget=64, game=value)
    expected = [theirs[(player,)] for player in range(6)]
    np.testing.assert_allclose(KernelShap(made, evaluations=64)(found)[0].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize(("count", "width"), [(40, 3), (300, 20), (5, 62), (60, 63), (60, 140), (1, 1)])
def test_distinct_rows_are_those_of_unique(count, width):
    drawn = torch.rand(count, width, generator=torch.Generator().manual_seed(width)) < 0.5
    drawn = torch.cat([drawn, drawn[: count // 2]])
    for found, expected in zip(distinct_rows(drawn), drawn.unique(dim=0, return_inverse=True), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("evaluations", [40, 200, 400])
def test_kernel_shap_stops_drawing_when_it_has_enough(evaluations, monkeypatch):
    """The coalitions are those of all draws at once, cut where the budget ends."""
    made, found = classifier(), words(TEXTS.select([3]))  # 9 words
    method = KernelShap(made, evaluations)
    few = method._coalitions(found, 0)
    drawn = KernelShap._drawn
    monkeypatch.setattr(KernelShap, "_drawn", lambda *args: drawn(*args[:-1], 16 * (args[-1] // 2)))
    every = method._coalitions(found, 0)
    assert torch.equal(few[0], every[0])
    assert torch.equal(few[1], every[1])


def test_too_few_coalitions_leave_equal_shares():
    coalitions = torch.tensor([[True, False, False, False], [False, True, True, True]])
    phi = least_squares(coalitions, torch.ones(2), torch.tensor([0.5, 0.1]), torch.tensor(0.6))
    torch.testing.assert_close(phi, torch.tensor([0.5, 0.1 / 3, 0.1 / 3, 0.1 / 3]).double(), atol=1e-6, rtol=0)


def test_kernel_draws_sizes_by_the_kernel():
    counts = torch.tensor([7, 4, 2, 1])
    drawn = kernel_coalitions(uniforms(torch.tensor(9), 4, 20000, 8, torch.device("cpu")), counts)
    size = drawn.sum(-1)
    for row, count in enumerate(counts.tolist()):
        assert not drawn[row, :, count:].any()
        weights = [1 / (s * (count - s)) for s in range(1, count)] or [1.0]
        for s, weight in enumerate(weights, 1):
            share = (size[row] == s).float().mean().item()
            chance = weight / sum(weights)
            assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / 20000) + 1e-9
    inside = drawn[0, :, :7].float().mean(0)
    assert (inside - 0.5).abs().max() < 0.02


def test_errors(encoder):
    made, found = classifier(), words()
    with pytest.raises(ValueError, match=r"a text of 6 words needs at least 7 evaluations; got 6"):
        ShapleySampling(made, evaluations=6)(found)
    with pytest.raises(ValueError, match="evaluations must be an integer of at least 4"):
        KernelShap(made, evaluations=2)
    with pytest.raises(ValueError, match=r"need a NeuroGameForSequenceClassification with head='neurogame'; got Bert"):
        NeuroGameScores(made)
    with pytest.raises(ValueError, match=r"with head='attention'; got NeuroGame.* with head='cls'"):
        AttentionPooling(headed(encoder, "cls"))
    with pytest.raises(ValueError, match="what must be one of"):
        NeuroGameScores(made, "spins")
    with pytest.raises(ValueError, match="baseline must be one of"):
        IntegratedGradients(made, baseline="zero")
    without = tokenizer()
    without.mask_token = None
    with pytest.raises(ValueError, match="needs a tokenizer with a mask token"):
        IntegratedGradients(MaskedClassifier(bert(), without), baseline="mask")


def test_a_model_that_looks_up_twice_is_refused():
    made, found = classifier(), words()
    table = made.model.get_input_embeddings()

    def look_up(module, args, kwargs):
        table(kwargs["input_ids"])

    made.model.register_forward_pre_hook(look_up, with_kwargs=True)
    with pytest.raises(ValueError, match="looks its embeddings up once; got 2 times"):
        GradientTimesInput(made)(found)
