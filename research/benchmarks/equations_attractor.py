"""The numbered equations of the attractor paper, each recomputed in plain form and compared with the library.

Every function returns the largest absolute difference: 4 tokens of 3 components, in float64.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from spinformer.attention import AttractorAttention
from spinformer.models.attractor.transformer import Block

TOKENS, DIM = 4, 3


@cache
def layer() -> AttractorAttention:
    """A layer with random couplings, gamma = 1 and lambda = 1."""
    made = AttractorAttention(TOKENS, DIM, seed=2).double()
    with torch.no_grad():
        made.couplings.mul_(4)
    return made


def spins() -> Tensor:
    """Two states of unit spins, (2, N, d)."""
    x = torch.randn(2, TOKENS, DIM, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return x / x.norm(dim=-1, keepdim=True)


def score(x: Tensor, i: int, j: int) -> Tensor:
    """x_i J_ij x_j of one state."""
    return x[i] @ layer().couplings.detach()[i, j] @ x[j]


def others(i: int) -> list[int]:
    """The tokens but i."""
    return [j for j in range(TOKENS) if j != i]


def weights(x: Tensor, i: int) -> dict[int, float]:
    """exp(score) over their sum, for j other than i                       ATT Eq. 2"""
    raw = {j: math.exp(float(score(x, i, j))) for j in others(i)}
    return {j: weight / sum(raw.values()) for j, weight in raw.items()}


def plain_step(x: Tensor) -> Tensor:
    """sum_j alpha_ij J_ij x_j + x_i                                       ATT Eq. 1"""
    J = layer().couplings.detach()
    pulled = [sum((a * (J[i, j] @ x[j]) for j, a in weights(x, i).items()), x[i]) for i in range(TOKENS)]
    return torch.stack(pulled)


def plain_energy(x: Tensor, i: int) -> Tensor:
    """-log sum_j exp(x_i J_ij x_j)                                        ATT Eq. 4"""
    return -torch.stack([score(x, i, j).exp() for j in others(i)]).sum().log()


def gap(ours: Tensor, plain: Tensor) -> float:
    """The largest difference."""
    return float((ours.detach() - plain).abs().max())


def dynamics() -> float:
    """ATT Eq. 1."""
    return gap(layer().step(spins()), torch.stack([plain_step(x) for x in spins()]))


def attention() -> float:
    """ATT Eq. 2."""
    worst = 0.0
    ours = layer().attention(spins()).detach()
    for b, x in enumerate(spins()):
        for i in range(TOKENS):
            worst = max(worst, *(abs(float(ours[b, i, j]) - a) for j, a in weights(x, i).items()))
    return worst


def derivative() -> float:
    """ATT Eq. 3: the step is minus the derivative of the local energy, plus x."""
    rows = []
    for x in spins():
        moved = []
        for i in range(TOKENS):
            free = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(plain_energy(free, i), free)
            moved.append(x[i] - gradient[i])
        rows.append(torch.stack(moved))
    return gap(layer().step(spins()), torch.stack(rows))


def local_energy() -> float:
    """ATT Eq. 4."""
    plain = torch.stack([torch.stack([plain_energy(x, i) for i in range(TOKENS)]) for x in spins()])
    return gap(layer().local_energy(spins()), plain)


def self_attention() -> float:
    """ATT Eq. 5 with W_V = J = sum over k of W_Q W_K: self-attention without j = i is the step without gamma x."""
    generator = torch.Generator().manual_seed(4)
    query, key = (torch.randn(2, DIM, generator=generator, dtype=torch.float64) for _ in range(2))  # (k, d)
    shared = query.T @ key  # (d, d)
    tied = AttractorAttention(TOKENS, DIM, inertia=0.0).double()
    with torch.no_grad():
        tied.couplings.copy_(shared.expand(TOKENS, TOKENS, DIM, DIM))
        for i in range(TOKENS):
            tied.couplings[i, i] = 0.0
    x = spins()
    logits = (x @ query.T) @ (x @ key.T).mT
    mixed = logits.masked_fill(torch.eye(TOKENS, dtype=torch.bool), -torch.inf).softmax(-1) @ (x @ shared.T)
    return gap(tied.step(x), mixed)


def total_energy() -> float:
    """ATT Eq. 6."""
    plain = torch.stack([torch.stack([plain_energy(x, i) for i in range(TOKENS)]).sum() for x in spins()])
    return gap(layer().energy(spins()), plain)


def loss_gradient() -> float:
    """ATT Eq. 7: the closed gradient of the mean energy over the data is -alpha_ij x_i x_j'."""
    plain = torch.zeros(TOKENS, TOKENS, DIM, DIM, dtype=torch.float64)
    for x in spins():
        for i in range(TOKENS):
            for j, a in weights(x, i).items():
                plain[i, j] -= a * torch.outer(x[i], x[j]) / len(spins())
    return gap(layer().coupling_gradient(spins()), plain)


def block() -> float:
    """ATT Eqs. 8 and 9: layer norm, attention, sum; layer norm, perceptron, sum."""
    torch.manual_seed(6)
    width, heads = 4, 2
    module = Block(width, heads, 8).double()
    x = torch.randn(1, TOKENS, width, dtype=torch.float64)
    with torch.no_grad():
        normed = layer_norm(x, (width,), module.before_attention.weight, module.before_attention.bias)
        q, k, v = (normed @ module.qkv.weight.T + module.qkv.bias)[0].chunk(3, -1)
        mixed = []
        for h in range(heads):
            part = slice(h * width // heads, (h + 1) * width // heads)
            scores = q[:, part] @ k[:, part].T / math.sqrt(width / heads)
            mixed.append(scores.softmax(-1) @ v[:, part])
        u = torch.cat(mixed, -1) @ module.out.weight.T + module.out.bias + x[0]
        plain = module.mlp(layer_norm(u, (width,), module.before_mlp.weight, module.before_mlp.bias)) + u
        return gap(module(x)[0], plain)


EQUATIONS: dict[str, Callable[[], float]] = {
    "1": dynamics, "2": attention, "3": derivative, "4": local_energy, "5": self_attention, "6": total_energy,
    "7": loss_gradient, "8-9": block,
}  # fmt: skip
