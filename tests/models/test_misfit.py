"""The measured misfit of a game: its file, and what explanations say of it."""

import json
import math

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.explain import Explainer, Explanation
from spinformer.explain.grounded import UNMEASURED
from spinformer.games.values import GAME_INDICES
from spinformer.models.difficulty import Difficulty
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.identity import weights_digest
from spinformer.models.misfit import FILE, PAIR_FEATURES, WORD_FEATURES, ErrorScale, Misfit, _scale
from tests.explain.toys import bert, tokenizer

METHODS = ("shapley", "banzhaf", "field", "attention")
TEXTS = ["the dog runs", "a man eats outside", "two red cat not inside the man"]
SIZES = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "form": "attending"}


HARD = Difficulty(slope=(0.5, *[0.0] * 31), offset=-0.25, low=-2.0, high=2.0)


def misfit(fit=0.9, words=20, constant=-3.0, difficulty=None):
    """Every scale is 2 e^constant, whatever the word, times e^t of the text."""
    scales = {}
    for name in GAME_INDICES:
        count = len(WORD_FEATURES if name in ("SV", "BV") else PAIR_FEATURES)
        scales[name] = ErrorScale((constant, *[0.0] * (count - 2), 1.0), factor=2.0, refined=(1.5, 1.25))
    return Misfit(scales, fit, texts=40, passes=128, words=words, difficulty=difficulty)


@pytest.fixture(scope="module")
def model():
    return bert()


@pytest.fixture
def head(model):
    torch.manual_seed(0)
    return GameHead(GameHeadConfig((0, 1, 2), 32, 3, model=weights_digest(model), **SIZES)).eval()


def explainer(model, head, found):
    head.misfit = found
    return Explainer(model, tokenizer(), game=head)


class TestFile:
    def test_saved_and_loaded(self, tmp_path):
        for difficulty in (None, HARD):
            stored = misfit(fit=0.123456789, constant=-math.pi, difficulty=difficulty)
            stored.save(tmp_path)
            assert Misfit.load(tmp_path) == stored

    def test_files_of_earlier_versions(self, tmp_path):
        """They know no difficulty: no coefficient for it, and no text is harder than another."""
        stored = misfit()
        stored.save(tmp_path)
        content = json.loads((tmp_path / FILE).read_text())
        del content["difficulty"]
        for scale in content["scales"].values():
            assert scale["coefficients"].pop() == 1.0
        (tmp_path / FILE).write_text(json.dumps(content))
        loaded = Misfit.load(tmp_path)
        assert loaded.difficulty is None
        assert {scale.coefficients[-1] for scale in loaded.scales.values()} == {0.0}
        assert loaded.scales["SV"].coefficients[:-1] == stored.scales["SV"].coefficients[:-1]

    def test_beside_the_game(self, model, head, tmp_path):
        head.misfit = misfit()
        head.save(tmp_path)
        assert GameHead.load(tmp_path, model).misfit == head.misfit
        assert Explainer(model, tokenizer(), game=tmp_path)(TEXTS[0]).words[0].misfit_stderr > 0
        head.misfit = None  # a game that was not measured leaves no other's numbers
        head.save(tmp_path)
        assert not (tmp_path / "game" / FILE).exists()
        assert GameHead.load(tmp_path, model).misfit is None

    def test_no_file(self, tmp_path):
        assert Misfit.load(tmp_path) is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda stored: "no json",
            lambda stored: "[]",
            lambda stored: "{}",
            lambda stored: stored | {"scales": [1, 2]},
            lambda stored: stored | {"scales": {name: stored["scales"][name] for name in ("SV", "BV", "BII")}},
            lambda stored: stored | {"scales": stored["scales"] | {"STI": stored["scales"]["SII"]}},
            lambda stored: stored | {"scales": stored["scales"] | {"SV": stored["scales"]["SII"]}},
            lambda stored: stored | {"scales": stored["scales"] | {"SV": stored["scales"]["SV"] | {"factor": "2"}}},
            lambda stored: (
                stored | {"scales": stored["scales"] | {"SV": stored["scales"]["SV"] | {"refined": math.inf}}}
            ),
            lambda stored: stored | {"fit": "good"},
            lambda stored: stored | {"difficulty": [1.0]},
            lambda stored: stored | {"difficulty": {"slope": [], "offset": 0.0, "low": 0.0, "high": 0.0}},
            lambda stored: stored | {"difficulty": {"slope": ["1"], "offset": 0.0, "low": 0.0, "high": 0.0}},
            lambda stored: stored | {"difficulty": {"slope": [1.0], "offset": math.nan, "low": 0.0, "high": 0.0}},
            lambda stored: stored | {"difficulty": {"slope": [1.0], "offset": 0.0, "low": 0.0}},
            lambda stored: stored | {"words": None},
            lambda stored: stored | {"colour": "red"},
            lambda stored: {name: value for name, value in stored.items() if name != "passes"},
        ],
    )
    def test_damaged_files_are_refused_in_one_line(self, change, model, head, tmp_path):
        head.misfit = misfit()
        head.save(tmp_path)
        path = tmp_path / "game" / FILE
        changed = change(json.loads(path.read_text()))
        path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
        with pytest.raises(ValueError, match="the measured misfit is damaged") as raised:
            GameHead.load(tmp_path, model)
        assert str(raised.value).startswith(f"{path}: ")
        assert "\n" not in str(raised.value)


class TestNumbers:
    def test_errors_of_words_and_pairs(self, model, head):
        """Texts of few words are enumerated: what is not known of the classifier is due to the game alone."""
        scale = 2 * math.exp(-3)
        for method in METHODS[:2]:
            for explanation in explainer(model, head, misfit())(TEXTS, method=method):
                for word in explanation.words:
                    assert word.misfit_stderr == pytest.approx(scale, rel=1e-5)
                    assert word.importance_stderr == pytest.approx(scale, rel=1e-5)
                for pair in explanation.pairs:
                    assert pair.misfit_stderr == pytest.approx(scale, rel=1e-5)
                    assert pair.stderr == pytest.approx(scale, rel=1e-5)
                low, high = explanation.importance_interval[0]
                assert high - low == pytest.approx(2 * 1.96 * scale, rel=1e-5)

    def test_hard_texts_have_larger_errors(self, model, head):
        """By e^t, whatever other texts are in the batch; t from the mean over its tokens of the middle layer read."""
        easy, hard = (explainer(model, head, misfit(difficulty=given))(TEXTS) for given in (None, HARD))
        for text, one, other in zip(TEXTS, easy, hard, strict=True):
            inputs = tokenizer()(text, return_tensors="pt")
            with torch.no_grad():
                vector = model(**inputs, output_hidden_states=True).hidden_states[1][0].mean(0)
            expected = math.exp(min(max(0.5 * float(vector[0]) - 0.25, -2.0), 2.0))
            assert abs(expected - 1) > 0.01
            for before, after in zip(one.words, other.words, strict=True):
                assert after.misfit_stderr == pytest.approx(expected * before.misfit_stderr, rel=1e-4)

    def test_difficulty_is_held_within_what_was_seen(self):
        vectors = torch.zeros(3, 32)
        vectors[:, 0] = torch.tensor([-100.0, 1.0, 100.0])
        assert HARD(vectors).tolist() == [-2.0, 0.25, 2.0]

    def test_vectors_of_another_encoder_are_refused(self):
        with pytest.raises(ValueError, match=r"vectors must have shape \(2, 32\); got \(2, 31\)"):
            HARD(torch.zeros(2, 31))

    def test_sampling_adds_to_it(self, model, head):
        head.misfit = misfit()
        sampled = Explainer(model, tokenizer(), game=head, samples=24)(TEXTS[2])
        alone = Explainer(model, tokenizer(), game=head, samples=0)(TEXTS[2])
        for word, exact in zip(sampled.words, alone.words, strict=True):
            assert word.importance_stderr > word.misfit_stderr > 0
            assert exact.importance_stderr == pytest.approx(exact.misfit_stderr)

    def test_masked_passes_leave_less(self, model, head):
        """Without sampling and with all coalitions nothing is left of it."""
        few, every = (explainer(model, head, misfit())(TEXTS[2], passes=passes) for passes in (32, 128))
        assert all(0 < word.misfit_stderr <= word.importance_stderr < 2 * math.exp(-3) for word in few.words)
        assert {word.misfit_stderr for word in every.words} == {0.0}
        assert {word.importance_stderr for word in every.words} == {0.0}


class TestNotes:
    @pytest.mark.parametrize("method", METHODS)
    def test_an_unfaithful_game(self, model, head, method, tmp_path):
        unfaithful = explainer(model, head, misfit(fit=0.09))
        for explanation in [unfaithful(*TEXTS[:2], method=method), *unfaithful(TEXTS, method=method)]:
            (note,) = explanation.notes
            assert note.startswith("the game explains only 9% of what this classifier does on held-out texts")
            assert "\n" not in note
            assert note in " ".join(str(explanation).split())
            assert Explanation.load(explanation.save(tmp_path / "one.json")) == explanation
            assert "only 9% of what this classifier does" in explanation.to_html()

    def test_worse_than_nothing(self, model, head):
        (note,) = explainer(model, head, misfit(fit=-3.0))(TEXTS[0]).notes
        assert note.startswith("the game explains only 0% of what")

    def test_a_faithful_game(self, model, head):
        assert [each.notes for each in explainer(model, head, misfit(fit=0.51))(TEXTS)] == [()] * 3

    def test_texts_that_are_too_long(self, model, head):
        """Of 3, 4 and 7 words, where errors were measured on 2 and 3."""
        notes = [each.notes for each in explainer(model, head, misfit(words=3))(TEXTS)]
        assert notes[:2] == [(), ()]
        assert notes[2][0].startswith(
            "this text has 7 words, the longest that the game's errors were measured on has 3"
        )
        both = explainer(model, head, misfit(fit=0.09, words=3))(TEXTS[2]).notes
        assert len(both) == 2
        assert both[1] == notes[2][0]

    def test_a_game_that_was_not_measured(self, model, head):
        explanation = explainer(model, head, None)(TEXTS[0])
        assert explanation.notes == (UNMEASURED,)
        assert {word.misfit_stderr for word in explanation.words} == {None}
        assert {word.importance_stderr for word in explanation.words} == {0.0}  # of sampling alone

    def test_methods_without_the_game_say_nothing(self, model, head):
        unfaithful = explainer(model, head, misfit(fit=0.09))
        assert unfaithful(TEXTS[0], method="leave-one-out").notes == ()
        assert unfaithful(TEXTS[0], method="kernel-shap").notes == ()


def test_factors_of_more_passes():
    """On a line in log passes between 32 and 64, then towards 1."""
    scale = ErrorScale((0.0,), refined=(2.0, 1.5))
    assert [scale.left_by(passes) for passes in (4, 32, 64, 256, 6400)] == [2.0, 2.0, 1.5, 1.25, 1.05]
    assert scale.left_by(45) == pytest.approx(1.75, abs=0.01)


def test_one_factor_of_earlier_versions():
    stored = {"coefficients": [0.0] * 5, "factor": 1.0, "refined": 1.3}
    assert _scale("SV", stored).refined == (1.3, 1.3)
