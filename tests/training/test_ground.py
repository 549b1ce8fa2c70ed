"""The game head of a frozen classifier: its values, its coalitions, its training, and what is refused."""

import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games import exact_values
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.game_head import GameHead, GameHeadConfig, default_layers, spread_layers
from spinformer.models.identity import weights_digest
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.training.game import GroundingOptions, train_game_head
from spinformer.training.game_hints import HintMap
from spinformer.training.game_loss import add_gradients
from spinformer.training.game_memory import Memory
from tests.tiny import NLI, bert, rows, tokenizer

SMALL = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "batch_size": 8}


def texts(count=64, seed=0, single=False):
    pairs = rows(count, seed)
    return Texts([row["premise"] for row in pairs], None if single else [row["hypothesis"] for row in pairs])


@pytest.fixture(scope="module")
def classifier():
    """Any Hugging Face classifier: here one that transformers brings, with random weights."""
    from transformers import BertForSequenceClassification

    torch.manual_seed(0)
    return BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).eval()


@pytest.fixture
def head(classifier):
    torch.manual_seed(1)
    return GameHead(GameHeadConfig((0, 1, 2), 32, 3, heads=4, dim=16, hidden=32, readout=16)).eval()


class TestHead:
    def test_the_grand_coalition_is_the_classifier_itself(self, classifier, head):
        words = split_words(tokenizer(), texts(5), 64)
        games = head.games(classifier, words)
        real = classifier(**words.inputs).logits.softmax(-1)
        torch.testing.assert_close(games.logits(words.mask[:, None]).exp().squeeze(1), real)

    def test_shapley_values_sum_to_what_the_words_add(self, classifier, head):
        words = split_words(tokenizer(), texts(4).select([0]), 64)
        game = head.games(classifier, words).game()
        values = exact_values(game, "SV")
        ends = game(torch.stack([torch.zeros(game.players), torch.ones(game.players)]).bool())
        torch.testing.assert_close(values.sum(-1), ends[:, 1] - ends[:, 0])

    @pytest.mark.parametrize("form", ["sums", "attending"])
    def test_the_correction_fades(self, classifier, form):
        """o(C) = g(C) + e^{-(u(C) - u(N))^2} (o(N) - g(N)), and v of the game is its softmax."""
        torch.manual_seed(1)
        sizes = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16}
        head = GameHead(GameHeadConfig((0, 2), 32, 3, **sizes, form=form, fading=True)).eval()
        words = split_words(tokenizer(), texts(5), 64)
        games, drawn = head.games(classifier, words), draw_coalitions(words.mask, 6, seed=2)
        scores, whole = (games.readout(games.features, part.float()).detach() for part in (drawn, words.mask[:, None]))
        fading = (-((scores[..., 3:] - whole[..., 3:]) ** 2)).exp()
        assert 0.0 < float(fading.min()) < 1.0
        full = classifier(**words.inputs).logits.log_softmax(-1)[:, None]
        expected = (scores[..., :3] + fading * (full - whole[..., :3])).softmax(-1)
        torch.testing.assert_close(games.logits(drawn).exp(), expected)
        target = torch.arange(5) % 3
        values = games.game(target)(drawn)
        torch.testing.assert_close(values, expected[torch.arange(5)[:, None], torch.arange(6), target[:, None]])
        one = games.game(target).evaluate_rows([3], drawn[3:4])
        torch.testing.assert_close(one[0], values[3], atol=1e-5, rtol=1e-4)

    def test_neither_padding_nor_batch_matters(self, classifier, head):
        data = texts(6)
        words = split_words(tokenizer(), data, 64)
        together = head.games(classifier, words)
        for row in range(6):
            alone = split_words(tokenizer(), data.select([row]), 64)
            games = head.games(classifier, alone)
            count = int(alone.counts)
            torch.testing.assert_close(together.features[row, :count], games.features[0], atol=1e-5, rtol=1e-4)

    def test_saved_and_loaded(self, classifier, head, tmp_path):
        own = GameHead(GameHeadConfig((0, 2), 32, 3, heads=2, dim=8, model=weights_digest(classifier)))
        own.save(tmp_path)
        again = GameHead.load(tmp_path, classifier)
        assert again.config == own.config
        assert all(torch.equal(a, b) for a, b in zip(own.parameters(), again.parameters(), strict=True))

    def test_made_for_another_model(self, classifier, head, tmp_path):
        head.save(tmp_path)
        with pytest.raises(ValueError, match="another model"):
            GameHead.load(tmp_path, classifier)

    def test_no_head_and_a_damaged_one(self, classifier, head, tmp_path):
        with pytest.raises(FileNotFoundError, match="spinformer ground"):
            GameHead.load(tmp_path, classifier)
        head.save(tmp_path)
        own = GameHead(GameHeadConfig((0, 2), 32, 3, heads=2, dim=8, model=weights_digest(classifier)))
        own.save(tmp_path)
        save_file({"body": torch.zeros(2)}, tmp_path / "game" / "game.safetensors")
        with pytest.raises(ValueError, match="weights are not those"):
            GameHead.load(tmp_path, classifier)
        (tmp_path / "game" / "game.safetensors").write_bytes(b"no")
        with pytest.raises(ValueError, match="damaged"):
            GameHead.load(tmp_path, classifier)
        (tmp_path / "game" / "game.json").write_text(json.dumps({"layers": [0], "wide": 3}))
        with pytest.raises(ValueError, match="damaged"):
            GameHead.load(tmp_path, classifier)

    def test_the_digest_is_of_the_weights(self, classifier):
        from transformers import BertForSequenceClassification

        torch.manual_seed(5)
        other = BertForSequenceClassification(classifier.config)
        assert weights_digest(classifier) != weights_digest(other)
        other.load_state_dict(classifier.state_dict())
        assert weights_digest(classifier) == weights_digest(other)

    def test_layers(self, classifier):
        assert default_layers(classifier.config.num_hidden_layers) == (0, 1, 2)
        assert [spread_layers(count) for count in (1, 2, 6)] == [(0, 1), (0, 1, 2), (0, 1, 2, 3, 4, 5, 6)]
        assert spread_layers(24) == (0, 4, 8, 12, 16, 20, 24)
        with pytest.raises(ValueError, match="multiple of heads"):
            GameHeadConfig((0,), 32, 3, heads=3, dim=16)


class TestCoalitions:
    MASK = torch.tensor([[True] * 8, [True] * 5 + [False] * 3])

    def test_sizes_are_uniform(self):
        """The share of each of 9 sizes in 20,000 draws is within 4 standard errors of 1/9."""
        drawn = draw_coalitions(self.MASK[:1], 20_000, seed=0)
        share = drawn.sum(-1).flatten().bincount(minlength=9) / 20_000
        assert float((share - 1 / 9).abs().max()) <= 4 * (8 / 81 / 20_000) ** 0.5

    def test_words_alone_and_seeded(self):
        drawn = draw_coalitions(self.MASK, 50, seed=3)
        assert not bool(drawn[1, :, 5:].any())
        assert torch.equal(drawn, draw_coalitions(self.MASK, 50, seed=3))
        assert not torch.equal(drawn, draw_coalitions(self.MASK, 50, seed=4))


class TestTraining:
    def test_learns_what_the_classifier_says_and_leaves_it_alone(self, classifier, tmp_path):
        before = {name: value.clone() for name, value in classifier.state_dict().items()}
        options = GroundingOptions(**SMALL, epochs=8, subsets=8, learning_rate=5e-3)
        head = train_game_head(classifier, tokenizer(), texts(), tmp_path, options)
        after = classifier.state_dict()
        assert all(torch.equal(value, after[name]) for name, value in before.items())
        words = split_words(tokenizer(), texts(16, seed=1), 64)
        drawn = draw_coalitions(words.mask, 8, seed=9)
        real = ConfidenceGame(MaskedClassifier(classifier, tokenizer()), words)(drawn)
        with torch.no_grad():
            predicted = head.games(classifier, words).game()(drawn)
        fit = 1 - (predicted - real).square().mean() / real.var()
        assert float(fit) > 0.5

    def test_the_global_random_state_is_left_alone(self, classifier, tmp_path):
        torch.manual_seed(7)
        before = torch.get_rng_state()
        heads = [
            train_game_head(classifier, tokenizer(), texts(16), tmp_path, GroundingOptions(**SMALL)) for _ in range(2)
        ]
        assert torch.equal(torch.get_rng_state(), before)
        assert all(torch.equal(a, b) for a, b in zip(*(head.parameters() for head in heads), strict=True))

    def test_single_texts(self, classifier, tmp_path):
        train_game_head(classifier, tokenizer(), texts(16, single=True), tmp_path, GroundingOptions(**SMALL))
        assert GameHead.load(tmp_path, classifier).config.classes == 3

    @pytest.mark.parametrize("repeats", [1, 2])
    def test_stopped_and_resumed_to_the_same_head(self, classifier, tmp_path, monkeypatch, repeats):
        options = GroundingOptions(**SMALL, save_steps=3, repeats=repeats)
        whole = train_game_head(classifier, tokenizer(), texts(), tmp_path / "whole", options)
        import spinformer.training.game_fit as module

        real, calls = module.add_gradients, []

        def stop(*args, **named):
            calls.append(1)
            if len(calls) == 6 * repeats:  # the second time in the middle of what is learnt from again
                raise KeyboardInterrupt
            return real(*args, **named)

        monkeypatch.setattr(module, "add_gradients", stop)
        with pytest.raises(KeyboardInterrupt):
            train_game_head(classifier, tokenizer(), texts(), tmp_path / "parts", options)
        monkeypatch.setattr(module, "add_gradients", real)
        other = GroundingOptions(**SMALL, save_steps=3, repeats=repeats, seed=1)
        with pytest.raises(ValueError, match=r"state\.pt belongs to another run; these differ: options\.seed$"):
            train_game_head(classifier, tokenizer(), texts(), tmp_path / "parts", other, resume=True)
        with pytest.raises(ValueError, match=r"state\.pt belongs to another run; these differ: texts$"):
            train_game_head(classifier, tokenizer(), texts(single=True), tmp_path / "parts", options, resume=True)
        parts = train_game_head(classifier, tokenizer(), texts(), tmp_path / "parts", options, resume=True)
        assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parts.parameters(), strict=True))
        assert not (tmp_path / "parts" / "game" / "state.pt").exists()
        shutil.rmtree(tmp_path / "parts")

    def test_answers_are_learnt_from_again_without_being_asked_again(self, classifier, tmp_path, monkeypatch):
        import spinformer.training.game_fit as module

        real, seen = module.add_gradients, []

        def watch(head, masked, words, drawn, memory, number, hints):
            before = masked.passes
            loss = real(head, masked, words, drawn, memory, number, hints)
            answers = [part.tolist() for part in memory.answers[number, 0]]
            seen.append((words.inputs["input_ids"].tolist(), drawn.tolist(), answers, masked.passes - before))
            return loss

        monkeypatch.setattr(module, "add_gradients", watch)
        train_game_head(classifier, tokenizer(), texts(32), tmp_path, GroundingOptions(**SMALL, epochs=2, repeats=3))
        assert [passes > 0 for *_, passes in seen] == 2 * [*4 * [True], *8 * [False]]
        first, *others = [sorted(str(one[:3]) for one in seen[start : start + 4]) for start in range(0, 24, 4)]
        assert others[0] == others[1] == first != others[2] == others[3] == others[4]
        assert seen[:4] != seen[4:8]  # in another order

    def test_some_texts_at_a_time_are_learnt_from_again(self, monkeypatch):
        """Every batch comes as often, and no more answers are kept than those about KEPT texts."""
        import spinformer.training.game_fit as module

        options = GroundingOptions(**SMALL, epochs=2, repeats=3)
        whole = list(module.batches_of(texts(80), options))
        monkeypatch.setattr(module, "KEPT", 32)
        parts = list(module.batches_of(texts(80), options))
        assert sorted(whole) == sorted(parts)
        assert [(batch.number // 4, batch.repeat) for batch in parts[:30:4]] == [
            *((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)),
            *((2, 0), (2, 2)),  # of two batches, each three times
        ]
        kept, most = set(), 0
        for before, batch in zip([None, *parts], parts, strict=False):
            if before is not None and batch.repeat == 0 and before.repeat:
                kept.clear()
            kept.add(batch.number)
            most = max(most, len(kept))
        assert most == 4

    def test_hints_fade_to_the_end(self, classifier, tmp_path, monkeypatch):
        import spinformer.training.game_fit as module

        real, weights = module.add_gradients, []

        def watch(*given, hints):
            weights.append(hints.weight)
            return real(*given, hints=hints)

        monkeypatch.setattr(module, "add_gradients", watch)
        options = GroundingOptions(**SMALL, epochs=1, repeats=1, hints=2.0)
        train_game_head(classifier, tokenizer(), texts(32), tmp_path, options)
        assert weights == [2.0 * (1 - done / 4) for done in range(4)]

    @pytest.mark.parametrize("form", ["sums", "attending"])
    def test_what_is_kept_is_what_would_be_computed(self, classifier, form):
        """The same loss and gradients from a memory as without one, where states have room and where they have none."""
        config = GameHeadConfig((0, 1), 32, 3, model=weights_digest(classifier), heads=2, dim=8, form=form)
        head, masked = GameHead(config).eval(), MaskedClassifier(classifier, tokenizer())
        words = split_words(tokenizer(), texts(6), 64)
        hints = HintMap.measured(head, masked, texts(6), GroundingOptions(max_length=64))
        learnt = [*head.parameters(), *hints.parameters()]
        drawn, found = draw_coalitions(words.mask, 4, seed=1), []
        for memory in (None, Memory.on(classifier.device), Memory(room=0)):
            for _ in range(1 if memory is None else 2):
                for part in learnt:
                    part.grad = None
                loss = add_gradients(head, masked, words, drawn, memory, hints=hints)
                found.append([loss, *(part.grad.clone() for part in learnt)])
            assert memory is None or bool(memory.states) == (memory.room > 0)
        for one in found[1:]:
            assert all(torch.equal(a, b) for a, b in zip(one, found[0], strict=True))

    @pytest.mark.parametrize("updates", [1, 10, 20])
    def test_any_number_of_updates(self, classifier, tmp_path, updates):
        train_game_head(
            classifier, tokenizer(), texts(updates), tmp_path, GroundingOptions(**{**SMALL, "batch_size": 1})
        )

    def test_too_few_texts(self, classifier, tmp_path):
        with pytest.raises(ValueError, match="at least one batch"):
            train_game_head(classifier, tokenizer(), texts(4), tmp_path, GroundingOptions(**SMALL))
