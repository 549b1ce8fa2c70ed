"""Folders of the clone. Commands and tools use these, so they work from any current folder."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "research" / "results"
RECIPES = ROOT / "research" / "recipes"
DATA = ROOT / "research" / "data"
DOCS = ROOT / "docs"
