"""`spinformer explain` on one text and on a file of them: options, report, figures, JSON, errors."""

import re

import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.explain import Explainer, Explanation
from spinformer.explain.methods import all_methods
from spinformer.explain.methods.additive import AdditiveExplainer
from spinformer.explain.render.html import to_html
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.identity import weights_digest
from tests.tiny import NLI, bert, rows, save_rows, tokenizer

KINDS = ("words", "bar", "waterfall", "force", "pairs", "arcs")
TEXT = ("a man runs", "the dog sleeps")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier and a game, both of random weights."""
    path = tmp_path_factory.mktemp("reported")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).eval()
        sizes = {"layers": (0, 1, 2), "width": 32, "classes": 3, "heads": 4, "dim": 16, "hidden": 32, "readout": 16}
        GameHead(GameHeadConfig(**sizes, model=weights_digest(model))).save(path)
    model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def explainer(folder):
    return Explainer.from_pretrained(folder, device="cpu")


def explained(folder, path, *options):
    """What the command saves of TEXT with these options."""
    assert main(["explain", folder, *TEXT, "--device", "cpu", "--output", str(path), *map(str, options)]) == 0
    return Explanation.load(path)


def test_a_report_of_a_file(folder, tmp_path, capsys):
    pairs = save_rows(tmp_path / "pairs.jsonl", 5)
    report, figures, saved = tmp_path / "new" / "report.html", tmp_path / "figures", tmp_path / "saved"
    command = ["explain", folder, "--file", str(pairs), "--limit", "3", "--html", str(report), "--output", str(saved)]
    assert main([*command, "--samples", "8", "--figures", str(figures)]) == 0
    assert "the first 3 of 5 texts" in capsys.readouterr().out
    source = report.read_text(encoding="utf-8")
    assert source.count("<section") == 3
    explanations = [Explanation.load(path) for path in sorted(saved.iterdir())]
    assert [each.texts for each in explanations] == [(row["premise"], row["hypothesis"]) for row in rows(5)[:3]]
    assert to_html(explanations) == source
    names = {path.name for path in figures.iterdir()}
    assert names == {f"{number:04d}-{kind}.png" for number in range(1, 4) for kind in KINDS}


def test_columns_of_a_file(folder, tmp_path, capsys):
    (tmp_path / "odd.csv").write_text("left,right\na man,a dog\n")
    command = ["explain", folder, "--file", str(tmp_path / "odd.csv"), "--output", str(tmp_path / "saved")]
    assert main([*command, "--columns", "right"]) == 0
    assert Explanation.load(tmp_path / "saved" / "0001.json").texts == ("a dog",)
    assert main([*command, "--columns", "right,left"]) == 0
    assert Explanation.load(tmp_path / "saved" / "0001.json").texts == ("a dog", "a man")


def test_a_report_of_one(folder, tmp_path, capsys):
    report = tmp_path / "one.html"
    assert main(["explain", folder, *TEXT, "--html", str(report)]) == 0
    assert "Shapley" in capsys.readouterr().out
    assert re.findall(r'<h2 id="e1">1\. <bdi>(\w+)', report.read_text(encoding="utf-8"))[0] in NLI


def test_without_a_model(folder, tmp_path, monkeypatch, capsys):
    """A pair, a text, a file and --file, of the classifier that commands use where none is named."""
    monkeypatch.setenv("SPINFORMER_MODEL", folder)
    monkeypatch.chdir(tmp_path)
    assert main(["explain", folder, *TEXT, "--device", "cpu"]) == 0
    named = capsys.readouterr().out
    assert main(["explain", *TEXT, "--device", "cpu"]) == 0
    assert capsys.readouterr().out == named
    assert main(["explain", "a man runs", "--device", "cpu"]) == 0
    assert "runs" in capsys.readouterr().out
    save_rows(tmp_path / "pairs.jsonl", 2)
    assert main(["explain", "pairs.jsonl", "--device", "cpu"]) == 0
    of_file = capsys.readouterr().out
    for words in (["--file", "pairs.jsonl"], [folder, "pairs.jsonl"], [folder, "--file", "pairs.jsonl"]):
        assert main(["explain", *words, "--device", "cpu"]) == 0
        assert capsys.readouterr().out == of_file
    assert main(["explain"]) == 2
    assert "expected a TEXT, with or without a SECOND, or --file FILE; got neither" in capsys.readouterr().err


def test_numbers_that_are_shown(folder, explainer, capsys):
    """Columns of the method: its score with the standard error, Banzhaf values and attention, then the pairs."""
    assert main(["explain", folder, *TEXT, "--device", "cpu", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    explanation = explainer(*TEXT)
    assert lines[0] == f"{explanation.label} ({explanation.probabilities[explanation.label]:.1%})"
    assert lines[1].startswith("Note: it was not measured how far this game is")  # before all numbers
    base = f"probability of {explanation.target}: no words {explanation.base_value:.3f} "
    assert sum(line.startswith(base) for line in lines[2 : lines.index("")]) == 1
    lines = lines[lines.index("") :]
    assert lines[1].split() == ["word", "Shapley", "±", "Banzhaf", "attention"]
    first = explanation.top_words(1)[0]
    numbers = [
        f"{first.shapley:+.3f}",
        f"{first.shapley_stderr:.3f}",
        f"{first.banzhaf:+.3f}",
        f"{first.attention:.3f}",
    ]
    assert lines[2].split() == [first.text, *numbers]
    one, other, value = explanation.top_pairs(1)[0]
    assert lines[5] == "  pairs"
    assert lines[6].split()[:4] == [one.text, "-", other.text, f"{value:+.3f}"]
    assert main(["explain", folder, *TEXT, "--device", "cpu", "--method", "leave-one-out"]) == 0
    shown = capsys.readouterr().out
    assert "importance" in shown
    assert not re.search("Banzhaf|±|attention|pairs", shown)


@pytest.mark.parametrize(
    "method", ["auto", *(name for name in all_methods() if not name.startswith(("layer", "additive")))]
)
def test_every_method(folder, explainer, method, tmp_path, capsys):
    assert explained(folder, tmp_path / "one.json", "--method", method) == explainer(*TEXT, method=method)


def test_options_are_those_of_the_explainer(folder, explainer, tmp_path, capsys):
    path = tmp_path / "one.json"
    assert explained(folder, path, "--target", "neutral") == explainer(*TEXT, target="neutral")
    assert explained(folder, path, "--target", "2") == explainer(*TEXT, target=2)
    assert explained(folder, path, "--passes", 40) == explainer(*TEXT, passes=40)
    assert explained(folder, path, "--until", 0.01, "--passes", 40) == explainer(*TEXT, passes=40, until=0.01)
    options = {"samples": 8, "seconds": 60.0, "temperature": 0.5, "seed": 3, "max_length": 7}
    words = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    explanation = explained(folder, path, *words)
    assert explanation == Explainer.from_pretrained(folder, device="cpu", **options)(*TEXT)
    assert (explanation.samples, len(explanation.words)) == (8, 4)  # of 16 coalitions


def test_a_game_and_an_additive_explainer_of_other_folders(folder, explainer, tmp_path, capsys):
    path = tmp_path / "one.json"
    bare = tmp_path / "bare"
    explainer.model.save_pretrained(bare)
    tokenizer().save_pretrained(bare)
    assert explained(str(bare), path).method == "kernel-shap"
    assert explained(str(bare), path, "--game", folder) == explainer(*TEXT)
    additive = AdditiveExplainer(explainer.classifier, width=8)
    additive.train(Texts(["a man"] * 4), passes=100, batch_size=4, quiet=True)
    additive.save(tmp_path / "additive")
    explanation = explained(folder, path, "--additive", tmp_path / "additive", "--method", "additive-explainer")
    loaded = Explainer(explainer.model, tokenizer())
    loaded.additive = AdditiveExplainer.load(tmp_path / "additive", loaded.classifier)
    assert explanation == loaded(*TEXT, method="additive-explainer")


def test_help_lists_every_method(capsys):
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    shown = capsys.readouterr().out
    for name, method in all_methods().items():
        assert re.search(rf"^  {name} +{re.escape(method.summary)}$", shown, re.MULTILINE), name


def test_an_unknown_method_lists_them(folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["explain", folder, *TEXT, "--method", "grounded"])
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert "invalid choice: 'grounded'" in shown
    assert all(name in shown for name in ("auto", *all_methods()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "got neither"),
        (["a man", "--file", "sample:test"], "got both"),
        (["a man", "--html", "report.pdf"], "ends in .html; got report.pdf"),
        (["a man", " "], "text_pair 0 must be a text that is not empty; got ' '"),
        (["a man", "--target", "maybe"], "target must be one of 'entailment', 'neutral', 'contradiction'"),
        (["a man", "--target", "3"], "or a number from 0 to 2; got 3"),
        (["a man", "--passes", "-1"], "passes must be an integer of at least 0; got -1"),
        (["a man", "--method", "random", "--passes", "4"], "passes and until mean nothing to method 'random'"),
        (["a man", "--method", "layer"], "method 'layer' needs a NeuroGameForSequenceClassification"),
        (["a man", "--game", "none"], "none has no game head; `spinformer ground` leaves one in its --output"),
        (["--file", "none.csv"], "none.csv"),
        (["--file", "sample:test", "--limit", "0"], "--limit must be an integer of at least 1; got 0"),
        (["--file", "sample:test", "--columns", "a,b,c"], "--columns must be one or two texts"),
    ],
)
def test_errors_are_one_line(folder, words, message, capsys):
    assert main(["explain", folder, *words]) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert "\n" not in shown
