"""Whole runs on tiny data: what they leave behind, the loss, resuming after SIGKILL, several processes, twice alike."""

import json
import random
import re
import shutil

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("tensorboard")

from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoTokenizer

from spinformer.cli import main
from spinformer.data.features import Collate, Features
from spinformer.data.texts import Texts
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.training.classifier.checkpoints import COMPLETE, earlier_seconds, last_checkpoint
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.train import train_classifier
from spinformer.training.classifier.trainer import ClassifierTrainer
from tests.killed import killed_then
from tests.several import run_in_two
from tests.tiny import NLI, WORDS, bert, rows, save_encoder, save_rows


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return str(save_rows(folder / "train.jsonl", 165)), str(save_rows(folder / "dev.jsonl", 41, seed=1))


@pytest.fixture
def recipe(encoder, data):
    return ClassifierRecipe(
        encoder=str(encoder), train=data[0], dev=data[1], batch_size=16, epochs=2, log_steps=2, learning_rate=2e-3
    )


@pytest.fixture(scope="module")
def learnt(encoder, data, tmp_path_factory):
    """A run of the NeuroGame head with an average, long enough to learn; its folder and what it returned."""
    folder = tmp_path_factory.mktemp("runs") / "learnt"
    recipe = ClassifierRecipe(
        encoder=str(encoder),
        train=data[0],
        dev=data[1],
        batch_size=16,
        epochs=8,
        log_steps=10,
        learning_rate=5e-3,
        ema=0.9,
        dropout=0.0,
        encoder_dropout=0.0,
        residual=True,  # learns quickest on pairs that one word decides
    )
    return folder, train_classifier(recipe, folder, quiet=True)


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, other):
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    return all(torch.equal(value, second[name]) for name, value in first.items())


def losses(record):
    return [entry["loss"] for entry in record["history"] if "loss" in entry]


# What a run leaves.


def test_a_run_leaves_a_model_that_others_can_load(learnt):
    folder, record = learnt
    for name in ("model.safetensors", "config.json", "tokenizer.json", "README.md", "training.json", "recipe.json"):
        assert (folder / name).stat().st_size > 0, name
    assert list(folder.rglob("events.out.tfevents.*"))
    assert json.loads((folder / "training.json").read_text()) == json.loads(json.dumps(record))
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: text-classification\n")
    assert "165 texts or pairs (`train.jsonl`; 0 without a gold label left out), learnt from as 165 rows\n" in card
    assert "(0 cut to 128 tokens)" in card
    assert re.search(r"\n\| 80 \| [01]\.\d{4} \| \d+\.\d{4} \|", card)  # scored after 80 updates, in the end
    assert f"{record['parameters']:,} parameters" in card
    assert "\n8 epochs, " in card
    assert str(folder.parent) not in card
    assert (record["pairs"], record["dropped"], record["processes"], record["resumed"]) == (165, 0, 1, False)
    assert set(record["data"]) == {"train.jsonl", "dev.jsonl"}
    model = NeuroGameForSequenceClassification.from_pretrained(folder)
    assert sum(p.numel() for p in model.parameters()) == record["parameters"]
    assert sorted(model.config.special_ids) == [0, 2, 3]  # not the unknown: it stands for words


def test_the_loss_falls_and_the_log_tells_all(learnt):
    _, record = learnt
    found = losses(record)
    assert len(found) == 8  # 10 updates an epoch: 165 rows are 10 whole batches
    assert found[-1] < 0.5 * found[0]
    steps = [entry for entry in record["history"] if "loss" in entry]
    assert steps[-1]["accuracy"] > 0.8
    for entry in steps:
        assert {"accuracy", "ess", "residual", "converged", "grad_norm", "learning_rate"} <= set(entry)
        assert 0 < entry["ess"] <= 15 + 1e-6
        assert 0 <= entry["residual"] < 1e-2
    scores = [entry for entry in record["history"] if "eval_accuracy" in entry]
    assert [entry["epoch"] for entry in scores] == list(range(1, 9))
    assert scores[-1]["eval_accuracy"] > 0.6


def test_the_scores_are_those_of_the_saved_model(learnt):
    """With averaging on, what is scored after an epoch and what is saved is the average."""
    folder, record = learnt
    model = NeuroGameForSequenceClassification.from_pretrained(folder).eval()
    tokens = AutoTokenizer.from_pretrained(folder)
    drawn = rows(41, seed=1)
    texts = Texts(
        [row["premise"] for row in drawn],
        [row["hypothesis"] for row in drawn],
        [NLI.index(row["label"]) for row in drawn],
        NLI,
    )
    features = Features(texts, tokens, 128)
    batch = Collate(tokens)(features.__getitems__(range(41)))
    with torch.no_grad():
        logits = model(**batch).logits
    last = [entry for entry in record["history"] if "eval_accuracy" in entry][-1]
    assert last["eval_loss"] == pytest.approx(float(functional.cross_entropy(logits, batch["labels"])), abs=1e-5)
    assert last["eval_accuracy"] == pytest.approx(float((logits.argmax(-1) == batch["labels"]).float().mean()))


def test_the_saved_weights_are_the_average(learnt):
    folder, _ = learnt
    checkpoint = last_checkpoint(folder)
    assert checkpoint.name == "checkpoint-80"
    average, raw, saved = load_file(checkpoint / "average.safetensors"), weights(checkpoint), weights(folder)
    assert all(torch.equal(saved[name], value) for name, value in average.items())
    assert not torch.equal(saved["classifier.1.weight"], raw["classifier.1.weight"])


@pytest.mark.parametrize(
    "options",
    [
        {"head": "cls", "mixup": 0.2, "label_smoothing": 0.1, "accumulation": 2},
        {"head": "attention", "consistency": 1.0, "mixup": 0.2},
        {"head": "joint", "consistency": 1.0, "mixup": 0.2, "accumulation": 2, "precision": "bfloat16"},
        {"head": "released", "schedule": "steps", "milestones": [1], "head_factor": 5.0},
        {"head": "mean", "limit": 40, "schedule": "cosine", "save_steps": 0},
        {"game": {"preset": "paper"}, "residual": False, "precision": "bfloat16", "epochs": 1},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
def test_every_option_runs(recipe, tmp_path, options):
    record = train_classifier(recipe.change(**{"epochs": 1, "log_steps": 1, **options}), tmp_path / "run", quiet=True)
    assert all(0 < loss < 3 for loss in losses(record))
    assert len(losses(record)) == (2 if "limit" in options else 10)
    assert ("ess" in record["history"][0]) == ("game" in options)
    assert bool(list((tmp_path / "run").glob("checkpoint-*"))) == ("save_steps" not in options)


@pytest.mark.parametrize("baseline", ["dam", "esim"])
def test_baselines_on_word_vectors(recipe, tmp_path, baseline):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"{word} {' '.join(map(str, torch.randn(4).tolist()))}\n" for word in WORDS))
    own = recipe.change(baseline=baseline, vectors=str(vectors), epochs=1, vector_length=2.0)
    record = train_classifier(own, tmp_path / "run", quiet=True)
    assert len(losses(record)) == 5
    card = (tmp_path / "run" / "README.md").read_text()
    assert f"`{baseline}` on the word vectors `vectors.txt`" in card
    assert "\nimport spinformer.models  # registers the architecture\n" in card
    assert main(["evaluate", str(tmp_path / "run"), recipe.dev, "--device", "cpu"]) == 0


def test_learning_from_a_teacher(learnt, recipe, tmp_path):
    teacher, _ = learnt
    own = recipe.change(teacher=str(teacher), views=3, teacher_weight=1.0, epochs=1, log_steps=1, head="mean", limit=64)
    record = train_classifier(own, tmp_path / "a", quiet=True)
    assert len(losses(record)) == 3 * 64 // 16
    assert (record["pairs"], set(record["data"])) == (64, {"train.jsonl", "dev.jsonl"})
    train_classifier(own, tmp_path / "b", quiet=True)  # from the answers that are kept
    assert same(tmp_path / "a", tmp_path / "b")
    plain = train_classifier(own.change(teacher=None, views=1), tmp_path / "c", quiet=True)
    assert losses(plain)[0] != losses(record)[0]


def test_the_optimizer_has_the_recipes_rates_and_decays(recipe, tmp_path, monkeypatch):
    seen = []

    def keep(self, *args, **kwargs):
        seen.append((self.model, self.create_optimizer()))
        raise KeyboardInterrupt

    monkeypatch.setattr(ClassifierTrainer, "train", keep)
    own = recipe.change(learning_rate=1e-3, head_factor=5.0, weight_decay=0.02)
    with pytest.raises(KeyboardInterrupt):
        train_classifier(own, tmp_path / "run", quiet=True)
    model, optimizer = seen[0]
    assert isinstance(optimizer, torch.optim.AdamW)
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    assert len(groups) == sum(len(group["params"]) for group in optimizer.param_groups) == len(list(model.parameters()))
    for name, parameter in model.named_parameters():
        group = groups[id(parameter)]
        assert group["lr"] == pytest.approx(1e-3 if name.startswith("model.encoder.") else 5e-3), name
        assert group["weight_decay"] == (0.02 if parameter.dim() > 1 else 0.0), name


def test_the_loss_by_hand(recipe, tmp_path, monkeypatch):
    """The first update's loss is the smoothed cross-entropy of the fresh model on the sampler's first batch."""
    still = recipe.change(
        head="cls", dropout=0.0, encoder_dropout=0.0, label_smoothing=0.1, accumulation=2, log_steps=1, epochs=1
    )
    seen = []
    whole = ClassifierTrainer.compute_loss

    def keep(self, model, inputs, *args, **kwargs):
        found = whole(self, model, inputs, *args, **kwargs)
        if model.training and len(seen) < 2:
            with torch.no_grad():
                logits = model(**{name: x for name, x in inputs.items() if name != "labels"}).logits
            logs = logits.log_softmax(-1)
            gold = -logs.gather(1, inputs["labels"][:, None]).mean()
            seen.append(float(0.9 * gold - 0.1 * logs.mean()))
        return found

    monkeypatch.setattr(ClassifierTrainer, "compute_loss", keep)
    record = train_classifier(still, tmp_path / "run", quiet=True)
    assert losses(record)[0] == pytest.approx(sum(seen) / 2, abs=1e-5)


# What is refused.


def test_a_folder_with_a_run_is_refused(learnt, recipe):
    folder, record = learnt
    with pytest.raises(FileExistsError, match="already holds a run; resume it, or name another folder"):
        train_classifier(recipe, folder, quiet=True)
    with pytest.raises(ValueError, match="was begun with another recipe; these differ: epochs, learning_rate, log_"):
        train_classifier(
            ClassifierRecipe.of({**record["recipe"], "epochs": 2, "learning_rate": 1, "log_steps": 1}),
            folder,
            resume=True,
        )


def test_a_finished_run_resumes_to_itself(learnt):
    folder, record = learnt
    before = weights(folder)
    kept = folder / "recipe.json"
    begun = json.loads(kept.read_text())
    del begun["baseline"]  # as of a run that was begun when there was no such option
    begun |= {"gate": False, "layers": []}  # and of one when there were others
    kept.write_text(json.dumps(begun))
    again = train_classifier(ClassifierRecipe.of(record["recipe"]), folder, resume=True, quiet=True)
    assert again["resumed"]
    assert losses(again) == losses(record)
    assert all(torch.equal(value, before[name]) for name, value in weights(folder).items())


def test_so_many_updates_and_no_more(learnt, tmp_path):
    """15 updates, in the midst of the second epoch; resumed after the last of them, or after the tenth."""
    options = {**learnt[1]["recipe"], "steps": 15, "save_steps": 5, "log_steps": 5}
    record = train_classifier(ClassifierRecipe.of(options), tmp_path / "run", quiet=True)
    steps = [entry["step"] for entry in record["history"] if "loss" in entry]
    assert steps == [5, 10, 15]
    assert "\n15 updates, " in (tmp_path / "run" / "README.md").read_text()
    before = weights(tmp_path / "run")
    scores = [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry]
    card = (tmp_path / "run" / "README.md").read_text().partition("## Scores")[2]
    assert len(scores) == 2
    for left in (15, 10):
        if left == 10:
            shutil.rmtree(tmp_path / "run" / "checkpoint-15")
        spent = earlier_seconds(tmp_path / "run" / f"checkpoint-{left}")
        again = train_classifier(ClassifierRecipe.of(options), tmp_path / "run", resume=True, quiet=True)
        assert losses(again) == losses(record)
        assert [entry["eval_accuracy"] for entry in again["history"] if "eval_accuracy" in entry] == scores
        assert (tmp_path / "run" / "README.md").read_text().partition("## Scores")[2] == card
        assert again["seconds"] > spent > 0
        assert all(torch.equal(value, before[name]) for name, value in weights(tmp_path / "run").items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 15, "accumulation": 2}, r"batch_size 15 must divide by 2, the 1 process\(es\) times"),
        ({"batch_size": 300}, "batch_size 300 is more than the 165 training rows"),
        ({"encoder": "nothing"}, "encoder must be a folder, a hub id or one of bert-base"),
        ({"max_length": 512}, "max_length must be at most 128, what the model takes; got 512"),
        ({"names": ["yes", "no"]}, "expected a label among"),
        ({"game": {"heads": 3}}, "dim must be a multiple of heads"),
        ({"mixup": 0.2, "baseline": "dam", "vectors": "v.txt"}, "mixup is for pooling heads on an encoder"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_refused_leaves_no_folder(recipe, tmp_path, options, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.txt").write_text("a 1 2 3\nman 1 0 0\n")
    with pytest.raises(ValueError, match=message):
        train_classifier(recipe.change(**options), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / "recipe.json").exists()  # another try is not in the way of this one


# The same again, and after an end that nobody announced.


def test_the_same_recipe_twice_gives_the_same_weights(recipe, tmp_path):
    own = recipe.change(mixup=0.2, ema=0.9, limit=64)  # and dropout, and coalitions
    records = [train_classifier(own, tmp_path / name, quiet=True) for name in "ab"]
    assert same(tmp_path / "a", tmp_path / "b")
    assert losses(records[0]) == losses(records[1])
    train_classifier(own.change(seed=1), tmp_path / "c", quiet=True)
    assert not same(tmp_path / "a", tmp_path / "c")


def test_stopped_anywhere_it_goes_on_to_the_same_weights(recipe, tmp_path, monkeypatch):
    """In this process: an error at any update, with everything that draws random numbers on."""
    own = recipe.change(mixup=0.2, ema=0.9, save_steps=3, accumulation=2, epochs=2, limit=96)
    train_classifier(own, tmp_path / "whole", quiet=True)
    step = ClassifierTrainer.training_step

    def stopping(at):
        def training_step(self, *args, **kwargs):
            if self.state.global_step == at:
                raise KeyboardInterrupt
            return step(self, *args, **kwargs)

        return training_step

    for at in (2, 5, 8):  # before the first checkpoint, in the first epoch, in the second
        monkeypatch.setattr(ClassifierTrainer, "training_step", stopping(at))
        with pytest.raises(KeyboardInterrupt):
            train_classifier(own, tmp_path / "parts", resume=at > 2, quiet=True)
        assert not (tmp_path / "parts" / "model.safetensors").exists()
    monkeypatch.setattr(ClassifierTrainer, "training_step", step)
    half = tmp_path / "parts" / "checkpoint-9"  # what a killed process leaves: it must neither be read nor stay
    half.mkdir()
    (half / "trainer_state.json").write_text("{")
    assert last_checkpoint(tmp_path / "parts").name == "checkpoint-6"
    record = train_classifier(own, tmp_path / "parts", resume=True, quiet=True)
    assert record["resumed"]
    assert same(tmp_path / "whole", tmp_path / "parts")
    assert all((folder / COMPLETE).exists() for folder in (tmp_path / "parts").glob("checkpoint-*"))


def command(recipe, output, *words):
    flags = []
    for name, value in recipe.to_dict().items():
        if value != getattr(ClassifierRecipe(), name):
            flags += [f"--{name.replace('_', '-')}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return ["train", "nli", "--output", str(output), "--quiet", *flags, *words]


@pytest.mark.slow
def test_killed_it_goes_on_to_the_same_weights(recipe, tmp_path):
    """SIGKILL at a moment drawn by a seed, then --resume: the weights are those of a run left alone."""
    own = recipe.change(epochs=3, save_steps=7, ema=0.99, mixup=0.2, log_steps=50)
    draw = random.Random(20261115)
    earliest, delay = draw.choice([7, 14]), draw.uniform(0, 0.15)
    words = command(own, tmp_path / "killed", "--resume")
    # The resumed run is the first in its process. The whole one comes after it there, and not in this process: what
    # other tests left here (threads, caches) may change the last bits of sums.
    whole = command(own, tmp_path / "whole")
    killed_then(words, tmp_path / "killed", f"checkpoint-{earliest}*", delay, [words, whole])
    assert json.loads((tmp_path / "killed" / "training.json").read_text())["resumed"]
    assert same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
def test_two_processes_are_as_one(recipe, tmp_path):
    own = recipe.change(
        dropout=0.0, encoder_dropout=0.0, log_steps=1, game={"draws": "shared"}, ema=0.9, accumulation=2, limit=80
    )
    alone = train_classifier(own, tmp_path / "one", quiet=True)
    printed = run_in_two(command(own, tmp_path / "two"))
    record = json.loads((tmp_path / "two" / "training.json").read_text())
    assert record["processes"] == 2
    assert printed.count(" rows in ") == 1  # the first process alone speaks
    assert len(record["history"]) == len(alone["history"])
    for one, two in zip(alone["history"], record["history"], strict=True):
        for name in ("loss", "grad_norm", "accuracy", "residual", "eval_loss", "eval_accuracy"):
            assert (name in one) == (name in two)
            if name in one:
                assert two[name] == pytest.approx(one[name], abs=1e-4), name
    first, second = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, value in first.items():
        torch.testing.assert_close(second[name], value, rtol=0, atol=1e-3, msg=name)
    assert sorted(path.name for path in last_checkpoint(tmp_path / "two").glob("rng_state*")) == [
        "rng_state_0.pth",
        "rng_state_1.pth",
    ]


@pytest.mark.skipif(torch.__version__ < "2.7", reason="this torch cannot compile encoders of transformers 5")
def test_a_compiled_encoder_learns_the_same(recipe, tmp_path, monkeypatch):
    from torch import nn

    compiled, learning = [], []
    compile_module, plain = nn.Module.compile, torch._dynamo.lookup_backend("aot_eager")

    def backend(graph, inputs):
        learning.append(torch.is_grad_enabled())
        return plain(graph, inputs)

    def plainly(module, **options):  # as torch would, but without a compiler of C++
        compiled.append(module)
        compile_module(module, backend=backend, **options)

    monkeypatch.setattr(nn.Module, "compile", plainly)
    encoder = save_encoder(tmp_path / "encoder", bert(num_hidden_layers=1))  # each layer takes seconds to compile
    short = recipe.change(encoder=str(encoder), head="mean", epochs=1, steps=2, dropout=0.0, encoder_dropout=0.0)
    train_classifier(short, tmp_path / "plain", quiet=True)
    assert not compiled
    train_classifier(short.change(compile=True), tmp_path / "compiled", quiet=True)
    assert len(compiled) == 1
    assert learning  # something was compiled
    assert all(learning)  # and nothing for the evaluation
    found, wanted = (load_file(tmp_path / name / "model.safetensors") for name in ("compiled", "plain"))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)
