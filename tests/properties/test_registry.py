"""No public name is forgotten: each is visited by a law, and every law visits what it says."""

import ast
import importlib
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.properties.cases import SHARES, VISITS, WHOLE

HERE = Path(__file__).parent
PACKAGES = ("games", "ising", "attention", "attractor", "data", "explain", "evaluate", "models", "training")
# Types for annotations, of which there is nothing to say; and the version, which a test below reads.
EXCUSED = {"games.EstimatorName", "games.ProposalName", "games.Weighting", "__version__"}
MODULES = sorted(path.stem for path in HERE.glob("test_*.py") if path.stem != "test_registry")


@pytest.fixture(scope="module", autouse=True)
def _every_law() -> None:
    for module in MODULES:
        importlib.import_module(f"tests.properties.{module}")


def public() -> dict[str, object]:
    """Every public name, such as "games.exact_values" or "Explainer", with what it stands for."""
    names = {}
    for package in ("", *PACKAGES):
        module = importlib.import_module(f"spinformer.{package}".rstrip("."))
        assert len(set(module.__all__)) == len(module.__all__)
        names |= {f"{package}.{name}".lstrip("."): getattr(module, name) for name in module.__all__}
    return names


def test_every_public_name_is_visited():
    visited = {name for names in VISITS.values() for name in names}
    missing = set(public()) - visited - EXCUSED
    assert not missing, f"no law visits {', '.join(sorted(missing))}"
    assert not visited - set(public()), "a law visits a name that is not public"
    assert not EXCUSED & visited
    assert set(public()) >= EXCUSED


@pytest.mark.parametrize("module", MODULES)
def test_laws_use_the_names_that_they_visit(module):
    """As a name or an attribute in the code of their file, beside the decorator's strings."""
    tree = ast.parse((HERE / f"{module}.py").read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for law, names in VISITS.items():
        if law.startswith(f"{module}::"):
            unused = {name for name in names if name.rpartition(".")[2] not in used}
            assert not unused, f"{law} says that it visits {', '.join(sorted(unused))}"


def test_the_shares_make_a_whole():
    """So that at least as many cases are run as SPINFORMER_CASES says; a little more, since some laws have few."""
    assert WHOLE * 1.05 <= sum(SHARES.values()) <= WHOLE * 1.3


def test_the_version_is_that_of_the_package():
    import spinformer

    assert re.fullmatch(r"\d+\.\d+\.\d+", spinformer.__version__)
    assert version("spinformer") == spinformer.__version__


def test_the_floor_of_every_package_is_covered():
    """A new package with public names must be added here."""
    folder = Path(importlib.import_module("spinformer").__file__).parent
    public_packages = {path.parent.name for path in folder.glob("*/__init__.py") if "__all__" in path.read_text()}
    assert public_packages - {"app"} == set(PACKAGES)  # the page is tested through its server
