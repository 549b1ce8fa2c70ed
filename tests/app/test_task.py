"""What the page says of the loaded classifier: one text or two, its own classes, several labels, a score."""

from types import SimpleNamespace

import pytest

from spinformer.app import Classifier, markup
from spinformer.app.task import INFERENCE, PAIRS, SINGLES, Task
from tests.app.conftest import save_text_model
from tests.tiny import NLI


def task(names, outputs="classes", kept=0, texts=0):
    return Task.of(names, outputs, SimpleNamespace(config=SimpleNamespace(texts=kept)), texts)


def test_how_many_texts_it_reads():
    assert task(NLI).text_names == ("premise", "hypothesis")
    assert task(("a", "b")).text_names == ("text",)
    assert task(("a", "b"), kept=2).text_names == ("first text", "second text")
    assert task(("a", "b"), kept=1, texts=2).paired  # what the owner says counts
    assert not task(NLI, kept=1).paired
    assert [task(NLI).examples, task("ab", kept=2).examples, task("ab").examples] == [INFERENCE, PAIRS, SINGLES]
    with pytest.raises(ValueError, match="texts must be 1 or 2, or 0 where the game says so; got 3"):
        task(NLI, texts=3)


@pytest.mark.parametrize(
    ("names", "outputs", "said"),
    [
        (("negative", "positive"), "classes", "decides for negative or positive."),
        (("a", "b", "c"), "labels", "gives it any of the labels a, b or c."),
        (tuple(map(str, range(28))), "labels", "gives it any of 28 labels: 0, 1, 2, 3, ..."),
        (tuple(map(str, range(7))), "classes", "decides for one of 7 classes: 0, 1, 2, 3, ..."),
        (("similarity",), "scores", "answers with a number, its similarity."),
        (
            ("<script>alert(1)</script>", "\u202ex" * 60),
            "classes",
            "decides for &lt;script&gt;alert(1)&lt;/script&gt;",
        ),
    ],
)
def test_the_introduction(names, outputs, said):
    shown = task(names, outputs).introduction
    for mark in ("<strong>", "</strong>", "<bdi>", "</bdi>"):
        shown = shown.replace(mark, "")
    assert said in shown
    assert "<" not in shown
    assert len(shown) < 400


@pytest.fixture(scope="module")
def emotions(tmp_path_factory):
    names = tuple(f"<i>{number}</i>" for number in range(9))
    folder = save_text_model(
        tmp_path_factory.mktemp("labels"), names, problem_type="multi_label_classification", classifier_dropout=0.0
    )
    return Classifier.load(str(folder))


def test_several_labels(emotions):
    explanation = emotions.explain("a dog runs", "", 0.25, 64, 8)
    assert (explanation.outputs, explanation.target) == ("labels", "<i>8</i>")
    shown = markup.explanation_html(explanation)
    assert "<i>" not in shown
    assert "What speaks for <strong><bdi>&lt;i&gt;8&lt;/i&gt;</bdi></strong>, and what against it?" in shown
    assert 6 <= shown.count('<span class="probability">') <= 7  # the most probable, and the one explained
    assert "others, each less likely" in shown


def test_a_score(tmp_path):
    classifier = Classifier.load(str(save_text_model(tmp_path, ("LABEL_0",), problem_type="regression")))
    assert classifier.task.introduction.startswith("Write a text. The classifier answers with a number, its <strong>")
    explanation = classifier.explain("a dog runs")
    shown = markup.explanation_html(explanation)
    assert "points" not in shown
    assert 'class="probability"' not in shown
    assert f"<small>{explanation.probabilities['score']:.3f}</small>".replace("-", "\u2212") in shown


def test_why_one_class_and_not_the_other(text_folder):
    classifier = Classifier.load(str(text_folder))
    explanation = classifier.explain("a dog runs", "", 0.25, 64, 0, 1)
    assert (explanation.target, explanation.against) == ("negative", "positive")
    shown = markup.explanation_html(explanation)
    assert "Why <strong><bdi>negative</bdi></strong> and not <strong><bdi>positive</bdi></strong>?" in shown
    assert explanation == classifier.explainer.__class__(
        classifier.explainer.model, classifier.explainer.tokenizer, samples=64
    )("a dog runs", target=0, against=1)
    with pytest.raises(ValueError, match=r"Please choose two different classes\."):
        classifier.explain("a dog", "", 0.25, 64, 1, 1)
    for value in (2, -2, 0.5, "negative", None):
        with pytest.raises(ValueError, match="The class must be"):
            classifier.explain("a dog", "", 0.25, 64, value)
    decided = classifier.explain("a dog").label
    number = ("negative", "positive").index(decided)
    with pytest.raises(ValueError, match=f"The classifier decides for '{decided}' itself"):
        classifier.explain("a dog", "", 0.25, 64, -1, number)


def test_numbers_are_for_people(text_folder):
    explanation = Classifier.load(str(text_folder)).explain("a dog runs")
    shown = markup.explanation_html(explanation)
    change = 100 * (explanation.full_value - explanation.base_value)
    words = f"The words add {change:.1f} points." if change >= 0 else f"The words take {-change:.1f} points from it."
    assert f"would get {explanation.base_value:.1%}. {words}" in shown
    strongest = explanation.top_words(1)[0]
    value = f"{100 * strongest.importance:+.1f}".replace("-", "\u2212")
    assert f'<td>{value} <span class="error">' in shown
    plain = shown.split('class="physics"')[0]
    assert not any(name in plain for name in ("Shapley", "Banzhaf", "coalition", "mean field"))
