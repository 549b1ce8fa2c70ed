"""An additive explainer: a small network that learns to give Shapley values in one pass."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spinformer import checks
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.attribution.additive_training import fit
from spinformer.explain.attribution.base import in_batches
from spinformer.models.hidden import hidden_states, hidden_width, resolve_layers
from spinformer.models.masked import MaskedClassifier

Classes = Literal["all", "decided"]
WEIGHTS, RECORD = "explainer.safetensors", "explainer.json"


class AdditiveNetwork(nn.Module):
    """phi_ic = sum over the tokens t of word i of MLP(LayerNorm(x_t^(l)) of each layer l, side by side)_c

    empty: (classes,), the mean of p(nothing) over the texts that it was trained on.
    """

    empty: Tensor

    def __init__(self, dim: int, layers: int, width: int, classes: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        last = nn.Linear(width, classes)
        nn.init.zeros_(last.weight)  # it begins with equal shares
        nn.init.zeros_(last.bias)
        self.tokens = nn.Sequential(nn.Linear(layers * dim, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), last)
        self.register_buffer("empty", torch.zeros(classes))

    def forward(self, states: Sequence[Tensor], words: Words, total: Tensor) -> Tensor:
        """Hidden states, (B, n, d) each, and v(N) - v(nothing), (B, classes) -> (B, W, classes), summing to it."""
        normed = [norm(state.float()) for norm, state in zip(self.norms, states, strict=True)]
        return shared_out(words.sums(self.tokens(torch.cat(normed, -1))), words.mask, total)


def shared_out(values: Tensor, mask: Tensor, total: Tensor) -> Tensor:
    """phi_i + (total - sum over j of phi_j) / W: additive normalisation, (B, W, c) and (B, c) -> (B, W, c)."""
    missing = (total - values.sum(1)) / mask.sum(1, keepdim=True)
    return (values + missing[:, None]) * mask[..., None]


class AdditiveExplainer:
    """theta = argmin over theta of E over texts, C ~ w of (v(C) - v(nothing) - sum over C of phi_i(x; theta))^2

    with v(C) = p(C), phi normalised so that it sums to v(N) - v(nothing), and w Shapley's kernel (see `KernelShap`):
    FastSHAP (Jethani et al. 2022) on the frozen hidden states of the classifier, as in ViT Shapley (Covert et al.
    2023). The minimum over all functions phi is the Shapley value.

    layers: hidden states looked at, 0 for the embeddings, L or -1 for the last layer; by default the middle and the
    last. width: of the hidden layers. classes: "all", values of every class are learnt, or "decided", only of the class
    decided for. seed: of the first weights.

    Scores take one pass: v(nothing) is then the mean of the training texts. That moves all words of a text alike.
    """

    name = "additive-explainer"
    passes = "1"

    def __init__(
        self,
        classifier: MaskedClassifier,
        layers: Sequence[int] | None = None,
        width: int = 256,
        classes: Classes = "all",
        seed: int = 0,
    ) -> None:
        checks.choice("classes", classes, get_args(Classes))
        checks.at_least("width", width, 1)
        self.classifier, self.width, self.classes, self.seed = classifier, width, classes, seed
        self.layers = resolve_layers(classifier.model, layers)
        self.labels = int(classifier.model.config.num_labels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = AdditiveNetwork(hidden_width(classifier.model), len(self.layers), width, self.labels)
        self.network = network.to(classifier.device)
        self.record: dict[str, Any] | None = None

    def train(
        self,
        texts: Texts,
        *,
        passes: int,
        max_length: int = 128,
        batch_size: int = 32,
        coalitions: int = 8,
        learning_rate: float = 1e-3,
        seed: int = 0,
        checkpoint: Path | None = None,
        save_every: int = 200,
        quiet: bool = False,
    ) -> dict[str, Any]:
        """Learn from `texts` (labels are not looked at) with this many forward passes of the classifier; see `fit`."""
        self.record = fit(
            self,
            texts,
            passes=passes,
            max_length=max_length,
            batch_size=batch_size,
            coalitions=coalitions,
            learning_rate=learning_rate,
            seed=seed,
            checkpoint=checkpoint,
            save_every=save_every,
            quiet=quiet,
        )
        return self.record

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        if self.record is None:
            raise ValueError("this explainer has learnt nothing yet: train it, or load a trained one")
        return in_batches(self._scores, words, self.classifier.batch_size)

    @torch.no_grad()
    def _scores(self, words: Words) -> Tensor:
        words = words.to(self.classifier.device)
        probabilities, states = self.look(words)
        found = self.network(states, words, probabilities - self.network.empty)
        target = probabilities.argmax(-1)
        return found.gather(2, target[:, None, None].expand(-1, found.shape[1], 1)).squeeze(2)

    @torch.no_grad()
    def look(self, words: Words) -> tuple[Tensor, list[Tensor]]:
        """One pass over the whole texts: probabilities, (B, classes), and the hidden states of the chosen layers."""
        logits, states = hidden_states(self.classifier.model, words.inputs)
        self.classifier.passes += len(words.words)
        return logits.float().softmax(-1), [states[layer] for layer in self.layers]

    def options(self) -> dict[str, Any]:
        """What the network is made of and made for."""
        return {
            "layers": list(self.layers),
            "width": self.width,
            "classes": self.classes,
            "seed": self.seed,
            "labels": self.labels,
            "dim": hidden_width(self.classifier.model),
            "masking": self.classifier.masking,
        }

    def save(self, folder: Path) -> None:
        """explainer.safetensors and explainer.json in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.contiguous().cpu() for name, value in self.network.state_dict().items()}
        save_file(weights, folder / WEIGHTS)
        (folder / RECORD).write_text(json.dumps({"options": self.options(), "training": self.record}, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path, classifier: MaskedClassifier) -> "AdditiveExplainer":
        """What `save` wrote, for the same classifier under the same masking."""
        try:
            saved = json.loads((folder / RECORD).read_text())
            options, record = saved["options"], saved["training"]
            own = {name: options[name] for name in ("layers", "width", "classes", "seed")}
            weights = load_file(folder / WEIGHTS)
        except FileNotFoundError as error:
            raise ValueError(f"{folder}: expected {WEIGHTS} and {RECORD} of an explainer ({error})") from error
        except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{folder}: the explainer is damaged ({error})") from error
        for name, here in (
            ("masking", classifier.masking),
            ("labels", int(classifier.model.config.num_labels)),
            ("dim", hidden_width(classifier.model)),
        ):
            if options.get(name) != here:
                raise ValueError(f"{folder}: made for {name} {options.get(name)!r}; this classifier has {here!r}")
        explainer = cls(classifier, **own)
        try:
            explainer.network.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"{folder}: the weights are not those of {RECORD}") from error
        explainer.record = record
        return explainer
