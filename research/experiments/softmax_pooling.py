"""Softmax attention learnt on the frozen encoder of a classifier that has another pooling head."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import BatchSampler

from spinformer._base import checks
from spinformer._base.files import atomic_write
from spinformer._base.progress import progress
from spinformer.data.features import Collate, Features, LengthSampler
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.scoring import in_batches
from spinformer.models.hidden_states import hidden_states, hidden_width
from spinformer.models.masked import MaskedClassifier
from spinformer.models.pooling import SoftmaxAttention, feed_forward
from spinformer.training.schedule import schedule

WEIGHTS = "pooling.safetensors"


class SoftmaxClassifier(nn.Module):
    """o = FFN(sum_t a_t x_t),   a = softmax(w . tanh(W x_t + b)) over the real tokens t, with vectors x_t."""

    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.pooling = SoftmaxAttention(dim)
        self.classifier = feed_forward(dim, classes, layers=1, dropout=0.0)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """hidden: (B, n, d); mask: (B, n), true for real tokens; returns logits, (B, classes)."""
        logits: Tensor = self.classifier(self.pooling(hidden, mask)[0])
        return logits


class SoftmaxPooling:
    """score_i = sum over the tokens t of word i of a_t,   theta = argmin of E over texts of CE(p, softmax(o; theta))

    a, o: attention and logits of `SoftmaxClassifier` on the last layer of the classifier's frozen encoder; p: the
    classifier's probabilities; theta: the weights. It shows where softmax attention would look if it gave the answers
    of this classifier. seed: of the initial weights.
    """

    name = "attention-pooling"
    passes = "1"

    def __init__(self, classifier: MaskedClassifier, seed: int = 0) -> None:
        self.classifier = classifier
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = SoftmaxClassifier(hidden_width(classifier.model), int(classifier.model.config.num_labels))
        self.head = head.to(classifier.device).eval()
        self.record: dict[str, Any] | None = None

    def train(
        self,
        texts: Texts,
        *,
        epochs: int = 1,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        max_length: int = 128,
        seed: int = 0,
        quiet: bool = False,
    ) -> dict[str, Any]:
        """Learn from `texts`, without labels, with one pass for each text and epoch; AdamW, its rate falling to 0.

        Returns a record: settings, and over the last quarter of the steps the mean loss and the share of texts on which
        both decide alike.
        """
        checks.at_least("epochs", epochs, 1)
        checks.at_least("batch_size", batch_size, 1)
        checks.positive("learning_rate", learning_rate)
        rows = Features(texts, self.classifier.tokenizer, max_length, quiet=quiet)
        size = min(batch_size, len(rows))
        sampler, collate = LengthSampler(rows.lengths, size, seed), Collate(self.classifier.tokenizer)
        steps = epochs * (len(sampler) // size)

        def batches() -> Iterator[list[int]]:
            for epoch in range(epochs):
                sampler.set_epoch(epoch)
                yield from BatchSampler(sampler, size, drop_last=True)

        optimizer = torch.optim.AdamW(self.head.parameters(), lr=learning_rate)
        scheduler = schedule(optimizer, "linear", steps, warmup=0.0)
        history: list[tuple[Tensor, Tensor]] = []  # loss and agreement of each step
        for indices in batches() if quiet else progress(batches(), "pooling", steps):
            batch = collate(rows.__getitems__(indices))
            inputs = {name: value.to(self.classifier.device) for name, value in batch.items() if name != "labels"}
            answers, hidden = self._encode(inputs)
            logits = self.head(hidden, inputs["attention_mask"].bool())
            loss = functional.cross_entropy(logits, answers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            history.append((loss.detach(), (logits.argmax(-1) == answers.argmax(-1)).float().mean()))
        last = torch.tensor([[float(number) for number in step] for step in history[-max(1, steps // 4) :]]).mean(0)
        self.record = {
            "texts": len(rows),
            "epochs": epochs,
            "batch_size": size,
            "learning_rate": learning_rate,
            "steps": steps,
            "loss": float(last[0]),
            "agreement": float(last[1]),
        }
        return self.record

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W). Attention says how much of a word enters the text's vector, so `target` changes nothing."""
        if self.record is None:
            raise ValueError("this pooling has learnt nothing yet: train it, or load a trained one")
        return in_batches(self._scores, words, target, self.classifier.batch_size)

    @torch.no_grad()
    def _scores(self, words: Words, target: Tensor | None) -> Tensor:
        words = words.to(self.classifier.device)
        hidden = self._encode(words.inputs)[1]
        return words.sums(self.head.pooling.weights(hidden, words.inputs["attention_mask"].bool()))

    @torch.no_grad()
    def _encode(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """One pass: the classifier's probabilities, (B, classes), and the last layer of its encoder, (B, n, d)."""
        logits, states = hidden_states(self.classifier.model, inputs)
        self.classifier.passes += len(logits)
        return logits.float().softmax(-1), states[-1].float()

    def save(self, folder: Path) -> None:
        """Write pooling.safetensors in `folder`."""
        weights = {name: value.contiguous().cpu() for name, value in self.head.state_dict().items()}
        with atomic_write(folder / WEIGHTS) as partial:
            save_file(weights, partial, metadata={"record": json.dumps(self.record)})

    @classmethod
    def load(cls, folder: Path, classifier: MaskedClassifier) -> "SoftmaxPooling":
        """Read what `save` wrote, for the same classifier."""
        pooling = cls(classifier)
        try:
            with safe_open(folder / WEIGHTS, "pt") as file:
                pooling.head.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
                pooling.record = json.loads(file.metadata()["record"])
        except FileNotFoundError as error:
            raise ValueError(f"{folder}: expected {WEIGHTS} of a pooling") from error
        except (SafetensorError, RuntimeError, TypeError, KeyError) as error:
            raise ValueError(f"{folder}: the pooling is damaged, or of another classifier ({error})") from error
        return pooling
