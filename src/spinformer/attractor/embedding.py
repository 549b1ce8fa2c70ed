"""Vector spins from images and back: the invertible embedding of ATT section V-A.

    p_k -> (p_k, 1 - p_k) / sqrt(p_k² + (1 - p_k)²),    s_i = the pairs of patch i,    x_i = F s_i

F (d, 2a) has orthonormal columns, drawn at random and never trained, times 1 / sqrt(a), so that |x_i| = 1.
Our names: `patch_pixels` is a (channels counted), `dim` is d, `frame` is sqrt(a) F, `n_tokens` is N.
"""

import math

import torch
from torch import Tensor, nn

from spinformer._base import checks


def check_images(images: Tensor, shape: tuple[int, int, int], *, unbounded: bool = False) -> Tensor:
    """`images` as (B, C, H, W) of `shape`; anything else is an error.

    A single image may lack the batch dimension, and images of one channel may lack the channel. `unbounded` allows
    values outside 0..1, which noisy images have.
    """
    checks.integers("shape", shape, 3, 1)
    if not torch.is_tensor(images) or not images.is_floating_point():
        kind = images.dtype if torch.is_tensor(images) else type(images).__name__
        raise TypeError(f"expected images as a floating-point tensor of values in 0..1, got {kind}")
    channels, height, width = shape
    given = tuple(images.shape)
    if images.dim() in (2, 3) and channels == 1 and given[-2:] == (height, width):
        images = images.reshape(-1, 1, height, width)
    elif given == shape:
        images = images[None]
    if images.dim() != 4 or tuple(images.shape[1:]) != shape:
        raise ValueError(f"expected images of {channels} x {height} x {width} (channels, height, width), got {given}")
    if not torch.isfinite(images).all():
        bad = int((~torch.isfinite(images)).sum())
        raise ValueError(f"expected finite pixels, got {bad} that are NaN or infinite")
    if not unbounded and images.numel() and (images.min() < 0 or images.max() > 1):
        low, high = images.min().item(), images.max().item()
        raise ValueError(f"expected pixels in 0..1, got values from {low:.4g} to {high:.4g} (divide bytes by 255)")
    return images


class PatchEmbedding(nn.Module):
    """x_i = F s_i for every patch i of an image, and the way back.

    Args:
        shape: (channels, height, width) of the images.
        patch: side of the square patches; must divide height and width.
        dim: d, at least 2a = 2 channels patch²; that by default.
        seed: of the random frame.
    """

    frame: Tensor  # (d, 2a), orthonormal columns

    def __init__(self, shape: tuple[int, int, int], patch: int, dim: int | None = None, seed: int = 0) -> None:
        super().__init__()
        checks.integers("shape", shape, 3, 1)
        checks.at_least("patch", patch, 1)
        checks.at_least("seed", seed, 0)
        if dim is not None:
            checks.at_least("dim", dim, 1)
        channels, height, width = shape
        if height % patch or width % patch:
            raise ValueError(f"a patch of side {patch} does not divide images of {height} x {width}")
        self.shape, self.patch = (channels, height, width), patch
        self.grid = (height // patch, width // patch)
        self.patch_pixels = channels * patch * patch
        self.dim = 2 * self.patch_pixels if dim is None else dim
        if self.dim < 2 * self.patch_pixels:
            raise ValueError(
                f"{self.patch_pixels} pixels a patch need at least {2 * self.patch_pixels} components, got {self.dim}"
            )
        self.n_tokens = self.grid[0] * self.grid[1]
        draw = torch.randn(self.dim, 2 * self.patch_pixels, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("frame", torch.linalg.qr(draw).Q.contiguous())

    def patches(self, images: Tensor) -> Tensor:
        """Pixels of every patch: (B, C, H, W) -> (B, N, a)."""
        checks.instance("images", images, Tensor)
        if images.dim() != 4 or tuple(images.shape[1:]) != self.shape:
            raise ValueError(f"expected images {('batch', *self.shape)}, got {tuple(images.shape)}")
        channels, (rows, columns), p = self.shape[0], self.grid, self.patch
        cut = images.reshape(-1, channels, rows, p, columns, p)
        return cut.permute(0, 2, 4, 1, 3, 5).reshape(-1, self.n_tokens, self.patch_pixels)

    def image(self, patches: Tensor) -> Tensor:
        """The inverse of `patches`: (..., N, a) -> (..., C, H, W)."""
        self._check("patches", patches, (self.n_tokens, self.patch_pixels))
        channels, (rows, columns), p = self.shape[0], self.grid, self.patch
        lead = patches.shape[:-2]
        cut = patches.reshape(-1, rows, columns, channels, p, p).permute(0, 3, 1, 4, 2, 5)
        return cut.reshape(*lead, channels, rows * p, columns * p)

    def encode(self, images: Tensor, *, unbounded: bool = False) -> Tensor:
        """Images (B, C, H, W) of values in 0..1 -> unit spins (B, N, d)."""
        images = check_images(images, self.shape, unbounded=unbounded)
        p = self.patches(images.to(self.frame.dtype))
        pairs = torch.stack((p, 1 - p), dim=-1)
        pairs = pairs / pairs.norm(dim=-1, keepdim=True)
        return pairs.flatten(-2) @ self.frame.T / math.sqrt(self.patch_pixels)

    def decode(self, spins: Tensor) -> Tensor:
        """Spins (..., N, d) of any length -> images (..., C, H, W) in 0..1.

        p = u / (u + v) of each pair (u, v). No pixel gives a pair outside the positive quadrant; such a pair is read as
        the nearer end of the arc from black to white. Spins that are not finite, of dynamics that ran away, give pixels
        that are NaN.
        """
        self.check_spins(spins)
        pairs = (spins @ self.frame).unflatten(-1, (self.patch_pixels, 2))
        u, v = pairs.unbind(-1)
        inside = u.clamp(min=0) / (u.clamp(min=0) + v.clamp(min=0)).clamp(min=torch.finfo(u.dtype).tiny)
        nearest = (u > v).to(u.dtype)
        return self.image(torch.where((u <= 0) & (v <= 0), nearest, inside))

    def check_spins(self, spins: Tensor) -> Tensor:
        """`spins`, which must be (..., N, d) in the type of the frame; anything else is an error."""
        self._check("spins", spins, (self.n_tokens, self.dim))
        checks.same_type("spins", spins, self.frame.dtype, "the embedding")
        return spins

    def hide(self, mask: Tensor) -> Tensor:
        """A mask of tokens (B, N) as a mask of pixels (B, C, H, W)."""
        self._check("mask", mask, (self.n_tokens,))
        if mask.dtype != torch.bool:
            raise TypeError(f"expected a boolean mask, got {mask.dtype}")
        return self.image(mask[..., None].expand(*mask.shape, self.patch_pixels))

    def _check(self, name: str, tensor: Tensor, last: tuple[int, ...]) -> None:
        checks.instance(name, tensor, Tensor)
        if tuple(tensor.shape[-len(last) :]) != last:
            raise ValueError(f"expected {name} (..., {', '.join(map(str, last))}), got {tuple(tensor.shape)}")
