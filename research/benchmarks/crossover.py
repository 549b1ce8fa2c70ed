"""From how many tokens on linear couplings are faster: time of both forms, and how much they differ."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from research.benchmarks.timing import seconds
from research.data import encoder_sample
from spinformer._base.progress import progress
from spinformer.attention import NeuroGameAttention
from spinformer.attention.settings import AUTO_LINEAR

MOST_ATTENTION = 0.01  # largest difference of any token's attention
SIZES, BATCH, BUDGET = (16, 32, 64, 128, 256, 512), 4, 25


def run(seed: int = 0) -> dict[str, Any]:
    """Forward and backward of a batch of 4, K = 25, on encoder outputs laid end to end."""
    sample = encoder_sample()
    tokens = sample.hidden[sample.mask]
    rows = []
    for n in progress(SIZES, "crossover"):
        x = torch.stack([tokens[i * n : (i + 1) * n] for i in range(min(BATCH, len(tokens) // n))])
        row: dict[str, Any] = {"tokens": n}
        outputs = {}
        for form in ("dense", "linear"):
            torch.manual_seed(seed)
            layer = NeuroGameAttention(x.shape[-1], eval_samples=BUDGET, couplings=form).eval()
            row[f"{form}_seconds"] = seconds(partial(_pass, layer, x), 3)
            outputs[form] = layer(x)
        one, other = outputs["dense"], outputs["linear"]
        row["attention"] = (one.attention - other.attention).abs().max().item()
        difference = one.interactions.dense() - other.interactions.dense()
        row["interactions"] = (difference.norm() / one.interactions.dense().norm()).item()
        row["batch"] = len(x)
        rows.append(row)
    long = [row for row in rows if row["tokens"] > AUTO_LINEAR]  # where `couplings="auto"` takes the linear form
    passed = all(row["linear_seconds"] < row["dense_seconds"] and row["attention"] <= MOST_ATTENTION for row in long)
    return {"rows": rows, "auto": AUTO_LINEAR, "passed": passed}


def _pass(layer: NeuroGameAttention, x: Tensor) -> None:
    layer(x).pooled.sum().backward()
