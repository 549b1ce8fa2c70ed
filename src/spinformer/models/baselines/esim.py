"""ESIM, the sequential inference model (Chen, Zhu, Ling, Wei, Jiang and Inkpen 2017).

    ā = BiLSTM(a),     b̄ = BiLSTM(b)                                                   encoding (ESIM Eqs. 1, 2)
    e_ij = ā_i . b̄_j                                                                   attention (ESIM Eq. 11)
    ã_i = sum_j softmax_j(e_ij) b̄_j,     b̃_j = sum_i softmax_i(e_ij) ā_i               soft alignment (ESIM Eqs. 12, 13)
    m_a = [ā, ã, ā - ã, ā * ã],     m_b = [b̄, b̃, b̄ - b̃, b̄ * b̃]                        enhancement (ESIM Eqs. 14, 15)
    v_a = BiLSTM(F(m_a)),     v_b = BiLSTM(F(m_b))                                      composition (ESIM Eqs. 16, 17)
    v = [ave v_a, max v_a, ave v_b, max v_b],     y = MLP(v)                            pooling (ESIM Eqs. 18 to 20)

F is one layer with ReLU (`project`), the MLP has one hidden layer with tanh (`hidden`, `classify`). The two BiLSTMs are
`encode` and `compose`. Dropout is on the word vectors, after F and on both layers' inputs in the MLP.
"""

import torch
from torch import Tensor, nn

from spinformer.models.baselines.dam import align


class BiLSTM(nn.Module):
    """h_t = [LSTM forward to t, LSTM backward to t], each sentence read backward from its last word.

    Two one-way LSTMs, the second over sentences reversed within their length: padding, which comes last, is never read
    before a word, no lengths are copied to the host, and it is as quick as a packed sequence.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(inputs, hidden, batch_first=True)
        self.back = nn.LSTM(inputs, hidden, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: (B, n, inputs); mask: (B, n), true for real words, which come first -> (B, n, 2 hidden)."""
        position = torch.arange(x.shape[1], device=x.device)
        mirror = torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position)[..., None]  # its own inverse
        ahead, _ = self.ahead(x)
        back, _ = self.back(x.gather(1, mirror.expand(-1, -1, x.shape[2])))
        return torch.cat((ahead, back.gather(1, mirror.expand(-1, -1, back.shape[2]))), -1)


class SequentialInference(nn.Module):
    """Word vectors of premise and hypothesis in, class scores out."""

    def __init__(self, dim: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encode = BiLSTM(dim, hidden)
        self.project = nn.Linear(8 * hidden, hidden)  # F
        self.compose = BiLSTM(hidden, hidden)
        self.hidden = nn.Linear(8 * hidden, hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, premise: Tensor, hypothesis: Tensor, premise_mask: Tensor, hypothesis_mask: Tensor) -> Tensor:
        """(B, n, dim), (B, m, dim) and masks of their real words, (B, n), (B, m) -> (B, classes)."""
        a = self.encode(self.dropout(premise), premise_mask)  # ESIM Eq. 1
        b = self.encode(self.dropout(hypothesis), hypothesis_mask)  # ESIM Eq. 2
        e = a @ b.transpose(1, 2)  # ESIM Eq. 11, (B, n, m)
        a_aligned, b_aligned = align(e, a, b, premise_mask, hypothesis_mask)  # ã, b̃: ESIM Eqs. 12, 13
        pooled = (*self._infer(a, a_aligned, premise_mask), *self._infer(b, b_aligned, hypothesis_mask))
        v = self.hidden(self.dropout(torch.cat(pooled, -1))).tanh()  # of ESIM Eq. 20
        scores: Tensor = self.classify(self.dropout(v))
        return scores

    def _infer(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """From enhancement to pooling: average and maximum over the real words, (B, 2 hidden) each."""
        enhanced = torch.cat((x, aligned, x - aligned, x * aligned), -1)  # ESIM Eqs. 14, 15
        v = self.compose(self.dropout(self.project(enhanced).relu()), mask)  # ESIM Eqs. 16, 17
        words = mask[..., None]
        average = (v * words).sum(1) / words.sum(1)  # ESIM Eqs. 18, 19
        return average, v.masked_fill(~words, torch.finfo(v.dtype).min).amax(1)
