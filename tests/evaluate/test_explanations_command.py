"""`spinformer evaluate --explanations` on saved models, end to end: what it measures, writes and refuses."""

import json
import re
import shutil

import pytest
import torch

pytest.importorskip("transformers")

from spinformer._base import records
from spinformer.cli import main
from spinformer.data.sources import load_texts
from spinformer.data.words import split_words
from spinformer.evaluate import Comprehensiveness, HighlightAgreement, Study, decide, load_classifier
from spinformer.evaluate.explanations.peers import PEERS
from spinformer.evaluate.explanations.study import SHORT_TEXTS
from spinformer.explain import METHODS, Explainer, Method
from spinformer.explain.grounded import GroundedClassifier
from spinformer.explain.methods import all_methods
from spinformer.explain.methods.additive import AdditiveExplainer
from spinformer.explain.scoring import Scorer
from spinformer.models.masked import MaskedClassifier
from spinformer.training.game import GroundingOptions, train_game_head
from tests.tiny import save_rows

SMALL = GroundingOptions(heads=4, dim=16, hidden=32, readout=16, batch_size=8)
QUICK = ["--count", "4", "--passes", "40"]


@pytest.fixture(scope="module")
def folders(saved, tmp_path_factory):
    """A classifier without a game, the same with one, and files of texts and of highlights."""
    folder = tmp_path_factory.mktemp("explained")
    grounded = folder / "grounded"
    shutil.copytree(saved, grounded)
    file = save_rows(folder / "test.jsonl", 24, longest=6)
    model, tokenizer = load_classifier(str(grounded))
    train_game_head(model, tokenizer, load_texts(str(file), labelled=False), grounded, SMALL)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        marked = {f"{side}_marked": " ".join(f"*{word}*" for word in row[side].split()) for side in ("premise",)}
        row["annotations"] = [{**marked, "hypothesis_marked": row["hypothesis"]}]
    (folder / "marked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"plain": saved, "grounded": grounded, "file": file, "marked": folder / "marked.jsonl"}


def call(folders, model, *words):
    return main(["evaluate", str(folders[model]), str(folders["file"]), "--explanations", *map(str, words)])


def explainer_of(folder, seed=0):
    return Explainer(*load_classifier(str(folder)), seed=seed)


def fails(capsys, folders, model, words, message):
    capsys.readouterr()
    assert call(folders, model, *words) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1, shown


def test_everything_of_a_grounded_classifier(folders, tmp_path, capsys):
    words = [*QUICK, "--highlights", folders["marked"], "--output", tmp_path / "new" / "result.json"]
    assert call(folders, "grounded", *words, "--name", "tiny", "--results", tmp_path) == 0
    shown = capsys.readouterr().out
    result = json.loads((tmp_path / "new" / "result.json").read_text())
    record = records.read("tiny", tmp_path)
    assert record["config"]["methods"][:4] == ["shapley", "banzhaf", "field", "attention"]
    assert record["config"]["masking"] == "attention"
    assert str(folders["file"].parent) not in json.dumps(record)
    assert set(record["data"]) == {"model.safetensors", "test.jsonl", "marked.jsonl"}
    parts = {"faithfulness", "stability", "differences", "fit", "interactions", "diagnostics", "highlights"}
    assert set(result) == parts
    table = result["faithfulness"]["methods"]
    assert len(table) == 10
    assert table["shapley"]["passes"] == 1
    assert table["integrated-gradients"]["passes"] == 33
    assert table["shapley-sampling"]["passes"] <= 40
    stability = result["stability"]["methods"]
    for name in ("shapley", "shapley-sampling", "kernel-shap", "random"):
        assert stability[name]["stability"]["count"] > 0, name
    assert "leave-one-out" not in stability  # nothing random in it
    assert result["highlights"]["texts"] == result["faithfulness"]["texts"] == 4
    assert set(result["highlights"]["methods"]) == set(table)
    for part in ("fit of v(C): R squared", "interactions against the exact ones", "mean field", "highlight_agreement"):
        assert part in shown
    assert f"{table['leave-one-out']['comprehensiveness']['mean']:.3f}" in shown


def test_the_numbers_are_the_libraries_own(folders, tmp_path):
    path = tmp_path / "result.json"
    assert (
        call(folders, "grounded", *QUICK, "--methods", "shapley", "leave-one-out", "--seeds", "3", "--output", path)
        == 0
    )
    result = json.loads(path.read_text())
    texts = load_texts(str(folders["file"]), labelled=False).select(range(4))
    explainer = explainer_of(folders["grounded"], seed=3)
    decisions = decide(explainer.classifier, split_words(explainer.tokenizer, texts, 128))
    for name in ("shapley", "leave-one-out"):
        expected = Comprehensiveness()(decisions, explainer.scorer(name)(decisions.words)).mean()
        assert result["faithfulness"]["methods"][name]["comprehensiveness"]["mean"] == pytest.approx(
            float(expected), abs=1e-5
        )
    assert "stability" not in result  # one seed
    assert set(result["differences"]) == {"leave-one-out"}
    study = Study(explainer, texts)
    assert result["fit"]["pooled"] == pytest.approx(study.fit().pooled, abs=1e-5)
    pearson = study.interactions().pooled("pearson")
    assert result["interactions"]["pearson"]["pooled"] == pytest.approx(pearson, abs=1e-4)
    assert result["interactions"]["texts"] <= SHORT_TEXTS


def test_gibbs_weights_are_for_short_texts_alone(folders, monkeypatch):
    """Their pairs take time with the cube of the words: a review would take minutes."""
    explainer = explainer_of(folders["grounded"])
    texts = load_texts(str(folders["file"]), labelled=False).select(range(6))
    counts = split_words(explainer.tokenizer, texts, 128).counts
    study, most = Study(explainer, texts), int(counts.min())
    every = study.diagnostics()
    assert every["ess_texts"] == 6
    monkeypatch.setattr("spinformer.evaluate.explanations.study.GIBBS_WORDS", most)
    some = study.diagnostics()
    assert some["ess_texts"] == int((counts <= most).sum()) < 6
    assert some["converged"] == every["converged"]
    monkeypatch.setattr("spinformer.evaluate.explanations.study.GIBBS_WORDS", 0)
    assert study.diagnostics(2) == {"ess_texts": 0, "converged": 1.0}
    assert study.diagnostics(2, gibbs=False) == {"converged": 1.0}
    monkeypatch.setattr(GroundedClassifier, "attention", uniform_alone(GroundedClassifier.attention))
    assert "mean field: 100.0% converged" in str(study.measure([explainer.scorer("random")], seeds=()))


def uniform_alone(attention):
    """Nobody who measures explanations asks for Gibbs weights, which take seconds for each text."""

    def checked(self, games, *args, weighting="uniform", **options):
        assert weighting == "uniform"
        return attention(self, games, *args, weighting=weighting, **options)

    return checked


def test_one_text_that_a_method_cannot_do(folders, tmp_path, capsys):
    path = tmp_path / "result.json"
    words = ["--count", "10", "--passes", "9", "--methods", "shapley", "shapley-sampling", "--seeds", "0"]
    assert call(folders, "grounded", *words, "--output", path) == 0
    shown = capsys.readouterr().out
    result = json.loads(path.read_text())
    row = result["faithfulness"]["methods"]["shapley-sampling"]
    assert 0 < row["left_out"]["count"] < 10
    assert row["comprehensiveness"]["count"] == 10 - row["left_out"]["count"]
    assert f"shapley-sampling: {row['left_out']['count']} text" in shown
    assert "words needs at least" in shown
    assert result["differences"]["shapley-sampling"]["comprehensiveness"]["count"] == row["comprehensiveness"]["count"]


def test_exactness(folders, tmp_path, capsys, monkeypatch):
    path, tables, figure = tmp_path / "result.json", tmp_path / "tables.safetensors", tmp_path / "a.svg"
    exact = ["--count", "4", "--seeds", "0", "--exact", "3", "--exact-words", "4", "6", "--tables"]
    words = ["--methods", "shapley", *exact, tables]
    words += ["--peers", "12", "16", "--exact-figure", figure, "--output", path]
    words += ["--exact-settings", "shapley", "shapley:64", "banzhaf"]
    pytest.importorskip("shapiq")
    pytest.importorskip("matplotlib")
    for slow in ("SPEX", "ProxySPEX", "SVARMIQ"):
        monkeypatch.delitem(PEERS, slow)
    assert call(folders, "grounded", *words, "--name", "tiny", "--results", tmp_path) == 0
    shown = capsys.readouterr().out
    assert re.match(r"faithfulness on 4 texts: about [\d,]+ passes, \d+ s\n", shown)
    passes = re.search(r"\nexactness on 3 texts: about ([\d,]+) passes, \d+ (s|min)\n", shown).group(1)
    assert 3 * (2**4 + 1) <= int(passes.replace(",", "")) <= 3 * (2**6 + 1)
    assert shown.index("exactness on 3 texts") < shown.index("comprehensiveness")  # beforehand
    result = json.loads(path.read_text())["exactness"]
    assert (result["texts"], result["masking"]) == (3, "attention")
    assert 4 <= min(result["words"]) <= max(result["words"]) <= 6
    assert list(result["settings"]) == ["shapley 0", "shapley 64", "banzhaf 0"]
    assert result["settings"]["shapley 64"]["values"]["error"]["mean"] < 1e-4  # all coalitions
    assert result["settings"]["shapley 0"]["passes"]["mean"] == 1
    assert "KernelSHAP 16" in result["peers"]
    assert "against exact values of 3 texts" in shown
    assert figure.stat().st_size > 1000
    assert records.read("tiny", tmp_path)["outcome"]["exactness"]["settings"].keys() == result["settings"].keys()
    assert call(folders, "grounded", "--methods", "shapley", *exact, tables) == 0  # with the tables that are there
    assert "exactness on 3 texts: about 0 passes" in capsys.readouterr().out
    fails(capsys, folders, "plain", ["--methods", "random", *exact, folders["file"]], "cannot be read as exact tables")


def test_exactness_options_that_are_refused(folders, tmp_path, capsys):
    for words, message in (
        (["--tables", tmp_path / "a"], "--tables needs --exact COUNT, the number of texts"),
        (["--exact", "-1"], "--exact must be an integer of at least 0; got -1"),
        (["--exact", "2", "--exact-words", "9", "4"], "must be a range from 2 to 20, low before high; got 9 to 4"),
        (["--exact", "2", "--exact-settings", "attention"], "method 'attention' has no exact values"),
        (["--exact", "2", "--peers", "1"], "--peers must be an integer of at least 2; got 1"),
        (["--exact", "2", "--exact-figure", "a.gif"], "must be one of '.png', '.svg'; got '.gif'"),
    ):
        fails(capsys, folders, "plain", ["--methods", "random", "--count", "2", *words], message)


def test_any_classifier_without_a_game(folders, tmp_path, capsys):
    path = tmp_path / "result.json"
    words = [
        "--count",
        "6",
        "--methods",
        "gradient-times-input",
        "leave-one-out",
        "random",
        "--output",
        path,
        "--seeds",
        "0",
    ]
    assert call(folders, "plain", *words) == 0
    assert "no game: `spinformer ground" in capsys.readouterr().out
    result = json.loads(path.read_text())
    assert set(result) == {"faithfulness", "differences"}
    assert result["differences"] == {}
    assert list(result["faithfulness"]["methods"]) == ["gradient-times-input", "leave-one-out", "random"]
    fails(
        capsys,
        folders,
        "plain",
        ["--methods", "leave-one-out", "shapley"],
        "`spinformer ground MODEL TEXTS` learns one",
    )


def test_a_game_elsewhere(folders, tmp_path, capsys):
    shutil.copytree(folders["grounded"] / "game", tmp_path / "head" / "game")
    words = ["--count", "4", "--methods", "shapley", "--seeds", "0", "--game", tmp_path / "head"]
    assert call(folders, "plain", *words, "--name", "a", "--results", tmp_path) == 0
    assert records.read("a", tmp_path)["config"]["masking"] == "attention"
    assert "fit of v(C)" in capsys.readouterr().out
    fails(capsys, folders, "plain", ["--game", tmp_path], "has no game head")


def test_another_masking(folders, tmp_path, capsys):
    words = ["--count", "4", "--seeds", "0", "--masking", "delete"]
    named = ["--methods", "leave-one-out", "--name", "a", "--results", tmp_path]
    assert call(folders, "plain", *words, *named) == 0
    assert records.read("a", tmp_path)["config"]["masking"] == "delete"
    fails(capsys, folders, "grounded", [*words, "--methods", "shapley"], "learnt with masking='attention'")


def test_an_additive_explainer_trained_and_saved(folders, tmp_path):
    words = ["--count", "4", "--seeds", "0", "--methods", "additive-explainer", "--additive"]
    assert (
        call(folders, "plain", *words, folders["file"], "--additive-passes", "960", "--output", tmp_path / "a.json")
        == 0
    )
    model, tokenizer = load_classifier(str(folders["plain"]))
    additive = AdditiveExplainer(MaskedClassifier(model, tokenizer))
    additive.train(load_texts(str(folders["file"]), labelled=False), passes=960, quiet=True)
    additive.save(tmp_path / "explainer")
    assert call(folders, "plain", *words, tmp_path / "explainer", "--output", tmp_path / "b.json") == 0
    tables = [json.loads((tmp_path / f"{name}.json").read_text())["faithfulness"]["methods"] for name in "ab"]
    rows = [table["additive-explainer"]["comprehensiveness"]["mean"] for table in tables]
    assert rows[0] == pytest.approx(rows[1], abs=1e-6)


def test_highlights_are_the_metrics_own(folders, tmp_path):
    from spinformer.data.highlights import read_highlights

    path = tmp_path / "result.json"
    words = [
        "--count",
        "8",
        "--methods",
        "leave-one-out",
        "--seeds",
        "0",
        "--highlights",
        folders["marked"],
        "--output",
        path,
    ]
    assert call(folders, "plain", *words) == 0
    marked = read_highlights(folders["marked"]).select(range(8))
    explainer = explainer_of(folders["plain"])
    decisions = decide(explainer.classifier, split_words(explainer.tokenizer, marked.texts, 128))
    expected = HighlightAgreement(marked)(decisions, explainer.scorer("leave-one-out")(decisions.words))
    cell = json.loads(path.read_text())["highlights"]["methods"]["leave-one-out"]["highlight_agreement"]
    assert cell["mean"] == pytest.approx(float(expected.nanmean()), abs=1e-6)


def test_the_methods_on_offer(folders, encoder, capsys):
    from spinformer.models.neurogame import NeuroGameForSequenceClassification

    plain, grounded = explainer_of(folders["plain"]).methods(), explainer_of(folders["grounded"]).methods()
    expected = ["kernel-shap", "shapley-sampling", "leave-one-out", "integrated-gradients", "gradient-times-input"]
    assert plain == [*expected, "random"]
    assert grounded == ["shapley", "banzhaf", "field", "attention", *plain]
    tokenizer = load_classifier(str(folders["plain"]))[1]
    layers = {"attention": ["layer"], "neurogame": ["layer", "layer-field", "layer-shapley", "layer-banzhaf"]}
    for head, own in layers.items():
        explainer = Explainer(NeuroGameForSequenceClassification.from_encoder(str(encoder), head=head), tokenizer)
        names = explainer.methods()
        assert names == [*expected, *own, "random"]
        assert [explainer.scorer(name).name for name in names] == names
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    described = capsys.readouterr().out
    assert all(f"  {name} " in described and method.summary in described for name, method in all_methods().items())


def test_what_is_refused(folders, tmp_path, capsys, monkeypatch):
    for words, message in (
        (["--methods", "magic"], f"--methods must be one of {', '.join(map(repr, all_methods()))}; got 'magic'"),
        (["--count", "0"], "--count must be an integer of at least 1; got 0"),
        (["--seeds", "1", "1"], "--seeds must be numbers from 0 on that differ; got 1 1"),
        (["--bf16"], "measured in float32"),
        (["--output", tmp_path], "is a file that ends in .json"),
        (["--methods", "additive-explainer"], "with --additive"),
        (["--methods", "layer"], "needs a NeuroGameForSequenceClassification with head='neurogame' or 'attention'"),
        (
            ["--methods", "leave-one-out", "leave-one-out"],
            "--methods must name each method once; got leave-one-out leave-one-out",
        ),
        (["--highlights", tmp_path / "none.jsonl"], "no file"),
    ):
        fails(capsys, folders, "plain", words, message)
    capsys.readouterr()
    both = ["evaluate", str(folders["plain"]), str(folders["file"]), str(folders["file"]), "--explanations"]
    assert main(both) == 2
    assert "takes one DATA, its parts joined by +; got 2" in capsys.readouterr().err
    assert main(["evaluate", str(folders["plain"]), str(folders["file"]), "--methods", "leave-one-out"]) == 2
    assert "--methods is an option of --explanations" in capsys.readouterr().err


def test_seeded_methods_are_the_same_with_another_seed(folders):
    explainer = explainer_of(folders["plain"])
    texts = load_texts(str(folders["file"]), labelled=False).select(range(5))
    words = split_words(explainer.tokenizer, texts, 128)
    for name in ("shapley-sampling", "kernel-shap", "random"):
        first, second = (explainer.scorer(name, passes=40, seed=seed) for seed in (0, 1))
        assert torch.equal(first.seeded(1)(words), second(words)), name
        assert not torch.equal(first(words), second(words)), name


class WordLength(Method):
    """The number of letters of each word."""

    name = "mine"
    summary = "how long a word is"
    passes = "0"

    def scorer(self, context) -> Scorer:
        return self

    def __call__(self, words, target=None):
        scores = torch.zeros(words.mask.shape)
        for row, text in enumerate(words.words):
            scores[row, : len(text)] = torch.tensor([len(word) for word in text])
        return scores


def test_a_method_of_the_users_own(folders, tmp_path, capsys):
    METHODS.register(WordLength())
    try:
        path = tmp_path / "result.json"
        options = ["--count", "6", "--methods", "mine", "leave-one-out", "--output", path]
        assert call(folders, "plain", *options, "--name", "own", "--results", tmp_path) == 0
        assert "mine" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            main(["evaluate", "--help"])
        assert "how long a word is" in capsys.readouterr().out
        explainer = explainer_of(folders["plain"])
        assert "mine" in explainer.methods()
        texts = load_texts(str(folders["file"]), labelled=False).select(range(6))
        decisions = decide(explainer.classifier, split_words(explainer.tokenizer, texts, 128))
        expected = Comprehensiveness()(decisions, explainer.scorer("mine")(decisions.words)).mean()
    finally:
        METHODS.unregister("mine")
    row = json.loads(path.read_text())["faithfulness"]["methods"]["mine"]
    assert row["comprehensiveness"]["mean"] == pytest.approx(float(expected), abs=1e-5)
    assert row["passes"] == 0
    assert records.read("own", tmp_path)["config"]["methods"] == ["mine", "leave-one-out"]
    fails(capsys, folders, "plain", ["--methods", "mine"], "got 'mine'")
