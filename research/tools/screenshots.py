"""Take the pictures of the web page for docs/app.md: docs/figures/app-*.png.

python -m research.tools.screenshots [--text-model FOLDER] [--output FOLDER]

A Chromium opens the page of the default model, a classifier of pairs: a pair explained and refined, why one class and
not another, a file of the embedded sample, at the width of a desk and of a telephone. With --text-model, which names a
classifier of single texts with its game, a text explained and refined too.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from research.benchmarks.app import server
from research.paths import DOCS, ROOT
from spinformer.data.sources import load_texts

# Flags under which Chromium works as root, without a screen, and asks nobody for anything.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = {"desktop": (1280, 800), "telephone": (390, 844)}
PATIENCE = 120_000  # milliseconds
COLORS = 128  # of a picture, which is a third as large as one of all colours
ROWS = 60  # pairs of the sample in the file


def chromium() -> str | None:
    """The Chromium that SPINFORMER_CHROMIUM names, or the system's; None for playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("SPINFORMER_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextmanager
def window(browser: Any, width: str) -> Iterator[Any]:
    """A page in a window of this width."""
    phone = width == "telephone"
    size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
    context = browser.new_context(viewport=size, has_touch=phone, is_mobile=phone)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()


def explained(page: Any, url: str, path: Path) -> None:
    """The first example, refined."""
    page.goto(url)
    page.locator("#refine").click()
    page.locator("#explanation .how", has_text="passes of the classifier").wait_for()
    _take(page, path)


def why(page: Any, target: str, against: str, path: Path) -> None:
    """Why one class and not another."""
    for where, name in (("#explain-target", target), ("#explain-against", against)):
        page.locator(f"{where} input").click()
        page.locator(where).get_by_role("option", name=name, exact=True).click()
    page.locator("#explanation .asked", has_text=f"Why {target} and not {against}").wait_for()
    _take(page, path)


def file_explained(page: Any, name: str, content: bytes, path: Path) -> None:
    """A file, with its overview."""
    page.get_by_role("tab", name="File").click()
    page.locator("#file input").set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})
    page.locator("#file .drop.full").wait_for()
    page.locator("#explain-file").click()
    page.locator("#overview iframe").wait_for()
    page.wait_for_timeout(500)  # for the frame to be drawn
    _take(page, path)


def _take(page: Any, path: Path) -> None:
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path, full_page=True)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(COLORS)
    few.save(path, optimize=True)
    print(f"taken: {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}", flush=True)


def sample_file() -> bytes:
    """Pairs of the sample inside the package, with tabs between."""
    texts = load_texts("sample:test", labelled=False)
    pairs = zip(texts.first[:ROWS], texts.second or (), strict=False)
    return "".join(f"{first}\t{second}\n" for first, second in pairs).encode()


def main(arguments: list[str] | None = None) -> int:
    """Take all of them, and say where they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text-model", metavar="FOLDER", help="a classifier of single texts, with its game")
    parser.add_argument("--output", type=Path, default=DOCS / "figures", help="where the pictures go")
    args = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    args.output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        with server() as served:
            for width in WIDTHS:
                with window(browser, width) as page:
                    explained(page, served.url, args.output / f"app-pair-{width}.png")
                    why(page, "contradiction", "neutral", args.output / f"app-why-{width}.png")
                    file_explained(page, "pairs.txt", sample_file(), args.output / f"app-file-{width}.png")
        if args.text_model:
            with server("--model", args.text_model, "--texts", "1") as served:
                for width in WIDTHS:
                    with window(browser, width) as page:
                        explained(page, served.url, args.output / f"app-text-{width}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
