"""Judges of what the NeuroGame paper prints: its own numbers against each other, and its worked example."""

from collections.abc import Callable

from research.reports.markdown import Record
from research.reports.nli import TABLE_5
from research.reports.reproduction.entry import Finding, decided, graded

ABSTRACT, PUBLISHED_RUN = 86.4, 86.35  # SNLI test of the abstract, and of the authors' own published run
CLOSE = 1.0  # points within which accuracies are competitive
PRINTED = {name: (snli, mnli) for name, snli, mnli, _ in TABLE_5}


def surpasses_albert() -> Finding:
    """By the paper's own numbers."""
    albert, table = PRINTED["ALBERT-Base"][0], PRINTED["NGT"][0]
    text = (
        f"ALBERT-Base has {albert:.2f} in Table 5. NGT has {table:.2f} there, {ABSTRACT} in the abstract and "
        f"{PUBLISHED_RUN} in the authors' published run: above with the first number only."
    )
    return graded(min(ABSTRACT, PUBLISHED_RUN, table) > albert, table > albert, text)


def competitive_with_roberta() -> Finding:
    """By the paper's own numbers, with a point as the limit."""
    (snli, mnli), (our_snli, our_mnli) = PRINTED["RoBERTa-Base"], PRINTED["NGT"]
    gaps = (our_snli - snli, our_mnli - mnli)
    text = f"By Table 5: {gaps[0]:+.2f} points on SNLI, {gaps[1]:+.2f} on MNLI matched."
    return graded(gaps[0] >= -CLOSE, False, text)


def within_two_points() -> Finding:
    """By the paper's own Table 5."""
    gap = PRINTED["BERT-Base"][1] - PRINTED["NGT"][1]
    return decided(gap <= 2, f"By Table 5: {gap:.2f} points.")


def close_to_albert() -> Finding:
    """By the paper's own Table 5."""
    gap = PRINTED["NGT"][1] - PRINTED["ALBERT-Base"][1]
    return decided(gap >= -CLOSE, f"By Table 5: {gap:+.2f} points.")


def matches_larger() -> Finding:
    """By the paper's own Table 5, beside the larger models that the sentence names."""
    gaps = {
        name: [ours - larger for ours, larger in zip(PRINTED["NGT"], PRINTED[name], strict=True)]
        for name in ("BERT-Large", "RoBERTa-Large")
    }
    near = [min(pair) >= -CLOSE for pair in gaps.values()]
    shown = "; ".join(f"{name} {snli:+.2f} on SNLI, {mnli:+.2f} on MNLI matched" for name, (snli, mnli) in gaps.items())
    return graded(all(near), any(near), f"By Table 5, minus the larger models that it names: {shown}.")


def outperforms_transformers() -> Finding:
    """By the paper's own Table 5."""
    rivals = [name for name in PRINTED if name not in ("DAM", "ESIM", "NGT")]
    below = [sum(PRINTED[name][column] < PRINTED["NGT"][column] for name in rivals) for column in (0, 1)]
    text = (
        f"Of the {len(rivals)} transformers in Table 5, NGT is above {below[0]} on SNLI and above {below[1]} on MNLI; "
        f"BERT-Base, its own encoder, is {PRINTED['BERT-Base'][0] - PRINTED['NGT'][0]:.2f} and "
        f"{PRINTED['BERT-Base'][1] - PRINTED['NGT'][1]:.2f} points above it."
    )
    return graded(below == [len(rivals)] * 2, min(below) >= len(rivals) / 2, text)


def figures(*names: str) -> Callable[[Record], Finding]:
    """A judge of figures of the worked example: each from the equations, beside the print."""

    def judge(example: Record) -> Finding:
        rows = {row["name"]: row for row in example["rows"]}
        parts = []
        for name in names:
            computed = ", ".join(f"{number:.4f}" for number in rows[name]["computed"])
            parts.append(f"{name}: {computed} (printed {', '.join(rows[name]['printed'])})")
        agree = [rows[name]["agrees"] for name in names]
        return graded(all(agree), any(agree), "; ".join(parts) + ".")

    return judge


def example_order(example: Record) -> Finding:
    """The order of the attention weights at the true fixed point."""
    computed = next(row["computed"] for row in example["rows"] if row["name"] == "attention at the fixed point")
    words = ("not", "good", "movie")
    order = sorted(range(3), key=lambda i: -computed[i])
    text = "At the fixed point: " + ", ".join(f"`{words[i]}` {computed[i]:.3f}" for i in order) + "."
    return decided([words[i] for i in order] == ["good", "not", "movie"], text)
