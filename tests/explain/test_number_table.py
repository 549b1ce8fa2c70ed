"""The table below an explained text in a terminal: headed by what the players are, in line, and no wider than asked."""

import pytest

from spinformer.explain.render.characters import display_width, fit
from spinformer.explain.render.number_table import number_table
from tests.explain.examples import explanation, scores_only

LONG = [f"Sentence number {k}, {'which goes on and on, ' * k}and ends here." for k in range(6)]
WIDE = ["漢字の文はとても長いので途中で切れます" * 3, "short", "e\u0301" * 40]


def rows(shown):
    """The lines of the words and those of the pairs, without headings."""
    words, _, pairs = shown.partition("\n\n  pairs\n")
    return words.splitlines(), pairs.splitlines()


@pytest.mark.parametrize(
    ("players", "heading"),
    [("words", "word"), ("sentences", "sentence"), ("spans", "span"), ("hierarchical", "part")],
)
def test_headed_by_what_the_players_are(players, heading):
    assert number_table(explanation(["a", "b"], players=players), 5, 80).split()[0] == heading


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("texts", [LONG, WIDE, ["a", "man", "sleeps"]])
def test_in_line_and_within_the_width(texts, width):
    words, pairs = rows(number_table(explanation(texts, players="sentences"), 5, width))
    assert len({display_width(line) for line in words}) == 1
    assert len({display_width(line[: line.rindex("  ")]) for line in pairs}) == 1
    assert max(map(display_width, [*words, *pairs])) <= width


def test_long_names_are_cut_where_room_ends():
    words, pairs = rows(number_table(explanation(LONG, players="sentences"), 6, 80))
    assert any("…" in line for line in words)
    assert any("…" in line for line in pairs)
    words, pairs = rows(number_table(explanation(LONG, players="sentences"), 6, 1000))
    assert all(any(text in line for line in words) for text in LONG)
    assert not any("…" in line for line in [*words, *pairs])


def test_a_short_name_leaves_its_room_to_the_other():
    _, pairs = rows(number_table(explanation(["no", LONG[5]], players="sentences"), 5, 80))
    assert pairs[0].startswith(f"  no - {LONG[5][:30]}")


def test_words_as_ever():
    one = explanation(["not", "bad"])
    words, pairs = rows(number_table(one, 5, 80))
    assert words[0].split() == ["word", "Shapley", "±", "Banzhaf", "attention"]
    top = one.top_words(1)[0]
    assert words[1].startswith(f"  {top.text:<16}{top.importance:>+11.3f}{top.importance_stderr:>8.3f}")
    assert pairs[0].startswith(f"  {'not - bad':<32}{one.top_pairs(1)[0][2]:>+9.3f}  ")


def test_scores_alone():
    words, pairs = rows(number_table(scores_only(["a", "b"]), 3, 80))
    assert words[0].split() == ["word", "importance"]
    assert not pairs


def test_fit():
    assert fit("abcd", 4) == "abcd"
    assert fit("abcde", 4) == "abc…"
    assert fit("ab cde", 4) == "ab…"
    assert fit("漢字漢字", 6) == "漢字…"
    assert display_width(fit("漢字漢字", 7)) <= 7
