"""Every classifier of the inference table: trained under one harness, several seeds at once, scored on all sets."""

import json
import multiprocessing
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from spinformer import results
from spinformer.parallel import separately
from spinformer.progress import progress
from spinformer.training.recipe import WORD_HEADS, Recipe

CONFIGS = Path("configs/nli")
# Columns of the table: file name in the data folder. Choices are made on snli_dev alone.
DEV = "snli_dev"
TESTS = ("snli_test", "mnli_dev_matched", "breaking_nli", "monli", "hans_regenerated", "sick_test")
TRAIN = ("snli_train", "mnli_train")


@dataclass(frozen=True)
class Job:
    """One training run: a recipe file, what is changed in it, a seed, the files of the data folder to train on.

    part: nothing is trained; the classifier is the head `name` of the joint one that the recipe has for its encoder.
    """

    name: str
    config: str = "default"
    changes: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    train: Sequence[str] = TRAIN
    part: bool = False


@dataclass(frozen=True)
class Place:
    """Where things are: `data`, the folder of the corpora; `encoders`, short name -> folder; `vectors`; `runs`."""

    data: Path
    encoders: Mapping[str, str]
    vectors: Path | None
    runs: Path

    def source(self, *names: str) -> str:
        """Files of the data folder, joined for `load_texts`."""
        return "+".join(str(self.data / f"{name}.jsonl.gz") for name in names)


def perform(
    jobs: Sequence[Job], place: Place, *, stage: str, sets: Sequence[str], workers: int
) -> list[dict[str, Any]]:
    """Run the jobs, `workers` at a time; a job whose result is on file is not run again. Returns them in order."""
    kept = place.runs / stage
    kept.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not _on_file(kept, job, recipe_of(job, place))]
    tasks = [(job, place, kept, tuple(sets)) for job in waiting]
    for number, finish in progress(separately(run, tasks, processes=workers), stage, len(tasks)):
        try:
            finish()
        except Exception as error:  # the others go on; what failed is run again next time
            print(f"{stage}: {waiting[number].name} failed: {error!r}", flush=True)
    return [results.read(_record(kept, job).stem, kept) for job in jobs if _record(kept, job).is_file()]


def prepare(job: Job, place: Place) -> None:
    """Have the teacher of a job answer, once for all students who ask the same."""
    from spinformer.training.classifier import lesson

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:  # the memory it takes goes with its process
        pool.submit(lesson, recipe_of(job, place)).result()


def run(job: Job, place: Place, kept: Path, sets: Sequence[str]) -> None:
    """Train one job and score it on `sets`."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from spinformer.data.named import load_texts
    from spinformer.evaluate.classifier import evaluate
    from spinformer.training.classifier import train

    recipe = recipe_of(job, place)
    folder = kept / f"{job.name}-{job.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    record = _part(recipe.encoder, job.name, folder) if job.part else train(recipe, folder, quiet=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForSequenceClassification.from_pretrained(folder).to(device)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    started = time.perf_counter()
    scored, length = {}, record["recipe"]["max_length"]
    for name in sets:
        texts = load_texts(place.source(name))
        found = evaluate(model, tokenizer, texts, batch_size=256, max_length=length, progress=False)
        scored[name] = found.to_dict()
    results.write(
        _record(kept, job).stem,
        {
            "job": job.name,
            "seed": job.seed,
            "parameters": record["parameters"],
            "pairs": record["pairs"],
            "rows": record["rows"],
            "train_seconds": record["seconds"],
            "evaluate_seconds": time.perf_counter() - started,
            "device": record["device"],
            "dev": [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry],
            "scores": scored,
        },
        command="spinformer reproduce nli",
        config={
            "config": job.config,
            "changes": dict(job.changes),
            "weights": weights(recipe),
            "recipe": _portable(record["recipe"]),
        },
        data={Path(name).name: digest for name, digest in record["data"].items()},
        directory=kept,
    )
    dev = scored.get(DEV, {}).get("scores", {}).get("accuracy", float("nan"))
    print(f"{job.name} seed {job.seed}: {record['seconds']:.0f} s, {DEV} {100 * dev:.2f}", flush=True)


def _part(whole: str, head: str, folder: Path) -> dict[str, Any]:
    """Leave in `folder` a head of the joint classifier in `whole`; returns how that one was trained."""
    from transformers import AutoTokenizer

    from spinformer.models import NeuroGameForSequenceClassification
    from spinformer.training.card import write_card
    from spinformer.training.classifier import RECORD

    model = NeuroGameForSequenceClassification.from_pretrained(whole).part(head)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(whole).save_pretrained(folder)
    trained: dict[str, Any] = json.loads((Path(whole) / RECORD).read_text())
    count = sum(parameter.numel() for parameter in model.parameters())
    own = [entry for entry in trained["history"] if "eval_accuracy" not in entry]  # scores are of all heads together
    record = {**trained, "parameters": count, "part": head, "history": own}
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n")
    write_card(folder, record)
    return record


def recipe_of(job: Job, place: Place) -> Recipe:
    """The job's recipe, with folders and files in place of names."""
    recipe = Recipe.read(CONFIGS / f"{job.config}.yaml")
    changes = {
        "train": place.source(*job.train),
        "dev": place.source(DEV),
        "seed": job.seed,
        "save_steps": 0,
        **job.changes,
    }
    for option in ("encoder", "near"):
        name = changes.get(option, getattr(recipe, option))
        changes[option] = place.encoders.get(name, name)
    if recipe.head in WORD_HEADS:
        changes["vectors"] = str(place.vectors)
    return recipe.change(**changes)


def weights(recipe: Recipe) -> dict[str, list[str]]:
    """sha256 of the models in folders that a run begins with or learns from: trained anew, they make it another run."""
    from spinformer.training.teacher import weight_files

    named = {"encoder": recipe.encoder, "teacher": recipe.teacher}
    folders = {option: Path(name) for option, name in named.items() if name and Path(name).is_dir()}
    return {option: [results.sha256(path) for path in weight_files(folder)] for option, folder in folders.items()}


def _on_file(kept: Path, job: Job, recipe: Recipe) -> bool:
    """Whether this very job was run: a record of the same name with another recipe or other weights is run again."""
    if not _record(kept, job).is_file():
        return False
    config = results.read(_record(kept, job).stem, kept)["config"]
    asked = {"config": job.config, "changes": dict(job.changes), "weights": weights(recipe)}
    if not job.part:  # which has the recipe of the whole
        asked["recipe"] = _portable(recipe.to_dict())
    asked = json.loads(json.dumps(asked))
    return all(config.get(name) == value for name, value in asked.items())


def _record(kept: Path, job: Job) -> Path:
    return kept / f"{job.name}-{job.seed}.json"


def _portable(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe with file names in place of paths."""
    paths = ("encoder", "vectors", "teacher", "near")
    short = {name: Path(recipe[name]).name if recipe[name] else recipe[name] for name in paths}
    for name in ("train", "dev"):
        short[name] = "+".join(Path(part).name for part in recipe[name].split("+"))
    return {**recipe, **short}
