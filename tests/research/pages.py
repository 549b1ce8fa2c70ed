"""Running what the documents show: the Python of a page, block after block, in a folder of its own."""

import contextlib
import io
import re
from pathlib import Path

from research.paths import DOCS, ROOT
from spinformer.explain.methods import METHODS
from spinformer.games import INDICES
from spinformer.models.pooling import POOLING_HEADS

ENCODER = "google-bert/bert-base-uncased"
# What pages register.
EXTENSIONS = ((INDICES, "QBV"), (POOLING_HEADS, "max"), (METHODS, "length"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Which differ in the last place from machine to machine.
DIGITS = re.compile(r"\d")


def pages() -> list[Path]:
    """All of docs/."""
    return sorted(DOCS.rglob("*.md"))


def name(page: Path) -> str:
    return str(page.relative_to(DOCS).with_suffix(""))


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """The language and the content of each block, in order."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, content) for language, content in found if language in languages]


def run_page(page: Path, folder: Path, encoder: Path) -> list[tuple[str, str]]:
    """Run the Python as it stands, but for a tiny encoder in place of BERT and fewer images.

    Returns what stands below a block as its output, and what that block printed, for those where something stands.
    """
    if not (folder / "checkpoints").exists():
        (folder / "checkpoints").symlink_to(ROOT / "checkpoints")
    names: dict[str, object] = {"__name__": "__main__"}
    shown, printed = [], ""
    try:
        for language, content in blocks(page, "python", "text"):
            if language == "text":
                shown.append((content, printed))
                continue
            code = content.replace(ENCODER, str(encoder))
            code = code.replace('load_images("sample")', 'load_images("sample").cut(64)')
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, str(page), "exec"), names)
            printed = out.getvalue()
    finally:
        for registry, extension in EXTENSIONS:
            if extension in registry:
                registry.unregister(extension)
    return shown
