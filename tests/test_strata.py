"""Imports point downwards: no module uses one of a higher stratum."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "spinformer"
# Parts that are not named are the base, which every stratum may use.
STRATA = (
    {"games", "ising", "attractor"},
    {"attention", "data"},
    {"models"},
    {"training"},
    {"explain", "evaluate"},
    {"experiments", "bench", "report", "example"},
    {"cli", "app"},
)
LEVEL = {part: level for level, parts in enumerate(STRATA, start=1) for part in parts}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "spinformer":
            found |= {f"spinformer.{name.name}" for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found if name.startswith("spinformer.")}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_import_points_upwards(path):
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    level = LEVEL.get(part, 0) if part != "__main__" else len(STRATA)
    above = {name for name in imports(path) if LEVEL.get(name.split(".")[1], 0) > level}
    assert not above, f"{path.relative_to(SOURCE)} is of stratum {level} and imports {', '.join(sorted(above))}"
