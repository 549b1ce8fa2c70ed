"""From the paper's preset to the default, one choice at a time, on real encoder outputs with untrained weights.

For each: the share of sequences whose mean field converged in 25 steps; the effective sample size as a part of K; the
spread of attention over tokens; and its Monte-Carlo noise, the standard deviation over draws of the coalitions,
averaged over tokens. If the noise is as large as the spread, attention is mostly chance.
"""

from typing import Any

import torch

from research.data import encoder_sample
from spinformer._base.progress import progress
from spinformer.attention import NeuroGameAttention

DRAWS, HEADS = 8, 1
PAPER: dict[str, Any] = {"preset": "paper"}
ROWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("paper", PAPER),
    ("paper, Anderson", PAPER | {"solver": "anderson"}),
    ("paper, tilted proposal", PAPER | {"proposal": "tilted"}),
    ("paper, uniform weighting", PAPER | {"weighting": "uniform"}),
    ("paper, uniform weighting, control variate", PAPER | {"weighting": "uniform", "estimator": "auto"}),
    ("paper, share units", PAPER | {"units": "share"}),
    ("default, Gibbs weighting", {"weighting": "gibbs", "estimator": "plain"}),
    ("default, Gibbs weighting, tilted proposal", {"weighting": "gibbs", "proposal": "tilted"}),
    ("default, plain estimator", {"estimator": "plain"}),
    ("default, paired estimator", {"estimator": "paired"}),
    ("default, raw values", {"values": "raw"}),
    ("default, damped", {"solver": "damped"}),
    ("default, TAP", {"correction": "tap"}),
    ("default, linear couplings", {"couplings": "linear"}),
    ("default", {}),
)


def run(seed: int = 0) -> dict[str, Any]:
    """One row for each choice."""
    sample = encoder_sample()
    inside = sample.mask[:, None]
    rows: list[dict[str, Any]] = []
    for name, options in progress(ROWS, "presets"):
        torch.manual_seed(seed)
        layer = NeuroGameAttention(sample.hidden.shape[-1], HEADS, **options).eval()
        attention, converged, steps, ess = [], [], [], []
        with torch.no_grad():
            for draw in range(DRAWS):
                output = layer(sample.hidden, sample.mask, torch.Generator().manual_seed(seed + draw))
                attention.append(output.attention[inside.expand_as(output.attention)])
                converged.append(output.diagnostics.converged.float().mean())
                steps.append(output.diagnostics.steps.float().mean())
                ess.append(output.diagnostics.ess.mean() / layer.eval_samples)
        stacked = torch.stack(attention)
        rows.append(
            {
                "name": name,
                "converged": torch.stack(converged).mean().item(),
                "steps": torch.stack(steps).mean().item(),
                "ess": torch.stack(ess).mean().item(),
                "mean": stacked.mean().item(),
                "spread": stacked.std(1).mean().item(),
                "noise": stacked.std(0).mean().item(),
            }
        )
    by_name = {str(row["name"]): row for row in rows}
    best = by_name["default"]
    return {
        "rows": by_name,
        "passed": best["converged"] == 1.0 and best["noise"] < best["spread"] / 10,
    }
