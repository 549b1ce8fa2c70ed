"""Training an attractor network: epochs over images, progress, held-out error, shards, resume.

Every random choice is drawn from (seed, epoch) or (seed, step), so a run that was stopped and resumed, and
a run sharded over processes, walk the same path as one that was not.
"""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from tqdm.auto import tqdm

from spinformer.attractor.spins import hide_tokens
from spinformer.models.vision.attractor import AttractorNetwork
from spinformer.training.pseudolikelihood import Recipe, Stepper
from spinformer.whole import whole

SHARDS = ("none", "sites", "data")
CACHE = 4 << 30  # bytes of spins that may be kept instead of embedding each batch anew


def train(
    network: AttractorNetwork,
    images: Tensor,
    recipe: Recipe,
    *,
    held_out: Tensor | None = None,
    checkpoint: Path | None = None,
    shard: str = "none",
    save_every: int = 1,
    on_step: Callable[[int], None] | None = None,
    quiet: bool = False,
) -> list[dict[str, float]]:
    """Train in place; returns, for each epoch, the loss and the held-out error of a first masked step.

    With `checkpoint`, state is written there after every `save_every` epochs, at the end and on interruption,
    and a run that finds it goes on from it. `shard` is "sites" or "data" inside `torchrun`; the couplings of
    all processes are equal at the end.
    """
    if shard not in SHARDS:
        raise ValueError(f"shard is one of {', '.join(SHARDS)}; got {shard!r}")
    world, rank = (dist.get_world_size(), dist.get_rank()) if shard != "none" else (1, 0)
    device = network.mean.device
    network.centre(images.to(device))
    per_epoch = -(-len(images) // recipe.batch)
    couplings = network.layer.pairs
    sites = _share(couplings.n_tokens, rank, world) if shard == "sites" else None
    stepper = Stepper(
        couplings,
        recipe,
        per_epoch * recipe.epochs,
        sites=sites,
        reduce=shard == "data",
        graph=shard == "none",
    )
    history: list[dict[str, float]] = []
    path = checkpoint if checkpoint is None or world == 1 else checkpoint.with_suffix(f".{rank}-of-{world}")
    described = repr((asdict(network.config), asdict(recipe), len(images), shard, world))
    if path is not None and path.is_file():
        history = _resume(path, stepper, described)
    spins = _cached(network, images, device)
    start = stepper.done
    bar = tqdm(
        total=stepper.steps,
        initial=start,
        desc="attractor",
        unit="step",
        mininterval=0.5,
        dynamic_ncols=True,
        leave=False,
        disable=True if quiet or rank else None,
    )
    try:
        for epoch in range(start // per_epoch, recipe.epochs):
            order = torch.randperm(len(images), generator=torch.Generator().manual_seed(recipe.seed * 100003 + epoch))
            batches = order.to(device if isinstance(spins, Tensor) else "cpu").split(recipe.batch)
            total = torch.zeros((), device=device)
            for index in batches[stepper.done - epoch * per_epoch :]:
                x = spins[index] if isinstance(spins, Tensor) else spins(index)
                total += stepper.step(x)
                bar.update()
                if on_step is not None:
                    on_step(stepper.done)
            record = {"epoch": epoch + 1, "loss": total.item() / len(batches)}
            if held_out is not None and shard != "sites":
                record["held_out"] = first_step_error(network, held_out.to(device))
            bar.set_postfix({k: f"{v:.4g}" for k, v in record.items() if k != "epoch"})
            history.append(record)
            if path is not None and (epoch + 1 == recipe.epochs or (epoch + 1) % save_every == 0):
                _write(path, stepper, described, history)
    except KeyboardInterrupt:
        if path is not None:
            _write(path, stepper, described, history)
        raise
    finally:
        bar.close()
    if shard == "sites":
        _gather(stepper, world)
        if held_out is not None and history:
            history[-1]["held_out"] = first_step_error(network, held_out.to(device))
    return history


@torch.no_grad()
def first_step_error(network: AttractorNetwork, images: Tensor, fraction: float = 0.3, seed: int = 0) -> float:
    """Mean square error on hidden pixels (30% of the tokens) after one step."""
    missed, count = 0.0, 0
    generator = torch.Generator().manual_seed(seed)
    for batch in images.split(256):
        mask = hide_tokens(len(batch), network.layer.n_tokens, fraction, generator=generator).to(batch.device)
        restored = network.images(network.layer.retrieve(network.spins(batch), 1, mask))
        hidden = network.embedding.hide(mask)
        missed += (restored - batch)[hidden].square().sum().item()
        count += int(hidden.sum())
    return missed / count


def start_processes(device: str) -> torch.device:
    """Join the processes that `torchrun` started; each takes the GPU of its local rank, if there are GPUs."""
    if "WORLD_SIZE" not in os.environ:
        raise ValueError("sharding needs several processes: start the command with torchrun --nproc-per-node")
    cuda = device.startswith("cuda")
    dist.init_process_group("nccl" if cuda else "gloo")
    if not cuda:
        return torch.device(device)
    local = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(local)
    return local


def _share(n: int, rank: int, world: int) -> range:
    if world > n:
        raise ValueError(f"{world} processes cannot share {n} sites")
    return range(n * rank // world, n * (rank + 1) // world)


def _cached(network: AttractorNetwork, images: Tensor, device: torch.device) -> Tensor | Callable[[Tensor], Tensor]:
    size = 4 * len(images) * network.layer.n_tokens * network.layer.dim
    if size <= CACHE:
        return torch.cat([network.layer.felt(network.spins(part.to(device))) for part in images.split(1024)])
    return lambda index: network.layer.felt(network.spins(images[index].to(device)))


def _gather(stepper: Stepper, world: int) -> None:
    """Bring every process's rows to all: once, after training."""
    n = stepper.couplings.n_tokens
    for tensor in stepper.couplings.storage().values():
        for rank in range(world):
            rows = _share(n, rank, world)
            dist.broadcast(tensor[rows.start : rows.stop], src=rank)


def _write(path: Path, stepper: Stepper, described: str, history: list[dict[str, float]]) -> None:
    with whole(path) as partial:
        torch.save({"run": described, "history": history, "stepper": stepper.state()}, partial)


def _resume(path: Path, stepper: Stepper, described: str) -> list[dict[str, float]]:
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if saved["run"] != described:
        raise ValueError(
            f"{path} belongs to another run ({saved['run']}); this one is {described}. Remove it or rename it."
        )
    stepper.restore(saved["stepper"])
    history: list[dict[str, float]] = saved["history"]
    return history
