"""Predictions: order, batches, cutting, what a game reports; and the evaluation made of them."""

import json
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from spinformer.data.texts import NLI_LABELS, Texts
from spinformer.evaluate import evaluate, predict, scores
from tests.evaluate.conftest import bert, pairs


def one_by_one(model, tokenizer, texts):
    rows = []
    for row in range(len(texts)):
        second = None if texts.second is None else texts.second[row]
        with torch.no_grad():
            rows.append(model(**tokenizer(texts.first[row], second, return_tensors="pt")).logits[0])
    return torch.stack(rows)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_order_is_kept_and_batches_do_not_matter(model, tokenizer, batch):
    texts = pairs()
    predictions = predict(model, tokenizer, texts, batch_size=batch, progress=False)
    expected = one_by_one(model, tokenizer, texts)
    assert expected.std(0).min() > 0.05  # the model does tell them apart
    torch.testing.assert_close(predictions.logits, expected, rtol=0, atol=1e-5)
    assert (predictions.ess, predictions.residual, predictions.converged, predictions.truncated) == (
        None,
        None,
        None,
        0,
    )


def test_single_texts(model, tokenizer):
    texts = Texts(pairs(10).first)
    predictions = predict(model, tokenizer, texts, batch_size=3, progress=False)
    torch.testing.assert_close(predictions.logits, one_by_one(model, tokenizer, texts), rtol=0, atol=1e-5)


def test_long_pairs_are_cut_and_counted(model, tokenizer):
    texts = Texts(["a man runs", "a " * 30], ["a dog", "dog " * 3])
    predictions = predict(model, tokenizer, texts, max_length=16, progress=False)
    assert predictions.truncated == 1
    kept = Texts(["a " * 10], ["dog " * 3])  # the longer text loses first: 16 = 10 + 3 + 3 special ones
    torch.testing.assert_close(predictions.logits[1:], predict(model, tokenizer, kept, progress=False).logits)
    assert predict(model, tokenizer, texts, progress=False).truncated == 0


def test_modes_are_left_as_they_were(tokenizer):
    model = bert().train()
    model.bert.embeddings.eval()
    before = [module.training for module in model.modules()]
    twice = [predict(model, tokenizer, pairs(4), progress=False).logits for _ in range(2)]
    assert torch.equal(*twice)  # dropout was off
    assert [module.training for module in model.modules()] == before


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (Texts(["a", " "], ["b", "c"], source="data"), "row 1 of data, counted from 0, has an empty first text"),
        (Texts(["a", "b"], ["", "c"], source="data"), "row 0 of data, counted from 0, has an empty second text"),
        (Texts(["a", ""], source="data"), "row 1 of data, counted from 0, has an empty text"),
        (Texts([], source="data"), "data has no rows to predict"),
    ],
)
def test_empty_texts_are_named(model, tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        predict(model, tokenizer, texts, progress=False)


def test_bad_settings(model, tokenizer):
    with pytest.raises(ValueError, match="batch_size must be an integer of at least 1; got 0"):
        predict(model, tokenizer, pairs(2), batch_size=0)
    with pytest.raises(ValueError, match="max_length must be at most 128, what the model takes; got 129"):
        predict(model, tokenizer, pairs(2), max_length=129)
    with pytest.raises(ValueError, match="bf16 is for CUDA devices alone"):
        predict(model, tokenizer, pairs(2), bf16=True)
    broken = bert()
    nn.init.constant_(broken.classifier.bias, torch.nan)
    with pytest.raises(ValueError, match="logits must be finite"):
        predict(broken, tokenizer, pairs(2), progress=False)


class Player(nn.Module):
    """Stands for a model that plays: two heads, whose ESS is the number of tokens and a hundred times that."""

    plays = True

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.config = SimpleNamespace(id2label=dict(enumerate(NLI_LABELS)))

    def forward(self, input_ids, attention_mask, token_type_ids=None, output_diagnostics=False):
        assert output_diagnostics
        size = attention_mask.sum(1, keepdim=True).float()
        ess = torch.cat([size, 100 * size], 1)
        diagnostics = SimpleNamespace(ess=ess, residual=ess / 1e6, converged=ess < 100, steps=ess.long())
        return SimpleNamespace(logits=size * self.weight, diagnostics=diagnostics)


def test_what_the_game_reports(tokenizer):
    texts = Texts(["a", "a man runs", "a man"], ["b", "dog", "b"], [0, 1, 2], NLI_LABELS)
    predictions = predict(Player(), tokenizer, texts, batch_size=2, progress=False)
    assert predictions.ess.tolist() == [[5, 500], [7, 700], [6, 600]]
    assert predictions.converged.tolist() == [[True, False]] * 3
    game = evaluate(Player(), tokenizer, texts, progress=False).game
    assert (game.ess_mean, game.ess_min, game.converged) == (303, 5, 0.5)
    assert game.residual_max == pytest.approx(700e-6)
    assert game.residual_mean == pytest.approx(303e-6)


def test_evaluation(model, tokenizer):
    texts = pairs()
    evaluation = evaluate(model, tokenizer, texts, batch_size=8, progress=False)
    logits = one_by_one(model, tokenizer, texts)
    assert evaluation.scores.accuracy == scores(logits, texts.labels, NLI_LABELS).accuracy
    assert evaluation.scores.nll == pytest.approx(scores(logits, texts.labels, NLI_LABELS).nll, abs=1e-5)
    record = json.loads(json.dumps(evaluation.to_dict()))
    assert (record["count"], record["rule"], record["game"]) == (40, "by name", None)
    assert record["scores"]["accuracy"] == evaluation.scores.accuracy


def test_evaluation_on_other_orders_and_two_classes(tokenizer, model):
    texts = pairs()
    turned = Texts(texts.first, texts.second, [2 - label for label in texts.labels], NLI_LABELS[::-1])
    first, second = (evaluate(model, tokenizer, data, progress=False).scores for data in (texts, turned))
    assert first.accuracy == second.accuracy
    assert first.nll == pytest.approx(second.nll)
    hans = Texts(texts.first, texts.second, [min(label, 1) for label in texts.labels], ("entailment", "non-entailment"))
    evaluation = evaluate(model, tokenizer, hans, progress=False)
    assert evaluation.rule == "two-class"
    rows = torch.tensor(first.confusion)
    assert evaluation.scores.confusion[0] == (rows[0, 0], rows[0, 1:].sum())


def test_label_names_are_asked_for(tokenizer):
    unnamed = bert(("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(ValueError, match="pass the model's label names"):
        evaluate(unnamed, tokenizer, pairs(), progress=False)
    assert evaluate(unnamed, tokenizer, pairs(), names=NLI_LABELS, progress=False).count == 40
