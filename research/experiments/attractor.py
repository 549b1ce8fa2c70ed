"""The experiments of the attractor paper: train every model and measure what its figures and claims are about.

A few trajectories go to `examples.safetensors` in the output folder; the numbers are returned. Trained models and
training checkpoints go to the folder `state`: a run that was stopped continues from there.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from tqdm.auto import tqdm

from research.experiments import attractor_measures as measures
from spinformer.attractor.embedding import PatchEmbedding
from spinformer.data.corruption import TASKS, corrupt, trivial_errors
from spinformer.data.images import Images
from spinformer.models.attractor import AttractorNetwork, RecurrentTransformer, VisionTransformer
from spinformer.training.attractor import backprop
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor

BARE = ("paper", "notebook", "field")
PATCHES = (2, 4)
BASELINES: dict[str, type[VisionTransformer]] = {"recurrent": RecurrentTransformer, "vit": VisionTransformer}


@dataclass(frozen=True)
class Plan:
    """How much to compute. seeds: of the bare layers, whose training is cheap; settle: steps to the attractor."""

    seeds: int = 3
    steps: int = 20
    settle: int = 200
    bare_epochs: int | None = None
    backprop_epochs: int = 40
    held_out: int = 10000
    stored: tuple[int, ...] = (10, 32, 100, 316, 1000, 3162, 10000, 50000)
    stored_steps: int = 4000
    examples: int = 6


def compute(
    images: Images, folder: Path, plan: Plan, *, state: Path | None = None, device: str = "cpu"
) -> dict[str, Any]:
    """Train on all but the last `plan.held_out` training images, and measure every model on the test images."""
    folder.mkdir(parents=True, exist_ok=True)
    state = state or folder / "state"
    if not 0 < plan.held_out < len(images.train):
        raise ValueError(f"held_out must be from 1 to {len(images.train) - 1}; got {plan.held_out}")
    train, held_out = (
        images.train[: -plan.held_out].to(device),
        images.train[-plan.held_out :][:2000].to(device),
    )
    test = images.test.to(device)
    mean = train.mean(0)
    outcome: dict[str, Any] = {
        "images": {"train": len(train), "test": len(test)},
        "trivial": trivial_predictors(test, mean),
        "bare": {},
        "backprop": {},
        "stored": {},
    }
    jobs = [(name, patch, seed) for name in BARE for patch in PATCHES for seed in range(plan.seeds)]
    models: dict[str, measures.Model] = {}
    for name, patch, seed in tqdm(jobs, desc="bare layers", leave=False, disable=None):
        network, training = bare(name, patch, seed, train, state, plan)
        record = {"training": training, **_curves(network, test, held_out, plan)}
        if seed == 0:
            record["attractor"] = measures.attractor_of(network, test, mean, plan.settle)
            models[f"{name}-{patch}"] = network
        outcome["bare"].setdefault(f"{name}-{patch}", []).append(record)
    for name in BASELINES:
        for task in TASKS:
            model, history = baseline(name, task, train, state, plan)
            models[f"{name}-{task}"] = model
            curve = measures.errors(model, test, task, plan.steps)
            outcome["backprop"][f"{name}-{task}"] = {"training": history, "parameters": _size(model), **curve}
    outcome["variance"] = _variances(models, outcome, test)
    for name in ("paper", "field"):
        outcome["stored"][name] = [
            stored(name, count, train, test, plan) for count in plan.stored if count <= len(train)
        ]
    save_file(_examples(models, test, plan), folder / "examples.safetensors")
    return outcome


def bare(
    name: str, patch: int, seed: int, train: Tensor, state: Path, plan: Plan
) -> tuple[AttractorNetwork, list[dict[str, float]]]:
    """Train a bare layer without backpropagation, or read it from `state` if it is there."""
    shape = measures.image_shape(train)
    config, recipe = preset(name, patch=patch, image=shape, seed=seed)
    recipe = replace(recipe, epochs=plan.bare_epochs or recipe.epochs)
    network = AttractorNetwork(config).to(train.device)
    checkpoint = state / f"{name}-{patch}-{seed}.pt"
    history = train_attractor(network, train, recipe, checkpoint=checkpoint, save_every=recipe.epochs)
    if seed == 0:
        network.save(state / f"{name}-{patch}.safetensors", {"recipe": str(asdict(recipe))})
    return network, history


def baseline(name: str, task: str, train: Tensor, state: Path, plan: Plan) -> tuple[VisionTransformer, list[float]]:
    """Train a transformer with backpropagation, from the checkpoint in `state` if there is one."""
    torch.manual_seed(0)
    model = BASELINES[name](measures.image_shape(train)).to(train.device)
    recipe = backprop.BackpropRecipe(task, epochs=plan.backprop_epochs)
    return model, backprop.train_transformer(model, train, recipe, checkpoint=state / f"{name}-{task}.pt")


def stored(name: str, count: int, train: Tensor, test: Tensor, plan: Plan) -> dict[str, Any]:
    """Train a network on `count` examples; returns its overlap with these and with unseen ones."""
    shape = measures.image_shape(train)
    config, recipe = preset(name, patch=4, image=shape)
    epochs = max(1, round(plan.stored_steps / -(-count // recipe.batch)))
    network = AttractorNetwork(config).to(train.device)
    train_attractor(network, train[:count], replace(recipe, epochs=epochs))
    return {
        "P": count,
        "epochs": epochs,
        "stored": measures.overlap(network, train[: min(count, 1000)], plan.steps),
        "unseen": measures.overlap(network, test[:1000], plan.steps),
    }


def _curves(network: AttractorNetwork, test: Tensor, held_out: Tensor, plan: Plan) -> dict[str, Any]:
    """Errors on test images. chosen: the error at the step that is best on held-out training images."""
    curves = {}
    for name, task, pin in (
        ("masked", "masked", False),
        ("masked, visible tokens pinned", "masked", True),
        ("noisy", "noisy", False),
    ):
        record = measures.errors(network, test, task, plan.steps, pin=pin)
        step = measures.errors(network, held_out, task, plan.steps, pin=pin)["best_step"]
        curves[name] = record | {"chosen_step": step, "chosen": record["error"][step - 1]}
    return curves


def trivial_predictors(test: Tensor, mean: Tensor, patches: Sequence[int] = PATCHES) -> dict[str, dict[str, float]]:
    """Errors of the predictors that need no model, by task and patch size."""
    errors = {}
    for patch in patches:
        cutter = PatchEmbedding(measures.image_shape(test), patch).to(test.device)
        for task in TASKS:
            corrupted = corrupt(test, task, cutter, generator=torch.Generator(test.device).manual_seed(0))
            errors[f"{task}-{patch}"] = trivial_errors(corrupted, mean)
    return errors


def _variances(models: dict[str, measures.Model], outcome: dict[str, Any], test: Tensor) -> dict[str, Any]:
    bins = torch.linspace(0, 0.25, 51)
    variances: dict[str, Any] = {"bins": bins.tolist()}
    for name in ("vit-masked", "recurrent-masked", *(f"{b}-4" for b in BARE)):
        record = outcome["backprop"].get(name) or outcome["bare"][name][0]["masked"]
        variances[name.removesuffix("-masked")] = measures.patch_variance(models[name], test, record["best_step"], bins)
    return variances


def _examples(models: dict[str, measures.Model], test: Tensor, plan: Plan) -> dict[str, Tensor]:
    """Clean, corrupted and restored images: the columns of ATT Figure 1."""
    tensors = {"clean": test[: plan.examples].cpu()}
    for name, model in models.items():
        for task in TASKS:
            if name in {f"{b}-{t}" for b in BASELINES for t in TASKS if t != task}:
                continue
            generator = torch.Generator(test.device).manual_seed(1)
            corrupted = corrupt(test[: plan.examples], task, measures.cutter_of(model), generator=generator)
            key = name.removesuffix(f"-{task}")
            tensors[f"{key}.{task}.given"] = corrupted.given.cpu()
            tensors[f"{key}.{task}.restored"] = measures.restored(model, corrupted, plan.steps).cpu()
    return {name: tensor.clone().contiguous() for name, tensor in tensors.items()}


def _size(model: VisionTransformer) -> int:
    return sum(p.numel() for p in model.parameters())
