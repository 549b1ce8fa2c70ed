"""The objective `grounded`: a classifier, and the game head that predicts its answers, learn together."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer.games.coalitions import draw_coalitions
from spinformer.models.predicted_games import PredictedGames
from spinformer.training.classifier.recipe import ClassifierRecipe


def grounded_loss(
    model: nn.Module, recipe: ClassifierRecipe, inputs: dict[str, Tensor], targets: Tensor
) -> tuple[Tensor, Any, Tensor]:
    """CE(p(N), y) + masked_weight CE(p'(C), y) + consistency D(p(N), p'(N)) + ground_weight KL(p(C) || q(C))

    p(C): the model's probabilities when it sees the tokens C alone, from a second pass in the same batch; N: all
    tokens; q(C): what its game head predicts from the pass over the full text; y: the target; D: the disagreement of
    two passes p and p' under different dropout (R-Drop). C is random, but for a part `whole` of the rows; with
    consistency, these have C = N in the second pass, and count in the second term too. The model learns the
    label; it is never taught to agree with its game head.

    Returns the loss, the model's outputs (the first B rows are of the full texts), and KL(p(C) || q(C)) of each row
    with a random C.
    """
    rows = len(targets)
    network: Any = getattr(model, "module", model)
    mask = inputs["attention_mask"]
    players = network.players(inputs["input_ids"], mask)
    coalitions = draw_coalitions(players, 1, seed=int(torch.randint(2**31, ()))).squeeze(1)  # (B, n)
    order = torch.randperm(rows).to(mask.device)
    count = max(1, rows - int(recipe.whole * rows + float(torch.rand(()))))  # right on average, also for small batches
    part, repeat = order[:count], order[count:] if recipe.consistency else order[:0]
    coalitions, players = coalitions[part], players[part]
    second = torch.cat([part, repeat])
    doubled = {name: torch.cat([value, value[second]]) for name, value in inputs.items()}
    doubled["attention_mask"][rows : rows + count] *= coalitions | ~players
    outputs = model(**doubled, output_game=True)
    full, masked, repeated = outputs.logits.float().split([rows, count, len(repeat)])
    games = PredictedGames(
        network.game.readout,
        outputs.features[part] * players[..., None],
        full[part].detach().log_softmax(-1),
        players,
    )
    predicted, answer = games.logits(coalitions[:, None]).squeeze(1), masked.detach().log_softmax(-1)
    divergence = (answer.exp() * (answer - predicted)).sum(-1)
    loss = functional.cross_entropy(full, targets, label_smoothing=recipe.label_smoothing)
    loss = loss + recipe.masked_weight * functional.cross_entropy(torch.cat([masked, repeated]), targets[second])
    loss = loss + recipe.ground_weight * divergence.mean()
    if len(repeat):
        loss = loss + recipe.consistency * disagreement(full[repeat], repeated).mean()
    return loss, outputs, divergence


def disagreement(first: Tensor, second: Tensor) -> Tensor:
    """(KL(p || q) + KL(q || p)) / 2 of each row, from logits."""
    p, q = first.log_softmax(-1), second.log_softmax(-1)
    return ((p.exp() - q.exp()) * (p - q)).sum(-1) / 2
