"""Bars, steps and the one line: lengths are the values, steps end at the probability, and no label covers another."""

import re
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest

from spinformer.explain.record import DEVIATIONS
from spinformer.explain.render import canvas
from spinformer.explain.render.figures import bar_figure, force_figure, waterfall_figure
from spinformer.explain.render.figures.force import force_pushes
from spinformer.explain.render.ranking import word_bars
from tests.explain.examples import every, explanation, scored


def regression():
    """A score of no fixed size, below and above 0."""
    one = scored(1.2, -0.4, 0.7, 0.05, -2.2)
    return replace(
        one, outputs="scores", label="rating", target="rating", probabilities={"rating": -0.65}, base_value=0.0
    )


def against():
    """Why one class and not the other: values share out the difference of two probabilities."""
    one = scored(0.5, -0.2, 0.3)
    probabilities = {"yes": 0.8, "no": 0.2}
    return replace(one, label="yes", target="yes", against="no", probabilities=probabilities, base_value=0.0)


def several_labels():
    """Two labels are on; the second is explained."""
    one = scored(0.1, 0.25)
    return replace(
        one, outputs="labels", label="a", target="b", probabilities={"a": 0.9, "b": 0.6, "c": 0.1}, base_value=0.25
    )


CASES = {
    "short": scored(0.4, -0.3, 0.2, -0.05),
    "40 words": scored(*[(-1) ** i * 0.3 / (i + 1) for i in range(40)]),
    "regression": regression(),
    "against": against(),
    "several labels": several_labels(),
}


def values_axis(figure):
    """The axis of values, beside the one of inches."""
    return next(axis for axis in figure.axes if axis.get_xlabel())


def arrows(figure):
    """Where each arrow begins and ends."""
    ends = []
    for patch in values_axis(figure).patches:
        points = patch.get_xy()
        ends.append((points[0][0], points[2][0]))
    return ends


class TestRanking:
    def test_others_are_one_bar_and_the_sum_stays(self):
        one = CASES["40 words"]
        bars = word_bars(one, 15)
        expected = sorted(one.importance, key=lambda value: -abs(value))
        assert [bar.value for bar in bars[:-1]] == expected[:15]
        assert bars[-1].text == "25 other words"
        assert bars[-1].value == pytest.approx(sum(expected[15:]))
        assert len(word_bars(one, 39)) == 40  # one word more needs no bar for others

    def test_words_that_are_written_alike_are_told_apart(self):
        one = explanation(["a", "dog", "a"], ["a", "cat"])
        notes = {bar.note for bar in word_bars(one, 9) if bar.text == "a"}
        assert notes == {"first text, no. 1", "first text, no. 3", "second text"}
        assert {bar.note for bar in word_bars(explanation(["b", "c"]), 9)} == {""}


class TestBar:
    @pytest.mark.parametrize("name", CASES)
    def test_lengths_are_values_and_lines_are_intervals(self, name):
        figure, bars = bar_figure(CASES[name]), word_bars(CASES[name], 20)
        assert [end for _, end in arrows(figure)] == pytest.approx([bar.value for bar in bars])
        assert {start for start, _ in arrows(figure)} == {0.0}
        drawn = [line for line in values_axis(figure).lines if line.get_zorder() == 3]
        lines = [line.get_xdata() for line in drawn if len(set(line.get_ydata())) == 1]
        reach = DEVIATIONS * 0.01
        singles = [bar.value for bar in bars if bar.single]
        assert [low for low, _ in lines] == pytest.approx([value - reach for value in singles])
        assert [high for _, high in lines] == pytest.approx([value + reach for value in singles])

    def test_colours_are_those_of_the_words(self):
        one = CASES["short"]
        (of_words, *_), bars = one.plot("words").axes, values_axis(bar_figure(one)).patches
        order = sorted(range(4), key=lambda index: -abs(one.importance[index]))
        for index, bar in zip(order, bars, strict=True):
            assert bar.get_facecolor() == of_words.patches[index].get_facecolor()


class TestWaterfall:
    @pytest.mark.parametrize("name", CASES)
    def test_every_step_begins_where_the_last_one_ended(self, name):
        one = CASES[name]
        figure = waterfall_figure(one)
        steps = arrows(figure)
        values = [bar.value for bar in word_bars(one, 15)]
        assert [end for _, end in steps] == pytest.approx(list(accumulate(values, initial=one.base_value))[1:])
        assert steps[0][0] == pytest.approx(one.base_value)
        assert steps[-1][1] == pytest.approx(one.full_value)
        assert all(end == pytest.approx(start) for (_, end), (start, _) in pairwise(steps))
        shown = {text.get_text() for text in values_axis(figure).texts}
        assert {f"{value:.3f}".replace("-", "−") for value in (one.base_value, one.full_value)} <= shown

    def test_what_an_estimate_leaves_is_a_step_of_its_own(self):
        one = replace(CASES["short"], base_value=CASES["short"].base_value - 0.1, method="kernel-shap")
        figure = waterfall_figure(one)
        steps = arrows(figure)
        assert steps[-1][1] == pytest.approx(one.full_value)
        assert steps[-1][1] - steps[-1][0] == pytest.approx(0.1)
        assert any(text.get_text() == "left out" for text in figure.axes[0].texts)

    @pytest.mark.parametrize("kind", ["waterfall", "force"])
    def test_values_that_do_not_add_up_are_refused(self, kind):
        one = replace(CASES["short"], method="banzhaf", base_value=0.3)
        assert kind not in one.plots
        with pytest.raises(ValueError, match=re.escape(f"'{kind}' needs values that add up")):
            one.plot(kind)
        assert kind in replace(one, base_value=CASES["short"].base_value).plots  # as they do add up


class TestForce:
    @pytest.mark.parametrize("name", CASES)
    def test_pushes_meet_at_the_probability(self, name):
        one = CASES[name]
        pushes = force_pushes(one, 12)
        ups, downs = ([p for p in pushes if sign * p.bar.value > 0] for sign in (1, -1))
        assert ups[-1].end == pytest.approx(one.full_value)
        assert all(push.start < push.end for push in ups)
        assert all(push.start > push.end for push in downs)
        if downs:
            assert downs[0].end == pytest.approx(one.full_value)
        low = one.full_value - sum(value for value in one.importance if value > 0)
        high = one.full_value - sum(value for value in one.importance if value < 0)
        assert ups[0].start == pytest.approx(low)
        assert (pushes[-1].start if downs else one.full_value) == pytest.approx(high)
        assert low <= one.base_value <= high
        assert sum(push.bar.value for push in pushes) == pytest.approx(sum(one.importance))

    @pytest.mark.parametrize("name", ["short", "40 words", "against", "pair", "hostile", "128 words"])
    def test_no_label_covers_another_or_leaves_the_figure(self, name):
        figure = force_figure((CASES | every())[name])
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_ha() == "center"]
        assert len(boxes) > 4
        for index, box in enumerate(boxes):
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1
            assert box.y0 >= 0
            for other in boxes[index + 1 :]:
                beside = box.x1 <= other.x0 + 1 or other.x1 <= box.x0 + 1
                assert beside or box.y1 <= other.y0 + 3 or other.y1 <= box.y0 + 3


@pytest.mark.parametrize(
    ("draw", "name"),
    [(bar_figure, "hostile"), (bar_figure, "regression"), (waterfall_figure, "128 words"), (waterfall_figure, "noted")],
)
def test_every_label_is_within_the_figure(draw, name):
    figure = draw((CASES | every())[name])
    figure.canvas.draw()
    for axis in figure.axes:
        for text in axis.texts:
            box = text.get_window_extent()
            assert box.x0 >= -1, text.get_text()
            assert box.x1 <= figure.bbox.x1 + 1, text.get_text()


@pytest.mark.parametrize("kind", ["bar", "waterfall", "force"])
@pytest.mark.parametrize("name", ["regression", "against", "several labels"])
def test_what_is_explained_and_the_base_value_stand_in_each(kind, name):
    one = CASES[name]
    figure = one.plot(kind)
    shown = " ".join(text.get_text() for axis in figure.axes for text in axis.texts)
    assert canvas.heading(one) in shown
    assert f"no words {one.base_value:.3f}" in shown
