"""The loss of a game head, of a batch at once or, where its texts are long, of a few of them at a time."""

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.processes import rank_and_world, share, sum_over_processes
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import answers_of
from spinformer.training.game_memory import Memory

# Weight of the cross-entropy beside the squared error: explanations are differences of probabilities, whose error the
# square measures; the cross-entropy has a gradient where a prediction is far off.
ENTROPY = 0.025
SCALED = 256  # texts whose scores tell how far scores spread
# Numbers that the words of a batch make of each other (`AttendingMap`), at most: on a GPU, and on a CPU.
MOST = (2**31, 2**28)


def add_gradients(
    head: GameHead,
    classifier: MaskedClassifier,
    words: Words,
    coalitions: Tensor,
    memory: Memory | None = None,
    number: int = 0,
) -> float:
    """The loss of a batch of texts, (B, K, W) coalitions of which are asked; its gradients are added to the head's.

    memory: of what the classifier said of the batch with this number, which is not asked again.

    The words of a text make numbers of the square of their number. So long texts go through in parts, whose gradients
    are those of the whole batch. Several processes share the batch, and each ends with the gradients of all of it.
    """
    batch, _, width = coalitions.shape
    room = MOST[coalitions.device.type == "cpu"] // (width * (width + 1) * head.config.dim)
    size = max(1, room if head.config.form == "attending" else batch)
    rank, world = rank_and_world()
    total, own = torch.zeros(1, device=coalitions.device), share(batch, rank, world)
    for start in own[::size]:
        stop = min(start + size, own.stop)
        part, asked = words.rows(start, stop), coalitions[start:stop]
        asked = asked[..., : part.mask.shape[1]]
        if memory is None:
            games, answers = head.games(classifier.model, part), classifier.probabilities(part, asked)
        else:
            logits, states = memory.states_of((number, start), head, classifier, part)
            games, answers = head(states, logits, part), memory.answers_of((number, start), classifier, part, asked)
        loss = game_loss(answers, games.logits(asked), head.config) * (len(asked) / batch)
        loss.backward()
        total += loss.detach()
    if world > 1:
        gradients = [total]
        for parameter in head.parameters():
            if parameter.grad is None:  # of a process that has no text of this batch
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        sum_over_processes(gradients)
    return float(total)


def game_loss(answers: Tensor, logits: Tensor, config: GameHeadConfig) -> Tensor:
    """Of answers p, (B, K, classes), and predictions o, as `fit_game_head` says."""
    squared = ((answers - answers_of(logits, config.outputs)) / config.scale).square()
    if config.outputs == "classes":
        squared = squared - ENTROPY * answers * logits
    elif config.outputs == "labels":
        entropy = functional.binary_cross_entropy_with_logits(logits, answers, reduction="none")
        squared = squared + ENTROPY * entropy
    return squared.sum(-1).mean()


@torch.no_grad()
def score_scale(classifier: MaskedClassifier, texts: Texts, max_length: int) -> float:
    """The standard deviation of the scores of the first SCALED texts; 1 for probabilities."""
    if classifier.outputs != "scores":
        return 1.0
    chosen = texts.select(range(min(SCALED, len(texts))))
    words = split_words(classifier.tokenizer, chosen, max_length)
    spread = float(classifier.full_probabilities(words).std(0, correction=0).max())
    return spread if spread > 1e-6 else 1.0
