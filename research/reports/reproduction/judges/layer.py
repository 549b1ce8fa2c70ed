"""Judges of what the NeuroGame paper says of its layer's own numbers: fields, couplings, gate and attention.

They read `reading` of the rows of `spinformer reproduce nli --stage paper` (`research.experiments.layer_reading`): the
layer by the paper's recipe, on a smaller encoder. Where that has not been run, nothing is said of it.
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any

from research.experiments.negation import sign_test
from research.reports.markdown import Record
from research.reports.neurogame import CLASSES, LARGE
from research.reports.reproduction.entry import Finding, NotMeasuredError, Verdict, graded
from research.reports.reproduction.judges.classifiers import encoder_name, runs_of

HALFWAY = 0.5  # of the way from random scores to leave-one-out
FAITHFUL = (
    "comprehensiveness is at least halfway from random scores to leave-one-out; with conditions if it is above random "
    "scores in every seed"
)
SURE = 0.05  # level of the sign test
TELLS = 0.6  # how often a neutral pair must have smaller couplings than another pair
FORMS = {"paper": "the weighted sum", "spins": "128 spins"}  # both forms of the paper, by the names of their rows
SPREAD = 0.05  # standard deviation of attention over tokens from which on it tells them apart
OPEN = 0.1  # spread of the gate over tokens, or distance of its mean from 1/2, from which on it chooses


def readings(paper: Record, key: str) -> list[Any]:
    """What was read in the layer of the paper's form, of each seed."""
    found = [run["reading"][key] for run in runs_of(paper, "paper") if key in run.get("reading", {})]
    if not found:
        raise NotMeasuredError(f"The result on file does not hold `{key}` of the trained layer.")
    return found


def trained_layers(paper: Record, key: str) -> dict[str, list[Any]]:
    """The same of both forms of the paper on each encoder where they were trained, first that of `readings`."""
    readings(paper, key)
    found = {}
    for job in (name + size for size in ("", LARGE) for name in FORMS):
        runs = [run for run in paper["runs"] if run["job"] == job and key in run.get("reading", {})]
        if runs:
            seeds = f"{len(runs)} seed{'s' * (len(runs) > 1)}"
            title = f"{FORMS[job.removesuffix(LARGE)]} on {encoder_name(runs[0])} ({seeds})"
            found[title] = [run["reading"][key] for run in runs]
    return found


def faithful(method: str, *, partly: bool = True) -> Callable[[Record], Finding]:
    """A judge of scores of words: how far their comprehensiveness is on the way from random scores to leave-one-out.

    partly: whether scores above random ones, in every seed, meet a part of the claim.
    """

    def judge(paper: Record) -> Finding:
        found = readings(paper, "faithfulness")
        ours, random, best = (
            [reading["methods"][name]["comprehensiveness"]["mean"] for reading in found]
            for name in (method, "random", "leave-one-out")
        )
        low, high = fmean(random), fmean(best)
        part = (fmean(ours) - low) / (high - low)
        encoder = encoder_name(runs_of(paper, "paper")[0])
        text = (
            f"Comprehensiveness on {found[0]['texts']} pairs of SNLI test, {encoder}, {len(found)} seeds: `{method}` "
            f"{fmean(ours):.3f}, {part:.0%} of the way from random scores ({low:.3f}) to leave-one-out ({high:.3f})."
        )
        above = all(score > floor for score, floor in zip(ours, random, strict=True))
        return graded(part >= HALFWAY, partly and above, text)

    return judge


def negation_signs(paper: Record) -> Finding:
    """Signs of the layer's own coupling of "not" and "very" with the next word, over all seeds."""
    signs, parts = [], []
    for word, claim in (("not", -1), ("very", 1)):
        rows = [reading[word]["own"] for reading in readings(paper, "signs")]
        negative, positive = (sum(row[count] for row in rows) for count in ("negative", "positive"))
        signs.append(_agreement(negative, positive, sign_test(negative, positive), claim))
        parts.append(f'"{word} X": {negative} negative, {positive} positive')
    text = f"The trained layer's own couplings, 50 sentences and all seeds: {'; '.join(parts)}."
    return graded(min(signs) == 1, sorted(signs) == [0, 1], text)


def classifier_signs(negation: Record) -> Finding:
    """The same signs in another classifier and in its grounded game."""
    signs, parts = [], []
    for word, claim in (("not", -1), ("very", 1)):
        row = negation["sets"][word]["real"]
        signs.append(_agreement(row["negative"], row["positive"], row["p"], claim))
        parts.append(f'"{word} X": {row["negative"]} negative, {row["positive"]} positive')
    text = f"Banzhaf interactions of the classifier in `checkpoints/` itself, by masking: {'; '.join(parts)}."
    return graded(min(signs) == 1, sorted(signs) == [0, 1], text)


def _agreement(negative: int, positive: int, p: float, claim: int) -> int:
    """1 if the couplings have the claimed sign, -1 if the other one, 0 if a sign test leaves it open."""
    if p >= SURE:
        return 0
    return 1 if (negative > positive) == (claim < 0) else -1


def no_other_model(paper: Record) -> Finding:
    """Whether the sign of J_ij tells cooperation from competition; that other models have numbers for pairs is argued.

    So at most a part of the claim can be met.
    """
    signs = negation_signs(paper)
    text = (
        "Every model of Table 5 has pairs: before a softmax, DAM and ESIM score each word of one sentence with each of "
        "the other, and transformers all pairs of tokens; in ESIM and in transformers these scores have either sign. "
        "The abstract itself calls standard attention pairwise. No such score is an interaction of a game, but that "
        "can be computed for any classifier by masking ([how](explanations.md)). Does the sign of J_ij tell? "
        f"{signs.text}"
    )
    return graded(False, signs.verdict is Verdict.HOLDS, text)


def neutral_couplings(paper: Record) -> Finding:
    """Mean |J_ij| by gold class, and how often a neutral pair has a smaller one, in both forms and on each encoder."""
    true, sizes, shown = {}, {}, []
    for title, found in trained_layers(paper, "classes").items():
        means = {name: fmean(one["classes"][name]["own"]["all"]["mean"] for one in found) for name in CLASSES}
        auc = fmean(one["neutral_auc"]["own"] for one in found)
        true[title] = min(means, key=means.__getitem__) == "neutral" and auc >= TELLS
        sizes[title] = ", ".join(f"{name} {size:.2g}" for name, size in means.items())
        shown.append(f"{title} {auc:.0%}")
    text = (
        f"A neutral pair has a smaller mean |J_ij| than another pair, in how many cases: {', '.join(shown)}. The mean "
        f"by gold class, {next(iter(sizes))}: {next(iter(sizes.values()))}."
    )
    met = [title for title, meets in true.items() if meets]
    if met and len(met) < len(true):
        text += " The criterion is met by " + "; ".join(f"{title}: {sizes[title]}" for title in met) + "."
    return graded(all(true.values()), bool(met), text)


def open_gate(paper: Record) -> Finding:
    """Where the learnt gate stands, over tokens."""
    mean, std = (fmean(row[key] for row in readings(paper, "gate")) for key in ("mean", "std"))
    text = f"After training λ is {mean:.2f} ± {std:.2f} over tokens."
    return graded(std >= OPEN, abs(mean - 0.5) >= OPEN, text)


def sharpness(ablations: Record) -> Finding:
    """Spread of attention over tokens, from cold to hot; the layer as it is has γ = 0.25."""
    rows = {"0.05": "gamma-0.05", "0.25": "paper", "1": "gamma-1", "5": "gamma-5", "25": "gamma-25"}
    spreads = {
        gamma: fmean(run["reading"]["attention"]["std"] for run in runs_of(ablations, name))
        for gamma, name in rows.items()
    }
    falls = [hot < cold for cold, hot in pairwise(spreads.values())]
    shown = ", ".join(f"{size:.3f} at γ = {gamma}" for gamma, size in spreads.items())
    text = f"Standard deviation of α over tokens, after one epoch: {shown}."
    return graded(all(falls), min(spreads.values()) == spreads["25"], text)


def spread_of_attention(paper: Record) -> Finding:
    """Whether tokens differ in attention after training, in both forms and on each encoder."""
    spreads, shown = [], []
    for title, rows in trained_layers(paper, "attention").items():
        mean, std = (fmean(row[key] for row in rows) for key in ("mean", "std"))
        spreads.append(std >= SPREAD)
        shown.append(f"{title} {mean:.3f} ± {std:.3f}")
    return graded(all(spreads), any(spreads), f"α over tokens after training: {', '.join(shown)}.")
