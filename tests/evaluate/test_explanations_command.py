"""`spinformer evaluate --explanations` on saved models, end to end: what it measures, writes and refuses."""

import json
import shutil

import pytest
import torch

pytest.importorskip("transformers")

from spinformer import results
from spinformer.cli import main
from spinformer.data.named import load_texts
from spinformer.data.words import split
from spinformer.evaluate import Comprehensiveness, HighlightAgreement, decide, load_classifier
from spinformer.evaluate.methods import METHODS, Source, methods, offered
from spinformer.evaluate.panel import SHORT, Panel, fit, interactions
from spinformer.explain import MaskedClassifier
from spinformer.explain.attribution import AdditiveExplainer
from spinformer.explain.grounded import Grounded
from spinformer.training.ground import Grounding, ground
from tests.tiny import save_rows

SMALL = Grounding(heads=4, dim=16, hidden=32, readout=16, batch_size=8)
QUICK = ["--count", "10", "--evaluations", "40"]


@pytest.fixture(scope="module")
def folders(saved, tmp_path_factory):
    """A classifier without a game, the same with one, and files of texts and of highlights."""
    place = tmp_path_factory.mktemp("explained")
    grounded = place / "grounded"
    shutil.copytree(saved, grounded)
    file = save_rows(place / "test.jsonl", 24, longest=7)
    model, tokenizer = load_classifier(str(grounded))
    ground(model, tokenizer, load_texts(str(file), labelled=False), grounded, SMALL)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        marked = {f"{side}_marked": " ".join(f"*{word}*" for word in row[side].split()) for side in ("premise",)}
        row["annotations"] = [{**marked, "hypothesis_marked": row["hypothesis"]}]
    (place / "marked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"plain": saved, "grounded": grounded, "file": file, "marked": place / "marked.jsonl"}


def call(folders, model, *words):
    return main(["evaluate", str(folders[model]), str(folders["file"]), "--explanations", *map(str, words)])


def fails(capsys, folders, model, words, message):
    capsys.readouterr()
    assert call(folders, model, *words) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1, shown


def test_everything_of_a_grounded_classifier(folders, tmp_path, capsys):
    words = [*QUICK, "--highlights", folders["marked"], "--output", tmp_path / "new" / "found.json"]
    assert call(folders, "grounded", *words, "--name", "tiny", "--results", tmp_path) == 0
    shown = capsys.readouterr().out
    found = json.loads((tmp_path / "new" / "found.json").read_text())
    record = results.read("tiny", tmp_path)
    assert record["config"]["methods"][:4] == ["shapley", "banzhaf", "field", "attention"]
    assert record["config"]["masking"] == "attention"
    assert str(folders["file"].parent) not in json.dumps(record)
    assert set(record["data"]) == {"model.safetensors", "test.jsonl", "marked.jsonl"}
    parts = {"faithfulness", "stability", "differences", "fit", "interactions", "diagnostics", "highlights"}
    assert set(found) == parts
    table = found["faithfulness"]["methods"]
    assert len(table) == 10
    assert table["grounded shapley"]["passes"] == 1
    assert table["integrated-gradients"]["passes"] == 33
    assert table["shapley-sampling"]["passes"] <= 40
    steady = found["stability"]["methods"]
    for name in ("grounded shapley", "shapley-sampling", "kernel-shap", "random"):
        assert steady[name]["stability"]["count"] > 0, name
    assert "leave-one-out" not in steady  # nothing random in it
    assert found["highlights"]["texts"] == found["faithfulness"]["texts"] == 10
    assert set(found["highlights"]["methods"]) == set(table)
    for part in ("fit of v(C): R squared", "interactions beside the real ones", "mean field", "highlight_agreement"):
        assert part in shown
    assert f"{table['leave-one-out']['comprehensiveness']['mean']:.3f}" in shown


def test_the_numbers_are_the_libraries_own(folders, tmp_path):
    path = tmp_path / "found.json"
    assert call(folders, "grounded", *QUICK, "--methods", "shapley", "loo", "--seeds", "3", "--output", path) == 0
    found = json.loads(path.read_text())
    model, tokenizer = load_classifier(str(folders["grounded"]))
    texts = load_texts(str(folders["file"]), labelled=False).select(range(10))
    source = Source(MaskedClassifier(model, tokenizer), Grounded.find(model), seed=3)
    decisions = decide(source.classifier, split(tokenizer, texts, 128))
    for method in methods(["shapley", "loo"], source):
        expected = Comprehensiveness()(decisions, method(decisions.words)).mean()
        assert found["faithfulness"]["methods"][method.name]["comprehensiveness"]["mean"] == pytest.approx(
            float(expected), abs=1e-5
        )
    assert "stability" not in found  # one seed
    assert set(found["differences"]) == {"leave-one-out"}
    panel = Panel(source.classifier, texts, source.grounded)
    assert found["fit"]["pooled"] == pytest.approx(fit(panel).pooled, abs=1e-5)
    assert found["interactions"]["pearson"]["pooled"] == pytest.approx(interactions(panel).pooled("pearson"), abs=1e-4)
    assert found["interactions"]["texts"] <= SHORT


def test_any_classifier_without_a_game(folders, tmp_path, capsys):
    path = tmp_path / "found.json"
    words = ["--count", "6", "--methods", "gradient", "loo", "random", "--output", path, "--seeds", "0"]
    assert call(folders, "plain", *words) == 0
    assert "no game: `spinformer ground" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert set(found) == {"faithfulness", "differences"}
    assert found["differences"] == {}
    assert list(found["faithfulness"]["methods"]) == ["gradient-times-input", "leave-one-out", "random"]
    fails(capsys, folders, "plain", ["--methods", "loo", "shapley"], "`spinformer ground MODEL TEXTS` learns one")


def test_a_game_elsewhere_and_another_masking(folders, tmp_path, capsys):
    shutil.copytree(folders["grounded"] / "game", tmp_path / "head" / "game")
    words = ["--count", "4", "--methods", "shapley", "--seeds", "0", "--masking", "delete"]
    assert call(folders, "plain", *words, "--game", tmp_path / "head", "--name", "a", "--results", tmp_path) == 0
    assert results.read("a", tmp_path)["config"]["masking"] == "delete"
    assert "fit of v(C)" in capsys.readouterr().out
    fails(capsys, folders, "plain", ["--game", tmp_path], "has no game head")


def test_an_additive_explainer_trained_and_saved(folders, tmp_path):
    words = ["--count", "4", "--seeds", "0", "--methods", "additive", "--additive"]
    assert call(folders, "plain", *words, folders["file"], "--passes", "960", "--output", tmp_path / "a.json") == 0
    model, tokenizer = load_classifier(str(folders["plain"]))
    explainer = AdditiveExplainer(MaskedClassifier(model, tokenizer))
    explainer.train(load_texts(str(folders["file"]), labelled=False), passes=960, quiet=True)
    explainer.save(tmp_path / "explainer")
    assert call(folders, "plain", *words, tmp_path / "explainer", "--output", tmp_path / "b.json") == 0
    found = [json.loads((tmp_path / f"{name}.json").read_text())["faithfulness"]["methods"] for name in "ab"]
    rows = [one["additive-explainer"]["comprehensiveness"]["mean"] for one in found]
    assert rows[0] == pytest.approx(rows[1], abs=1e-6)


def test_highlights_are_the_metrics_own(folders, tmp_path):
    from spinformer.data.highlights import read_highlights

    path = tmp_path / "found.json"
    words = ["--count", "8", "--methods", "loo", "--seeds", "0", "--highlights", folders["marked"], "--output", path]
    assert call(folders, "plain", *words) == 0
    marked = read_highlights(folders["marked"]).select(range(8))
    model, tokenizer = load_classifier(str(folders["plain"]))
    (method,) = methods(["loo"], Source(MaskedClassifier(model, tokenizer)))
    decisions = decide(method.classifier, split(tokenizer, marked.texts, 128))
    expected = HighlightAgreement(marked)(decisions, method(decisions.words))
    cell = json.loads(path.read_text())["highlights"]["methods"]["leave-one-out"]["highlight_agreement"]
    assert cell["mean"] == pytest.approx(float(expected.nanmean()), abs=1e-6)


def test_the_methods_on_offer(folders, encoder, capsys):
    from spinformer.models.neurogame import NeuroGameForSequenceClassification

    model, tokenizer = load_classifier(str(folders["grounded"]))
    classifier = MaskedClassifier(model, tokenizer)
    assert offered(Source(classifier)) == ["gradient", "ig", "sampling", "kernelshap", "loo", "random"]
    assert offered(Source(classifier, Grounded.find(model)))[:4] == ["shapley", "banzhaf", "field", "attention"]
    for head, expected in (("attention", ["attention-pooling"]), ("neurogame", ["neurogame-attention"])):
        made = MaskedClassifier(NeuroGameForSequenceClassification.from_encoder(str(encoder), head=head), tokenizer)
        assert set(expected) <= set(offered(Source(made)))
        names = offered(Source(made))
        assert len({method.name for method in methods(names, Source(made))}) == len(names)
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    described = capsys.readouterr().out.replace("\n", " ")
    assert all(name in described for name in METHODS)


def test_what_is_refused(folders, tmp_path, capsys, monkeypatch):
    for words, message in (
        (["--methods", "magic"], f"--methods must be one of {', '.join(map(repr, METHODS))}; got 'magic'"),
        (["--count", "0"], "--count must be an integer of at least 1; got 0"),
        (["--seeds", "1", "1"], "--seeds must be numbers from 0 on that differ; got 1 1"),
        (["--bf16"], "measured in float32"),
        (["--output", tmp_path], "is a file that ends in .json"),
        (["--methods", "additive"], "with --additive"),
        (["--methods", "neurogame-fields"], "need a NeuroGameForSequenceClassification with head='neurogame'"),
        (["--methods", "loo", "loo"], "each with a name of its own"),
        (["--highlights", tmp_path / "none.jsonl"], "no file"),
    ):
        fails(capsys, folders, "plain", words, message)
    capsys.readouterr()
    both = ["evaluate", str(folders["plain"]), str(folders["file"]), str(folders["file"]), "--explanations"]
    assert main(both) == 2
    assert "takes one DATA, its parts joined by +; got 2" in capsys.readouterr().err
    assert main(["evaluate", str(folders["plain"]), str(folders["file"]), "--methods", "loo"]) == 2
    assert "--methods is an option of --explanations" in capsys.readouterr().err


def test_seeded_methods_are_the_same_with_another_seed(folders):
    model, tokenizer = load_classifier(str(folders["plain"]))
    texts = load_texts(str(folders["file"]), labelled=False).select(range(5))
    words, classifier = split(tokenizer, texts, 128), MaskedClassifier(model, tokenizer)
    names = ["sampling", "kernelshap", "random"]
    first, second = (methods(names, Source(classifier, evaluations=40, seed=seed)) for seed in (0, 1))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.seeded(1)(words), other(words)), one.name
        assert not torch.equal(one(words), other(words)), one.name
