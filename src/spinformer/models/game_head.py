"""The game head of a classifier: it predicts, from one pass, what the classifier answers of any part of a text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base import checks
from spinformer._base.choices import Form, Masking
from spinformer._base.files import atomic_files
from spinformer._base.outputs import Outputs
from spinformer._base.precision import full_precision
from spinformer._base.rng import seeded
from spinformer.data.words import Words
from spinformer.models.attending import FLOOR, AttendingMap, bounded_exp
from spinformer.models.attending_readout import AttendingReadout
from spinformer.models.identity import FILE as PROBE
from spinformer.models.identity import load_probe, same_model, save_probe
from spinformer.models.misfit import FILE as MISFIT
from spinformer.models.misfit import Misfit
from spinformer.models.outputs import offsets_of
from spinformer.models.padding import full_states
from spinformer.models.predicted_games import PredictedGames
from spinformer.models.removed import drop_removed
from spinformer.models.rounding import read_weights, round_rows
from spinformer.models.size_limits import built_for

FOLDER, CONFIG, WEIGHTS = "game", "game.json", "game.safetensors"
READ = 7  # hidden states that a game reads at most, unless it is told which


@dataclass(frozen=True)
class GameHeadConfig:
    """layers: positions in the classifier's hidden_states that the game head reads; width: d of each; classes: of the
    classifier; form: of the readout, "sums" (`Readout`) or "attending" (`AttendingReadout`, more exact and dearer);
    heads: H; dim: of the values of all H together; hidden, readout: widths of the two networks; reads: how often the
    query of the attending form reads the words; dropout: of the readout of sums; masking: how words were hidden; model:
    digest of the classifier that the game head belongs to; fading: whether the correction that makes v(N) exact fades
    with the words that are hidden (`anchored`), True in games that are learnt now, False in older ones; outputs: what
    the classifier puts out (`spinformer.models.outputs`); scale: of its scores, in whose units g is, 1 for
    probabilities; texts: 1 or 2, how many texts the classifier reads, 0 where that was not kept.
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
    form: Form = "sums"
    reads: int = 2
    outputs: Outputs = "classes"
    scale: float = 1.0
    texts: int = 0
    fading: bool = False

    @property
    def scores(self) -> int:
        """Numbers that the readout gives for each coalition: one for each class and, where it fades, one for that."""
        return self.classes + self.fading

    @property
    def state_width(self) -> int:
        """Numbers that the last layers of the readout see of each coalition."""
        return self.dim if self.form == "attending" else self.readout

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        checks.choice("form", self.form, get_args(Form))
        checks.choice("outputs", self.outputs, get_args(Outputs))
        checks.positive("scale", self.scale)
        for name in ("width", "classes", "heads", "dim", "hidden", "readout", "reads"):
            checks.at_least(name, getattr(self, name), 1)
        if self.texts not in (0, 1, 2):
            raise ValueError(f"texts must be 1 or 2, or 0 where it is not known; got {self.texts!r:.60}")
        if self.dim % self.heads:
            raise ValueError(f"dim must be a multiple of heads; got {self.dim} and {self.heads}")

    @classmethod
    def from_options(cls, **options: Any) -> "GameHeadConfig":
        """From saved options, among which may be some that no longer exist; sums were once called softmax."""
        options = drop_removed(options, scope="class")
        return cls(**options | {"form": "sums"} if options.get("form") == "softmax" else options)


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
    def forward(self, hidden_states: Sequence[Tensor], words: Words | None = None) -> Tensor:
        """a, (B, W, dim + H), summed over each word's tokens; without `words`, (B, n, dim + H), of every token.

        hidden_states: of the encoder, each (B, n, width).
        """
        layers = zip(self.norms, self.config.layers, strict=True)
        x = torch.cat([norm(hidden_states[layer].float()) for norm, layer in layers], -1)
        inner = functional.gelu(self.body(x))
        weight = bounded_exp(self.score(inner))  # e^s, (B, n, H)
        value = self.value(inner).unflatten(-1, (self.config.heads, -1))  # (B, n, H, dim / H)
        tokens = torch.cat([(weight[..., None] * value).flatten(2), weight], -1)
        return tokens if words is None else words.sums(tokens)


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
            nn.Linear(config.readout, config.scores),
        )

    @full_precision
    def forward(self, features: Tensor, members: Tensor) -> Tensor:
        """(B, K, scores) of coalitions, (B, K, W) numbers 0 or 1, of words with these features, (B, W, dim + H)."""
        return self.scores(self.states(features, members))

    @full_precision
    def states(self, features: Tensor, members: Tensor) -> Tensor:
        """What the last layer of g sees, (B, K, readout)."""
        value, weight = (members @ features).float().split([self.config.dim, self.config.heads], -1)
        weight = weight.clamp_min(0) + FLOOR
        mean = value.unflatten(-1, (self.config.heads, -1)) / weight[..., None]  # (..., H, dim / H)
        states: Tensor = self.layers[:-1](torch.cat([mean.flatten(-2), weight.log()], -1))
        return states

    @full_precision
    def scores(self, states: Tensor) -> Tensor:
        """The last layer of g."""
        scores: Tensor = self.layers[-1](states)
        return scores


class GameHead(nn.Module):
    """o(C) = g(C) + w(C) (log p(N) - g(N)),   p(C) = softmax(o(C)),   v_c(C) = p_c(C)

    For a classifier of several labels o(N) are its logits and p is their sigmoid; for one of scores o(N) and p are the
    scores, and g is in units of their spread.

    g(C): what the readout makes of the words C, with what the map took from one pass over the full text; N: all words;
    w(C): 1 for all words, and where the head is `fading` less for coalitions that are unlike them (`anchored`). So
    v_c(C), the classifier's probability of class c when it reads the words C alone, is predicted for every C from one
    pass, and v(N) is the classifier's answer exactly. v is bounded, as section 3.2 of the NeuroGame paper asks of a
    characteristic function. In the form "sums" g is a function of the coalition's sum, as there (NGT Eq. 2: f(|sum|));
    in the form "attending" the words of C read each other first. misfit: how far its values are from the classifier's
    own, None where that was not measured; probe: how the classifier behaves (`spinformer.models.identity`), so that it
    is known again in another precision, None where that was not kept.
    """

    def __init__(self, config: GameHeadConfig) -> None:
        super().__init__()
        checks.instance("config", config, GameHeadConfig)
        self.config = config
        self.misfit: Misfit | None = None
        self.probe: dict[str, Tensor] | None = None
        self.map: nn.Module = TokenMap(config) if config.form == "sums" else AttendingMap(config)
        self.readout: nn.Module = Readout(config) if config.form == "sums" else AttendingReadout(config)

    def games(self, model: nn.Module, words: Words) -> "PredictedGames":
        """The games of a batch of texts, from one pass of the frozen classifier."""
        checks.instance("model", model, nn.Module)
        checks.instance("words", words, Words)
        logits, states = full_states(model, words.inputs)
        games: PredictedGames = self(states, logits, words)
        return games

    def forward(self, hidden_states: Sequence[Tensor], logits: Tensor, words: Words) -> "PredictedGames":
        """The games of a batch, from the classifier's hidden states and logits for full texts."""
        words = words.to(logits.device)
        config, features = self.config, self.map(hidden_states, words)
        full = offsets_of(logits, config.outputs)
        vectors = _mean_state(hidden_states[config.layers[len(config.layers) // 2]], words)
        given = (config.outputs, config.scale, config.fading, vectors)
        return PredictedGames(self.readout, features, full, words.mask, *given)

    def save(self, folder: Path, *, rounded: bool = False) -> None:
        """Into `folder`/game: weights, configuration, the measured misfit, and how the classifier behaves.

        rounded: matrices in 8 bits (`spinformer.models.rounding`).
        """
        checks.instance("folder", folder, Path)
        with atomic_files(folder / FOLDER) as written:
            weights = {name: value.cpu().contiguous() for name, value in self.state_dict().items()}
            save_file(round_rows(weights) if rounded else weights, written / WEIGHTS)
            (written / CONFIG).write_text(json.dumps(asdict(self.config), indent=1) + "\n")
            if self.misfit is not None:
                self.misfit.save(written)
            if self.probe is not None:
                save_probe(written, self.probe)
        for kept, name in ((self.misfit, MISFIT), (self.probe, PROBE)):
            if kept is None:
                (folder / FOLDER / name).unlink(missing_ok=True)  # of a game that lay here before

    @classmethod
    def load(cls, folder: Path, model: nn.Module) -> "GameHead":
        """From `folder`/game; it must have been made for this model."""
        checks.instance("folder", folder, Path)
        path = folder / FOLDER
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(f"{folder} has no game head; `spinformer ground {folder} TEXTS` makes one")
        try:
            config = GameHeadConfig.from_options(**json.loads((path / CONFIG).read_text()))
            weights = read_weights(path / WEIGHTS)
        except (json.JSONDecodeError, UnicodeError, RecursionError, TypeError, SafetensorError, OSError) as error:
            raise ValueError(f"{path}: the game head is damaged ({error})") from error
        if not all(isinstance(layer, int) for layer in config.layers) or not isinstance(config.dropout, int | float):
            raise ValueError(f"{path}: the game head is damaged (layers must be numbers; got {config.layers!r:.60})")
        if not same_model(model, config.model, path):
            raise ValueError(f"{path}: this game head was made for another model than the one it lies with")
        unfit = f"{path}: the game head's weights are not those that game.json describes"
        with seeded(0):  # the weights that are replaced at once
            head = built_for(path / WEIGHTS, weights, lambda: cls(config), unfit)
        head.misfit, head.probe = Misfit.load(path), load_probe(path)
        return head.eval()


def _mean_state(states: Tensor, words: Words) -> Tensor:
    """The mean over the tokens of each text, (B, n, d) -> (B, d)."""
    present = words.inputs["attention_mask"].to(states.device).bool()[..., None]
    total = torch.where(present, states.detach().float(), 0.0).sum(1)
    return total / present.sum(1).clamp_min(1)


def built_in_game(model: nn.Module) -> GameHead | None:
    """The game head that a model was trained with, if any."""
    head = getattr(model, "game", None)
    return head if isinstance(head, GameHead) else None


def default_layers(count: int) -> tuple[int, ...]:
    """Of an encoder of `count` layers: embeddings, middle and last; for a game inside a classifier, or of few texts."""
    checks.at_least("the number of layers", count, 1)
    return tuple(sorted({0, (count + 1) // 2, count}))


def spread_layers(count: int) -> tuple[int, ...]:
    """Of an encoder of `count` layers: embeddings, last and those between, at most READ evenly spread; for a game
    that is learnt for a ready classifier.
    """
    checks.at_least("the number of layers", count, 1)
    return tuple(sorted({round(count * part / (READ - 1)) for part in range(READ)}))
