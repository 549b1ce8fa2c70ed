"""The objective `grounded`: a classifier and the game of its own answers, learnt together."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer.models.grounding import GroundedGames
from spinformer.models.hidden import evaluating
from spinformer.training.ground import draw_coalitions, own_coalitions
from spinformer.training.recipe import Recipe


def together(
    model: nn.Module, recipe: Recipe, inputs: dict[str, Tensor], targets: Tensor
) -> tuple[Tensor, Any, Tensor]:
    """CE(p(N), y) + masked_weight CE(p'(C), y) + consistency D(p(N), p'(N)) + ground_weight KL(p(C) || q(C))

    p(C): what the model says when it sees the tokens C alone, from a second pass in the same batch; q(C): what its game
    predicts from the pass over the whole text. C is random for all rows but a part `whole` of them; where two passes p
    and p' under different dropout must agree (D as in R-Drop), these are seen whole again, C = N, and count in the
    second term too. The model is taught the label, and never to agree with its game.

    Returns the loss, the model's outputs (the first B rows are of the whole texts), and KL(p(C) || q(C)) of each row
    that was seen in part.
    """
    rows = len(targets)
    network: Any = getattr(model, "module", model)
    mask = inputs["attention_mask"]
    players = network.players(inputs["input_ids"], mask)
    coalition = _coalition(network, inputs, players, gate=recipe.gate)
    order = torch.randperm(rows).to(mask.device)
    count = max(1, rows - int(recipe.whole * rows + float(torch.rand(()))))  # in the mean, also of few rows
    part, again = order[:count], order[count:] if recipe.consistency else order[:0]
    coalition, players = coalition[part], players[part]
    second = torch.cat([part, again])
    doubled = {name: torch.cat([value, value[second]]) for name, value in inputs.items()}
    doubled["attention_mask"][rows : rows + count] *= coalition | ~players
    outputs = model(**doubled, output_game=True)
    full, masked, repeated = outputs.logits.float().split([rows, count, len(again)])
    games = _games(network, outputs.features[part], full[part], players)
    predicted, real = games.log_probabilities(coalition[:, None]).squeeze(1), masked.detach().log_softmax(-1)
    apart = (real.exp() * (real - predicted)).sum(-1)
    loss = functional.cross_entropy(full, targets, label_smoothing=recipe.label_smoothing)
    loss = loss + recipe.masked_weight * functional.cross_entropy(torch.cat([masked, repeated]), targets[second])
    loss = loss + recipe.ground_weight * apart.mean()
    if len(again):
        loss = loss + recipe.consistency * disagreement(full[again], repeated).mean()
    return loss, outputs, apart


def disagreement(first: Tensor, second: Tensor) -> Tensor:
    """(KL(p || q) + KL(q || p)) / 2 of each row, from logits."""
    p, q = first.log_softmax(-1), second.log_softmax(-1)
    return ((p.exp() - q.exp()) * (p - q)).sum(-1) / 2


def _coalition(network: Any, inputs: dict[str, Tensor], players: Tensor, *, gate: bool) -> Tensor:
    """(B, n), random; gate: drawn by the attention of the game itself, from a pass of its own."""
    seed = int(torch.randint(2**31, ()))
    if not gate:
        return draw_coalitions(players, 1, "sizes", seed=seed).squeeze(1)
    with torch.no_grad(), evaluating(network):
        seen = network(**inputs, output_game=True)
    return own_coalitions(_games(network, seen.features, seen.logits, players), 1, seed=seed).squeeze(1)


def _games(network: Any, features: Tensor, logits: Tensor, players: Tensor) -> GroundedGames:
    """The games of tokens, from features and logits of whole texts."""
    full = logits.detach().float().log_softmax(-1)
    return GroundedGames(network.game.readout, features * players[..., None], full, players)
