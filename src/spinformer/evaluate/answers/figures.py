"""Figures of a classifier's scores: the confusion matrix, and how well its probabilities are calibrated.

`figure.savefig("x.png")` or `"x.svg"` writes one. They need no display and leave pyplot's state alone. Colours are safe
for colour-blind readers (cividis; Okabe and Ito).
"""

from typing import TYPE_CHECKING

from spinformer._base.extras import require
from spinformer.evaluate.answers.metrics import Scores
from spinformer.explain.render.canvas import BLUE, VERMILION, check_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_matplotlib", "confusion_figure", "reliability_figure"]


def confusion_figure(scores: Scores, title: str = "") -> "Figure":
    """Counts with gold classes as rows and predictions as columns, shaded by their share of the row."""
    size = 2.2 + 0.9 * len(scores.names)
    figure: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=(size + 0.8, size), layout="constrained")
    axis = figure.subplots()
    shares = [[count / max(sum(row), 1) for count in row] for row in scores.confusion]
    picture = axis.imshow(shares, cmap="cividis", vmin=0, vmax=1)
    for i, row in enumerate(scores.confusion):
        for j, count in enumerate(row):
            color = "black" if shares[i][j] > 0.5 else "white"
            axis.text(j, i, f"{count:,}\n{shares[i][j]:.1%}", ha="center", va="center", color=color, fontsize=9)
    ticks = range(len(scores.names))
    axis.set_xticks(ticks, scores.names, rotation=30, ha="right", rotation_mode="anchor")
    axis.set_yticks(ticks, scores.names)
    axis.set_xlabel("prediction")
    axis.set_ylabel("gold")
    low, high = scores.interval
    heading = f"accuracy {scores.accuracy:.1%} [{low:.1%}, {high:.1%}], N = {scores.count:,}"
    axis.set_title(f"{title}\n{heading}" if title else heading, fontsize=9)
    figure.colorbar(picture, ax=axis, label="share of the gold class")
    return figure


def reliability_figure(scores: Scores, title: str = "") -> "Figure":
    """Above: the share of right predictions against their mean confidence in each bin; below: the rows in each bin."""
    figure: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=(5, 5.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    filled = [bin_ for bin_ in scores.bins if bin_.count]
    width = scores.bins[0].high - scores.bins[0].low
    above.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1, label="perfectly calibrated")
    confidence, share = [bin_.confidence for bin_ in filled], [bin_.accuracy for bin_ in filled]
    above.vlines(confidence, confidence, share, color=VERMILION, linewidth=2, label="gap")
    above.plot(confidence, share, color=BLUE, marker="o", label="share right")
    above.set_ylim(0, 1.02)
    above.set_ylabel("share right")
    above.legend(loc="upper left", fontsize=8)
    heading = f"expected calibration error {scores.ece:.3f} ({len(scores.bins)} bins), N = {scores.count:,}"
    above.set_title(f"{title}\n{heading}" if title else heading, fontsize=9)
    counts = [bin_.count for bin_ in scores.bins]
    below.bar([bin_.low for bin_ in scores.bins], counts, width=width, align="edge", color=BLUE, edgecolor="white")
    below.set_xlim(0, 1)
    below.set_xlabel("confidence: probability of the prediction")
    below.set_ylabel("rows")
    return figure
