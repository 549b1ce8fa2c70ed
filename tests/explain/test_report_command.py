"""`spinformer explain` on one text and on a file of them: report, pictures, JSON, errors."""

import re

import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer.cli import main
from spinformer.explain import Explanation
from spinformer.explain.html import to_html
from spinformer.models.grounding import GameHead, GroundingConfig, digest
from tests.tiny import NLI, bert, rows, save_rows, tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier and a game, both of random weights."""
    place = tmp_path_factory.mktemp("reported")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).eval()
        sizes = {"layers": (0, 1, 2), "width": 32, "classes": 3, "heads": 4, "dim": 16, "hidden": 32, "readout": 16}
        GameHead(GroundingConfig(**sizes, model=digest(model))).save(place)
    model.save_pretrained(place)
    tokenizer().save_pretrained(place)
    return str(place)


def test_a_report_of_a_file(folder, tmp_path, capsys):
    pairs = save_rows(tmp_path / "pairs.jsonl", 12)
    report, figures, saved = tmp_path / "made" / "report.html", tmp_path / "figures", tmp_path / "saved"
    asked = ["explain", folder, "--file", str(pairs), "--limit", "10", "--html", str(report), "--output", str(saved)]
    assert main([*asked, "--samples", "8", "--pair-samples", "4", "--figures", str(figures)]) == 0
    assert "the first 10 of 12 texts" in capsys.readouterr().out
    source = report.read_text(encoding="utf-8")
    assert source.count("<section") == 10
    found = [Explanation.load(path) for path in sorted(saved.iterdir())]
    assert [one.texts for one in found] == [(row["premise"], row["hypothesis"]) for row in rows(12)[:10]]
    assert to_html(found) == source
    names = {path.name for path in figures.iterdir()}
    assert names == {f"{place:04d}-{kind}.png" for place in range(1, 11) for kind in ("words", "pairs", "arcs")}


def test_a_report_of_one(folder, tmp_path, capsys):
    report = tmp_path / "one.html"
    assert main(["explain", folder, "a man runs", "the dog sleeps", "--html", str(report)]) == 0
    assert "Shapley" in capsys.readouterr().out
    assert re.findall(r'<h2 id="e1">1\. <bdi>(\w+)', report.read_text(encoding="utf-8"))[0] in NLI


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([], "got neither"),
        (["a man", "--file", "sample:test"], "got both"),
        (["a man", "--html", "report.pdf"], "ends in .html; got report.pdf"),
        (["--file", "none.csv"], "none.csv"),
        (["--file", "sample:test", "--limit", "0"], "--limit must be an integer of at least 1; got 0"),
        (["--file", "sample:test", "--columns", "a,b,c"], "--columns must be one or two texts"),
    ],
)
def test_errors_are_one_line(folder, asked, said, capsys):
    assert main(["explain", folder, *asked]) == 2
    message = capsys.readouterr().err.strip()
    assert said in message
    assert "\n" not in message
