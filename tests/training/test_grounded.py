"""The classifier as a game: head and objective `grounded`, in whole runs."""

import pytest
import torch

from spinformer.data.sources import load_texts
from spinformer.data.words import split_words
from spinformer.explain.explainer import Explainer
from spinformer.explain.grounded import GroundedClassifier, find_game_head
from spinformer.games import exact_values
from spinformer.games.coalitions import draw_coalitions
from spinformer.models import NeuroGameForSequenceClassification
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.models.predicted_games import PredictedGames
from spinformer.training.classifier.grounded_objective import grounded_loss
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.train import train_classifier
from spinformer.training.game import GroundingOptions, train_game_head
from tests.tiny import save_rows
from tests.tiny import tokenizer as tiny_tokenizer

SIZES = {"heads": 4, "dim": 16, "hidden": 32, "readout": 32}


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    """A grounded classifier of the tiny pairs, and its folder."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("grounded")
    recipe = ClassifierRecipe(
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
    record = train_classifier(recipe, folder / "run", quiet=True)
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
        words = split_words(tokenizer, texts.select(range(8)), 64)
        games = GroundedClassifier(model, model.game).games(words)
        real = model(**words.inputs).logits.softmax(-1)
        torch.testing.assert_close(games.logits(words.mask[:, None]).exp().squeeze(1), real)

    def test_the_game_is_what_the_model_says_of_parts(self, trained):
        _, model, tokenizer, texts = trained
        words = split_words(tokenizer, texts.select(range(32)), 64)
        drawn = draw_coalitions(words.mask, 16, seed=5)
        with torch.no_grad():
            predicted = GroundedClassifier(model, model.game).games(words).game()(drawn)
            real = ConfidenceGame(MaskedClassifier(model, tokenizer), words)(drawn)
        assert float(1 - (predicted - real).square().mean() / real.var()) > 0.6

    def test_the_word_that_decides_comes_first(self, trained):
        """ "not" makes a contradiction of every pair that has it in the hypothesis."""
        _, model, tokenizer, texts = trained
        rows = [row for row, label in enumerate(texts.labels) if texts.names[label] == "contradiction"][:8]
        words = split_words(tokenizer, texts.select(rows), 64)
        scores = Explainer(model, tokenizer, samples=32).scorer("shapley")(words)
        first = [found[place] for found, place in zip(words.words, scores.argmax(-1).tolist(), strict=True)]
        assert first.count("not") >= 7

    def test_fields_and_attention(self, trained):
        _, model, tokenizer, texts = trained
        words = split_words(tokenizer, texts.select(range(4)), 64)
        grounded = GroundedClassifier(model, model.game)
        played = grounded.attention(grounded.games(words))
        assert bool(played.solved.converged.all())
        assert bool(((played.attention >= 0) & (played.attention <= 1)).all())
        assert float((played.attention * ~words.mask).abs().max()) == 0

    def test_estimates_are_of_the_exact_values(self, trained):
        _, model, tokenizer, texts = trained
        short = min(range(len(texts)), key=lambda row: len(texts.first[row]) + len(texts.second[row]))
        grounded = GroundedClassifier(model, model.game, samples=2000)
        games = grounded.games(split_words(tokenizer, texts.select([short]), 64))
        found = grounded.values(games, "SV")
        with torch.no_grad():
            exact = exact_values(games.game(), "SV")
        assert bool(((found.values - exact).abs() <= 4 * found.stderr + 1e-6).all())


def test_what_is_refused(encoder):
    for options in ({"objective": "grounded"}, {"head": "grounded"}):
        with pytest.raises(
            ValueError, match=r"objective 'grounded' and a pooling head with a game head, .* go together"
        ):
            ClassifierRecipe(**options)
    with pytest.raises(ValueError, match="settle is an option of objective 'grounded'"):
        ClassifierRecipe(settle=1)
    with pytest.raises(ValueError, match="leave mixup at 0"):
        ClassifierRecipe(objective="grounded", head="grounded", mixup=0.2)
    assert find_game_head(NeuroGameForSequenceClassification.from_encoder(str(encoder))) is None


def test_the_game_does_not_bend_the_model(encoder, tmp_path):
    """Nothing of the game's error reaches the encoder or the classifier."""
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(str(encoder), head="grounded", grounding=SIZES)
    words = split_words(tiny_tokenizer(), load_texts(str(save_rows(tmp_path / "rows.jsonl", 4))), 64)
    output = model(**words.inputs, output_game=True)
    full = output.logits.detach().log_softmax(-1)
    games = PredictedGames(model.game.readout, words.sums(output.features), full, words.mask)
    games.game()(draw_coalitions(words.mask, 3, seed=0)).sum().backward()
    moved = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert moved == {"game"}


@pytest.fixture
def batch(encoder, tmp_path):
    """A fresh grounded classifier in training, with a batch of eight pairs and their targets."""
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(
        str(encoder), head="grounded", grounding=SIZES, dropout=0.0, encoder_dropout=0.0, special_ids=(0, 2, 3)
    ).train()
    texts = load_texts(str(save_rows(tmp_path / "rows.jsonl", 8)))
    found = tiny_tokenizer()(list(texts.first), list(texts.second), padding=True, return_tensors="pt")
    return model, dict(found), torch.eye(3)[torch.tensor(texts.labels)]


def objective(**options):
    return ClassifierRecipe(head="grounded", objective="grounded", **options)


def test_the_objective_by_hand(batch):
    """Without dropout every term can be computed from passes of its own."""
    model, inputs, targets = batch
    recipe = objective(whole=0.25, consistency=0.7, masked_weight=0.3, ground_weight=0.4)
    torch.manual_seed(5)
    loss, outputs, apart = grounded_loss(model, recipe, inputs, targets)
    torch.manual_seed(5)
    mask, players = inputs["attention_mask"], model.players(inputs["input_ids"], inputs["attention_mask"])
    seed = int(torch.randint(2**31, ()))
    coalition = draw_coalitions(players, 1, seed=seed).squeeze(1)
    order = torch.randperm(8)
    part, again = order[:6], order[6:]
    full = model(**inputs, output_game=True)
    parts = model(**{**inputs, "attention_mask": mask * (coalition | ~players)}).logits[part]
    game = PredictedGames(
        model.game.readout, full.features * players[..., None], full.logits.detach().log_softmax(-1), players
    )
    told = game.logits(coalition[:, None]).squeeze(1)[part]
    wanted = torch.nn.functional.kl_div(told, parts.detach().softmax(-1), reduction="none").sum(-1)
    torch.testing.assert_close(apart, wanted, rtol=1e-4, atol=1e-6)
    cross = torch.nn.functional.cross_entropy
    second = cross(torch.cat([parts, full.logits[again]]), targets[torch.cat([part, again])])
    total = cross(full.logits, targets) + 0.3 * second + 0.4 * wanted.mean()
    torch.testing.assert_close(loss, total, rtol=1e-5, atol=1e-6)  # two passes without dropout never disagree
    assert len(outputs.logits) == 16


def test_two_passes_under_dropout_must_agree(batch):
    model, inputs, targets = batch
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.3
    with torch.no_grad():
        model.classifier[-1].weight.mul_(30)  # answers far enough apart to tell
    losses = {}
    for consistency in (1e-12, 0.7):
        torch.manual_seed(5)
        recipe = objective(whole=0.25, consistency=consistency, label_smoothing=0.2)
        losses[consistency], outputs, apart = grounded_loss(model, recipe, inputs, targets)
    torch.manual_seed(5)
    torch.randint(2**31, ())
    again = torch.randperm(8)[6:]
    p, q = (found.log_softmax(-1) for found in (outputs.logits[again], outputs.logits[14:]))
    wanted = ((p.exp() - q.exp()) * (p - q)).sum(-1).mean() / 2
    assert wanted > 1e-4
    torch.testing.assert_close(losses[0.7] - losses[1e-12], 0.7 * wanted, rtol=1e-3, atol=1e-6)
    cross = torch.nn.functional.cross_entropy
    second = cross(outputs.logits[8:], targets[torch.cat([torch.tensor(part_of(5)), again])])
    first = cross(outputs.logits[:8], targets, label_smoothing=0.2)
    torch.testing.assert_close(losses[1e-12], first + 0.5 * second + apart.mean(), rtol=1e-4, atol=1e-5)


def part_of(seed):
    torch.manual_seed(seed)
    torch.randint(2**31, ())
    return torch.randperm(8)[:6].tolist()


@pytest.mark.parametrize(
    ("whole", "consistency", "rows"), [(0.5, 0.0, 12), (0.5, 1.0, 16), (0.0, 1.0, 16), (0.9, 0.0, 9)]
)
def test_rows_of_the_second_pass(batch, whole, consistency, rows):
    loss, outputs, apart = grounded_loss(batch[0], objective(whole=whole, consistency=consistency), *batch[1:])
    assert len(outputs.logits) == rows
    assert len(apart) == max(1, 8 - round(8 * whole))
    assert bool(loss.isfinite())


@pytest.mark.slow
def test_settling_changes_the_game_alone_and_betters_it(encoder, tmp_path):
    common = {
        "encoder": str(encoder),
        "grounding": SIZES,
        "train": str(save_rows(tmp_path / "train.jsonl", 256)),
        "dev": str(save_rows(tmp_path / "dev.jsonl", 64, seed=1)),
        "steps": 40,
        "batch_size": 16,
        "learning_rate": 2e-3,
        "ema": 0.9,
        "save_steps": 0,
    }
    models = {}
    for settle in (0, 8):
        train_classifier(objective(**common, settle=settle), tmp_path / str(settle), quiet=True)
        models[settle] = NeuroGameForSequenceClassification.from_pretrained(tmp_path / str(settle)).eval()
    moved = {
        name.split(".")[0]
        for name, value in models[0].state_dict().items()
        if not torch.equal(value, models[8].state_dict()[name])
    }
    assert moved == {"game"}
    words = split_words(tiny_tokenizer(), load_texts(common["dev"]), 64)
    drawn = draw_coalitions(words.mask, 16, seed=5)
    with torch.no_grad():
        real = ConfidenceGame(MaskedClassifier(models[0], tiny_tokenizer()), words)(drawn)
        off = {
            settle: (one.game.games(one, words).game()(drawn) - real).square().mean() for settle, one in models.items()
        }
    assert off[8] < 0.8 * off[0]


def test_a_game_learnt_afterwards_comes_before_its_own(batch, tmp_path):
    model, texts = batch[0].eval(), load_texts(str(save_rows(tmp_path / "more.jsonl", 8)))
    assert find_game_head(model, tmp_path) is model.game
    small = GroundingOptions(batch_size=4, subsets=1, **SIZES)
    made = train_game_head(model, tiny_tokenizer(), texts, tmp_path, small)
    found = find_game_head(model, tmp_path)
    assert found is not model.game
    assert all(torch.equal(a, b) for a, b in zip(found.parameters(), made.parameters(), strict=True))
