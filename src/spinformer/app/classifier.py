"""The classifier that the page explains: loaded once, used for every request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic

from spinformer._base.choices import PAIRS
from spinformer._base.progress import reporting
from spinformer.app import limits
from spinformer.app.task import Task
from spinformer.app.uploads import Upload, read_upload
from spinformer.explain.explainer import QUICK, Explainer
from spinformer.explain.explanation import Explanation
from spinformer.explain.explanation_set import ExplanationSet
from spinformer.explain.grounded import TEMPERATURE
from spinformer.explain.inputs import CallOptions
from spinformer.explain.methods.game import NO_GAME
from spinformer.explain.render.characters import capitalize

SAMPLES = 512
# Texts of a file that are explained at once; in between, the visitor is told how many are done.
CHUNK = 8
# Is told how many are done, and of how many.
Tell = Callable[[int, int], None]


class TimeIsUpError(Exception):
    """A request took all the time that it may take."""


def silent(done: int, total: int | None) -> None:
    """Tell nobody."""


@contextmanager
def _in_sentences() -> Iterator[None]:
    """What the explainer says of a visitor's mistake begins with a capital letter, as all that the page says."""
    try:
        yield
    except ValueError as error:
        raise ValueError(capitalize(str(error))) from None


@dataclass(frozen=True)
class ExplainedFile:
    """The explanations of a file's texts; notes: what of the file they are not of, in sentences."""

    name: str
    explained: ExplanationSet
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Classifier:
    """An explainer of a classifier that has a game. texts: how many it reads, 0 where its game says so (`Task`)."""

    explainer: Explainer
    texts: int = 0

    def __post_init__(self) -> None:
        if self.explainer.grounded is None:
            raise ValueError(NO_GAME)

    @classmethod
    def load(cls, path_or_hub_id: str, device: str = "cpu", texts: int = 0) -> "Classifier":
        """From a folder, or a name on the hub."""
        return cls(Explainer.from_pretrained(path_or_hub_id, device), texts)

    @cached_property
    def task(self) -> Task:
        """What it reads and what it answers."""
        assert self.explainer.grounded is not None
        answers = self.explainer.context().answers
        return Task.of(answers.names, answers.outputs, self.explainer.grounded.head, self.texts)

    def explain(
        self,
        text: object,
        text_pair: object = "",
        temperature: object = TEMPERATURE,
        samples: object = SAMPLES,
        target: object = -1,
        against: object = -1,
    ) -> Explanation:
        """Of a text or a pair, within the page's limits; what lies outside of them is a ValueError for the visitor.

        target, against: classes by their numbers, -1 for the decision, and for no other class.
        """
        first, *second = limits.check_texts(self.task.text_names, (text, text_pair))
        explainer = self._with(temperature, samples)
        with reporting(silent), _in_sentences():
            return explainer(first, second[0] if second else None, **self._classes(target, against))

    def refine(
        self,
        text: object,
        text_pair: object,
        temperature: object,
        samples: object,
        target: object,
        against: object,
        passes: object,
        tell: Tell = silent,
    ) -> Explanation:
        """The same, corrected by masked passes of the classifier; without them, where they took too long."""
        first, *second = limits.check_texts(self.task.text_names, (text, text_pair))
        explainer, count = self._with(temperature, samples), limits.passes(passes)
        one_pass = self._classes(target, against)
        options: CallOptions = {**one_pass, "passes": count}
        until = monotonic() + limits.REFINE_SECONDS

        def report(done: int, total: int | None) -> None:
            if monotonic() > until:
                raise TimeIsUpError
            tell(count * done // (total or 1), count)

        try:
            with reporting(report), _in_sentences():
                return explainer(first, second[0] if second else None, **options)
        except TimeIsUpError:
            late = f"{count:,} passes take longer than {limits.REFINE_SECONDS:g} seconds: this is what one pass says"
            explanation = explainer(first, second[0] if second else None, **one_pass)
            return replace(explanation, notes=(late, *explanation.notes))

    def explain_file(
        self, value: object, target: object = -1, against: object = -1, tell: Tell = silent
    ) -> ExplainedFile:
        """Of the texts of a file that a visitor sent (`uploads.read_upload`), as many as there is time for."""
        upload: Upload = read_upload(value, self.task)
        explainer, options = self._with(TEMPERATURE, QUICK), self._classes(target, against)
        texts, start = upload.texts, monotonic()
        explanations: list[Explanation] = []
        with reporting(silent), _in_sentences():
            for begin in range(0, len(texts), CHUNK):
                tell(begin, len(texts))
                if begin and monotonic() - start > limits.FILE_SECONDS:
                    break
                part = texts.select(range(begin, min(begin + CHUNK, len(texts))))
                second = None if part.second is None else list(part.second)
                explanations += map(_with_few_pairs, explainer(list(part.first), second, **options))
        notes = list(upload.left_out)
        if len(explanations) < len(texts):
            over = f"The {limits.FILE_SECONDS:g} seconds for a file were over after {len(explanations):,} rows"
            notes.append(f"{over}: the other {len(texts) - len(explanations):,} are not explained.")
        return ExplainedFile(upload.name, ExplanationSet(explanations), tuple(notes))

    def _with(self, temperature: object, samples: object) -> Explainer:
        """The explainer with what a visitor may choose."""
        assert self.explainer.grounded is not None
        return Explainer(
            self.explainer.model,
            self.explainer.tokenizer,
            game=self.explainer.grounded.head,
            temperature=limits.number("The temperature", temperature, *limits.TEMPERATURES),
            samples=limits.integer("The number of samples", samples, *limits.SAMPLES),
        )

    def _classes(self, target: object, against: object) -> CallOptions:
        """The class to explain, and the one that it is explained against."""
        count = len(self.task.names)
        chosen = limits.choice("The class", target, count)
        other = limits.choice("The other class", against, count)
        if other is not None and chosen == other:
            raise ValueError("Please choose two different classes.")
        return {"target": chosen, "against": other}


def _with_few_pairs(explanation: Explanation) -> Explanation:
    """As a row of a file holds it: all pairs of many texts would take longer to sum up than to compute."""
    return replace(explanation, pairs=tuple(explanation.ranked_pairs()[:PAIRS]))
