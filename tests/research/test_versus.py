"""shap and captum, asked through the same masked classifier: what they return is about the words that we mean."""

import pytest
import torch

pytest.importorskip("captum")
pytest.importorskip("shap")

from research.benchmarks.peer_explainers import Question, captum_values, peer_explainers, shap_values
from research.benchmarks.versus import OURS, _passed
from spinformer.data import Texts, split_words
from spinformer.games import exact_values
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from tests import tiny

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of matplotlib about shap
TEXTS = (Texts(["the dog eats"], ["a cat not"]), Texts(["two red men not outside"]))


@pytest.fixture(params=TEXTS, ids=["pair", "text"])
def question(request):
    classifier = MaskedClassifier(tiny.nli_classifier(), tiny.tokenizer())
    words = split_words(classifier.tokenizer, request.param, 64)
    return Question(classifier, words, int(classifier.full_probabilities(words).argmax()))


def exact(question):
    game = ConfidenceGame(question.classifier, question.words, torch.tensor([question.target]))
    return exact_values(game, "SV")[0].double()


def test_every_peer_answers_for_each_word(question):
    everything = torch.ones(1, question.count, dtype=torch.bool)
    gain = float(question(everything) - question(~everything))
    for peer in peer_explainers((16, 32)):
        before = question.classifier.passes
        values = peer.values(question, 0)
        assert values.shape == (question.count,)
        assert question.classifier.passes > before
        if peer.method in ("Partition", "Permutation", "ShapleyValueSampling"):
            assert float(values.sum()) == pytest.approx(gain, abs=1e-4), peer
        if peer.method != "Permutation":  # the same seed, the same numbers
            assert torch.equal(values, peer.values(question, 0)), peer


def test_many_passes_come_close_to_the_exact_values(question):
    """Within a fifth; those of leave-one-out are one difference each."""
    truth = exact(question)
    assert (shap_values(question, "permutation", 0, 1000) - truth).norm() < 0.2 * truth.norm()
    assert (captum_values(question, "ShapleyValueSampling", 0, 100) - truth).norm() < 0.2 * truth.norm()
    rows = torch.cat([torch.ones(1, question.count), 1 - torch.eye(question.count)]).bool()
    answers = question(rows).double()
    torch.testing.assert_close(captum_values(question, "FeatureAblation", 0), answers[0] - answers[1:])


def test_who_is_ahead():
    def row(library, passes, error):
        return {"library": library, "passes": passes, "error": {"mean": error}}

    ours = [row(OURS, 1, 0.2), row(OURS, 64, 0.1)]
    assert _passed([*ours, row("shap", 500, 0.3), row("captum", 14, 0.5)])
    assert _passed([*ours, row("shap", 64, 0.15)])
    assert not _passed([*ours, row("shap", 32, 0.15)])  # ours at 64 took more passes
    assert not _passed([*ours, row("shap", 500, 0.05)])
