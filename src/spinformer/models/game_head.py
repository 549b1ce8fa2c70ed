"""The game head of a classifier: it predicts, from one pass, what the classifier answers of any part of a text."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer.data.words import Words
from spinformer.games.sums import SumGame
from spinformer.models.hidden_states import evaluation_mode, hidden_states
from spinformer.models.masked import Masking
from spinformer.models.removed import drop_removed

FOLDER, CONFIG, WEIGHTS = "game", "game.json", "game.safetensors"
# Log-weights of words are held within this, so that no word drowns another beyond what float32 resolves.
RANGE = 8.0
# Weight of the empty coalition, beside which every word counts.
FLOOR = 1e-3


@dataclass(frozen=True)
class GameHeadConfig:
    """layers: positions in the classifier's hidden_states that the game head reads; width: d of each; classes: of the
    classifier; heads: H; dim: of the values of all H together; hidden, readout: widths of the two networks; dropout: of
    the second; masking: how words were hidden; model: digest of the classifier that the game head belongs to.
    """

    layers: tuple[int, ...]
    width: int
    classes: int
    heads: int = 16
    dim: int = 256
    hidden: int = 512
    readout: int = 128
    dropout: float = 0.0
    masking: Masking = "attention"
    model: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        for name in ("width", "classes", "heads", "dim", "hidden", "readout"):
            checks.at_least(name, getattr(self, name), 1)
        if self.dim % self.heads:
            raise ValueError(f"dim must be a multiple of heads; got {self.dim} and {self.heads}")

    @classmethod
    def from_options(cls, **options: Any) -> "GameHeadConfig":
        """From saved options, among which may be some that no longer exist."""
        return cls(**drop_removed(options, form="softmax", scope="class"))


class TokenMap(nn.Module):
    """a_i = (e^{s_i} v_i, e^{s_i}),   (s_i, v_i) = network(x_i), for each of H heads

    x_i: the hidden states of token i in the chosen layers, each normalised; s_i: a score; v_i: dim / H numbers.
    """

    def __init__(self, config: GameHeadConfig) -> None:
        super().__init__()
        self.config = config
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in config.layers)
        self.body = nn.Linear(config.width * len(config.layers), config.hidden)
        self.score = nn.Linear(config.hidden, config.heads)
        self.value = nn.Linear(config.hidden, config.dim)

    @full_precision
    def forward(self, hidden_states: Sequence[Tensor]) -> Tensor:
        """a, (B, n, dim + H), of every token, from the hidden states of the encoder, each (B, n, width)."""
        layers = zip(self.norms, self.config.layers, strict=True)
        x = torch.cat([norm(hidden_states[layer].float()) for norm, layer in layers], -1)
        inner = functional.gelu(self.body(x))
        weight = (RANGE * torch.tanh(self.score(inner) / RANGE)).exp()  # e^s, (B, n, H)
        value = self.value(inner).unflatten(-1, (self.config.heads, -1))  # (B, n, H, dim / H)
        return torch.cat([(weight[..., None] * value).flatten(2), weight], -1)


class Readout(nn.Module):
    """g(S, D),   S_h = sum of e^{s_hi} v_hi / sum of e^{s_hi},   D_h = log sum of e^{s_hi}

    sums: over the tokens i of a coalition; h: one of the H heads of `TokenMap`; g: a network.
    """

    def __init__(self, config: GameHeadConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.Sequential(
            nn.Linear(config.dim + config.heads, config.readout),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.readout, config.readout),
            nn.GELU(),
            nn.Linear(config.readout, config.classes),
        )

    @full_precision
    def forward(self, sums: Tensor) -> Tensor:
        """(..., classes) of coalition sums, (..., dim + H)."""
        value, weight = sums.float().split([self.config.dim, self.config.heads], -1)
        weight = weight.clamp_min(0) + FLOOR
        mean = value.unflatten(-1, (self.config.heads, -1)) / weight[..., None]  # (..., H, dim / H)
        scores: Tensor = self.layers(torch.cat([mean.flatten(-2), weight.log()], -1))
        return scores


class GameHead(nn.Module):
    """o(C) = log p(N) + g(C) - g(N),   p(C) = softmax(o(C)),   v_c(C) = p_c(C)

    g(C): the `Readout` of the sum of `TokenMap` over the tokens of the words C, taken from one pass over the full text;
    N: all words. So v_c(C), the classifier's probability of class c when it reads the words C alone, is predicted for
    every C from one pass, and v(N) is the classifier's answer exactly. v is bounded and a function of the coalition's
    sum, as section 3.2 of the NeuroGame paper asks of a characteristic function (there f(|sum|), NGT Eq. 2).
    """

    def __init__(self, config: GameHeadConfig) -> None:
        super().__init__()
        self.config = config
        self.map, self.readout = TokenMap(config), Readout(config)

    def games(self, model: nn.Module, words: Words) -> "PredictedGames":
        """The games of a batch of texts, from one pass of the frozen classifier."""
        with torch.no_grad(), evaluation_mode(model):
            logits, states = hidden_states(model, words.inputs)
        games: PredictedGames = self(states, logits, words)
        return games

    def forward(self, hidden_states: Sequence[Tensor], logits: Tensor, words: Words) -> "PredictedGames":
        """The games of a batch, from the classifier's hidden states and logits for full texts."""
        return PredictedGames.from_tokens(self.readout, self.map(hidden_states), logits, words)

    def save(self, folder: Path) -> None:
        """Into `folder`/game: weights and configuration."""
        path = folder / FOLDER
        path.mkdir(parents=True, exist_ok=True)
        save_file({name: value.cpu().contiguous() for name, value in self.state_dict().items()}, path / WEIGHTS)
        (path / CONFIG).write_text(json.dumps(asdict(self.config), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path, model: nn.Module) -> "GameHead":
        """From `folder`/game; it must have been made for this model."""
        path = folder / FOLDER
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(f"{folder} has no game head; `spinformer ground {folder} TEXTS` makes one")
        try:
            config = GameHeadConfig.from_options(**json.loads((path / CONFIG).read_text()))
            weights = load_file(path / WEIGHTS)
        except (json.JSONDecodeError, TypeError, SafetensorError, OSError) as error:
            raise ValueError(f"{path}: the game head is damaged ({error})") from error
        if config.model != weights_digest(model):
            raise ValueError(f"{path}: this game head was made for another model than the one it lies with")
        head = cls(config)
        try:
            head.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"{path}: the game head's weights are not those that game.json describes") from error
        return head.eval()


def built_in_game(model: nn.Module) -> GameHead | None:
    """The game head that a model was trained with, if any."""
    head = getattr(model, "game", None)
    return head if isinstance(head, GameHead) else None


@dataclass(frozen=True)
class PredictedGames:
    """The predicted games of B texts. readout: g; features: a, (B, W, dim + H), summed over a word's tokens;
    full: log p(N), (B, classes); mask: (B, W), true for real words.
    """

    readout: Callable[[Tensor], Tensor]
    features: Tensor
    full: Tensor
    mask: Tensor

    @classmethod
    def from_tokens(
        cls, readout: Callable[[Tensor], Tensor], tokens: Tensor, logits: Tensor, words: Words
    ) -> "PredictedGames":
        """From the features of tokens, (B, n, dim + H), and the classifier's logits for full texts."""
        words = words.to(tokens.device)
        return cls(readout, words.sums(tokens), logits.float().log_softmax(-1), words.mask)

    @full_precision
    def log_probabilities(self, coalitions: Tensor) -> Tensor:
        """log p(C), (B, K, classes), of coalitions of words (B, K, W)."""
        members = (coalitions.to(self.mask.device) & self.mask[:, None]).to(self.features)
        return self._log_probabilities(members @ self.features, self._offset())

    def game(self, target: Tensor | None = None) -> SumGame:
        """v(C) = p_y(C), for the class that the classifier decides for or that `target`, (B,), names."""
        classes = self.full.argmax(-1) if target is None else target.to(self.full.device)
        offset = self._offset()

        def value(sums: Tensor) -> Tensor:
            probabilities = self._log_probabilities(sums, offset).exp()  # (B, K, classes)
            index = classes[:, None, None].expand(-1, probabilities.shape[1], 1)
            return probabilities.gather(2, index).squeeze(-1)

        return SumGame(self.features, value, self.mask)

    def _offset(self) -> Tensor:
        """log p(N) - g(N), (B, 1, classes)."""
        return self.full[:, None] - self.readout(self.features.sum(1)[:, None])

    def _log_probabilities(self, sums: Tensor, offset: Tensor) -> Tensor:
        return (self.readout(sums) + offset).log_softmax(-1)


@torch.no_grad()
def weights_digest(model: nn.Module) -> str:
    """sha256 of a model's weights as float16, so that it is the same on every device and in either precision."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        stored = value.detach().to("cpu", torch.float16) if value.is_floating_point() else value.detach().cpu()
        digest.update(stored.contiguous().numpy().tobytes())
    return digest.hexdigest()


def default_layers(count: int) -> tuple[int, ...]:
    """Of an encoder of `count` layers: embeddings, middle and last; a word before, while and after it meets others."""
    checks.at_least("the number of layers", count, 1)
    return tuple(sorted({0, (count + 1) // 2, count}))
