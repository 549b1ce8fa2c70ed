"""Laws of vector spins: couplings of all shapes, energies and their closed gradients, normalisations, images."""

import math

import pytest
import torch
from hypothesis import strategies as st

from spinformer.attractor import (
    NORMALISATIONS,
    SHAPES,
    FullCouplings,
    LowRankSpinCouplings,
    PatchEmbedding,
    RelativeCouplings,
    SharedCouplings,
    SpinCouplings,
    add_noise,
    attention,
    check_images,
    energy_gradient,
    field_gradient,
    hide_tokens,
    layer_norm,
    local_energy,
    reference,
    standardise,
    step,
    unit,
)
from tests.properties.cases import assert_near, generator, kinds, law, masks, numbers, seeds

shapes = st.sampled_from(SHAPES)
strengths = st.floats(-3, 3)
clamps = st.none() | st.floats(-1, 2)
chunks = st.none() | st.integers(1, 9)
N, D = 6, 3


def couplings(shape: str, seed: int) -> SpinCouplings:
    draw = generator(seed)
    made: SpinCouplings
    if shape == "full":
        made = FullCouplings(N, D, generator=draw)
    elif shape == "relative":
        made = RelativeCouplings((2, 3), D, (seed % 2, seed % 3), generator=draw)
    else:
        made = (LowRankSpinCouplings if shape == "low-rank" else SharedCouplings)(N, D, 2, generator=draw)
    return made.double()


@law(
    "attractor.SpinCouplings",
    "attractor.FullCouplings",
    "attractor.LowRankSpinCouplings",
    "attractor.RelativeCouplings",
    "attractor.SharedCouplings",
    "attractor.SHAPES",
    share=12,
    shape=shapes,
    batch=st.integers(1, 3),
    part=st.integers(0, N - 1),
    seed=seeds,
)
def test_contractions_are_those_of_the_dense_couplings(shape, batch, part, seed):
    """scores, pull and outer of some rows, against J (N, N, d, d), whose blocks i = j are 0."""
    pairs = couplings(shape, seed)
    J, x, q = pairs.dense().detach(), numbers("normal", seed, batch, N, D), numbers("normal", seed + 1, batch, N, D)
    sites = slice(part, N)
    assert J.shape == (N, N, D, D)
    assert not J[range(N), range(N)].any()
    other = (1 - torch.eye(N, dtype=torch.float64))[sites, None]
    expected = torch.einsum("bia,ijac,bjc->ibj", q, J, x)[sites]
    assert_near(pairs.scores(q[:, sites], x, sites) * other, expected, 1e-9, size=1e-3)
    w = numbers("normal", seed + 2, N - part, batch, N)
    for weights in (w, None):
        filled = torch.ones_like(w) if weights is None else w
        pulled = torch.einsum("ibj,ijac,bjc->bia", filled * other, J[sites], x)
        assert_near(pairs.pull(weights, x, sites), pulled, 1e-9, size=1e-3)
        into = {name: torch.zeros_like(tensor) for name, tensor in pairs.storage().items()}
        pairs.outer(q[:, sites], weights, x, sites, into, 0.7)
        pairs.clear_diagonal(into)
        loss = 0.7 * torch.einsum("ibj,bia,ijac,bjc->", filled * other, q[:, sites], pairs.dense()[sites], x)
        names, parameters = zip(*pairs.named_parameters(), strict=True)
        for name, slope in zip(names, torch.autograd.grad(loss, parameters), strict=True):
            slope = slope.permute(0, 2, 3, 1) if shape == "full" else slope
            assert_near(into[name], slope, 1e-9, name, size=1e-3)
    per = "site"
    for name, length in pairs.lengths(pairs.storage(), per).items():
        assert bool(torch.isfinite(pairs.storage()[name] * length).all())


@law(
    "attractor.attention",
    "attractor.local_energy",
    "attractor.step",
    share=12,
    shape=shapes,
    batch=st.integers(0, 3),
    strength=strengths,
    inertia=strengths,
    clamp=clamps,
    chunk=chunks,
    seed=seeds,
)
def test_energies_attention_and_steps(shape, batch, strength, inertia, clamp, chunk, seed):
    """Against the plain versions; and how many sites are computed at once changes nothing."""
    pairs, x = couplings(shape, seed), numbers("normal", seed, batch, N, D)
    J = pairs.dense().detach()
    free = {"strength": strength, "clamp": clamp}
    assert_near(local_energy(pairs, x, **free, chunk=chunk), reference.local_energy(J, x, **free), 1e-9, size=1)
    alpha = attention(pairs, x, **free)
    assert_near(alpha.sum(-1), torch.ones(batch, N), 1e-9)
    assert not alpha.diagonal(dim1=1, dim2=2).any()
    assert bool((alpha >= 0).all())
    moved = step(pairs, x, inertia=inertia, **free, chunk=chunk)
    assert_near(moved, step(pairs, x, inertia=inertia, **free), 1e-9, size=1)
    spin = x.clone().requires_grad_()
    for site in range(N if batch else 0):  # the others as they are
        mixed = torch.where((torch.arange(N) == site)[:, None], spin, x)
        (slope,) = torch.autograd.grad(reference.local_energy(J, mixed, **free)[:, site].sum(), spin)
        assert_near(moved[:, site], inertia * x[:, site] - slope[:, site], 1e-9, size=1)


@law(
    "attractor.energy_gradient",
    "attractor.field_gradient",
    share=12,
    shape=shapes,
    batch=st.integers(1, 3),
    strength=strengths,
    clamp=clamps,
    chunk=chunks,
    first=st.integers(0, N - 1),
    count=st.integers(1, N),
    seed=seeds,
)
def test_closed_gradients_are_autograds(shape, batch, strength, clamp, chunk, first, count, seed):
    """Of some sites, added to what is there; the loss that they return is that of these sites."""
    pairs, x = couplings(shape, seed), numbers("normal", seed, batch, N, D)
    visible, sites = numbers("normal", seed + 1, batch, N, D), range(first, min(first + count, N))
    rows = slice(sites.start, sites.stop)
    names, parameters = zip(*pairs.named_parameters(), strict=True)
    field = reference.field_loss(pairs.dense(), x, visible, strength)  # all sites: those of some by differences
    for kind in ("energy", "field"):
        into = {name: torch.ones_like(tensor) for name, tensor in pairs.storage().items()}
        if kind == "energy":
            energies = reference.local_energy(pairs.dense(), x, strength, clamp)[:, rows]
            loss, expected = energies.sum(1).mean(), energies.mean()
            found = energy_gradient(pairs, x, into, strength=strength, clamp=clamp, sites=sites, chunk=chunk)
        else:
            share = strength / (N - 1)
            pulled = torch.einsum("ijac,bjc->bia", pairs.dense(), visible)[:, rows] * share
            error = x[:, rows] - pulled
            loss, expected = error.square().sum((1, 2)).mean() / 2, error.square().sum() / x[:, rows].square().sum()
            found = field_gradient(pairs, x, visible, into, strength=strength, sites=sites, chunk=chunk)
            if len(sites) == N:
                assert_near(loss, field.mean(), 1e-9)
        assert_near(found, expected, 1e-9, size=1e-3)
        for name, slope in zip(
            names, torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True), strict=True
        ):
            slope = slope.permute(0, 2, 3, 1) if shape == "full" else slope
            added = into[name] - 1
            if shape in ("full", "relative"):  # their diagonal is cleared, also of what was there
                pairs.clear_diagonal(slope_there := {name: slope.clone()})
                cleared = {name: torch.ones_like(slope)}
                pairs.clear_diagonal(cleared)
                assert_near(into[name], slope_there[name] + cleared[name], 1e-9, name, size=1)
            else:
                assert_near(added, slope, 1e-9, name, size=1)


@law(
    "attractor.RelativeCouplings",
    share=6,
    rows=st.integers(1, 3),
    columns=st.integers(2, 3),
    down=st.integers(0, 3),
    across=st.integers(0, 3),
    seed=seeds,
)
def test_relative_couplings_know_offsets_alone(rows, columns, down, across, seed):
    """Pairs of one offset have one block, beyond the reach 0, also on a grid of another size."""
    pairs = RelativeCouplings((rows, columns), D, (down, across), generator=generator(seed))
    for grid in ((rows, columns), (columns + 1, rows)):
        pairs.resize(grid)
        J, known = pairs.dense(), {}
        for i in range(pairs.n_tokens):
            for j in range(pairs.n_tokens):
                offset = (i // grid[1] - j // grid[1], i % grid[1] - j % grid[1])
                beyond = abs(offset[0]) > down or abs(offset[1]) > across or offset == (0, 0)
                assert not (beyond and J[i, j].any())
                assert torch.equal(known.setdefault(offset, J[i, j]), J[i, j])


@law(
    "attractor.unit",
    "attractor.layer_norm",
    "attractor.standardise",
    "attractor.NORMALISATIONS",
    share=15,
    batch=st.integers(0, 3),
    n=st.integers(1, 5),
    d=st.integers(2, 5),
    kind=kinds,
    dtype=st.sampled_from([torch.float32, torch.float64]),
    masked=st.booleans(),
    seed=seeds,
)
def test_normalisations(batch, n, d, kind, dtype, masked, seed):
    """Length 1; length 1 and mean 0; mean 0 and variance 1 over the tokens. What is 0 stays 0."""
    assert set(NORMALISATIONS) == {"sphere", "layer", "standard", "none"}
    x = numbers(kind, seed, batch, n, d, dtype=dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9
    there = x.any(-1).to(dtype)
    assert_near(unit(x).norm(dim=-1), there, tolerance, size=1)
    size = x.abs().amax(-1, keepdim=True)
    assert_near(unit(x).double() * x.double().norm(dim=-1, keepdim=True), x, tolerance)
    centred = layer_norm(x)
    assert_near(centred.sum(-1), torch.zeros(batch, n), 10 * tolerance, size=1)
    spread = (x - x.mean(-1, keepdim=True)).abs().amax(-1) > 1e-3 * size.squeeze(-1)
    assert_near(centred.norm(dim=-1)[spread], torch.ones(int(spread.sum())), tolerance, size=1)
    hidden = masks(seed, batch, n) if masked else None
    scaled = standardise(x, hidden).double()
    visible = torch.ones(batch, n).double() if hidden is None else (~hidden).double()
    count = visible.sum(1).clamp_min(1)
    assert not (scaled * (1 - visible)[..., None]).any()
    mean = scaled.sum(1) / count[:, None]
    assert_near(mean, torch.zeros(batch, d), 1e-3 if dtype == torch.float32 else 1e-6, size=1)
    if n > 1 and batch:  # tokens that are all the same do not vary
        assert not standardise(x[:, :1].expand(-1, n, -1), hidden).any()
        assert not layer_norm(x[..., :1].expand(-1, -1, d)).any()
    variance = scaled.square().sum(1) / count[:, None]
    assert bool((variance < 1 + 1e-3).all())


@law(
    "attractor.hide_tokens",
    share=6,
    batch=st.integers(0, 5),
    n=st.integers(1, 9),
    fraction=st.floats(0, 0.999),
    seed=seeds,
)
def test_as_many_tokens_are_hidden_as_asked_for(batch, n, fraction, seed):
    mask = hide_tokens(batch, n, fraction, generator=generator(seed))
    assert mask.dtype == torch.bool
    assert mask.sum(1).tolist() == [round(fraction * n)] * batch
    assert torch.equal(mask, hide_tokens(batch, n, fraction, generator=generator(seed)))


@law(
    "attractor.add_noise",
    share=6,
    batch=st.integers(0, 3),
    side=st.integers(2, 4),
    variance=st.floats(0, 5),
    flat=st.booleans(),
    seed=seeds,
)
def test_noise_keeps_the_variance(batch, side, variance, flat, seed):
    """Of each image, which without noise is as it was."""
    images = torch.rand(batch, 1, side, side, generator=generator(seed), dtype=torch.float64)
    images = torch.full_like(images, 0.3) if flat else images
    noisy = add_noise(images, variance, generator=generator(seed))
    assert_near(noisy.flatten(1).std(1), images.flatten(1).std(1), 1e-9, size=1e-3) if batch else None
    assert_near(add_noise(images, 0.0, generator=generator(seed)), images, 1e-12)
    assert torch.equal(noisy, add_noise(images, variance, generator=generator(seed)))


@law(
    "attractor.PatchEmbedding",
    "attractor.check_images",
    share=12,
    channels=st.integers(1, 2),
    patch=st.integers(1, 3),
    rows=st.integers(1, 3),
    columns=st.integers(1, 3),
    more=st.integers(0, 3),
    batch=st.integers(0, 3),
    ends=st.booleans(),
    seed=seeds,
)
def test_images_come_back(channels, patch, rows, columns, more, batch, ends, seed):
    """From unit spins of any length, also black and white ones; patches, masks and forms of images too."""
    shape = (channels, rows * patch, columns * patch)
    embedding = PatchEmbedding(shape, patch, 2 * channels * patch**2 + more, seed)
    images = torch.rand(batch, *shape, generator=generator(seed))
    images = images.round() if ends else images
    spins = embedding.encode(images)
    assert spins.shape == (batch, rows * columns, embedding.dim)
    assert_near(spins.norm(dim=-1), torch.ones(batch, rows * columns), 1e-5)
    for scale in (1.0, 1e-3, 1e3):
        assert_near(embedding.decode(scale * spins), images, 1e-4, size=1)
    assert torch.equal(embedding.image(embedding.patches(images)), images)
    hidden = masks(seed, batch, rows * columns)
    pixels = embedding.hide(hidden)
    assert torch.equal(embedding.patches(pixels).all(-1), hidden)
    assert int(pixels.sum()) == int(hidden.sum()) * embedding.patch_pixels
    assert torch.equal(check_images(images, shape), images)
    if batch:
        assert torch.equal(check_images(images[0], shape), images[:1])
        with pytest.raises(ValueError, match=r"expected pixels in 0\.\.1"):
            check_images(images + 2, shape)
        assert torch.equal(check_images(images + 2, shape, unbounded=True), images + 2)
    if channels == 1:
        assert torch.equal(check_images(images[:, 0], shape), images)
    assert math.isclose(float(embedding.frame.T[0] @ embedding.frame.T[0]), 1.0, rel_tol=1e-5)
