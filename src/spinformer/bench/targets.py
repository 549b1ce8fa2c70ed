"""How far apart the targets are: Shapley, Banzhaf and the Gibbs-weighted value, exactly, on real encoder outputs.

For each scale of the game: as the encoder leaves it (v of a sentence in the hundreds), and divided by the sum of the
vectors' lengths, as the default preset does (v at most 1). Relative distances in norm and correlations over tokens.
"""

from typing import Any

import torch
from torch import Tensor

from spinformer.assets import encoder_sample
from spinformer.games import NormGame, exact_values
from spinformer.progress import progress

TEMPERATURE, MOST = 0.25, 14


def run(seed: int = 0) -> dict[str, Any]:
    """Means over the short pairs; nothing here is random."""
    found: dict[str, dict[str, list[float]]] = {}
    for values in progress(encoder_sample().short(MOST), "targets"):
        values = values.double()
        for scale, factor in (("raw", 1.0), ("unit", 1 / float(values.norm(dim=-1).sum()))):
            game = NormGame(values, scale=factor)
            shapley, banzhaf = exact_values(game, "SV"), exact_values(game, "BV")
            gibbs = exact_values(game, "SV", "gibbs", TEMPERATURE)
            pair, gibbs_pair = exact_values(game, "BII"), exact_values(game, "BII", "gibbs", TEMPERATURE)
            row = found.setdefault(scale, {})
            same = exact_values(game, "BV", "gibbs", TEMPERATURE)
            for name, number in (
                ("gibbs_shapley_to_gibbs_banzhaf", _distance(gibbs, same)),
                ("gibbs_to_shapley", _distance(gibbs, shapley)),
                ("gibbs_to_banzhaf", _distance(gibbs, banzhaf)),
                ("shapley_to_banzhaf", _distance(banzhaf, shapley)),
                ("gibbs_shapley_correlation", float(torch.corrcoef(torch.stack([gibbs, shapley]))[0, 1])),
                ("gibbs_pairs_to_uniform", _distance(gibbs_pair, pair)),
            ):
                row.setdefault(name, []).append(number)
    means = {scale: {name: sum(many) / len(many) for name, many in row.items()} for scale, row in found.items()}
    return means | {"passed": all(row["gibbs_shapley_to_gibbs_banzhaf"] == 0 for row in means.values())}


def _distance(other: Tensor, reference: Tensor) -> float:
    return float((other - reference).norm() / reference.norm())
