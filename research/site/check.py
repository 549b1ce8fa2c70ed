"""Is the built site whole, and does it fetch nothing? `make docs-site` asks (`python -m research.site.check`)."""

import re
import sys
from pathlib import Path

from research.paths import DOCS, ROOT
from research.site.notebooks import TUTORIALS

SITE = ROOT / "build" / "site"
# What a browser would ask another machine for: in a page, and in a style sheet.
PAGE = re.compile(r'<(?:script|img|iframe|source)[^>]*\ssrc="(?:https?:)?//|<link[^>]*\shref="(?:https?:)?//')
SHEET = re.compile(r"@import|url\([\"']?(?:https?:)?//")
# A name that the reference shows only where autodoc has read its docstring.
DESCRIBED = ("reference/games.html", "exact_values")


def problems(site: Path) -> list[str]:
    """Everything that is wrong, in one line each."""
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in sorted(DOCS.rglob("*.md"))]
    needed = [f"{page}.html" for page in pages]
    needed += [f"{page}.ipynb" for page in pages if page.startswith(f"{TUTORIALS}/")]
    found = [f"{name} is missing" for name in needed if not (site / name).is_file()]
    page, name = DESCRIBED
    if (site / page).is_file() and name not in (site / page).read_text(encoding="utf-8"):
        found.append(f"{page} does not describe {name}")
    for pattern, ending in ((PAGE, "html"), (SHEET, "css")):
        for path in sorted(site.rglob(f"*.{ending}")):
            matches = pattern.finditer(path.read_text(encoding="utf-8"))
            found += [f"{path.relative_to(site)} asks another machine: {match[0]}" for match in matches]
    return found


if __name__ == "__main__":
    told = problems(Path(sys.argv[1]) if len(sys.argv) > 1 else SITE)
    print(*told, sep="\n", end="\n" if told else "")
    sys.exit(bool(told))
