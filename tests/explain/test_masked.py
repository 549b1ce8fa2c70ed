"""What a classifier answers for masked texts, against inputs that are masked by hand."""

import pytest
import torch

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games import TableGame, exact_values
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from tests.explain.toys import TEXTS, Additive, bert, classifier, tokenizer, words


def by_hand(model, ids, attention=None, types=None):
    ids = torch.tensor([ids])
    types = torch.zeros_like(ids) if types is None else torch.tensor([types])
    attention = torch.ones_like(ids) if attention is None else torch.tensor([attention])
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=attention, token_type_ids=types).logits.softmax(-1)[0]


def test_three_maskings_by_hand():
    fast, model = tokenizer(), bert()
    split = split_words(fast, Texts(["the dog runs", "a man eats outside inside"], ["red cat", "two"]), 64)
    coalition = torch.tensor([[True, False, True, False, True, False]] * 2)[:, None]
    cls, sep, mask = fast.cls_token_id, fast.sep_token_id, fast.mask_token_id
    the, dog, runs, red, cat = fast("the dog runs red cat", add_special_tokens=False)["input_ids"]
    types = [0, 0, 0, 0, 0, 1, 1, 1]
    expected = {
        "attention": by_hand(model, [cls, the, dog, runs, sep, red, cat, sep], [1, 1, 0, 1, 1, 0, 1, 1], types),
        "token": by_hand(model, [cls, the, mask, runs, sep, mask, cat, sep], None, types),
        "delete": by_hand(model, [cls, the, runs, sep, cat, sep], None, [0, 0, 0, 0, 1, 1]),
    }
    for masking, probabilities in expected.items():
        answer = MaskedClassifier(model, fast, masking).probabilities(split, coalition)[0, 0]
        torch.testing.assert_close(answer, probabilities)
    assert (expected["attention"] - expected["delete"]).abs().max() > 1e-3


@pytest.mark.parametrize("masking", ["attention", "token", "delete"])
def test_batches_and_padding_change_nothing(masking):
    split = words()
    generator = torch.Generator().manual_seed(0)
    coalitions = torch.rand(4, 7, 9, generator=generator) < 0.5
    full = classifier(masking=masking).probabilities(split, coalitions)
    small = classifier(masking=masking, batch_size=3)
    torch.testing.assert_close(small.probabilities(split, coalitions), full)
    assert small.passes == 28
    for row in range(4):
        alone = words(TEXTS.select([row]))
        width = alone.mask.shape[1]
        single = small.probabilities(alone, coalitions[row : row + 1, :, :width])
        torch.testing.assert_close(single[0], full[row])
    torch.testing.assert_close(full.sum(-1), torch.ones(4, 7))


@pytest.mark.parametrize("masking", ["attention", "token", "delete"])
def test_batches_cut_by_tokens_change_nothing(masking, monkeypatch):
    """As on a GPU: so many tokens at once, more rows where they are short."""
    split, masked = words(), classifier(masking=masking)
    coalitions = torch.rand(4, 7, 9, generator=torch.Generator().manual_seed(0)) < 0.5
    full = masked.probabilities(split, coalitions)
    sizes = []
    masked.model.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(kwargs["input_ids"].shape), with_kwargs=True
    )
    monkeypatch.setattr(MaskedClassifier, "_batch_rows", lambda self, width: max(1, 40 // width))
    torch.testing.assert_close(masked.probabilities(split, coalitions), full)
    assert sum(rows for rows, _ in sizes) == 28
    assert all(rows * width <= 40 for rows, width in sizes)
    assert len({rows for rows, _ in sizes}) > 1


def test_rows_of_some_texts():
    split, masked = words(), classifier()
    coalitions = torch.rand(4, 3, 9, generator=torch.Generator().manual_seed(1)) < 0.5
    full = masked.probabilities(split, coalitions)
    texts, indices = torch.tensor([3, 0, 3]), torch.tensor([1, 2, 0])
    torch.testing.assert_close(masked.row_probabilities(split, texts, coalitions[texts, indices]), full[texts, indices])


def test_full_is_the_model_itself():
    split, masked = words(), classifier(masking="delete")
    with torch.no_grad():
        expected = masked.model(**split.inputs).logits.softmax(-1)
    torch.testing.assert_close(masked.full_probabilities(split), expected)


def test_left_padding_is_kept():
    fast = tokenizer()
    fast.padding_side = "left"
    model = bert()
    split = split_words(fast, TEXTS, 64)
    with torch.no_grad():
        expected = model(**split.inputs).logits.softmax(-1)
    torch.testing.assert_close(MaskedClassifier(model, fast, batch_size=1).full_probabilities(split), expected)


def test_confidence_game():
    split, masked = words(TEXTS.select([0, 2])), classifier()
    game = ConfidenceGame(masked, split)
    assert game.target.tolist() == masked.full_probabilities(split).argmax(-1).tolist()
    assert game.counts().tolist() == [6, 2]
    every = (torch.arange(64)[:, None] >> torch.arange(6) & 1).bool()
    table = masked.probabilities(split, every.expand(2, -1, -1))
    chosen = [table[row, :, game.target[row]] for row in range(2)]
    for index in ("SV", "BV", "SII"):
        exact = exact_values(game, index)
        torch.testing.assert_close(exact[0], exact_values(TableGame(chosen[0]), index))
    lone = exact_values(TableGame(chosen[1][:4]), "SV")
    torch.testing.assert_close(exact_values(game, "SV")[1], torch.cat([lone, torch.zeros(4)]))
    other = ConfidenceGame(masked, split, target=torch.tensor([0, 1]))
    torch.testing.assert_close(other(every)[0], table[0, :, 0])


def test_additive_confidence_has_its_worths_as_values():
    model = Additive()
    split = words()
    values = exact_values(ConfidenceGame(MaskedClassifier(model, tokenizer()), split, torch.ones(4).long()), "SV")
    worth = split.sums(model.worth.detach()[split.inputs["input_ids"]])
    torch.testing.assert_close(values, worth, atol=1e-5, rtol=0)


def test_errors():
    split, masked = words(), classifier()
    with pytest.raises(ValueError, match="masking must be one of"):
        MaskedClassifier(bert(), tokenizer(), "blur")
    without = tokenizer()
    without.mask_token = without.pad_token = None
    for masking, token in (("token", "mask token"), ("delete", "padding token")):
        with pytest.raises(ValueError, match=token):
            MaskedClassifier(bert(), without, masking)
    with pytest.raises(ValueError, match=r"coalitions must have shape \(B, K, W\)"):
        masked.probabilities(split, split.mask)
    with pytest.raises(ValueError, match=r"coalitions must have shape \(4, 1, 9\)"):
        masked.probabilities(split, split.mask[:, None, :5])
    with pytest.raises(TypeError, match="boolean"):
        masked.probabilities(split, split.mask[:, None].long())
    with pytest.raises(ValueError, match="target must have shape"):
        ConfidenceGame(masked, split, torch.zeros(2, dtype=torch.long))
