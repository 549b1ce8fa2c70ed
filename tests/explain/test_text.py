"""Explanations as text: `print` shows a few plain lines, a terminal coloured words; the scales of colours."""

import re
from dataclasses import replace

import pytest

from spinformer._base.characters import printable
from spinformer.explain.record import Pair
from spinformer.explain.render.characters import display_width, shorten
from spinformer.explain.render.layout import base_line
from spinformer.explain.render.scale import scales_of, shared_scales
from spinformer.explain.render.text import AGAINST, FOR, colored_text, plain_text
from tests.explain.examples import every, explanation, scored, scores_only

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class TestPlain:
    def test_what_print_shows(self):
        one = explanation(
            ["not", "bad"],
            ["good"],
            label="yes",
            passes=512,
            probabilities={"yes": 0.7, "no": 0.3},
            pairs=(Pair(0, 1, 0.25, 0.01), Pair(0, 2, -0.5), Pair(1, 2, 0.0, 0.0)),
        )
        one = replace(one, base_value=0.7 - sum(one.importance))
        first, second, third = sorted(one.words, key=lambda word: -abs(word.importance))
        widths = {"not": "not ", "bad": "bad ", "good": "good"}
        sides = ("first text", "second text")
        assert str(one).splitlines() == [
            "yes (70.0%)",
            base_line(one, str),
            "words by Shapley value ± standard error:",
            *(
                f"  {widths[word.text]}  {word.importance:+.3f} ± {word.importance_stderr:.3f}  {sides[word.side]}"
                for word in (first, second, third)
            ),
            "pairs of words by Shapley interaction:",
            "  not – good  -0.500          antagonism",
            "  not – bad   +0.250 ± 0.010  synergy",
            "method shapley, 512 passes of the classifier",
        ]

    def test_count(self):
        one = every()["128 words"]
        lines = plain_text(one, count=3).splitlines()
        assert [line.split()[0] for line in lines[3:6]] == [word.text for word in one.top_words(3)]
        assert len(lines) == 3 + 3 + 1 + 3 + 1
        with pytest.raises(ValueError, match="k must be an integer of at least 1; got 0"):
            plain_text(one, count=0)

    def test_scores_alone(self):
        text = plain_text(scores_only(["not", "bad"]))
        assert "words by importance:\n  not  +0.300  text\n  bad  +0.100  text\n" in text
        assert text.endswith("method random, 1 pass of the classifier")
        assert not re.search("Shapley|±|pairs|no words", text)

    def test_another_class(self):
        lines = plain_text(every()["another class"]).splitlines()
        assert lines[0] == "for $it$ <i> (70.0%), explained for other & <u> (30.0%)"
        assert lines[1].startswith("probability of other & <u>: no words 0.300 ")

    def test_notes_come_before_all_numbers(self):
        one = scored(0.3, -0.1, notes=("first\x1b[31m", "second"))
        lines = plain_text(one).splitlines()
        assert lines[1:3] == ["Note: first\ufffd[31m", "Note: second"]
        assert colored_text(one).splitlines()[:4] == lines[:4]
        assert not re.search("Note|gate", plain_text(scored(0.3)))

    @pytest.mark.parametrize("name", every())
    def test_every_character_can_be_printed(self, name):
        assert all(line.isprintable() for line in plain_text(every()[name]).splitlines())

    def test_columns_stay_in_line(self):
        lines = plain_text(explanation(["漢字", "e\u0301", "word"])).splitlines()[3:6]
        assert len({display_width(line.split(" ± ")[0]) for line in lines}) == 1


class TestBase:
    def test_shapley_values_add_up_as_shown(self):
        """To the last digit, whatever rounding does to the three numbers."""
        for total in (0.25, 0.1234, 0.0005, -0.2996):
            line = base_line(scored(total / 2, total / 2), str)
            base, sign, words, result = re.search(r"no words (\S+) ([+−]) words (\S+) = (\S+)$", line).groups()
            assert float(base) + (1 if sign == "+" else -1) * float(words) == pytest.approx(float(result))
            assert float(words) == pytest.approx(abs(total), abs=0.001)

    def test_estimates_that_miss_say_so(self):
        line = base_line(scored(0.3, -0.1, base_value=0.1, method="kernel-shap"), str)
        assert line.endswith("no words 0.100 + words 0.200 = 0.300 (estimated; the classifier says 0.700)")

    def test_other_methods_do_not_add_and_some_do_not_know(self):
        line = base_line(scored(0.3, label="yes", probabilities={"yes": 0.7}, method="banzhaf"), str)
        assert line == "probability of yes: no words 0.400, all words 0.700"
        assert base_line(scored(0.3, base_value=None), str) == ""


class TestScales:
    def test_the_same_number_has_the_same_colour_in_every_text(self):
        one, other = scales_of(scored(0.2, 0.01)), scales_of(scored(0.2, 0.45), scored(0.001))
        assert one == other
        assert one.words.part(0.2) == -one.words.part(-0.2) == pytest.approx(0.4 ** (2 / 3))
        assert one.words.part(0.5) == one.words.part(0.9) == 1
        assert one.pairs == scales_of(explanation(["a", "b"])).pairs
        marks = ["≤ −0.5", "−0.2", "−0.05", "0", "+0.05", "+0.2", "≥ +0.5"]
        assert [one.words.label(mark) for mark in one.words.marks] == marks

    def test_other_units_have_scales_of_their_own(self):
        attention = scales_of(scored(0.9, method="attention")).words
        assert [attention.part(number) for number in (0.0, 0.5, 1.0)] == [-1, 0, 1]
        assert [attention.label(mark) for mark in attention.marks] == ["0", "0.3", "0.45", "0.5", "0.55", "0.7", "1"]
        layer = scales_of(scored(0.9, method="layer", base_value=None)).words
        assert (layer.part(1.0), layer.marks[0], layer.label(0.4)) == (1, 0, "0.4")
        assert scales_of(scored(0.1, method="an index of the game")).words == scales_of(scored(0.1)).words

    def test_numbers_without_a_size_are_scaled_by_the_largest_shown(self):
        loose = {"method": "gradient-times-input", "base_value": None, "pair_index": None}
        one, other = scored(0.003, -0.001, **loose), scored(0.012, **loose)
        assert scales_of(one).words.part(0.003) == 1
        shared = shared_scales([one, scored(0.1), other])
        assert shared["gradient-times-input"].words.part(0.012) == 1
        assert shared["shapley"] == scales_of(scored(0.4))
        assert scales_of(scored(0.0, **loose)).words.part(0.0) == 0
        assert "full colour at 0.003 (no fixed scale" in colored_text(one)
        assert not scales_of(explanation(["a", "b"], method="layer-field", base_value=None)).pairs.fixed


class TestColored:
    def test_a_text_that_decided_nothing_has_no_colour(self):
        assert "\x1b" not in colored_text(scored(0.01, -0.005, 0.002))
        assert colored_text(scored(0.2, 0.01)).count("\x1b[48") == 1

    def test_colours_follow_sign_and_size(self):
        one = explanation(["a", "b"], ["c"])
        line = {word.text: word.importance for word in one.words}
        scale = scales_of(one).words
        for text, importance in line.items():
            (match,) = re.findall(rf"(?:\x1b\[48;5;(\d+);38;5;16m)?{text}(?:\x1b\[0m)?(?= |$)", last_lines(one))
            depth = min(4, int(5 * abs(scale.part(importance))))
            assert match == ("" if depth == 0 else str((FOR if importance > 0 else AGAINST)[depth]))

    def test_lines_are_broken_at_the_width(self):
        one = every()["128 words"]
        lines = ESCAPES.sub("", colored_text(one, width=40)).splitlines()
        assert max(map(len, lines)) <= 42
        assert " ".join(lines).split()[-len(one.words) :] == [word.text for word in one.words]

    @pytest.mark.parametrize("name", every())
    def test_only_our_escapes_remain(self, name):
        text = ESCAPES.sub("", colored_text(every()[name]))
        assert all(line.isprintable() for line in text.splitlines())


def last_lines(one):
    return " ".join(colored_text(one).splitlines()[2:])


def test_characters():
    assert printable("a\x1b[31m\u202eb\n") == "a\ufffd[31m\ufffdb\ufffd"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
    assert display_width("漢e\u0301a") == 4
