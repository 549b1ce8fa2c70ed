"""How much Shapley, Banzhaf and Gibbs-weighted values differ: exact values on real encoder outputs.

Two scales of the game: the encoder's own (v of a sentence in the hundreds), and divided by the sum of the vectors'
lengths, as in the default preset (v at most 1). Relative distances in norm, and correlations over tokens.
"""

from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from research.data import encoder_sample
from spinformer._base.progress import progress
from spinformer.games import NormGame, exact_values

TEMPERATURE, MOST = 0.25, 14


def run(seed: int = 0) -> dict[str, Any]:
    """Means over the short pairs; nothing here is random."""
    numbers: dict[str, dict[str, list[float]]] = {}
    for values in progress(encoder_sample().short(MOST), "targets"):
        values = values.double()
        for scale, factor in (("raw", 1.0), ("unit", 1 / float(values.norm(dim=-1).sum()))):
            game = NormGame(values, scale=factor)
            shapley, banzhaf = exact_values(game, "SV"), exact_values(game, "BV")
            gibbs = exact_values(game, "SV", "gibbs", TEMPERATURE)
            pair, gibbs_pair = exact_values(game, "BII"), exact_values(game, "BII", "gibbs", TEMPERATURE)
            row = numbers.setdefault(scale, {})
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
    means = {scale: {name: fmean(values) for name, values in row.items()} for scale, row in numbers.items()}
    return means | {"passed": all(row["gibbs_shapley_to_gibbs_banzhaf"] == 0 for row in means.values())}


def _distance(other: Tensor, reference: Tensor) -> float:
    return float((other - reference).norm() / reference.norm())
