"""`SetDifference`: what two models make of the same texts, with ways to print, draw and hand it on."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from spinformer._base import checks
from spinformer.explain import tables
from spinformer.explain.aggregate import Normal
from spinformer.explain.differences import summarize_differences
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render import difference_html, overview_text
from spinformer.explain.render.layout import side_names
from spinformer.explain.render.page import embedded_page
from spinformer.explain.summary import DifferenceSummary

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

DifferenceKind = Literal["words", "pairs"]


@dataclass(frozen=True)
class SetDifference(DifferenceSummary):
    """Which words and pairs two models weigh differently, and where they decide differently and why.

    `ExplanationSet.compare` makes it; `DifferenceSummary` describes the fields. example: one of the explanations, for
    the names of what is shown. `print` shows the largest differences; a notebook shows the page.
    """

    example: ExplanationRecord | None = None

    @classmethod
    def of(
        cls,
        first: Sequence[ExplanationRecord],
        second: Sequence[ExplanationRecord],
        names: tuple[str, str],
        normal: Normal,
    ) -> "SetDifference":
        """Of explanations of the same texts by two models of these names."""
        if not isinstance(names, tuple | list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise ValueError(f"names must be those of two models; got {names!r:.60}")
        summary = summarize_differences(first, second, (names[0], names[1]), normal)
        return cls(**{field.name: getattr(summary, field.name) for field in fields(summary)}, example=first[0])

    def __str__(self) -> str:
        return overview_text.difference_text(self, side_names(self._example))

    def _repr_html_(self) -> str:
        return embedded_page(self.to_html(), difference_html.TITLE)

    def to_frame(self, kind: DifferenceKind = "words") -> "pandas.DataFrame":
        """A row for each word, or for each pair."""
        checks.choice("kind", kind, get_args(DifferenceKind))
        return tables.frame_of(self.words if kind == "words" else self.pairs)

    def plot(self, kind: DifferenceKind = "words", path: Path | str | None = None) -> "Figure":
        """A `matplotlib.figure.Figure` of the largest differences; path: where to save it as well, as PNG or SVG."""
        from spinformer.explain.render import figures

        checks.choice("kind", kind, get_args(DifferenceKind))
        figure = figures.difference_figure(self, self._example, kind)
        if path is not None:
            figures.save_figure(figure, path)
        return figure

    def to_html(self, path: Path | str | None = None, title: str = difference_html.TITLE) -> str:
        """An HTML page that needs no other file; path: where to save it as well."""
        return difference_html.difference_page(self, self._example, title, path)

    @property
    def _example(self) -> ExplanationRecord:
        assert self.example is not None
        return self.example
