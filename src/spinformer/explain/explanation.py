"""What an explanation says: for each word and each pair of words, how much it spoke for the decision."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from spinformer import checks

FORMAT = 1
PlotKind = Literal["words", "pairs", "arcs"]


@dataclass(frozen=True)
class Word:
    """One word. side: 0 for the first text, 1 for the second; shapley, banzhaf: its values in the game of the decision,
    each with its standard error (0 where exact); gate, field, attention: of the Ising model that the game makes, None
    where none was solved, field and attention with standard errors (None where they are not estimated).
    """

    text: str
    side: int
    shapley: float
    shapley_stderr: float
    banzhaf: float
    banzhaf_stderr: float
    gate: float | None = None
    field: float | None = None
    attention: float | None = None
    field_stderr: float | None = None
    attention_stderr: float | None = None


@dataclass(frozen=True)
class Pair:
    """Two words by their places, first < second. interaction: positive where they say more together than each alone
    (synergy), negative where one takes from the other (antagonism); stderr: its standard error.
    """

    first: int
    second: int
    interaction: float
    stderr: float


@dataclass(frozen=True)
class Explanation:
    """texts: the text or the pair; label, probabilities: what the classifier says of it, class by class; words, pairs:
    who decided; empty_value: the probability of `label` with no word at all, so that Shapley values sum to the
    probability less it; method: "grounded" (one pass) or "masked"; passes: of the classifier; samples: coalitions;
    ess: effective sample size of the Ising model's estimates; converged: whether its mean field was reached.
    """

    texts: tuple[str, ...]
    label: str
    probabilities: dict[str, float]
    words: tuple[Word, ...]
    pairs: tuple[Pair, ...]
    empty_value: float
    method: str
    passes: int
    samples: int
    ess: float | None = None
    converged: bool | None = None

    @property
    def importance(self) -> list[float]:
        """Shapley value of each word."""
        return [word.shapley for word in self.words]

    @property
    def importance_stderr(self) -> list[float]:
        """Standard error of each."""
        return [word.shapley_stderr for word in self.words]

    @property
    def attention(self) -> list[float | None]:
        """Mean-field attention of each word."""
        return [word.attention for word in self.words]

    @property
    def interactions(self) -> list[list[float]]:
        """The symmetric matrix of pairs, 0 on the diagonal."""
        matrix = [[0.0] * len(self.words) for _ in self.words]
        for pair in self.pairs:
            matrix[pair.first][pair.second] = matrix[pair.second][pair.first] = pair.interaction
        return matrix

    def top_words(self, count: int = 5) -> list[Word]:
        """The words that spoke for the decision most, or against it, by size."""
        checks.at_least("count", count, 1)
        return sorted(self.words, key=lambda word: -abs(word.shapley))[:count]

    def top_pairs(self, count: int = 5) -> list[tuple[Word, Word, float]]:
        """The pairs with the strongest interactions, by size."""
        checks.at_least("count", count, 1)
        strongest = sorted(self.pairs, key=lambda pair: -abs(pair.interaction))[:count]
        return [(self.words[pair.first], self.words[pair.second], pair.interaction) for pair in strongest]

    def difference(self, other: "Explanation") -> list[tuple[Word, Word, float]]:
        """For each word, its Shapley value here less there; both must be of the same words."""
        if [(word.text, word.side) for word in self.words] != [(word.text, word.side) for word in other.words]:
            raise ValueError("only explanations of the same words can be compared word by word")
        return [
            (mine, theirs, mine.shapley - theirs.shapley) for mine, theirs in zip(self.words, other.words, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, **asdict(self)}

    def save(self, path: Path | str) -> Path:
        """As JSON."""
        path = Path(path)
        path.write_text(
            json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
        )
        return path

    def plot(self, kind: PlotKind = "words", path: Path | str | None = None) -> Any:
        """A `matplotlib.figure.Figure`: "words", coloured; "pairs", their map; "arcs" between those that interact most.

        path: also saved there, as PNG or SVG.
        """
        from spinformer.explain import pictures

        checks.choice("kind", kind, get_args(PlotKind))
        draw: dict[str, Callable[[Explanation], Any]]
        draw = {"words": pictures.words_figure, "pairs": pictures.heat_map, "arcs": pictures.arcs}
        figure = draw[kind](self)
        if path is not None:
            pictures.save_figure(figure, path)
        return figure

    def to_html(self, path: Path | str | None = None, title: str | None = None) -> str:
        """A page that needs nothing else; `spinformer.explain.html.to_html` makes one of many explanations.

        path: also saved there.
        """
        from spinformer.explain import html

        title = html.TITLE if title is None else title
        if path is not None:
            html.save_html(self, path, title)
        return html.to_html(self, title)

    @classmethod
    def load(cls, path: Path | str) -> "Explanation":
        """What `save` wrote; anything else is a clear error."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            if found.pop("format", None) != FORMAT:
                raise ValueError("its format is unknown")
            words = tuple(_of(Word, word) for word in found.pop("words"))
            pairs = tuple(_of(Pair, pair) for pair in found.pop("pairs"))
            return _of(cls, {**found, "texts": tuple(found["texts"]), "words": words, "pairs": pairs})
        except (json.JSONDecodeError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no saved explanation ({error})") from error


def _of(kind: type, values: dict[str, Any]) -> Any:
    names = {field.name for field in fields(kind)}
    if set(values) != names:
        raise ValueError(f"a {kind.__name__} has {', '.join(sorted(names))}; got {', '.join(sorted(values))}")
    return kind(**values)


def coloured(explanation: Explanation, *, width: int = 100) -> str:
    """The texts for a terminal: blue words spoke for the decision, orange ones against it, the stronger the deeper."""
    strongest = max((abs(value) for value in explanation.importance), default=0.0) or 1.0
    chance = explanation.probabilities[explanation.label]
    lines = [f"{explanation.label} ({chance:.1%})"]
    for side in range(len(explanation.texts)):
        words = [word for word in explanation.words if word.side == side]
        lines += _wrapped([(word.text, _shade(word.shapley / strongest)) for word in words], width)
    return "\n".join(lines)


# Backgrounds of the 256-colour palette, pale to deep; both safe for colour-blind readers.
FOR, AGAINST = (255, 195, 153, 111, 69), (255, 230, 223, 216, 208)


def _shade(part: float) -> int | None:
    depth = min(4, int(5 * abs(part)))
    return None if depth == 0 else (FOR if part > 0 else AGAINST)[depth]


def _wrapped(words: Sequence[tuple[str, int | None]], width: int) -> list[str]:
    lines, length = [""], 0
    for text, shade in words:
        if length and length + 1 + len(text) > width:
            lines.append("")
            length = 0
        safe = "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)
        shown = safe if shade is None else f"\x1b[48;5;{shade};38;5;16m{safe}\x1b[0m"
        lines[-1] += (" " if length else "") + shown
        length += len(text) + (1 if length else 0)
    return [f"  {line}" for line in lines]
