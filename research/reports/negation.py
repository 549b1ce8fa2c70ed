"""Tables of docs/explanations-negation.md: signs of interactions counted, and what an explanation costs."""

from research.reports.markdown import Record, markdown

SETS = {
    "not": '"not X"',
    "very": '"very X"',
    "monli_premise": "MoNLI, negation and its word, premise",
    "monli_hypothesis": "MoNLI, negation and its word, hypothesis",
    "monli_swap_negated": "MoNLI, the two words that differ, negated texts",
    "monli_swap_plain": "MoNLI, the two words that differ, plain texts",
}
SIGNS = {-1: "−", 0: "", 1: "+"}
SOURCES = {"head": "game", "real": "masking"}


def signs(record: Record) -> str:
    """For each set, by the game and by masking: how many interactions are negative and positive, and their mean."""
    rows = [
        [
            SETS[name],
            SIGNS[row[source]["claim"]],
            by,
            *(row[source][column] for column in ("texts", "negative", "positive")),
            f"{row[source]['clear_negative']} / {row[source]['clear_positive']}",
            f"{row[source]['p']:.2g}",
            f"{row[source]['mean']:+.4f} ± {row[source]['stderr']:.4f}",
        ]
        for name, row in record["outcome"]["sets"].items()
        for source, by in SOURCES.items()
    ]
    header = ["pair of words", "claim", "by", "texts", "−", "+", "clearly − / +", "sign test p", "mean"]
    return markdown(header, rows)


def classes(record: Record) -> str:
    """The same counts by the class that the classifier decides for, negative / positive."""
    names = sorted({name for row in record["outcome"]["sets"].values() for name in row["head"]["by_label"]})

    def cell(counts: dict[str, Record], name: str) -> str:
        return f"{counts[name]['negative']} / {counts[name]['positive']}" if name in counts else ""

    rows = [
        [SETS[name], by, *(cell(row[source]["by_label"], label) for label in names)]
        for name, row in record["outcome"]["sets"].items()
        for source, by in SOURCES.items()
    ]
    return markdown(["pair of words, − / +", "by", *names], rows)


def agreement(record: Record) -> str:
    """How often the game has the sign that masking finds."""
    rows = []
    for name, row in record["outcome"]["sets"].items():
        both = row["agreement"]
        fit = "" if both["correlation"] is None else f"{both['correlation']:.2f}"
        clear = f"{both['clear_same_sign']} of {both['clear']}"
        rows.append([SETS[name], f"{both['same_sign']} of {both['texts']}", clear, fit])
    return markdown(["pair of words", "same sign", "where masking is clear", "correlation"], rows)


def cost(record: Record) -> str:
    """Milliseconds of a prediction, an explanation and Shapley sampling, one pair at a time."""
    evaluations = record["config"]["EVALUATIONS"]
    rows = [
        [
            row["threads"],
            f"{row['prediction_ms']:.1f} ms",
            f"{row['explanation_ms']:.1f} ms",
            f"{row['ratio']:.2f}",
            f"{row['quick_ms']:.1f} ms",
            f"{row['quick_ratio']:.2f}",
            f"{row['sampling_ms']:.0f} ms",
            f"{row['sampling_ratio']:.0f}",
        ]
        for row in record["outcome"]["rows"]
    ]
    sampling = f"Shapley sampling, {evaluations} passes"
    quick = f"quick, {record['outcome']['quick']} coalitions"
    return markdown(["threads", "prediction", "explanation", "ratio", quick, "ratio", sampling, "ratio"], rows)
