"""Explanations as text: `print` shows a few plain lines, a terminal coloured words."""

import re

import pytest

from spinformer.explain.record import Pair
from spinformer.explain.render.characters import display_width, printable, shorten
from spinformer.explain.render.text import AGAINST, FOR, colored_text, plain_text
from tests.explain.examples import every, explanation, scores_only

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
        first, second, third = sorted(one.words, key=lambda word: -abs(word.importance))
        widths = {"not": "not ", "bad": "bad ", "good": "good"}
        sides = ("first text", "second text")
        assert str(one).splitlines() == [
            "yes (70.0%)",
            "probability of yes with no word at all: 30.0%",
            "words by Shapley value ± standard error:",
            *(
                f"  {widths[word.text]}  {word.importance:+.3f} ± {word.importance_stderr:.3f}  {sides[word.side]}"
                for word in (first, second, third)
            ),
            "pairs of words by interaction:",
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
        assert not re.search("Shapley|±|pairs|no word at all", text)

    def test_another_class(self):
        lines = plain_text(every()["another class"]).splitlines()
        assert lines[0] == "for $it$ <i> (70.0%), explained for other & <u> (30.0%)"
        assert lines[1] == "probability of other & <u> with no word at all: 30.0%"

    @pytest.mark.parametrize("name", every())
    def test_every_character_can_be_printed(self, name):
        assert all(line.isprintable() for line in plain_text(every()[name]).splitlines())

    def test_columns_stay_in_line(self):
        lines = plain_text(explanation(["漢字", "e\u0301", "word"])).splitlines()[3:6]
        assert len({display_width(line.split(" ± ")[0]) for line in lines}) == 1


class TestColored:
    def test_colours_follow_sign_and_size(self):
        one = explanation(["a", "b"], ["c"])
        line = {word.text: word.importance for word in one.words}
        largest = max(map(abs, line.values()))
        for text, importance in line.items():
            (match,) = re.findall(rf"(?:\x1b\[48;5;(\d+);38;5;16m)?{text}(?:\x1b\[0m)?(?= |$)", last_lines(one))
            depth = min(4, int(5 * abs(importance) / largest))
            assert match == ("" if depth == 0 else str((FOR if importance > 0 else AGAINST)[depth]))

    def test_lines_are_broken_at_the_width(self):
        one = every()["128 words"]
        lines = ESCAPES.sub("", colored_text(one, width=40)).splitlines()
        assert max(map(len, lines)) <= 42
        assert " ".join(lines[1:]).split() == [word.text for word in one.words]

    @pytest.mark.parametrize("name", every())
    def test_only_our_escapes_remain(self, name):
        text = ESCAPES.sub("", colored_text(every()[name]))
        assert all(line.isprintable() for line in text.splitlines())


def last_lines(one):
    return " ".join(colored_text(one).splitlines()[1:])


def test_characters():
    assert printable("a\x1b[31m\u202eb\n") == "a\ufffd[31m\ufffdb\ufffd"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
    assert display_width("漢e\u0301a") == 4
