"""Is what lies in dist/ ready to be published? `make release` builds it and asks (`python -m research.tools.release`).

One wheel and one sdist of the version that the package has, with the licences of all that they hold; the same version
in CITATION.cff; a changelog that says what is new; the site; and a card beside every model.
"""

import argparse
import email
import re
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

from research.paths import ROOT
from spinformer import __version__

SITE = ROOT / "build" / "site"
MAX_WHEEL, MAX_SDIST = 40_000_000, 60_000_000  # bytes
# What a card of a model must say: its data, how good it is, where it fails, under which licence it may be used.
CARD_SECTIONS = ("The model", "Training", "Limits", "Licence")
EXTRAS = {"nli", "plot", "images", "app", "compare"}


def problems(dist: Path, site: Path = SITE, root: Path = ROOT) -> list[str]:
    """Everything that is wrong, in one line each."""
    wheels, sdists = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        return [f"{dist.name}/ must hold one wheel and one sdist; it holds {len(wheels)} and {len(sdists)}"]
    found = [*wheel_problems(wheels[0]), *sdist_problems(sdists[0]), *citation_problems(root), *card_problems(root)]
    if (
        "## [Unreleased]" not in (root / "CHANGELOG.md").read_text()
        and f"## [{__version__}]" not in (root / "CHANGELOG.md").read_text()
    ):
        found.append(f"CHANGELOG.md has neither [Unreleased] nor [{__version__}]")
    if not (site / "index.html").is_file():
        found.append("the site is not built; `make docs-site` builds it")
    return found


def wheel_problems(path: Path) -> list[str]:
    """Of names, version, licences, extras and size."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        fields = email.message_from_bytes(archive.read(metadata))
    found = metadata_problems(fields, path.name)
    found += [f"{path.name}: {name} is no part of the package" for name in names if not name.startswith("spinformer")]
    for licence in fields.get_all("License-File") or []:
        if metadata.replace("METADATA", f"licenses/{licence}") not in names:
            found.append(f"{path.name}: the licence {licence} is named and not there")
    if "spinformer/py.typed" not in names:
        found.append(f"{path.name}: py.typed is missing, so its types are not used")
    if path.stat().st_size > MAX_WHEEL:
        found.append(f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_WHEEL:,} are allowed")
    return found


def metadata_problems(fields: Message, name: str) -> list[str]:
    """Of what the index shows."""
    found = []
    if fields["Version"] != __version__:
        found.append(f"{name} is of version {fields['Version']}; the package has {__version__}")
    needed = ("Summary", "License-Expression", "Requires-Python", "Description-Content-Type")
    found += [f"{name}: its metadata lack {field}" for field in needed if not fields[field]]
    if missing := EXTRAS - set(fields.get_all("Provides-Extra") or []):
        found.append(f"{name}: its metadata lack the extras {', '.join(sorted(missing))}")
    if not fields.get_all("License-File"):
        found.append(f"{name}: it brings no licence")
    return found


def sdist_problems(path: Path) -> list[str]:
    """Of what is needed to build from it, and of size."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ("PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "src/spinformer/__init__.py")
    found = [f"{path.name}: {name} is missing" for name in needed if name not in names]
    if path.stat().st_size > MAX_SDIST:
        found.append(f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_SDIST:,} are allowed")
    return found


def citation_problems(root: Path = ROOT) -> list[str]:
    """Of CITATION.cff: its version, and what the format asks for."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((root / "CITATION.cff").read_text())
    needed = ("cff-version", "message", "title", "authors", "version", "license")
    found = [f"CITATION.cff lacks {name}" for name in needed if not content.get(name)]
    if content.get("version") not in (None, __version__):
        found.append(f"CITATION.cff is of version {content['version']}; the package has {__version__}")
    return found


def card_problems(root: Path = ROOT) -> list[str]:
    """Of the cards in checkpoints/."""
    found = []
    for folder in sorted(path.parent for path in (root / "checkpoints").glob("*/config.json")):
        card = folder / "README.md"
        text = card.read_text() if card.is_file() else ""
        where = f"checkpoints/{folder.name}/README.md"
        if not re.match(r"---\n.*?license: .*?\n---\n", text, re.DOTALL):
            found.append(f"{where} does not say its license in its head")
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        found += [f"{where} lacks the section {name!r}" for name in CARD_SECTIONS if name not in headings]
    return found


def main() -> int:
    """Print what is wrong; the exit status is 1 where something is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", nargs="?", type=Path, default=ROOT / "dist", help="folder of wheel and sdist")
    found = problems(parser.parse_args().dist)
    print("\n".join(found) if found else f"spinformer {__version__} is ready to be published")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
