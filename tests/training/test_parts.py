"""What a training run is made of: schedule, average, order of rows, tokens, views, a teacher's answers, the loss."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("transformers")


from spinformer.data.features import GROUP, Collate, Features, LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.views import Changes, make_views
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.training import distil as teaching
from spinformer.training.classifier.grounded_objective import disagreement
from spinformer.training.classifier.meter import Meter
from spinformer.training.classifier.weight_average import WeightAverage
from spinformer.training.distil import partner_texts, teacher_features
from spinformer.training.schedule import schedule
from tests.tiny import NLI, WORDS, rows, tokenizer


def texts(count=30, seed=0, names=NLI):
    drawn = rows(count, seed)
    labels = [NLI.index(row["label"]) for row in drawn]
    return Texts([row["premise"] for row in drawn], [row["hypothesis"] for row in drawn], labels, names, source="drawn")


# The learning rate.


def rates(kind, steps=40, **options):
    optimizer = torch.optim.SGD(
        [{"params": [nn.Parameter(torch.zeros(1))], "lr": 2.0}, {"params": [nn.Parameter(torch.zeros(1))], "lr": 4.0}]
    )
    following = schedule(optimizer, kind, steps, **options)
    found = []
    for _ in range(steps):
        first, second = (group["lr"] for group in optimizer.param_groups)
        assert second == pytest.approx(2 * first)
        found.append(first)
        optimizer.step()
        following.step()
    return found


@pytest.mark.parametrize("kind", ["linear", "cosine", "constant", "steps"])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.26])
def test_schedules_are_their_formulas(kind, warmup):
    steps, peak, rise = 40, 2.0, math.ceil(40 * warmup)
    options = {"milestones": [2, 3], "factor": 0.1, "steps_per_epoch": 10} if kind == "steps" else {}
    for t, rate in enumerate(rates(kind, warmup=warmup, **options)):
        part = (t - rise) / (steps - rise)
        wanted = {
            "linear": peak * (1 - part),
            "cosine": peak * (1 + math.cos(math.pi * part)) / 2,
            "constant": peak,
            "steps": peak * 0.1 ** ((t >= 20) + (t >= 30)),
        }[kind]
        assert rate == pytest.approx(peak * t / rise if t < rise else wanted), t


@pytest.mark.parametrize("steps", [1, 7, 40])
@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.26])
def test_a_warm_up_whose_first_step_moves(steps, warmup):
    rise = max(1, round(warmup * steps))
    for t, rate in enumerate(rates("cosine", steps, warmup=warmup, from_zero=False)):
        part = (t - rise) / max(1, steps - rise)
        wanted = (t + 1) / rise if t < rise else (1 + math.cos(math.pi * part)) / 2
        assert rate == pytest.approx(2.0 * wanted), t
        assert rate > 0


# The moving average.


def test_the_average_by_hand(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    model[1].bias.requires_grad_(False)
    average = WeightAverage(model, 0.9)
    assert "1.bias" not in average.average
    wanted = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}
    for step in range(1, 120):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update(step)
        b = min(0.9, (1 + step) / (10 + step))
        wanted = {name: b * value + (1 - b) * dict(model.named_parameters())[name] for name, value in wanted.items()}
    now = {name: p.detach().clone() for name, p in model.named_parameters()}
    for name, value in wanted.items():
        torch.testing.assert_close(average.average[name], value.detach())

    with average.swap_in():
        torch.testing.assert_close(model[0].weight.detach(), wanted["0.weight"].detach())
    assert all(torch.equal(p, now[name]) for name, p in model.named_parameters())

    average.save(tmp_path)
    other = WeightAverage(model, 0.9)
    other.load(tmp_path)
    assert all(torch.equal(other.average[name], value) for name, value in average.average.items())
    with pytest.raises(ValueError, match="holds the average of another model"):
        WeightAverage(model[0], 0.9).load(tmp_path)
    average.copy_to_model()
    assert torch.equal(model[0].weight, average.average["0.weight"])


# The order of rows.


@pytest.mark.parametrize("count", [7, 64, 2000])
def test_the_sampler_gives_whole_batches_of_similar_lengths(count):
    lengths = torch.randint(5, 100, (count,))
    sampler = LengthSampler(lengths, 4, seed=3)
    order = list(sampler)
    assert len(order) == len(sampler) == count // 4 * 4
    assert len(set(order)) == len(order)
    assert set(order) <= set(range(count))
    if count == 2000:
        batches = lengths[order].float().view(-1, 4)
        assert float((batches.amax(1) - batches.amin(1)).mean()) < 2 * 100 / GROUP
        means = batches.mean(1)  # the batches themselves are shuffled
        assert abs(float(torch.corrcoef(torch.stack([means[1:], means[:-1]]))[0, 1])) < 0.2


def test_the_order_depends_on_seed_and_epoch_alone():
    lengths = torch.randint(5, 100, (103,))
    sampler = LengthSampler(lengths, 4, seed=3)
    first = list(sampler)
    torch.manual_seed(99)
    assert list(sampler) == first == list(LengthSampler(lengths, 4, seed=3))
    orders = []
    for seed, epoch in itertools.product((3, 4), (0, 1, 2)):
        other = LengthSampler(lengths, 4, seed)
        other.set_epoch(epoch)
        orders.append(tuple(other))
    assert len(set(orders)) == 6
    assert any(set(order) != set(orders[0]) for order in orders[1:3])  # other rows sit out


# Tokens.


def test_features_are_what_the_tokenizer_says():
    tokens, data = tokenizer(), texts()
    features = Features(data, tokens, 64)
    assert (len(features), features.truncated) == (30, 0)
    for row in range(30):
        wanted = tokens(data.first[row], data.second[row])
        assert features[row]["input_ids"].tolist() == wanted["input_ids"]
        assert features[row]["token_type_ids"].tolist() == wanted["token_type_ids"]
        assert int(features[row]["labels"]) == data.labels[row]
        assert int(features.lengths[row]) == len(wanted["input_ids"])
        assert "targets" not in features[row]
    targets = torch.rand(30, 3)
    assert torch.equal(Features(data, tokens, 64, targets)[4]["targets"], targets[4])
    assert "labels" not in Features(Texts(data.first), tokens, 64)[0]


@pytest.mark.parametrize("many", [10**9, 1])  # by one process, by several
def test_chunks_and_processes_do_not_matter(monkeypatch, many):
    data = texts()
    whole = Features(data, tokenizer(), 12)
    monkeypatch.setattr("spinformer.data.features.CHUNK", 7)
    monkeypatch.setattr("spinformer._base.parallel.MIN_ROWS", many)
    monkeypatch.setattr("spinformer._base.parallel.cores", lambda: 3)
    parts = Features(data, tokenizer(), 12)
    assert torch.equal(whole.lengths, parts.lengths)
    assert whole.truncated == parts.truncated > 0
    for name, column in whole.columns.items():
        assert torch.equal(column, parts.columns[name])


def test_long_texts_are_cut_and_counted():
    long = " ".join(WORDS[i % len(WORDS)] for i in range(10_000))
    data = Texts([long, "a man", "a " * 7], ["a dog", "a cat", "dog " * 6], [0, 1, 2], NLI)
    features = Features(data, tokenizer(), 16)
    assert features.lengths.tolist() == [16, 7, 16]
    assert features.truncated == 1  # the last one fits to the token
    first, types = features[0]["input_ids"], features[0]["token_type_ids"]
    assert int((types == 1).sum()) == 3  # the short hypothesis is whole
    assert first[0] == 2
    assert first[-1] == 3


def test_no_rows():
    with pytest.raises(ValueError, match="drawn: no rows to work on"):
        Features(replace(texts(), first=[], second=[], labels=[]), tokenizer(), 16)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("types", [True, False])
def test_batches_are_padded_on_the_right(side, types):
    """Whatever the tokenizer says: with left padding positions would move with the batch."""
    tokens = tokenizer(types)
    tokens.padding_side = side
    data = texts(5)
    features = Features(data, tokens, 64, torch.rand(5, 3))
    batch = Collate(tokens)(features.__getitems__(range(5)))
    wanted = tokens(list(data.first), list(data.second), padding=True, padding_side="right", return_tensors="pt")
    assert set(batch) == {*wanted, "labels", "targets"}
    for name, column in wanted.items():
        assert torch.equal(batch[name], column), name
        assert batch[name].dtype == torch.long
    assert batch["labels"].tolist() == list(data.labels)
    assert batch["targets"].shape == (5, 3)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("multiple", [1, 8, 13])
def test_batches_are_padded_to_a_multiple(side, multiple):
    tokens = tokenizer()
    tokens.padding_side = side
    data = texts(5)
    batch = Collate(tokens, multiple)(Features(data, tokens, 64).__getitems__(range(5)))
    wanted = tokens(
        list(data.first), list(data.second), padding=True, padding_side="right", pad_to_multiple_of=multiple
    )
    for name, column in wanted.items():
        assert batch[name].tolist() == column, name


def test_a_tokenizer_without_padding():
    tokens = tokenizer()
    tokens.pad_token = None
    with pytest.raises(ValueError, match="the tokenizer has no padding token"):
        Collate(tokens)
    with pytest.raises(ValueError, match="multiple must be an integer of at least 1; got 0"):
        Collate(tokenizer(), 0)


# Views and a teacher.


def test_views():
    data = replace(texts(50), dropped=3, digests=(("file", "0"),))
    thin = Changes(drop=0.3, replace=0.0, exchange=0.0)
    found = make_views(data, 3, thin, 1)
    assert len(found) == 150
    assert list(found.first[:50]) == list(data.first)
    assert list(found.labels) == list(data.labels) * 3
    assert (found.dropped, found.digests) == (3, (("file", "0"),))
    assert list(make_views(data, 3, thin, 1).first) == list(found.first)
    assert list(make_views(data, 3, thin, 2).first) != list(found.first)
    kept = total = 0
    for place, text in enumerate([*found.first[50:], *found.second[50:]]):
        whole = [*data.first * 2, *data.second * 2][place].split()
        words = iter(whole)
        assert text
        assert all(word in words for word in text.split())  # in their order
        kept, total = kept + len(text.split()), total + len(whole)
    assert 0.6 < kept / total < 0.85
    single = make_views(Texts(["a man", "dog"], labels=[0, 1], names=("x", "y")), 2, Changes(), 0)
    assert single.second is None
    assert len(make_views(data, 1, thin, 0)) == 50


def test_words_give_way_to_their_neighbours():
    data = Texts(["A Man, sleeps."] * 200, ["the dog"] * 200)
    found = make_views(data, 2, Changes(0.0, 0.5, 0.25), 0, {"man": ("boy", "guy"), "sleeps": ("rests",)})
    sides = [set(pair) for pair in zip(found.first[200:], found.second[200:], strict=True)]
    assert all("the dog" in pair for pair in sides)
    exchanged = sum(first == "the dog" for first in found.first[200:])
    assert abs(exchanged - 50) < 4 * (200 * 0.25 * 0.75) ** 0.5  # four standard errors
    changed = [next(text for text in pair if text != "the dog").split() for pair in sides]
    assert {words[0] for words in changed} == {"A"}  # no neighbours
    assert {words[1] for words in changed} == {"Man,", "boy,", "guy,"}
    assert {words[2] for words in changed} == {"sleeps.", "rests."}
    kept = sum(words[1] == "Man," for words in changed)
    assert abs(kept - 100) < 4 * 50**0.5


def test_second_texts_give_way_to_partners():
    data = Texts(["a man"] * 300 + ["a dog"] * 100, ["the cat sleeps"] * 400)
    changes = Changes(drop=0.9, replace=0.0, exchange=0.0, partner=0.5)
    found = make_views(data, 2, changes, 0, partners={"a man": ("one", "two")})
    pairs = list(zip(found.first[400:], found.second[400:], strict=True))
    partnered = [pair for pair in pairs[:300] if pair[1] in ("one", "two")]
    assert abs(len(partnered) - 150) < 4 * 75**0.5  # four standard errors
    assert {first for first, _ in partnered} == {"a man"}  # whose words stay as they are
    assert {second for _, second in partnered} == {"one", "two"}
    assert all(len(second.split()) < 3 for _, second in pairs[300:])  # no partners: words left out instead


def test_processes_do_not_matter_to_views(monkeypatch):
    data = texts(40)
    alone = make_views(data, 4, Changes(), 3)
    monkeypatch.setattr("spinformer._base.parallel.MIN_ROWS", 1)
    monkeypatch.setattr("spinformer._base.parallel.cores", lambda: 3)
    assert make_views(data, 4, Changes(), 3) == alone


def test_chances_that_are_none():
    with pytest.raises(ValueError, match="count must be an integer of at least 1"):
        make_views(texts(2), 0, Changes(), 0)
    for chance in (-0.1, 1.0):
        with pytest.raises(ValueError, match=r"drop must be in \[0, 1\)"):
            Changes(drop=chance)


@pytest.fixture
def folder(encoder, tmp_path):
    model = NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "teacher")
    tokenizer().save_pretrained(tmp_path / "teacher")
    return tmp_path / "teacher"


@pytest.fixture
def student(encoder):
    return NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI, head="cls")


def test_targets_by_hand(folder, student):
    data = texts(12)
    found = teacher_features(data, str(folder), student, tokenizer(), weight=0.7, copies=2, max_length=64)
    model = NeuroGameForSequenceClassification.from_pretrained(folder).eval()
    assert len(found) == len(found.targets) == 24
    for row in range(24):
        ids = found[row]["input_ids"].long()
        with torch.no_grad():
            logits = model(input_ids=ids[None], token_type_ids=found[row]["token_type_ids"].long()[None]).logits
        wanted = logits[0].softmax(-1)
        if row < 12:
            wanted = 0.7 * wanted + 0.3 * functional.one_hot(torch.tensor(data.labels[row]), 3)
            assert ids.tolist() == tokenizer()(data.first[row], data.second[row])["input_ids"]
        torch.testing.assert_close(found.targets[row], wanted, rtol=0, atol=1e-3)
    torch.testing.assert_close(found.targets.sum(1), torch.ones(24), rtol=0, atol=1e-3)


def test_partners_are_near_and_of_other_pairs(student):
    data = texts(40)
    found = partner_texts(student, tokenizer(), data, 64)
    own = {}
    for first, second in zip(data.first, data.second, strict=True):
        own.setdefault(first, set()).add(second)
    assert set(found) == set(data.first)
    with torch.no_grad():
        seen = {
            text: student.model.encoder.eval()(**tokenizer()(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            for text in {*data.first, *data.second}
        }
    for first, near in found.items():
        others = [text for text in dict.fromkeys(data.second) if text not in own[first]]
        cosine = functional.cosine_similarity(seen[first], torch.stack([seen[text] for text in others]), dim=-1)
        least = cosine.topk(len(near)).values[-1]
        assert near
        assert not own[first] & set(near)
        assert all(cosine[others.index(text)] >= least - 1e-5 for text in near)
    assert partner_texts(student, tokenizer(), Texts(["a man"]), 64) == {}


def test_a_lesson_is_kept(folder, student, monkeypatch):
    data = texts(12)
    usual = {"weight": 0.7, "copies": 2, "max_length": 64}
    first = teacher_features(data, str(folder), student, tokenizer(), **usual)
    assert len(list(folder.glob("lesson-*.safetensors"))) == 1

    def again(*args, **kwargs):
        raise RuntimeError("asked again")

    monkeypatch.setattr(teaching, "predict", again)
    second = teacher_features(data, str(folder), student, tokenizer(), **usual)
    assert torch.equal(first.targets, second.targets)  # to the bit: a resumed run learns the same
    assert torch.equal(first.labels, second.labels)
    assert first.truncated == second.truncated
    for row in range(24):
        assert all(torch.equal(value, second[row][name]) for name, value in first[row].items())
    for other in ({"copies": 3}, {"max_length": 32}, {"weight": 0.5}):
        with pytest.raises(RuntimeError, match="asked again"):
            teacher_features(data, str(folder), student, tokenizer(), **{**usual, **other})
    with torch.no_grad():
        student.get_input_embeddings().weight[5] += 1  # other neighbours
    with pytest.raises(RuntimeError, match="asked again"):
        teacher_features(data, str(folder), student, tokenizer(), **usual)


def test_classes_that_differ_are_refused(folder, student):
    usual = {"weight": 0.7, "copies": 1, "max_length": 64}
    teacher_features(texts(12), str(folder), student, tokenizer(), **usual)
    turned = texts(12, names=NLI[::-1])  # the same texts, so that what was said of them is kept
    with pytest.raises(ValueError, match=r"the teacher's classes are \('entailment', .* the training data's are"):
        teacher_features(turned, str(folder), student, tokenizer(), **usual)
    with pytest.raises(ValueError, match="a teacher adds to labels, and there are none"):
        teacher_features(replace(texts(2), labels=None), str(folder), student, tokenizer(), **usual)
    with pytest.raises(FileNotFoundError, match="expected a folder with a saved model at"):
        teacher_features(texts(2), str(folder / "none"), student, tokenizer(), **usual)


# Parts of the loss and of the log.


def test_disagreement_by_hand():
    logits = torch.randn(6, 3)
    p, q = logits[:3].softmax(-1), logits[3:].softmax(-1)
    wanted = [((p[i] * (p[i] / q[i]).log()).sum() + (q[i] * (q[i] / p[i]).log()).sum()) / 2 for i in range(3)]
    torch.testing.assert_close(disagreement(*logits.chunk(2)), torch.stack(wanted))


def test_the_meter_starts_again():
    class One:
        def reduce(self, value, reduction):
            assert reduction == "sum"
            return value

    meter = Meter()
    targets = torch.eye(3)[torch.tensor([0, 1, 2, 2])]
    meter.add(torch.eye(3)[torch.tensor([0, 1, 0, 0])], targets, None)
    meter.add(targets[:1], targets[:1], None)
    assert meter.read(One()) == {"accuracy": 0.6}
    assert meter.read(One()) == {}
