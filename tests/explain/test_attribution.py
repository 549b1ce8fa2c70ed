"""The scorers of the explanation methods, against loops, exact values and the laws that they keep."""

import math

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from spinformer._base.rng import uniforms
from spinformer.data.texts import Texts
from spinformer.explain import Explainer
from spinformer.explain.methods.chance import RandomScores
from spinformer.explain.methods.gradients import GradientTimesInput, IntegratedGradients
from spinformer.explain.methods.layer import LayerScores
from spinformer.explain.methods.occlusion import LeaveOneOut
from spinformer.explain.methods.sampling import KernelShap, ShapleySampling
from spinformer.explain.scoring import SeededScorer
from spinformer.games import TableGame, exact_values
from spinformer.games.kernel_shap import (
    distinct_rows,
    every_coalition,
    kernel_coalitions,
    least_squares,
    sample_kernel,
)
from spinformer.models.baselines import WordConfig, WordForSequenceClassification
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from tests.explain.toys import TEXTS, bert, classifier, tokenizer, words


def headed(folder, head: str, **game) -> MaskedClassifier:
    model = NeuroGameForSequenceClassification.from_encoder(str(folder), head=head, **game)
    return MaskedClassifier(model.eval(), AutoTokenizer.from_pretrained(folder))


def scorers(masked: MaskedClassifier) -> list:
    return [
        RandomScores(3),
        LeaveOneOut(masked),
        GradientTimesInput(masked),
        IntegratedGradients(masked, steps=8),
        ShapleySampling(masked, evaluations=60),
        KernelShap(masked, evaluations=60),
    ]


def test_batch_and_padding_change_nothing(encoder):
    masked = classifier(batch_size=3)
    game = headed(encoder, "neurogame", couplings="dense")
    attention = headed(encoder, "attention")
    split = words()
    for method in [*scorers(masked), LayerScores(game), LayerScores(game, "fields"), LayerScores(attention)]:
        scores = method(split)
        assert scores.shape == (4, 9), method.name
        assert scores.dtype == torch.float32, method.name
        assert (scores[~split.mask] == 0).all(), method.name
        assert not scores.requires_grad, method.name
        for row in range(4):
            alone = method(words(TEXTS.select([row])))
            torch.testing.assert_close(alone[0], scores[row, : alone.shape[1]], atol=2e-5, rtol=1e-4, msg=method.name)


def test_passes_are_what_they_say():
    masked = classifier()
    split = words(TEXTS.select([0]))  # 6 words
    spent = {}
    for method in scorers(masked):
        before = masked.passes
        method(split)
        spent[method.name] = masked.passes - before
    assert spent["random"] == 0
    assert spent["leave-one-out"] == 7
    assert spent["gradient-times-input"] == 1
    assert spent["integrated-gradients"] == 9
    assert spent["shapley-sampling"] <= 60
    assert spent["kernel-shap"] <= 60


def test_integrated_gradients_spend_what_is_said():
    masked = classifier()
    masked.full_probabilities(words())  # measures once whether padding matters
    calls = []
    masked.model.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    method = IntegratedGradients(masked, steps=5)
    method(words())
    assert sum(calls) == 4 * 6
    assert method.passes == "6, and 5 backward"


def test_a_target_is_the_class_that_is_scored():
    """Scores of the class decided for are those without a target; other classes have others."""
    masked, split = classifier(), words()
    decided = masked.full_probabilities(split).argmax(-1)
    for method in scorers(masked)[1:]:
        scores = method(split)
        torch.testing.assert_close(method(split, decided), scores, msg=method.name)
        assert (method(split, (decided + 1) % 3) - scores).abs().max() > 1e-4, method.name
    other = LeaveOneOut(masked)(split, torch.tensor([0, 1, 2, 0]))
    without = split.mask[1:2].clone()
    without[0, 0] = False
    full, left = (
        masked.full_probabilities(split)[1, 1],
        masked.probabilities(split.rows(1, 2), without[None, :, :5])[0, 0, 1],
    )
    torch.testing.assert_close(other[1, 0], full - left)


def test_seeds_of_scorers_that_sample():
    masked, split = classifier(), words(TEXTS.select([3]))
    for method in scorers(masked):
        if not isinstance(method, SeededScorer):
            continue
        again = method.seeded(7)
        assert (again.name, again.seed) == (method.name, 7)
        assert not torch.equal(again(split), method(split)), method.name
        assert torch.equal(again(split), method.seeded(7)(split)), method.name


def test_scorers_by_name_are_these(encoder):
    """What `Explainer.scorer` gives is the same object's scores, with the explainer's seed and passes."""
    explainer = Explainer(bert(), tokenizer(), seed=3)
    masked, split = explainer.classifier, words()
    pairs = {
        "random": RandomScores(3),
        "leave-one-out": LeaveOneOut(masked),
        "gradient-times-input": GradientTimesInput(masked),
        "integrated-gradients": IntegratedGradients(masked),
        "shapley-sampling": ShapleySampling(masked, 60, 3),
        "kernel-shap": KernelShap(masked, 60, 3),
    }
    for name, scorer in pairs.items():
        by_name = explainer.scorer(name, passes=60)
        assert (by_name.name, by_name.passes) == (name, scorer.passes)
        assert torch.equal(by_name(split), scorer(split)), name
    layered = headed(encoder, "neurogame", couplings="dense")
    explainer = Explainer(layered.model, layered.tokenizer)
    torch.testing.assert_close(explainer.scorer("layer")(words()), LayerScores(layered)(words()))


def test_random_scores():
    split = words()
    assert torch.equal(RandomScores(1)(split), RandomScores(1)(split))
    assert not torch.equal(RandomScores(1)(split), RandomScores(2)(split))


@pytest.mark.parametrize("masking", ["attention", "delete"])
def test_leave_one_out_by_loops(masking):
    masked, split = classifier(masking=masking), words()
    scores = LeaveOneOut(masked)(split)
    for row in range(4):
        alone = words(TEXTS.select([row]))
        full = masked.full_probabilities(alone)[0]
        for position in range(alone.mask.shape[1]):
            coalition = alone.mask.clone()
            coalition[0, position] = False
            without = masked.probabilities(alone, coalition[None])[0, 0]
            expected = full[full.argmax()] - without[full.argmax()]
            torch.testing.assert_close(scores[row, position], expected, atol=1e-6, rtol=1e-4)


def test_gradient_is_the_derivative():
    """d log p_y(s e_t) / ds at s = 1, by finite differences in float64."""
    masked = MaskedClassifier(bert().double(), tokenizer())
    split = words(TEXTS.select([0]))
    scores = GradientTimesInput(masked)(split)
    embeddings = masked.model.get_input_embeddings()(split.inputs["input_ids"]).detach()
    rest = {name: value for name, value in split.inputs.items() if name != "input_ids"}

    def log_probability(scale: float, position: int) -> float:
        moved = torch.where((split.owner == position)[..., None], scale * embeddings, embeddings)
        with torch.no_grad():
            logits = masked.model(inputs_embeds=moved, **rest).logits
        return logits.log_softmax(-1)[0, masked.full_probabilities(split)[0].argmax()].item()

    for position in range(6):
        slope = (log_probability(1 + 1e-5, position) - log_probability(1 - 1e-5, position)) / 2e-5
        assert scores[0, position].item() == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("baseline", ["pad", "mask"])
def test_integrated_gradients_are_complete(baseline):
    masked, split = classifier(), words()
    method = IntegratedGradients(masked, steps=50, baseline=baseline)
    scores = method(split)
    full = masked.full_probabilities(split)
    with torch.no_grad():
        start = masked.model(**{**split.inputs, "input_ids": method.replaced(split)}).logits.softmax(-1)
    rows, target = torch.arange(4), full.argmax(-1)
    torch.testing.assert_close(scores.sum(-1), full[rows, target] - start[rows, target], atol=2e-3, rtol=0)
    assert all(parameter.grad is None for parameter in masked.model.parameters())
    assert not masked.model.get_input_embeddings()._forward_hooks


@pytest.mark.parametrize("baseline", ["pad", "mask"])
@pytest.mark.parametrize("batch_size", [256, 10, 3])
def test_integrated_gradients_agree_with_captum(baseline, batch_size):
    attr = pytest.importorskip("captum.attr")
    masked, split = classifier(batch_size=batch_size), words()
    method = IntegratedGradients(masked, steps=32, baseline=baseline)
    ids, others = split.inputs["input_ids"], {k: v for k, v in split.inputs.items() if k != "input_ids"}

    def shares(ids, *values):
        return masked.model(input_ids=ids, **dict(zip(others, values, strict=True))).logits.softmax(-1)

    theirs = attr.LayerIntegratedGradients(shares, masked.model.get_input_embeddings()).attribute(
        ids,
        baselines=method.replaced(split),
        additional_forward_args=tuple(others.values()),
        target=masked.full_probabilities(split).argmax(-1),
        n_steps=32,
    )
    torch.testing.assert_close(method(split), split.sums(theirs.sum(-1).detach().float()), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["dam", "esim"])
def test_gradients_of_word_models(architecture):
    config = WordConfig(architecture, vocab_size=len(tokenizer()), embedding_dim=8, hidden_size=8, num_labels=3)
    masked = MaskedClassifier(WordForSequenceClassification(config), tokenizer())
    split = words()
    for method in (GradientTimesInput(masked), IntegratedGradients(masked, steps=20)):
        assert method(split)[split.mask].abs().max() > 0


def test_numbers_of_the_layer(encoder):
    masked, split = headed(encoder, "neurogame", heads=2, couplings="dense"), words()
    with torch.no_grad():
        game = masked.model(**split.inputs, output_game=True).game
    for what in ("attention", "fields", "shapley", "banzhaf"):
        expected = torch.zeros(4, 9)
        tokens = getattr(game, what).mean(1)
        for row, token in (split.owner >= 0).nonzero().tolist():
            expected[row, split.owner[row, token]] += tokens[row, token]
        torch.testing.assert_close(LayerScores(masked, what)(split), expected)
    pooled = headed(encoder, "attention")
    scores = LayerScores(pooled)(split)
    assert (scores[split.mask] > 0).all()
    assert (scores.sum(-1) < 1).all()  # the rest is with the special tokens
    assert not pooled.model.model.pooling._forward_pre_hooks


def test_sampling_is_within_its_errors():
    masked, split = classifier(), words()
    exact = exact_values(ConfidenceGame(masked, split), "SV")
    estimate = ShapleySampling(masked, evaluations=1000, seed=5).estimate(split)
    off = (estimate.values - exact).abs()
    assert (off <= 3 * estimate.stderr + 1e-6).all()
    assert estimate.stderr[split.mask].max() < 0.02
    assert (estimate.values[3] != exact[3]).any()
    full = masked.full_probabilities(split)
    empty = masked.probabilities(split, torch.zeros_like(split.mask[:, None])).squeeze(1)
    rows, target = torch.arange(4), full.argmax(-1)
    torch.testing.assert_close(estimate.values.sum(-1), (full - empty)[rows, target], atol=1e-5, rtol=0)


def test_sampling_of_one_and_two_words():
    masked = classifier()
    lone = words(TEXTS.select([2]))
    torch.testing.assert_close(ShapleySampling(masked, 10)(lone), exact_values(ConfidenceGame(masked, lone), "SV"))
    single = words(Texts(["dog"]))
    estimate = ShapleySampling(masked, 10).estimate(single)
    torch.testing.assert_close(estimate.values, exact_values(ConfidenceGame(masked, single), "SV"))
    torch.testing.assert_close(KernelShap(masked, 10)(single), estimate.values)
    assert estimate.stderr.item() == 0


def test_sampling_is_unbiased():
    masked, split = classifier(), words(TEXTS.select([1]))
    exact = exact_values(ConfidenceGame(masked, split), "SV")
    runs = torch.stack([ShapleySampling(masked, evaluations=10, seed=seed)(split)[0] for seed in range(100)])
    error = (runs.mean(0) - exact[0]).abs()
    assert (error < 3.5 * runs.std(0) / 10).all()


def test_kernel_shap_is_exact_when_enumerated():
    masked, split = classifier(), words()
    exact = exact_values(ConfidenceGame(masked, split), "SV")
    torch.testing.assert_close(KernelShap(masked, evaluations=512)(split), exact, atol=1e-5, rtol=0)


def test_kernel_shap_comes_close_and_shares_out_everything():
    masked, split = classifier(), words(TEXTS.select([3]))  # 9 words, 512 coalitions
    exact = exact_values(ConfidenceGame(masked, split), "SV")
    errors = {}
    for budget in (40, 400):
        scores = torch.stack([KernelShap(masked, evaluations=budget, seed=seed)(split)[0] for seed in range(5)])
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
    masked, split = classifier(), words(TEXTS.select([0]))
    game = ConfidenceGame(masked, split)

    def value(coalitions: np.ndarray) -> np.ndarray:
        return game(torch.tensor(coalitions, dtype=torch.bool).view(1, -1, 6))[0].numpy()

    theirs = shapiq.KernelSHAP(n=6, random_state=0).approximate(budget=64, game=value)
    expected = [theirs[(player,)] for player in range(6)]
    np.testing.assert_allclose(KernelShap(masked, evaluations=64)(split)[0].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize(("count", "width"), [(40, 3), (300, 20), (5, 62), (60, 63), (60, 140), (1, 1)])
def test_distinct_rows_are_those_of_unique(count, width):
    drawn = torch.rand(count, width, generator=torch.Generator().manual_seed(width)) < 0.5
    drawn = torch.cat([drawn, drawn[: count // 2]])
    for part, expected in zip(distinct_rows(drawn), drawn.unique(dim=0, return_inverse=True), strict=True):
        assert torch.equal(part, expected)


@pytest.mark.parametrize("evaluations", [40, 200, 400])
def test_kernel_shap_stops_drawing_when_it_has_enough(evaluations):
    """The coalitions are those of all draws at once, cut where the budget ends."""
    numbers = uniforms(torch.tensor(5), 1, 16 * (evaluations // 2), 10, torch.device("cpu"))[0]  # 9 players
    drawn = []

    def first(draws):
        drawn.append(draws)
        return numbers[:draws]

    doubled = sample_kernel(first, evaluations - 2)
    at_once = sample_kernel(lambda draws: numbers[: 16 * ((evaluations - 2) // 2)], evaluations - 2)
    assert torch.equal(doubled.coalitions, at_once.coalitions)
    assert torch.equal(doubled.weight, at_once.weight)
    assert len(doubled.coalitions) <= evaluations - 2
    assert drawn[0] == evaluations - 2
    assert drawn[-1] <= 16 * ((evaluations - 2) // 2)


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
            expected = weight / sum(weights)
            assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 20000) + 1e-9
    inside = drawn[0, :, :7].float().mean(0)
    assert (inside - 0.5).abs().max() < 0.02


def test_errors(encoder):
    masked, split = classifier(), words()
    with pytest.raises(ValueError, match=r"a text of 6 words needs at least 7 evaluations; got 6"):
        ShapleySampling(masked, evaluations=6)(split)
    with pytest.raises(ValueError, match="evaluations must be an integer of at least 4"):
        KernelShap(masked, evaluations=2)
    with pytest.raises(
        ValueError, match=r"needs a NeuroGameForSequenceClassification with head='neurogame' or .*; got Bert"
    ):
        LayerScores(masked)
    with pytest.raises(ValueError, match=r"head='neurogame' or 'attention'; got NeuroGame.* with head='cls'"):
        LayerScores(headed(encoder, "cls"))
    with pytest.raises(ValueError, match=r"number must be one of 'shapley', .*; got 'spins'"):
        LayerScores(headed(encoder, "neurogame"), "spins")
    with pytest.raises(ValueError, match="number must be one of 'attention'; got 'fields'"):
        LayerScores(headed(encoder, "attention"), "fields")
    with pytest.raises(ValueError, match="baseline must be one of"):
        IntegratedGradients(masked, baseline="zero")
    without = tokenizer()
    without.mask_token = None
    with pytest.raises(ValueError, match="needs a tokenizer with a mask token"):
        IntegratedGradients(MaskedClassifier(bert(), without), baseline="mask")


def test_a_model_that_looks_up_twice_is_refused():
    masked, split = classifier(), words()
    table = masked.model.get_input_embeddings()

    def look_up(module, args, kwargs):
        table(kwargs["input_ids"])

    masked.model.register_forward_pre_hook(look_up, with_kwargs=True)
    with pytest.raises(ValueError, match="looks its embeddings up once; got 2 times"):
        GradientTimesInput(masked)(split)
