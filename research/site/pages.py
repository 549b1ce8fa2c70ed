"""Pages of docs/ as Sphinx reads them: anchors that it knows, and no links to files that the site does not hold."""

import os
import re
from pathlib import Path

from research.paths import DOCS

ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def for_sphinx(text: str, page: Path) -> str:
    """The page with `<a id="x"></a>` as a target of its own, and links that leave docs/ as their text."""

    def kept(match: re.Match[str]) -> str:
        target = match["target"].partition("#")[0]
        if not target or "://" in target or _inside(page, target):
            return match.group()
        return match["text"]

    return LINK.sub(kept, ANCHOR.sub(r"[]{#\1}", text))


def with_download(text: str, name: str) -> str:
    """A tutorial with a link to its notebook below the title."""
    title, _, rest = text.partition("\n")
    stem = name.rpartition("/")[2]
    return f'{title}\n\n<p><a href="{stem}.ipynb" download>Download as a notebook</a></p>\n{rest}'


def _inside(page: Path, target: str) -> bool:
    """Whether a link of the page leads to a file of docs/."""
    return Path(os.path.normpath(page.parent / target)).is_relative_to(DOCS)
