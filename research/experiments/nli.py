"""Classifiers of docs/nli.md: each trained by a recipe, several at once, and scored on every set."""

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

from research.paths import RECIPES
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer._base.parallel import run_tasks
from spinformer._base.progress import progress
from spinformer.training.classifier.recipe import ClassifierRecipe

# Columns of the table, by file name in the data folder. Choices are made on DEV alone.
DEV = "snli_dev"
TESTS = ("snli_test", "mnli_dev_matched", "breaking_nli", "monli", "hans_regenerated", "sick_test")
TRAIN = ("snli_train", "mnli_train")
READ_SET = "snli_test"  # on whose first texts trained layers are read


@dataclass(frozen=True)
class Job:
    """One run: a recipe of research/recipes/nli, what is changed in it, a seed, the files to train on.

    part: train nothing; take the pooling head `name` of the joint classifier that is the recipe's encoder.
    """

    name: str
    config: str = "default"
    changes: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    train: Sequence[str] = TRAIN
    part: bool = False


@dataclass(frozen=True)
class Folders:
    """Input and output: `data`, the corpora; `encoders`, short name -> folder; `vectors`, a GloVe file; `runs`."""

    data: Path
    encoders: Mapping[str, str]
    vectors: Path | None
    runs: Path

    def source(self, *names: str) -> str:
        """Files of the data folder, joined for `load_texts`."""
        return "+".join(str(self.data / f"{name}.jsonl.gz") for name in names)


def run_jobs(
    jobs: Sequence[Job], folders: Folders, *, stage: str, sets: Sequence[str], workers: int, read: int = 0
) -> list[dict[str, Any]]:
    """Run the jobs, `workers` at a time, and return their records in order.

    A job with a record on file is not run again. A job that fails is reported and has no record; the others go on.
    read: the number of test texts on which a trained layer is read.
    """
    folder = folders.runs / stage
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not _on_file(folder, job, recipe_of(job, folders))]
    tasks = [(job, folders, folder, tuple(sets), read) for job in waiting]
    for number, result in progress(run_tasks(run_job, tasks, processes=workers), stage, len(tasks)):
        try:
            result()
        except Exception as error:
            print(f"{stage}: {waiting[number].name} failed: {error!r}", flush=True)
    return [records.read(_stem(job), folder) for job in jobs if (folder / f"{_stem(job)}.json").is_file()]


def prepare_teacher(job: Job, folders: Folders) -> None:
    """Have the teacher of a job answer once, for all jobs that ask it the same."""
    from spinformer.training.classifier.train import store_teacher_features

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:  # its memory is freed with its process
        pool.submit(store_teacher_features, recipe_of(job, folders)).result()


def run_job(job: Job, folders: Folders, stage_folder: Path, sets: Sequence[str], read: int = 0) -> None:
    """Train one job, score it on `sets`, read its layer on `read` texts of READ_SET, and write its record."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from research.experiments.layer_reading import read_layer
    from spinformer.data.sources import load_texts
    from spinformer.evaluate.answers.evaluation import evaluate
    from spinformer.training.classifier.train import train_classifier

    recipe = recipe_of(job, folders)
    output = stage_folder / _stem(job)
    resume = _can_resume(output, recipe)
    if not resume:
        shutil.rmtree(output, ignore_errors=True)
    record = (
        _save_part(recipe.encoder, job.name, output)
        if job.part
        else train_classifier(recipe, output, resume=resume, quiet=True)
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForSequenceClassification.from_pretrained(output, trust_remote_code=False).to(device)
    tokenizer = AutoTokenizer.from_pretrained(output, trust_remote_code=False)
    started = time.perf_counter()
    scores, max_length = {}, record["recipe"]["max_length"]
    for name in sets:
        texts = load_texts(folders.source(name))
        evaluation = evaluate(model, tokenizer, texts, batch_size=256, max_length=max_length, progress=False)
        scores[name] = evaluation.to_dict()
    evaluated = time.perf_counter()
    reading: dict[str, Any] = {}
    if read:
        texts = load_texts(folders.source(READ_SET))
        reading["reading"] = read_layer(model, tokenizer, texts.select(range(min(read, len(texts)))))
        reading["read_seconds"] = time.perf_counter() - evaluated
    records.write(
        _stem(job),
        {
            "job": job.name,
            "seed": job.seed,
            "parameters": record["parameters"],
            "added": added_parameters(model),
            "pairs": record["pairs"],
            "rows": record["rows"],
            "train_seconds": record["seconds"],
            "evaluate_seconds": evaluated - started,
            "device": record["device"],
            "dev": [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry],
            "scores": scores,
            **reading,
        },
        command="spinformer reproduce nli",
        config={
            "config": job.config,
            "changes": dict(job.changes),
            "weights": weight_digests(recipe),
            "recipe": _without_folders(record["recipe"]),
        },
        data={Path(name).name: digest for name, digest in record["data"].items()},
        directory=stage_folder,
    )
    dev = scores.get(DEV, {}).get("scores", {}).get("accuracy", float("nan"))
    print(f"{job.name} seed {job.seed}: {record['seconds']:.0f} s, {DEV} {100 * dev:.2f}", flush=True)


def added_parameters(model: Any) -> int | None:
    """Parameters of a classifier beside those of its encoder; None for a model on word vectors."""
    encoder = getattr(getattr(model, "model", None), "encoder", None)
    if encoder is None:
        return None
    return sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in encoder.parameters())


def _can_resume(output: Path, recipe: ClassifierRecipe) -> bool:
    """Whether the folder holds a run of this recipe that was stopped, with checkpoints to continue from."""
    from spinformer.training.classifier.checkpoints import last_checkpoint
    from spinformer.training.classifier.train import RECIPE, RECORD

    if not recipe.save_steps or (output / RECORD).is_file() or not (output / RECIPE).is_file():
        return False
    return last_checkpoint(output) is not None and json.loads((output / RECIPE).read_text()) == recipe.to_dict()


def _save_part(joint: str, head: str, output: Path) -> dict[str, Any]:
    """Save one pooling head of the classifier in the folder `joint`; returns the record of its training."""
    from transformers import AutoTokenizer

    from spinformer.models import NeuroGameForSequenceClassification
    from spinformer.training.classifier.model_card import write_card
    from spinformer.training.classifier.train import RECORD

    model = NeuroGameForSequenceClassification.from_pretrained(joint).part(head)
    model.save_pretrained(output)
    AutoTokenizer.from_pretrained(joint, trust_remote_code=False).save_pretrained(output)
    trained: dict[str, Any] = json.loads((Path(joint) / RECORD).read_text())
    count = sum(parameter.numel() for parameter in model.parameters())
    losses = [entry for entry in trained["history"] if "eval_accuracy" not in entry]  # scores are of all heads together
    record = {**trained, "parameters": count, "part": head, "history": losses}
    (output / RECORD).write_text(json.dumps(record, indent=1) + "\n")
    write_card(output, record)
    return record


def recipe_of(job: Job, folders: Folders) -> ClassifierRecipe:
    """The job's recipe, with the paths of encoders and files instead of their names."""
    recipe = ClassifierRecipe.read(RECIPES / "nli" / f"{job.config}.yaml")
    changes = {
        "train": folders.source(*job.train),
        "dev": folders.source(DEV),
        "seed": job.seed,
        "save_steps": 0,
        **job.changes,
    }
    for option in ("encoder", "near"):
        name = changes.get(option, getattr(recipe, option))
        changes[option] = folders.encoders.get(name, name)
    if recipe.baseline is not None:
        changes["vectors"] = str(folders.vectors)
    return recipe.change(**changes)


def weight_digests(recipe: ClassifierRecipe) -> dict[str, list[str]]:
    """sha256 of the weights that a run starts from or learns from: if they change, it is another run."""
    from spinformer.training.distil import weight_files

    sources = {"encoder": recipe.encoder, "teacher": recipe.teacher}
    folders = {option: Path(name) for option, name in sources.items() if name and Path(name).is_dir()}
    return {option: [sha256(path) for path in weight_files(folder)] for option, folder in folders.items()}


def _on_file(folder: Path, job: Job, recipe: ClassifierRecipe) -> bool:
    """Whether `folder` has a record of this job, made by the same recipe from the same weights."""
    if not (folder / f"{_stem(job)}.json").is_file():
        return False
    config = records.read(_stem(job), folder)["config"]
    expected = {"config": job.config, "changes": dict(job.changes), "weights": weight_digests(recipe)}
    if not job.part:  # a part has the recipe of the joint classifier
        expected["recipe"] = _without_folders(recipe.to_dict())
    expected = json.loads(json.dumps(expected))
    return all(config.get(name) == value for name, value in expected.items())


def _stem(job: Job) -> str:
    return f"{job.name}-{job.seed}"


def _without_folders(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe with file names instead of paths."""
    options = ("encoder", "vectors", "teacher", "near")
    names = {option: Path(recipe[option]).name if recipe[option] else recipe[option] for option in options}
    for option in ("train", "dev"):
        names[option] = "+".join(Path(part).name for part in recipe[option].split("+"))
    return {**recipe, **names}
