"""Normalisations of vector spins, and the corruptions that retrieval has to undo."""

import math

import torch
from torch import Tensor

NORMALISATIONS = ("sphere", "layer", "standard", "none")


def unit(x: Tensor) -> Tensor:
    """Every spin to length 1; an absent spin (zero) stays absent."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-12)


def layer_norm(x: Tensor) -> Tensor:
    """x_i -> (x_i - m_i) / |x_i - m_i|, m_i: the mean of x_i's d components; an absent spin (zero) stays absent.

    This is the layer normalisation of Ba et al. and Vaswani et al., (x_i - m_i) / s_i with s_i the standard deviation
    of the components, with the gain 1 / sqrt(d) and no bias: the spin lies on the unit sphere, which ATT section II-A
    asks for, and in the plane where the components sum to zero.
    """
    return unit(x - x.mean(-1, keepdim=True))


def standardise(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Every component to mean 0 and variance 1 over the tokens (B, N, d), over the visible ones where masked.

    `mask` (B, N) is true where a token is hidden; hidden tokens come out as zero.
    """
    if mask is None:
        return (x - x.mean(1, keepdim=True)) / x.std(1, correction=0, keepdim=True).clamp(min=1e-6)
    visible = (~mask)[..., None].to(x.dtype)
    count = visible.sum(1, keepdim=True).clamp(min=1)
    mean = (x * visible).sum(1, keepdim=True) / count
    deviation = (((x - mean) * visible).square().sum(1, keepdim=True) / count).sqrt()
    return (x - mean) / deviation.clamp(min=1e-6) * visible


def hide_tokens(batch: int, n_tokens: int, fraction: float, *, generator: torch.Generator | None = None) -> Tensor:
    """A mask (B, N), true at round(fraction N) random tokens of every sample."""
    if not 0 <= fraction < 1:
        raise ValueError(f"expected a fraction of hidden tokens in [0, 1), got {fraction}")
    device = None if generator is None else generator.device
    order = torch.rand(batch, n_tokens, generator=generator, device=device).argsort(1)
    return order < round(fraction * n_tokens)


def add_noise(images: Tensor, variance: float, *, generator: torch.Generator | None = None) -> Tensor:
    """Gaussian noise on every pixel, then the noisy image rescaled about its mean to the variance of the clean one."""
    device = images.device if generator is None else generator.device
    noise = torch.randn(images.shape, generator=generator, device=device, dtype=images.dtype).to(images.device)
    noisy = images + math.sqrt(variance) * noise
    axes = tuple(range(1, images.dim()))
    mean = noisy.mean(axes, keepdim=True)
    ratio = images.std(axes, keepdim=True) / noisy.std(axes, keepdim=True)
    return (noisy - mean) * ratio + mean
