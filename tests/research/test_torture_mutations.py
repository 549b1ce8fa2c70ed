"""Changes of a source file, one at a time."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from research.torture.mutations import UNCHANGED, mutations

SOURCE = '''"""A text."""


def half(count: int) -> float:
    # a comment
    if count < 3:
        raise ValueError(f"expected 3; got {count}")

    return count / 2
'''


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def run(tree):
    names = {}
    exec(compile(tree, "module.py", "exec"), names)
    return names["half"]


def test_every_change_is_one_change(path):
    found = mutations(path)
    changed = {ast.unparse(each.tree()) for each in found}
    assert len(changed) == len(found)
    assert ast.unparse(ast.parse(SOURCE)) not in changed
    assert {"Lt to LtE", "Div to Mult"} <= {each.change for each in found}
    by_change = {each.change: each for each in found}
    assert run(by_change["Div to Mult"].tree())(5) == 10
    with pytest.raises(ValueError, match="expected 3; got 3"):
        run(by_change["Lt to LtE"].tree())(3)


def test_lines_keep_their_numbers(path):
    for each in (*mutations(path), replace(mutations(path)[0], change=UNCHANGED)):
        raised = next(node for node in ast.walk(each.tree()) if isinstance(node, ast.Raise))
        assert raised.lineno == 7


def test_unchanged(path):
    same = replace(mutations(path)[0], change=UNCHANGED)
    assert ast.unparse(same.tree()) == ast.unparse(ast.parse(SOURCE))
    with pytest.raises(IndexError, match="has no change 99"):
        replace(same, number=99, change="other").tree()
