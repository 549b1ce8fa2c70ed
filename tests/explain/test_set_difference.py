"""Two models on the same texts: differences against plain Python, other decisions, pages, and the command."""

import json
import math
import statistics

import pytest

from spinformer.cli import main
from spinformer.explain import ExplanationSet
from tests.explain.test_explanation_set import review
from tests.explain.test_html import Page

FIRST = [
    review("a fine film", (0.1, 0.5, 0.1), pairs=[(0, 1, 0.2)]),
    review("fine but long", (0.3, -0.1, 0.0), pairs=[(0, 1, 0.1)]),
    review("a fine cast", (0.0, 0.6, 0.1)),
    review("long and dull", (0.2, 0.0, 0.5), "bad"),
]
SECOND = [
    review("a fine film", (0.1, 0.2, 0.3), pairs=[(0, 1, -0.1)]),
    review("fine but long", (0.1, -0.1, 0.2), pairs=[(0, 1, 0.1)]),
    review("a fine cast", (0.0, -0.3, 0.5), "bad"),
    review("long and dull", (0.2, 0.1, 0.4), "bad"),
    review("another text here", (0.2, 0.1, 0.4), "bad"),
]


@pytest.fixture(scope="module")
def difference():
    return ExplanationSet(FIRST).compare(ExplanationSet(SECOND), ("mine", "theirs"))


def test_words_are_compared_text_by_text(difference):
    """Over the texts that both explain for the same class: "a fine cast" is explained for another."""
    assert (difference.count, difference.compared) == (4, 3)
    (fine,) = [word for word in difference.words if word.text == "fine"]
    steps = [0.5 - 0.2, 0.3 - 0.1]
    assert fine.mean == pytest.approx(statistics.mean(steps))
    assert fine.stderr == pytest.approx(statistics.stdev(steps) / math.sqrt(2))
    assert (fine.first_mean, fine.second_mean) == (pytest.approx(0.4), pytest.approx(0.15))
    misfits = [math.hypot(0.05, 0.02), math.hypot(0.03, 0.01)]
    assert fine.misfit_stderr == pytest.approx(statistics.mean(misfits))
    assert difference.words[0].text == "fine"


def test_pairs_and_other_decisions(difference):
    (pair,) = [one for one in difference.pairs if (one.first, one.second) == ("a", "fine")]
    assert pair.mean == pytest.approx(0.2 - -0.1)
    (apart,) = difference.disagreements
    assert (apart.index, apart.first.label, apart.second.label) == (2, "good", "bad")
    assert apart.gap == pytest.approx(((0.9 - 0.1) + (0.9 - 0.1)) / 2)


def test_a_set_does_not_differ_from_itself():
    own = ExplanationSet(FIRST)
    same = own.compare(own)
    assert all(word.mean == 0 for word in same.words)
    assert same.disagreements == ()
    assert "No difference is larger than rounding" in same.to_html()


def test_shown(difference, tmp_path):
    text = str(difference)
    assert "mine and theirs on 4 texts: they decide differently in 1 (25.0%)" in text
    assert "fine" in text
    page = Page(difference.to_html(tmp_path / "d.html"))
    assert {"mine", "theirs", "fine"} <= set(page.bdi)
    assert "Decided differently" in "".join(page.text)
    assert (tmp_path / "d.html").read_text() == difference.to_html()
    assert "<iframe sandbox" in difference._repr_html_()
    frame = difference.to_frame()
    assert frame.iloc[0]["word"] == "fine"
    assert len(difference.to_frame("pairs")) == len(difference.pairs)
    figure = difference.plot("words", tmp_path / "d.svg")
    lengths = sorted(patch.get_width() for patch in figure.axes[0].patches)
    assert lengths == pytest.approx(sorted(word.mean for word in difference.words))


def test_errors():
    own = ExplanationSet(FIRST)
    with pytest.raises(ValueError, match="two that share none"):
        own.compare(ExplanationSet([SECOND[-1]]))
    with pytest.raises(TypeError, match="other must be of class ExplanationSet"):
        own.compare(FIRST)
    with pytest.raises(ValueError, match="names must be those of two models"):
        own.compare(own, ("one",))


class TestCommand:
    @pytest.fixture
    def files(self, tmp_path):
        for name, explanations in (("one", FIRST), ("two", SECOND)):
            rows = [json.dumps(one.to_row(number)) + "\n" for number, one in enumerate(explanations)]
            (tmp_path / f"{name}.jsonl").write_text("".join(rows))
        (tmp_path / "texts.csv").write_text("text,country\n" + "".join(f"t,{c}\n" for c in ("FR", "NZ", "NZ", "FR")))
        return tmp_path

    def test_one_file(self, files, capsys):
        words = ["--html", str(files / "page.html"), "--cohorts", str(files / "texts.csv"), "country"]
        assert main(["overview", str(files / "one.jsonl"), *words]) == 0
        assert "4 explanations of 2 class(es)" in capsys.readouterr().out
        assert {"FR", "NZ"} <= set(Page((files / "page.html").read_text()).bdi)

    def test_two_files(self, files, capsys):
        figures = files / "figures"
        words = [str(files / "one.jsonl"), str(files / "two.jsonl"), "--html", str(files / "d.html")]
        assert main(["overview", *words, "--figures", str(figures)]) == 0
        assert "one and two on 4 texts" in capsys.readouterr().out
        assert {path.name for path in figures.iterdir()} == {"words.png", "pairs.png"}

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (["none.jsonl"], "no file"),
            (["one.jsonl", "--html", "page.pdf"], "ends in .html; got page.pdf"),
            (["one.jsonl", "--names", "a", "b"], "--names are those of two classifiers"),
            (
                ["one.jsonl", "two.jsonl", "--cohorts", "texts.csv", "country"],
                "--cohorts are for the explanations of one",
            ),
            (["one.jsonl", "--cohorts", "texts.csv", "town"], "has no column town"),
        ],
    )
    def test_errors(self, files, capsys, monkeypatch, words, reason):
        monkeypatch.chdir(files)
        assert main(["overview", *words]) == 2
        assert reason in capsys.readouterr().err
