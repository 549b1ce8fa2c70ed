"""The word-vector models: against sums and loops by hand, against padding, through files, and in learning."""

import gzip
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, pipeline

from spinformer.models.baselines import (
    WordConfig,
    WordForSequenceClassification,
    corpus_words,
    from_vectors,
    read_vectors,
    word_tokenizer,
)
from spinformer.models.baselines.dam import DecomposableAttention
from spinformer.models.baselines.esim import BiLSTM, SequentialInference

WORDS = [
    "an",
    "man",
    "woman",
    "dog",
    "cat",
    "sleeps",
    "runs",
    "park",
    "in",
    "the",
    "is",
    "not",
    "two",
    "men",
    "outside",
]
WORDS += [".", ",", "'", "-", "shirt"]
PAIRS = [
    ("A man sleeps in the park.", "A man is outside"),
    ("Two dogs run", "the dog sleeps, the cat is not in"),
    ("the woman isn't in", "2 men"),
]
BOTH = pytest.mark.parametrize("architecture", ["dam", "esim"])


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(len(WORDS), 12, generator=generator).tolist()
    path.write_text(
        "".join(f"{word} {' '.join(f'{x:.5f}' for x in row)}\n" for word, row in zip(WORDS, rows, strict=True))
    )
    return path


def _inputs(tokenizer, pairs=PAIRS, **options):
    premises, hypotheses = zip(*pairs, strict=True)
    return dict(tokenizer(list(premises), list(hypotheses), padding=True, return_tensors="pt", **options))


# The tokenizer.


def test_text_is_cut_as_glove_cuts_it(vectors):
    _, tokenizer = from_vectors(vectors, "esim")
    encoded = tokenizer("A man isn’t in the T-shirt.", "2 Zebras")
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert tokens == ["a", "man", "is", "n't", "in", "the", "[UNK]", "-", "shirt", ".", "2", "[UNK]"]
    assert encoded["token_type_ids"] == [0] * 10 + [1] * 2


def test_dam_begins_each_sentence_with_null(vectors):
    _, tokenizer = from_vectors(vectors, "dam")
    encoded = tokenizer("the man", "the dog", return_special_tokens_mask=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert tokens == ["[NULL]", "the", "man", "[NULL]", "the", "dog"]
    assert encoded["token_type_ids"] == [0, 0, 0, 1, 1, 1]
    assert encoded["special_tokens_mask"] == [1, 0, 0, 1, 0, 0]


def test_words_without_a_vector(vectors):
    found = read_vectors(vectors)
    model, tokenizer = from_vectors(vectors, "esim", corpus_words=["zebra", "man"], seed=3)
    again, _ = from_vectors(vectors, "esim", corpus_words=["zebra", "man"], seed=3)
    table = model.get_input_embeddings().weight
    row = tokenizer.convert_tokens_to_ids
    assert torch.equal(table[row("[PAD]")], torch.zeros(12))
    torch.testing.assert_close(table[row("[UNK]")], found.vectors.mean(0))
    assert torch.equal(table[row("a")], table[row("an")])
    assert torch.equal(table[row("n't")], table[row("not")])
    assert torch.equal(table[row("man")], found.vectors[1])
    assert row("zebra") != row("[UNK]")
    assert torch.equal(table, again.get_input_embeddings().weight)
    assert len(tokenizer) == model.config.vocab_size == len(table)


@pytest.mark.parametrize(("options", "length"), [({}, 1.0), ({"vector_length": 3.0}, 3.0)])
def test_dam_scales_vectors_to_one_length(vectors, options, length):
    model, _ = from_vectors(vectors, "dam", **options)
    lengths = model.get_input_embeddings().weight.norm(dim=1)
    assert lengths[0] == 0  # [PAD]
    torch.testing.assert_close(lengths[1:], torch.full_like(lengths[1:], length))


def test_a_length_of_vectors_is_positive(vectors):
    with pytest.raises(ValueError, match="vector_length must be finite and positive; got 0"):
        from_vectors(vectors, "dam", vector_length=0.0)


def test_corpus_words_are_counted_as_the_tokenizer_cuts_them():
    assert corpus_words(["Don't, don't", "a T-shirt"]) == ["do", "n't"]
    assert set(corpus_words(["a T-shirt"], min_count=1)) == {"a", "t", "-", "shirt"}


def test_a_tokenizer_needs_its_special_tokens():
    with pytest.raises(ValueError, match=r"missing \[UNK\]"):
        word_tokenizer(["[PAD]", "dog"])


# Against the equations, by hand, one word at a time, in double precision.


def _layers(block: nn.Sequential, x: Tensor) -> Tensor:
    for layer in (block[1], block[4]):
        x = (layer.weight @ x + layer.bias).clamp_min(0)
    return x


def _mix(scores: list[Tensor], things: list[Tensor]) -> Tensor:
    weights = [score.exp() for score in scores]
    return sum(w * thing for w, thing in zip(weights, things, strict=True)) / sum(weights)


def _dam(net: DecomposableAttention, premise: Tensor, hypothesis: Tensor) -> Tensor:
    a, b = ([net.project.weight @ x for x in words] for words in (premise, hypothesis))
    e = [[_layers(net.attend, x) @ _layers(net.attend, y) for y in b] for x in a]
    v_1 = sum(_layers(net.compare, torch.cat((x, _mix(e[i], b)))) for i, x in enumerate(a))
    v_2 = sum(_layers(net.compare, torch.cat((y, _mix([row[j] for row in e], a)))) for j, y in enumerate(b))
    return net.classify.weight @ _layers(net.aggregate, torch.cat((v_1, v_2))) + net.classify.bias


def _lstm(net: nn.LSTM, words: list[Tensor]) -> list[Tensor]:
    h = c = torch.zeros(net.hidden_size, dtype=words[0].dtype)
    states = []
    for x in words:
        gates = net.weight_ih_l0 @ x + net.bias_ih_l0 + net.weight_hh_l0 @ h + net.bias_hh_l0
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return states


def _bilstm(net: BiLSTM, words: list[Tensor]) -> list[Tensor]:
    back = _lstm(net.back, words[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(_lstm(net.ahead, words), back, strict=True)]


def _esim(net: SequentialInference, premise: Tensor, hypothesis: Tensor) -> Tensor:
    a, b = (_bilstm(net.encode, list(words)) for words in (premise, hypothesis))
    e = [[x @ y for y in b] for x in a]
    others = [_mix(row, b) for row in e], [_mix([row[j] for row in e], a) for j in range(len(b))]
    pooled = []
    for own, other in zip((a, b), others, strict=True):
        m = [torch.cat((x, y, x - y, x * y)) for x, y in zip(own, other, strict=True)]
        v = torch.stack(_bilstm(net.compose, [(net.project.weight @ x + net.project.bias).clamp_min(0) for x in m]))
        pooled += [v.mean(0), v.max(0).values]
    hidden = (net.hidden.weight @ torch.cat(pooled) + net.hidden.bias).tanh()
    return net.classify.weight @ hidden + net.classify.bias


@BOTH
def test_values_and_gradients_are_those_of_the_equations(vectors, architecture):
    model, tokenizer = from_vectors(vectors, architecture, hidden_size=5, trainable_embeddings=True)
    model.double().eval()
    with (
        torch.no_grad()
    ):  # fresh biases are zero, which puts words on ReLU's kink, where any slope from 0 to 1 is right
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.normal_(0, 0.3)
    inputs, labels = _inputs(tokenizer), torch.tensor([0, 2, 1])
    output = model(**inputs, labels=labels)
    output.loss.backward()
    ours = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()

    by_hand = {"dam": _dam, "esim": _esim}[architecture]
    rows = []
    for ids, mask, types in zip(
        *(inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")), strict=True
    ):
        sentences = [model.embedding.weight[ids[(mask == 1) & (types == kind)]] for kind in (0, 1)]
        rows.append(by_hand(model.pair, *sentences))
    logits = torch.stack(rows)
    loss = -sum(row.log_softmax(0)[label] for row, label in zip(logits, labels, strict=True)) / len(rows)
    loss.backward()
    torch.testing.assert_close(output.logits, logits, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(output.loss, loss, rtol=1e-10, atol=1e-12)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-8, atol=1e-12, msg=name)


# What a pair gets is its own.


@BOTH
def test_neither_padding_nor_company_matters(vectors, architecture):
    model, tokenizer = from_vectors(vectors, architecture)
    model.eval()
    together = model(**_inputs(tokenizer)).logits
    assert together.shape == (3, 3)
    for row, pair in enumerate(PAIRS):
        alone = _inputs(tokenizer, [pair])
        torch.testing.assert_close(model(**alone).logits[0], together[row], rtol=0, atol=1e-5)
        padded = {name: nn.functional.pad(x, (4, 7)) for name, x in alone.items()}
        padded["input_ids"][:, :4] = 5  # what stands under the mask must not matter either
        torch.testing.assert_close(model(**padded).logits[0], together[row], rtol=0, atol=1e-5)
    turned = model(**_inputs(tokenizer, PAIRS[::-1])).logits.flip(0)
    torch.testing.assert_close(turned, together, rtol=0, atol=1e-5)
    bare = _inputs(tokenizer)
    del bare["attention_mask"]
    assert torch.equal(model(**bare).logits, together)


@BOTH
def test_words_under_the_mask_get_no_gradient(vectors, architecture):
    model, tokenizer = from_vectors(vectors, architecture)
    inputs = _inputs(tokenizer)
    seen = []

    def keep(_module, _inputs, output):
        seen.append(output.detach().requires_grad_())
        return seen[-1]

    model.get_input_embeddings().register_forward_hook(keep)
    model(**inputs).logits.logsumexp(1).sum().backward()
    strength = seen[0].grad.abs().sum(-1)
    assert strength.shape == inputs["input_ids"].shape
    assert torch.equal(strength[inputs["attention_mask"] == 0], torch.zeros(int((inputs["attention_mask"] == 0).sum())))


@BOTH
def test_a_row_without_a_hypothesis_is_named(vectors, architecture):
    model, tokenizer = from_vectors(vectors, architecture)
    with pytest.raises(ValueError, match=r"no hypothesis in row\(s\) \[0, 1\]"):
        model(**tokenizer(["the man", "a dog"], return_tensors="pt"))
    inputs = _inputs(tokenizer)
    with pytest.raises(ValueError, match="expected token_type_ids"):
        model(inputs["input_ids"], inputs["attention_mask"])
    with pytest.raises(ValueError, match=r"token_type_ids must have shape"):
        model(inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"][:, 1:])


# Hugging Face's ways in and out.


@BOTH
def test_what_is_no_such_model_is_refused(vectors, architecture, encoder, tmp_path):
    model, _ = from_vectors(vectors, architecture, hidden_size=7)
    model.save_pretrained(tmp_path / "saved")
    file = tmp_path / "saved" / "model.safetensors"
    whole, weights = file.read_bytes(), load_file(file)
    with pytest.raises(
        ValueError, match=f"{encoder}: expected a 'spinformer-words' model; its config.json says 'bert'"
    ):
        WordForSequenceClassification.from_pretrained(encoder)
    file.write_bytes(whole[:-10])
    with pytest.raises(ValueError, match=f"{tmp_path / 'saved'}: the checkpoint is damaged"):
        WordForSequenceClassification.from_pretrained(tmp_path / "saved")
    save_file({"embedding.weight": weights["embedding.weight"]}, file, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"missing keys: pair\."):
        WordForSequenceClassification.from_pretrained(tmp_path / "saved")


@BOTH
def test_saved_and_loaded_it_is_the_same(vectors, architecture, tmp_path):
    model, tokenizer = from_vectors(vectors, architecture, labels=("yes", "maybe", "no"), hidden_size=7)
    model.eval()
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    words = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert isinstance(loaded, WordForSequenceClassification)
    assert isinstance(AutoConfig.from_pretrained(tmp_path / "saved"), WordConfig)
    assert loaded.config.architecture == architecture
    assert loaded.config.id2label == {0: "yes", 1: "maybe", 2: "no"}
    assert (words.pad_token, words.model_max_length) == ("[PAD]", 512)
    assert loaded.embedding.weight.requires_grad == model.embedding.weight.requires_grad == (architecture == "esim")
    assert torch.equal(loaded(**_inputs(words)).logits, model(**_inputs(tokenizer)).logits)
    logits, *_ = loaded(**_inputs(words), return_dict=False)
    assert torch.equal(logits, loaded(**_inputs(words)).logits)

    classify = pipeline("text-classification", model=str(tmp_path / "saved"))
    answers = classify([{"text": a, "text_pair": b} for a, b in PAIRS], top_k=None)
    wanted = model(**_inputs(tokenizer)).logits.softmax(1)
    for row, answer in enumerate(answers):
        scores = {item["label"]: item["score"] for item in answer}
        assert [scores[name] for name in ("yes", "maybe", "no")] == pytest.approx(wanted[row].tolist(), abs=1e-5)


def test_defaults_are_the_papers():
    dam, esim = WordConfig("dam"), WordConfig("esim")
    assert (dam.hidden_size, dam.dropout, dam.trainable_embeddings) == (200, 0.2, False)
    assert (esim.hidden_size, esim.dropout, esim.trainable_embeddings) == (300, 0.5, True)
    assert WordConfig("esim", trainable_embeddings=False).trainable_embeddings is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "bert"}, "architecture must be one of 'dam', 'esim'; got 'bert'"),
        ({"hidden_size": 0}, "hidden_size must be an integer of at least 1; got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1; got 1.0"),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(ValueError, match=message):
        WordConfig(**options)


def test_wrong_labels(vectors):
    with pytest.raises(ValueError, match=r"labels must name the 3 classes of num_labels; got 2"):
        from_vectors(vectors, "dam", labels=("yes", "no"))


# Files of vectors.


def test_gzipped_or_not_is_the_same(vectors, tmp_path):
    packed = tmp_path / "vectors.gz"
    packed.write_bytes(gzip.compress(vectors.read_bytes()))
    plain, unpacked = read_vectors(vectors), read_vectors(packed)
    assert plain.words == unpacked.words == WORDS
    assert plain.dim == 12
    assert torch.equal(plain.vectors, unpacked.vectors)


def test_of_a_word_twice_the_first_stays(tmp_path):
    path = tmp_path / "twice.txt"
    path.write_text("dog 1 2\ncat 3 4\ndog 5 6\n")
    found = read_vectors(path)
    assert found.words == ["dog", "cat"]
    assert found.vectors.tolist() == [[1, 2], [3, 4]]


PACKED = gzip.compress(b"".join(b"dog%d 1 2\n" % row for row in range(99)), mtime=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"dog 1 2\ncat 3\n", r"v\.txt:2: expected 2 numbers as in line 1; 'cat' has 1"),
        (b"dog 1 2\n\ncat 3 4\n", r"v\.txt:2: expected `word x1 ... xd`; got ''"),
        (b"dog 1 2\ncat\n", r"v\.txt:2: expected `word x1 ... xd`; got 'cat'"),
        (b"dog 1 2\ncat 3 x\n", r"v\.txt:2: expected 2 finite numbers after the word; got 'x'"),
        (b"dog 1 2\ncat  3\n", r"v\.txt:2: expected 2 finite numbers after the word; got ''"),
        (b"dog 1 nan\ncat 3 4\n", r"v\.txt:1: expected 2 finite numbers after the word; got 'nan'"),
        (b"dog 1 2\n\xff\xfe 3 4\n", r"v\.txt:\d: expected gzipped or plain UTF-8 text"),
        (gzip.compress(b"dog 1 2\n" * 99, mtime=0)[:-12], r"v\.txt:\d+: expected gzipped or plain UTF-8 text"),
        (PACKED[:20] + b"\xff" * 9 + PACKED[29:], r"v\.txt:\d+: expected gzipped or plain UTF-8 text"),
        (b"", r"has no word vectors"),
    ],
)
def test_wrong_files(tmp_path, text, message):
    path = tmp_path / "v.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=message):
        read_vectors(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no word vectors at .*none\.txt"):
        read_vectors(tmp_path / "none.txt")


# Learning.


@BOTH
def test_it_learns_32_pairs_by_heart(vectors, architecture):
    model, tokenizer = from_vectors(vectors, architecture, hidden_size=16, dropout=0.0)
    generator = torch.Generator().manual_seed(2)
    draw = torch.randint(len(WORDS), (32, 2, 6), generator=generator).tolist()
    pairs = [tuple(" ".join(WORDS[i] for i in sentence) for sentence in pair) for pair in draw]
    inputs, labels = _inputs(tokenizer, pairs), torch.randint(3, (32,), generator=generator)
    before = model.embedding.weight.detach().clone()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    model.train()
    for _ in range(80):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    model.eval()
    assert torch.equal(model(**inputs).logits.argmax(1), labels)
    assert torch.equal(before, model.embedding.weight) == (architecture == "dam")
