"""The network of the additive explainer: Shapley values of words from one pass of a classifier."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.choices import Masking
from spinformer._base.files import atomic_files, regular
from spinformer._base.rng import seeded
from spinformer.data.words import Words
from spinformer.models.hidden_states import frozen_states, hidden_width, resolve_layers
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import answers_of
from spinformer.models.size_limits import built_for

Classes = Literal["all", "decided"]
WEIGHTS, RECORD = "explainer.safetensors", "explainer.json"


@dataclass(frozen=True)
class AdditiveConfig:
    """What an additive network is made of and made for.

    layers: the hidden states that it reads, 0 for the embeddings, L for the last layer; width: of its hidden layers;
    classes: "all", the values of every class are learnt, or "decided", only of the class that the classifier decides
    for; seed: of the first weights; labels: classes of the classifier; dim: width of its hidden states; masking: how
    words are hidden from it.
    """

    layers: tuple[int, ...]
    width: int
    classes: Classes
    seed: int
    labels: int
    dim: int
    masking: Masking

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        checks.choice("classes", self.classes, get_args(Classes))
        checks.at_least("width", self.width, 1)


class AdditiveNetwork(nn.Module):
    """phi_ic = sum over the tokens t of word i of MLP(LayerNorm(x_t^(l)) of each layer l, side by side)_c

    x^(l): the classifier's hidden states; phi is then shifted so that it sums to v(N) - v(nothing) (`efficient`).
    empty: (classes,), the mean of v(nothing) over the texts that it was trained on.
    """

    empty: Tensor

    def __init__(self, config: AdditiveConfig) -> None:
        super().__init__()
        self.config = config
        count, width = len(config.layers), config.width
        self.norms = nn.ModuleList(nn.LayerNorm(config.dim) for _ in range(count))
        last = nn.Linear(width, config.labels)
        nn.init.zeros_(last.weight)  # at first, every word gets an equal share
        nn.init.zeros_(last.bias)
        self.tokens = nn.Sequential(
            nn.Linear(count * config.dim, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), last
        )
        self.register_buffer("empty", torch.zeros(config.labels))

    @classmethod
    def for_classifier(
        cls,
        classifier: MaskedClassifier,
        layers: Sequence[int] | None = None,
        width: int = 256,
        classes: Classes = "all",
        seed: int = 0,
    ) -> "AdditiveNetwork":
        """A new network for this classifier, on its device; layers are by default the middle and the last.

        Torch's global random state is left as it was.
        """
        model = classifier.model
        config = AdditiveConfig(
            layers=resolve_layers(model, layers),
            width=width,
            classes=classes,
            seed=seed,
            labels=int(model.config.num_labels),
            dim=hidden_width(model),
            masking=classifier.masking,
        )
        with seeded(seed):
            network = cls(config)
        return network.to(classifier.device)

    def forward(self, states: Sequence[Tensor], words: Words, total: Tensor) -> Tensor:
        """Hidden states, (B, n, d) each, and v(N) - v(nothing), (B, classes) -> (B, W, classes), summing to it."""
        normed = [norm(state.float()) for norm, state in zip(self.norms, states, strict=True)]
        return efficient(words.sums(self.tokens(torch.cat(normed, -1))), words.mask, total)

    @torch.no_grad()
    def read(self, classifier: MaskedClassifier, words: Words) -> tuple[Tensor, list[Tensor]]:
        """One pass over the full texts: probabilities, (B, classes), and the hidden states that `forward` takes."""
        logits, states = frozen_states(classifier.model, words.inputs)
        classifier.passes += len(words.words)
        return answers_of(logits, classifier.outputs), [states[layer] for layer in self.config.layers]

    def save(self, folder: Path, record: dict[str, Any] | None) -> None:
        """explainer.safetensors and explainer.json in `folder`; record: how the network was trained."""
        content = {"options": asdict(self.config), "training": record}
        with atomic_files(folder) as written:
            save_file({name: value.contiguous().cpu() for name, value in self.state_dict().items()}, written / WEIGHTS)
            (written / RECORD).write_text(json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path, classifier: MaskedClassifier) -> tuple["AdditiveNetwork", dict[str, Any] | None]:
        """What `save` wrote, and the record of its training; for the same classifier under the same masking."""
        try:
            saved = json.loads(regular(folder / RECORD).read_text())
            config, record = AdditiveConfig(**saved["options"]), saved["training"]
            weights = load_file(regular(folder / WEIGHTS))
        except FileNotFoundError as error:
            raise ValueError(f"{folder}: expected {WEIGHTS} and {RECORD} of an explainer ({error})") from error
        except (SafetensorError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise ValueError(f"{folder}: the explainer is damaged ({error})") from error
        model = classifier.model
        expected = {
            "masking": classifier.masking,
            "labels": int(model.config.num_labels),
            "dim": hidden_width(model),
        }
        for name, value in expected.items():
            if getattr(config, name) != value:
                raise ValueError(f"{folder}: made for {name} {getattr(config, name)!r}; this classifier has {value!r}")
        resolve_layers(model, config.layers)
        unfit = f"{folder}: the weights are not those of {RECORD}"
        network = built_for(folder / WEIGHTS, weights, lambda: cls(config), unfit)
        return network.to(classifier.device).eval(), record


def efficient(values: Tensor, mask: Tensor, total: Tensor) -> Tensor:
    """phi_i + (total - sum over j of phi_j) / W: values that sum to `total`, (B, W, c) and (B, c) -> (B, W, c)."""
    missing = (total - values.sum(1)) / mask.sum(1, keepdim=True)
    return (values + missing[:, None]) * mask[..., None]
