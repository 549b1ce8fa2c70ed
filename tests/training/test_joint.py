"""Training several heads at once: the loss and its gradient by hand, whole runs, resuming, the encoder taken over."""

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from torch.nn import functional
from transformers import AutoTokenizer

from spinformer.data.features import Collate, Features
from spinformer.data.sources import load_texts
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.models.pooling import POOLING_HEADS
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.train import train_classifier
from spinformer.training.classifier.trainer import ClassifierTrainer
from tests.tiny import save_rows
from tests.training.test_train import losses, same, weights


@pytest.fixture(scope="module")
def recipe(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data = {"train": str(save_rows(folder / "train.jsonl", 165)), "dev": str(save_rows(folder / "dev.jsonl", 41, 1))}
    sizes = {"batch_size": 16, "epochs": 2, "log_steps": 1, "learning_rate": 2e-3}
    return ClassifierRecipe(encoder=str(encoder), head="joint", **data, **sizes)


@pytest.fixture
def trainer(recipe, tmp_path, monkeypatch):
    """The trainer of a recipe, with its model, before the first update."""

    def made(**options):
        def keep(self, *args, **kwargs):
            seen.append(self)
            raise KeyboardInterrupt

        seen = []
        with monkeypatch.context() as patch:
            patch.setattr(ClassifierTrainer, "train", keep)
            with pytest.raises(KeyboardInterrupt):
                train_classifier(recipe.change(**options), tmp_path / "begun", quiet=True)
        with torch.no_grad():
            for parameter in seen[0].model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return seen[0]

    return made


def crossed(logits, targets, smoothing=0.0):
    """Smoothed cross-entropy, as one would write it down."""
    targets = (1 - smoothing) * targets + smoothing / targets.shape[-1]
    return -(targets * logits.log_softmax(-1)).sum(-1).mean()


def gradient(loss, model):
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("soft", [False, True], ids=["labels", "targets"])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"consistency": 1.5}], ids=str)
def test_the_loss_is_the_mean_over_heads(trainer, options, soft):
    trainer = trainer(**options)
    model = trainer.model.train()
    batch = trainer.data_collator(trainer.train_dataset.__getitems__(range(8)))
    targets = torch.rand(8, 3).softmax(-1) if soft else functional.one_hot(batch["labels"], 3).float()
    if soft:
        batch["targets"] = targets
    torch.manual_seed(5)  # of dropout and coalitions
    loss = trainer.compute_loss(model, batch)
    found = gradient(loss, model)

    copies = 2 if "consistency" in options else 1
    plain = {name: torch.cat([x] * copies) for name, x in batch.items() if name not in ("labels", "targets")}
    torch.manual_seed(5)
    each = model(**plain).head_logits
    smoothing = options.get("label_smoothing", 0.0)
    parts = [crossed(each[:, place], targets.repeat(copies, 1), smoothing) for place in range(4)]
    assert len(parts) == len(POOLING_HEADS["joint"].parts)
    by_hand = sum(parts) / 4
    if copies == 2:
        p, q = each.softmax(-1).mean(1).chunk(2)  # the answers of the model, not of its heads, must agree
        apart = ((p - q) * (p / q).log()).sum(-1).mean() / 2
        assert float(apart.detach()) > 1e-4
        by_hand = by_hand + 1.5 * apart
    torch.testing.assert_close(loss, by_hand)
    wanted = gradient(by_hand, model)
    near = 1e-5 * max(float(value.abs().max()) for value in wanted.values())
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=near, msg=lambda text, name=name: name + text)
    answer = crossed(each.softmax(-1).mean(1).log(), targets.repeat(copies, 1), smoothing)
    assert float((answer - sum(parts) / 4).abs().detach()) > 1e-3  # not the cross-entropy of the mean answer


def test_in_evaluation_the_loss_is_that_of_the_answer(trainer):
    trainer = trainer()
    model = trainer.model.eval()
    batch = trainer.data_collator(trainer.train_dataset.__getitems__(range(8)))
    with torch.no_grad():
        loss, outputs = trainer.compute_loss(model, batch, return_outputs=True)
    wanted = -outputs.head_logits.softmax(-1).mean(1)[torch.arange(8), batch["labels"]].log().mean()
    torch.testing.assert_close(loss, wanted)


def test_several_heads_learn_and_are_scored_by_their_answer(recipe, tmp_path):
    own = recipe.change(dropout=0.0, encoder_dropout=0.0, learning_rate=5e-3, epochs=6, ema=0.9)
    record = train_classifier(own, tmp_path / "run", quiet=True)
    assert losses(record)[-1] < 0.6 * losses(record)[0]
    model = NeuroGameForSequenceClassification.from_pretrained(tmp_path / "run").eval()
    assert model.config.head == "joint"
    tokens = AutoTokenizer.from_pretrained(tmp_path / "run")
    dev = Features(load_texts(own.dev), tokens, 128)
    batch = Collate(tokens)(dev.__getitems__(range(len(dev))))
    with torch.no_grad():
        output = model(**batch)
    answer = output.head_logits.softmax(-1).mean(1)
    scored = [entry for entry in record["history"] if "eval_accuracy" in entry]
    assert len(scored) == 6
    assert scored[-1]["eval_accuracy"] == pytest.approx(float((answer.argmax(-1) == batch["labels"]).float().mean()))
    assert scored[-1]["eval_loss"] == pytest.approx(float(functional.nll_loss(answer.log(), batch["labels"])), abs=1e-5)
    each = (output.head_logits.argmax(-1) == batch["labels"][:, None]).float().mean(0)
    assert float(each.min()) > 0.45  # every one of them has learnt


def test_stopped_it_goes_on_to_the_same_weights(recipe, tmp_path, monkeypatch):
    own = recipe.change(mixup=0.2, consistency=1.0, ema=0.9, save_steps=4, epochs=1, label_smoothing=0.1)
    whole = train_classifier(own, tmp_path / "whole", quiet=True)
    assert len(losses(whole)) == 10
    step = ClassifierTrainer.training_step

    def stopping(self, *args, **kwargs):
        if self.state.global_step == 6:
            raise KeyboardInterrupt
        return step(self, *args, **kwargs)

    monkeypatch.setattr(ClassifierTrainer, "training_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_classifier(own, tmp_path / "parts", quiet=True)
    monkeypatch.setattr(ClassifierTrainer, "training_step", step)
    record = train_classifier(own, tmp_path / "parts", resume=True, quiet=True)
    assert record["resumed"]
    assert losses(record) == losses(whole)
    assert same(tmp_path / "whole", tmp_path / "parts")


def test_another_head_goes_on_from_the_encoder(recipe, tmp_path):
    train_classifier(recipe.change(epochs=1), tmp_path / "joint", quiet=True)
    still = {"learning_rate": 1e-9, "epochs": 1, "encoder": str(tmp_path / "joint")}
    for head in ("mean", "neurogame"):
        record = train_classifier(recipe.change(head=head, **still), tmp_path / head, quiet=True)
        assert len(losses(record)) == 10
        first, second = weights(tmp_path / "joint"), weights(tmp_path / head)
        inside = [name for name in first if name.startswith("model.encoder.")]
        assert inside
        for name in inside:
            torch.testing.assert_close(second[name], first[name], rtol=0, atol=1e-6, msg=name)
    assert "head `mean` on the encoder `joint`" in (tmp_path / "mean" / "README.md").read_text()
    begun = NeuroGameForSequenceClassification.from_encoder(recipe.encoder).model.encoder.state_dict()
    assert max(float((first[name] - begun[name.removeprefix("model.encoder.")]).abs().max()) for name in inside) > 1e-3


def test_every_head_learns_at_the_rate_of_a_head(trainer):
    trainer = trainer(learning_rate=1e-3, head_factor=5.0)
    rates = {id(p): group["lr"] for group in trainer.create_optimizer().param_groups for p in group["params"]}
    for name, parameter in trainer.model.named_parameters():
        assert rates[id(parameter)] == pytest.approx(1e-3 if name.startswith("model.encoder.") else 5e-3), name
