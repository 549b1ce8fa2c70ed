"""What does the loaded classifier read, and what does it answer? The page speaks of that, whatever it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spinformer._base.outputs import Outputs
from spinformer.data.columns import inference_names
from spinformer.explain.render.characters import capitalize, shorten
from spinformer.explain.render.markup import isolate

# Names of classes that the introduction lists, and characters of each.
MAX_NAMED, MAX_NAME = 4, 40
# Short name, and the texts.
Example = tuple[str, str, str]
INFERENCE: tuple[Example, ...] = (
    ("Asleep", "A man is sleeping on a bench in the park.", "The man is awake and running."),
    ("Outside", "Two dogs play in the snow.", "Some animals are outside."),
    ("Music", "A woman plays the violin on a stage.", "The woman is famous."),
    ("Nobody", "Three children are eating ice cream.", "Nobody is eating."),
    ("Colours", "A boy in a red shirt kicks a ball.", "A boy in a blue shirt kicks a ball."),
)
PAIRS: tuple[Example, ...] = (
    ("Same", "How do I learn to swim?", "What is the best way to learn swimming?"),
    ("Similar", "A girl is playing the guitar.", "A woman is playing the piano."),
    ("Different", "The train leaves at nine.", "Tomatoes need a lot of sun."),
    ("Not", "The shop is open on Sundays.", "The shop is not open on Sundays."),
)
SINGLES: tuple[Example, ...] = (
    ("Praise", "A warm and funny film that I would happily watch again.", ""),
    ("Complaint", "The room was dirty, and nobody answered our calls.", ""),
    ("Mixed", "The idea is clever, but the story is far too long.", ""),
    ("Not bad", "It was not bad at all, I even laughed.", ""),
    ("Thanks", "Thank you so much, this helped me a lot!", ""),
)


@dataclass(frozen=True)
class Task:
    """paired: whether it reads two texts; outputs: what it answers with; names: of its outputs; inference: whether
    these are the classes of natural language inference."""

    paired: bool
    outputs: Outputs
    names: tuple[str, ...]
    inference: bool

    @classmethod
    def of(cls, names: Sequence[str], outputs: Outputs, head: Any, texts: int = 0) -> "Task":
        """Of a classifier with these outputs and this game head.

        texts: 1 or 2, how many texts it reads; 0: as its game was learnt; where that was not kept, two for the classes
        of natural language inference, and one for all others.
        """
        if texts not in (0, 1, 2):
            raise ValueError(f"texts must be 1 or 2, or 0 where the game says so; got {texts!r:.60}")
        known = texts or head.config.texts
        inference = outputs == "classes" and known != 1 and inference_names(names, paired=True) is not None
        return cls(known == 2 or inference, outputs, tuple(names), inference)

    @property
    def text_names(self) -> tuple[str, ...]:
        """What the one text, or each of the two, is called."""
        if self.inference:
            return ("premise", "hypothesis")
        return ("first text", "second text") if self.paired else ("text",)

    @property
    def box_names(self) -> tuple[str, ...]:
        """The same beside the boxes where they are written; a report says "first text" and "second text"."""
        if self.inference:
            return ("First text: the premise", "Second text: the hypothesis")
        return tuple(capitalize(name) for name in self.text_names)

    @property
    def examples(self) -> tuple[Example, ...]:
        """Texts to try."""
        return INFERENCE if self.inference else PAIRS if self.paired else SINGLES

    @property
    def introduction(self) -> str:
        """What it does and what the page shows, as HTML; names of classes are shown as text."""
        shown = f"You see which words decided, and which pairs of words, from {self.price}."
        if self.inference:
            return f"Does the premise entail the hypothesis, contradict it, or neither? The classifier decides. {shown}"
        texts = "two texts" if self.paired else "a text"
        return f"Write {texts}. The classifier {self._does}. {shown}"

    price = "a single pass of the classifier"

    @property
    def _does(self) -> str:
        names = [f"<strong>{isolate(shorten(name, MAX_NAME))}</strong>" for name in self.names]
        if self.outputs == "scores":
            return f"answers with a number, its {names[0]}" if len(names) == 1 else f"answers with {len(names)} numbers"
        if len(names) > MAX_NAMED:
            some = ", ".join(names[:MAX_NAMED])
            chosen = "gives it any of" if self.outputs == "labels" else "decides for one of"
            kind = "labels" if self.outputs == "labels" else "classes"
            return f"{chosen} {len(names)} {kind}: {some}, ..."
        listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        return f"gives it any of the labels {listed}" if self.outputs == "labels" else f"decides for {listed}"

    @property
    def decision(self) -> str:
        """What is explained where no class was chosen."""
        names = {"classes": "the decision", "labels": "the most likely label", "scores": "the first number"}
        return names[self.outputs]

    @property
    def choices(self) -> list[tuple[str, int]]:
        """The classes, each with its number."""
        return [(shorten(name, MAX_NAME), number) for number, name in enumerate(self.names)]
