"""Gradients against central differences."""

import torch

STEPS = (1e-5, 1e-6, 1e-7)


def relative_errors(losses, leaves, step, directions=4):
    """|d - D| / |D| of each sample, (B,): d from autograd, D central differences, in some directions of all leaves.

    losses: a function without arguments, of one loss for each sample, (B,); leaves: what it depends on.
    """
    slopes = [
        torch.autograd.grad(loss, leaves, retain_graph=True, materialize_grads=True) for loss in losses().unbind()
    ]
    exact, numeric = [], []
    before = [leaf.detach().clone() for leaf in leaves]
    for _ in range(directions):
        moves = [torch.randn_like(leaf) for leaf in leaves]
        exact.append([sum((s * m).sum() for s, m in zip(slope, moves, strict=True)) for slope in slopes])
        sides = []
        with torch.no_grad():
            for sign in (1, -1):
                for leaf, value, move in zip(leaves, before, moves, strict=True):
                    leaf.copy_(value + sign * step * move)
                sides.append(losses())
            for leaf, value in zip(leaves, before, strict=True):
                leaf.copy_(value)
        numeric.append((sides[0] - sides[1]) / (2 * step))
    exact, numeric = torch.tensor(exact).to(numeric[0]), torch.stack(numeric)
    return (exact - numeric).norm(dim=0) / numeric.norm(dim=0)
