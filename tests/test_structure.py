"""The house: imports point downwards, modules form no circle, no two classes share a name, little is written twice."""

import ast
import keyword
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "spinformer"
# From the ground up; a module may import from its own floor and from those below.
FLOORS = (
    {"_base"},
    {"kernels"},
    {"games", "ising", "attractor"},
    {"attention"},
    {"data"},
    {"models"},
    {"training"},
    {"explain"},
    {"evaluate"},
    {"cli", "app"},
    {"__init__", "__main__"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
PATHS = sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PATHS}


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, inside functions too, but not those for type checkers alone."""
    text = path.read_text()
    tree = ast.parse(text)
    by_name = "lazy_attributes(" in text or "import_module(" in text
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    names = set()
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spinformer":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in MODULES else node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "spinformer"}
        elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODULES:
            names.add(node.value)  # a module that is imported by its name
    return names - {module_name(path)}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_import_points_upwards(path):
    floor = FLOOR[room(path)]
    above = {name for name in imports(path) if name != "spinformer" and FLOOR[name.split(".")[1]] > floor}
    assert not above, f"{path.relative_to(SOURCE)} is on floor {floor} and imports {', '.join(sorted(above))}"


def test_no_module_imports_the_front_door():
    """But for its version: names are taken from where they are defined."""
    for path in PATHS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "spinformer":
                taken = {alias.name for alias in node.names} - {name.split(".")[1] for name in MODULES if "." in name}
                assert taken <= {"__version__"}, f"{path.relative_to(SOURCE)} takes {taken} from the front door"


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            components.append(component)

    for node in graph:
        if node not in index:
            visit(node)
    return [component for component in components if len(component) > 1]


def test_no_import_circle():
    graph = {name: {other for other in imports(path) if other in MODULES} for name, path in MODULES.items()}
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["c", "b", "a"]]  # the check itself works
    assert not circles(graph)


def test_no_two_classes_of_one_name():
    names = [
        node.name
        for path in PATHS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert not [name for name, count in Counter(names).items() if count > 1]


def test_drawing_does_not_import_estimating():
    allowed = (
        "spinformer._base",
        "spinformer.explain.render",
        "spinformer.explain.record",
        "spinformer.explain.summary",
        "spinformer.explain.traces",
    )
    for path in (SOURCE / "explain" / "render").rglob("*.py"):
        other = [name for name in imports(path) if not name.startswith(allowed)]
        assert not other, f"{path.relative_to(SOURCE)} imports {', '.join(other)}"


def test_research_is_not_imported_by_the_package():
    for path in PATHS:
        text = path.read_text()
        assert not re.search(r"^\s*(from|import) research\b", text, re.MULTILINE), path


KEYWORDS = "|".join(keyword.kwlist) + "|self"
# Lines that any two signatures, field lists or calls share: a name, a name with a type, a lone bracket.
THIN = re.compile(r"n: [^()=]*(= [^()]*)?,?|n,?|[*]+,?|@.*|class .*|n ?= ?(n|0),?|n[(]|[)].*|def n[(]")
RUN = 6


def shapes(path: Path) -> list[str]:
    """The lines of code without their names, strings and numbers; comments, imports and docstrings are passed over."""
    lines = []
    for line in re.sub(r'"""(?:.|\n)*?"""', "", path.read_text()).splitlines():
        code = re.sub(r"\s+#.*$", "", line).strip()
        if not re.search(r"\w", code) or code.startswith(("#", "from ", "import ")):
            continue
        code = re.sub(r"(\"[^\"]*\"|'[^']*')", "s", code)
        lines.append(re.sub(r"\b\d[\d._e]*\b", "0", re.sub(rf"\b(?!(?:{KEYWORDS})\b)[A-Za-z_]\w*\b", "n", code)))
    return lines


def repeated(paths: list[Path]) -> set[tuple[str, str]]:
    """Pairs of files (or a file with itself) that share RUN lines of one shape, most of them statements."""
    runs: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for path in paths:
        lines = shapes(path)
        for start in range(len(lines) - RUN + 1):
            run = tuple(lines[start : start + RUN])
            if len(set(run)) >= 3 and sum(bool(THIN.fullmatch(line)) for line in run) <= RUN // 2:
                runs.setdefault(run, []).append((str(path), start))
    return {
        (one, other)
        for places in runs.values()
        for (one, i), (other, j) in combinations(places, 2)
        if one != other or abs(i - j) >= RUN
    }


def test_little_is_written_twice(tmp_path):
    for name in "ab":  # the check itself works: the same shape with other names
        lines = [f"{name}{i} = {name}f({name}x, {i})[{i}:]" if i % 2 else f"return {name}{i} + {i}" for i in range(6)]
        (tmp_path / f"{name}.py").write_text("\n".join([*lines[:5], f"if {name}: pass"]))
    assert len(repeated(sorted(tmp_path.glob("*.py")))) == 1
    # Programs for a device take no objects, so each names its arguments and finds its sample by itself.
    assert len(repeated([path for path in PATHS if path.parent.name != "device"])) <= 3


def test_equation_citations_name_their_paper():
    """`NGT Eq. 6`, `ATT Eq. 1` ...: a bare equation number does not say whose it is."""
    bare = re.compile(r"(?<!NGT )(?<!ATT )(?<!ESIM )(?<!DAM )\bEqs?\. ?\d")
    for path in PATHS:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not bare.search(line), f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"


def test_files_are_short():
    for path in PATHS:
        count = len(path.read_text().splitlines())
        assert count <= 320, f"{path.relative_to(SOURCE)} has {count} lines"
