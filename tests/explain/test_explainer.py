"""`Explainer`: one text or many, every method, classes, passes; learning a game; saving; handing explanations on."""

import pytest
import torch
from tokenizers import normalizers
from transformers import AutoModelForSequenceClassification

import spinformer
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import METHODS, Explainer, Explanation, explain, ground
from spinformer.explain.methods.additive import AdditiveExplainer
from spinformer.games import exact_values, quadrature, toggles
from spinformer.models import NeuroGameForSequenceClassification
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from tests.explain.conftest import SMALL_HEAD
from tests.tiny import NLI, nli_classifier, rows, tokenizer

TEXT = ("a man runs outside", "the man sleeps not")
FIRST, SECOND = ([row[name] for row in rows(5, seed=3)] for name in ("premise", "hypothesis"))
EVERY = [
    *("shapley", "banzhaf", "field", "attention", "kernel-shap", "shapley-sampling", "leave-one-out"),
    *("integrated-gradients", "gradient-times-input", "additive-explainer", "random"),
]
LAYER = ("layer", "layer-field", "layer-shapley", "layer-banzhaf")


@pytest.fixture(scope="module")
def explainer(grounded_folder):
    """With a game and a trained additive explainer."""
    explainer = Explainer.from_pretrained(grounded_folder, device="cpu")
    explainer.additive = AdditiveExplainer(explainer.classifier, width=8)
    explainer.additive.train(Texts(FIRST, SECOND), passes=100, batch_size=5, quiet=True)
    return explainer


@pytest.fixture
def bare():
    """A classifier without a game."""
    return nli_classifier(seed=4)


class TestCalls:
    def test_from_pretrained_is_the_model_with_its_game(self, explainer, grounded_folder, model):
        assert explainer.grounded is not None
        assert explainer(*TEXT) == Explainer(model, tokenizer())(*TEXT) == explain(model, tokenizer(), *TEXT)
        assert not explainer.model.training
        more = Explainer.from_pretrained(grounded_folder, samples=32, seed=1)
        assert more(*TEXT).samples == 32

    def test_one_gives_one_and_a_list_gives_a_list(self, explainer):
        assert isinstance(explainer("a man runs"), Explanation)
        assert isinstance(explainer(*TEXT), Explanation)
        many = explainer(FIRST)
        assert [each.texts for each in many] == [(text,) for text in FIRST]
        assert [each.texts for each in explainer(FIRST, SECOND)] == list(zip(FIRST, SECOND, strict=True))
        assert [each.texts for each in explainer(tuple(FIRST[:1]))] == [(FIRST[0],)]

    @pytest.mark.parametrize("method", EVERY)
    def test_batches_give_the_numbers_of_one_by_one(self, explainer, method, monkeypatch):
        """Whatever the batch, in the order of the texts, with the same number of passes each."""
        monkeypatch.setattr("spinformer.explain.batches.BATCH", (2, 2))
        many = explainer(FIRST[:3], SECOND[:3], method=method)
        for first, second, each in zip(FIRST[:3], SECOND[:3], many, strict=True):
            alone = explainer(first, second, method=method)
            assert (alone.texts, alone.method, alone.target) == (each.texts, method, each.target)
            assert [word.text for word in each.words] == f"{first} {second}".split()
            for name in ("importance", "attention", "interactions"):
                torch.testing.assert_close(
                    torch.tensor(getattr(alone, name)),
                    torch.tensor(getattr(each, name)),
                    atol=1e-4,
                    rtol=1e-3,
                    equal_nan=True,
                )

    def test_auto(self, explainer, bare):
        assert explainer(*TEXT).method == "shapley"
        assert Explainer(bare, tokenizer())(*TEXT).method == "kernel-shap"

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (("a man", ["a dog"]), ValueError, "text and text_pair must both be one text, or both be lists"),
            ((["a man"], ["a dog", "a cat"]), ValueError, "text_pair must have as many texts as text, 1; got 2"),
            ((["a man", ""],), ValueError, "text 1 must be a text that is not empty; got ''"),
            ((["a man", 3],), TypeError, "text 1 must be a string; got 3"),
            ((["a man"], [None]), TypeError, "text_pair 0 must be a string; got None"),
            (("\x00",), ValueError, "text 0 must have at least one word that the tokenizer reads; got"),
            ((["\x00", "a man runs"],), ValueError, "text 0 must have at least one word that"),  # the shorter one
        ],
    )
    def test_bad_texts(self, explainer, arguments, error, message):
        """Texts without words are those of which the tokenizer reads nothing."""
        words_alone = explainer.tokenizer.backend_tokenizer.normalizer
        explainer.tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer()  # drops control characters
        try:
            with pytest.raises(error, match=message):
                explainer(*arguments)
        finally:
            explainer.tokenizer.backend_tokenizer.normalizer = words_alone

    def test_bad_options(self, explainer, bare, tmp_path):
        with pytest.raises(ValueError, match="passes must be an integer of at least 0; got -1"):
            explainer(*TEXT, passes=-1)
        with pytest.raises(ValueError, match="until must be finite and positive; got 0"):
            explainer(*TEXT, until=0)
        with pytest.raises(ValueError, match="weighting must be one of 'uniform', 'gibbs'; got 'flat'"):
            Explainer(bare, tokenizer(), weighting="flat")
        with pytest.raises(ValueError, match="temperature must be finite and positive"):
            Explainer(bare, tokenizer(), temperature=0.0)
        with pytest.raises(TypeError, match="warmth"):
            Explainer(bare, tokenizer(), warmth=3)
        with pytest.raises(TypeError, match="warmth"):
            explain(bare, tokenizer(), *TEXT, warmth=3)
        with pytest.raises(ValueError, match=f"{tmp_path} has no game head; `spinformer ground` leaves one"):
            Explainer(bare, tokenizer(), game=tmp_path)
        with pytest.raises(TypeError, match="additive must be a trained AdditiveExplainer, or its folder; got int"):
            Explainer(bare, tokenizer(), additive=3)
        with pytest.raises(TypeError, match="tokenizer must be a tokenizer; got NoneType"):
            Explainer(bare, None)


class TestTargets:
    def test_by_name_and_number(self, explainer):
        label = explainer(*TEXT).label
        for number, name in enumerate(NLI):
            by_name, by_number = explainer(*TEXT, target=name), explainer(*TEXT, target=number)
            assert by_name == by_number
            assert (by_name.label, by_name.target) == (label, name)
        assert explainer(*TEXT, target=label) == explainer(*TEXT)

    def test_values_of_all_classes_cancel(self, explainer):
        """Probabilities sum to 1 for every coalition, so a word's values over the classes sum to 0."""
        for method in ("shapley", "banzhaf", "leave-one-out", "kernel-shap"):
            values = [torch.tensor(explainer(*TEXT, method=method, target=name).importance) for name in NLI]
            assert float(sum(values).abs().max()) < 1e-5, method
            assert float(values[0].abs().max()) > 1e-3, method

    def test_one_for_each_text(self, explainer):
        targets = ["neutral", 0, 2, "entailment", "contradiction"]
        many = explainer(FIRST, SECOND, target=targets)
        assert [each.target for each in many] == [NLI[1], NLI[0], NLI[2], NLI[0], NLI[2]]
        assert [each.target for each in explainer(FIRST, SECOND, target="neutral")] == ["neutral"] * 5
        for first, second, target, each in zip(FIRST, SECOND, targets, many, strict=True):
            alone = explainer(first, second, target=target)
            torch.testing.assert_close(torch.tensor(alone.importance), torch.tensor(each.importance))

    @pytest.mark.parametrize("target", ["maybe", 3, -1, True])
    def test_unknown_classes(self, explainer, target):
        with pytest.raises(ValueError, match=r"target must be one of 'entailment', .*, or a number from 0 to 2; got"):
            explainer(*TEXT, target=target)

    def test_the_wrong_number(self, explainer):
        with pytest.raises(ValueError, match="one for each of the 5 texts; got 2"):
            explainer(FIRST, SECOND, target=["neutral", "neutral"])


class TestPasses:
    def test_one_pass_unless_more_are_asked_for(self, explainer):
        before = explainer.classifier.passes
        assert [each.passes for each in explainer(FIRST, SECOND)] == [1] * 5
        assert explainer.classifier.passes - before == 5

    def test_passes_correct_the_game(self, explainer):
        """256 passes are all coalitions of 8 words: the values are exact."""
        explanation = explainer(*TEXT, passes=256)
        words = split_words(tokenizer(), Texts([TEXT[0]], [TEXT[1]]), 64)
        game = ConfidenceGame(MaskedClassifier(explainer.model, tokenizer()), words)
        expected = exact_values(game, "SV")[0]
        torch.testing.assert_close(torch.tensor(explanation.importance), expected, atol=1e-6, rtol=0)
        assert set(explanation.importance_stderr) == {0.0}
        assert explanation.method == "shapley"

    def test_until_spends_passes(self, explainer):
        texts = ("a man runs outside the red dog", "the man sleeps not inside")
        few = explainer(*texts, passes=60)
        bound = 1.5 * max(few.importance_stderr)
        enough = explainer(*texts, passes=60, until=bound)
        assert 2.86 * max(enough.importance_stderr) <= bound  # 95% for all of 12 words
        assert enough.passes > few.passes

    def test_sampling_spends_what_is_given(self, explainer):
        for method in ("kernel-shap", "shapley-sampling"):
            assert 40 < explainer(*TEXT, method=method, passes=100).passes <= 100

    def test_they_mean_nothing_to_other_methods(self, explainer):
        for options in ({"passes": 10}, {"until": 0.1}):
            with pytest.raises(ValueError, match="passes and until mean nothing to method 'leave-one-out'"):
                explainer(*TEXT, method="leave-one-out", **options)
        with pytest.raises(ValueError, match="until is for the methods of a game and for kernel-shap; got method"):
            explainer(*TEXT, method="shapley-sampling", until=0.1)


class TestManyWords:
    """Pairs of the strongest words alone."""

    @pytest.fixture(autouse=True)
    def few_are_many(self, monkeypatch):
        monkeypatch.setattr(quadrature, "LONG", 6)
        monkeypatch.setattr(toggles, "STRONGEST", 3)

    @pytest.mark.parametrize("passes", [0, 16])
    def test_words_and_the_strongest_pairs(self, explainer, passes, tmp_path):
        found = explainer(*TEXT, passes=passes)
        assert len(found.words) == 8
        assert sum(found.importance) == pytest.approx(found.probabilities[found.target] - found.base_value, abs=1e-5)
        assert len(found.pairs) == 3
        assert all(pair.interaction != 0 and pair.stderr > 0 for pair in found.pairs)
        told = {place for pair in found.pairs for place in (pair.first, pair.second)}
        assert len(told) == 3
        if not passes:
            assert told == set(sorted(range(8), key=lambda place: -abs(found.importance[place]))[:3])
        assert found.notes[0] == "pairs are those of the 3 strongest of 8 words; nothing is told of the others"
        found.save(tmp_path / "one.json")
        assert Explanation.load(tmp_path / "one.json") == found
        for kind in found.plots:
            found.plot(kind, tmp_path / f"{kind}.png")
        assert "sleeps" in found.to_html()
        assert len(found.to_row(pairs=50)["pair_first"]) == 3

    def test_a_small_budget_tells_of_all(self, grounded_folder):
        found = Explainer.from_pretrained(grounded_folder, device="cpu", samples=64)(*TEXT)
        assert len(found.pairs) == 28
        assert not any("pairs" in note for note in found.notes)


class TestMethods:
    def test_what_a_classifier_offers(self, explainer, bare, encoder):
        assert explainer.methods() == EVERY
        without = Explainer(bare, tokenizer())
        assert set(without.methods()) == set(EVERY[4:]) - {"additive-explainer"}
        played = NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI).eval()
        assert set(Explainer(played, tokenizer()).methods()) == {*without.methods(), *LAYER}

    def test_what_it_lacks(self, bare):
        without = Explainer(bare, tokenizer())
        for method, message in (
            ("banzhaf", "this classifier has no game yet: `spinformer ground MODEL TEXTS` learns one"),
            ("layer", "method 'layer' needs a NeuroGameForSequenceClassification .*; got Bert"),
            ("additive-explainer", "name a saved additive explainer"),
        ):
            for ask in (lambda name: without(*TEXT, method=name), without.scorer):
                with pytest.raises(ValueError, match=message):
                    ask(method)

    def test_scores_and_explanations_agree(self, explainer):
        words = split_words(tokenizer(), Texts([TEXT[0]], [TEXT[1]]), 64)
        for method in explainer.methods():
            passes = 256 if method == "kernel-shap" else 0  # with these both enumerate
            scores = explainer.scorer(method, passes=passes)(words)[0]
            explanation = explainer(*TEXT, method=method, passes=passes)
            expected = torch.tensor(explanation.importance)
            torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-4, msg=method)

    @pytest.mark.parametrize("method", ["shapley", "banzhaf", "field", "attention"])
    def test_scores_and_explanations_are_of_the_same_coalitions(self, model, method):
        """24 of 256, so others would give other values."""
        explainer = Explainer(model, tokenizer(), samples=24)
        words = split_words(tokenizer(), Texts([TEXT[0]], [TEXT[1]]), 64)
        expected = torch.tensor(explainer(*TEXT, method=method).importance)
        torch.testing.assert_close(explainer.scorer(method)(words)[0], expected, atol=1e-5, rtol=1e-4)
        other = explainer.scorer(method, seed=1)(words)[0]
        assert float((other - expected).abs().max()) > 1e-4

    def test_the_layer_gives_the_paper_s_numbers(self, encoder):
        """phi, beta, lambda, J_i, alpha of each word and J_ij of pairs: here every word is one token."""
        layered = NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI, couplings="dense").eval()
        explanation = Explainer(layered, tokenizer())(*TEXT, method="layer")
        with torch.no_grad():
            game = layered(**tokenizer()(*TEXT, return_tensors="pt"), output_game=True).game
        tokens = [1, 2, 3, 4, 6, 7, 8, 9]
        for name, field in (("shapley", "shapley"), ("banzhaf", "banzhaf"), ("gate", "gate"), ("fields", "field")):
            expected = getattr(game, name)[0].mean(0)[tokens]
            torch.testing.assert_close(torch.tensor([getattr(word, field) for word in explanation.words]), expected)
        torch.testing.assert_close(torch.tensor(explanation.importance), game.attention[0].mean(0)[tokens])
        assert explanation.importance == explanation.attention
        interactions = game.interactions.dense()[0].mean(0)[tokens][:, tokens]
        torch.testing.assert_close(torch.tensor(explanation.interactions), interactions)
        assert explanation.passes == 2  # and one for the base value
        assert explanation.ess == pytest.approx(float(game.diagnostics.ess.mean()))
        assert explanation.converged == bool(game.diagnostics.converged.all())
        for method, field in (("layer-field", "field"), ("layer-shapley", "shapley"), ("layer-banzhaf", "banzhaf")):
            other = Explainer(layered, tokenizer())(*TEXT, method=method)
            assert other.importance == [getattr(word, field) for word in explanation.words]


class TestGround:
    def test_learn_save_and_load(self, bare, tmp_path):
        before = {name: value.clone() for name, value in bare.state_dict().items()}
        pairs = [(row["premise"], row["hypothesis"]) for row in rows(32)]
        explainer = Explainer(bare, tokenizer())
        assert explainer.grounded is None
        assert explainer.ground(pairs, **SMALL_HEAD) is explainer
        assert all(torch.equal(value, before[name]) for name, value in bare.state_dict().items())
        explanation = explainer(*TEXT)
        assert (explanation.method, explanation.passes) == ("shapley", 1)
        assert explainer.save(tmp_path / "saved") == tmp_path / "saved"
        assert (tmp_path / "saved" / "game" / "game.json").is_file()
        loaded = Explainer.from_pretrained(tmp_path / "saved", device="cpu")
        assert loaded(*TEXT) == explanation
        again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
        assert Explainer(again, tokenizer())(*TEXT) == explanation

    def test_the_one_line_form(self, bare, tmp_path):
        texts = [row["premise"] for row in rows(16)]
        explainer = ground(bare, tokenizer(), texts, tmp_path, **SMALL_HEAD)
        assert isinstance(explainer, Explainer)
        assert explainer("a man runs").method == "shapley"
        assert Explainer(bare, tokenizer(), game=tmp_path)("a man runs") == explainer("a man runs")
        assert not (tmp_path / "config.json").exists()  # the game alone

    def test_files_and_names(self, bare, tmp_path):
        path = tmp_path / "texts.csv"
        path.write_text("text\n" + "\n".join(row["premise"] for row in rows(16)))
        explainer = ground(bare, tokenizer(), str(path), **SMALL_HEAD)
        expected = ground(bare, tokenizer(), [row["premise"] for row in rows(16)], **SMALL_HEAD)
        assert explainer("a man runs") == expected("a man runs")

    def test_bad_options(self, bare):
        with pytest.raises(TypeError, match=r"unknown option\(s\) epoch; there are: epochs, batch_size"):
            ground(bare, tokenizer(), ["a man"] * 8, epoch=3)
        with pytest.raises(ValueError, match="expected at least one batch of 8 texts; got 4"):
            ground(bare, tokenizer(), ["a man"] * 4, **SMALL_HEAD)

    def test_a_model_in_training_stays_so(self, bare):
        bare.train()
        explainer = ground(bare, tokenizer(), ["a man runs"] * 8, **SMALL_HEAD)
        assert bare.training
        assert explainer(*TEXT) == explainer(*TEXT)  # without dropout
        assert bare.training


class TestExchange:
    def test_frame(self, explainer):
        pytest.importorskip("pandas")
        explanation = explainer(*TEXT)
        frame = explanation.to_frame()
        assert list(frame["word"]) == " ".join(TEXT).split()
        assert list(frame["side"]) == [0] * 4 + [1] * 4
        for name in ("importance", "importance_stderr", "attention"):
            assert frame[name].tolist() == getattr(explanation, name)
        assert frame.index.tolist() == list(range(8))
        scores = explainer(*TEXT, method="random").to_frame()
        assert scores["importance"].notna().all()
        assert scores["shapley"].isna().all()

    def test_shap(self, explainer):
        shap = pytest.importorskip("shap")
        explanation = explainer(*TEXT, target="neutral")
        handed = explanation.to_shap()
        assert isinstance(handed, shap.Explanation)
        assert handed.values.tolist() == explanation.importance
        assert handed.base_values == explanation.base_value
        assert list(handed.data) == list(handed.feature_names) == " ".join(TEXT).split()
        total = float(handed.base_values) + handed.values.sum()
        assert total == pytest.approx(explanation.probabilities["neutral"], abs=0.05)
        assert len(handed[:3].values) == 3

    def test_shapiq(self, explainer):
        shapiq = pytest.importorskip("shapiq")
        for method, index, field in (("shapley", "SII", "shapley"), ("banzhaf", "BII", "banzhaf")):
            explanation = explainer(*TEXT, method=method)
            handed = explanation.to_shapiq()
            assert isinstance(handed, shapiq.InteractionValues)
            assert (handed.n_players, handed.max_order, handed.index) == (8, 2, index)
            assert explanation.pair_index == index
            for position, word in enumerate(explanation.words):
                assert handed[(position,)] == pytest.approx(getattr(word, field))
            for pair in explanation.pairs:
                assert handed[(pair.first, pair.second)] == pytest.approx(pair.interaction)
            alone = Explanation.from_row(explanation.to_row(pairs=0)).to_shapiq()
            assert (alone.max_order, alone.index) == (1, {"SII": "SV", "BII": "BV"}[index])
            assert [alone[(place,)] for place in range(8)] == pytest.approx(explanation.importance)
        sampled = explainer(*TEXT, method="shapley-sampling")
        assert sampled.to_shapiq().index == "SV"
        assert sampled.to_shapiq()[(2,)] == pytest.approx(sampled.importance[2])
        with pytest.raises(ValueError, match=r"to_shapiq needs Shapley or Banzhaf values of the .*'leave-one-out'"):
            explainer(*TEXT, method="leave-one-out").to_shapiq()

    def test_figures(self, explainer, tmp_path):
        pytest.importorskip("matplotlib")
        for kind in ("words", "pairs", "arcs"):
            explainer(*TEXT).plot(kind, tmp_path / f"{kind}.png")
            assert (tmp_path / f"{kind}.png").stat().st_size > 1000
        assert "sleeps" in explainer(*TEXT).to_html(tmp_path / "one.html") == (tmp_path / "one.html").read_text()


class TestEdges:
    def test_lists_say_what_each_text_cost(self, explainer):
        texts = (["dog", "the dog runs outside today"], ["a", "two cats sleep"])
        for method in ("leave-one-out", "shapley-sampling", "kernel-shap", "shapley"):
            many = explainer(*texts, method=method)
            for one, pair in zip(many, zip(*texts, strict=True), strict=True):
                alone = explainer(*pair, method=method)
                assert (one.passes, one.samples) == (alone.passes, alone.samples)
                assert one.importance == pytest.approx(alone.importance, abs=1e-6)
        assert explainer(*texts, method="leave-one-out")[0].passes == 5  # two words, all, the answer, no words

    def test_a_classifier_with_a_game_of_its_own_is_saved_and_loaded(self, encoder, tmp_path):
        sizes = {"heads": 2, "dim": 8, "hidden": 8, "readout": 8}
        model = NeuroGameForSequenceClassification.from_encoder(
            str(encoder), labels=NLI, head="grounded", special_ids=(0, 2, 3), grounding=sizes
        )
        explainer = Explainer(model.eval(), tokenizer())
        explainer.save(tmp_path)
        assert not (tmp_path / "game").exists()
        assert Explainer.from_pretrained(tmp_path, device="cpu")(*TEXT) == explainer(*TEXT)

    def test_a_game_of_other_weights_is_needed_only_by_its_methods(self, grounded_folder, tmp_path):
        model, own = spinformer.load_classifier(grounded_folder, device="cpu")
        with torch.no_grad():
            model.classifier.weight.add_(1)
        stale = Explainer(model, own)
        assert stale(*TEXT, method="kernel-shap").method == "kernel-shap"
        for method in ("auto", "shapley"):
            with pytest.raises(ValueError, match="this game head was made for another model"):
                stale(*TEXT, method=method)
        pairs = [(row["premise"], row["hypothesis"]) for row in rows(32)]
        assert stale.ground(pairs, **SMALL_HEAD)(*TEXT).method == "shapley"
        assert spinformer.ground(model, own, pairs, tmp_path, **SMALL_HEAD).grounded is not None

    def test_grounding_keeps_the_masking(self, bare):
        pairs = [(row["premise"], row["hypothesis"]) for row in rows(32)]
        explainer = Explainer(bare, tokenizer(), masking="delete").ground(pairs, **SMALL_HEAD)
        assert explainer.grounded.masking == explainer.classifier.masking == "delete"
        with pytest.raises(ValueError, match="resume needs output"):
            explainer.ground(pairs, resume=True, **SMALL_HEAD)
        with pytest.raises(ValueError, match=r"all be pairs; row 1 is \('c',\)"):
            explainer.ground([("a", "b"), ("c",)])

    @pytest.mark.parametrize("row", [None, 5, ("x", "y"), float("nan")])
    def test_no_row_is_left_out(self, bare, row):
        with pytest.raises(ValueError, match="must all be single texts, or all be pairs; row 1 is"):
            Explainer(bare, tokenizer()).ground(["a man", row, "a dog"])
        with pytest.raises(ValueError, match="text 1 must be a text that is not empty"):
            Explainer(bare, tokenizer()).ground(["a man", "", row or "a"][:2])

    def test_scores_are_those_of_the_explainer_s_ising_model(self, grounded_folder):
        hot = Explainer.from_pretrained(grounded_folder, device="cpu", temperature=1.0)
        words = split_words(tokenizer(), Texts([TEXT[0]], [TEXT[1]]), 64)
        expected = torch.tensor(hot(*TEXT, method="attention").importance)
        torch.testing.assert_close(hot.scorer("attention")(words)[0], expected)

    def test_bad_calls(self, explainer, grounded_folder):
        with pytest.raises(ValueError, match="text 0 must have at least one word; got"):
            explainer(["\u200b", "the dog runs"])
        gibbs = Explainer.from_pretrained(grounded_folder, device="cpu", weighting="gibbs")
        with pytest.raises(ValueError, match="passes and until go with weighting 'uniform'"):
            gibbs(*TEXT, passes=100)
        assert explainer(*TEXT, target=torch.tensor(1)) == explainer(*TEXT, target=1)

    def test_unknown_errors_are_saved_as_none(self, explainer, tmp_path):
        few = explainer(*TEXT, method="shapley-sampling", passes=10)  # one permutation
        assert {word.shapley_stderr for word in few.words} == {None}
        assert Explanation.load(few.save(tmp_path / "few.json")) == few


def test_the_front_door_is_this(model):
    assert spinformer.Explainer is Explainer
    assert (spinformer.ground, spinformer.Explanation) == (ground, Explanation)
    assert spinformer.explain(model, tokenizer(), *TEXT) == explain(model, tokenizer(), *TEXT)
    assert spinformer.explain.METHODS is METHODS  # the package of the same name
