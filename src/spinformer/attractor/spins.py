"""Normalisations of vector spins, and the corruptions that retrieval has to undo."""

import math

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import power_of_two, safe_divide, widen
from spinformer._base.rng import check_generator

NORMALISATIONS = ("sphere", "layer", "standard", "none")
ROUNDING = 8  # numbers that differ by so many times the precision are the same


def unit(x: Tensor) -> Tensor:
    """Every spin (..., d) to length 1; an absent spin (zero) stays absent."""
    return on_sphere(_checked(x))


def on_sphere(x: Tensor) -> Tensor:
    """`unit` of what was checked before. Spins that are huge or tiny are divided by a power of two first."""
    x = x / power_of_two(x.detach().abs().amax(-1, keepdim=True))
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-12)


def layer_norm(x: Tensor) -> Tensor:
    """x_i -> (x_i - m_i) / |x_i - m_i|, m_i: the mean of x_i's d components; an absent spin (zero) stays absent.

    This is the layer normalisation of Ba et al. and Vaswani et al., (x_i - m_i) / s_i with s_i the standard deviation
    of the components, with the gain 1 / sqrt(d) and no bias: the spin lies on the unit sphere, which ATT section II-A
    asks for, and in the plane where the components sum to zero.
    """
    return centred_on_sphere(_checked(x))


def centred_on_sphere(x: Tensor) -> Tensor:
    """`layer_norm` of what was checked before."""
    return on_sphere(_apart(x, x.mean(-1, keepdim=True), -1))


def standardise(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Every component to mean 0 and variance 1 over the tokens (B, N, d), over the visible ones where masked.

    `mask` (B, N) is true where a token is hidden; hidden tokens come out as zero.
    """
    checks.floating("x", x, (3,))
    checks.finite("x", x)
    if mask is not None:
        check_hidden(mask, x)
    return standard(x, mask)


def standard(x: Tensor, mask: Tensor | None) -> Tensor:
    """`standardise` of what was checked before."""
    wide = widen(x)
    if not len(x):
        return x
    if mask is None:
        apart = _apart(wide, wide.mean(1, keepdim=True), 1)
        return (apart / wide.std(1, correction=0, keepdim=True).clamp(min=1e-6)).to(x.dtype)
    visible = (~mask)[..., None].to(wide.dtype)
    count = visible.sum(1, keepdim=True).clamp(min=1)
    mean = (wide * visible).sum(1, keepdim=True) / count
    apart = _apart(wide * visible, mean * visible, 1)
    deviation = (apart.square().sum(1, keepdim=True) / count).sqrt()
    return (apart / deviation.clamp(min=1e-6)).to(x.dtype)


def _apart(x: Tensor, mean: Tensor, dim: int) -> Tensor:
    """x - mean, and 0 where all that is left along `dim` is rounding: a spin, or a component, that does not vary."""
    apart = x - mean
    rounding = ROUNDING * torch.finfo(x.dtype).eps * x.detach().abs().amax(dim, keepdim=True)
    return torch.where(apart.detach().abs().amax(dim, keepdim=True) > rounding, apart, 0.0)


def hide_tokens(batch: int, n_tokens: int, fraction: float, *, generator: torch.Generator | None = None) -> Tensor:
    """A mask (B, N), true at round(fraction N) random tokens of every sample."""
    checks.at_least("batch", batch, 0)
    checks.at_least("n_tokens", n_tokens, 1)
    checks.number("fraction", fraction)
    check_generator(generator)
    if not 0 <= fraction < 1:
        raise ValueError(f"expected a fraction of hidden tokens in [0, 1), got {fraction}")
    device = None if generator is None else generator.device
    order = torch.rand(batch, n_tokens, generator=generator, device=device).argsort(1)
    return order < round(fraction * n_tokens)


def add_noise(images: Tensor, variance: float, *, generator: torch.Generator | None = None) -> Tensor:
    """Gaussian noise on every pixel, then the noisy image rescaled about its mean to the variance of the clean one.

    images: (B, ...), of at least two pixels; variance: of the noise.
    """
    checks.floating("images", images, (2, 3, 4))
    checks.number("variance", variance)
    if not 0 <= variance < math.inf:
        raise ValueError(f"variance must be finite and not negative; got {variance}")
    check_generator(generator)
    if not len(images):
        return images
    if images[0].numel() < 2:
        raise ValueError(f"expected images of at least two pixels; got {tuple(images.shape)}")
    checks.finite("images", images)
    device = images.device if generator is None else generator.device
    noise = torch.randn(images.shape, generator=generator, device=device, dtype=images.dtype).to(images.device)
    noisy = images + math.sqrt(variance) * noise
    axes = tuple(range(1, images.dim()))
    mean = noisy.mean(axes, keepdim=True)
    ratio = safe_divide(images.std(axes, keepdim=True), noisy.std(axes, keepdim=True))  # 0 where nothing varies
    return (noisy - mean) * ratio + mean


def check_hidden(mask: Tensor, x: Tensor) -> Tensor:
    """`mask`, which must be booleans (B, N) for spins (B, N, d), true where a token is hidden."""
    checks.instance("mask", mask, Tensor)
    if mask.shape != x.shape[:2] or mask.dtype != torch.bool:
        raise ValueError(f"expected a boolean mask {tuple(x.shape[:2])}, got {mask.dtype} {tuple(mask.shape)}")
    return mask


def _checked(x: Tensor) -> Tensor:
    checks.instance("x", x, Tensor)
    if not x.is_floating_point() or not x.dim() or not x.shape[-1]:
        raise TypeError(f"x must be floating-point spins (..., d); got {x.dtype} of shape {tuple(x.shape)}")
    checks.finite("x", x)
    return x
