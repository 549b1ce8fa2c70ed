"""Code that a model folder brings is never run, and nobody is asked whether it may."""

import ast
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from spinformer.app.classifier import Classifier
from spinformer.cli import main
from spinformer.explain import Explainer
from spinformer.models import NeuroGameForSequenceClassification, load_classifier
from spinformer.models.loading import load_config, load_encoder, load_tokenizer
from spinformer.training.distil import load_neighbour_model
from tests import fresh
from tests.tiny import NLI, bert, nli_classifier, save_rows, tokenizer

ROOT = Path(__file__).parents[2]
CODE = """
from pathlib import Path
Path({marker!r}).write_text("run")
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast
class Config(BertConfig):
    model_type = "stranger"
class Model(BertModel):
    config_class = Config
class Classifier(BertForSequenceClassification):
    config_class = Config
class Tokenizer(PreTrainedTokenizerFast):
    pass
"""
MAPS = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
MAPS |= {"AutoModelForSequenceClassification": "code.Classifier", "AutoTokenizer": ["code.Tokenizer", "code.Tokenizer"]}


def change(path, **options):
    path.write_text(json.dumps(json.loads(path.read_text()) | options))


@pytest.fixture(params=["config", "tokenizer", "both"])
def folder(request, encoder, tmp_path, monkeypatch):
    """A classifier whose configuration, tokenizer or both need code of their own; standard input says yes to all."""
    folder = tmp_path / "model"
    NeuroGameForSequenceClassification.from_encoder(encoder, labels=NLI).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    (folder / "code.py").write_text(CODE.format(marker=str(tmp_path / "marker")))
    if request.param != "tokenizer":
        change(folder / "config.json", model_type="stranger", auto_map=MAPS)
    if request.param != "config":
        change(folder / "tokenizer_config.json", tokenizer_class="Tokenizer", auto_map=MAPS)
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n" * 20))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    return folder


def entries(folder, tmp_path):
    rows = str(save_rows(tmp_path / "rows.jsonl", 20))
    run = ["--output", str(tmp_path / "run"), "--train", rows, "--dev", rows, "--quiet"]
    return {
        "load_classifier": lambda: load_classifier(folder),
        "Explainer": lambda: Explainer.from_pretrained(folder),
        "app": lambda: Classifier.load(str(folder)),
        "load_config": lambda: load_config(folder),
        "load_tokenizer": lambda: load_tokenizer(folder),
        "load_encoder": lambda: load_encoder(folder, bert()),
        "from_encoder": lambda: NeuroGameForSequenceClassification.from_encoder(folder),
        "near": lambda: load_neighbour_model(str(folder), 32),
        "predict": lambda: main(["predict", str(folder)]),
        "explain": lambda: main(["explain", str(folder), "a man", "a dog"]),
        "evaluate": lambda: main(["evaluate", str(folder), rows]),
        "ground": lambda: main(["ground", str(folder), rows, "--held-out", "4"]),
        "train": lambda: main(["train", "nli", "--encoder", str(folder), "--epochs", "1", *run]),
        "teacher": lambda: main(["train", "nli", "--encoder", str(folder), "--teacher", str(folder), *run]),
        "app command": lambda: main(["app", "--model", str(folder)]),
        "demo": lambda: main(["demo", "--model", str(folder), "--output", str(tmp_path / "demo")]),
    }


# What does not read the tokenizer, or reads the configuration alone, is free to work.
FREE = {"load_config", "load_encoder", "from_encoder", "load_tokenizer"}


def test_no_entry_runs_it(folder, tmp_path, capsys):
    for name, enter in entries(folder, tmp_path).items():
        capsys.readouterr()
        try:
            outcome = enter()
        except ValueError as error:
            outcome, said = 2, str(error)
        else:
            said = ""
        shown = capsys.readouterr().err.strip()
        assert "\n" not in said, name
        assert outcome == 2 or name in FREE, name
        assert not (tmp_path / "marker").exists(), name
        assert not shown or "which is never run" in shown.splitlines()[-1], name
        assert "Traceback" not in shown, name
    assert not (tmp_path / "run").exists()


def test_a_yes_on_standard_input_is_a_text_and_no_answer(folder, tmp_path):
    code = f"from spinformer.cli import main\nraise SystemExit(main(['predict', {str(folder)!r}, '--device', 'cpu']))"
    done = fresh.run(code, imports=fresh.TRANSFORMERS, given="1\n")
    assert done.returncode == 2
    assert done.stdout == ""
    expected = f"spinformer predict: {folder} needs Python code of its own, which is never run"
    assert done.stderr.startswith(expected)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "marker").exists()


def test_code_that_transformers_has_itself_is_used_instead(tmp_path):
    """A known architecture with a map to code of its own loads, by the code of transformers."""
    nli_classifier().save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "code.py").write_text(CODE.format(marker=str(tmp_path / "marker")))
    change(tmp_path / "model" / "config.json", auto_map=MAPS)
    model, _ = load_classifier(tmp_path / "model", device="cpu")
    assert type(model).__module__ == "transformers.models.bert.modeling_bert"
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "experts_implementation"])
def test_a_configuration_cannot_name_compiled_code(tmp_path, encoder, name):
    folder = shutil.copytree(encoder, tmp_path / "model")
    change(folder / "config.json", **{name: "someone/kernels"})
    for load in (load_classifier, load_config, NeuroGameForSequenceClassification.from_encoder):
        with pytest.raises(ValueError, match="must name an implementation of transformers, not code to fetch"):
            load(str(folder))


def loads(path):
    """The calls that may read a model by code of its own: from_pretrained and from_config of transformers."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        own = ("Explainer.", "cls.", "NeuroGameForSequenceClassification.", "Misfit.", "AttractorNetwork.")
        if name.rpartition(".")[2] in ("from_pretrained", "from_config") and not name.startswith(own):
            yield node


def test_every_loader_says_so():
    paths = [*(ROOT / "src").rglob("*.py"), *(ROOT / "research").rglob("*.py"), *(ROOT / "spaces").rglob("*.py")]
    places = set()
    for path in paths:
        for call in loads(path):
            given = {word.arg: word.value for word in call.keywords}
            value = given.get("trust_remote_code")
            assert isinstance(value, ast.Constant), f"{path}:{call.lineno}"
            assert value.value is False, f"{path}:{call.lineno}"
            places.add(path.relative_to(ROOT))
    in_package = {path.name for path in places if path.parts[0] == "src"}
    assert in_package == {"pretrained.py", "loading.py"}  # the second is from_pretrained of our own models
