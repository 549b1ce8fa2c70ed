"""What a classifier said of the batches of an epoch, kept until it is over: learnt from again, not asked again."""

from collections.abc import Sequence

from torch import Tensor

from spinformer.data.words import Words
from spinformer.models.game_head import GameHead
from spinformer.models.hidden_states import frozen_states
from spinformer.models.masked import MaskedClassifier

ROOM = 2**30  # bytes of hidden states that are kept, at most; those of other batches are computed again

States = tuple[Tensor, Sequence[Tensor]]  # logits of the full texts, and their hidden states


class Memory:
    """asked: the words and the coalitions of each batch, by its number; answers: of these coalitions, by the number of
    the batch and its part; states: of full texts, while there is room.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room = self.left = room
        self.asked: dict[int, tuple[Words, Tensor]] = {}
        self.answers: dict[tuple[int, int], Tensor] = {}
        self.states: dict[tuple[int, int], States] = {}

    def clear(self) -> None:
        """Forget all: other batches come."""
        self.left = self.room
        self.asked.clear()
        self.answers.clear()
        self.states.clear()

    def answers_of(self, key: tuple[int, int], classifier: MaskedClassifier, words: Words, asked: Tensor) -> Tensor:
        """The classifier's answers, (B, K, classes), of the coalitions asked about."""
        if key not in self.answers:
            self.answers[key] = classifier.probabilities(words, asked).cpu()
        return self.answers[key].to(asked.device)

    def states_of(self, key: tuple[int, int], head: GameHead, classifier: MaskedClassifier, words: Words) -> States:
        """Logits and hidden states of the full texts; of the layers that the head reads alone where they were kept."""
        if key in self.states:
            logits, states = self.states[key]
            return logits.to(classifier.device), [state.to(classifier.device) for state in states]
        logits, states = frozen_states(classifier.model, words.inputs)
        read = [state if layer in head.config.layers else state[:0] for layer, state in enumerate(states)]
        size = sum(state.nbytes for state in read)
        if size <= self.left:
            self.left -= size
            self.states[key] = logits.cpu(), [state.cpu().clone() for state in read]
        return logits, states
