"""The loss of a game head, of a batch at once or, where its texts are long, of a few of them at a time."""

from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.processes import rank_and_world, share, sum_over_processes
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import answers_of
from spinformer.models.predicted_games import PredictedGames
from spinformer.training.game_hints import HintMap
from spinformer.training.game_memory import Answers, Memory, ask

# Weight of the cross-entropy beside the squared error: explanations are differences of probabilities, whose error the
# square measures; the cross-entropy has a gradient where a prediction is far off.
ENTROPY = 0.01
# Variance of the answers about a text from which on its squared error counts less than half.
FLOOR = 0.05
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
    hints: HintMap | None = None,
) -> Tensor:
    """The loss of a batch of texts, (B, K, W) coalitions of which are asked; its gradients are added to the weights'.

    memory: of what the classifier said of the batch with this number, which is not asked again; hints: where the
    hidden states behind the answers are learnt too.

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
            games, answers = head.games(classifier.model, part), ask(classifier, part, asked, hints)
        else:
            key = number, start
            logits, states = memory.states_of(key, head, classifier, part)
            games, answers = head(states, logits, part), memory.answers_of(key, classifier, part, asked, hints)
        loss = _loss(games, asked, answers, head.config, hints) * (len(asked) / batch)
        loss.backward()
        total += loss.detach()
    if world > 1:
        gradients = [total]
        for parameter in chain(head.parameters(), () if hints is None else hints.parameters()):
            if parameter.grad is None:  # of a process that has no text of this batch
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        sum_over_processes(gradients)
    return total


def _loss(
    games: PredictedGames,
    asked: Tensor,
    answers: Answers,
    config: GameHeadConfig,
    hints: HintMap | None,
) -> Tensor:
    """What `fit_game_head` says, of games and of the answers about some coalitions, with their hints."""
    if hints is None:
        return game_loss(answers[0], games.logits(asked), config)
    logits, states = games.logits_and_states(asked)
    return game_loss(answers[0], logits, config) + hints(states, answers[1])


def game_loss(answers: Tensor, logits: Tensor, config: GameHeadConfig) -> Tensor:
    """Of answers p, (B, K, classes), and predictions o, as `fit_game_head` says, without the hints."""
    wrong = ((answers - answers_of(logits, config.outputs)) / config.scale).square().sum(-1)
    spread = (answers / config.scale).var(1, correction=0, keepdim=True).sum(-1)  # (B, 1)
    loss = (wrong * FLOOR / (FLOOR + spread)).mean()
    if config.outputs == "classes":
        loss = loss - ENTROPY * (answers * logits).sum(-1).mean()
    elif config.outputs == "labels":
        entropy = functional.binary_cross_entropy_with_logits(logits, answers, reduction="none")
        loss = loss + ENTROPY * entropy.sum(-1).mean()
    return loss


@torch.no_grad()
def score_scale(classifier: MaskedClassifier, texts: Texts, max_length: int) -> float:
    """The standard deviation of the scores of the first SCALED texts; 1 for probabilities."""
    if classifier.outputs != "scores":
        return 1.0
    chosen = texts.select(range(min(SCALED, len(texts))))
    words = split_words(classifier.tokenizer, chosen, max_length)
    spread = float(classifier.full_probabilities(words).std(0, correction=0).max())
    return spread if spread > 1e-6 else 1.0
