"""A new index, a new pooling head and a new explanation method, each registered in one place, then used everywhere."""

import itertools
import json
import sys

import pytest
import torch
from torch import nn

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from spinformer.attention import NeuroGameAttention
from spinformer.cli import main
from spinformer.cli.extensions import GROUP
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate import Comprehensiveness, Study, compare
from spinformer.explain import METHODS, Explainer, Method
from spinformer.explain.methods import all_methods
from spinformer.games import NormGame, TableGame, estimate_values, exact_values
from spinformer.games.indices import INDICES, Index
from spinformer.models import NeuroGameForSequenceClassification, load_classifier
from spinformer.models.pooling import POOLING_HEADS, PoolingHead
from tests.tiny import NLI, rows, save_rows, tokenizer

SHARE = 0.7  # of the other players that are in a random coalition
TEXT = ("a man runs outside", "the man sleeps not")
SMALL_HEAD = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "batch_size": 8}


class MaxPooling(nn.Module):
    """z = the largest value of each component over the real tokens."""

    def forward(self, hidden, mask, special=None):
        return hidden.masked_fill(~mask[..., None], -torch.inf).amax(1), None


class WordLengths:
    """score_i = letters of word i."""

    name, passes = "word-length", "0"

    def __call__(self, words, target=None):
        scores = torch.zeros(words.mask.shape)
        for row, texts in enumerate(words.words):
            scores[row, : len(texts)] = torch.tensor([float(len(text)) for text in texts])
        return scores


class WordLengthMethod(Method):
    name, summary, passes = "word-length", "the letters of a word", "0"

    def scorer(self, context):
        return WordLengths()


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Weighted Banzhaf values: P(T) = p^|T| (1 - p)^(m - |T|)."""
    weight = torch.tensor([SHARE, 1 - SHARE], dtype=torch.float64).log()
    INDICES.register(
        Index(
            "WBV",
            order=1,
            title="weighted Banzhaf value",
            log_weight=lambda others, size: size * weight[0] + (others - size) * weight[1],
            bias=lambda t: torch.full_like(t, SHARE),
            method="weighted-banzhaf",
        )
    )
    POOLING_HEADS.register(PoolingHead("max", "the largest value over the tokens", lambda options: MaxPooling()))
    METHODS.register(WordLengthMethod())
    yield
    INDICES.unregister("WBV")
    POOLING_HEADS.unregister("max")
    METHODS.unregister("word-length")
    assert not {"weighted-banzhaf", "word-length"} & set(all_methods())


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    """A classifier with the new pooling head, and a game that was learnt for it."""
    folder = tmp_path_factory.mktemp("extended")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI, head="max").eval()
    pairs = [(row["premise"], row["hypothesis"]) for row in rows(32)]
    return Explainer(model, tokenizer()).ground(pairs, **SMALL_HEAD).save(folder)


@pytest.fixture(scope="module")
def explainer(folder):
    return Explainer.from_pretrained(folder, device="cpu", samples=512)


def by_definition(game, player):
    """sum over T of p^|T| (1 - p)^(m - |T|) (v(T and i) - v(T))."""
    others = [other for other in range(game.players) if other != player]
    total = 0.0
    for size in range(len(others) + 1):
        for members in itertools.combinations(others, size):
            without = torch.zeros(1, game.players, dtype=torch.bool)
            without[0, list(members)] = True
            joined = without.clone()
            joined[0, player] = True
            gain = float(game(joined).flatten()) - float(game(without).flatten())
            total += SHARE**size * (1 - SHARE) ** (len(others) - size) * gain
    return total


class TestIndex:
    def test_exact_and_estimated(self):
        game = TableGame(torch.rand(32, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
        exact = exact_values(game, "WBV")
        assert exact.tolist() == pytest.approx([by_definition(game, player) for player in range(5)])
        estimate = estimate_values(game, "WBV", 20_000, seed=torch.tensor(1))
        assert bool(((estimate.values - exact).abs() <= 5 * estimate.stderr).all())

    def test_in_the_layer(self):
        """phi of NGT Eq. 6 becomes the new index, here of the games of two attention heads."""
        torch.manual_seed(0)
        options = {"heads": 2, "eval_samples": 4000, "couplings": "dense"}
        layer = NeuroGameAttention(8, player_indices=("WBV", "BV"), **options).eval()
        usual = NeuroGameAttention(8, **options).eval()
        usual.load_state_dict(layer.state_dict())
        x = torch.randn(1, 5, 8)
        with torch.no_grad():
            out, other = layer(x), usual(x)
            values = (
                layer.value(nn.functional.layer_norm(x, (8,)))[0].unflatten(-1, (2, 4)).transpose(0, 1)
            )  # (2, 5, 4)
            scale = 1 / values.norm(dim=-1).sum(-1)  # as the layer's units have it
            exact = torch.stack([exact_values(NormGame(scale[head] * values[head]), "WBV") for head in range(2)])
        torch.testing.assert_close(out.shapley[0], exact, atol=0.01, rtol=0)
        torch.testing.assert_close(out.banzhaf, other.banzhaf, atol=0.01, rtol=0)
        assert (out.shapley - other.shapley).abs().max() > 0.02
        assert (out.attention - other.attention).abs().max() > 1e-4

    def test_in_a_classifier(self, encoder, tmp_path):
        options = {"player_indices": ("WBV", "SV"), "couplings": "dense"}
        model = NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI, **options).eval()
        model.save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
        loaded, _ = load_classifier(tmp_path, device="cpu")
        assert list(loaded.config.game["player_indices"]) == ["WBV", "SV"]
        inputs = tokenizer()(*TEXT, return_tensors="pt")
        with torch.no_grad():
            assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)
        layered = Explainer(loaded, tokenizer())(*TEXT, method="layer")
        assert all(word.shapley is not None for word in layered.words)

    def test_in_explanations(self, explainer):
        """The index brings a method: its values in the grounded game."""
        explanation = explainer(*TEXT, method="weighted-banzhaf")
        words = split_words(tokenizer(), Texts([TEXT[0]], [TEXT[1]]), 64)
        exact = exact_values(explainer.grounded.games(words).game(), "WBV")[0]
        error = (torch.tensor(explanation.importance) - exact.detach()).abs()
        assert bool((error <= 5 * torch.tensor(explanation.importance_stderr) + 1e-6).all())
        assert explanation.method == "weighted-banzhaf"
        assert explanation.passes == 1
        assert all(word.shapley != word.importance for word in explanation.words)


class TestHead:
    def test_in_a_classifier(self, explainer):
        model = explainer.model
        assert isinstance(model.model.pooling, MaxPooling)
        inputs = tokenizer()(*TEXT, return_tensors="pt")
        with torch.no_grad():
            hidden = model.model.encoder(**inputs).last_hidden_state
            expected = model.classifier(hidden.amax(1))
            torch.testing.assert_close(model(**inputs).logits, expected)
            padded = tokenizer()([TEXT[0], "a"], [TEXT[1], "dog"], padding=True, return_tensors="pt")
            torch.testing.assert_close(model(**padded).logits[:1], expected)

    def test_unknown_heads_list_it(self, encoder):
        with pytest.raises(ValueError, match="'joint', 'max'; got 'median'"):
            NeuroGameForSequenceClassification.from_encoder(str(encoder), head="median")

    def test_trained_by_the_command(self, encoder, tmp_path, capsys):
        data = ["--train", save_rows(tmp_path / "train.jsonl", 64), "--dev", save_rows(tmp_path / "dev.jsonl", 16)]
        sizes = ["--batch-size", "16", "--epochs", "1", "--quiet", "--head", "max"]
        assert (
            main(list(map(str, ["train", "nli", "--encoder", encoder, "--output", tmp_path / "run", *data, *sizes])))
            == 0
        )
        assert "64 rows in" in capsys.readouterr().out
        trained, _ = load_classifier(tmp_path / "run", device="cpu")
        assert trained.config.head == "max"
        assert main(["predict", str(tmp_path / "run"), str(tmp_path / "dev.jsonl"), "--device", "cpu"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 16


class TestMethod:
    def test_in_explanations(self, explainer):
        assert {"weighted-banzhaf", "word-length"} <= set(explainer.methods())
        many = explainer([TEXT[0], "dog"], [TEXT[1], "a"], method="word-length", target="neutral")
        assert many[0].importance == [len(word) for word in " ".join(TEXT).split()]
        assert (many[1].importance, many[1].target, many[1].passes) == ([3, 1], "neutral", 2)  # all words, none

    def test_in_evaluate(self, folder):
        explainer = Explainer.from_pretrained(folder, device="cpu", samples=512)
        pairs = rows(3, longest=4)
        texts = Texts([row["premise"] for row in pairs], [row["hypothesis"] for row in pairs])
        scorers = [explainer.scorer(name) for name in ("weighted-banzhaf", "word-length", "shapley")]
        table = compare(scorers, explainer.classifier, texts, [Comprehensiveness()], progress=False)
        assert list(table.values) == ["weighted-banzhaf", "word-length", "shapley"]
        assert table.summary("word-length", "comprehensiveness").count == 3
        assert table.costs["word-length"].passes == 0
        result = Study(explainer, texts).measure(scorers, seeds=(0, 1))
        assert "word-length" in str(result)
        assert result.stability.summary("weighted-banzhaf", "stability").count > 0

    @pytest.mark.parametrize("method", ["weighted-banzhaf", "word-length"])
    def test_on_the_command_line(self, folder, tmp_path, capsys, method):
        saved = tmp_path / "explanation.json"
        assert main(["explain", str(folder), *TEXT, "--method", method, "--device", "cpu", "--output", str(saved)]) == 0
        assert json.loads(saved.read_text())["method"] == method
        data, report = save_rows(tmp_path / "texts.jsonl", 3), tmp_path / "report.json"
        command = ["evaluate", folder, data, "--explanations", "--methods", method, "shapley", "--output", report]
        assert main(list(map(str, [*command, "--device", "cpu", "--count", "3"]))) == 0
        assert set(json.loads(report.read_text())["faithfulness"]["methods"]) == {method, "shapley"}
        capsys.readouterr()

    @pytest.mark.parametrize(
        ("command", "texts"),
        [
            ("explain", ["weighted-banzhaf  ", "word-length", "the letters of a word"]),
            ("evaluate", ["weighted-banzhaf  ", "word-length", "the letters of a word"]),
            ("train nli", ["max"]),
        ],
    )
    def test_in_the_help(self, command, texts, capsys):
        with pytest.raises(SystemExit) as stopped:
            main([*command.split(), "--help"])
        assert stopped.value.code == 0
        shown = capsys.readouterr().out
        for text in texts:
            assert text in shown


class TestInstalledPackages:
    """Packages that name a module in the entry points of spinformer.extensions."""

    @pytest.fixture
    def install(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)

        def installed(name, source):
            (tmp_path / f"{name}.py").write_text(source)
            folder = tmp_path / f"{name}-1.0.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {name}\n")

        yield installed
        for name in [name for name in sys.modules if name.startswith("extension_of_tests")]:
            del sys.modules[name]

    def test_they_add_methods(self, install, folder, capsys):
        install(
            "extension_of_tests",
            "from spinformer.explain.methods import METHODS, ScorerMethod\n"
            "from spinformer.explain.methods.chance import RandomScores\n"
            "METHODS.register(ScorerMethod('dice', 'thrown', '0', lambda context: RandomScores(6)))\n",
        )
        try:
            assert main(["explain", str(folder), *TEXT, "--method", "dice", "--device", "cpu"]) == 0
            assert main(["explain", str(folder), *TEXT, "--method", "dice", "--device", "cpu"]) == 0  # loaded once
        finally:
            METHODS.unregister("dice")
        assert capsys.readouterr().err == ""

    def test_a_broken_one_is_one_line(self, install, capsys):
        install("extension_of_tests_broken", "raise RuntimeError('no\\nluck')")
        with pytest.raises(SystemExit) as stopped:
            main(["predict", "--help"])
        assert stopped.value.code == 0
        shown = capsys.readouterr()
        name = "extension_of_tests_broken"
        assert shown.err == f"spinformer: the extension '{name}' ({name}) cannot be loaded: RuntimeError: no luck\n"
        assert "usage: spinformer predict" in shown.out

    def test_help_and_version_load_none(self, install, capsys):
        install("extension_of_tests_unused", "raise RuntimeError")
        assert main(["--help"]) == main(["--version"]) == 0
        assert capsys.readouterr().err == ""
