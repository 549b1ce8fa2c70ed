"""Judges of what the NeuroGame paper says of its classifier: accuracy, sizes, classes, hyperparameters.

`paper` is the outcome of `spinformer reproduce nli --stage paper`, `ablations` that of `--stage ablations`, `heads`
that of `--stage heads`, where the paper's layer was trained by our recipe.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Literal

from research.reports.markdown import Record
from research.reports.neurogame import CLASSES, PRINTED, added_count, class_shares
from research.reports.nli import CORPORA, welch
from research.reports.reproduction.entry import Finding, NotMeasuredError, Verdict, decided, graded
from research.reports.reproduction.judges.printed import PRINTED as TABLE_5

Effect = Literal["moves", "worse", "better", "best"]
SETS = {"snli_test": "SNLI test", "mnli_dev_matched": "MNLI matched"}
NEAR = 1.0  # points within which accuracies are competitive
CHANCE = 50.0  # of HANS, in percent
BERT = "bert-base"  # how the encoder of the paper is named
ENCODERS = {BERT: "BERT-base", "minilm": "MiniLM-L6", "mpnet": "all-mpnet-base-v2"}
LARGE = "paper-mpnet"  # the row on the larger encoder
BERT_SIZE = 109_482_240  # parameters of BERT-base, uncased


def runs_of(outcome: Record, job: str) -> list[Record]:
    """The runs of one row."""
    runs = [run for run in outcome["runs"] if run["job"] == job]
    if not runs:
        raise NotMeasuredError(f"The result on file has no row `{job}`.")
    return runs


def encoder_name(run: Record) -> str:
    """The encoder of a run, by the name that the documents have for it."""
    name: str = run["recipe"]["encoder"]
    return next((title for key, title in ENCODERS.items() if key in name.lower()), name)


def accuracies(runs: Sequence[Record], name: str) -> list[float]:
    """In percent."""
    return [100 * run["scores"][name]["accuracy"] for run in runs]


def spread(values: Sequence[float]) -> str:
    """Mean, with the standard deviation over seeds where there are several."""
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Difference of the means, and half of its 95% interval over seeds: 0 where a row has one seed."""
    apart = fmean(one) - fmean(other)
    return apart, welch(one, other) if min(len(one), len(other)) > 1 else 0.0


def table_5(paper: Record) -> Finding:
    """The paper's recipe beside its print; a run on BERT-base decides, and one on a larger encoder may be absent."""
    groups = [runs_of(paper, "paper"), [run for run in paper["runs"] if run["job"] == LARGE]]
    parts = []
    for runs in filter(None, groups):
        scores = " and ".join(f"{spread(accuracies(runs, key))} on {title}" for key, title in SETS.items())
        parts.append(f"{encoder_name(runs[0])} {scores}")
    bert = [run for runs in groups for run in runs if encoder_name(run) == ENCODERS[BERT]]
    pairs = groups[0][0]["pairs"]
    text = f"With its recipe on {pairs:,} pairs ({pairs / CORPORA:.0%} of both corpora): {'; '.join(parts)}. "
    if not bert:
        return Finding(Verdict.UNTESTED, text + "BERT's weights and the whole corpora cannot be had here.")
    gaps = [fmean(accuracies(bert, key)) - TABLE_5["NGT"][column] for column, key in enumerate(SETS)]
    return decided(min(gaps) >= -NEAR, text + f"BERT-base minus the print: {gaps[0]:+.2f} and {gaps[1]:+.2f} points.")


def baselines(base: Record) -> Finding:
    """Our DAM and ESIM beside the print, which has other data."""
    rows = []
    for name in ("dam", "esim"):
        runs = runs_of(base, name)
        rows.append(f"{name.upper()} {' and '.join(spread(accuracies(runs, key)) for key in SETS)}")
    share = runs[0]["pairs"] / CORPORA
    text = (
        f"Printed from the literature. Trained here on {share:.0%} of the pairs, on SNLI and MNLI: {'; '.join(rows)}. "
        "The other rows need weights that cannot be had here."
    )
    return Finding(Verdict.UNTESTED, text)


def competitive(paper: Record) -> Finding:
    """The paper's form less the first token's vector, by the same recipe, and the same in the paper's Table 5."""
    gaps = _gaps(paper, "paper", "cls")
    near = [apart >= -NEAR for apart, _ in gaps.values()]
    printed = [ours - bert for ours, bert in zip(TABLE_5["NGT"], TABLE_5["BERT-Base"], strict=True)]
    text = (
        f"On {encoder_name(runs_of(paper, 'paper')[0])}, minus the first token's vector by the same recipe: "
        f"{_shown(gaps)}. By Table 5, on BERT-base: {printed[0]:+.2f} on SNLI, {printed[1]:+.2f} on MNLI matched."
    )
    return graded(all(near) and min(printed) >= -NEAR, any(near) or min(printed) >= -NEAR, text)


def boosts(paper: Record) -> Finding:
    """Whether the paper's form is above the first token's vector by more than chance."""
    gaps = _gaps(paper, "paper", "cls")
    clear = [apart > width for apart, width in gaps.values()]
    return graded(all(clear), any(clear), f"Minus the first token's vector by the same recipe: {_shown(gaps)}.")


def spins_or_sums(paper: Record) -> Finding:
    """The form of section 7.3 less that of sections 3.11 and 3.12."""
    gaps = _gaps(paper, "spins", "paper")
    same = [abs(apart) <= max(width, 0.5) for apart, width in gaps.values()]
    return graded(all(same), any(same), f"128 spins minus the weighted sum: {_shown(gaps)}.")


def above_dam(heads: Record, base: Record) -> Finding:
    """The paper's layer, trained by our recipe, less DAM on the same pairs."""
    gaps = _beyond(heads, base, "dam")
    clear = [apart > width for apart, width in gaps.values()]
    return graded(
        all(clear),
        any(clear),
        f"The paper's layer on MiniLM-L6, by our recipe, minus DAM on the same pairs: {_shown(gaps)}.",
    )


def competitive_with_esim(heads: Record, base: Record) -> Finding:
    """The same for ESIM, and by the paper's Table 5. The claim is about SNLI."""
    gaps = _beyond(heads, base, "esim")
    printed = [ours - esim for ours, esim in zip(TABLE_5["NGT"], TABLE_5["ESIM"], strict=True)]
    share = runs_of(base, "esim")[0]["pairs"] / CORPORA
    near = [gaps[SETS["snli_test"]][0] >= -NEAR, printed[0] >= -NEAR]
    text = (
        f"By Table 5: {printed[0]:+.2f} points on SNLI, {printed[1]:+.2f} on MNLI matched. The paper's layer on "
        f"MiniLM-L6, by our recipe, minus ESIM: {_shown(gaps)}. Both were trained on {share:.0%} of the pairs; ESIM "
        "has word vectors and no pretrained encoder."
    )
    return graded(all(near), any(near), text)


def _beyond(heads: Record, base: Record, name: str) -> dict[str, tuple[float, float]]:
    """The paper's layer less a baseline on the same pairs."""
    groups = runs_of(heads, "paper"), runs_of(base, name)
    return {title: difference(*(accuracies(group, key) for group in groups)) for key, title in SETS.items()}


def _gaps(outcome: Record, one: str, other: str) -> dict[str, tuple[float, float]]:
    runs = [runs_of(outcome, name) for name in (one, other)]
    return {title: difference(*(accuracies(group, key) for group in runs)) for key, title in SETS.items()}


def _shown(gaps: dict[str, tuple[float, float]]) -> str:
    return ", ".join(f"{apart:+.2f} ± {width:.2f} points on {title}" for title, (apart, width) in gaps.items())


def overhead() -> Finding:
    """Added parameters at the width of BERT-base, counted from the modules."""
    ours, spins = (added_count(head, 768, {"preset": "paper"}) for head in ("neurogame", "spins"))
    printed, released = (count for _, count in PRINTED)
    text = (
        f"Counted at width 768: {ours:,} ({ours / BERT_SIZE:.2%} of BERT-base) in the form of sections 3.11 and 3.12, "
        f"{spins:,} ({spins / BERT_SIZE:.2%}) in that of section 7.3. The released scripts add {released:,}."
    )
    return graded(printed in (ours, spins), min(ours, spins) <= printed, text)


def neutral_is_hardest(paper: Record) -> Finding:
    """Accuracy of each gold class."""
    shares = {title: _by_class(paper, "paper", key) for key, title in SETS.items()}
    lowest = [min(row, key=row.__getitem__) == "neutral" for row in shares.values()]
    shown = "; ".join(
        f"{title}: " + ", ".join(f"{name} {100 * share:.1f}" for name, share in row.items())
        for title, row in shares.items()
    )
    return graded(all(lowest), any(lowest), f"Share of each gold class that is answered rightly: {shown}.")


def improves_neutral(paper: Record) -> Finding:
    """Accuracy on neutral pairs, less that with the first token's vector."""
    gaps = {}
    for key, title in SETS.items():
        one, other = (_by_class(paper, name, key)["neutral"] for name in ("paper", "cls"))
        gaps[title] = 100 * (one - other)
    better = [gap >= NEAR for gap in gaps.values()]
    shown = ", ".join(f"{gap:+.1f} points on {title}" for title, gap in gaps.items())
    return graded(all(better), any(better), f"Neutral pairs, minus the first token's vector: {shown}.")


def _by_class(outcome: Record, job: str, name: str) -> dict[str, float]:
    """Of the pairs of each gold class, the share that is answered rightly, mean over seeds."""
    runs = [class_shares(run["scores"][name]) for run in runs_of(outcome, job)]
    return {label: fmean(float(run[index, index]) for run in runs) for index, label in enumerate(CLASSES)}


def changed(*names: str, text: str = "", expect: Effect = "moves") -> Callable[[Record], Finding]:
    """A judge of changes of the paper's layer by the accuracy on both sets, beside what seeds alone do to it.

    expect: what must be true of them: one "moves" it, or makes it "worse", or "better", by more than twice the standard
    deviation over seeds of the layer as it is; or "best": none is better, and one is worse (with conditions: none is
    either). With conditions too if it is true on one set alone.
    """

    def judge(ablations: Record) -> Finding:
        full, part, shown = [], [], []
        for key, title in (("snli_test", "SNLI test"), ("mnli_dev_matched", "MNLI matched")):
            paper = accuracies(runs_of(ablations, "paper"), key)
            gaps = {name: fmean(accuracies(runs_of(ablations, name), key)) - fmean(paper) for name in names}
            limit = 2 * stdev(paper)
            better, worse = max(gaps.values()) > limit, min(gaps.values()) < -limit
            cases = {"moves": better or worse, "worse": worse, "better": better, "best": worse and not better}
            full.append(cases[expect])
            part.append(expect == "best" and not better)
            changes = ", ".join(f"{name.replace('-', ' ', 1)} {gap:+.2f}" for name, gap in gaps.items())
            shown.append(f"{title} minus that of the layer as it is, {spread(paper)}: {changes}")
        return graded(all(full), any(full) or any(part), f"{'; '.join(shown)}. {text}".strip())

    return judge


def right_reasons(heads: Record) -> Finding:
    """HANS: accuracy of the layers of this library beside other pooling heads, chance is 50."""
    scores = {name: accuracies(runs_of(heads, name), "hans_regenerated") for name in ("paper", "neurogame", "cls")}
    shown = ", ".join(
        f"{title} {spread(scores[name])}"
        for name, title in (("paper", "the paper's layer"), ("neurogame", "`default`"), ("cls", "first token"))
    )
    gain = fmean(scores["paper"]) - fmean(scores["cls"])
    text = f"HANS (regenerated), where chance is {CHANCE:.0f}: {shown}. MiniLM-L6, our recipe."
    return decided(fmean(scores["paper"]) >= CHANCE + 5 and gain >= NEAR, text)


def handles_negation(heads: Record) -> Finding:
    """The paper's layer less softmax attention on sets with negations and swapped words."""
    runs = [runs_of(heads, name) for name in ("paper", "attention")]
    gaps = {
        title: difference(*(accuracies(group, key) for group in runs))
        for key, title in (("monli", "MoNLI"), ("breaking_nli", "Breaking NLI"))
    }
    clear = [apart > width for apart, width in gaps.values()]
    return graded(
        all(clear),
        any(clear),
        f"The paper's layer minus softmax attention pooling, our recipe, MiniLM-L6: {_shown(gaps)}.",
    )


def trained_samples(paper: Record) -> Finding:
    """Effective sample size of the paper's layer after training."""
    runs = runs_of(paper, "paper")
    size = fmean(run["scores"]["snli_test"]["game"]["ess_mean"] for run in runs)
    where = f"{encoder_name(runs[0])}, SNLI test"
    text = f"After training by the paper's recipe ({where}): effective sample size {size:.1f} of 25."
    return decided(size >= 12.5, text)
