"""The parts of the page without a browser: limits, markup, the attractor, the default model."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spinformer.app import film, limits, markup
from spinformer.app.classifier import Classifier
from spinformer.app.digits import Digits
from spinformer.app.server import CONNECTIONS
from spinformer.cli import main
from spinformer.explain.render.layout import pair_map
from spinformer.explain.render.markup import pair_table
from spinformer.models import shipped

ROOT = Path(__file__).parents[2]
BLANK = "00" * 784


@pytest.mark.parametrize(
    ("premise", "hypothesis", "message"),
    [
        ("", "a cat", "premise is empty"),
        ("a dog", " \u200b\u202e\n", "hypothesis is empty"),
        ("a dog", None, "hypothesis is empty"),
        ("a dog", {"path": "/etc/passwd"}, "hypothesis is empty"),
        ("x" * 601, "a cat", "may have 600 characters; this one has 601"),
        ("dog " * 31, "cat " * 30, "may have 60 words; these have 61"),
    ],
)
def test_texts_outside_of_the_limits(premise, hypothesis, message):
    with pytest.raises(ValueError, match=message):
        limits.check_texts(("premise", "hypothesis"), (premise, hypothesis))


def test_texts_at_the_limits():
    names = ("premise", "hypothesis")
    assert limits.check_texts(names, (" dog" * 30, "cat " * 30)) == ("dog " * 29 + "dog", "cat " * 29 + "cat")
    assert limits.check_texts(names, ("x" * 600, "\U0001f600")) == ("x" * 600, "\U0001f600")
    assert limits.check_texts(("text",), ("a dog", None)) == ("a dog",)


@pytest.mark.parametrize("value", [None, "8", True, float("nan"), float("inf"), 63, 2049, 64.5])
def test_numbers_outside_of_the_limits(value):
    with pytest.raises(ValueError, match="The number of samples must be"):
        limits.integer("The number of samples", value, *limits.SAMPLES)


@pytest.mark.parametrize(
    ("code", "kind", "amount", "message"),
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
def test_pictures_outside_of_the_limits(code, kind, amount, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Digits().watch(code, kind, amount, 4, 1.0, 0)


def test_the_document_says_the_limits():
    text = " ".join((ROOT / "docs" / "app.md").read_text().split())
    for sentence in (
        f"at most {limits.CHARACTERS} characters, and both together at most {limits.WORDS} words",
        f"{limits.SAMPLES[1]} coalitions, a trajectory {limits.STEPS[1]} steps, a request {limits.BYTES // 1024} KiB",
        f"A file may have {limits.FILE_BYTES // 1024} KiB, of which the first {limits.ROWS} rows are explained within "
        f"{limits.FILE_SECONDS:g} seconds. A refinement may use {limits.PASSES[-1]} passes and "
        f"{limits.REFINE_SECONDS:g} seconds",
        f"{limits.QUEUE} requests may wait, of them {limits.LONG_WAITING} files and refinements",
        f"must arrive within {limits.ARRIVAL:g} seconds, and an answer be taken within {limits.TAKING:g}",
        f"At most {limits.UNFINISHED} connections may be waiting for a request, and {limits.UNTAKEN} for an answer",
        f"when there are {CONNECTIONS} connections",
        f"remembers the last {limits.SESSIONS} visitors",
    ):
        assert sentence in text


@pytest.fixture(scope="module")
def explanation(model_folder):
    return Classifier.load(str(model_folder)).explain("<b>dog</b> & \u202ecat", "a man $x$", 0.5, 64)


def test_markup_shows_text_as_text(explanation):
    page = ElementTree.fromstring(markup.explanation_html(explanation))
    words = ["".join(line.itertext()).split() for line in page.iter("p") if line.get("class") == "words"]
    assert words[0] + words[1] == [word.text for word in explanation.words]
    assert "".join(words[0]).startswith("<b>dog</b>&")
    assert len([node for node in page.iter("div") if node.get("class", "").startswith("bar")]) == 3
    assert not list(page.iter("b"))
    assert markup.message_html("<i>") == '<div class="message" role="alert">&lt;i&gt;</div>'


def test_the_map_has_a_cell_for_each_pair_that_interacts(explanation):
    interactions = [0.3, -0.2, 0.001, *[0.0] * (len(explanation.pairs) - 3)]
    pairs = tuple(map(lambda pair, value: replace(pair, interaction=value), explanation.pairs, interactions))
    explanation = replace(explanation, pairs=pairs, pair_index="SII")
    page = ElementTree.fromstring(markup.explanation_html(explanation))
    (table,) = [node for node in page.iter("table") if node.get("class") == "heat"]
    shades = [set(cell.get("class", "").split()) - {"first"} for cell in table.find("tbody").iter("td")]
    assert len([shade for shade in shades if shade]) == 2 * 2
    assert len(list(table.iter("th"))) == 2 * len(explanation.words)
    part = ElementTree.fromstring(pair_table(pair_map(explanation, 3)))
    assert len(list(part.iter("th"))) == 6


def test_what_must_be_known_first_is_shown_first(explanation):
    """Notes, then the probability with no words; a column that is the same for every word is not shown."""
    words = tuple(
        replace(word, banzhaf=0.1 * position, attention=0.5, misfit_stderr=0.0)
        for position, word in enumerate(explanation.words)
    )
    shown = markup.explanation_html(replace(explanation, words=words, pair_index="BII", notes=("<b>9%</b> & a guess",)))
    assert "<p><strong>Note:</strong> <bdi>&lt;b&gt;9%&lt;/b&gt; &amp; a guess</bdi></p>" in shown
    base = f"Probability of <bdi>{explanation.target}</bdi>: no words {explanation.base_value:.3f} "
    assert shown.index("Note:") < shown.index(base) < shown.index("Which words decided")
    assert re.findall(r'<th scope="col" class="physics">(\w+)</th>', shown) == ["Shapley", "Banzhaf"]
    assert not re.search("gate|attention", shown.split("<table")[1].split("</table>")[0])
    assert "by Banzhaf interaction" in shown
    assert 'title="game ± 0.0000, sampling ± ' in shown
    assert shown.count("(one scale for all texts)") == 3  # of words, arcs and the map


def test_a_classifier_without_a_game(encoder, tmp_path, capsys):
    from spinformer.models import NeuroGameForSequenceClassification
    from tests.tiny import tokenizer

    NeuroGameForSequenceClassification.from_encoder(str(encoder)).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="this classifier has no game yet: `spinformer ground MODEL TEXTS` learns one"):
        Classifier.load(str(tmp_path))
    assert main(["app", "--model", str(tmp_path)]) == 2
    assert "spinformer app: this classifier has no game yet" in capsys.readouterr().err


def test_explanations_are_those_of_the_explainer(model_folder):
    """With as many coalitions as the visitor says; by default all, where they are few."""
    from spinformer.explain import Explainer

    classifier = Classifier.load(str(model_folder))
    explainer = Explainer.from_pretrained(model_folder, device="cpu", samples=64, temperature=0.5)
    texts = ("a dog runs outside", "a cat sleeps inside")
    explanation = classifier.explain(texts[0], f" {texts[1]} ", 0.5, 64)
    assert explanation == explainer(*texts)
    assert explanation.samples == 64
    assert classifier.explain(*texts).samples == 2**8
    with pytest.raises(ValueError, match=r"The temperature must be from 0\.05 to 2; got 3"):
        classifier.explain("a dog", "a cat", 3)


def test_hidden_patches_come_back_and_seen_ones_stay(digits):
    for code in digits.examples()[:4]:
        restored = digits.watch(code, "hide patches", 0.4, 5, 0.9, 1)
        assert restored.errors[-1] < 0.5 * restored.errors[0]
        torch.testing.assert_close(
            restored.pictures[-1][~restored.hidden], restored.clean[~restored.hidden], atol=1e-5, rtol=0
        )
        assert int(restored.hidden.sum()) == 4 * round(0.4 * 196)
        falls = [after - before for before, after in zip(restored.energies, restored.energies[1:], strict=False)]
        assert max(falls) < 0


def test_the_seed_decides(digits):
    code = digits.examples()[2]
    one, same, other = (digits.watch(code, "add noise", 0.5, 3, 0.9, seed) for seed in (4, 4, 5))
    assert torch.equal(one.pictures, same.pictures)
    assert not torch.equal(one.pictures, other.pictures)
    assert one.errors[1] < one.errors[0]


def test_nothing_hidden_is_no_error(digits):
    restored = digits.watch(digits.examples()[0], "hide patches", 0, 2, 1.0, 0)
    assert restored.errors == [0.0, 0.0, 0.0]
    assert film.film_html(restored).count("<figure>") == 4


def test_the_curve_falls_where_the_energy_does():
    drawn = ElementTree.fromstring(film.energy_svg([-5.0, -7.0, -6.0]))
    heights = [float(node.get("cy")) for node in drawn.iter("circle")]
    assert heights[0] < heights[2] < heights[1]
    assert heights[2] == pytest.approx((heights[0] + heights[1]) / 2)


def test_an_installation_without_a_classifier(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(shipped.VARIABLE, raising=False)
    monkeypatch.setattr(shipped, "EMBEDDED", tmp_path / "small")
    assert main(["app"]) == 2
    assert "spinformer app: this installation lacks its small classifier; name one" in capsys.readouterr().err


def test_bad_ports_are_one_line(model_folder, capsys):
    assert main(["app", "--model", str(model_folder), "--port", "70000"]) == 2
    assert "port must be from 0 to 65535; got 70000" in capsys.readouterr().err
    assert main(["app", "--model", "/nowhere/at/all"]) == 2
    assert "expected a folder with a saved model" in capsys.readouterr().err
