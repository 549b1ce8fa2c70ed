"""The additive explainer: what it learns, and that stopping, resuming, saving and loading change nothing."""

import json

import pytest
import torch

from spinformer.data.texts import Texts
from spinformer.explain.methods.additive import AdditiveExplainer
from spinformer.games import exact_values
from spinformer.models.baselines import WordConfig, WordForSequenceClassification
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.training import additive as training
from tests import tiny
from tests.explain.toys import TEXTS, Additive, bert, classifier, tokenizer, words


def texts(count: int, seed: int = 0) -> Texts:
    rows = tiny.rows(count, seed, longest=5)
    return Texts([row["premise"] for row in rows], [row["hypothesis"] for row in rows])


@pytest.mark.parametrize("classes", ["all", "decided"])
def test_learns_an_additive_game(classes):
    made = MaskedClassifier(Additive(), tokenizer())
    explainer = AdditiveExplainer(made, width=32, classes=classes)
    before = made.passes
    record = explainer.train(texts(200), passes=40_000, learning_rate=3e-3, save_every=25, quiet=True)
    assert made.passes - before == record["passes"] == 125 * 32 * 10
    assert record["loss"][-1] < 1e-4
    assert record["loss"][-1] < record["loss"][0] / 10
    held = words(texts(20, seed=1))
    before = made.passes
    scores = explainer(held)
    assert made.passes - before == 20  # one pass a text
    exact = exact_values(ConfidenceGame(made, held), "SV")
    assert (scores - exact).abs().max() < 0.02
    assert torch.corrcoef(torch.stack([scores[held.mask], exact[held.mask]]))[0, 1] > 0.98


def test_beats_equal_shares_on_a_network():
    made = classifier()
    explainer = AdditiveExplainer(made, layers=(0, -1), width=64)
    explainer.train(texts(300), passes=20_000, quiet=True)
    held = words(texts(12, seed=3))
    exact = exact_values(ConfidenceGame(made, held), "SV")
    equal = held.mask * exact.sum(-1, keepdim=True) / held.counts[:, None]
    assert (explainer(held) - exact).square().sum() < 0.5 * (equal - exact).square().sum()


def test_scores_share_out_what_the_text_adds_to_nothing():
    made = classifier()
    explainer = AdditiveExplainer(made, width=8)
    explainer.train(texts(20), passes=1000, batch_size=10, quiet=True)
    batch = words()
    scores, full = explainer(batch), made.full_probabilities(batch)
    expected = (full - explainer.network.empty).gather(1, full.argmax(-1, keepdim=True)).squeeze(1)
    torch.testing.assert_close(scores.sum(-1), expected)
    assert (scores[~batch.mask] == 0).all()
    assert torch.equal(explainer(batch, full.argmax(-1)), scores)
    other = explainer(batch, torch.tensor([0, 1, 2, 0]))
    torch.testing.assert_close(other.sum(-1), (full - explainer.network.empty)[range(4), [0, 1, 2, 0]])
    for row in range(4):
        alone = explainer(words(TEXTS.select([row])))
        torch.testing.assert_close(alone[0], scores[row, : alone.shape[1]], atol=1e-5, rtol=1e-4)


def weights(explainer: AdditiveExplainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in explainer.network.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


OPTIONS = {"passes": 480, "batch_size": 4, "coalitions": 4, "learning_rate": 1e-2, "save_every": 5, "quiet": True}


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_resumed_is_the_same(tmp_path, monkeypatch, how):
    """20 steps over 3 epochs, stopped after 12: an interrupt is written down, a kill goes back to step 10."""
    whole = AdditiveExplainer(classifier(), width=8)
    record = whole.train(texts(30), **OPTIONS)
    assert record["steps"] == 20
    assert len(record["loss"]) == 4

    stopped = AdditiveExplainer(classifier(), width=8)
    step, error = training._Run.step, KeyboardInterrupt if how == "interrupted" else SystemExit

    def stop(run):
        if run.done == 12:
            raise error
        step(run)

    monkeypatch.setattr(training._Run, "step", stop)
    path = tmp_path / "run" / "state.pt"
    with pytest.raises(error):
        stopped.train(texts(30), checkpoint=path, **OPTIONS)
    monkeypatch.undo()
    assert torch.load(path, weights_only=True)["done"] == (12 if how == "interrupted" else 10)
    with pytest.raises(ValueError, match="learnt nothing yet"):
        stopped(words())

    torch.manual_seed(99)  # nothing is left to torch's own state
    resumed = AdditiveExplainer(classifier(), width=8)
    again = resumed.train(texts(30), checkpoint=path, **OPTIONS)
    assert same(weights(whole), weights(resumed))
    assert again["loss"] == record["loss"]
    done = AdditiveExplainer(classifier(), width=8)
    done.train(texts(30), checkpoint=path, **OPTIONS)  # nothing left to do
    assert same(weights(whole), weights(done))
    with pytest.raises(ValueError, match=r"state\.pt belongs to another run; these differ: learning_rate$"):
        resumed.train(texts(30), checkpoint=path, **{**OPTIONS, "learning_rate": 1e-3})
    with pytest.raises(ValueError, match=r"belongs to another run; these differ: digest$"):
        resumed.train(texts(30, seed=4), checkpoint=path, **OPTIONS)


def test_seeds():
    first, second, third = (AdditiveExplainer(classifier(), width=8) for _ in range(3))
    first.train(texts(8), **OPTIONS)
    second.train(texts(8), **OPTIONS)
    third.train(texts(8), **OPTIONS, seed=1)
    assert same(weights(first), weights(second))
    assert not same(weights(first), weights(third))


def test_every_step_draws_anew_and_in_pairs(monkeypatch):
    drawn, draw = [], training._Run._coalitions

    def keep(run, batch, seed):
        drawn.append(draw(run, batch, seed))
        assert torch.equal(drawn[-1][:, ::2] ^ drawn[-1][:, 1::2], batch.mask[:, None].expand(-1, 2, -1))
        return drawn[-1]

    monkeypatch.setattr(training._Run, "_coalitions", keep)
    AdditiveExplainer(classifier(), width=8).train(Texts(["the dog runs outside not red"] * 4), **OPTIONS)
    assert len({step.numpy().tobytes() for step in drawn}) == 20


def test_save_and_load(tmp_path):
    made = classifier()
    explainer = AdditiveExplainer(made, layers=(-1,), width=8, classes="decided")
    explainer.train(texts(8), **OPTIONS)
    explainer.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["explainer.json", "explainer.safetensors"]
    assert json.loads((tmp_path / "explainer.json").read_text())["options"] == {
        "layers": [2],
        "width": 8,
        "classes": "decided",
        "seed": 0,
        "labels": 3,
        "dim": 32,
        "masking": "attention",
    }
    loaded = AdditiveExplainer.load(tmp_path, made)
    assert torch.equal(loaded(words()), explainer(words()))
    assert loaded.network.config == explainer.network.config
    with pytest.raises(ValueError, match="knows only the class that the classifier decides for"):
        loaded(words(), 2 - made.full_probabilities(words()).argmax(-1).clamp(max=1))
    assert loaded.record == explainer.record
    with pytest.raises(ValueError, match="made for masking 'attention'; this classifier has 'delete'"):
        AdditiveExplainer.load(tmp_path, classifier(masking="delete"))
    with pytest.raises(ValueError, match="made for labels 3; this classifier has 2"):
        AdditiveExplainer.load(tmp_path, MaskedClassifier(Additive(), tokenizer()))
    with pytest.raises(ValueError, match=r"expected explainer.safetensors and explainer.json"):
        AdditiveExplainer.load(tmp_path / "nowhere", made)
    record = json.loads((tmp_path / "explainer.json").read_text())
    record["options"]["width"] = 9
    (tmp_path / "explainer.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"the weights are not those of explainer.json"):
        AdditiveExplainer.load(tmp_path, made)
    (tmp_path / "explainer.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match="damaged"):
        AdditiveExplainer.load(tmp_path, made)


def test_hidden_states_of_a_neurogame(encoder):
    model = NeuroGameForSequenceClassification.from_encoder(str(encoder)).eval()
    explainer = AdditiveExplainer(MaskedClassifier(model, tiny.tokenizer()), width=8)
    assert explainer.network.config.layers == (1, 2)
    batch = words()
    probabilities, states = explainer.network.read(explainer.classifier, batch)
    with torch.no_grad():
        expected = model.model.encoder(**batch.inputs, output_hidden_states=True).hidden_states
        torch.testing.assert_close(probabilities, model(**batch.inputs).logits.softmax(-1))
    torch.testing.assert_close(states, [expected[1], expected[2]])


def test_errors():
    made = classifier()
    with pytest.raises(ValueError, match="layers must be numbers from 0, the embeddings, to 2"):
        AdditiveExplainer(made, layers=(3,))
    with pytest.raises(ValueError, match="classes must be one of"):
        AdditiveExplainer(made, classes="some")
    config = WordConfig("dam", vocab_size=20, embedding_dim=8, hidden_size=8, num_labels=3)
    with pytest.raises(ValueError, match="num_hidden_layers; WordForSequenceClassification has none"):
        AdditiveExplainer(MaskedClassifier(WordForSequenceClassification(config), tokenizer()))
    explainer = AdditiveExplainer(MaskedClassifier(bert(), tokenizer()), width=8)
    with pytest.raises(ValueError, match="passes must suffice for a step, 24; got 10"):
        explainer.train(texts(8), **{**OPTIONS, "passes": 10})
    with pytest.raises(ValueError, match="coalitions must be even"):
        explainer.train(texts(8), **{**OPTIONS, "coalitions": 3})
    with pytest.raises(ValueError, match="no texts to learn from"):
        explainer.train(Texts([]), **OPTIONS)
