"""The classifier as a game: head and objective `grounded`, in whole runs."""

import pytest
import torch

from spinformer.data.named import load_texts
from spinformer.explain import ConfidenceGame, MaskedClassifier, split
from spinformer.explain.grounded import Grounded, GroundedScores
from spinformer.games import exact_values
from spinformer.models import NeuroGameForSequenceClassification
from spinformer.models.grounding import GroundedGames
from spinformer.training.classifier import train
from spinformer.training.ground import draw_coalitions
from spinformer.training.recipe import Recipe
from tests.tiny import save_rows
from tests.tiny import tokenizer as tiny_tokenizer

SIZES = {"heads": 4, "dim": 16, "hidden": 32, "readout": 32}


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    """A grounded classifier of the tiny pairs, and its folder."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("grounded")
    recipe = Recipe(
        encoder=str(encoder),
        head="grounded",
        objective="grounded",
        grounding=SIZES,
        train=str(save_rows(folder / "train.jsonl", 256)),
        dev=str(save_rows(folder / "dev.jsonl", 64, seed=1)),
        epochs=16,
        batch_size=16,
        learning_rate=2e-3,
        encoder_dropout=0.0,
        dropout=0.0,
        save_steps=0,
        log_steps=5,
    )
    record = train(recipe, folder / "run", quiet=True)
    model = NeuroGameForSequenceClassification.from_pretrained(folder / "run", dtype=torch.float32).eval()
    return record, model, AutoTokenizer.from_pretrained(folder / "run"), load_texts(recipe.dev)


@pytest.mark.slow
class TestTogether:
    def test_it_learns_to_classify_and_says_how_far_the_game_is_off(self, trained):
        history = trained[0]["history"]
        assert [entry["eval_accuracy"] for entry in history if "eval_accuracy" in entry][-1] > 0.8
        apart = [entry["apart"] for entry in history if "apart" in entry]
        assert apart[-1] < 0.5 * max(apart)

    def test_the_answer_is_the_value_of_all_words(self, trained):
        _, model, tokenizer, texts = trained
        words = split(tokenizer, texts.select(range(8)), 64)
        games = Grounded(model).games(words)
        real = model(**words.inputs).logits.softmax(-1)
        torch.testing.assert_close(games.log_probabilities(words.mask[:, None]).exp().squeeze(1), real)

    def test_the_game_is_what_the_model_says_of_parts(self, trained):
        _, model, tokenizer, texts = trained
        words = split(tokenizer, texts.select(range(32)), 64)
        drawn = draw_coalitions(words.mask, 16, "sizes", seed=5)
        with torch.no_grad():
            predicted = Grounded(model).games(words).game()(drawn)
            real = ConfidenceGame(MaskedClassifier(model, tokenizer), words)(drawn)
        assert float(1 - (predicted - real).square().mean() / real.var()) > 0.6

    def test_the_word_that_decides_comes_first(self, trained):
        """ "not" makes a contradiction of every pair that has it in the hypothesis."""
        _, model, tokenizer, texts = trained
        rows = [row for row, label in enumerate(texts.labels) if texts.names[label] == "contradiction"][:8]
        words = split(tokenizer, texts.select(rows), 64)
        scores = GroundedScores(Grounded(model), "shapley")(words)
        first = [found[place] for found, place in zip(words.words, scores.argmax(-1).tolist(), strict=True)]
        assert first.count("not") >= 7

    def test_fields_and_attention(self, trained):
        _, model, tokenizer, texts = trained
        words = split(tokenizer, texts.select(range(4)), 64)
        grounded = Grounded(model)
        played = grounded.play(grounded.games(words))
        assert bool(played.solved.converged.all())
        assert bool(((played.attention >= 0) & (played.attention <= 1)).all())
        assert float((played.attention * ~words.mask).abs().max()) == 0

    def test_estimates_are_of_the_exact_values(self, trained):
        _, model, tokenizer, texts = trained
        short = min(range(len(texts)), key=lambda row: len(texts.first[row]) + len(texts.second[row]))
        grounded = Grounded(model, samples=2000)
        games = grounded.games(split(tokenizer, texts.select([short]), 64))
        found = grounded.values(games, "SV")
        with torch.no_grad():
            exact = exact_values(games.game(), "SV")
        assert bool(((found.values - exact).abs() <= 4 * found.stderr + 1e-6).all())


def test_what_is_refused(encoder):
    for options in ({"objective": "grounded"}, {"head": "grounded"}):
        with pytest.raises(ValueError, match="objective 'grounded' and head 'grounded' go together"):
            Recipe(**options)
    with pytest.raises(ValueError, match="leave mixup at 0"):
        Recipe(objective="grounded", head="grounded", mixup=0.2)
    with pytest.raises(ValueError, match="needs a game head"):
        Grounded(NeuroGameForSequenceClassification.from_encoder(str(encoder)))


def test_the_game_does_not_bend_the_model(encoder, tmp_path):
    """Nothing of the game's error reaches the encoder or the classifier."""
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(str(encoder), head="grounded", grounding=SIZES)
    words = split(tiny_tokenizer(), load_texts(str(save_rows(tmp_path / "rows.jsonl", 4))), 64)
    output = model(**words.inputs, output_game=True)
    GroundedGames.of(model.game.readout, output.features, output.logits.detach(), words).game()(
        draw_coalitions(words.mask, 3, "sizes", seed=0)
    ).sum().backward()
    moved = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert moved == {"game"}
