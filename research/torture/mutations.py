"""Small changes of a source file, each of which a test should notice.

A change turns one comparison, operation, number or condition into another; texts, annotations and error messages stay.
"""

import ast
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

UNCHANGED = "nothing"  # the change of a mutation that leaves its file as it is


@dataclass(frozen=True)
class Mutation:
    """One change: the file, the line, the number of the change in the file, and what it turns into what."""

    path: Path
    line: int
    number: int
    change: str

    def tree(self) -> ast.Module:
        """The file with this change alone; lines keep their numbers, which errors tell."""
        tree = ast.parse(self.path.read_text())
        if self.change == UNCHANGED:
            return tree
        for number, (_, _, apply) in enumerate(_changes(tree)):
            if number == self.number:
                apply()
                return ast.fix_missing_locations(tree)
        raise IndexError(f"{self.path.name} has no change {self.number}")


def mutations(path: Path) -> list[Mutation]:
    """Every change of a file."""
    found = enumerate(_changes(ast.parse(path.read_text())))
    return [Mutation(path, line, number, change) for number, (line, change, _) in found]


Change = tuple[int, str, Callable[[], None]]
Place = Callable[[ast.AST], None]


def _changes(tree: ast.AST) -> Iterator[Change]:
    """Line, description and a function that makes the change in the tree, for every change."""
    kept = _left_alone(tree)
    for parent in ast.walk(tree):
        for put, node in _children(parent):
            if id(node) not in kept:
                for change, other in _others(node):
                    yield getattr(node, "lineno", 0), change, partial(put, other)


def _children(parent: ast.AST) -> Iterator[tuple[Place, ast.AST]]:
    """The nodes below a node, each with a function that puts another into its place."""
    for name, value in ast.iter_fields(parent):
        if isinstance(value, ast.AST):
            yield partial(setattr, parent, name), value
        elif isinstance(value, list):
            yield from (
                (partial(value.__setitem__, k), item) for k, item in enumerate(value) if isinstance(item, ast.AST)
            )


def _left_alone(tree: ast.AST) -> frozenset[int]:
    """Parts of the tree that say nothing of what is computed: annotations, errors that are raised, texts."""
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            roots.append(node.returns)
        elif isinstance(node, ast.Raise | ast.JoinedStr):
            roots.append(node)
    return frozenset(id(part) for root in roots if root is not None for part in ast.walk(root))


def _others(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What a node could be changed into, with a description."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        yield _swap(node.op), _with(node, op=SWAPS[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield _swap(node.ops[0]), _with(node, ops=[SWAPS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield f"{type(node.op).__name__} left out", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        other = node.value + 1 if isinstance(node.value, int) else 2 * node.value + (node.value == 0)
        yield f"{node.value} to {other}", ast.Constant(other)
    elif isinstance(node, ast.If | ast.IfExp):
        yield "condition turned round", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "returns None", ast.Return(None)


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    """A copy of a node with other fields."""
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _swap(operator: ast.AST) -> str:
    return f"{type(operator).__name__} to {SWAPS[type(operator)].__name__}"
