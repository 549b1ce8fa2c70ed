"""`ExplanationSet`: explanations of many texts as one object. What does the classifier rely on, and where?"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, get_args, overload

from spinformer._base import checks
from spinformer.explain import tables
from spinformer.explain.aggregate import summarize_pairs, summarize_words
from spinformer.explain.exchange import FIELD_OF
from spinformer.explain.explanation import Explanation
from spinformer.explain.render import overview_html, overview_text
from spinformer.explain.rows import load_explanations
from spinformer.explain.set_difference import SetDifference
from spinformer.explain.summary import GroupSummary, Overview, PairSummary, UnusualText, WordSummary
from spinformer.explain.unusual import unusual_texts

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Order = Literal["lower", "share", "mean", "mean_abs", "count"]
SetPlot = Literal["words", "classes", "pairs"]
Summary = TypeVar("Summary", WordSummary, PairSummary)
Cohort = Callable[[Explanation], object] | Sequence[object]


class ExplanationSet(Sequence[Explanation]):
    """Explanations of a whole data set: which words and pairs matter, for which class, and which texts are unusual.

        explained = spinformer.ExplanationSet(explainer(texts))
        explained = spinformer.ExplanationSet.load("explained.parquet")   # what `spinformer explain --output` wrote

    explanations: any iterable of them, by one method. normal: how words are counted; by default capitals do not matter,
    and a function of your own may take the stem. A word of the first text and the same word of the second are two.
    `print` shows the most important words, pairs and unusual texts; a notebook shows the page.
    """

    def __init__(self, explanations: Iterable[Explanation], *, normal: Callable[[str], str] = str.casefold) -> None:
        checks.function("normal", normal)
        if isinstance(explanations, str | Path):
            raise TypeError(f"explanations must be a list of Explanation, and ExplanationSet.load reads a file; "
                            f"got {str(explanations)!r:.60}")  # fmt: skip
        if not hasattr(explanations, "__iter__"):
            raise TypeError(f"explanations must be a list of Explanation; got {explanations!r:.60}")
        self._explanations, self.normal = tuple(explanations), normal
        for one in self._explanations:
            checks.instance("each of explanations", one, Explanation)
        if not self._explanations:
            raise ValueError("a set needs at least one explanation; got none")
        for name, kinds in (
            ("one kind of score", {FIELD_OF.get(one.method, one.method) for one in self}),
            ("one kind of output", {one.outputs for one in self}),
            ("single texts or pairs", {str(len(one.texts)) for one in self}),
        ):
            if len(kinds) > 1:
                raise ValueError(f"explanations of a set must have {name}; got {', '.join(sorted(kinds))}")

    @classmethod
    def load(cls, path: Path | str, *, normal: Callable[[str], str] = str.casefold) -> "ExplanationSet":
        """Of a .jsonl, .csv or .parquet that `spinformer explain MODEL FILE --output` wrote, or a folder of JSON files.

        Rows hold the strongest pairs of each text only, so numbers of pairs are over the texts that list them.
        """
        return cls(load_explanations(path), normal=normal)

    def __len__(self) -> int:
        return len(self._explanations)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...

    @overload
    def __getitem__(self, index: slice) -> "ExplanationSet": ...

    def __getitem__(self, index: int | slice) -> "Explanation | ExplanationSet":
        if isinstance(index, slice):
            return ExplanationSet(self._explanations[index], normal=self.normal)
        return self._explanations[index]

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self._explanations)

    def words(self, k: int | None = None, *, by: Order = "lower", min_count: int = 1) -> list[WordSummary]:
        """Global importance: each word over the texts that have it, the largest of either sign first.

        k: as many, by default all. by: what decides: "lower", how much a word surely matters where it stands; "share",
        its part of all that words do; "mean"; "mean_abs"; "count" (see `WordSummary`). min_count: leave out words of
        fewer texts.
        """
        return _largest(self._words, k, by, min_count)

    def pairs(self, k: int | None = None, *, by: Order = "lower", min_count: int = 1) -> list[PairSummary]:
        """The same of pairs of words and their interactions."""
        return _largest(self._pairs, k, by, min_count)

    @cached_property
    def _words(self) -> tuple[WordSummary, ...]:
        return tuple(summarize_words(self._explanations, self.normal))

    @cached_property
    def _pairs(self) -> tuple[PairSummary, ...]:
        return tuple(summarize_pairs(self._explanations, self.normal))

    def by_class(self) -> "dict[str, ExplanationSet]":
        """The explanations for each class, the largest first; with `against=`, for each two classes."""
        groups = self.cohorts(explained_class)
        return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))

    def cohorts(self, by: Cohort) -> "dict[str, ExplanationSet]":
        """Groups of the texts, by what a function says of each explanation, or by a column with a value for each."""
        if callable(by):
            values = [by(one) for one in self]
        else:
            if isinstance(by, str | bytes) or not hasattr(by, "__len__"):
                raise TypeError(f"by must be a function, or a column of values; got {by!r:.60}")
            values = list(by)
            if len(values) != len(self):
                raise ValueError(f"by must have a value for each of {len(self)} explanations; got {len(values)}")
        groups: dict[str, list[Explanation]] = {}
        for value, one in zip(values, self, strict=True):
            groups.setdefault(str(value), []).append(one)
        return {name: ExplanationSet(group, normal=self.normal) for name, group in groups.items()}

    def unusual(self, k: int | None = None) -> list[UnusualText]:
        """The texts whose reasons differ most from the usual ones of their class, the farthest first.

        `spinformer.explain.unusual` defines the distance. Classes of fewer than three texts have nothing usual.
        """
        if k is not None:
            checks.at_least("k", k, 1)
        places: dict[str, list[int]] = {}
        for index, one in enumerate(self):
            places.setdefault(explained_class(one), []).append(index)
        texts = [
            text
            for indices in places.values()
            for text in unusual_texts(indices, [self[index] for index in indices], self.normal)
        ]
        return sorted(texts, key=lambda one: (-one.distance, one.index))[:k]

    def compare(self, other: "ExplanationSet", names: tuple[str, str] = ("first", "second")) -> SetDifference:
        """What another model makes of the same texts: words and pairs weighed differently, and other decisions.

        names: of the two models. Values are compared where both explain the same class; explain both with the same
        `target=` to compare them on all texts.
        """
        checks.instance("other", other, ExplanationSet)
        return SetDifference.of(self._explanations, other._explanations, names, self.normal)

    def summary(self, name: str = "") -> GroupSummary:
        """All texts of this set as one group."""
        bases = [one.base_value for one in self if one.base_value is not None]
        return GroupSummary(
            name=name,
            count=len(self),
            value=sum(one.full_value for one in self) / len(self),
            base_value=sum(bases) / len(bases) if len(bases) == len(self) else None,
            words=self._words,
            pairs=self._pairs,
            labels=dict(Counter(one.label for one in self).most_common()),
        )

    def overview(self, cohorts: Cohort | None = None) -> Overview:
        """All that a page shows."""
        if cohorts is None:
            return self._overview
        groups = tuple(group.summary(name) for name, group in self.cohorts(cohorts).items())
        return replace(self._overview, cohorts=groups)

    @cached_property
    def _overview(self) -> Overview:
        return Overview(
            whole=self.summary(),
            classes=tuple(group.summary(name) for name, group in self.by_class().items()),
            cohorts=(),
            unusual=tuple(self.unusual()),
            notes=dict(Counter(note for one in self for note in one.notes).most_common()),
            methods=dict(Counter(one.method for one in self).most_common()),
            passes=sum(one.passes for one in self) / len(self),
            example=self[0],
            partial_pairs=any(0 < len(one.pairs) < len(one.words) * (len(one.words) - 1) // 2 for one in self),
        )

    def to_frame(self, kind: tables.FrameKind = "words") -> "pandas.DataFrame":
        """ "words" or "pairs": a row for each, over all texts (class None) and in each class; "texts": one for each."""
        return tables.to_frame(kind, self.overview())

    def plot(self, kind: SetPlot = "words", path: Path | str | None = None) -> "Figure":
        """A `matplotlib.figure.Figure`: "words" or "pairs" over all texts; "classes", the words of each.

        path: where to save it as well, as PNG or SVG.
        """
        from spinformer.explain.render import figures

        checks.choice("kind", kind, get_args(SetPlot))
        figure = figures.set_figure(self.overview(), kind)
        if path is not None:
            figures.save_figure(figure, path)
        return figure

    def to_html(
        self, path: Path | str | None = None, title: str = overview_html.TITLE, cohorts: Cohort | None = None
    ) -> str:
        """An HTML page that needs no other file; path: where to save it as well; cohorts: groups to show beside."""
        return overview_html.overview_page(self.overview(cohorts), title, path)

    def __str__(self) -> str:
        return overview_text.overview_text(self.overview())

    def __repr__(self) -> str:
        return f"ExplanationSet of {len(self):,} explanations by {self[0].method}"

    def _repr_html_(self) -> str:
        return overview_html.embedded(self.to_html())


def explained_class(explanation: Explanation) -> str:
    """What an explanation explains: a class, or one against another."""
    against = explanation.against
    return explanation.target if against is None else f"{explanation.target} against {against}"


def _largest(summaries: Sequence[Summary], k: int | None, by: str, min_count: int) -> list[Summary]:
    checks.choice("by", by, get_args(Order))
    checks.at_least("min_count", min_count, 1)
    if k is not None:
        checks.at_least("k", k, 1)
    kept = [one for one in summaries if one.count >= min_count]
    return sorted(kept, key=lambda one: (-abs(getattr(one, by)), -one.share))[:k]
