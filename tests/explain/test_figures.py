"""Figures: what is drawn is what the explanation says, text stays text, files are the same every time; spins."""

import re
import sys
import threading
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text

from spinformer._base.characters import REPLACEMENT
from spinformer.explain import Explainer
from spinformer.explain.dynamics import sweep_temperature, trace_spins
from spinformer.explain.render import figures
from spinformer.explain.render.canvas import drawable_text, text_color_on
from spinformer.explain.render.scale import scales_of
from spinformer.explain.traces import TemperatureSweep
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.identity import weights_digest
from tests.explain import toys
from tests.explain.examples import HOSTILE, NOTE, every, explanation, scored

KINDS = ("words", "bar", "waterfall", "force", "pairs", "arcs")


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of older versions of matplotlib
        yield


@pytest.fixture(scope="module")
def explainer():
    """A classifier with a game of random weights, wide enough that words differ."""
    model = toys.bert()
    with torch.random.fork_rng():
        torch.manual_seed(3)
        config = GameHeadConfig(layers=(0, 1, 2), width=32, classes=3, heads=4, dim=16, hidden=32, readout=16)
        head = GameHead(GameHeadConfig(**{**vars(config), "model": weights_digest(model)})).eval()
    with torch.no_grad():
        head.readout.layers[-1].weight.mul_(8)
    return Explainer(model, toys.tokenizer(), game=head)


TEXT = ("the dog runs outside", "a cat sleeps not")


def texts_of(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


class TestEveryText:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [(name, kind) for name in every() for kind in ("words", "pairs", "arcs")]
        + [(name, kind) for name in ("one word", "zeros", "scores only") for kind in ("bar", "waterfall", "force")],
    )
    def test_is_drawn_without_a_warning(self, name, kind):
        """Bars of the other texts are in test_value_figures, files in TestFiles."""
        if kind not in every()[name].plots:
            assert name == "scores only"
            with pytest.raises(ValueError, match=r"needs values that add up .*; got method 'random'"):
                every()[name].plot(kind)
            return
        figure = every()[name].plot(kind)
        assert isinstance(figure, Figure)
        figure.set_dpi(40)  # few pixels are drawn sooner
        figure.canvas.draw()

    @pytest.mark.parametrize("kind", KINDS)
    def test_dollars_and_backslashes_are_no_formulas(self, kind):
        figure = explanation(["$x^2$", "\\$5"], ["$\\frac{1}", "b"]).plot(kind)
        figure.set_dpi(40)
        figure.canvas.draw()
        texts = [
            text for axis in figure.axes for text in (*axis.texts, *axis.get_xticklabels(), *axis.get_yticklabels())
        ]
        ours = [text for text in texts if "$" in text.get_text() and "mathdefault" not in text.get_text()]
        assert {"$x^2$", "\\$5", "$\\frac{1}"} <= {text.get_text() for text in ours}
        assert not any(text.get_parse_math() or text.get_usetex() for text in ours)

    def test_drawable_text(self):
        assert drawable_text("a\nb\tc\u00a0d") == "a b c d"
        assert drawable_text("\u202eevil\u202c") == f"{REPLACEMENT}evil{REPLACEMENT}"
        assert drawable_text("\U0001f469\u200d\U0001f469") == REPLACEMENT
        assert drawable_text("e\u0301 ä") == "e\u0301 ä"
        assert drawable_text("W" * 300, 20) == "W" * 19 + "…"
        assert all(mark.isprintable() for text in HOSTILE for mark in drawable_text(text))


class TestWhatComesFirst:
    @pytest.mark.parametrize("kind", KINDS)
    def test_notes_and_the_base_value_are_in_every_figure(self, kind):
        figure = every()["noted"].plot(kind)
        figure.canvas.draw()
        texts = [text for text in figure.findobj(Text) if text.get_text()]
        shown = " ".join(" ".join(text.get_text() for text in texts).split())
        assert f"Note: {NOTE} " in shown
        assert "Note: a long note a long note" in shown
        assert "no words 0.300" in shown
        ours = [text for text in texts if "$" in text.get_text()]
        assert not any(text.get_parse_math() for text in ours)
        assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in texts if "note" in text.get_text())

    @pytest.mark.parametrize("kind", every()["scores only"].plots)
    def test_what_is_not_known_is_not_said(self, kind):
        figure = every()["scores only"].plot(kind)
        assert not [text for text in figure.findobj(Text) if re.search("Note|no words", text.get_text())]


class TestWords:
    def test_all_words_wrapped_in_order(self):
        one = every()["128 words"]
        texts = texts_of(figures.words_figure(one))
        assert [text for text in texts if text.startswith(("word", "other"))] == [word.text for word in one.words]

    def test_nothing_leaves_the_figure(self):
        for one in (every()["128 words"], every()["hostile"]):
            figure = figures.words_figure(one)
            figure.canvas.draw()
            for text in figure.axes[0].texts:
                box = text.get_window_extent()
                assert box.x0 >= 0
                assert box.x1 <= figure.bbox.x1
                assert box.y0 >= 0

    def test_colours_follow_the_sign(self):
        one = every()["pair"]
        patches = figures.words_figure(one).axes[0].patches
        for word, patch in zip(one.words, patches, strict=True):
            red, _, blue, _ = patch.get_facecolor()
            assert (blue > red) == (word.importance > 0)

    def test_the_bar_names_the_score_and_the_class(self):
        fixed = "(one scale for all texts)"
        bar = figures.words_figure(every()["pair"]).axes[1]
        assert bar.get_xlabel() == f"Shapley value: against the decision ← → for it\n{fixed}"
        assert [label.get_text() for label in bar.get_xticklabels()][::3] == ["−0.5", "0", "+0.5"]
        bar = figures.words_figure(every()["another class"]).axes[1]
        assert bar.get_xlabel() == f"Shapley value: against the class other & <u> ← → for it\n{fixed}"
        loose = scored(0.003, method="gradient-times-input", base_value=None)
        bar = figures.words_figure(replace(loose, words=tuple(replace(w, shapley=None) for w in loose.words))).axes[1]
        assert bar.get_xlabel().splitlines() == [
            "importance: against the decision ← → for it",
            "(no fixed scale: set by the largest number here)",
        ]
        figure = figures.words_figure(every()["scores only"])
        assert figure.axes[1].get_xlabel() == f"importance\n{fixed}"
        assert {"first text", "second text"} <= set(texts_of(figure))

    @pytest.mark.parametrize("draw", [figures.words_figure, figures.arcs_figure])
    def test_one_scale_for_all_texts(self, draw):
        """The same number has the same colour beside larger ones; a text of tiny numbers has no deep colour."""

        def colors(*scores):
            boxes = [p for p in draw(scored(*scores)).axes[0].patches if type(p).__name__ == "FancyBboxPatch"]
            return [patch.get_facecolor()[:3] for patch in boxes]

        (weak, _), (strong, same, _) = colors(0.01, -0.004), colors(0.2, 0.01, -0.6)
        assert weak == same
        assert all(min(color) > 0.85 for color in colors(0.01, -0.008, 0.002))
        assert min(strong) < 0.6

    def test_text_color(self):
        assert text_color_on((0, 0, 0)) == "white"
        assert text_color_on((1, 1, 1)) != "white"


class TestPairs:
    def test_the_map_holds_the_interactions(self):
        one = every()["pair"]
        figure = figures.pairs_figure(one)
        cells = torch.tensor(figure.axes[0].images[0].get_array().filled(0).tolist())
        torch.testing.assert_close(cells, torch.tensor(one.interactions), atol=1e-6, rtol=0)
        assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [word.text for word in one.words]
        norm = figure.axes[0].images[0].norm
        assert (norm.vmin, norm.vmax) == (-0.5, 0.5)
        parts = [2 * float(norm(number)) - 1 for number in (-0.5, -0.01, 0.0, 0.2)]
        assert parts == pytest.approx([scales_of(one).pairs.part(number) for number in (-0.5, -0.01, 0.0, 0.2)])
        label = "Shapley interaction: antagonism ← → synergy\n(one scale for all texts)"
        assert figure.axes[1].get_ylabel() == label
        in_first = sum(word.side == 0 for word in one.words)
        assert in_first - 0.5 in [line.get_ydata()[0] for line in figure.axes[0].lines]

    def test_many_words_and_the_title(self):
        one = every()["128 words"]
        figure = figures.pairs_figure(one, max_words=40)
        labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
        best = {word.text for word in one.top_words(40)}
        assert labels == [word.text for word in one.words if word.text in best]
        assert "the 40 most important of 128 words" in figure.axes[0].get_title()

    def test_words_of_unknown_pairs_are_left_out(self):
        one = every()["128 words"]
        few = replace(one, pairs=tuple(pair for pair in one.pairs if {pair.first, pair.second} <= {3, 50, 90}))
        figure = figures.pairs_figure(few, max_words=40)
        labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
        assert labels == [one.words[position].text for position in (3, 50, 90)]

    def test_arcs_are_the_strongest_pairs(self):
        one = every()["pair"]
        figure = figures.arcs_figure(one, max_pairs=5)
        curves = [patch for patch in figure.axes[0].patches if type(patch).__name__ == "PathPatch"]
        strongest = sorted(one.pairs, key=lambda pair: -abs(pair.interaction))[:5]
        assert len(curves) == 5
        for pair, curve in zip(reversed(strongest), curves, strict=True):
            red, _, blue, _ = curve.get_edgecolor()
            assert (blue > red) == (pair.interaction > 0)
            assert (curve.get_linestyle() in ("-", "solid")) == (pair.interaction > 0)
        widths = [curve.get_linewidth() for curve in curves]
        assert widths == sorted(widths)

    def test_words_without_arcs_become_dots(self):
        one = every()["128 words"]
        texts = texts_of(figures.arcs_figure(one, max_pairs=12))
        linked = {word.text for pair in one.top_pairs(12) for word in pair[:2]}
        assert {text for text in texts if text.startswith(("word", "other"))} == linked
        assert "…" in texts

    def test_bad_numbers(self):
        with pytest.raises(ValueError, match="max_words must be an integer of at least 1"):
            figures.pairs_figure(every()["pair"], max_words=0)
        with pytest.raises(ValueError, match="max_pairs must be an integer of at least 1"):
            figures.arcs_figure(every()["pair"], max_pairs=0)
        with pytest.raises(ValueError, match="kind must be one of 'words', 'bar', 'waterfall', 'force', 'pairs'"):
            every()["pair"].plot("cloud")


class TestFiles:
    @pytest.mark.parametrize(
        ("kind", "suffix"), [*((kind, "svg") for kind in KINDS), ("words", "png"), ("arcs", "png")]
    )
    def test_the_same_bytes_every_time(self, kind, suffix, tmp_path):
        before = matplotlib.rcParams["svg.hashsalt"]
        one, other = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
        every()["pair"].plot(kind, one)
        every()["pair"].plot(kind, other)
        assert one.read_bytes() == other.read_bytes()
        assert matplotlib.rcParams["svg.hashsalt"] == before
        if suffix == "svg":
            assert ElementTree.parse(one).getroot().tag.endswith("svg")
            assert b"dc:date" not in one.read_bytes()

    @pytest.mark.parametrize("name", ["one.pdf", "one", "one.jpg"])
    def test_other_suffixes(self, name, tmp_path):
        with pytest.raises(ValueError, match=r"'.png', '.svg'; got"):
            every()["one word"].plot("words", tmp_path / name)
        assert not (tmp_path / name).exists()

    def test_without_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ModuleNotFoundError, match=r"spinformer\[plot\]"):
            figures.check_matplotlib()
        with pytest.raises(ModuleNotFoundError, match=r"spinformer\[plot\]"):
            every()["pair"].plot()
        assert every()["pair"].to_html().startswith("<!doctype html>")

    def test_threads_draw_at_once(self, tmp_path):
        every()["pair"].plot("arcs", tmp_path / "alone.svg")

        def draw(number):
            every()["pair"].plot("arcs", tmp_path / f"{number}.svg")

        threads = [threading.Thread(target=draw, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({(tmp_path / f"{number}.svg").read_bytes() for number in (0, 1, 2, 3, "alone")}) == 1


class TestSpins:
    def test_trace_ends_in_the_explanation(self, explainer):
        trace = trace_spins(explainer, *TEXT)
        one = explainer(*TEXT)
        assert trace.words == tuple(word.text for word in one.words)
        torch.testing.assert_close(torch.tensor(trace.attention), torch.tensor(one.attention), atol=1e-4, rtol=0)
        assert trace.converged
        assert set(trace.magnetization[0]) == {0.0}
        assert max(map(abs, trace.magnetization[-1])) > 0.01
        assert len(trace.residual) == len(trace.magnetization)

    def test_few_steps_do_not_converge_and_say_so(self, explainer):
        trace = trace_spins(explainer, *TEXT, steps=1)
        assert len(trace.residual) == 2
        assert not trace.converged
        assert "did not converge" in figures.convergence_figure(trace).axes[0].get_title()

    def test_convergence_draws_every_word(self, explainer, tmp_path):
        trace = trace_spins(explainer, *TEXT)
        figure = figures.convergence_figure(trace, max_words=3)
        above, below = figure.axes
        ends = sorted(line.get_ydata()[-1] for line in above.lines if len(line.get_xdata()) == len(trace.residual))
        assert ends == pytest.approx(sorted(trace.magnetization[-1]))
        assert below.get_yscale() == "log"
        assert len(above.texts) == 3
        assert figures.save_figure(figure, tmp_path / "one.svg").stat().st_size > 0

    def test_one_word_and_one_text(self, explainer, tmp_path):
        trace = trace_spins(explainer, "cat")
        assert trace.words == ("cat",)
        figures.save_figure(figures.convergence_figure(trace), tmp_path / "one.png")
        sweep = sweep_temperature(explainer, "cat", temperatures=[0.25])
        figures.save_figure(figures.temperature_figure(sweep), tmp_path / "two.png")

    def test_sweep_goes_from_decided_to_undecided(self, explainer):
        sweep = sweep_temperature(explainer, *TEXT, temperatures=[25, 0.25, 0.0025])
        assert sweep.temperatures == (0.0025, 0.25, 25)
        one = explainer(*TEXT)
        torch.testing.assert_close(torch.tensor(sweep.attention[1]), torch.tensor(one.attention), atol=1e-4, rtol=0)
        assert max(abs(value - 0.5) for value in sweep.attention[2]) < 0.02
        assert max(abs(value - 0.5) for value in sweep.attention[0]) > 0.49

    def test_sweep_says_where_it_did_not_converge(self):
        words = ("a", "b")
        attention = ((0.9, 0.1), (0.7, 0.3), (0.5, 0.5))
        sweep = TemperatureSweep(words, (0, 0), 0.25, (0.1, 0.25, 1.0), attention, (False, True, True))
        title = figures.temperature_figure(sweep).axes[0].get_title()
        assert "not reached at γ = 0.1" in title
        sound = TemperatureSweep(words, (0, 0), 0.25, (0.1, 0.25, 1.0), attention, (True, True, True))
        assert "reached at every temperature" in figures.temperature_figure(sound).axes[0].get_title()

    def test_bad_temperatures(self, explainer):
        for bad in ([], [0.1, 0.0], [-1.0]):
            with pytest.raises(ValueError, match="temperatures must"):
                sweep_temperature(explainer, *TEXT, temperatures=bad)
        with pytest.raises(ValueError, match="steps must"):
            trace_spins(explainer, *TEXT, steps=0)
