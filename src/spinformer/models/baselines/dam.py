"""Decomposable attention (Parikh, Täckström, Das and Uszkoreit 2016).

    e_ij = F(a_i) . F(b_j)                                                              attend (DAM Eq. 1)
    β_i = sum_j softmax_j(e_ij) b_j,     α_j = sum_i softmax_i(e_ij) a_i                soft alignment (DAM Eq. 2)
    v_1i = G([a_i, β_i]),     v_2j = G([b_j, α_j])                                      compare (DAM Eq. 3)
    v_1 = sum_i v_1i,     v_2 = sum_j v_2j,     y = H([v_1, v_2])                       aggregate (DAM Eqs. 4, 5)

a_i, b_j are the words' vectors after one shared linear projection. F, G and H are two layers each, with ReLU and
dropout; a linear layer to the classes follows H. Here F, G, H = `attend`, `compare`, `aggregate`.
"""

import torch
from torch import Tensor, nn


def align(
    scores: Tensor, premise: Tensor, hypothesis: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """β_i = sum_j softmax_j(e_ij) b_j,     α_j = sum_i softmax_i(e_ij) a_i, over real words only (DAM Eq. 2)

    scores: e, (B, n, m); premise: a, (B, n, d); hypothesis: b, (B, m, d); premise_mask, hypothesis_mask: true for real
    words, (B, n), (B, m). Returns β, (B, n, d), and α, (B, m, d).
    """
    lowest = torch.finfo(scores.dtype).min
    over_hypothesis = scores.masked_fill(~hypothesis_mask[:, None], lowest).softmax(2).to(hypothesis.dtype)
    over_premise = scores.masked_fill(~premise_mask[:, :, None], lowest).softmax(1).to(premise.dtype)
    return over_hypothesis @ hypothesis, over_premise.transpose(1, 2) @ premise


class DecomposableAttention(nn.Module):
    """Word vectors of premise and hypothesis in, class scores out; no word order."""

    def __init__(self, dim: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Linear(dim, hidden, bias=False)
        self.attend = _two_layers(hidden, hidden, dropout)  # F
        self.compare = _two_layers(2 * hidden, hidden, dropout)  # G
        self.aggregate = _two_layers(2 * hidden, hidden, dropout)  # H
        self.classify = nn.Linear(hidden, classes)

    def forward(self, premise: Tensor, hypothesis: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor) -> Tensor:
        """(B, n, dim), (B, m, dim) and masks of their real words, (B, n), (B, m) -> (B, classes)."""
        a, b = self.project(premise), self.project(hypothesis)
        e = self.attend(a) @ self.attend(b).transpose(1, 2)  # DAM Eq. 1, (B, n, m)
        beta, alpha = align(e, a, b, premise_mask, hypothesis_mask)  # DAM Eq. 2
        v_1 = (self.compare(torch.cat((a, beta), -1)) * premise_mask[..., None]).sum(1)  # DAM Eqs. 3, 4
        v_2 = (self.compare(torch.cat((b, alpha), -1)) * hypothesis_mask[..., None]).sum(1)
        scores: Tensor = self.classify(self.aggregate(torch.cat((v_1, v_2), -1)))  # DAM Eq. 5
        return scores


def _two_layers(inputs: int, hidden: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Dropout(dropout),
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
    )
