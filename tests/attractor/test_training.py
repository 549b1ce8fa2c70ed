"""Bar 5: resumed and sharded runs end at the couplings of one plain run; the held norm is held."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import avg_pool2d

from spinformer.attractor import reference
from spinformer.data import images as data
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe, Stepper
from spinformer.training.attractor.train import first_step_error, train_attractor

PAPER = AttractorRecipe(epochs=2)
ADAM = AttractorRecipe(epochs=2, optimiser="adam", rate=1e-3, decay="constant", clip=1.0)
FIELD = AttractorRecipe(
    objective="field",
    strength=1.0,
    epochs=2,
    optimiser="adam",
    rate=0.1,
    hold=None,
    hidden=0.3,
    noise=0.5,
)


def network(**options) -> AttractorNetwork:
    return AttractorNetwork(AttractorConfig(image=(1, 14, 14), **options))


def centred() -> AttractorNetwork:
    return network(normalisation="none", inertia=0.0, radius=0.02)


def small_digits() -> torch.Tensor:
    """At half their size, 14 x 14."""
    return avg_pool2d(data.load_images("sample").train[:330], 2)


@pytest.fixture(scope="module")
def digits() -> torch.Tensor:
    return small_digits()


def couplings_after(net: AttractorNetwork, digits: torch.Tensor, recipe: AttractorRecipe, **options) -> torch.Tensor:
    train_attractor(net, digits, recipe, quiet=True, **options)
    return net.layer.couplings.detach().clone()


@pytest.mark.parametrize(
    ("make", "recipe"), [(network, PAPER), (network, ADAM), (centred, FIELD)], ids=["energy", "adam", "field"]
)
def test_interrupted_and_resumed_ends_at_the_same_couplings(make, recipe, digits, tmp_path):
    whole = couplings_after(make(), digits, recipe)

    def stop(step: int) -> None:
        if step == 7:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        train_attractor(make(), digits, recipe, checkpoint=checkpoint, on_step=stop, quiet=True)
    again = couplings_after(make(), digits, recipe, checkpoint=checkpoint)
    assert torch.equal(again, whole)
    with pytest.raises(ValueError, match="belongs to another run; these differ: images"):
        train_attractor(make(), digits[:300], recipe, checkpoint=checkpoint, quiet=True)


SCRIPT = """
import sys, torch
from dataclasses import replace
sys.modules["transformers"] = None  # its import takes longer than the training, which does not need it
from spinformer._base.processes import start_processes
from spinformer.training.attractor.train import train_attractor
import torch.distributed as dist
sys.path.insert(0, {here!r})
from test_training import network, centred, small_digits, PAPER, FIELD
torch.set_num_threads(1)
start_processes("cpu")
digits = small_digits()
for shard in ("sites", "data"):
    for name, make, recipe in (("energy", network, PAPER), ("field", centred, FIELD)):
        net = make()
        train_attractor(net, digits, replace(recipe, epochs=1), shard=shard, quiet=True)
        if dist.get_rank() == 1:
            torch.save(net.layer.couplings.detach(), f"{{sys.argv[1]}}/{{shard}}-{{name}}.pt")
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_give_the_couplings_of_one(digits, tmp_path):
    script = tmp_path / "sharded.py"
    script.write_text(SCRIPT.format(here=str(Path(__file__).parent)))
    run = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(script),
        str(tmp_path),
    ]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, make, recipe in (("energy", network, PAPER), ("field", centred, FIELD)):
        one = couplings_after(make(), digits, replace(recipe, epochs=1))
        for shard in ("sites", "data"):
            two = torch.load(tmp_path / f"{shard}-{name}.pt")
            assert ((two - one).norm() / one.norm()).item() < 1e-5


@pytest.mark.parametrize("hold", ["site", "pair"])
def test_the_norm_is_held_and_the_energy_falls(hold, digits):
    net = network()
    before = net.layer.pairs.lengths(net.layer.pairs.storage(), hold)["weight"].clone()
    x = net.spins(digits)
    start = reference.local_energy(net.layer.couplings.detach(), x, 5.0).mean()
    history = train_attractor(net, digits, AttractorRecipe(epochs=3, hold=hold), quiet=True)
    after = net.layer.pairs.lengths(net.layer.pairs.storage(), hold)["weight"]
    assert torch.allclose(before, after, rtol=1e-4)
    assert reference.local_energy(net.layer.couplings.detach(), x, 5.0).mean() < start
    assert [r["loss"] for r in history] == sorted((r["loss"] for r in history), reverse=True)


@pytest.mark.parametrize("shape", ["full", "low-rank", "relative", "shared"])
def test_every_shape_learns_the_field(shape, digits):
    net = network(shape=shape, rank=16, normalisation="none", inertia=0.0, radius=0.02)
    untrained = first_step_error(net, digits[-100:])
    train_attractor(net, digits[:-100], AttractorRecipe(**{**FIELD.__dict__, "epochs": 12, "rate": 0.03}), quiet=True)
    assert first_step_error(net, digits[-100:]) < 0.9 * untrained


def test_a_random_subset_of_sites_moves_alone(digits):
    net = network()
    before = net.layer.couplings.detach().clone()
    stepper = Stepper(net.layer.pairs, AttractorRecipe(sites=3, optimiser="sgd", hold=None), 1)
    stepper.step(net.spins(digits[:32]))
    moved = (net.layer.couplings.detach() != before).flatten(1).any(1)
    assert int(moved.sum()) == 3


def test_bad_recipes_are_refused():
    with pytest.raises(ValueError, match="objective is one of energy, field"):
        AttractorRecipe(objective="likelihood")
    with pytest.raises(ValueError, match="epochs must be an integer of at least 1; got 0"):
        AttractorRecipe(epochs=0)
    with pytest.raises(ValueError, match="only full couplings shard"):
        Stepper(network(shape="relative").layer.pairs, AttractorRecipe(), 1, sites=range(3))
