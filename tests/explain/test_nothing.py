"""What a classifier says of no words: it is the classifier's own answer, asked once for texts that are then alike."""

import pickle

import pytest
import torch
from tokenizers import processors

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.models.masked import MaskedClassifier
from tests.explain.toys import TEXTS, bert, classifier, tokenizer, words

# Pairs of (3, 2), (5, 1), (3, 2) and (2, 3) words.
ALIKE = Texts(
    ["the dog runs", "a man eats outside inside", "a man eats", "the dog"],
    ["red cat", "two", "two dogs", "a red cat"],
)


def asked(masked, split):
    """The answers, and how many rows the model read for them. They do not count as passes."""
    rows, before = [], masked.passes
    watch = masked.model.register_forward_pre_hook(
        lambda model, args, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    answers = masked.empty_probabilities(split)
    watch.remove()
    assert masked.passes == before
    return answers, sum(rows)


def ready(masking="attention", model=None):
    """A masked classifier that knows how it hides words: this takes some passes."""
    masked = MaskedClassifier(model or bert(), tokenizer(), masking)
    masked.empty_probabilities(words())
    masked.nothing._known.clear()
    return masked


@pytest.mark.parametrize("masking", ["attention", "token", "delete"])
def test_it_is_the_answer_with_every_word_hidden(masking):
    split, masked = words(ALIKE), ready(masking)
    expected = classifier(masking=masking).probabilities(split, torch.zeros_like(split.mask)[:, None])[:, 0]
    torch.testing.assert_close(masked.empty_probabilities(split), expected)


def test_texts_that_are_alike_without_words_are_asked_about_once():
    masked = ready()
    assert masked.packs
    first, rows = asked(masked, words(ALIKE))
    assert rows == 3
    assert torch.equal(first[0], first[2])
    assert not torch.equal(first[0], first[1])
    again, rows = asked(masked, words(ALIKE.select([2, 0])))
    assert rows == 1
    torch.testing.assert_close(again, first[[2, 0]])


@pytest.mark.parametrize("masking", ["token", "delete"])
def test_answers_from_passes_of_full_length_are_kept(masking):
    masked = ready(masking)
    first, rows = asked(masked, words(ALIKE))
    assert rows == 3
    again, rows = asked(masked, words(ALIKE.select([2, 0])))
    assert rows == 0
    assert torch.equal(again, first[[2, 0]])
    for row in range(4):
        assert torch.equal(ready(masking).empty_probabilities(words(ALIKE.select([row])))[0], first[row])


def test_other_weights_are_asked_anew():
    model = bert()
    masked = ready(model=model)
    before, _ = asked(masked, words(ALIKE))
    with torch.no_grad():
        model.classifier.bias += torch.tensor([1.0, 0.0, -1.0])
    after, rows = asked(masked, words(ALIKE))
    assert rows == 3
    assert (after - before).abs().max() > 0.01


def test_a_function_that_hides_words_is_asked_for_each_text():
    def hide(inputs, visible):
        """Leaves a trace of what it hides."""
        return {**inputs, "input_ids": torch.where(visible, inputs["input_ids"], inputs["input_ids"] % 5 + 4)}

    answers, rows = asked(ready(hide), words(ALIKE))
    assert rows == 4
    assert not torch.allclose(answers[0], answers[2])


def test_it_survives_pickling():
    masked = ready()
    first = masked.empty_probabilities(words(ALIKE))
    torch.testing.assert_close(pickle.loads(pickle.dumps(masked)).empty_probabilities(words(ALIKE)), first)


def test_how_words_are_hidden_is_decided_on_texts_with_words():
    fresh, other = MaskedClassifier(bert(), tokenizer()), MaskedClassifier(bert(), tokenizer())
    fresh.empty_probabilities(words())
    generator = torch.Generator().manual_seed(0)
    other.probabilities(words(), torch.rand(len(TEXTS), 4, words().mask.shape[1], generator=generator) < 0.5)
    assert fresh.leaks is other.leaks is not None
    assert fresh.packs is other.packs


def test_a_tokenizer_without_special_tokens_leaves_one_token_of_padding():
    """Then nothing is left of a text."""
    bare = tokenizer()
    bare._tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])
    masked = MaskedClassifier(bert(), bare)
    split = split_words(bare, TEXTS, 64)
    answers = masked.empty_probabilities(split)
    torch.testing.assert_close(answers, answers[:1].expand(len(answers), -1))
    assert answers.isfinite().all()
    torch.testing.assert_close(masked.probabilities(split, torch.zeros_like(split.mask)[:, None])[:, 0], answers)


@pytest.mark.parametrize("masking", ["attention", "token"])
def test_a_short_text_is_read_in_one_pass_with_no_words(masking):
    masked = ready(masking)
    for row in range(4):
        split = words(ALIKE.select([row]))
        both, before = masked.nothing.beside(masked, split), masked.passes
        with torch.no_grad():
            answers = masked.model(**both).logits.softmax(-1)
        torch.testing.assert_close(answers[:1], masked.full_probabilities(split))
        torch.testing.assert_close(answers[1:], masked.empty_probabilities(split))
        assert masked.passes == before + 1  # that of the full text


def test_others_are_asked_about_no_words_alone():
    alone = words(ALIKE.select([0]))
    assert ready("delete").nothing.beside(ready("delete"), alone) is None
    hiding = ready(lambda inputs, visible: {**inputs, "attention_mask": visible.long()})
    assert hiding.nothing.beside(hiding, alone) is None
    masked = ready()
    assert masked.nothing.beside(masked, words(ALIKE)) is None
    long = split_words(tokenizer(), Texts(["the dog runs " * 20]), 128)
    assert masked.nothing.beside(masked, long) is None
    rounded = MaskedClassifier(bert(), tokenizer(), bf16=True)
    assert rounded.nothing.beside(rounded, alone) is None
