"""Every document and picture that is made from results: README.md, docs/**/*.md, some of docs/figures."""

from pathlib import Path

from research.paths import DOCS, ROOT
from research.reports import attention, exactness, render

GENERATED = DOCS / "reproduction.md"  # as a whole; in the others what stands between marks


def documents() -> list[Path]:
    """Every document that may quote a result."""
    return sorted({ROOT / "README.md", *DOCS.rglob("*.md"), GENERATED}, key=lambda path: (path.parent != ROOT, path))


def rendered(path: Path, results: Path) -> str:
    """What the document at `path` says with the results in this folder."""
    if path == GENERATED:
        from research.reports.reproduction.page import page

        return page(results)
    return render(path.read_text(encoding="utf-8"), results)


def stale_documents(results: Path) -> list[Path]:
    """The documents that differ from the results."""
    return [path for path in documents() if not path.is_file() or path.read_text("utf-8") != rendered(path, results)]


def write_documents(results: Path, root: Path = ROOT) -> list[Path]:
    """Write all of them under `root`; returns those that changed."""
    changed = []
    for path in documents():
        target = root / path.relative_to(ROOT)
        text = rendered(path, results)
        if target.is_file() and target.read_text(encoding="utf-8") == text:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        changed.append(target)
    return changed


def draw_figures(results: Path, root: Path = ROOT) -> list[Path]:
    """Draw all pictures that are made from results under `root`; returns their paths."""
    folder = root / DOCS.relative_to(ROOT) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    return [*exactness.draw(results, folder), *attention.draw(results, folder)]
