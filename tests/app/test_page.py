"""The page in a real browser: both tabs, at the width of a desk and of a telephone."""

import json
import re

import pytest

from research.tools.screenshots import WIDTHS
from spinformer.app.task import INFERENCE
from spinformer.explain import Explanation
from tests.app.conftest import PATIENCE, leave_window, open_window

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=WIDTHS)
def window(request, browser, url):
    with open_window(browser, url, request.param) as opened:
        yield opened


@pytest.fixture
def page(request, window, url, output):
    """The page as it opens; whatever it did that it must not do fails the test when it ends."""
    shown, wrong = window
    shown.goto(url)
    shown.locator("#explain").wait_for()
    yield shown
    name = re.sub(r"\W+", "-", request.node.name).strip("-")
    leave_window(shown, wrong, output / f"{name}.png")


def expect(locator):
    return playwright.expect(locator)


def explained(page, premise, hypothesis):
    page.locator("#first-text textarea").fill(premise)
    page.locator("#second-text textarea").fill(hypothesis)
    page.locator("#explain").click()


def test_explains_what_is_typed_and_hands_it_over(page, tmp_path):
    explained(page, "the dog runs", "a cat sleeps inside")
    words = page.locator("#explanation .words")
    expect(words.nth(0)).to_have_text("the dog runs", timeout=PATIENCE)
    expect(words.nth(1)).to_have_text("a cat sleeps inside")
    probabilities = [
        float(text.rstrip("%")) for text in page.locator("#explanation .bar .probability").all_inner_texts()
    ]
    assert len(probabilities) == 3
    assert sum(probabilities) == pytest.approx(100, abs=0.2)
    with page.expect_download() as started:
        page.locator("a.download", has_text="JSON").click()
    started.value.save_as(tmp_path / "found.json")
    found = Explanation.load(tmp_path / "found.json")
    assert found.texts == ("the dog runs", "a cat sleeps inside")
    expect(page.locator("#explanation .decision")).to_contain_text(found.label)
    rows = page.locator("#explanation table.top tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == [word.text for word in found.top_words(8)]
    assert page.locator("#explanation table.heat tbody td").count() == len(found.words) ** 2
    assert len(page.locator("#explanation path.arc").all()) == min(12, len(found.pairs))
    with page.expect_download() as started:
        page.locator("a.download", has_text="HTML").click()
    started.value.save_as(tmp_path / "report.html")
    assert "sleeps" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_example_then_a_slider(page):
    name, premise, hypothesis = INFERENCE[1]
    page.get_by_role("button", name=name).click()
    expect(page.locator("#first-text textarea")).to_have_value(premise)
    expect(page.locator("#explanation .words").nth(1)).to_have_text(re.compile(hypothesis.split()[0]), timeout=PATIENCE)
    coalitions = page.locator("#explanation .legend.physics").first
    expect(coalitions).to_be_hidden()
    page.get_by_role("checkbox", name=re.compile("Show the physics")).check()
    expect(coalitions).to_contain_text("from 512 coalitions")
    expect(coalitions).to_be_visible()
    slider = page.get_by_role("slider", name=re.compile("Samples"))
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    box = slider.bounding_box()
    slider.click(position={"x": box["width"] - 1, "y": box["height"] / 2})
    expect(coalitions).to_contain_text("from 2048 coalitions", timeout=PATIENCE)


@pytest.mark.parametrize(
    ("premise", "hypothesis", "said"),
    [
        ("the dog runs", "  ", "The hypothesis is empty: please write a sentence."),
        ("dog " * 50, "cat " * 30, "Both texts together may have 60 words; these have 80."),
    ],
    ids=["empty", "long"],
)
def test_a_mistake_is_told_in_a_sentence(page, premise, hypothesis, said):
    explained(page, premise, hypothesis)
    alert = page.locator("#explanation [role=alert]")
    expect(alert).to_have_text(said, timeout=PATIENCE)
    assert page.get_by_text("Traceback").count() == 0
    explained(page, "the dog runs", "a cat")
    expect(alert).to_have_count(0, timeout=PATIENCE)


def test_hostile_text_is_text(page):
    premise = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u202edog\u202c"
    hypothesis = "\u05e9\u05dc\u05d5\u05dd \U0001f600 & \"quotes\" 'n' ${7*7} {{7*7}}"
    explained(page, premise, hypothesis)
    words = page.locator("#explanation .words")
    expect(words.nth(0)).to_contain_text("script", timeout=PATIENCE)
    shown = "".join(words.nth(0).inner_text().split())
    assert "<script>alert(1)</script>" in shown
    assert "onerror=alert(2)>" in shown
    assert "\U0001f600" in words.nth(1).inner_text()
    assert "49" not in page.locator("#explanation").inner_text().replace("0.49", "")
    assert page.locator("#explanation script, #explanation img").count() == 0


def test_the_keyboard_is_enough(page):
    def focused() -> str:
        return page.evaluate("(document.activeElement.closest('#first-text, #second-text, #explain') || {id: ''}).id")

    for _ in range(20):
        page.keyboard.press("Tab")
        if focused() == "first-text":
            break
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("two red dog")
    page.keyboard.press("Tab")
    assert focused() == "second-text"
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("the woman eats")
    for _ in range(3):  # past the two lists of classes
        page.keyboard.press("Tab")
    assert focused() == "explain"
    page.keyboard.press("Enter")
    expect(page.locator("#explanation .words").nth(1)).to_have_text("the woman eats", timeout=PATIENCE)


def test_a_digit_is_restored_then_a_drawing(page):
    page.get_by_role("tab", name="Attractor").click()
    page.get_by_role("button", name="digit 8").click()
    page.locator("#restore").click()
    frames = page.locator("#trajectory .film figure")
    expect(frames).to_have_count(8, timeout=2 * PATIENCE)  # the picture, the damaged one, six steps
    errors = [float(text) for text in page.locator("#trajectory .film .error").all_inner_texts()]
    assert errors[-1] < 0.5 * errors[0]
    expect(page.locator("#trajectory svg.curve circle")).to_have_count(7)
    digit = frames.nth(0).locator("img").get_attribute("src")
    page.get_by_role("button", name="Clear", exact=True).click()
    page.locator("#restore").click()
    expect(page.locator("#trajectory [role=alert]")).to_contain_text("The picture is empty", timeout=PATIENCE)
    box = page.locator("#pad canvas.drawing").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.45 * box["width"], box["y"] + 0.8 * box["height"], steps=8)
    page.mouse.up()
    page.locator("#pad canvas.drawing").focus()
    for key in ("ArrowRight", "ArrowRight", "Space"):
        page.keyboard.press(key)
    code = page.locator("#pad canvas.drawing").get_attribute("data-code")
    assert code[2 * (28 * 14 + 16) :][:2] == "ff"
    page.get_by_role("radio", name="add noise").check()
    page.locator("#restore").click()
    expect(frames).to_have_count(8, timeout=PATIENCE)
    assert frames.nth(0).locator("img").get_attribute("src") != digit


def test_labels_and_language(page):
    """Every control has a name that a screen reader can say."""
    for role in ("textbox", "slider", "button", "radio", "tab", "listbox", "checkbox"):
        for control in page.get_by_role(role).all():
            assert control.evaluate("node => (node.labels?.length || node.ariaLabel || node.innerText || '') !== ''")
    assert page.evaluate("document.documentElement.lang") == "en"
    names = json.loads(page.evaluate("JSON.stringify([...document.fonts].map(font => font.family))"))
    assert names == []
