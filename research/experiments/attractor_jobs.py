"""The jobs of the attractor experiment: train one model, measure it. Each can run in a process of its own.

What a job measured is a record in the folder `results` of the state folder, and a few trajectories lie beside it. A
job whose record is there, with the same settings and images, is not run again.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from research.experiments import attractor_measures as measures
from research.experiments import attractor_use
from spinformer._base import records
from spinformer.attractor.embedding import PatchEmbedding
from spinformer.data.corruption import TASKS, corrupt, trivial_errors
from spinformer.data.images import load_images
from spinformer.models.attractor import AttractorNetwork, RecurrentTransformer, VisionTransformer
from spinformer.training.attractor import backprop
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor

BARE = ("paper", "notebook", "field")
JUDGED = ("paper", "paper-pair", "notebook", "field")  # settings that the claims are judged for
PATCHES = (2, 4)
BASELINES: dict[str, type[VisionTransformer]] = {"recurrent": RecurrentTransformer, "vit": VisionTransformer}
# Other forms of the setting `paper`: patch sizes, whether for every seed, changes to the network and to the recipe.
SGD = {"optimiser": "sgd", "rate": 1.0, "decay": "constant"}
VARIANTS: dict[str, tuple[tuple[int, ...], bool, dict[str, Any], dict[str, Any]]] = {
    "paper-pair": (PATCHES, True, {}, {"hold": "pair"}),
    "paper-sgd": (PATCHES, True, {}, SGD),
    "paper-adam": (PATCHES, False, {}, {"optimiser": "adam", "rate": 1e-3, "decay": "constant", "clip": 1.0}),
    "paper-layer": ((4,), False, {"normalisation": "layer"}, {}),
    "paper-shared": ((4,), False, {"shape": "shared", "rank": 32}, {"optimiser": "sgd", "rate": 0.1}),
}
HELD_OUT = 2000  # held-out images that a number of steps is chosen on


@dataclass(frozen=True)
class Plan:
    """How much to compute. seeds: of the bare layers; settle: steps to the attractor; held_out: how many of the last
    training images are not trained on; pair_epochs: of the block with 2 x 2 and with 4 x 4 patches, for the claim
    about its patches; stored: numbers of examples.
    """

    seeds: int = 3
    steps: int = 20
    settle: int = 200
    bare_epochs: int | None = None
    backprop_epochs: int = 100
    pair_epochs: int = 25
    held_out: int = 10000
    stored: tuple[int, ...] = (10, 32, 100, 316, 1000, 3162, 10000, 50000)
    stored_steps: int = 4000
    examples: int = 6


@dataclass(frozen=True)
class Job:
    """kind: "trivial", "bare", "backprop", "pair" or "stored"; name: of a setting or of a baseline."""

    kind: str
    name: str
    patch: int = 4
    seed: int = 0
    task: str = ""

    @property
    def key(self) -> str:
        """Names the record of the job."""
        parts = {"bare": f"{self.patch}-{self.seed}", "backprop": self.task, "pair": f"{self.patch}-{self.task}"}
        return "-".join(filter(None, (self.kind, self.name, parts.get(self.kind, ""))))

    @property
    def used(self) -> bool:
        """Whether λ, γ and steps are chosen for it on held-out images."""
        return self.kind == "bare" and self.name in attractor_use.SETTINGS


RELEVANT = {
    "trivial": (),
    "bare": ("steps", "settle", "bare_epochs", "examples"),
    "backprop": ("steps", "backprop_epochs", "examples"),
    "pair": ("steps", "pair_epochs"),
    "stored": ("steps", "stored", "stored_steps"),
}  # what of the plan decides the result of a kind, beside held_out


def run(job: Job, source: str, plan: Plan, state: Path, device: str) -> dict[str, Any]:
    """The record of the job: from `state`, or measured now on the images that `source` names."""
    torch.set_float32_matmul_precision("high")
    data = _load(source, plan.held_out, device)
    return records.once(
        job.key,
        lambda: MEASURES[job.kind](job, data, plan, state),
        command="spinformer reproduce attractor --stage compute",
        config=_config(job, plan, data.digests),
        directory=state / "results",
    )


def recorded(job: Job, digests: dict[str, str], plan: Plan, state: Path) -> dict[str, Any] | None:
    """The outcome of the job if its record is in `state`, made with this plan on the images with these digests."""
    if not (state / "results" / f"{job.key}.json").is_file():
        return None
    record = records.read(job.key, state / "results")
    same = record["config"] == json.loads(json.dumps(_config(job, plan, digests)))
    return dict(record["outcome"]) if same else None


def _config(job: Job, plan: Plan, digests: dict[str, str]) -> dict[str, Any]:
    return {"job": asdict(job), "plan": config_of(job, plan), "images": digests}


def config_of(job: Job, plan: Plan) -> dict[str, Any]:
    """What of the plan decides the result of the job."""
    return {name: getattr(plan, name) for name in ("held_out", *RELEVANT[job.kind])}


@dataclass(frozen=True)
class Data:
    """Images on the device. train: what is trained on; held_out: what steps are chosen on."""

    train: Tensor
    held_out: Tensor
    test: Tensor
    digests: dict[str, str]

    @property
    def mean(self) -> Tensor:
        """The mean training image."""
        return self.train.mean(0)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        return measures.image_shape(self.train)


@lru_cache(maxsize=1)
def _load(source: str, held_out: int, device: str) -> Data:
    images = load_images(source)
    if not 0 < held_out < len(images.train):
        raise ValueError(f"held_out must be from 1 to {len(images.train) - 1}; got {held_out}")
    train, rest = images.train[:-held_out], images.train[-held_out:][:HELD_OUT]
    return Data(train.to(device), rest.to(device), images.test.to(device), images.digests)


def trivial(job: Job, data: Data, plan: Plan, state: Path) -> dict[str, Any]:
    """The predictors that need no model, and how many images there are."""
    images = {"train": len(data.train), "test": len(data.test)}
    return {"images": images, "trivial": trivial_predictors(data.test, data.mean)}


def bare(job: Job, data: Data, plan: Plan, state: Path) -> dict[str, Any]:
    """Train a bare layer without backpropagation: its errors, where its dynamics ends, its variance within patches."""
    base = "paper" if job.name in VARIANTS else job.name
    *_, network_changes, recipe_changes = VARIANTS.get(job.name, ({}, {}))
    config, recipe = preset(base, patch=job.patch, image=data.shape, seed=job.seed)
    recipe = replace(recipe, epochs=plan.bare_epochs or recipe.epochs, **recipe_changes)
    network = AttractorNetwork(replace(config, **network_changes)).to(data.train.device)
    checkpoint = state / f"{job.key}.pt"
    training = train_attractor(network, data.train, recipe, checkpoint=checkpoint, save_every=recipe.epochs, quiet=True)
    network.save(state / f"{job.key}.safetensors", {"recipe": str(asdict(recipe))})
    record: dict[str, Any] = {"training": training, **_curves(network, data, plan)}
    record["attractor"] = measures.attractor_of(network, data.test, data.mean, plan.settle)
    if job.patch == 4:
        record["variance"] = measures.patch_variance(network, data.test, record["masked"]["best_step"])
    if job.used:
        record["use"] = attractor_use.tuned(network, data.held_out, data.test)
    if job.seed == 0:
        _save_examples(job, network, TASKS, data, plan, state)
    else:
        del record["attractor"]["image"]
    return record


def baseline(job: Job, data: Data, plan: Plan, state: Path) -> dict[str, Any]:
    """Train a transformer with backpropagation for one task: its errors, its variance within patches."""
    model, record = _transformer(job, data, plan, state, plan.backprop_epochs)
    if job.task == "masked":
        record["variance"] = measures.patch_variance(model, data.test, record["best_step"])
    _save_examples(job, model, (job.task,), data, plan, state)
    return record


def pair(job: Job, data: Data, plan: Plan, state: Path) -> dict[str, Any]:
    """The same with `pair_epochs`, to compare patch sizes."""
    return _transformer(job, data, plan, state, plan.pair_epochs)[1]


def stored(job: Job, data: Data, plan: Plan, state: Path) -> dict[str, Any]:
    """Train networks on few and on many examples: their overlap with these and with unseen ones."""
    rows = []
    for count in (count for count in plan.stored if count <= len(data.train)):
        config, recipe = preset(job.name, patch=job.patch, image=data.shape)
        epochs = max(1, round(plan.stored_steps / -(-count // recipe.batch)))
        network = AttractorNetwork(config).to(data.train.device)
        train_attractor(network, data.train[:count], replace(recipe, epochs=epochs), quiet=True)
        overlaps = {
            "stored": measures.overlap(network, data.train[: min(count, 1000)], plan.steps),
            "unseen": measures.overlap(network, data.test[:1000], plan.steps),
        }
        rows.append({"P": count, "epochs": epochs, **overlaps})
    return {"rows": rows}


MEASURES = {"trivial": trivial, "bare": bare, "backprop": baseline, "pair": pair, "stored": stored}


def trivial_predictors(test: Tensor, mean: Tensor, patches: Sequence[int] = PATCHES) -> dict[str, dict[str, float]]:
    """Errors of the predictors that need no model, by task and patch size."""
    errors = {}
    for patch in patches:
        cutter = PatchEmbedding(measures.image_shape(test), patch).to(test.device)
        for task in TASKS:
            corrupted = corrupt(test, task, cutter, generator=torch.Generator(test.device).manual_seed(0))
            errors[f"{task}-{patch}"] = trivial_errors(corrupted, mean)
    return errors


def _transformer(
    job: Job, data: Data, plan: Plan, state: Path, epochs: int
) -> tuple[VisionTransformer, dict[str, Any]]:
    torch.manual_seed(0)
    model = BASELINES[job.name](data.shape, job.patch).to(data.train.device)
    recipe = backprop.BackpropRecipe(job.task, epochs=epochs)
    training = backprop.train_transformer(model, data.train, recipe, checkpoint=state / f"{job.key}.pt", quiet=True)
    parameters = sum(p.numel() for p in model.parameters())
    curve = measures.errors(model, data.test, job.task, plan.steps)
    return model, {"training": training, "parameters": parameters, **curve}


def _curves(network: AttractorNetwork, data: Data, plan: Plan) -> dict[str, Any]:
    """Errors on test images. chosen: the error at the step that is best on held-out training images."""
    curves = {}
    for name, task, pin in (
        ("masked", "masked", False),
        ("masked, visible tokens pinned", "masked", True),
        ("noisy", "noisy", False),
    ):
        record = measures.errors(network, data.test, task, plan.steps, pin=pin)
        step = measures.errors(network, data.held_out, task, plan.steps, pin=pin)["best_step"]
        curves[name] = record | {"chosen_step": step, "chosen": record["error"][step - 1]}
    return curves


def _save_examples(job: Job, model: measures.Model, tasks: Sequence[str], data: Data, plan: Plan, state: Path) -> None:
    """Clean, corrupted and restored images: the columns of ATT Figure 1."""
    clean = data.test[: plan.examples]
    tensors = {"clean": clean}
    name = f"{job.name}-{job.patch}" if job.kind == "bare" else job.name
    for task in tasks:
        generator = torch.Generator(clean.device).manual_seed(1)
        corrupted = corrupt(clean, task, measures.cutter_of(model), generator=generator)
        tensors[f"{name}.{task}.given"] = corrupted.given
        tensors[f"{name}.{task}.restored"] = measures.restored(model, corrupted, plan.steps)
    path = state / "results" / f"{job.key}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.cpu().clone().contiguous() for name, tensor in tensors.items()}, path)
