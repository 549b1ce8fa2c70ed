"""The parts of the page without a browser: limits, markup, the attractor, the model that is meant."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch

from spinformer.app import film, limits, markup
from spinformer.app.classifier import Classifier
from spinformer.app.digits import Digits
from spinformer.app.heat import heat_svg
from spinformer.cli import main
from spinformer.models import shipped

ROOT = Path(__file__).parents[2]
BLANK = "00" * 784


@pytest.mark.parametrize(
    ("premise", "hypothesis", "said"),
    [
        ("", "a cat", "premise is empty"),
        ("a dog", " \u200b\u202e\n", "hypothesis is empty"),
        ("a dog", None, "hypothesis is empty"),
        ("a dog", {"path": "/etc/passwd"}, "hypothesis is empty"),
        ("x" * 601, "a cat", "may have 600 characters; this one has 601"),
        ("dog " * 31, "cat " * 30, "may have 60 words; these have 61"),
    ],
)
def test_texts_outside_of_the_limits(premise, hypothesis, said):
    with pytest.raises(ValueError, match=said):
        limits.check_texts(premise, hypothesis)


def test_texts_at_the_limits():
    assert limits.check_texts(" dog" * 30, "cat " * 30) == ("dog " * 29 + "dog", "cat " * 29 + "cat")
    assert limits.check_texts("x" * 600, "\U0001f600") == ("x" * 600, "\U0001f600")


@pytest.mark.parametrize("value", [None, "8", True, float("nan"), float("inf"), 7, 257, 8.5])
def test_numbers_outside_of_the_limits(value):
    with pytest.raises(ValueError, match="The number of samples must be"):
        limits.whole("The number of samples", value, *limits.SAMPLES)


@pytest.mark.parametrize(
    ("code", "kind", "amount", "said"),
    [
        (BLANK, "hide patches", 0.3, "The picture is empty"),
        (BLANK[2:], "hide patches", 0.3, "28 x 28"),
        ("zz" * 784, "hide patches", 0.3, "28 x 28"),
        ([1], "hide patches", 0.3, "28 x 28"),
        ("ff" * 784, "burn", 0.3, "one of: hide patches, add noise"),
        ("ff" * 784, "hide patches", 0.95, "from 0 to 0.9; got 0.95"),
        ("ff" * 784, "add noise", -1, "from 0 to 2; got -1"),
    ],
)
def test_pictures_outside_of_the_limits(code, kind, amount, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Digits().watch(code, kind, amount, 4, 1.0, 0)


def test_the_document_says_the_limits():
    text = " ".join((ROOT / "docs" / "app.md").read_text().split())
    for said in (
        f"{limits.CHARACTERS} characters and both together {limits.WORDS} words",
        f"{limits.SAMPLES[1]} coalitions, a trajectory {limits.STEPS[1]} steps, a request {limits.BYTES // 1024} KiB",
        f"{limits.QUEUE} requests may wait",
    ):
        assert said in text


@pytest.fixture(scope="module")
def explanation(model_folder):
    return Classifier.load(str(model_folder)).explain("<b>dog</b> & \u202ecat", "a man $x$", 0.5, 16)


def test_markup_shows_text_as_text(explanation):
    found = ElementTree.fromstring(markup.shown(explanation))
    words = ["".join(line.itertext()).split() for line in found.iter("p") if line.get("class") == "words"]
    assert words[0] + words[1] == [word.text for word in explanation.words]
    assert "".join(words[0]).startswith("<b>dog</b>&")
    assert len([node for node in found.iter("div") if node.get("class", "").startswith("bar")]) == 3
    assert not list(found.iter("b"))
    assert markup.message("<i>") == '<div class="message" role="alert">&lt;i&gt;</div>'


def test_the_map_has_a_cell_for_each_pair_that_interacts(explanation):
    found = ElementTree.fromstring(heat_svg(explanation))
    largest = max(abs(pair.interaction) for pair in explanation.pairs)
    visible = [pair for pair in explanation.pairs if round(10 * abs(pair.interaction) / largest) > 0]
    cells = [node for node in found.iter("rect") if node.get("class") != "ground"]
    assert len(cells) == 2 * len(visible) > 0
    assert len(list(found.iter("text"))) == 2 * len(explanation.words)
    few = ElementTree.fromstring(heat_svg(explanation, most=3))
    assert len(list(few.iter("text"))) == 6


@pytest.fixture(scope="module")
def digits():
    return Digits(epochs=1)


def test_hidden_patches_come_back_and_seen_ones_stay(digits):
    for code in digits.examples()[:4]:
        found = digits.watch(code, "hide patches", 0.4, 5, 0.9, 1)
        assert found.errors[-1] < 0.5 * found.errors[0]
        torch.testing.assert_close(found.pictures[-1][~found.hidden], found.clean[~found.hidden], atol=1e-5, rtol=0)
        assert int(found.hidden.sum()) == 4 * round(0.4 * 196)
        falls = [after - before for before, after in zip(found.energies, found.energies[1:], strict=False)]
        assert max(falls) < 0


def test_the_seed_decides(digits):
    code = digits.examples()[2]
    one, same, other = (digits.watch(code, "add noise", 0.5, 3, 0.9, seed) for seed in (4, 4, 5))
    assert torch.equal(one.pictures, same.pictures)
    assert not torch.equal(one.pictures, other.pictures)
    assert one.errors[1] < one.errors[0]


def test_nothing_hidden_is_no_error(digits):
    found = digits.watch(digits.examples()[0], "hide patches", 0, 2, 1.0, 0)
    assert found.errors == [0.0, 0.0, 0.0]
    assert film.shown(found).count("<figure>") == 4


def test_the_curve_falls_where_the_energy_does():
    drawn = ElementTree.fromstring(film.curve([-5.0, -7.0, -6.0]))
    heights = [float(node.get("cy")) for node in drawn.iter("circle")]
    assert heights[0] < heights[2] < heights[1]
    assert heights[2] == pytest.approx((heights[0] + heights[1]) / 2)


def test_the_model_that_is_meant(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(shipped.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "a/b/c/d.py"))
    with pytest.raises(FileNotFoundError, match="--model"):
        shipped.default_model()
    assert main(["app"]) == 2
    assert "spinformer app: no model given and none in checkpoints/" in capsys.readouterr().err
    for name in ("one", "two"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        (tmp_path / "checkpoints" / name / "config.json").write_text("{}")
        if name == "one":
            assert shipped.default_model() == str(tmp_path / "checkpoints" / "one")
    with pytest.raises(ValueError, match=r"one, two.*--model"):
        shipped.default_model()
    monkeypatch.setenv(shipped.VARIABLE, "elsewhere")
    assert shipped.default_model() == "elsewhere"


def test_bad_ports_are_one_line(model_folder, capsys):
    assert main(["app", "--model", str(model_folder), "--port", "70000"]) == 2
    assert "port must be from 0 to 65535; got 70000" in capsys.readouterr().err
    assert main(["app", "--model", "/nowhere/at/all"]) == 2
    assert "expected a folder with a saved model" in capsys.readouterr().err
