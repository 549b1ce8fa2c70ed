"""Laws of the two layers: weights are what the documents say, whatever the batch, the padding and the order."""

from dataclasses import asdict, replace

import torch
from hypothesis import strategies as st
from torch.nn import functional

import spinformer
from spinformer.attention import (
    PRESETS,
    AttractorAttention,
    Diagnostics,
    HeadCouplings,
    NeuroGameAttention,
    NeuroGameOutput,
    Played,
    Replay,
    Settings,
)
from spinformer.attractor import NORMALISATIONS, SHAPES, reference
from spinformer.ising import Ising, MeanField
from tests.properties.cases import assert_near, generator, law, masks, numbers, seeds
from tests.properties.test_estimates import moved

DIM = 8
options = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(sorted(PRESETS)),
        "activation": st.sampled_from(["identity", "tanh", "log1p", "relu"]),
        "weighting": st.sampled_from(["uniform", "gibbs"]),
        "proposal": st.sampled_from(["uniform", "tilted", "annealed"]),
        "units": st.sampled_from(["paper", "share"]),
        "normalisation": st.sampled_from(["L1", "sum"]),
        "couplings": st.sampled_from(["auto", "dense", "linear", "none"]),
        "solver": st.sampled_from(["damped", "anderson", "sequential"]),
        "pooling": st.sampled_from(["sum", "mean"]),
        "values": st.sampled_from(["raw", "normed"]),
        "gate": st.floats(0, 1),
        "player_indices": st.sampled_from([("SV", "BV"), ("BV", "SV"), ("SV", "SV")]),
    },
)
heads = st.sampled_from([1, 2, 4])


def layer(seed: int, heads: int, **changes) -> NeuroGameAttention:
    """With random weights; torch's own generator stays as it is."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return NeuroGameAttention(DIM, heads, eval_samples=5, samples=4, **changes).eval()


@law(
    "attention.NeuroGameAttention",
    "attention.NeuroGameOutput",
    "attention.Diagnostics",
    share=20,
    n=st.integers(1, 6),
    heads=heads,
    changes=options,
    masked=st.booleans(),
    seed=seeds,
)
def test_attention_is_what_the_paper_says(n, heads, changes, masked, seed):
    """alpha = (1 + m) / 2 in [0, 1], 0 at padding; the output is the sum, or mean, of values by it."""
    one = layer(seed, heads, **changes)
    x, mask = numbers("normal", seed, 2, n, DIM, dtype=torch.float32), masks(seed, 2, n) if masked else None
    with torch.no_grad():
        out = one(x, mask)
    assert isinstance(out, NeuroGameOutput)
    inside = torch.ones(2, n) if mask is None else mask.float()
    assert_near(out.attention, (1 + out.magnetization) / 2 * inside[:, None], 1e-6, size=1)
    assert bool(((out.attention >= 0) & (out.attention <= 1)).all())
    for part in (out.attention, out.shapley, out.banzhaf, out.gate, out.fields, out.magnetization):
        assert part.shape == (2, heads, n)
        assert bool(torch.isfinite(part).all())
        assert not (part * (1 - inside)[:, None]).any()
    values = one.value(functional.layer_norm(x, (DIM,)) if one.settings.values == "normed" else x)
    pooled = torch.einsum("bhn,bnhd->bhd", out.attention, values.unflatten(-1, (heads, -1)))
    if one.settings.pooling == "mean":
        pooled = pooled / out.attention.sum(-1, keepdim=True).clamp_min(1e-7)
    assert_near(out.pooled, one.output(pooled.flatten(1)), 1e-4, size=1)
    assert isinstance(out.diagnostics, Diagnostics)
    assert bool((out.diagnostics.ess <= 5.001).all())
    assert torch.equal(out.diagnostics.converged, out.diagnostics.residual <= one.settings.tol)
    assert bool((out.diagnostics.steps <= one.settings.max_steps).all())


@law("attention.NeuroGameAttention", share=15, n=st.integers(1, 5), heads=heads, changes=options, seed=seeds)
def test_order_padding_and_batch_change_nothing(n, heads, changes, seed):
    """In evaluation, in float64: a mean field that did not converge in float32 may make much of rounding."""
    one = layer(seed, heads, **changes).double()
    x = numbers("normal", seed, n, DIM)
    padded, mask, place = moved(x, seed)
    if changes.get("solver") == "sequential":  # one spin after the other: the order may decide between fixed points
        place = place.sort().values
        padded[place] = x
    other = numbers("normal", seed + 1, 1, len(padded), DIM)
    with torch.no_grad():
        alone = one(x[None])
        batch = one(torch.cat([other, padded[None]]), torch.stack([torch.ones_like(mask), mask]))
    assert_near(batch.attention[1][:, place], alone.attention[0], 1e-5, size=1)
    assert_near(batch.pooled[1], alone.pooled[0], 1e-5, size=1)


@law("attention.Replay", "attention.Played", share=2, n=st.integers(1, 5), heads=heads, seed=seeds)
def test_what_is_replayed_is_what_the_layer_gives(n, heads, seed):
    one = layer(seed, heads)
    x = numbers("normal", seed, 2, n, DIM, dtype=torch.float32)
    mask = masks(seed, 2, n)
    with torch.no_grad():
        played, out = Replay(one)(x, mask), one(x, mask)
    assert isinstance(played, Played)
    assert_near(played.pooled, out.pooled, 1e-5, size=1)
    assert torch.equal(played.diagnostics.converged, out.diagnostics.converged)


@law(
    "attention.NeuroGameAttention",
    "NeuroGameAttention",
    share=10,
    n=st.integers(1, 5),
    heads=heads,
    changes=options,
    training=st.booleans(),
    seed=seeds,
)
def test_one_generator_gives_one_answer(n, heads, changes, training, seed):
    """And gradients that are finite; in evaluation without one, every call gives the same."""
    assert spinformer.NeuroGameAttention is NeuroGameAttention
    one = layer(seed, heads, **changes).train(training)
    x = numbers("normal", seed, 2, n, DIM, dtype=torch.float32).requires_grad_()
    first, second = (one(x, generator=generator(seed)) for _ in range(2))
    assert torch.equal(first.attention, second.attention)
    (slope,) = torch.autograd.grad(first.pooled.square().sum(), x)
    assert bool(torch.isfinite(slope).all())
    one.eval()
    assert torch.equal(one(x).pooled, one(x).pooled)
    copy = layer(seed + 1, heads, **changes)
    copy.load_state_dict(one.state_dict())
    assert torch.equal(copy(x).pooled, one(x).pooled)


@law(
    "attention.HeadCouplings",
    share=8,
    n=st.integers(1, 6),
    heads=heads,
    couplings=st.sampled_from(["dense", "linear", "none"]),
    seed=seeds,
)
def test_couplings_of_heads(n, heads, couplings, seed):
    """Symmetric, 0 on the diagonal and at padding; `matvec` is the product with `dense`."""
    x, mask = numbers("normal", seed, 2, n, DIM, dtype=torch.float32), masks(seed, 2, n)
    with torch.no_grad():
        out = layer(seed, heads, couplings=couplings)(x, mask)
    m = numbers("normal", seed, 2, heads, n, dtype=torch.float32)
    for part in (out.couplings, out.interactions):
        assert isinstance(part, HeadCouplings)
        dense = part.dense()
        assert dense.shape == (2, heads, n, n)
        assert_near(dense, dense.mT, 1e-5, size=1)
        assert not dense.diagonal(dim1=2, dim2=3).any()
        assert_near(part.matvec(m), (dense @ m[..., None]).squeeze(-1), 1e-4, size=1)
        assert not (dense * (~mask)[:, None, :, None]).any()
    assert couplings != "none" or not out.couplings.dense().any()


@law(
    "attention.Settings",
    "attention.PRESETS",
    share=8,
    n=st.integers(1, 5),
    preset=st.sampled_from(sorted(PRESETS)),
    changes=options,
    seed=seeds,
)
def test_settings(n, preset, changes, seed):
    """They are plain data: the same from their fields; and they solve by their own options."""
    changes = {name: value for name, value in changes.items() if name != "preset"}
    own = PRESETS[preset]
    made = Settings(**{**asdict(own), **changes})
    assert made == replace(own, **changes) == layer(seed, 1, preset=preset, **changes).settings
    assert PRESETS[preset] == own
    assert made.linear(4) == (made.couplings == "linear")
    ising = Ising(numbers("normal", seed, 2, n), torch.zeros(2, n, n), 1.0)
    solved = made.solve(ising)
    assert isinstance(solved, MeanField)
    assert bool((solved.residual <= made.tol).all())
    assert_near(solved.magnetization, torch.tanh(ising.fields), 1e-3, size=1)


@law(
    "attention.AttractorAttention",
    "AttractorAttention",
    share=15,
    shape=st.sampled_from(SHAPES),
    normalisation=st.sampled_from(NORMALISATIONS),
    batch=st.integers(0, 3),
    strength=st.floats(-3, 3),
    inertia=st.floats(-2, 2),
    clamp=st.none() | st.floats(-1, 2),
    seed=seeds,
)
def test_the_attractor_is_its_equations(shape, normalisation, batch, strength, inertia, clamp, seed):
    """Energies, attention, steps and closed gradients against the plain versions and autograd, in float64."""
    assert spinformer.AttractorAttention is AttractorAttention
    free = {"strength": strength, "inertia": inertia, "clamp": clamp, "normalisation": normalisation}
    one = AttractorAttention(6, 3, shape=shape, grid=(2, 3), rank=2, seed=seed, **free).double()
    x, J = numbers("normal", seed, batch, 6, 3), one.couplings.detach()
    plain = reference.local_energy(J, x, strength, clamp)
    assert_near(one.local_energy(x), plain, 1e-9, size=1)
    assert_near(one.energy(x), plain.sum(-1), 1e-9, size=1)
    weights = one.attention(x)
    assert_near(weights.sum(-1), torch.ones(batch, 6), 1e-9)
    assert not weights.diagonal(dim1=1, dim2=2).any()
    if clamp is None:
        assert_near(one.step(x), reference.step(J, x, strength, inertia), 1e-9, size=1)
    path = one.retrieve(x, 2, return_trajectory=True)
    assert path.shape == (3, batch, 6, 3)
    assert torch.equal(path[1], one(x))
    assert torch.equal(path[2], one.retrieve(x, 2))
    if not batch:
        return
    dense = J.clone().requires_grad_()
    (expected,) = torch.autograd.grad(reference.energy(dense, x, strength, clamp).mean(), dense)
    other = 1 - torch.eye(6)[..., None, None]
    assert_near(one.coupling_gradient(x) * other, expected * other, 1e-9, size=1e-3)
    energy = one.energy(x).mean()
    slopes = dict(
        zip(dict(one.pairs.named_parameters()), torch.autograd.grad(energy, list(one.pairs.parameters())), strict=True)
    )
    for name, closed in one.parameter_gradient(x).items():
        slope = slopes[name].permute(0, 2, 3, 1) if shape == "full" else slopes[name]
        assert_near(closed, slope, 1e-9, name, size=1e-3)


@law(
    "attention.AttractorAttention",
    share=12,
    shape=st.sampled_from(SHAPES),
    strength=st.floats(-4, 4),
    inertia=st.floats(0, 3),
    seed=seeds,
)
def test_a_step_of_one_spin_never_raises_its_energy(shape, strength, inertia, seed):
    """On the sphere, for an inertia that is not negative: e_i is concave in x_i, and the step maximises its slope."""
    one = AttractorAttention(
        6, 3, shape=shape, grid=(2, 3), rank=2, strength=strength, inertia=inertia, seed=seed
    ).double()
    x = functional.normalize(numbers("normal", seed, 2, 6, 3), dim=-1)
    before, after = one.local_energy(x), one(x)
    for site in range(6):
        state = x.clone()
        state[:, site] = after[:, site]
        assert bool((one.local_energy(state)[:, site] <= before[:, site] + 1e-9).all())


@law(
    "attention.AttractorAttention",
    share=10,
    shape=st.sampled_from(SHAPES),
    normalisation=st.sampled_from(NORMALISATIONS),
    pin=st.booleans(),
    steps=st.integers(0, 3),
    seed=seeds,
)
def test_hidden_tokens(shape, normalisation, pin, steps, seed):
    """What stands at a hidden token changes nothing; pinned tokens keep their values."""
    one = AttractorAttention(6, 3, shape=shape, grid=(2, 3), rank=2, normalisation=normalisation, seed=seed).double()
    x, hidden = numbers("normal", seed, 2, 6, 3), masks(seed, 2, 6)
    other = x.masked_fill(hidden[..., None], 7.0)
    found = one.retrieve(x, steps, hidden, pin=pin)
    assert torch.equal(found, one.retrieve(other, steps, hidden, pin=pin))
    if pin or not steps:
        assert torch.equal(found[~hidden], x[~hidden])
    if normalisation == "sphere" and steps and not pin:
        some = (~hidden.all(1)).double()  # where nothing is visible nothing comes of it
        assert_near(found.norm(dim=-1), some[:, None].expand(2, 6), 1e-9)
