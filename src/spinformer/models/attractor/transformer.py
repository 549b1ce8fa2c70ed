"""The two baselines of the attractor paper, trained with backpropagation (its section V-C).

    u = SA(LN(x)) + x,    x' = MLP(LN(u)) + u                                                   (ATT Eqs. 8, 9)

`RecurrentTransformer` repeats one block τ times; the positional encoding is added after the embedding and subtracted
before the output. `VisionTransformer` has `depth` different blocks and no subtraction. Hidden tokens are zero before
the positional encoding is added.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from spinformer.attractor.embedding import PatchEmbedding


class Block(nn.Module):
    """One transformer block, normalisation first."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide a width of {width}")
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, width) -> (B, N, width)."""
        batch, n, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, n, 3, self.heads, -1)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, B, heads, N, width / heads)
        mixed = scaled_dot_product_attention(*qkv.unbind(0))  # (B, heads, N, width / heads)
        u: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, n, width)) + x  # ATT Eq. 8
        result: Tensor = self.mlp(self.before_mlp(u)) + u  # ATT Eq. 9
        return result


class VisionTransformer(nn.Module):
    """`depth` blocks over patches: an image with hidden or noisy patches in, an image out."""

    recurrent = False

    def __init__(
        self, image: tuple[int, int, int], patch: int = 4, *, width: int = 128, heads: int = 4, depth: int = 5
    ) -> None:
        super().__init__()
        self.cutter = PatchEmbedding(image, patch)
        a, n = self.cutter.patch_pixels, self.cutter.n_tokens
        self.embed, self.out = nn.Linear(a, width), nn.Linear(width, a)
        self.position = nn.Parameter(0.02 * torch.randn(n, width))
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width) for _ in range(depth))

    def tokens(self, images: Tensor, mask: Tensor | None) -> Tensor:
        """Embedded patches, zero where hidden, plus the positional encoding."""
        x: Tensor = self.embed(self.cutter.patches(images))
        return (x if mask is None else x.masked_fill(mask[..., None], 0.0)) + self.position

    def forward(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, C, H, W), hidden tokens (B, N) -> (B, C, H, W)."""
        x = self.tokens(images, mask)
        for block in self.blocks:
            x = block(x)
        return self.cutter.image(self.out(x))


class RecurrentTransformer(VisionTransformer):
    """One block, repeated."""

    recurrent = True

    def __init__(self, image: tuple[int, int, int], patch: int = 4, *, width: int = 128, heads: int = 4) -> None:
        super().__init__(image, patch, width=width, heads=heads, depth=1)

    def forward(self, images: Tensor, mask: Tensor | None = None, steps: int = 5) -> Tensor:
        """The image after `steps` repetitions."""
        x = self.tokens(images, mask)
        for _ in range(steps):
            x = self.blocks[0](x)
        return self.cutter.image(self.out(x - self.position))

    def trajectory(self, images: Tensor, mask: Tensor | None, steps: int) -> list[Tensor]:
        """The images after 1..steps repetitions."""
        x, trajectory = self.tokens(images, mask), []
        for _ in range(steps):
            x = self.blocks[0](x)
            trajectory.append(self.cutter.image(self.out(x - self.position)))
        return trajectory
