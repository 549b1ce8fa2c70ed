"""The small classifier of the package: a smaller copy of the larger one, taught by it, in 8 bits, with its own game.

Steps of a variant: a copy with fewer layers and word pieces (`smaller_copy`); training on the larger one's answers
(recipe small.yaml); rounding to 8 bits; a game head for what rounding left, rounded too; scores of what is stored.
"""

import json
import multiprocessing
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from research.experiments.nli import DEV, TRAIN, added_parameters
from research.experiments.smaller import smaller_copy
from research.paths import RECIPES
from spinformer._base import records
from spinformer._base.files import atomic_text, json_object, sha256
from spinformer._base.parallel import run_tasks
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.evaluate.answers.evaluation import evaluate
from spinformer.models.game_head import GameHead
from spinformer.models.identity import kept_states
from spinformer.models.loading import load_classifier
from spinformer.models.masked import MaskedClassifier
from spinformer.models.rounding import restore_rows, round_rows
from spinformer.models.saving import save_model
from spinformer.training.calibration import measure_misfit
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.distil import weight_files
from spinformer.training.game import HELD_OUT, GroundingOptions, hold_out, train_game_head

SETS = (DEV, "snli_test", "mnli_dev_matched")
TAUGHT = ("snli_train", "mnli_train", "mnli_train")  # as in the recipe
MAX_BYTES = 12_000_000
PIECES, POSITIONS = 7_000, 256


@dataclass(frozen=True)
class Variant:
    """layers: of the larger encoder that are kept; sizes: of the game head."""

    layers: tuple[int, ...]
    sizes: Mapping[str, int]


VARIANTS: Mapping[str, Variant] = {
    "four": Variant((0, 2, 4, 5), {"dim": 160, "hidden": 336, "readout": 320}),
    "three": Variant((0, 2, 5), {"dim": 192, "hidden": 512, "readout": 384}),
}


@dataclass(frozen=True)
class Plan:
    """teacher: folder of the larger classifier; data: the corpora; runs: where models are kept; change: options that
    replace those of the recipe; ground: those that replace the defaults of `GroundingOptions`; count: rows of each set
    that are scored, None for all.
    """

    teacher: Path
    data: Path
    runs: Path
    pieces: int = PIECES
    change: Mapping[str, Any] = field(default_factory=dict)
    ground: Mapping[str, Any] = field(default_factory=dict)
    count: int | None = None

    def source(self, *names: str) -> str:
        """Files of the corpora, joined for `load_texts`."""
        return "+".join(str(self.data / f"{name}.jsonl.gz") for name in names)

    def recipe(self, name: str) -> ClassifierRecipe:
        """The recipe of a variant, with folders and files instead of names."""
        options = {
            "encoder": str(self.start(name)),
            "near": str(self.teacher),
            "teacher": str(self.teacher),
            "train": self.source(*TAUGHT),
            "dev": self.source(DEV),
            "save_steps": 1000,
        }
        return ClassifierRecipe.read(RECIPES / "nli" / "small.yaml").change(**{**options, **self.change})

    def grounding(self, name: str) -> GroundingOptions:
        """How the game head of a variant is trained."""
        length = self.recipe(name).max_length
        usual = {"epochs": 3, "subsets": 8, "max_length": length, **VARIANTS[name].sizes}
        return GroundingOptions(**{**usual, **self.ground})

    def start(self, name: str) -> Path:
        """The folder of the untrained copy."""
        return self.runs / f"start-{name}"

    def finished(self, name: str) -> Path:
        """The folder of the variant in 8 bits, with its game."""
        return self.runs / f"small-{name}"

    def settings(self, name: str) -> dict[str, Any]:
        """What decides the result of a variant, as plain values."""
        recipe = self.recipe(name).to_dict()
        plain = {**recipe, "encoder": f"start-{name}", "near": self.teacher.name, "teacher": self.teacher.name}
        plain |= {"train": "+".join(f"{file}.jsonl.gz" for file in TAUGHT), "dev": f"{DEV}.jsonl.gz"}
        return {
            "layers": list(VARIANTS[name].layers),
            "pieces": self.pieces,
            "positions": POSITIONS,
            "teacher": [sha256(path) for path in weight_files(self.teacher)],
            "recipe": plain,
            "grounding": asdict(self.grounding(name)),
            "count": self.count,
        }


def make_variants(names: Sequence[str], plan: Plan, *, workers: int = 1) -> dict[str, dict[str, Any]]:
    """The record of every variant, made or on file, by its name; a variant that fails is reported and left out."""
    waiting = [name for name in names if not _on_file(name, plan)]
    if waiting:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:  # its memory is freed with its process
            pool.submit(prepare, waiting, plan).result()
    for number, result in run_tasks(make_variant, [(name, plan) for name in waiting], processes=workers):
        try:
            result()
        except Exception as error:
            print(f"variant {waiting[number]} failed: {error!r}", flush=True)
    return {name: records.read(name, plan.runs) for name in names if _on_file(name, plan)}


def prepare(names: Sequence[str], plan: Plan) -> None:
    """Write the untrained copies, and have the teacher answer once for all variants."""
    from spinformer.training.classifier.train import store_teacher_features

    started = time.perf_counter()
    texts = load_texts(plan.source(*TRAIN))
    columns = list(dict.fromkeys([*texts.first, *(texts.second or ())]))
    for name in names:
        folder, settings = plan.start(name), {**plan.settings(name), "texts": texts.fingerprint()}
        made = json.dumps({key: settings[key] for key in ("layers", "pieces", "positions", "teacher", "texts")})
        if not (folder / "made.json").is_file() or (folder / "made.json").read_text() != made:
            layers = VARIANTS[name].layers
            smaller_copy(plan.teacher, folder, columns, layers=layers, vocabulary=plan.pieces, positions=POSITIONS)
            atomic_text(folder / "made.json", made)
    copied = time.perf_counter()
    store_teacher_features(plan.recipe(names[0]))
    print(f"copies {copied - started:.0f} s, answers {time.perf_counter() - copied:.0f} s", flush=True)


def make_variant(name: str, plan: Plan) -> None:
    """Train, round, ground and score one variant, and write its record to `plan.runs`."""
    trained, record = _train(name, plan)
    folder = plan.finished(name)
    shutil.rmtree(folder, ignore_errors=True)
    model: Any
    model, tokenizer = load_classifier(trained)
    score = partial(_score, plan=plan, max_length=record["recipe"]["max_length"])
    before = score(model, tokenizer, (DEV,))[DEV]["accuracy"]
    save_model(model, tokenizer, folder, rounded=True)
    model, tokenizer = load_classifier(folder)
    outcome = {
        "parameters": record["parameters"],
        "added": added_parameters(model),
        "pairs": record["pairs"],
        "rows": record["rows"],
        "train_seconds": record["seconds"],
        "device": record["device"],
        "scores": score(model, tokenizer, SETS),
        "before_rounding": {DEV: before},
        **store_game(name, model, tokenizer, folder, plan),
        "history": [entry for entry in record["history"] if "eval_accuracy" in entry],
    }
    data = {Path(file).name: digest for file, digest in record["data"].items()}
    data |= {file: sha256(plan.data / file) for file in (f"{each}.jsonl.gz" for each in SETS)}
    command = "spinformer reproduce small"
    records.write(name, outcome, command=command, config=plan.settings(name), data=data, directory=plan.runs)
    accuracies = ", ".join(f"{key} {100 * scores['accuracy']:.2f}" for key, scores in outcome["scores"].items())
    print(f"{name}: {accuracies}, fit {outcome['fit']:.3f}, {outcome['bytes']:,} bytes", flush=True)


def store_game(name: str, model: Any, tokenizer: Any, folder: Path, plan: Plan) -> dict[str, Any]:
    """Learn the game of the classifier in the folder and store it there; what the record says of it.

    Its seconds are not known where a run that was stopped went on.
    """
    begun, started = (plan.runs / f"grounded-{name}").exists(), time.perf_counter()
    head, held = _ground(name, model, tokenizer, plan)
    head.save(folder, rounded=True)
    seconds = time.perf_counter() - started
    loaded = GameHead.load(folder, model)
    assert loaded.misfit is not None
    return {
        "game_parameters": sum(parameter.numel() for parameter in loaded.parameters()),
        "ground_seconds": None if begun else seconds,
        "bytes": folder_bytes(folder),
        "fit": loaded.misfit.fit,
        "held_out": len(held),
        "passes": loaded.misfit.passes,
    }


def renew_game(folder: Path, plan: Plan, record: Mapping[str, Any]) -> dict[str, Any]:
    """Learn the game of the chosen classifier, which lies in the folder, anew; the record with it."""
    name = record["outcome"]["chosen"]
    model, tokenizer = load_classifier(folder)
    told = store_game(name, model, tokenizer, folder, plan)
    if told["bytes"] > MAX_BYTES:
        raise ValueError(f"{folder} has {told['bytes']:,} bytes with its new game; at most {MAX_BYTES:,} are allowed")
    variants, configs = record["outcome"]["variants"], record["config"]
    return {
        **record,
        "outcome": {**record["outcome"], "variants": {**variants, name: {**variants[name], **told}}},
        "config": {**configs, name: {**configs[name], "grounding": asdict(plan.grounding(name))}},
    }


def choose(variants: Mapping[str, Mapping[str, Any]], largest: int = MAX_BYTES) -> str:
    """The variant with the highest accuracy on the development set of those that are small enough."""
    fitting = {name: record["outcome"] for name, record in variants.items() if record["outcome"]["bytes"] <= largest}
    if not fitting:
        sizes = {name: record["outcome"]["bytes"] for name, record in variants.items()}
        raise ValueError(f"no variant has at most {largest:,} bytes; there are {sizes}")
    return max(fitting, key=lambda name: fitting[name]["scores"][DEV]["accuracy"])


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _train(name: str, plan: Plan) -> tuple[Path, dict[str, Any]]:
    """The folder of the trained variant, and the record of its training; one that was stopped goes on."""
    from spinformer.training.classifier.train import RECIPE, RECORD, train_classifier

    output, recipe = plan.runs / f"trained-{name}", plan.recipe(name)
    begun = (output / RECIPE).is_file() and json_object(output / RECIPE) == json.loads(json.dumps(recipe.to_dict()))
    if not begun:
        for folder in (output, plan.runs / f"grounded-{name}"):
            shutil.rmtree(folder, ignore_errors=True)
    elif (output / RECORD).is_file():
        return output, json_object(output / RECORD)
    return output, train_classifier(recipe, output, resume=begun, quiet=True)


def _ground(name: str, model: Any, tokenizer: Any, plan: Plan) -> tuple[GameHead, Texts]:
    """A game head as it is stored, in 8 bits, with its misfit on texts that were held out; and these."""
    options = plan.grounding(name)
    texts = load_texts(plan.source(*TRAIN))
    texts = replace(texts.select(texts.distinct()), labels=None)
    used, held = hold_out(texts, options.seed, HELD_OUT)
    if held is None:
        raise ValueError(f"expected at least ten texts to ground on; got {len(texts)}")
    head = train_game_head(model, tokenizer, used, plan.runs / f"grounded-{name}", options, resume=True)
    head.load_state_dict(restore_rows(round_rows(head.state_dict())))
    classifier = MaskedClassifier(model, tokenizer, options.masking, batch_size=1024)
    head.misfit = measure_misfit(head, classifier, held, max_length=options.max_length, seed=options.seed)
    head.probe = kept_states(model)
    return head, held


def _score(
    model: Any, tokenizer: Any, sets: Sequence[str], *, plan: Plan, max_length: int
) -> dict[str, dict[str, Any]]:
    """Accuracy with its interval, macro F1 and calibration error on each set."""
    scores = {}
    for name in sets:
        texts = load_texts(plan.source(name))
        chosen = texts if plan.count is None else texts.select(range(min(plan.count, len(texts))))
        evaluation = evaluate(model, tokenizer, chosen, batch_size=256, max_length=max_length, progress=False)
        found = evaluation.to_dict()["scores"]
        scores[name] = {key: found[key] for key in ("accuracy", "interval", "macro_f1", "ece")}
        scores[name]["count"] = evaluation.count
    return scores


def _on_file(name: str, plan: Plan) -> bool:
    if not (plan.runs / f"{name}.json").is_file() or not plan.finished(name).is_dir():
        return False
    stored = records.read(name, plan.runs)["config"]
    return bool(stored == json.loads(json.dumps(plan.settings(name))))
