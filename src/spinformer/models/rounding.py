"""Weights in 8 bits: each row of a matrix as whole numbers and one scale, a quarter of the bytes of float32."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from spinformer._base.files import regular

SCALE = ".row_scale"  # ends the name of the scales of a matrix
LARGEST = 127
_KEPT_BITS = -(1 << 12)  # of a scale's float32: 12 of its 24 significant bits


def round_rows(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """w_ij = s_i q_ij,   q_ij = round(w_ij / s_i) from -127 to 127,   s_i = max over j of |w_ij| / 127

    For every matrix of floating-point numbers: q under its name, as int8, and s under its name with SCALE. Other
    tensors stay as they are. s has 12 significant bits, so that s q is exact in float32, and rounding what
    `restore_rows` gives back changes nothing.
    """
    stored: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.dim() != 2 or not value.is_floating_point():
            stored[name] = value.contiguous()
            continue
        matrix = value.detach().float()
        if not bool(torch.isfinite(matrix).all()):
            raise ValueError(f"{name} has numbers that are not finite, which cannot be stored in 8 bits")
        scale = _truncated(matrix.abs().amax(1) / LARGEST)
        divisor = torch.where(scale > 0, scale, torch.ones_like(scale))
        stored[name] = (matrix / divisor[:, None]).round().clamp(-LARGEST, LARGEST).to(torch.int8)
        stored[name + SCALE] = scale
    return stored


def restore_rows(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float32 that `round_rows` stored; a ValueError where matrices and scales do not fit each other."""
    weights = {name: value for name, value in stored.items() if not name.endswith(SCALE)}
    for name in [name for name in stored if name.endswith(SCALE)]:
        scale, matrix = stored[name].float(), weights.get(name.removesuffix(SCALE))
        if matrix is None or matrix.dtype != torch.int8 or matrix.dim() != 2 or scale.shape != matrix.shape[:1]:
            raise ValueError(f"{name} must be the scales of the rows of a matrix in 8 bits")
        if not bool(torch.isfinite(scale).all()):
            raise ValueError(f"{name} must be finite numbers")
        weights[name.removesuffix(SCALE)] = matrix.float().mul_(scale[:, None])
    for name, value in weights.items():
        if value.dtype == torch.int8:
            raise ValueError(f"{name} is in 8 bits, and there are no scales of its rows")
    return weights


def round_file(path: Path) -> None:
    """Replace the weights in a safetensors file by the same in 8 bits."""
    save_file(round_rows(load_file(path)), path, metadata={"format": "pt"})


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a safetensors file, those in 8 bits restored."""
    stored = load_file(regular(path))
    try:
        return restore_rows(stored)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def are_rounded(paths: Sequence[Path]) -> bool:
    """Whether these files of weights are one safetensors file with weights in 8 bits."""
    if len(paths) != 1 or paths[0].suffix != ".safetensors":
        return False
    with safe_open(paths[0], framework="pt") as file:
        return any(name.endswith(SCALE) for name in file.keys())  # noqa: SIM118


def _truncated(scale: Tensor) -> Tensor:
    """The largest number with 12 significant bits that is not above each scale."""
    return (scale.contiguous().view(torch.int32) & _KEPT_BITS).view(torch.float32)
