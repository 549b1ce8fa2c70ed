"""Sentences of docs/attractor.md that state a verdict: they follow the results, so new results rewrite them."""

from collections.abc import Sequence
from typing import Any

from research.reports.markdown import Record

NOT_YET = (
    "The result on file was measured with Adam, whose couplings are not at the minimum, so what it says about the "
    "paper's setting may be wrong."
)
TASKS = ("masked", "noisy")
READINGS = {"paper": "`paper`", "paper-pair": '`hold="pair"`'}  # the norm of each site is constant, or of each pair


def transformers(record: Record) -> str:
    """Sizes and epochs of the two transformers."""
    runs = record["outcome"]["backprop"]
    block, vit = runs["recurrent-masked"], runs["vit-masked"]
    epochs = len(block["training"])
    paper = "as in the paper" if epochs == 100 else "the paper has 100"
    return (
        f"The transformers have one seed and are trained with backpropagation, for each task separately, for {epochs} "
        f"epochs ({paper}). The block has {block['parameters']:,} parameters, the ViT {vit['parameters']:,}."
    )


def minimum(record: Record) -> str:
    """Whether the setting `paper` came to rest."""
    if "solved" not in record["outcome"]:
        return NOT_YET
    rows = [f"- {claim}: {_verdict(row)}" for claim, row in record["outcome"]["solved"]["verdicts"].items()]
    return "\n".join(rows)


def verdicts(record: Record) -> str:
    """Which claims are true, in each reading of the constant norm that was measured."""
    outcome = record["outcome"]
    if "solved" not in outcome:
        return NOT_YET
    judged = {shown: outcome["claims"][name] for name, shown in READINGS.items() if name in outcome["claims"]}
    groups: dict[str, list[str]] = {}
    for claim in dict.fromkeys(claim for claims in judged.values() for claim in claims):
        verdicts = {shown: claims[claim]["true"] for shown, claims in judged.items() if claim in claims}
        groups.setdefault(_where(verdicts, [shown for shown in judged if shown not in verdicts]), []).append(claim)
    order = sorted(groups, key=lambda title: (title.startswith("False"), " alone" in title, ", not" in title))
    return "\n".join(f"- **{title}:** {'; '.join(groups[title])}." for title in order)


def _where(verdicts: dict[str, bool], absent: Sequence[str]) -> str:
    """In which readings a claim is true, and in which it was not judged."""
    true = [shown for shown, verdict in verdicts.items() if verdict]
    title = f"True for {' and for '.join(true)}" if true else f"False for {' and for '.join(verdicts)}"
    title += " alone" if 0 < len(true) < len(verdicts) else ""
    return title + (f", not judged for {' and for '.join(absent)}" if absent else "")


def stored(record: Record) -> str:
    """Memory and generalisation: overlaps with the fewest and with the most stored examples."""
    lines = []
    for name, rows in record["outcome"]["stored"].items():
        for row in (rows[0], rows[-1]):
            known, new = row["stored"], row["unseen"]
            lines.append(
                f"- `{name}`, {row['P']:,} examples: stored ones {known['best']:.3f} (the mean spin of each site has "
                f"{known['floor']:.3f}), unseen ones {new['best']:.3f} ({new['floor']:.3f})."
            )
    return "\n".join(lines)


def usefulness(record: Record) -> str:
    """Which predictors without a model each setting beats, in every seed."""
    outcome = record["outcome"]
    lines = []
    for task in TASKS:
        for key, runs in outcome["settings"].items():
            name, patch = key.rsplit("-", 1)
            worst = max(run[task]["error"] for run in runs)
            rivals = outcome["trivial"][f"{task}-{patch}"]
            beaten = [rival for rival, error in rivals.items() if worst < error]
            others = [rival for rival in rivals if rival not in beaten]
            share = f", {outcome['table'][key]['noisy_ratio']:.1%} of the corrupted image's" if task == "noisy" else ""
            verdict = f"better than {_list(beaten, rivals) or 'none'}, not than {_list(others, rivals)}"
            if not others:
                verdict = f"better than each of {_list(beaten, rivals)}"
            lines.append(f"- {task}, `{name}`, {patch} x {patch}: {outcome['table'][key][task]:.4f}{share}; {verdict}.")
    return "\n".join(lines)


def _list(names: Sequence[str], errors: dict[str, float]) -> str:
    return ", ".join(f"{name} ({errors[name]:.4f})" for name in names)


def _verdict(row: dict[str, Any]) -> str:
    word = "true" if row["true"] else "false"
    return f"**{word}** ({row['seeds']} seeds)" if "seeds" in row else f"**{word}**"
