"""Tables that compare methods: ours beside shap and captum, and all of ours by cost, memory, error and guarantee."""

from statistics import fmean
from typing import Any

from research.reports.exactness import runs
from research.reports.markdown import Record, markdown
from spinformer.explain.methods import all_methods

# Peers that can give an error bar, which was not asked for.
NOT_ASKED = {"Permutation": "not measured"}
GAME_MEMORY, BATCH_MEMORY = "small: the text's hidden states, some coalitions", "one batch of masked texts"
CALIBRATED = "95% intervals towards the classifier's own values"
# Of each method, what it needs beside the classifier's own memory, and what it promises.
PROMISES = {
    "shapley": (GAME_MEMORY, f"values add up; {CALIBRATED}; exact if 2^W is at most `passes`"),
    "banzhaf": (GAME_MEMORY, f"{CALIBRATED}; exact if 2^W is at most `passes`"),
    "field": (GAME_MEMORY, "the mean field says whether it converged"),
    "attention": (GAME_MEMORY, "the mean field says whether it converged"),
    "kernel-shap": (BATCH_MEMORY, "values add up; 95% intervals; exact if 2^W is at most `passes`"),
    "shapley-sampling": (BATCH_MEMORY, "values add up; unbiased"),
    "leave-one-out": (BATCH_MEMORY, "each number is one real answer of the classifier"),
    "integrated-gradients": ("activations of a batch, for backward passes", "sums to the difference from padding"),
    "gradient-times-input": ("activations of the text, for a backward pass", "none"),
    "additive-explainer": ("a small network", "values add up"),
    "random": ("none", "the floor of every comparison"),
}
LAYER = ("none: the layer has computed it", "none about the decision: it says what enters the text's vector")
MEASURED = {"shapley": "shapley 0", "banzhaf": "banzhaf 0", "kernel-shap": "kernel-shap 256"}


def versus(record: Record) -> str:
    """CPU seconds, passes and error of every method, and whether it gives pairs and error bars."""
    return _beside(record["outcome"]["rows"])


def few(record: Record) -> str:
    """The same of ours with a game, and of each peer with the passes of our dearest row, or what it takes at most."""
    rows = record["outcome"]["rows"]
    most = max(row["passes"] for row in rows if row["library"] == "spinformer")
    shown = [row for row in rows if row["library"] == "spinformer" and row["method"] == "shapley"]
    for name in ("Partition", "Permutation", "ShapleyValueSampling", "KernelShap"):
        near = [row for row in rows if row["method"] == name and row["passes"] <= most]
        shown.append(max(near, key=lambda row: row["passes"]))
    return _beside(shown)


def _beside(found: list[dict[str, Any]]) -> str:
    rows = []
    for row in found:
        own = row["library"] == "spinformer"
        name = f"{row['library']} `{row['method']}`" + (f", {row['setting']}" if row["setting"] != "default" else "")
        cells = [f"{row['passes']:,.0f}", f"{row['cpu_seconds']:.2f}", f"{row['error']['mean']:.3f}"]
        pairs = f"{row['pairs_error']:.2f}" if own else "no pairs"
        bars = f"{row['covered']:.0%}" if own else NOT_ASKED.get(row["method"], "no intervals")
        rows.append([f"**{name}**" if own else name, *cells, pairs, bars])
    header = ["method", "passes", "CPU seconds", "error, words", "error, pairs of words", "95% intervals that hold"]
    return markdown(header, rows)


def guarantees(record: Record) -> str:
    """Every method: passes, memory, error against exact values, guarantee."""
    found = runs(record)
    rows = []
    for method in all_methods().values():
        memory, promise = PROMISES.get(method.name) or (LAYER if method.name.startswith("layer") else ("", ""))
        setting = MEASURED.get(method.name)
        error = ""
        if setting is not None:
            mean = fmean(run["settings"][setting]["values"]["error"]["mean"] for run in found)
            error = f"{mean:.3f}" + (" with 256 passes" if setting.endswith("256") else "")
        rows.append([f"`{method.name}`", method.passes, memory, error, promise])
    return markdown(["method", "passes", "memory", "error", "guarantee"], rows, text_columns=5)
