"""Sets of explanations: every number against plain Python, files of three formats, cohorts, unusual texts, pages."""

import csv
import json
import math
import statistics
from dataclasses import replace

import pytest

from spinformer.explain import Explanation, ExplanationSet, Pair, Word
from spinformer.explain.aggregate import PRIOR, deviations, mean_and_stderr
from spinformer.explain.exchange import ROW
from spinformer.explain.rows import load_explanations
from tests.explain.examples import HOSTILE, explanation, scored
from tests.explain.test_html import Page

LABELS = ("good", "bad")


def review(text, scores, label="good", pairs=(), **changes) -> Explanation:
    """One text with these Shapley values, misfit a tenth of each."""
    names = text.split()
    words = tuple(
        Word(name, 0, score, 0.02, abs(score) / 10, score, 0.02) for name, score in zip(names, scores, strict=True)
    )
    other = LABELS[label == "good"]
    fields = {
        "texts": (text,),
        "label": label,
        "target": label,
        "probabilities": {label: 0.9, other: 0.1},
        "words": words,
        "pairs": tuple(Pair(*pair, 0.01, 0.005) for pair in pairs),
        "base_value": 0.9 - sum(scores),
        "method": "shapley",
        "passes": 1,
        "samples": 0,
        "pair_index": "SII" if pairs else None,
    }
    return Explanation(**{**fields, **changes})


@pytest.fixture(scope="module")
def reviews():
    return ExplanationSet(
        [
            review("A fine film", (0.01, 0.4, 0.05), pairs=[(1, 2, 0.3), (0, 1, 0.02), (0, 2, 0.0)]),
            review("fine but long", (0.2, -0.1, -0.05), pairs=[(0, 1, -0.1)]),
            review("a FINE fine cast", (0.02, 0.3, 0.1, 0.03), pairs=[(1, 2, -0.2)]),
            review("long and dull", (0.2, 0.0, 0.5), "bad"),
            review("a dull film", (0.01, 0.6, 0.02), "bad", pairs=[(1, 2, 0.1)]),
            review("dull fine dull", (0.3, -0.4, 0.2), "bad"),
        ]
    )


class TestMeans:
    def test_words_over_all_texts(self, reviews):
        """Values of a word that a text has twice are added; then come mean, standard error and share."""
        (fine,) = [word for word in reviews.words() if word.text == "fine"]
        values = [0.4, 0.2, 0.3 + 0.1, -0.4]
        sizes = [abs(value) for value in values]
        assert (fine.count, fine.clusters, fine.side) == (4, 4, 0)
        assert fine.mean == pytest.approx(statistics.mean(values))
        assert fine.stderr == pytest.approx(statistics.stdev(values) / 2)
        assert fine.mean_abs == pytest.approx(statistics.mean(sizes))
        assert fine.mean_abs_stderr == pytest.approx(statistics.stdev(sizes) / 2)
        assert fine.misfit_stderr == pytest.approx(statistics.mean([0.04, 0.02, 0.04, 0.04]))
        total = sum(
            abs(sum(w.importance for w in one.words if w.text.lower() == name))
            for one in reviews
            for name in {word.text.lower() for word in one.words}
        )
        assert fine.share == pytest.approx(sum(sizes) / total)
        assert sum(word.share for word in reviews.words()) == pytest.approx(1)

    def test_the_interval_draws_on_what_words_vary_by(self, reviews):
        """s² is the variance within words, over all of them, and counts as PRIOR texts."""
        values = {}
        for one in reviews:
            row = {}
            for word in one.words:
                row[word.text.lower()] = row.get(word.text.lower(), 0.0) + word.importance
            for name, value in row.items():
                values.setdefault(name, []).append(value)
        squares = sum(statistics.pvariance(column) * len(column) for column in values.values())
        within = squares / sum(len(column) - 1 for column in values.values())
        for word in reviews.words():
            count = len(values[word.text])
            error = 0.0 if count == 1 else statistics.variance(values[word.text]) / count
            pooled = (PRIOR * within / count + (count - 1) * error) / (PRIOR + count - 1)
            assert word.reach == pytest.approx(deviations(PRIOR + count - 1) * math.sqrt(pooled))
            assert (word.stderr is None) == (count == 1)
            assert word.reach_with_misfit == pytest.approx(math.hypot(word.reach, 1.96 * word.misfit_stderr))

    def test_students_t(self):
        """Against the quantiles of scipy, which the tests have through scikit-learn."""
        stats = pytest.importorskip("scipy.stats")
        for degrees in (*range(1, 40), 60, 100, 1000):
            assert deviations(degrees) == pytest.approx(float(stats.t.ppf(0.975, degrees)), abs=0.01)

    def test_explanations_of_one_text_are_one_cluster(self):
        """Each text twice doubles the number, and must not make the mean look surer than it is."""
        values, clusters = [0.1, 0.4, 0.2, 0.7], ["a", "b", "c", "d"]
        assert mean_and_stderr(values * 2, clusters * 2) == pytest.approx(mean_and_stderr(values, clusters))
        twice = [0.1, 0.3, 0.5, 0.2]
        mean, error = mean_and_stderr(twice, ["a", "a", "b", "b"])
        sums = [twice[0] + twice[1] - 2 * mean, twice[2] + twice[3] - 2 * mean]
        assert error == pytest.approx(math.sqrt(2 / 1 * sum(part**2 for part in sums)) / 4)
        assert mean_and_stderr([0.3, 0.5], ["a", "a"]) == (pytest.approx(0.4), None)

    def test_the_standard_error_covers_the_mean(self):
        """Of 400 samples of 12 texts, the mean lies within t standard errors in 95% of cases (bound: 4 sigma)."""
        import random

        draw, hits, times = random.Random(0), 0, 400
        for _ in range(times):
            mean, error = mean_and_stderr([draw.gauss(0.3, 0.2) for _ in range(12)], list(range(12)))
            hits += abs(mean - 0.3) <= deviations(11) * error
        assert abs(hits / times - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / times)

    def test_pairs(self, reviews):
        (pair,) = [one for one in reviews.pairs() if (one.first, one.second) == ("film", "fine")]
        assert (pair.count, pair.mean, pair.stderr) == (1, 0.3, None)
        (same,) = [one for one in reviews.pairs() if (one.first, one.second) == ("fine", "fine")]
        assert same.mean == -0.2
        assert reviews.pairs()[0].count == 1

    def test_order_and_selection(self, reviews):
        by_count = reviews.words(by="count")
        assert [word.count for word in by_count] == sorted((word.count for word in by_count), reverse=True)
        assert [word.text for word in reviews.words(2, by="share")] == ["dull", "fine"]
        assert all(word.count >= 3 for word in reviews.words(min_count=3))
        sure = [word.lower for word in reviews.words()]
        assert sure == sorted(sure, reverse=True)

    def test_words_as_the_caller_counts_them(self, reviews):
        own = ExplanationSet(reviews, normal=lambda text: text[0].lower())
        assert {word.text for word in own.words()} == {"a", "f", "b", "l", "c", "d"}


class TestGroups:
    def test_classes(self, reviews):
        classes = reviews.by_class()
        assert {name: len(group) for name, group in classes.items()} == {"bad": 3, "good": 3}
        (dull,) = [word for word in classes["bad"].words() if word.text == "dull"]
        assert dull.mean == pytest.approx(statistics.mean([0.5, 0.6, 0.5]))
        both = ExplanationSet([replace(reviews[0], against="bad"), reviews[3]])
        assert set(both.by_class()) == {"good against bad", "bad"}

    def test_cohorts_by_a_function_and_by_a_column(self, reviews):
        by_length = reviews.cohorts(lambda one: len(one.words))
        assert {name: len(group) for name, group in by_length.items()} == {"3": 5, "4": 1}
        by_column = reviews.cohorts(["x", "y", "x", "y", "x", "y"])
        assert [one.texts[0] for one in by_column["y"]] == ["fine but long", "long and dull", "dull fine dull"]
        with pytest.raises(ValueError, match="a value for each of 6 explanations; got 2"):
            reviews.cohorts(["x", "y"])

    def test_as_a_sequence(self, reviews):
        assert len(reviews) == 6
        assert reviews[1].texts == ("fine but long",)
        assert len(reviews[2:4]) == 2
        assert isinstance(reviews[2:4], ExplanationSet)
        assert "6 explanations" in repr(reviews)


def oracle_distances(texts):
    """The distances of `unusual`, from lists of {word: value}, by the equations of its docstring."""
    values = {}
    for row in texts:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    flat = [value for column in values.values() for value in column]
    mu, count, groups = statistics.mean(flat), len(flat), len(values)
    within = sum((x - statistics.mean(c)) ** 2 for c in values.values() for x in c) / (count - groups)
    between = sum(len(c) * (statistics.mean(c) - mu) ** 2 for c in values.values()) / (groups - 1)
    size = (count - sum(len(c) ** 2 for c in values.values()) / count) / (groups - 1)
    tau = max(0.0, (between - within) / size)
    distances = []
    for row in texts:
        parts = []
        for name, value in row.items():
            others = list(values[name])
            others.remove(value)
            n, xbar = len(others), statistics.mean(others) if others else mu
            usual = mu + (xbar - mu) * n * tau / (n * tau + within)
            parts.append((value - usual) ** 2 / (within + tau * within / (n * tau + within)))
        distances.append(math.sqrt(statistics.mean(parts)))
    return distances


class TestUnusual:
    def test_distances_are_those_of_the_equations(self, reviews):
        found = {text.index: text.distance for text in reviews.unusual()}
        bad = [
            {"long": 0.2, "and": 0.0, "dull": 0.5},
            {"a": 0.01, "dull": 0.6, "film": 0.02},
            {"dull": 0.5, "fine": -0.4},
        ]
        assert [found[index] for index in (3, 4, 5)] == pytest.approx(oracle_distances(bad))

    def test_a_text_that_is_decided_otherwise_comes_first(self):
        usual = [review(f"dull film number{i}", (0.5 + i / 100, 0.05, 0.0), "bad") for i in range(8)]
        strange = review("dull film again", (-0.1, 0.6, 0.0), "bad")
        (first, *_) = ExplanationSet([*usual, strange]).unusual(3)
        assert first.index == 8
        assert {one.text for one in first.deviations[:2]} == {"dull", "film"}
        assert first.deviations[0].count == 8
        assert first.distance > 2
        (dull,) = [one for one in first.deviations if one.text == "dull"]
        assert dull.value == -0.1
        assert 0.4 < dull.usual < 0.6

    def test_too_few_texts_have_nothing_usual(self, reviews):
        assert ExplanationSet(reviews[:2]).unusual() == []

    def test_texts_that_are_all_alike(self):
        same = ExplanationSet([review(f"x y{i}", (0.2, 0.2)) for i in range(4)])
        assert [text.distance for text in same.unusual()] == [0.0] * 4


class TestFiles:
    def test_every_format_gives_the_explanations_back(self, reviews, tmp_path):
        rows = [one.to_row(number) for number, one in enumerate(reviews)]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with (tmp_path / "a.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, list(ROW))
            table.writeheader()
            cells = [{n: json.dumps(v) if isinstance(v, list | dict) else v for n, v in row.items()} for row in rows]
            table.writerows(cells)
        (tmp_path / "saved").mkdir()
        for number, one in enumerate(reviews):
            one.save(tmp_path / "saved" / f"{number}.json")
        for name in ("a.jsonl", "a.csv", "saved"):
            assert list(ExplanationSet.load(tmp_path / name)) == list(reviews)

    def test_what_is_no_row(self, reviews, tmp_path):
        path = tmp_path / "bad.jsonl"
        row = reviews[0].to_row()
        for change, reason in (
            ({"importance": [0.1]}, "lists of a row must be of one length"),
            ({"words": "no list"}, "expected the row of an explanation"),
            ({"probabilities": {"good": math.nan}}, "probabilities must be numbers"),
            ({"sides": [0, 0, 5]}, "side must be"),
            ({"passes": "many"}, "expected the row"),
            ({"label": 3}, "expected a text; got 3"),
        ):
            path.write_text(json.dumps(row) + "\n" + json.dumps({**row, **change}) + "\n")
            with pytest.raises(ValueError, match=rf"bad.jsonl:2: .*{reason}"):
                load_explanations(path)
        path.write_text(json.dumps({"text": "a"}) + "\n")
        with pytest.raises(ValueError, match=r"bad.jsonl has no column row, text_pair"):
            load_explanations(path)
        with pytest.raises(ValueError, match=r"file .jsonl, .csv, .parquet, or a folder"):
            load_explanations(tmp_path / "x.txt")
        with pytest.raises(FileNotFoundError, match="no file"):
            load_explanations(tmp_path / "x.jsonl")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ValueError, match="without saved explanations"):
            load_explanations(tmp_path / "empty")


class TestShown:
    def test_print(self, reviews):
        lines = str(reviews).splitlines()
        assert lines[0] == "6 explanations of 2 class(es), method shapley"
        assert any(line.split()[:2] == ["dull", "+0.533"] for line in lines)
        assert "over the texts that list the pair" in str(reviews)
        assert str(reviews).isprintable() or all(line.isprintable() for line in lines)

    def test_frames(self, reviews):
        words = reviews.to_frame()
        assert len(words[words["class"].isna()]) == len(reviews.words())
        row = words[(words["class"] == "bad") & (words["word"] == "dull")].iloc[0]
        assert row["mean"] == pytest.approx(1.6 / 3)
        texts = reviews.to_frame("texts")
        assert list(texts["text"]) == [one.texts[0] for one in reviews]
        assert {"first", "second", "mean"} <= set(reviews.to_frame("pairs").columns)
        with pytest.raises(ValueError, match="kind must be one of 'words', 'pairs', 'texts'"):
            reviews.to_frame("cloud")

    def test_the_page_is_safe_and_whole(self, reviews, tmp_path):
        hostile = [explanation(list(HOSTILE[:10]), list(HOSTILE[10:]), seed=seed, notes=("<b>x",)) for seed in range(4)]
        source = ExplanationSet(hostile).to_html(title="<script>", cohorts=["<i>", "b", "<i>", "b"])
        page = Page(source)
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"script", "iframe", "object", "embed", "form", "img", "link", "base", "i"}
        assert not any(
            name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes
        )
        assert {"<i>", "<b>x", "<script>"} <= set(page.bdi)
        assert reviews.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
        text = "".join(Page(reviews.to_html()).text)
        assert "+0.533 ± 0.033" in text
        assert "Texts with other reasons than usual" in text
        assert "<iframe sandbox" in reviews._repr_html_()

    def test_bars_of_the_page_have_the_lengths_of_the_means(self, reviews):
        from spinformer.explain.render.means import mean_table, word_row
        from spinformer.explain.render.scale import PROBABILITY

        words = reviews.by_class()["bad"].words()
        source = mean_table("", ("word", "mean"), [word_row(word, False) for word in words], PROBABILITY)
        bars = [attributes for tag, attributes in Page(source).elements if tag == "rect"]
        widths = [float(bar["width"]) for bar in bars]
        largest = max(range(len(words)), key=lambda index: abs(words[index].mean))
        unit = widths[largest] / abs(words[largest].mean)
        assert widths == pytest.approx([abs(word.mean) * unit for word in words], abs=0.11)

    @pytest.mark.parametrize("kind", ["words", "classes", "pairs"])
    def test_pictures(self, reviews, kind, tmp_path):
        figure = reviews.plot(kind, tmp_path / "one.png")
        assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
        assert len(figure.axes) == (2 if kind == "classes" else 1)
        if kind == "words":
            lengths = [patch.get_width() for patch in figure.axes[0].patches]
            assert lengths == pytest.approx([word.mean_abs for word in reviews.words(15)])
        with pytest.raises(ValueError, match="kind must be one of"):
            reviews.plot("arcs")


class TestErrors:
    def test_what_is_no_set(self):
        with pytest.raises(ValueError, match="at least one explanation; got none"):
            ExplanationSet([])
        with pytest.raises(TypeError, match="explanations must be a list of Explanation"):
            ExplanationSet(3)
        with pytest.raises(TypeError, match="each of explanations must be of class Explanation"):
            ExplanationSet([scored(0.1), "ab"])
        with pytest.raises(TypeError, match=r"ExplanationSet.load reads a file; got 'explained.parquet'"):
            ExplanationSet("explained.parquet")
        with pytest.raises(ValueError, match="one kind of score; got random, shapley"):
            ExplanationSet([scored(0.1), replace(scored(0.1), method="random")])
        with pytest.raises(ValueError, match="single texts or pairs; got 1, 2"):
            ExplanationSet([explanation(["a"]), explanation(["a"], ["b"])])
        ExplanationSet([scored(0.1), replace(scored(0.1), method="kernel-shap")])  # both are Shapley values
