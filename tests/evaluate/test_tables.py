"""Exact tables: they are the classifier's answers, resume where they were stopped, and refuse what is not theirs."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers")

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate.explanations import tables
from spinformer.evaluate.explanations.tables import TabulatedClassifier, choose, tabulate, text_key
from spinformer.games.exact import coalition_table
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from tests.evaluate import toy
from tests.evaluate.conftest import bert, pairs

TEXTS = Texts(["the man runs not", "a red dog sleeps inside", "two cat eats"], ["a dog", "not", "the woman runs"])


@pytest.fixture
def classifier(model, tokenizer):
    return MaskedClassifier(model, tokenizer)


@pytest.fixture
def words(tokenizer):
    return split_words(tokenizer, TEXTS, 128)


def test_values_are_the_classifiers_own(classifier, tokenizer):
    found = tabulate(classifier, TEXTS, progress=False)
    for row, table in enumerate(found):
        one = split_words(tokenizer, TEXTS.select([row]), 128)
        full = classifier.full_probabilities(one)[0]
        assert table.words == one.words[0]
        assert table.target == int(full.argmax())
        torch.testing.assert_close(torch.tensor(table.full), full)
        game = ConfidenceGame(classifier, one, torch.tensor([table.target]))
        expected = coalition_table(game, torch.arange(len(table.words)))[0].float()
        torch.testing.assert_close(table.values, expected, rtol=0, atol=1e-6)
        assert table.values[-1] == torch.tensor(table.full[table.target])


def test_choice_of_texts(tokenizer):
    texts = pairs(60, labelled=False)
    chosen = choose(texts, tokenizer, 5, 6, 16)
    both = zip(chosen.first, chosen.second, strict=True)
    counts = [len(first.split()) + len(second.split()) for first, second in both]
    assert len(counts) == 5
    assert all(6 <= count <= 16 for count in counts)
    assert chosen.first == choose(texts, tokenizer, 5, 6, 16).first
    assert chosen.first != choose(texts, tokenizer, 5, 6, 16, seed=1).first
    assert choose(texts, tokenizer, 3, 6, 16).first == chosen.first[:3]
    assert len(choose(Texts(["a dog", "a dog", "a red dog"]), tokenizer, 5, 2, 4)) == 2  # each text once
    for words in ((1, 4), (6, 5), (4, 21)):
        with pytest.raises(ValueError, match="must be a range from 2 to 20, low before high; got"):
            choose(texts, tokenizer, 5, *words)
    with pytest.raises(ValueError, match="no text of memory has 5 to 6 words"):
        choose(Texts(["a dog"]), tokenizer, 5, 5, 6)


def test_a_file_is_used_again_and_grows(classifier, tmp_path):
    path = tmp_path / "new" / "tables.safetensors"
    first = tabulate(classifier, TEXTS.select([0]), path, progress=False)
    before = classifier.passes
    assert torch.equal(tabulate(classifier, TEXTS.select([0]), path, progress=False)[0].values, first[0].values)
    assert classifier.passes == before
    every = tabulate(classifier, TEXTS, path, progress=False)
    assert classifier.passes == before + 2**6 + 2**6 + 2
    assert torch.equal(every[0].values, first[0].values)
    assert len(load_file(path)) == 3


def test_a_stopped_run_goes_on(classifier, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK", 16)
    path, asked = tmp_path / "tables.safetensors", classifier.probabilities
    whole = tabulate(classifier, TEXTS, progress=False)

    def stop(words, coalitions):
        if classifier.passes > before + 40:
            raise KeyboardInterrupt
        return asked(words, coalitions)

    before = classifier.passes
    monkeypatch.setattr(classifier, "probabilities", stop)
    with pytest.raises(KeyboardInterrupt):
        tabulate(classifier, TEXTS, path, progress=False)
    monkeypatch.setattr(classifier, "probabilities", asked)
    done = classifier.passes - before
    assert done == 1 + 3 * 16
    again = tabulate(classifier, TEXTS, path, progress=False)
    assert classifier.passes - before == 3 + 3 * 2**6
    for one, other in zip(whole, again, strict=True):
        assert torch.equal(one.values, other.values)


def test_what_is_refused(classifier, tokenizer, tmp_path):
    path = tmp_path / "tables.safetensors"
    tabulate(classifier, TEXTS, path, progress=False)
    other = bert()
    with torch.no_grad():
        other.classifier.bias += 1
    with pytest.raises(ValueError, match=r"has tables of another model: [0-9a-f]{16}; expected [0-9a-f]{16}$"):
        tabulate(MaskedClassifier(other, tokenizer), TEXTS, path, progress=False)
    with pytest.raises(ValueError, match="has tables of another masking: attention; expected delete"):
        tabulate(MaskedClassifier(classifier.model, tokenizer, "delete"), TEXTS, path, progress=False)
    with pytest.raises(ValueError, match="exact tables are made in float32"):
        tabulate(MaskedClassifier(classifier.model, tokenizer, bf16=True), TEXTS, path, progress=False)
    with pytest.raises(ValueError, match="at most 20 words a text; text 0 has 21"):
        tabulate(classifier, Texts([" ".join(["man"] * 21)]), progress=False)
    for name, content in (("empty", b""), ("text", b"words"), ("pickle", b"\x80\x04K\x01.")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as exact tables"):
            tabulate(classifier, TEXTS, tmp_path / name, progress=False)
    save_file({"a": torch.zeros(4)}, tmp_path / "foreign")
    with pytest.raises(ValueError, match="is no file of exact tables"):
        tabulate(classifier, TEXTS, tmp_path / "foreign", progress=False)


def test_damaged_tables_are_refused(classifier, tmp_path):
    from safetensors import safe_open

    path, bad = tmp_path / "tables.safetensors", tmp_path / "bad"
    (table,) = tabulate(classifier, TEXTS.select([0]), path, progress=False)
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    for values in (table.values + 1, table.values[:32], table.values.double()):
        save_file({table.key: values.clone()}, bad, header)
        with pytest.raises(ValueError, match="is damaged"):
            tabulate(classifier, TEXTS.select([0]), bad, progress=False)
    texts = json.loads(header["texts"])
    texts[table.key]["target"] = 7
    save_file({table.key: table.values}, bad, {**header, "texts": json.dumps(texts)})
    with pytest.raises(ValueError, match="is damaged"):
        tabulate(classifier, TEXTS.select([0]), bad, progress=False)
    save_file({"other": table.values}, bad, header)
    with pytest.raises(ValueError, match="cannot be read as exact tables"):
        tabulate(classifier, TEXTS.select([0]), bad, progress=False)
    shutil.copy(path, bad)
    assert tabulate(classifier, TEXTS.select([0]), bad, progress=False)[0].missing == 0


def test_tabulated_answers_are_the_classifiers(classifier, words):
    tabulated = TabulatedClassifier(classifier, tabulate(classifier, TEXTS, progress=False))
    coalitions = torch.rand(3, 20, words.mask.shape[1], generator=torch.Generator().manual_seed(0)) < 0.5
    real, found = classifier.probabilities(words, coalitions), tabulated.probabilities(words, coalitions)
    target = classifier.full_probabilities(words).argmax(1)
    index = target[:, None, None].expand(-1, 20, 1)
    torch.testing.assert_close(found.gather(2, index), real.gather(2, index), rtol=0, atol=1e-6)
    torch.testing.assert_close(found.sum(2), torch.ones(3, 20))
    torch.testing.assert_close(tabulated.full_probabilities(words), classifier.full_probabilities(words))
    assert tabulated.passes == 63
    one = words.rows(1, 2)
    game = ConfidenceGame(tabulated, one)
    torch.testing.assert_close(game(coalitions[1:2, :, :6]), real.gather(2, index)[1:2, :, 0], rtol=0, atol=1e-6)


def test_another_text_is_an_error(classifier, tokenizer, words):
    found = tabulate(classifier, TEXTS.select([0, 2]), progress=False)
    tabulated = TabulatedClassifier(classifier, found)
    with pytest.raises(ValueError, match="there is no exact table of the text 'a red dog sleeps inside not'"):
        tabulated.full_probabilities(words)
    other = split_words(tokenizer, Texts(["the man runs not a dog"]), 128)  # the same words, but one text
    with pytest.raises(ValueError, match="there is no exact table"):
        tabulated.full_probabilities(other)
    with pytest.raises(TypeError, match="coalitions must be a boolean tensor"):
        tabulated.probabilities(words.rows(0, 1), torch.ones(1, 1, 6))
    found[0].values[3] = torch.nan
    with pytest.raises(ValueError, match="'the man runs not a dog' lacks 1 of its passes"):
        TabulatedClassifier(classifier, found)


def test_keys_do_not_depend_on_padding(tokenizer, words):
    for row in range(3):
        alone = split_words(tokenizer, TEXTS.select([row]), 128)
        assert text_key(words, row) == text_key(alone, 0)
    assert len({text_key(words, row) for row in range(3)}) == 3


def test_any_module_that_classifies():
    classifier = toy.classifier()
    (table,) = tabulate(classifier, Texts(["not man"]), progress=False)
    torch.testing.assert_close(table.values, torch.sigmoid(torch.tensor([0.0, -1.0, 2.0, 1.0])))
