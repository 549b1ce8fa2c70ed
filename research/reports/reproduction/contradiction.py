"""Contradictions of a paper with itself or with the authors' code, and what this library chose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Option:
    """What gives the other reading. kind: whose option it is, a key of `KINDS`; values: its names and values."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """As one writes it."""
        pairs = [
            f"{name}={value!r}" if self.kind != "recipe" else f"{name}: {value}" for name, value in self.values.items()
        ]
        return f"{KINDS[self.kind]} `{', '.join(pairs)}`".replace("'", '"')


KINDS = {
    "layer": "`NeuroGameAttention`:",
    "size": "`NeuroGameAttention`:",
    "estimate": "`estimate_values`:",
    "recipe": "recipe:",
    "network": "`AttractorConfig`:",
    "training": "`AttractorRecipe`:",
}


@dataclass(frozen=True)
class Contradiction:
    """here, there: what the paper says in two places, or in one and the other place's silence, with sections; code:
    what the authors' published code does, where we know; chosen: what this library does, and why; options: what gives
    the other reading; otherwise: how else, or why not.
    """

    anchor: str
    subject: str
    here: str
    there: str
    chosen: str
    code: str = ""
    options: tuple[Option, ...] = ()
    otherwise: str = ""

    def other(self) -> str:
        """How to get the other reading."""
        return "; ".join([option.text() for option in self.options] + ([self.otherwise] if self.otherwise else []))
