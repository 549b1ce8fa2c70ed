"""The attending form of a game head: against plain loops over words and heads, its padding, its ends."""

import math
from dataclasses import fields

import pytest
import torch
from torch.nn import functional

pytest.importorskip("transformers")

from tokenizers import processors
from transformers import BertForSequenceClassification

from spinformer.data.players import group_words, sentence_spans
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import Explainer
from spinformer.games import Game
from spinformer.games.coalitions import draw_coalitions
from spinformer.models import attending, predicted_games
from spinformer.models.attending import FLOOR, RANGE, Attending
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.hidden_states import hidden_states
from spinformer.models.identity import weights_digest
from spinformer.models.merged_games import merge
from tests import tiny

SIZES = {"heads": 3, "dim": 12, "hidden": 20, "readout": 16, "reads": 2, "form": "attending"}
TEXTS = Texts(["the dog runs", "a man eats outside and", "cat"], ["a cat sleeps", "woman", "not"])


def tokenizer(special: bool = True):
    """Of tests.tiny; without special tokens, where texts have none."""
    words = tiny.tokenizer()
    if not special:
        words.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A", pair="$A $B:1", special_tokens=[]
        )
    return words


@pytest.fixture(scope="module")
def model():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return BertForSequenceClassification(tiny.bert(num_labels=3, initializer_range=0.3)).eval()


@pytest.fixture(scope="module")
def head(model):
    """Of weights so large that no word counts as much as another."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        head = GameHead(GameHeadConfig((0, 2), 32, 3, model=weights_digest(model), **SIZES)).eval()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return head


@pytest.fixture(scope="module", params=[True, False], ids=["special tokens", "none"])
def words(request):
    return split_words(tokenizer(request.param), TEXTS, 64)


def states_of(model, words):
    with torch.no_grad():
        return hidden_states(model, words.inputs)


def bounded(score):
    return torch.exp(RANGE * torch.tanh(score / RANGE))


def inner_of(head, states, row, tokens):
    """gelu(linear(x_t)) of some tokens."""
    return [
        functional.gelu(
            head.map.body(
                torch.cat([norm(states[layer][row, token]) for norm, layer in zip(head.map.norms, (0, 2), strict=True)])
            )
        )
        for token in tokens
    ]


def readout_by_loops(head, states, words, row, coalition):
    """g(C) of one text, a word and a head at a time."""
    heads, part = SIZES["heads"], SIZES["dim"] // SIZES["heads"]
    owner, present = words.owner[row].tolist(), words.inputs["attention_mask"][row].bool().tolist()
    special = [token for token, word in enumerate(owner) if word < 0 and present[token]]
    context = inner_of(head, states, row, special or [token for token, there in enumerate(present) if there])
    context_key, context_value, state = head.map.context(sum(context) / len(context)).split(SIZES["dim"])
    query, key, value, own = {}, {-1: context_key}, {-1: context_value}, {}
    for word in coalition:
        tokens = inner_of(head, states, row, [token for token, other in enumerate(owner) if other == word])
        query[word], key[word], value[word], own[word] = sum(map(head.map.words, tokens)).split(SIZES["dim"])
    cuts = [slice(number * part, (number + 1) * part) for number in range(heads)]
    inner = {}
    for i in coalition:
        means = []
        for cut in cuts:
            weights = {j: bounded(query[i][cut] @ key[j][cut] / math.sqrt(part)) for j in (-1, *coalition)}
            means.append(sum(weight * value[j][cut] for j, weight in weights.items()) / sum(weights.values()))
        inner[i] = functional.gelu(own[i] + torch.cat(means))
    readout = head.readout
    for read in range(SIZES["reads"]):
        asked, reads, logs = readout.queries[read](readout.norms[read](state)), [], []
        for cut in cuts:
            weights = {i: bounded(asked[cut] @ inner[i][cut] / math.sqrt(part)) for i in coalition}
            total = sum(weights.values(), torch.tensor(FLOOR))
            reads.append(sum((weights[i] * inner[i][cut] for i in coalition), torch.zeros(part)) / total)
            logs.append(total.log())
        state = state + readout.outputs[read](torch.cat([*reads, torch.stack(logs)]))
        state = state + readout.forwards[read](state)
    return readout.last(state)


def members(coalition):
    return coalition.nonzero().squeeze(1).tolist()


class TestLoops:
    def coalitions(self, words):
        """Some of each text, and both ends."""
        ends = torch.stack([torch.zeros_like(words.mask), words.mask], 1)
        return torch.cat([ends, draw_coalitions(words.mask, 3, seed=2)], 1)

    def by_loops(self, head, model, words, coalitions):
        logits, states = states_of(model, words)
        rows = []
        for row, full in enumerate(logits.log_softmax(-1)):
            whole = readout_by_loops(head, states, words, row, range(int(words.counts[row])))
            parts = [readout_by_loops(head, states, words, row, members(each)) for each in coalitions[row]]
            rows.append(torch.stack([(full + part - whole).log_softmax(-1) for part in parts]))
        return torch.stack(rows)

    def test_values(self, head, model, words):
        coalitions = self.coalitions(words)
        with torch.no_grad():
            expected = self.by_loops(head, model, words, coalitions)
            found = head.games(model, words).logits(coalitions)
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
        assert float(expected.exp().var(1).max()) > 1e-3  # coalitions differ

    def test_gradients(self, head, model, words):
        """Of every weight; those of padding and of words outside of C must not leak in."""
        coalitions = self.coalitions(words)[:, 2:4]
        weight = torch.randn(3, 2, 3, generator=torch.Generator().manual_seed(1))
        parameters = dict(head.named_parameters())
        answers = (
            head.games(model, words).logits(coalitions),
            self.by_loops(head, model, words, coalitions),
        )
        gradients = [torch.autograd.grad((each * weight).sum(), list(parameters.values())) for each in answers]
        for name, found, expected in zip(parameters, *gradients, strict=True):
            size = float(expected.abs().max())
            torch.testing.assert_close(found, expected, atol=1e-4 * size + 1e-5, rtol=1e-3, msg=name)
        assert sum(float(part.abs().max()) > 1e-3 for part in gradients[1]) > len(parameters) / 2


class TestPairs:
    """Coalitions that follow each other without a common word, read together."""

    def drawn(self, words):
        """Each coalition and the others, of which some lack words that neither has, and both ends."""
        some = draw_coalitions(words.mask, 24, seed=3)
        fewer = ~some & words.mask[:, None]
        fewer[:, ::3, 0] = False
        ends = torch.stack([torch.zeros_like(words.mask), words.mask], 1)
        return torch.cat([ends, torch.stack([some, fewer], 2).flatten(1, 2)], 1).float()

    def test_states_are_those_of_each_alone(self, head, model, words, monkeypatch):
        features, members = head.games(model, words).features, self.drawn(words)
        calls, readout = [], head.readout
        monkeypatch.setattr(
            readout, "read_pairs", lambda *given: calls.append(1) or type(readout).read_pairs(readout, *given)
        )
        with torch.no_grad():
            expected = readout.read(features, members, *features.sums(members))
            found = readout.states(features, members)
            assert len(calls) == len(members)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            readout.states(features, members.roll(1, 1))  # the two of a pair now have words in common
            readout.states(features, members[:, :30])
        assert len(calls) == len(members)
        readout.states(features, members)  # with gradients
        assert len(calls) == len(members)

    def test_games_in_blocks_are_read_in_pairs(self, head, model, words, monkeypatch):
        games, members = head.games(model, words), self.drawn(words).bool()
        with torch.no_grad():
            expected = games.game().evaluate(members.roll(1, 1)).roll(-1, 1)
            monkeypatch.setattr(predicted_games, "BLOCK", (1, 33 * 3 * predicted_games.width_of(games.features)))
            assert games.game()._block() == 32
            torch.testing.assert_close(games.game().evaluate(members), expected)


class TestLong:
    """Texts of which the products of all pairs of words are too many to be kept."""

    def test_values_and_gradients_are_those_of_short_ones(self, head, model, words, monkeypatch):
        drawn, found = draw_coalitions(words.mask, 5, seed=4), []
        for most, few in ((attending.PRODUCTS, attending.FEW), (attending.PRODUCTS, 0), (0, attending.FEW)):
            monkeypatch.setattr(attending, "PRODUCTS", most)
            monkeypatch.setattr(attending, "FEW", few)
            head.zero_grad()
            games = head.games(model, words)
            assert games.features.short == (most > 0)
            logits = games.logits(drawn)
            logits.square().sum().backward()
            found.append([logits.detach(), *(part.grad.clone() for part in head.parameters())])
        largest = max(float(part.abs().max()) for part in found[0][1:])
        for one in found[1:]:
            torch.testing.assert_close(one[0], found[0][0], rtol=1e-4, atol=1e-5)
            for expected, long in zip(found[0][1:], one[1:], strict=True):
                torch.testing.assert_close(long, expected, rtol=1e-3, atol=1e-5 * largest)

    def test_one_coalition_at_a_time_and_all_together(self):
        """Sums over words by gathering the members, as without gradients, and by products with zeros for the others."""
        generator = torch.Generator().manual_seed(5)
        shapes = (2, 3, 7, 8), (2, 3, 8, 4), (2, 7, 12), (2, 12)
        features = Attending(*(torch.rand(shape, generator=generator) for shape in shapes))
        drawn = draw_coalitions(torch.arange(7) < torch.tensor([[7], [4]]), 6, seed=2).float()
        total, moved = features._sums_together(drawn)
        for row in range(2):
            for number in range(6):
                weights, values = features._sums_of(row, drawn[row, number])  # (H, W) and (H, W, d / H)
                torch.testing.assert_close(total[row, number], weights.T)
                torch.testing.assert_close(moved[row, number], values.transpose(0, 1).flatten(1))

    def test_sentences_are_summed_once(self, head, model, monkeypatch):
        """The game of players is the same, whether their words are summed for each coalition or once."""
        first, second = "the man runs. a dog sleeps outside. the red cat", "not a cat. two dogs inside"
        own = split_words(tokenizer(), Texts([first, "a dog. the cat"], [second, "man"]), 64)
        rows = [(first, second), ("a dog. the cat", "man")]
        spans = [[sentence_spans(text) for text in row] for row in rows]
        spans[0][0] = spans[0][0][1:]  # the words of the first sentence are of no player
        players, found = group_words(own, rows, spans), []
        drawn = draw_coalitions(players.mask, 6, seed=1)
        for most in (attending.PRODUCTS, 0):
            monkeypatch.setattr(attending, "PRODUCTS", most)
            games = merge(head.games(model, own), players)
            assert (games.features.by_player is None) == (most > 0)
            with torch.no_grad():
                found.append((games.logits(drawn), games.select([0], 4).game().evaluate(drawn[:1, :, :4])))
        for expected, long in zip(*found, strict=True):
            torch.testing.assert_close(long, expected, rtol=1e-4, atol=1e-5)
        assert float(found[0][0].exp().var(1).max()) > 1e-4  # coalitions differ


class TestBatches:
    def test_padding_changes_nothing(self, head, model, words):
        special = bool((words.owner[0] < 0).any())
        games = head.games(model, words)
        drawn = draw_coalitions(words.mask, 6, seed=1)
        with torch.no_grad():
            together = games.logits(drawn)
            for row, count in enumerate(words.counts.tolist()):
                single = split_words(tokenizer(special), TEXTS.select([row]), 64)
                alone = head.games(model, single)
                own = drawn[row : row + 1, :, :count]
                torch.testing.assert_close(alone.logits(own)[0], together[row], atol=1e-5, rtol=1e-4)
                chosen = games.select([row], count)
                assert chosen.mask.shape == (1, count)
                torch.testing.assert_close(chosen.logits(own)[0], together[row], atol=1e-5, rtol=1e-4)
                for part in fields(Attending):
                    found, expected = (getattr(each.features, part.name) for each in (chosen, alone))
                    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
                torch.testing.assert_close(chosen.game().evaluate(own), games.game()(drawn)[row : row + 1])

    def test_hidden_padding_is_not_read(self, head, model, words):
        """A coalition that names words that are not there is that of the words that are."""
        games, everything = head.games(model, words), torch.ones_like(words.mask)[:, None]
        with torch.no_grad():
            assert torch.equal(games.logits(everything), games.logits(words.mask[:, None]))

    def test_several_texts_at_once(self, head, model, words):
        games, drawn = head.games(model, words), draw_coalitions(words.mask, 4, seed=3)
        width = int(words.counts[:2].max())
        with torch.no_grad():
            expected = games.logits(drawn)[[1, 0]]
            found = games.select([1, 0], width).logits(drawn[[1, 0], :, :width])
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)

    def test_some_games_of_a_batch(self, head, model, words):
        """At their own price, and as the base class has it, before and after g(N) is known."""
        drawn = draw_coalitions(words.mask, 4, seed=3)
        with torch.no_grad():
            game = head.games(model, words).game()
            first = game.evaluate_rows([2, 0], drawn[[2, 0]])
            expected = game.evaluate(drawn)[[2, 0]]
            for found in (first, game.evaluate_rows([2, 0], drawn[[2, 0]])):
                torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
            assert torch.equal(Game.evaluate_rows(game, [2, 0], drawn[[2, 0]]), expected)


class TestEnds:
    def test_all_words_are_the_classifier_itself(self, head, model, words):
        games = head.games(model, words)
        real = states_of(model, words)[0].softmax(-1)
        with torch.no_grad():
            torch.testing.assert_close(games.logits(words.mask[:, None]).exp()[:, 0], real, atol=1e-6, rtol=0)
            for target in range(3):
                value = games.game(torch.full((3,), target)).evaluate(words.mask[:, None])[:, 0]
                torch.testing.assert_close(value, real[:, target], atol=1e-6, rtol=0)

    def test_no_words_are_finite(self, head, model, words):
        nothing = torch.zeros_like(words.mask)[:, None]
        answers = head.games(model, words).logits(nothing)
        assert bool(answers.isfinite().all())
        torch.testing.assert_close(answers.exp().sum(-1), torch.ones(3, 1))
        gradients = torch.autograd.grad(answers.square().sum(), list(head.parameters()), allow_unused=True)
        assert all(bool(part.isfinite().all()) for part in gradients if part is not None)

    @pytest.mark.parametrize("special", [True, False])
    def test_explained(self, head, model, special):
        explainer = Explainer(model, tokenizer(special), game=head)
        explanation = explainer("the red dog runs", "a cat")
        total = explanation.probabilities[explanation.label] - explanation.base_value
        assert sum(explanation.importance) == pytest.approx(total, abs=1e-5)
        assert len({round(value, 6) for value in explanation.importance}) == 6

    def test_saved_and_loaded(self, head, model, words, tmp_path):
        head.save(tmp_path)
        loaded = GameHead.load(tmp_path, model)
        assert loaded.config == head.config
        drawn = draw_coalitions(words.mask, 2, seed=0)
        with torch.no_grad():
            found, expected = (each.games(model, words).logits(drawn) for each in (loaded, head))
        assert torch.equal(found, expected)
