"""`Explanation`: what a method says of one text, with ways to print, draw, save and hand it on."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from spinformer._base import checks
from spinformer._base.choices import PAIRS
from spinformer._base.files import atomic_write, regular
from spinformer.explain import exchange
from spinformer.explain.record import ExplanationRecord, Pair, Word, check_record
from spinformer.explain.render import html, text
from spinformer.explain.render.ranking import adds_up

if TYPE_CHECKING:
    import pandas
    import shap
    import shapiq
    from matplotlib.figure import Figure

FORMAT = 5
PlotKind = Literal["words", "bar", "waterfall", "force", "pairs", "arcs"]
Record = TypeVar("Record")


@dataclass(frozen=True)
class Explanation(ExplanationRecord):
    """Which words and which pairs of words speak for a class, and with which standard errors.

    `ExplanationRecord` describes the fields. `print(explanation)` shows the decision, the most important words and the
    strongest pairs; a notebook shows the coloured report.
    """

    def __str__(self) -> str:
        return text.plain_text(self)

    def _repr_html_(self) -> str:
        return html.embedded_html(self)

    def difference(self, other: "Explanation") -> list[tuple[Word, Word, float]]:
        """For each word, its score here minus its score in `other`; both must be explanations of the same words."""
        checks.instance("other", other, Explanation)
        if [(word.text, word.side) for word in self.words] != [(word.text, word.side) for word in other.words]:
            raise ValueError("only explanations of the same words can be compared word by word")
        return [
            (mine, theirs, mine.importance - theirs.importance)
            for mine, theirs in zip(self.words, other.words, strict=True)
        ]

    @property
    def plots(self) -> tuple[PlotKind, ...]:
        """The kinds of `plot` that this explanation allows."""
        return tuple(kind for kind in get_args(PlotKind) if kind not in ("waterfall", "force") or adds_up(self))

    def plot(self, kind: PlotKind = "words", path: Path | str | None = None) -> "Figure":
        """A `matplotlib.figure.Figure` of this explanation.

        "words", coloured; "bar", their values by size with 95% intervals; "waterfall", steps from the probability of no
        words to that of all; "force", the same on one line; "pairs", a map of them; "arcs" between the strongest pairs.
        "waterfall" and "force" need values that add up, as Shapley values do. path: where to save it as well, as PNG or
        SVG.
        """
        from spinformer.explain.render import figures

        checks.choice("kind", kind, get_args(PlotKind))
        draw: Callable[[ExplanationRecord], Figure] = getattr(figures, f"{kind}_figure")
        figure = draw(self)
        if path is not None:
            figures.save_figure(figure, path)
        return figure

    def to_html(self, path: Path | str | None = None, title: str = html.TITLE) -> str:
        """An HTML page that needs no other file; path: where to save it as well.

        `spinformer.explain.render.html.to_html` makes one page of many explanations.
        """
        if path is not None:
            html.save_html(self, path, title)
        return html.to_html(self, title)

    def to_frame(self) -> "pandas.DataFrame":
        """One row for each word."""
        return exchange.to_frame(self)

    def to_row(self, number: int = 0, pairs: int = PAIRS) -> dict[str, Any]:
        """One flat row for tables of many explanations, with the `pairs` strongest pairs; number: of the row.

        `explain_corpus` writes such rows, and so can `datasets.map`.
        """
        return exchange.to_row(self, number, pairs)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Explanation":
        """What `to_row` made a row of: its words, its strongest pairs, and all that the row holds."""
        made = cls(**exchange.from_row(row))
        check_record(made)
        return made

    def to_shap(self) -> "shap.Explanation":
        """A `shap.Explanation`, for shap's plots."""
        return exchange.to_shap(self)

    def to_shapiq(self) -> "shapiq.InteractionValues":
        """`shapiq.InteractionValues` of the words and the pairs."""
        return exchange.to_shapiq(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, **asdict(self)}

    def save(self, path: Path | str) -> Path:
        """As JSON, which `load` reads."""
        content = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        with atomic_write(Path(path)) as partial:
            partial.write_text(content, encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: Path | str) -> "Explanation":
        """What `save` wrote; anything else is a ValueError."""
        checks.instance("path", path, str, Path)
        if not Path(path).exists():
            raise FileNotFoundError(f"no file {path}; expected a saved explanation")
        try:
            stored = _current(json.loads(regular(Path(path)).read_text(encoding="utf-8")))
            words = tuple(_checked(Word, word) for word in stored.pop("words"))
            pairs = tuple(_checked(Pair, pair) for pair in stored.pop("pairs"))
            loaded = _checked(cls, {**stored, "texts": tuple(stored["texts"]), "words": words, "pairs": pairs})
            check_record(loaded)
            return loaded
        except (json.JSONDecodeError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no saved explanation ({error})") from error


def _current(stored: dict[str, Any]) -> dict[str, Any]:
    """The stored fields under their present names.

    Before format 5 players were words, before format 4 models had classes alone. Before format 3 the interactions were
    always Banzhaf's, and misfit was not known; in format 1 the scores were always Shapley values.
    """
    version = stored.pop("format", None)
    if version in (4, FORMAT):
        stored = stored if version == FORMAT else {**stored, "players": "words"}
        return {**stored, "notes": tuple(stored["notes"]), "unread": tuple(stored["unread"])}
    if version not in (1, 2, 3):
        raise ValueError(f"its format must be from 1 to {FORMAT}; got {version!r}")
    stored = {**stored, "outputs": "classes", "against": None, "unread": (), "players": "words"}
    if version == 3:
        return {**stored, "notes": tuple(stored["notes"])}
    if version == 1:
        for word in stored["words"]:
            word.update(importance=word["shapley"], importance_stderr=word["shapley_stderr"])
        method = "shapley" if stored["method"] == "grounded" else "kernel-shap"
        stored.update(target=stored["label"], base_value=stored.pop("empty_value"), method=method)
    for part in (*stored["words"], *stored["pairs"]):
        part["misfit_stderr"] = None
    return {**stored, "pair_index": "BII" if stored["pairs"] else None, "notes": ()}


def _checked(kind: type[Record], values: Mapping[str, Any]) -> Record:
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if set(values) != names:
        raise ValueError(f"a {kind.__name__} has {', '.join(sorted(names))}; got {', '.join(sorted(values))}")
    return kind(**values)
