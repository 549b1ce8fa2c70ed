"""A game is of the masking that it was learnt with: with another the explainer has no game, and says so."""

import pytest

from spinformer import Explainer
from tests.tiny import tokenizer

TEXT = ("the man eats outside", "the man sleeps")
UNFIT = r"^this game was learnt with masking='attention', not '{}'; leave masking out or learn it anew"


def unknown(inputs, visible):
    return {**inputs, "input_ids": inputs["input_ids"].masked_fill(~visible, 1)}


@pytest.fixture(scope="module", params=["delete", unknown], ids=["delete", "own"])
def other(request, model):
    return Explainer(model, tokenizer(), masking=request.param)


def test_methods_of_the_game_refuse(other):
    unfit = UNFIT.format(other.classifier.masking)
    for call in (
        lambda: other(*TEXT, method="shapley"),
        lambda: other(*TEXT, method="attention", passes=16),
        lambda: other.scorer("banzhaf"),
    ):
        with pytest.raises(ValueError, match=f"{unfit}$"):
            call()
    with pytest.raises(ValueError, match=f"{unfit}, or choose a method that needs no game$"):
        other(*TEXT)


def test_other_methods_do_not(other, model):
    assert "shapley" not in other.methods()
    own, as_learnt = (each(*TEXT, method="kernel-shap") for each in (other, Explainer(model, tokenizer())))
    assert own.full_value == pytest.approx(as_learnt.full_value, abs=1e-5)
    assert own.base_value != pytest.approx(as_learnt.base_value, abs=1e-4)  # no words, hidden in another way


def test_a_game_that_is_named_is_an_error_at_once(model, grounded_folder):
    with pytest.raises(ValueError, match=f"{UNFIT.format('delete')}$"):
        Explainer(model, tokenizer(), game=grounded_folder, masking="delete")
    game = Explainer(model, tokenizer()).grounded.head
    with pytest.raises(ValueError, match=f"{UNFIT.format('own')}$"):
        Explainer(model, tokenizer(), game=game, masking=unknown)
    same = Explainer(model, tokenizer(), game=game, masking="attention")
    assert same(*TEXT) == Explainer(model, tokenizer())(*TEXT)
