"""Train an attractor network: epochs over images, held-out error, several processes, resume.

Every random choice is drawn from (seed, epoch) or (seed, step), so a run that was resumed, or that several processes
share, ends at the couplings of one that was not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import SHARDS
from spinformer._base.processes import share
from spinformer._base.progress import progress_bar
from spinformer.attractor.embedding import check_images
from spinformer.attractor.gradient import energy_gradient, zeros
from spinformer.attractor.spins import hide_tokens
from spinformer.models.attractor.network import AttractorNetwork
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe, Stepper
from spinformer.training.checkpoint import Checkpoint, check_step, tensor_fingerprint
from spinformer.training.seeding import step_generator

BLOCK = 512  # images whose gradient is computed at once
CACHE = 4 << 30  # bytes of spins that are kept in memory rather than computed anew in each epoch
STRIDE = 100_003


def train_attractor(
    network: AttractorNetwork,
    images: Tensor,
    recipe: AttractorRecipe,
    *,
    held_out: Tensor | None = None,
    checkpoint: Path | None = None,
    shard: str = "none",
    save_every: int = 1,
    on_step: Callable[[int], None] | None = None,
    quiet: bool = False,
) -> list[dict[str, float]]:
    """Train in place; returns, for each epoch, the loss and the held-out error after one masked step.

    For the energy with a constant norm, the last epoch also has what `rest` measures on all images: `energy`, and how
    near a minimum the couplings are, `alignment` and `least_alignment`, mean and minimum over sites.

    checkpoint: a file that is written every `save_every` epochs, at the end and on Ctrl-C; a run that finds it
    continues from it, to the same couplings. shard: "sites" or "data", over the processes of `torchrun`; all of them
    have the same couplings at the end.
    """
    if shard not in SHARDS:
        raise ValueError(f"shard is one of {', '.join(SHARDS)}; got {shard!r}")
    checks.instance("network", network, AttractorNetwork)
    checks.instance("recipe", recipe, AttractorRecipe)
    checks.at_least("save_every", save_every, 1)
    if checkpoint is not None:
        checks.instance("checkpoint", checkpoint, Path)
    if on_step is not None:
        checks.function("on_step", on_step)
    for given in [images] if held_out is None else [images, held_out]:
        if not len(check_images(given, network.config.image)):
            raise ValueError("expected at least one image to train on, and one that is held out; got none")
    world, rank = (dist.get_world_size(), dist.get_rank()) if shard != "none" else (1, 0)
    device = network.mean.device
    network.centre(images.to(device))
    per_epoch = -(-len(images) // recipe.batch)
    couplings = network.layer.pairs
    stepper = Stepper(
        couplings,
        recipe,
        per_epoch * recipe.epochs,
        sites=_share(couplings.n_tokens, rank, world) if shard == "sites" else None,
        reduce=shard == "data",
        graph=shard == "none",
    )
    run = {"network": asdict(network.config), "recipe": asdict(recipe), "shard": shard, "processes": world}
    if checkpoint is not None:
        run["images"] = tensor_fingerprint(images)
        checkpoint = checkpoint if world == 1 else checkpoint.with_suffix(f".{rank}-of-{world}")
    file = Checkpoint(checkpoint, run)
    history: list[dict[str, float]] = []
    state = file.read()
    if state is not None:
        with file.restoring():
            stepper.restore(state["stepper"])
            history = [dict(entry) for entry in state["history"]]
            check_step("epochs", len(history), recipe.epochs)
            if not all(isinstance(value, int | float) for entry in history for value in entry.values()):
                raise ValueError("its history has losses that are no numbers")

    def snapshot() -> dict[str, object]:
        return {"history": history, "stepper": stepper.state()}

    spins = _cached_spins(network, images, device)
    start = stepper.done
    bar = progress_bar(stepper.steps, "attractor", done=start, quiet=quiet or rank > 0)
    try:
        with file.written_on_interrupt(snapshot):
            for epoch in range(start // per_epoch, recipe.epochs):
                order = torch.randperm(len(images), generator=step_generator(recipe.seed, epoch, STRIDE))
                batches = order.to(device if isinstance(spins, Tensor) else "cpu").split(recipe.batch)
                total = torch.zeros((), device=device)
                for rows in batches[stepper.done - epoch * per_epoch :]:
                    total += stepper.step(spins[rows] if isinstance(spins, Tensor) else spins(rows))
                    bar.update()
                    if on_step is not None:
                        on_step(stepper.done)
                record = {"epoch": epoch + 1, "loss": total.item() / len(batches)}
                if held_out is not None and shard != "sites":
                    record["held_out"] = first_step_error(network, held_out.to(device))
                bar.set_postfix({name: f"{value:.4g}" for name, value in record.items() if name != "epoch"})
                history.append(record)
                if epoch + 1 == recipe.epochs or (epoch + 1) % save_every == 0:
                    file.write(snapshot())
    finally:
        bar.close()
    if shard == "sites":
        _gather(stepper, world)
        if held_out is not None and history:
            history[-1]["held_out"] = first_step_error(network, held_out.to(device))
    if recipe.objective == "energy" and recipe.hold is not None and "alignment" not in history[-1]:
        energy, cosines = rest(network, images, recipe)
        history[-1] |= {"energy": energy, "alignment": cosines.mean().item(), "least_alignment": cosines.min().item()}
    return history


@torch.no_grad()
def rest(network: AttractorNetwork, images: Tensor, recipe: AttractorRecipe) -> tuple[float, Tensor]:
    """mean e_i, and cos(J, -dE/dJ) of each block whose norm is held: 1 at a minimum of the energy with this norm

    Both over all of these images, with the recipe's strength, and without TF32.
    """
    couplings, hold, device = network.layer.pairs, recipe.hold or "site", network.mean.device
    total, energy = zeros(couplings), torch.zeros((), device=device)
    with _exact_products():
        for batch in images.split(BLOCK):
            x = network.layer.step_input(network.spins(batch.to(device)))
            part, share = zeros(couplings), len(batch) / len(images)
            energy += share * energy_gradient(couplings, x, part, strength=recipe.strength, chunk=recipe.chunk)
            for name, tensor in part.items():
                total[name].add_(tensor, alpha=share)
    parts, own = couplings.storage(), couplings.lengths(couplings.storage(), hold)
    cosines = []
    for name, length in couplings.lengths(total, hold).items():
        # The gradient scaled to the length of J: |J + g|^2 = 2 |J|^2 (1 - cos)
        apart = parts[name] + total[name] * (own[name] / length.clamp(min=1e-30))
        squared = couplings.lengths({**parts, name: apart}, hold)[name].square()
        cosines.append((1 - squared / (2 * own[name].square().clamp(min=1e-30))).flatten())
    return energy.item(), torch.cat(cosines)


@contextmanager
def _exact_products() -> Iterator[None]:
    """Products of float32 matrices in float32, whatever the process has set."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@torch.no_grad()
def first_step_error(network: AttractorNetwork, images: Tensor, fraction: float = 0.3, seed: int = 0) -> float:
    """Mean square error on the hidden pixels, those of `fraction` of the tokens, after one step (ATT Eq. 1)."""
    total, count = 0.0, 0
    generator = torch.Generator().manual_seed(seed)
    for batch in images.split(256):
        mask = hide_tokens(len(batch), network.layer.n_tokens, fraction, generator=generator).to(batch.device)
        restored = network.images(network.layer.retrieve(network.spins(batch), 1, mask))
        hidden = network.embedding.hide(mask)
        total += (restored - batch)[hidden].square().sum().item()
        count += int(hidden.sum())
    return total / count


def _share(n: int, rank: int, world: int) -> range:
    """The sites of one process."""
    if world > n:
        raise ValueError(f"{world} processes cannot share {n} sites")
    return share(n, rank, world)


def _cached_spins(
    network: AttractorNetwork, images: Tensor, device: torch.device
) -> Tensor | Callable[[Tensor], Tensor]:
    """The spins of all images, or, where they need too much memory, a function of the rows."""
    size = 4 * len(images) * network.layer.n_tokens * network.layer.dim
    if size <= CACHE:
        return torch.cat([network.layer.step_input(network.spins(part.to(device))) for part in images.split(1024)])
    return lambda rows: network.layer.step_input(network.spins(images[rows].to(device)))


def _gather(stepper: Stepper, world: int) -> None:
    """Give every process the rows of all others, once, after training."""
    n = stepper.couplings.n_tokens
    for tensor in stepper.couplings.storage().values():
        for rank in range(world):
            rows = _share(n, rank, world)
            dist.broadcast(tensor[rows.start : rows.stop], src=rank)
