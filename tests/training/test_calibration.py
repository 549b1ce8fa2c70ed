"""Misfit, measured: a game whose errors are known gets intervals that hold 95% of the classifier's own values."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")

from transformers import BertForSequenceClassification

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import Explainer
from spinformer.explain.grounded import UNMEASURED
from spinformer.games import estimate_all
from spinformer.games.quadrature import TOLERANCE
from spinformer.games.values import GAME_INDICES
from spinformer.models.masked import ConfidenceGame
from spinformer.training import calibration_passes
from spinformer.training.calibration import FEW, MOST, fully, measure_misfit, passes_for
from spinformer.training.game import hold_out
from tests import tiny
from tests.evaluate.toy import classifier as toy

SINGLE, DOUBLE = 0.06, 0.04  # standard deviations of the errors of words and of pairs
EASIER = 0.2  # the errors of every second text, in units of the others', where that is tested
PAIRS = {("man", "not"): -1.5, ("dog", "runs"): 0.8}


def texts(count, seed, shortest=4, longest=7):
    """Of words without repetition, so that every text has errors of its own."""
    draw = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(count):
        length = int(torch.randint(shortest, longest + 1, (1,), generator=draw))
        rows.append(" ".join(tiny.WORDS[place] for place in torch.randperm(14, generator=draw)[:length].tolist()))
    return Texts(rows)


def errors(words):
    """Of each text's words, (B, W), and pairs, (B, W, W), from its words alone; 0 for padding."""
    return drawn(tuple(map(tuple, words.words)), words.mask.shape[1], SINGLE)


@cache
def drawn(rows, width, scale):
    single, double = torch.zeros(len(rows), width), torch.zeros(len(rows), width, width)
    for row, text in enumerate(rows):
        draw = torch.Generator().manual_seed(sum((1 + place) * sum(map(ord, word)) for place, word in enumerate(text)))
        count = len(text)
        single[row, :count] = scale * torch.randn(count, generator=draw)
        upper = DOUBLE * torch.randn(count, count, generator=draw).triu(1)
        double[row, :count, :count] = upper + upper.T
    return single, double


def hard(words):
    """Which texts are hard, (B,), by nothing that the values of their words show."""
    return torch.tensor([sum(map(ord, "".join(text))) % 2 == 1 for text in words.words])


def vectors(words):
    """Of each text: ten numbers, one of which says whether it is hard."""
    draw = torch.Generator().manual_seed(sum(map(ord, words.words[0][0])))
    found = torch.randn(len(words.words), 10, generator=draw)
    found[:, 3] += 4 * hard(words)
    return found


def known_errors(words, easier=1.0):
    """By index: what the classifier's value is above the game's. e_i + half of the sum of e_ij for words."""
    size = torch.where(hard(words), 1.0, easier)
    single, double = (part * size.view(-1, *[1] * (part.dim() - 1)) for part in errors(words))
    player = single + double.sum(-1) / 2
    return {"SV": player, "BV": player, "SII": double, "BII": double}


class OffGame(ConfidenceGame):
    """g(C) = v(C) - sum over i in C of e_i - sum over pairs in C of e_ij."""

    def __init__(self, classifier, words, target=None, easier=1.0):
        super().__init__(classifier, words, target)
        self.easier = easier

    def evaluate(self, coalitions: Tensor) -> Tensor:
        size = torch.where(hard(self.words), 1.0, self.easier)
        single, double = (part * size.view(-1, *[1] * (part.dim() - 1)) for part in errors(self.words))
        member = coalitions.float()
        pairs = torch.einsum("bki,bij,bkj->bk", member, double, member) / 2
        return super().evaluate(coalitions) - torch.einsum("bki,bi->bk", member, single) - pairs


@dataclass
class OffGames:
    classifier: object
    words: object
    full: Tensor
    easier: float
    vectors: Tensor | None
    tolerance: float = TOLERANCE
    empty: Tensor | None = None

    @property
    def mask(self) -> Tensor:
        return self.words.mask

    def game(self, target: Tensor) -> OffGame:
        return OffGame(self.classifier, self.words, target, self.easier)

    def confidence(self, target: Tensor) -> Tensor:
        return self.full.exp().gather(1, target[:, None]).squeeze(1)


class OffHead:
    """A game head, as `measure_misfit` asks it, of the games that are off by a known error.

    easier: how large the errors of texts are that are not hard; told: whether texts have vectors, which say so.
    """

    def __init__(self, classifier, easier=1.0, *, told=False):
        self.classifier, self.easier, self.told = classifier, easier, told

    def games(self, model, words):
        full = self.classifier.full_probabilities(words).log()
        return OffGames(self.classifier, words, full, self.easier, vectors(words) if self.told else None)


@pytest.fixture(scope="module")
def classifier():
    return toy(pairs=PAIRS, bias=-0.5)


@pytest.fixture(scope="module")
def measured(classifier):
    return measure_misfit(OffHead(classifier), classifier, texts(80, seed=1))


def scales(measured, head, data):
    """Of each index: known errors and measured standard errors of the words, or pairs, of these texts, in a row."""
    words = split_words(head.classifier.tokenizer, data, 64)
    games = head.games(None, words)
    target = games.full.argmax(-1)
    known = known_errors(words, head.easier)
    values = estimate_all(games.game(target), seed=torch.tensor(0))
    found = {}
    for name in GAME_INDICES:
        stderr = measured.stderr(name, values, games, target)
        real = words.mask
        if stderr.dim() == 3:
            real = (words.mask[:, None] & words.mask[:, :, None]).triu(1)
        found[name] = known[name][real].double(), stderr[real]
        assert float(stderr[~(words.mask if stderr.dim() == 2 else real | real.mT)].abs().sum()) == 0
    return found


class TestCoverage:
    def test_unseen_texts(self, measured, classifier):
        """Of 80 texts: about 440 words and 1000 pairs, so 95% is met within 4%, four standard errors of its own."""
        for name, (error, stderr) in scales(measured, OffHead(classifier), texts(80, seed=2)).items():
            covered = float((error.abs() <= 1.96 * stderr).double().mean())
            assert 0.91 <= covered <= 0.99, (name, covered)

    def test_scales_of_words_are_as_large_as_their_errors(self, measured, classifier):
        """Root mean squares, within 15%."""
        found = scales(measured, OffHead(classifier), texts(80, seed=2))
        for name in ("SV", "BV"):
            error, stderr = (part.square().mean().sqrt() for part in found[name])
            assert float(stderr / error) == pytest.approx(1, abs=0.15), name

    def test_texts_that_are_not_enumerated(self, classifier):
        """Ten words and 128 of 1024 coalitions: what passes do not tell is allowed for, and so is that there are but 30
        texts (the quantile is 0.95 (1 + 1 / 30)), so 90% to 99.8%."""
        data = [texts(30, seed=seed, shortest=10, longest=10) for seed in (3, 4)]
        measured = measure_misfit(OffHead(classifier), classifier, data[0])
        assert (measured.texts, measured.passes, measured.words) == (30, 128, 10)
        for name, (error, stderr) in scales(measured, OffHead(classifier), data[1]).items():
            assert 0.9 <= float((error.abs() <= 1.96 * stderr).double().mean()) <= 0.998, name
            assert all(1 <= factor < 3 for factor in measured.scales[name].refined), name

    def test_larger_errors_have_larger_scales(self, measured, classifier, monkeypatch):
        monkeypatch.setattr("tests.training.test_calibration.SINGLE", 4 * SINGLE)
        worse = measure_misfit(OffHead(classifier), classifier, texts(40, seed=1))
        ratios = [
            float(scales(worse, OffHead(classifier), texts(20, seed=2))[name][1].mean())
            / float(scales(measured, OffHead(classifier), texts(20, seed=2))[name][1].mean())
            for name in ("SV", "BV")
        ]
        assert min(ratios) > 2
        assert worse.fit < measured.fit


class TestDifficulty:
    def coverage(self, measured, head):
        """Shares of the words in their 95% intervals, of easy and of hard texts."""
        data = texts(160, seed=2)
        parts = [[], []]
        for row, own in enumerate(hard(split_words(head.classifier.tokenizer, data, 64)).tolist()):
            parts[own].append(row)
        found = [scales(measured, head, data.select(rows))["SV"] for rows in parts]
        return [float((error.abs() <= 1.96 * stderr).double().mean()) for error, stderr in found]

    def test_hard_texts_have_wider_intervals(self, classifier):
        """Some 400 words of each kind, so 95% within 4.5%, four standard errors; not so where nothing tells."""
        heads = {told: OffHead(classifier, EASIER, told=told) for told in (True, False)}
        measured = {told: measure_misfit(head, classifier, texts(100, seed=1)) for told, head in heads.items()}
        assert measured[True].difficulty is not None
        assert measured[False].difficulty is None
        found = {told: self.coverage(measured[told], head) for told, head in heads.items()}
        easy, difficult = found[False]
        assert easy > 0.98
        assert difficult < 0.905
        assert all(0.905 <= covered <= 0.995 for covered in found[True])


class TestMeasurement:
    def test_the_fit_is_the_share_of_the_variance(self, measured, classifier):
        """Texts of up to 7 words are enumerated: sums over all coalitions of all texts, by hand."""
        off = spread = 0.0
        for row in range(80):
            words = split_words(classifier.tokenizer, texts(80, seed=1).select([row]), 64)
            count = int(words.counts)
            every = (torch.arange(2**count)[:, None] >> torch.arange(count) & 1).bool()[None]
            real, predicted = ConfidenceGame(classifier, words)(every), OffGame(classifier, words)(every)
            off += float((real - predicted).square().sum())
            spread += float((real - real.mean()).square().sum())
        assert measured.fit == pytest.approx(1 - off / spread, abs=1e-4)
        assert (measured.texts, measured.words) == (80, 7)

    def test_the_same_twice_and_no_random_state_is_touched(self, classifier):
        torch.manual_seed(7)
        before = torch.get_rng_state()
        one, other = (measure_misfit(OffHead(classifier), classifier, texts(12, seed=1)) for _ in range(2))
        assert one == other
        assert torch.equal(torch.get_rng_state(), before)

    def test_texts_of_one_word(self, classifier):
        """There are no pairs to measure; every number is finite."""
        measured = measure_misfit(OffHead(classifier), classifier, Texts(["man", "dog", "cat"]))
        for name in GAME_INDICES:
            scale = measured.scales[name]
            assert all(torch.tensor([*scale.coefficients, scale.factor, *scale.refined]).isfinite())

    def test_passes_of_many_texts(self, classifier, monkeypatch):
        """Of 110 texts 100 are asked closely, and the others a few times; a text is enumerated where that is enough."""
        asked = []
        stack = calibration_passes.stack_coalitions
        monkeypatch.setattr(
            calibration_passes,
            "stack_coalitions",
            lambda designs, width: asked.extend(designs) or stack(designs, width),
        )
        data = texts(110, seed=1, shortest=9, longest=10)
        measured = measure_misfit(OffHead(classifier), classifier, data, passes=32)
        assert measured.texts == fully(110) == 100
        sizes = [len(design) for design in asked]
        assert all(33 < size <= 49 for size in sizes[:100])
        assert set(sizes[100:]) == {FEW + 1} or set(sizes[100:]) == {FEW}
        assert all(len(design.unique(dim=0)) == len(design) for design in asked)
        assert sum(sizes) <= passes_for(110, 32) + 110
        assert [fully(count) for count in (7, 100, 150, 300, 5000)] == [7, 100, 100, 150, 200]
        assert passes_for(5000) == passes_for(MOST) == 200 * 192 + 200 * FEW

    def test_the_order_of_the_texts_does_not_decide_which_are_asked_closely(self, classifier):
        """Files may be sorted: here the last texts are the ones with words that the game is worse at."""
        data = texts(120, seed=1)
        short = [row for row in range(120) if len(data.first[row].split()) <= 5]
        rows = short + [row for row in range(120) if row not in short]
        measured = measure_misfit(OffHead(classifier), classifier, data.select(rows))
        assert measured.words == 7
        for name, (error, stderr) in scales(measured, OffHead(classifier), texts(80, seed=2)).items():
            assert 0.91 <= float((error.abs() <= 1.96 * stderr).double().mean()) <= 0.99, name

    def test_too_few_passes(self, classifier):
        with pytest.raises(ValueError, match="passes must be an integer of at least 16; got 8"):
            measure_misfit(OffHead(classifier), classifier, texts(4, seed=1), passes=8)


class TestHeldOut:
    def test_a_tenth_and_at_most_two_hundred(self):
        for count, held in ((10, 1), (64, 6), (1999, 199), (2500, 200)):
            data = Texts([f"text {row}" for row in range(count)])
            training, held_out = hold_out(data, seed=3)
            assert len(held_out) == held
            assert sorted([*training.first, *held_out.first]) == sorted(data.first)
            assert hold_out(data, seed=3)[1].first == held_out.first
        assert hold_out(Texts(["a man"] * 9), seed=0)[1] is None

    def test_grounding_measures(self, tmp_path):
        torch.manual_seed(0)
        model = BertForSequenceClassification(tiny.bert(num_labels=3)).eval()
        sizes = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "batch_size": 8, "epochs": 1}
        rows = [row["premise"] for row in tiny.rows(30)]
        state = torch.get_rng_state()
        explainer = Explainer(model, tiny.tokenizer()).ground(rows, tmp_path, **sizes)
        assert torch.equal(torch.get_rng_state(), state)
        measured = explainer.grounded.head.misfit
        assert measured.texts == 3
        explanation = explainer("a man runs outside")
        assert all(word.misfit_stderr > 0 for word in explanation.words)
        assert UNMEASURED not in explanation.notes
        loaded = Explainer(model, tiny.tokenizer(), game=tmp_path)
        assert loaded.grounded.head.misfit == measured
        assert loaded("a man runs outside") == explanation
        few = Explainer(model, tiny.tokenizer()).ground(rows[:9], **sizes)
        assert few.grounded.head.misfit is None
        assert few("a man runs outside").notes == (UNMEASURED,)
