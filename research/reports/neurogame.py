"""Tables of docs/nli.md on the NeuroGame Transformer as published: accuracy, sizes, ablations, what its layer says."""

from collections.abc import Sequence
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import torch

from research.experiments.nli_paper import ABLATIONS
from research.reports.markdown import Record, markdown
from research.reports.nli import CORPORA, effective_samples
from spinformer.models.pooling import POOLING_HEADS

SETS = {"snli_test": "SNLI test", "mnli_dev_matched": "MNLI matched"}
CLASSES = ("entailment", "neutral", "contradiction")
FORMS = {
    "paper": "NeuroGame, the paper's (sections 3.11, 3.12)",
    "spins": "NeuroGame, 128 spins (sections 7.3, 7.4)",
    "default": "NeuroGame, `default` layer",
    "cls": "first token (CLS)",
    "literal": "NeuroGame, the paper's, at the paper's batch",
}
# Rows of the ablations whose name does not say what was changed.
CHANGES = {"paper": "none", "no-couplings": "J = 0", "heads-4": "4 heads", "heads-12": "12 heads"}
LARGE = "-mpnet"  # how the names of rows on the larger encoder end
SIGNS = {-1: "−", 1: "+"}
READINGS = {"own": "as evaluated", "target": "what it converges to"}
# Methods whose faithfulness is shown -> what they are.
METHODS = {
    "layer": "attention",
    "layer-field": "fields",
    "layer-shapley": "Shapley",
    "layer-banzhaf": "Banzhaf",
    "leave-one-out": "leave-one-out",
    "random": "random",
}
# Heads whose parameters are counted: name, pooling head, options of its layer.
COUNTED: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("first token (CLS)", "cls", {}),
    ("softmax attention pooling", "attention", {}),
    ("NeuroGame, `default`", "neurogame", {}),
    ("NeuroGame, the paper's (sections 3.11, 3.12)", "neurogame", {"preset": "paper"}),
    ("NeuroGame, 128 spins (sections 7.3, 7.4)", "spins", {"preset": "paper"}),
    ("the authors' released head", "released", {}),
)
WIDTHS = (384, 768)  # of MiniLM-L6, and of BERT-base and all-mpnet-base-v2
# Added parameters at width 768 that are not ours to count: as the paper prints them, and as its published scripts have.
PRINTED = (("the paper says", 754_000), ("all modules that the released scripts add", 771_844))


def rows_of(*records: Record) -> dict[str, list[Record]]:
    """The runs of each row: the smaller encoder first, forms as in FORMS, changes as in ABLATIONS."""
    runs = [run for record in records for run in record["outcome"]["runs"]]
    order = [*FORMS, *ABLATIONS]
    names = sorted(
        {run["job"] for run in runs}, key=lambda name: (name.endswith(LARGE), order.index(name.removesuffix(LARGE)))
    )
    return {name: [run for run in runs if run["job"] == name] for name in names}


def published(*records: Record) -> str:
    """The paper's recipe: accuracy, added parameters, effective sample size, convergence and data of each form."""
    lines = [
        [
            _form(name),
            *(_accuracy(runs, column) for column in SETS),
            f"{runs[0]['added']:,}",
            effective_samples(runs),
            _game(runs, "converged", ".1%"),
            f"{runs[0]['pairs']:,} ({runs[0]['pairs'] / CORPORA:.0%})",
            f"{runs[0]['recipe']['batch_size']}",
            len(runs),
        ]
        for name, runs in rows_of(*records).items()
    ]
    header = ["model", *SETS.values(), "added parameters", "ESS", "converged", "pairs", "batch", "seeds"]
    return markdown(header, lines)


def confusion(*records: Record) -> str:
    """Of the pairs of each gold class, the share that is answered rightly, and what neutral pairs are taken for."""
    lines = []
    for name, runs in rows_of(*records).items():
        for column, title in SETS.items():
            shares = torch.stack([class_shares(run["scores"][column]) for run in runs]).mean(0)  # (gold, answered)
            right = [f"{100 * float(shares[index, index]):.1f}" for index in range(len(CLASSES))]
            neutral = CLASSES.index("neutral")
            wrong = [f"{100 * float(shares[neutral, index]):.1f}" for index in range(len(CLASSES)) if index != neutral]
            lines.append([_form(name), title, *right, *wrong])
    header = ["model", "test set", *CLASSES, "neutral as entailment", "neutral as contradiction"]
    return markdown(header, lines, text_columns=2)


def ablations(record: Record) -> str:
    """Each change of the paper's layer: accuracy, effective sample size, spread of attention, faithfulness."""
    lines = []
    for name, runs in rows_of(record).items():
        lines.append(
            [
                CHANGES.get(name) or "{} = {}".format(*name.split("-", 1)).replace("lambda", "λ").replace("gamma", "γ"),
                *(_accuracy(runs, column) for column in SETS),
                effective_samples(runs),
                _game(runs, "converged", ".0%"),
                f"{fmean(run['reading']['attention']['std'] for run in runs):.3f}",
                *(_faithful(runs, method, "comprehensiveness") for method in ("layer", "layer-field", "random")),
                *(_faithful(runs, method, "sufficiency") for method in ("layer", "layer-field", "random")),
            ]
        )
    measures = [f"{metric}, {name}" for metric in ("compr.", "suff.") for name in ("attention", "field", "random")]
    header = ["change", *SETS.values(), "ESS", "converged", "spread of attention", *measures]
    return markdown(header, lines)


def signs(*records: Record) -> str:
    """The layer's own coupling of "not" or "very" with the word after it: how often it is negative and positive.

    Counts are sums over seeds.
    """
    lines = []
    for name, runs in rows_of(*records).items():
        read = [run["reading"]["signs"] for run in runs if "signs" in run.get("reading", {})]
        for word in read[0] if read else ():
            for reading, title in READINGS.items():
                rows = [seed[word][reading] for seed in read]
                negative, positive, *clear = (
                    sum(row[count] for row in rows)
                    for count in ("negative", "positive", "clear_negative", "clear_positive")
                )
                mean, flips = (fmean(row[number] for row in rows) for number in ("mean", "flips"))
                cells = [SIGNS[rows[0]["claim"]], title, negative, positive, f"{clear[0]} / {clear[1]}"]
                lines.append([_form(name), f'"{word} X"', *cells, f"{mean:+.4f}", f"{flips:.0%}"])
    header = ["layer", "words", "claim", "couplings", "−", "+", "clearly − / +", "mean", "a draw has the other sign"]
    return markdown(header, lines, text_columns=4)


def neutral(*records: Record) -> str:
    """Mean |J_ij| by gold class, and how often a neutral pair has a smaller one than another pair."""
    lines = []
    for name, runs in rows_of(*records).items():
        read = [run["reading"]["classes"] for run in runs if "classes" in run.get("reading", {})]
        for reading, title in READINGS.items() if read else ():
            sizes = [f"{fmean(one['classes'][label][reading]['all']['mean'] for one in read):.4f}" for label in CLASSES]
            auc = fmean(one["neutral_auc"][reading] for one in read)
            lines.append([_form(name), title, *sizes, f"{auc:.2f}"])
    return markdown(["layer", "couplings", *CLASSES, "neutral is smaller"], lines, text_columns=2)


def faithfulness(*records: Record) -> str:
    """How faithful the layer's own numbers are, beside leave-one-out and random scores: means over seeds."""
    lines = []
    for name, runs in rows_of(*records).items():
        read = [run for run in runs if "layer" in run.get("reading", {}).get("faithfulness", {}).get("methods", {})]
        for metric, better in (("comprehensiveness", "↑"), ("sufficiency", "↓")) if read else ():
            cells = [_faithful(read, method, metric) for method in METHODS]
            lines.append([_form(name), f"{metric} {better}", *cells, len(read)])
    return markdown(["layer", "measure", *METHODS.values(), "seeds"], lines, text_columns=2)


def added_parameters() -> str:
    """Parameters beside the encoder's, pooling and classifier, for three classes."""
    lines = [[title, *(f"{added_count(head, width, game):,}" for width in WIDTHS)] for title, head, game in COUNTED] + [
        [title, "", f"{count:,}"] for title, count in PRINTED
    ]
    return markdown(["added to the encoder", *(f"width {width}" for width in WIDTHS)], lines)


def added_count(head: str, width: int, game: dict[str, Any]) -> int:
    """Parameters of a pooling head and its classifier on an encoder of this width."""
    options: Any = SimpleNamespace(
        hidden_size=width, classes=len(CLASSES), residual=False, classifier_layers=1, dropout=0.0, game=game
    )
    known = POOLING_HEADS[head]
    with torch.device("meta"):
        modules = known.pooling(options), known.classifier(options)
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def _form(name: str) -> str:
    """The title of a row."""
    small = name.removesuffix(LARGE)
    return FORMS.get(small, small) + (", on all-mpnet-base-v2" if name != small else "")


def _accuracy(runs: Sequence[Record], name: str) -> str:
    values = [100 * run["scores"][name]["accuracy"] for run in runs]
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _game(runs: Sequence[Record], number: str, form: str) -> str:
    """The mean of a diagnostic of the layer on SNLI test; empty for a classifier without it."""
    games = [run["scores"]["snli_test"]["game"] for run in runs]
    return "" if games[0] is None else f"{fmean(game[number] for game in games):{form}}"


def _faithful(runs: Sequence[Record], method: str, metric: str) -> str:
    values = [run["reading"]["faithfulness"]["methods"].get(method) for run in runs]
    return "" if None in values else f"{fmean(value[metric]['mean'] for value in values):.3f}"


def class_shares(scores: Record) -> torch.Tensor:
    """Shares of answers by gold class, (gold, answered), in the order of CLASSES."""
    order = [scores["names"].index(label) for label in CLASSES]
    counts = torch.tensor(scores["confusion"], dtype=torch.float64)[order][:, order]
    return counts / counts.sum(1, keepdim=True)
