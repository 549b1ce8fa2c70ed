"""The attractor paper's experiments: trains every model, measures, and writes what the figures are drawn from.

Into a folder goes `examples.safetensors` (a few trajectories as images); the figures are returned. Trained models
and the state of training go to another folder, `state`: a stopped run that finds it goes on where it was.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from tqdm.auto import tqdm

from spinformer.attractor.embedding import PatchEmbedding
from spinformer.data.corruption import TASKS, corrupt, trivial_errors
from spinformer.data.images import Images
from spinformer.experiments import attractor_measures as measures
from spinformer.models.vision import AttractorNetwork, RecurrentTransformer, VisionTransformer
from spinformer.training import attractor as local
from spinformer.training import vision as backprop
from spinformer.training.presets import preset

BARE = ("paper", "notebook", "field")
PATCHES = (2, 4)
BASELINES: dict[str, type[VisionTransformer]] = {"recurrent": RecurrentTransformer, "vit": VisionTransformer}


@dataclass(frozen=True)
class Plan:
    """How much to compute; `seeds` is for the bare layers, whose training is cheap."""

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
    """Everything that bars 2 and 3 ask for, on the test images; trains on what precedes the held-out images."""
    folder.mkdir(parents=True, exist_ok=True)
    state = state or folder / "state"
    if not 0 < plan.held_out < len(images.train):
        raise ValueError(f"cannot hold {plan.held_out} of {len(images.train)} training images out")
    train, held_out = (
        images.train[: -plan.held_out].to(device),
        images.train[-plan.held_out :][:2000].to(device),
    )
    test = images.test.to(device)
    mean = train.mean(0)
    outcome: dict[str, Any] = {
        "images": {"train": len(train), "test": len(test)},
        "trivial": _trivial(images.shape, test, mean),
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
    """A bare layer trained without backpropagation, or the one that `state` already has."""
    shape = (train.shape[1], train.shape[2], train.shape[3])
    config, recipe = preset(name, patch=patch, image=shape, seed=seed)
    recipe = replace(recipe, epochs=plan.bare_epochs or recipe.epochs)
    network = AttractorNetwork(config).to(train.device)
    checkpoint = state / f"{name}-{patch}-{seed}.pt"
    history = local.train(network, train, recipe, checkpoint=checkpoint, save_every=recipe.epochs)
    if seed == 0:
        network.save(state / f"{name}-{patch}.safetensors", {"recipe": str(asdict(recipe))})
    return network, history


def baseline(name: str, task: str, train: Tensor, state: Path, plan: Plan) -> tuple[VisionTransformer, list[float]]:
    """A transformer trained with backpropagation, resumed from what `state` has of it."""
    torch.manual_seed(0)
    model = BASELINES[name]((train.shape[1], train.shape[2], train.shape[3])).to(train.device)
    recipe = backprop.BackpropRecipe(task, epochs=plan.backprop_epochs)
    return model, backprop.train(model, train, recipe, checkpoint=state / f"{name}-{task}.pt")


def stored(name: str, count: int, train: Tensor, test: Tensor, plan: Plan) -> dict[str, Any]:
    """Overlap with stored and with unseen examples of a network that stores `count` of them."""
    shape = (train.shape[1], train.shape[2], train.shape[3])
    config, recipe = preset(name, patch=4, image=shape)
    epochs = max(1, round(plan.stored_steps / -(-count // recipe.batch)))
    network = AttractorNetwork(config).to(train.device)
    local.train(network, train[:count], replace(recipe, epochs=epochs))
    return {
        "P": count,
        "epochs": epochs,
        "stored": measures.overlap(network, train[: min(count, 1000)], plan.steps),
        "unseen": measures.overlap(network, test[:1000], plan.steps),
    }


def _curves(network: AttractorNetwork, test: Tensor, held_out: Tensor, plan: Plan) -> dict[str, Any]:
    """Errors on test images; `chosen` is the error at the step that is best on held-out training images."""
    found = {}
    for name, task, pin in (
        ("masked", "masked", False),
        ("masked, visible tokens pinned", "masked", True),
        ("noisy", "noisy", False),
    ):
        record = measures.errors(network, test, task, plan.steps, pin=pin)
        step = measures.errors(network, held_out, task, plan.steps, pin=pin)["best_step"]
        found[name] = record | {"chosen_step": step, "chosen": record["error"][step - 1]}
    return found


def _trivial(shape: tuple[int, int, int], test: Tensor, mean: Tensor) -> dict[str, Any]:
    found = {}
    for patch in PATCHES:
        cutter = PatchEmbedding(shape, patch).to(test.device)
        for task in TASKS:
            seen = corrupt(test, task, cutter, generator=torch.Generator(test.device).manual_seed(0))
            found[f"{task}-{patch}"] = trivial_errors(seen, mean)
    return found


def _variances(models: dict[str, measures.Model], outcome: dict[str, Any], test: Tensor) -> dict[str, Any]:
    bins = torch.linspace(0, 0.25, 51)
    found: dict[str, Any] = {"bins": bins.tolist()}
    for name in ("vit-masked", "recurrent-masked", *(f"{b}-4" for b in BARE)):
        record = outcome["backprop"].get(name) or outcome["bare"][name][0]["masked"]
        found[name.removesuffix("-masked")] = measures.patch_variance(models[name], test, record["best_step"], bins)
    return found


def _examples(models: dict[str, measures.Model], test: Tensor, plan: Plan) -> dict[str, Tensor]:
    """Clean, corrupted and restored images: the columns of Figure 1."""
    found = {"clean": test[: plan.examples].cpu()}
    for name, model in models.items():
        for task in TASKS:
            if name in {f"{b}-{t}" for b in BASELINES for t in TASKS if t != task}:
                continue
            generator = torch.Generator(test.device).manual_seed(1)
            seen = corrupt(test[: plan.examples], task, measures.cutter_of(model), generator=generator)
            key = name.removesuffix(f"-{task}")
            found[f"{key}.{task}.given"] = seen.given.cpu()
            found[f"{key}.{task}.restored"] = measures.restored(model, seen, plan.steps).cpu()
    return {name: tensor.clone().contiguous() for name, tensor in found.items()}


def _size(model: VisionTransformer) -> int:
    return sum(p.numel() for p in model.parameters())
