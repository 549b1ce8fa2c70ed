"""What a classifier said of some batches, kept until others are asked about: learnt from again, not asked again."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer._base.memory import free_memory
from spinformer._base.processes import rank_and_world
from spinformer.data.words import Words
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.models.padding import full_states
from spinformer.training.game_hints import HintMap

# The share of free memory that kept hidden states may take, of all processes, and their bytes where what is free is not
# known; those of other batches are computed again. They stay where they are: to fetch them from the host to a GPU would
# take longer than to compute them.
SHARE, ROOM = 0.25, 2**30

States = tuple[Tensor, Sequence[Tensor]]  # logits of the full texts, and their hidden states
Answers = tuple[Tensor, Tensor | None]  # (B, K, classes), and the hints behind them in units, (B, K, h)


class Memory:
    """asked: the words and the coalitions of each batch, by its number; answers: of these coalitions, by the number of
    the batch and its part; states: of full texts, while there is room.
    """

    def __init__(self, room: int) -> None:
        self.room = self.left = room
        self.asked: dict[int, tuple[Words, Tensor]] = {}
        self.answers: dict[tuple[int, int], Answers] = {}
        self.states: dict[tuple[int, int], States] = {}

    @classmethod
    def on(cls, device: torch.device) -> "Memory":
        """With the room that this device has."""
        if device.type == "cuda":
            return cls(int(SHARE * torch.cuda.mem_get_info(device)[0]))
        free = free_memory()
        return cls(ROOM if free is None else int(SHARE * free / rank_and_world()[1]))

    def clear(self) -> None:
        """Forget all: other batches come."""
        self.left = self.room
        self.asked.clear()
        self.answers.clear()
        self.states.clear()

    def answers_of(
        self, key: tuple[int, int], classifier: MaskedClassifier, words: Words, asked: Tensor, hints: HintMap | None
    ) -> Answers:
        """The classifier's answers about these coalitions, and hints if they are learnt."""
        if key not in self.answers:
            self.answers[key] = ask(classifier, words, asked, hints)
        return self.answers[key]

    def states_of(self, key: tuple[int, int], head: GameHead, classifier: MaskedClassifier, words: Words) -> States:
        """Logits and hidden states of the full texts; of the layers that the head reads alone where they were kept."""
        if key in self.states:
            return self.states[key]
        logits, states = full_states(classifier.model, words.inputs)
        read = [state if layer in head.config.layers else state[:0] for layer, state in enumerate(states)]
        size = sum(state.nbytes for state in read)
        if size <= self.left:
            self.left -= size
            self.states[key] = logits, [state.clone() for state in read]
        return logits, states


def ask(classifier: MaskedClassifier, words: Words, asked: Tensor, hints: HintMap | None) -> Answers:
    """What the classifier says of these coalitions, (B, K, W), and the hints behind it if they are learnt."""
    if hints is None:
        return classifier.probabilities(words, asked), None
    answers, states = classifier.probabilities_and_hints(words, asked)
    return answers, hints.units(states)
