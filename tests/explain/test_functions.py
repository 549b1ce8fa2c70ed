"""Functions of texts, explained by masking: against what is known of them."""

import pickle

import numpy as np
import pytest

from spinformer.explain import Explainer

WEIGHTS = {"good": 2.0, "bad": -3.0, "not": -1.0}


def score(texts):
    return [sum(WEIGHTS.get(word.strip("!,"), 0.0) for word in text.lower().split()) for text in texts]


def chances(texts):
    positive = 1 / (1 + np.exp(-np.array(score(texts))))
    return np.stack([1 - positive, positive], 1)


def overlap(pairs):
    return [float(len(set(first.split()) & set(second.split()))) for first, second in pairs]


def test_a_sum_of_words_is_shared_out_exactly():
    explanation = Explainer.from_function(score, ["mood"])("Good film, bad end!")
    found = {word.text: word.importance for word in explanation.words}
    assert (explanation.outputs, explanation.label) == ("scores", "mood")
    assert found["Good"] == pytest.approx(2.0, abs=1e-4)
    assert found["bad"] == pytest.approx(-3.0, abs=1e-4)
    assert found["film"] == pytest.approx(0.0, abs=1e-4)
    assert explanation.full_value == pytest.approx(-1.0)


def test_probabilities_of_classes():
    explanation = Explainer.from_function(chances, ["negative", "positive"])("not good")
    assert explanation.label == "positive"
    assert explanation.probabilities["positive"] == pytest.approx(1 / (1 + np.exp(-1.0)), abs=1e-5)
    assert explanation.base_value == pytest.approx(0.5, abs=1e-5)
    assert explanation.base_value + sum(explanation.importance) == pytest.approx(explanation.full_value, abs=1e-4)


def test_the_function_sees_the_text_as_it_was():
    """Spaces and punctuation stay; hidden words are left out, or replaced."""
    seen = []

    def remember(texts):
        seen.extend(texts)
        return [[0.5, 0.5]] * len(texts)

    Explainer.from_function(remember, ["a", "b"])("Well,  that's  good!", method="leave-one-out")
    assert "Well,  that's  good!" in seen
    assert "Well,  good!" in seen
    seen.clear()
    Explainer.from_function(remember, ["a", "b"], mask="___")("Well, good", method="leave-one-out")
    assert "Well, ___" in seen


def test_pairs():
    explanation = Explainer.from_function(overlap, ["shared"])("the man sleeps", "a man sleeps")
    found = [(word.text, word.side, round(word.importance, 3)) for word in explanation.words]
    assert found[:3] == [("the", 0, 0), ("man", 0, 0.5), ("sleeps", 0, 0.5)]
    assert found[3:] == [("a", 1, 0), ("man", 1, 0.5), ("sleeps", 1, 0.5)]
    strongest = {(first.text, second.text) for first, second, _ in explanation.top_pairs(2)}
    assert strongest == {("man", "man"), ("sleeps", "sleeps")}


def test_batches_and_pickles():
    explainer = Explainer.from_function(score, ["mood"])
    together = explainer(["good", "a very bad film indeed"])
    assert [sum(each.importance) for each in together] == pytest.approx([2.0, -3.0], abs=1e-4)
    again = pickle.loads(pickle.dumps(explainer))
    assert again("not good").importance == explainer("not good").importance


def test_scikit_learn():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = ["good film", "good end", "bad film", "bad end", "a good day", "a bad day"]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0, 1, 0])
    explanation = Explainer.from_function(pipeline.predict_proba, ["bad", "good"])("a good film")
    assert explanation.label == "good"
    assert explanation.top_words(1)[0].text == "good"


class TestBadInput:
    def test_names(self):
        with pytest.raises(ValueError, match="different names"):
            Explainer.from_function(score, ["a", "a"])

    def test_answers(self):
        with pytest.raises(ValueError, match="score must return real numbers, 2 for each of 1 texts; got shape"):
            Explainer.from_function(score, ["a", "b"])("good")
        with pytest.raises(ValueError, match="must sum to 1"):
            Explainer.from_function(lambda texts: [[0.5, 0.1]] * len(texts), ["a", "b"])("good")
        with pytest.raises(ValueError, match="must be probabilities"):
            Explainer.from_function(lambda texts: [[5.0, -4.0]] * len(texts), ["a", "b"])("good")
        with pytest.raises(ValueError, match="finite"):
            Explainer.from_function(lambda texts: [float("nan")] * len(texts), ["a"])("good")

    @pytest.mark.parametrize(
        "answer",
        [
            lambda texts: None,
            lambda texts: {"mood": 1.0},
            lambda texts: (1.0 for _ in texts),
            lambda texts: ["good"] * len(texts),
            lambda texts: [[1.0, 2.0], [1.0]],
            lambda texts: np.array(["good"] * len(texts)),
            lambda texts: np.array([None] * len(texts)),
            lambda texts: np.array([1j] * len(texts)),
            lambda texts: [10**400] * len(texts),
            lambda texts: [1.0, [2.0]],
        ],
    )
    def test_answers_that_are_no_numbers(self, answer):
        """The error names the function, in one line."""
        answer.__name__ = "mood_of"
        expected = r"^the function mood_of must return real numbers, 1 for each of 1 texts; got [^\n]{1,60}$"
        with pytest.raises(TypeError, match=expected):
            Explainer.from_function(answer, ["mood"])("good")

    @pytest.mark.parametrize(
        ("names", "outputs", "error", "message"),
        [
            (["m"], "nope", ValueError, "outputs must be one of 'classes', 'labels', 'scores'; got 'nope'"),
            (3, None, TypeError, "names must be a list of the answers' names; got 3"),
            ("mood", None, TypeError, "names must be a list of the answers' names; got 'mood'"),
        ],
    )
    def test_bad_arguments(self, names, outputs, error, message):
        with pytest.raises(error, match=message):
            Explainer.from_function(score, names, outputs=outputs)

    def test_a_function_has_no_game(self):
        with pytest.raises(ValueError, match="needs the states of a model"):
            Explainer.from_function(score, ["mood"]).ground(["good film"] * 200)

    def test_methods_that_need_gradients(self):
        with pytest.raises(ValueError, match="masked passes alone"):
            Explainer.from_function(score, ["mood"])("good", method="integrated-gradients")
