"""The equations of the NeuroGame paper on spins and on the layer, NGT Eqs. 6, 7, 10 to 30 and 37, in plain Python.

Every function returns the largest absolute difference from the library: 5 tokens, 5 spins, in float64.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product

import torch
from torch import Tensor

from research.benchmarks.equations_games import GAMMA, PLAYERS, gap
from spinformer.attention import NeuroGameAttention, NeuroGameOutput
from spinformer.ising import Ising, exact_magnetization, mean_field
from spinformer.models.pooling import feed_forward


@cache
def played() -> tuple[NeuroGameAttention, Tensor, NeuroGameOutput]:
    """A layer of two attention heads as the paper has it, an input, and what it gives."""
    torch.manual_seed(5)
    layer = NeuroGameAttention(6, heads=2, preset="paper", temperature=GAMMA, max_steps=500, tol=1e-12).double().eval()
    x = torch.randn(1, PLAYERS, 6, dtype=torch.float64)
    with torch.no_grad():
        return layer, x, layer(x)


def gate() -> float:
    """NGT Eq. 7: sigmoid(w . x + b) of each attention head."""
    layer, x, out = played()
    assert layer.gate is not None
    w, b = layer.gate.weight.detach(), layer.gate.bias.detach()
    plain = [[1 / (1 + math.exp(-float(w[h] @ x[0, i] + b[h]))) for i in range(PLAYERS)] for h in range(2)]
    return gap(out.gate[0], plain)


def importance() -> float:
    """NGT Eq. 6, normalised by the L1 norm as in Algorithm 1."""
    _, _, out = played()
    plain = []
    for h in range(2):
        phi, beta, lam = (numbers[0, h].tolist() for numbers in (out.shapley, out.banzhaf, out.gate))
        a, b = sum(map(abs, phi)), sum(map(abs, beta))
        plain.append([lam[i] * phi[i] / a + (1 - lam[i]) * beta[i] / b for i in range(PLAYERS)])
    return gap(out.fields[0], plain)


def head_outputs() -> float:
    """NGT Eqs. 26 and 27: sum of alpha_i W_v x_i of each head, concatenated and projected."""
    layer, x, out = played()
    values = (x @ layer.value.weight.detach().T)[0].view(PLAYERS, 2, 3)
    joined = torch.cat([(out.attention[0, h, :, None] * values[:, h]).sum(0) for h in range(2)])
    assert isinstance(layer.output, torch.nn.Linear)
    return gap(out.pooled[0], [float(row @ joined) for row in layer.output.weight.detach()])


def self_consistency() -> float:
    """NGT Eqs. 16, 24 and 37: the spins of the layer solve its equations; Eqs. 11 and 13: its attention is theirs."""
    layer, _, out = played()
    J, s, gamma = out.couplings.dense()[0], out.magnetization[0], layer.temperature.tolist()
    solved, attention = [], []
    for h in range(2):
        fields = [float(out.fields[0, h, i] + J[h, i] @ s[h] - J[h, i, i] * s[h, i]) for i in range(PLAYERS)]
        solved.append([math.tanh(field / gamma[h]) for field in fields])
        attention.append([(1 + float(spin)) / 2 for spin in s[h]])
    return max(gap(s, solved), gap(out.attention[0], attention))


@cache
def system() -> Ising:
    """A random Ising model of 5 spins."""
    generator = torch.Generator().manual_seed(7)
    fields = torch.randn(1, PLAYERS, generator=generator, dtype=torch.float64)
    couplings = torch.randn(1, PLAYERS, PLAYERS, generator=generator, dtype=torch.float64).triu(1)
    return Ising(fields, couplings + couplings.mT, GAMMA)


def hamiltonian(spins: Sequence[int]) -> float:
    """- sum_i J_i s_i - sum_{i<j} J_ij s_i s_j                            NGT Eq. 10"""
    ising = system()
    h, J = ising.fields[0].tolist(), ising.couplings.dense()[0].tolist()
    pairs = combinations(range(PLAYERS), 2)
    return -sum(h[i] * spins[i] for i in range(PLAYERS)) - sum(J[i][j] * spins[i] * spins[j] for i, j in pairs)


def states() -> list[tuple[int, ...]]:
    """All configurations of the spins."""
    return list(product((-1, 1), repeat=PLAYERS))


def probabilities() -> list[float]:
    """exp(-H / gamma) / Z of each configuration                           NGT Eqs. 12, 15"""
    weights = [math.exp(-hamiltonian(spins) / GAMMA) for spins in states()]
    return [weight / sum(weights) for weight in weights]


def energy() -> float:
    """NGT Eq. 10, over all configurations."""
    ours = system().energy(torch.tensor([states()], dtype=torch.float64))[0]
    return gap(ours, [hamiltonian(spins) for spins in states()])


def expected_spins() -> float:
    """NGT Eqs. 11, 12, 15 and 17: the mean of each spin over all configurations."""
    plain = [sum(p * s[i] for p, s in zip(probabilities(), states(), strict=True)) for i in range(PLAYERS)]
    return gap(exact_magnetization(system())[0], plain)


def active_tokens() -> float:
    """NGT Eq. 14: the sum of alpha_i is the expected number of spins that are +1."""
    alpha = (1 + exact_magnetization(system())[0]) / 2
    return gap(alpha.sum()[None], [sum(p * s.count(1) for p, s in zip(probabilities(), states(), strict=True))])


def effective_field() -> float:
    """NGT Eqs. 18 and 19, at random spins, and Eq. 25: one update."""
    ising = system()
    m = torch.linspace(-0.9, 0.8, PLAYERS, dtype=torch.float64)[None]
    h, J = ising.fields[0].tolist(), ising.couplings.dense()[0].tolist()
    plain = [h[i] + sum(J[i][j] * float(m[0, j]) for j in range(PLAYERS) if j != i) for i in range(PLAYERS)]
    updated = [math.tanh(field / GAMMA) for field in plain]
    return max(gap(ising.effective_field(m)[0], plain), gap(ising.update(m)[0], updated))


def single_spin() -> float:
    """NGT Eqs. 20 to 23: with the others fixed, P(s_i) and <s_i> = tanh(h / gamma), by enumeration of s_i."""
    worst = 0.0
    for spins in states():
        field = system().effective_field(torch.tensor([spins], dtype=torch.float64))[0].tolist()
        for i in range(PLAYERS):
            up, down = (math.exp(-hamiltonian([*spins[:i], s, *spins[i + 1 :]]) / GAMMA) for s in (1, -1))
            worst = max(worst, abs((up - down) / (up + down) - math.tanh(field[i] / GAMMA)))
    return worst


def classifier() -> float:
    """NGT Eqs. 28 to 30: hidden layers with GELU, logits, and the class of the largest probability."""
    torch.manual_seed(9)
    network = feed_forward(3, 3, layers=2, dropout=0.15).double().eval()
    linear = [module for module in network if isinstance(module, torch.nn.Linear)]
    x = torch.randn(3, dtype=torch.float64)
    hidden = x.tolist()
    for number, module in enumerate(linear):
        weight, bias = module.weight.tolist(), module.bias.tolist()
        hidden = [sum(w * h for w, h in zip(row, hidden, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
        if number < len(linear) - 1:
            hidden = [h * 0.5 * (1 + math.erf(h / math.sqrt(2))) for h in hidden]
    logits = network(x)
    same = int(logits.argmax()) == max(range(3), key=lambda c: math.exp(hidden[c]))
    return gap(logits, hidden) if same else math.inf


def iteration() -> float:
    """NGT Eq. 25 until it rests solves NGT Eq. 16 (a high temperature, where it does rest)."""
    hot = Ising(system().fields, system().couplings.dense(), 20.0)
    state = torch.zeros(1, PLAYERS, dtype=torch.float64)
    for _ in range(200):
        state = hot.update(state)
    return gap(mean_field(hot, max_steps=200, tol=1e-14).magnetization[0], state[0].tolist())


EQUATIONS: dict[str, Callable[[], float]] = {
    "6": importance, "7": gate, "10": energy, "11-13": expected_spins, "14": active_tokens, "15": expected_spins,
    "16": self_consistency, "18-19": effective_field, "20-23": single_spin, "25": iteration, "26-27": head_outputs,
    "28-30": classifier, "37": self_consistency,
}  # fmt: skip
