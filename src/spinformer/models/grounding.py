"""A game head for a classifier that one already has: what it would say of any part of a text, from one forward pass."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from spinformer import checks
from spinformer.data.words import Words
from spinformer.games.sums import SumGame
from spinformer.models.hidden import evaluating, hidden_states
from spinformer.models.masked import Masking
from spinformer.precision import full_precision

FOLDER, CONFIG = "game", "game.json"
# Log-weights of words are held within this, so that no word drowns another beyond what float32 resolves.
RANGE = 8.0
# Weight of the empty coalition, beside which every word counts.
FLOOR = 1e-3
# Numbers whose length is a class's value in the form `norm`.
ROOM = 32
Form = Literal["softmax", "mean", "norm"]
Scope = Literal["class", "decision"]


@dataclass(frozen=True)
class GroundingConfig:
    """layers: positions in the classifier's hidden_states that the head reads; width: d of each; classes: of the
    classifier; heads: H; dim: of all heads' values together; hidden, readout: widths of the two maps; dropout: of the
    second; form: of the value, as in `Readout`; scope: one game for each class, or one for the decision alone, whose
    rivals keep their proportions; masking: how words were taken away; model: digest of the classifier that the head
    belongs to.
    """

    layers: tuple[int, ...]
    width: int
    classes: int
    heads: int = 16
    dim: int = 256
    hidden: int = 512
    readout: int = 128
    dropout: float = 0.0
    form: Form = "softmax"
    scope: Scope = "class"
    masking: Masking = "attention"
    model: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        for name in ("width", "classes", "heads", "dim", "hidden", "readout"):
            checks.at_least(name, getattr(self, name), 1)
        checks.choice("form", self.form, get_args(Form))
        checks.choice("scope", self.scope, get_args(Scope))
        if self.dim % self.heads:
            raise ValueError(f"dim must be a multiple of heads; got {self.dim} and {self.heads}")


class TokenMap(nn.Module):
    """a_i = (e^{s_i} v_i, e^{s_i}) for each of H heads, (s_i, v_i) a network's map of what layers say of token i."""

    def __init__(self, config: GroundingConfig) -> None:
        super().__init__()
        self.config = config
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in config.layers)
        self.body = nn.Linear(config.width * len(config.layers), config.hidden)
        self.score = nn.Linear(config.hidden, config.heads)
        self.value = nn.Linear(config.hidden, config.dim)

    @full_precision
    def forward(self, hidden_states: Sequence[Tensor]) -> Tensor:
        """a, (B, n, dim + H), of every token, from the hidden states of the encoder, each (B, n, width)."""
        read = zip(self.norms, self.config.layers, strict=True)
        x = torch.cat([norm(hidden_states[layer].float()) for norm, layer in read], -1)
        inner = functional.gelu(self.body(x))
        score = self.score(inner) * float(self.config.form == "softmax")
        weight = (RANGE * torch.tanh(score / RANGE)).exp()  # e^s, (B, n, H)
        value = self.value(inner).unflatten(-1, (self.config.heads, -1))
        return torch.cat([(weight[..., None] * value).flatten(2), weight], -1)


class Readout(nn.Module):
    """g(S, D),   S_h = sum of e^{s_hi} v_hi / sum of e^{s_hi},   D_h = log sum of e^{s_hi},   over the tokens of C

    with g a network: form "softmax"; "mean" is the same with every s = 0; "norm" is the paper's own,
    g_c = |A_c sum of v_i| (its Eq. 2, a norm for each class).
    """

    def __init__(self, config: GroundingConfig) -> None:
        super().__init__()
        self.config = config
        outputs = config.classes if config.scope == "class" else 1
        self.layers: nn.Module
        if config.form == "norm":
            self.layers = nn.Linear(config.dim, outputs * ROOM, bias=False)
            return
        self.layers = nn.Sequential(
            nn.Linear(config.dim + config.heads, config.readout),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.readout, config.readout),
            nn.GELU(),
            nn.Linear(config.readout, outputs),
        )

    @full_precision
    def forward(self, sums: Tensor) -> Tensor:
        """(..., classes) of coalition sums, (..., dim + H); (..., 1) where the decision alone has a game."""
        value, weight = sums.float().split([self.config.dim, self.config.heads], -1)
        if self.config.form == "norm":
            inner = self.layers(value).unflatten(-1, (-1, ROOM))
            return (inner.square().sum(-1) + 1e-6).sqrt()
        weight = weight.clamp_min(0) + FLOOR
        mean = value.unflatten(-1, (self.config.heads, -1)) / weight[..., None]
        found: Tensor = self.layers(torch.cat([mean.flatten(-2), weight.log()], -1))
        return found


class GameHead(nn.Module):
    """o(C) = log p(N) + g(C) - g(N),   p(C) = softmax(o(C)),   v_c(C) = p_c(C)

    with g(C) the `Readout` of the sum of `TokenMap` over the tokens of the words C, taken from a pass over the *whole*
    text, and N all words. So v_c(C), the classifier's probability of class c when it sees the words C alone, is
    predicted for every C from one pass; v(N) is the classifier's own answer exactly, and v is bounded and a function of
    the coalition's sum, as section 3.2 of the NeuroGame paper asks of a characteristic function (there f(|sum|)).
    """

    def __init__(self, config: GroundingConfig) -> None:
        super().__init__()
        self.config = config
        self.map, self.readout = TokenMap(config), Readout(config)

    def games(self, model: nn.Module, words: Words) -> "GroundedGames":
        """The games of a batch of texts, from one pass of the frozen classifier."""
        with torch.no_grad(), evaluating(model):
            logits, states = hidden_states(model, words.inputs)
        found: GroundedGames = self(states, logits, words)
        return found

    def forward(self, hidden_states: Sequence[Tensor], logits: Tensor, words: Words) -> "GroundedGames":
        """The games of a batch, from the classifier's hidden states and logits for whole texts."""
        return GroundedGames.of(self.readout, self.map(hidden_states), logits, words)

    def save(self, folder: Path) -> None:
        """Into `folder`/game: weights and configuration."""
        place = folder / FOLDER
        place.mkdir(parents=True, exist_ok=True)
        save_file(
            {name: value.cpu().contiguous() for name, value in self.state_dict().items()}, place / "game.safetensors"
        )
        (place / CONFIG).write_text(json.dumps(asdict(self.config), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path, model: nn.Module) -> "GameHead":
        """From `folder`/game; it must have been made for this model."""
        place = folder / FOLDER
        if not (place / CONFIG).is_file():
            raise FileNotFoundError(f"{folder} has no game head; `spinformer ground {folder} TEXTS` makes one")
        try:
            config = GroundingConfig(**json.loads((place / CONFIG).read_text()))
            weights = load_file(place / "game.safetensors")
        except (json.JSONDecodeError, TypeError, SafetensorError, OSError) as error:
            raise ValueError(f"{place}: the game head is damaged ({error})") from error
        if config.model != digest(model):
            raise ValueError(f"{place}: this game head was made for another model than the one it lies with")
        head = cls(config)
        try:
            head.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"{place}: the game head's weights are not those that game.json describes") from error
        return head.eval()


def own_game(model: nn.Module) -> GameHead | None:
    """The game that a model was trained with."""
    found = getattr(model, "game", None)
    return found if isinstance(found, GameHead) else None


@dataclass(frozen=True)
class GroundedGames:
    """The predicted games of B texts. read: g; features: a, (B, W, dim + H), summed over a word's tokens; full:
    log p(N), (B, classes); mask: (B, W), true for real words.
    """

    read: Callable[[Tensor], Tensor]
    features: Tensor
    full: Tensor
    mask: Tensor

    @classmethod
    def of(cls, read: Callable[[Tensor], Tensor], tokens: Tensor, logits: Tensor, words: Words) -> "GroundedGames":
        """From the features of tokens, (B, n, dim + H), and the classifier's logits for whole texts."""
        words = words.to(tokens.device)
        return cls(read, words.sums(tokens), logits.float().log_softmax(-1), words.mask)

    @full_precision
    def log_probabilities(self, coalitions: Tensor) -> Tensor:
        """log p(C), (B, K, classes), of coalitions of words (B, K, W)."""
        inside = (coalitions.to(self.mask.device) & self.mask[:, None]).to(self.features)
        return self._answer(inside @ self.features, self._whole())

    def game(self, target: Tensor | None = None) -> SumGame:
        """v(C) = p_y(C), for the class that the classifier decides for or that `target`, (B,), names."""
        classes = self.full.argmax(-1) if target is None else target.to(self.full.device)
        whole = self._whole()

        def readout(sums: Tensor) -> Tensor:
            found = self._answer(sums, whole).exp()
            return found.gather(2, classes[:, None, None].expand(-1, found.shape[1], 1)).squeeze(-1)

        return SumGame(self.features, readout, self.mask)

    def _whole(self) -> Tensor:
        """log p(N) - g(N), (B, 1, classes)."""
        return self.full[:, None] - self._read(self.features.sum(1)[:, None])

    def _answer(self, sums: Tensor, whole: Tensor) -> Tensor:
        return (self._read(sums) + whole).log_softmax(-1)

    def _read(self, sums: Tensor) -> Tensor:
        """g, (B, K, classes); one that speaks of the decision alone says 0 of its rivals."""
        found = self.read(sums)
        if found.shape[-1] == self.full.shape[-1]:
            return found
        return found * functional.one_hot(self.full.argmax(-1), self.full.shape[-1]).to(found)[:, None]


@torch.no_grad()
def digest(model: nn.Module) -> str:
    """sha256 of a model's weights as float16, so that it is the same on every device and in either precision."""
    found = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        found.update(name.encode())
        kept = value.detach().to("cpu", torch.float16) if value.is_floating_point() else value.detach().cpu()
        found.update(kept.contiguous().numpy().tobytes())
    return found.hexdigest()


def default_layers(count: int) -> tuple[int, ...]:
    """Of an encoder of `count` layers: embeddings, middle and last; a word before, while and after it meets others."""
    checks.at_least("the number of layers", count, 1)
    return tuple(sorted({0, (count + 1) // 2, count}))
