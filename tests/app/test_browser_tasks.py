"""The page in a real browser, with a classifier of pairs and with one of texts: class, refinement, file, report."""

import re

import pytest

from research.tools.screenshots import WIDTHS
from spinformer.explain import Explanation, ExplanationSet
from tests.app.conftest import PATIENCE, leave_window, open_window, serving

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

FILES = {
    "pair": ("pairs.csv", b"premise,hypothesis\n" + b"a dog runs,a cat\nthe man,<img src=x onerror=alert(1)>\n" * 6),
    "text": ("texts.txt", b"a dog runs\n<script>alert(1)</script>\nthe red cat\n" * 4),
}
CLASSES = {"pair": ("neutral", "entailment"), "text": ("negative", "positive")}


@pytest.fixture(scope="module")
def addresses(url, text_folder, digits):
    """Where the page of each classifier is served."""
    from spinformer.app import Classifier, application, build

    with serving(application(build(Classifier.load(str(text_folder)), digits))) as address:
        yield {"pair": url, "text": address}


def expect(locator):
    return playwright.expect(locator)


def choose(page, where, name):
    page.locator(f"{where} input").click()
    page.locator(where).get_by_role("option", name=name, exact=True).click()


def download(page, title, path):
    with page.expect_download() as started:
        page.locator("a.download:visible", has_text=title).click()
    started.value.save_as(path)
    return path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", FILES)
def test_a_visit(browser, addresses, kind, width, output, tmp_path):
    with open_window(browser, addresses[kind], width) as (page, wrong):
        page.goto(addresses[kind])
        page.locator("#first-text textarea").fill("the dog runs outside")
        if kind == "pair":
            page.locator("#second-text textarea").fill("a red cat sleeps inside")
        expect(page.locator("#second-text textarea")).to_have_count(int(kind == "pair"))
        target, against = CLASSES[kind]
        choose(page, "#explain-target", target)
        choose(page, "#explain-against", against)
        asked = page.locator("#explanation .asked")
        expect(asked).to_have_text(f"Why {target} and not {against}?", timeout=PATIENCE)
        page.locator("#refine").click()
        how = page.locator("#explanation .how")
        expect(how).to_have_text(re.compile(r"From [\d,]{2,} passes of the classifier"), timeout=PATIENCE)
        saved = Explanation.load(download(page, "JSON", tmp_path / "found.json"))
        assert (saved.target, saved.against, len(saved.texts)) == (target, against, 1 + (kind == "pair"))
        assert saved.passes > 1
        assert target in download(page, "HTML report", tmp_path / "found.html").read_text(encoding="utf-8")
        leave_window(page, wrong, output / f"{kind}-{width}.png")
        if (kind, width) == ("pair", "desktop"):
            _refused_files(page)
        _file(page, kind, tmp_path)
        leave_window(page, wrong, output / f"{kind}-file-{width}.png")


def _refused_files(page):
    """One is too large, which the browser says, and one is no text, which the server says."""
    page.get_by_role("tab", name="File").click()
    picker, drop = page.locator("#file input"), page.locator("#file .drop")
    picker.set_input_files({"name": "big.csv", "mimeType": "text/csv", "buffer": b"a" * 300_000})
    expect(drop).to_contain_text("It has 293 KB; a file may have 256 KB.")
    picker.set_input_files({"name": "no.csv", "mimeType": "text/csv", "buffer": b"PK\x03\x04\x00"})
    expect(drop).to_have_class(re.compile("full"))
    page.locator("#explain-file").click()
    expect(page.locator("#overview [role=alert]")).to_contain_text("no.csv is no text in UTF-8", timeout=PATIENCE)


def _file(page, kind, folder):
    page.get_by_role("tab", name="File").click()
    picker, drop = page.locator("#file input"), page.locator("#file .drop")
    name, content = FILES[kind]
    picker.set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})
    expect(drop).to_contain_text(name)
    page.locator("#explain-file").click()
    expect(page.locator("#overview h2")).to_contain_text("12 rows explained", timeout=PATIENCE)
    frame = page.frame_locator("#overview iframe")
    expect(frame.locator("h1")).to_have_text(f"What the classifier relies on: {name}")
    assert frame.locator("script, img").count() == 0
    rows = ExplanationSet.load(download(page, "rows", folder / "rows.jsonl"))
    assert len(rows) == 12
    assert "alert(1)" in download(page, "table", folder / "table.csv").read_text(encoding="utf-8")
    assert "<script" not in download(page, "overview", folder / "overview.html").read_text(encoding="utf-8")
