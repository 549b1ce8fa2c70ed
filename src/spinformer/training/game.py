"""Train a game head: it learns what a frozen classifier answers when it sees only some of the words. No labels."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, overload

import torch

from spinformer._base import checks
from spinformer._base.choices import Masking
from spinformer._base.files import atomic_text, json_object, run_lock, sha256
from spinformer._base.outputs import Outputs
from spinformer._base.processes import rank_and_world, wait_for_all
from spinformer._base.rng import seeded
from spinformer.data.streams import TextStream
from spinformer.data.texts import Texts
from spinformer.models.game_head import FOLDER, WEIGHTS, GameHead, GameHeadConfig, default_layers, spread_layers
from spinformer.models.hidden_states import hidden_width, layer_count, resolve_layers
from spinformer.models.identity import kept_states, weights_digest
from spinformer.models.lengths import resolve_max_length
from spinformer.models.masked import Hide, MaskedClassifier
from spinformer.training.calibration import measure_misfit
from spinformer.training.checkpoint import Checkpoint, differences
from spinformer.training.game_fit import STATE, describe_run, fit_game_head
from spinformer.training.game_loss import score_scale
from spinformer.training.game_options import FEW, MANY
from spinformer.training.game_options import GroundingOptions as GroundingOptions
from spinformer.training.game_stream import fit_stream
from spinformer.training.game_time import announcement, seconds_per_text

ENDED = "run.json"
HELD_OUT = 200  # texts on which the misfit is measured


def train_game_head(
    model: Any,
    tokenizer: Any,
    texts: Texts | TextStream,
    output: Path,
    options: GroundingOptions,
    *,
    held_out: Texts | None = None,
    resume: bool = False,
    hide: Hide | None = None,
    announce: Callable[[str], None] | None = None,
) -> GameHead:
    """A new game head for a frozen classifier, trained by `fit_game_head` and saved in `output`/game.

    texts: those in memory are learnt from `options.epochs` times; a stream is read once, by `fit_stream`, which stops
    when more of it no longer helps. held_out: texts to measure its misfit on (`measure_misfit`); without them
    explanations do not know it, and a stream cannot be learnt from (`TextStream.split` gives both). resume: continue
    from the checkpoint there, to the same weights, or take the game head that the same run left there at its end; a
    folder with those of another run is refused, and so is one with a checkpoint where resume is False. No other run may
    write to the folder meanwhile. hide: the function that hides words, with masking "own". The processes
    of one run, where they were joined (`spinformer._base.processes`), share every batch, and all return the same game
    head. announce: is told beforehand what the run will do and how long it takes, and of a stream what was learnt.
    Torch's global random state is left as it was.
    """
    checks.instance("options", options, GroundingOptions)
    if (hide is not None) != (options.masking == "own"):
        raise ValueError(f"masking 'own' goes with a function that hides words; got {options.masking!r} and {hide!r}")
    checks.instance("output", output, Path)
    checks.instance("texts", texts, Texts, TextStream)
    if held_out is None and isinstance(texts, TextStream):
        raise ValueError("a stream needs held_out, texts to see on whether more of it helps; got none")
    if held_out is not None:
        checks.instance("held_out", held_out, Texts)
        if not len(held_out):
            raise ValueError("held_out must have at least one text to measure the misfit on; got none")
    with run_lock(output / FOLDER):
        masking = hide or options.masking
        return _train_game_head(model, tokenizer, texts, output, options, held_out, resume, masking, announce)


def _train_game_head(
    model: Any,
    tokenizer: Any,
    source: Texts | TextStream,
    output: Path,
    options: GroundingOptions,
    held_out: Texts | None,
    resume: bool,
    masking: Masking | Hide,
    announce: Callable[[str], None] | None,
) -> GameHead:
    state = Checkpoint(output / FOLDER / STATE, {})
    if state.present and not resume:
        others = f"name another folder, or remove {STATE} and {STATE}.previous to begin anew"
        raise FileExistsError(f"{output / FOLDER} holds a run that was stopped; resume it, {others}")
    classifier = MaskedClassifier(model, tokenizer, masking, batch_size=1024)
    options = replace(options, max_length=resolve_max_length(model, tokenizer, options.max_length or None))
    parts = iter(()) if isinstance(source, Texts) else source.parts()
    texts = source if isinstance(source, Texts) else next(parts, Texts([], source=source.source))
    if not len(texts):
        raise ValueError(f"{texts.source} has no texts; expected at least one")
    count = len(texts) if isinstance(source, Texts) else MANY
    if not isinstance(source, Texts) and not options.optimizer:
        options = replace(options, optimizer="adamw")  # Muon was not measured at a rate that stays the same
    options = options.suited(count)
    with seeded(options.seed):  # weights are drawn on the CPU
        scale = score_scale(classifier, texts, options.max_length)
        config = _config(model, options, count, texts.paired, classifier.outputs, scale)
        head = GameHead(config).to(classifier.device)
        run = describe_run(head, texts, options) | {"held_out": None if held_out is None else held_out.fingerprint()}
        ended = _EndedRun(output / FOLDER, run)
        changed = ended.changed() if resume else None
        if changed == []:
            state.remove()  # of a run that was killed while it did so
            return GameHead.load(output, model).to(classifier.device)
        if changed and not state.present:
            differ = f"belongs to another run, which has ended; these differ: {', '.join(changed)}"
            raise ValueError(f"{ended.path} {differ}; begun without resume, a run replaces its game")
        if announce is not None:
            seconds = seconds_per_text(head, classifier, texts, options)
            held = 0 if held_out is None else len(held_out)
            epochs = options.epochs if isinstance(source, Texts) else 0
            announce(announcement(len(texts), epochs, options.subsets, held, seconds))
        if isinstance(source, Texts):
            fit_game_head(head, classifier, texts, options, output=output, resume=resume)
        elif held_out is not None:
            given = (chain([texts], parts), held_out, options, run)
            learnt = fit_stream(head, classifier, *given, output=output, resume=resume)
            if announce is not None:
                announce(learnt)
        first = rank_and_world()[0] == 0
        if held_out is not None and first:
            head.misfit = measure_misfit(head, classifier, held_out, max_length=options.max_length, seed=options.seed)
    if first:
        head.probe = kept_states(model)
        head.save(output)
        ended.write()
        state.remove()
    wait_for_all()
    return head if first else GameHead.load(output, model).to(classifier.device)


@dataclass(frozen=True)
class _EndedRun:
    """The run that the game head in a folder is the end of, on file."""

    folder: Path
    run: dict[str, Any]

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / ENDED

    def write(self) -> None:
        """Say that the game head in the folder is the end of this run."""
        content = {"run": self.run, "weights": sha256(self.folder / WEIGHTS)}
        atomic_text(self.path, json.dumps(content, indent=1) + "\n")

    def changed(self) -> list[str] | None:
        """In what the run that ended there is another one; None where none ended there, or its game head is gone."""
        try:
            stored = json_object(self.path)
            if stored["weights"] != sha256(self.folder / WEIGHTS):
                return None
            return differences(stored["run"], json.loads(json.dumps(self.run)))
        except (OSError, ValueError, LookupError, AttributeError):
            return None


@overload
def hold_out(texts: Texts, seed: int, count: int = HELD_OUT) -> tuple[Texts, Texts | None]: ...


@overload
def hold_out(texts: TextStream, seed: int, count: int = HELD_OUT) -> tuple[TextStream, Texts | None]: ...


def hold_out(texts: Texts | TextStream, seed: int, count: int = HELD_OUT) -> tuple[Texts | TextStream, Texts | None]:
    """Texts to train on, and others, at most `count` and a tenth of all, to measure the misfit on; None below ten.

    Of a stream: a tenth of its first part.
    """
    if isinstance(texts, TextStream):
        return texts.split(count, seed=seed)
    held = min(count, len(texts) // 10)
    if not held:
        return texts, None
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed)).tolist()
    return texts.select(sorted(order[held:])), texts.select(sorted(order[:held]))


def _config(
    model: Any, options: GroundingOptions, count: int, paired: bool, outputs: Outputs, scale: float
) -> GameHeadConfig:
    """Of a game head that is learnt from so many texts."""
    read = default_layers if count <= FEW else spread_layers
    layers = resolve_layers(model, options.layers) if options.layers else read(layer_count(model))
    names = ("form", "heads", "dim", "hidden", "readout", "reads", "masking")
    sizes = {name: getattr(options, name) for name in names} | {"outputs": outputs, "scale": scale}
    sizes["texts"] = 2 if paired else 1
    classes = int(model.config.num_labels)
    return GameHeadConfig(layers, hidden_width(model), classes, model=weights_digest(model), fading=True, **sizes)
