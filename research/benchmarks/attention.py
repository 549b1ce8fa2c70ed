"""The NeuroGame layer against softmax attention: time and memory of a step, forward and backward, by length.

One command measures all on the machine it runs on, medians after a warm-up: both presets with 1 and 12 attention heads,
`scaled_dot_product_attention`, `nn.MultiheadAttention`, Algorithm 1 as written, shapiq's and captum's estimators of the
same values, and steps of a classifier of MiniLM's size with each of its pooling heads. d = 768, K = 25, under bfloat16
autocast on a GPU, there also replayed (`spinformer.attention.replay`) and, for one length, compiled. A path of ours
whose outputs or gradients differ from its plain twin's, in the same run, gets no time.

`least` is what a step cannot avoid at the rates that this machine reaches: it goes three times through its input and
its gradient, eight times through the players' vectors, multiplies inputs and weights three times, and coalitions and
vectors five times. Under autocast vectors are of 16 bits, and all these products in bfloat16, those of coalitions in
three parts. In the paper's preset every pair of tokens takes PAIR_OPERATIONS operations in each coalition.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from research.benchmarks.attention_classifiers import SHAPES, autocast, classifier_rows
from research.benchmarks.attention_peers import peers
from research.benchmarks.timing import seconds
from spinformer._base import records
from spinformer._base.progress import progress
from spinformer._base.rng import seeded
from spinformer.attention import NeuroGameAttention, algorithm1
from spinformer.attention.replay import LIMIT, MOST, Replay
from spinformer.kernels import support

DIM, HEADS, BUDGET, REPEATS = 768, (1, 12), 25, 10
SIZES = {
    "cuda": ((128, 64), (512, 64), (2_048, 32), (8_192, 8), (32_768, 2), (131_072, 1)),
    "cpu": ((128, 8), (512, 2), (2_048, 1), (8_192, 1)),
}
LONGEST, LONGEST_HEADS = 1_048_576, 12  # on a GPU, without softmax attention, which would take half a minute a step
PARTS = Path("runs/attention")
MOST_PAPER = 512  # tokens: the paper's preset has dense couplings
RECORDINGS = 4  # calls until CUDA graphs are recorded
COMPILED = (128, "default")  # tokens and preset: each is compiled anew, for a minute
PEER_TOKENS = 128
PAIR_OPERATIONS = 60  # of one pair in one coalition, forward and backward
PART_TOKENS, PART_PAIRS = 4, 12  # of Algorithm 1, which takes too long for all
# |a - b| / |b| of each output and gradient and of the twin's: rounding, which the paper's Gibbs weights multiply.
CLOSE = {"default": 1e-2, "paper": 5e-2}

Form = Literal["eager", "replayed", "compiled"]
Step = Callable[[], list[Tensor]]


def run(seed: int = 0, parts: Path = PARTS) -> dict[str, Any]:
    """Rows of the layers by length, of Algorithm 1 and of the classifiers

    parts: a folder that keeps what was measured, the rows of one length at a time, so that a run that was stopped goes
    on; what another commit or machine measured does not count.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    told = {"commit": records.commit(), "device": name, "seed": seed, "torch": torch.__version__}

    def part(name: str, measure: Callable[[], Any]) -> Any:
        command = "spinformer bench attention"
        kept = records.once(name, lambda: {"part": measure()}, command=command, config=told, directory=parts)
        return kept["part"]

    rates = part("rates", lambda: _rates(device))
    rows: list[dict[str, Any]] = []
    for tokens, batch in progress(SIZES[device.type], "attention"):
        rows += part(f"tokens-{tokens}", partial(_of_length, tokens, batch, rates, seed, device))
    classifiers: list[dict[str, Any]] = []
    for tokens, texts in progress(SHAPES[device.type], "classifiers"):
        classifiers += part(f"classifiers-{texts}-{tokens}", partial(classifier_rows, tokens, texts, seed, device))
    return {
        "device": name,
        "rates": rates,
        "rows": rows,
        "loops": part("loops", lambda: _loops(seed)),
        "peers": part("peers", lambda: peers(PEER_TOKENS, DIM, BUDGET, seed)),
        "classifiers": classifiers,
        "longest": part("longest", partial(_longest, seed, device)) if device.type == "cuda" else None,
        "passed": all(row["matches"] for row in rows),
    }


def _of_length(
    tokens: int, batch: int, rates: dict[str, float], seed: int, device: torch.device
) -> list[dict[str, Any]]:
    """All rows of one length, so that what is compared was measured together."""
    with seeded(seed):
        x = torch.randn(batch, tokens, DIM, device=device)
    rows = [
        _row("softmax attention", tokens, batch, _softmax(x), device),
        _row("nn.MultiheadAttention", tokens, batch, _multihead(x, seed), device),
    ]
    for preset in CLOSE if tokens <= MOST_PAPER else ("default",):
        for heads in HEADS:
            least = least_of(tokens, batch, heads if preset == "paper" else 0, rates, x.is_cuda)
            rows += [_ours(x, preset, heads, seed, form) | {"least": least} for form in _forms(x, preset)]
    return rows


def _longest(seed: int, device: torch.device) -> dict[str, Any]:
    """The layer on one text of LONGEST tokens."""
    with seeded(seed):
        x = torch.randn(1, LONGEST, DIM, device=device)
    return _ours(x, "default", LONGEST_HEADS, seed, "eager")


def _row(name: str, tokens: int, batch: int, step: Step, device: torch.device) -> dict[str, Any]:
    """Seconds and bytes of a step; bytes on a GPU alone, where they are counted."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    taken = seconds(step, repeats=REPEATS)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else None
    return {"name": name, "tokens": tokens, "batch": batch, "seconds": taken, "bytes": peak, "matches": True}


def _softmax(x: Tensor) -> Step:
    dtype = torch.bfloat16 if x.is_cuda else x.dtype
    parts = [x.detach().unflatten(-1, (12, -1)).transpose(1, 2).to(dtype).requires_grad_() for _ in range(3)]

    def step() -> list[Tensor]:
        out = functional.scaled_dot_product_attention(*parts)
        out.sum().backward()
        return [out]

    return step


def _multihead(x: Tensor, seed: int) -> Step:
    with seeded(seed):
        layer = nn.MultiheadAttention(DIM, 12, batch_first=True).to(x.device)
    leaf = x.detach().requires_grad_()

    def step() -> list[Tensor]:
        with autocast(x.device):
            out = layer(leaf, leaf, leaf, need_weights=False)[0]
        out.float().sum().backward()
        return [out]

    return step


def _forms(x: Tensor, preset: str) -> tuple[Form, ...]:
    """How the layer is run on such an input."""
    recorded = x.is_cuda and (x.shape[1] <= LIMIT or x.numel() <= MOST)
    replayed: tuple[Form, ...] = ("replayed",) if recorded else ()
    compiled: tuple[Form, ...] = ("compiled",) if x.is_cuda and (x.shape[1], preset) == COMPILED else ()
    return ("eager", *replayed, *compiled)


def _ours(x: Tensor, preset: str, heads: int, seed: int, form: Form) -> dict[str, Any]:
    """The layer's row: without time where it differs from its twin, or does not run."""
    name = f"{preset}, {heads} head{'s' if heads > 1 else ''}{'' if form == 'eager' else f', {form}'}"
    try:
        return _timed(name, x, preset, heads, seed, form)
    except (RuntimeError, torch.OutOfMemoryError) as error:
        nothing = {"seconds": None, "bytes": None, "difference": None, "matches": False, "error": str(error)[:500]}
        return {"name": name, "tokens": x.shape[1], "batch": x.shape[0], **nothing}


def _timed(name: str, x: Tensor, preset: str, heads: int, seed: int, form: Form) -> dict[str, Any]:
    """The layer's row: without time where it differs from its twin.

    The twin of "eager" is the plain code. That of the others is the layer itself, in evaluation, where both have the
    same coalitions; "compiled" is torch.compile with mode "reduce-overhead", which replays CUDA graphs too. Each rounds
    elsewhere under autocast, so it may differ from its twin by as much as that does from itself without autocast.
    """
    device = x.device
    with seeded(seed):
        layer = NeuroGameAttention(DIM, heads=heads, preset=preset, samples=BUDGET, eval_samples=BUDGET).to(device)
    leaf = x.detach().requires_grad_()
    leaves = [leaf, *(parameter for parameter in layer.parameters() if parameter.requires_grad)]

    def step_of(called: Any, own: bool, rounded: bool = True) -> Step:
        def step() -> list[Tensor]:
            with autocast(device) if rounded else nullcontext():
                out = called(leaf, generator=torch.Generator().manual_seed(seed)) if own else called(leaf)
            slopes = torch.autograd.grad(out.pooled.float().square().sum(), leaves)
            return [out.pooled.detach().float(), *(slope.float() for slope in slopes)]

        return step

    extra: dict[str, float] = {}
    close = CLOSE[preset]
    if form == "eager":
        step = step_of(layer, own=True)
        difference, rounding = _difference(step, step_of(layer, own=True, rounded=False))
        if rounding is not None:
            extra["rounding"], close = rounding, max(close, rounding)
    else:
        called: Any = Replay(layer)
        if form == "compiled":
            torch.compiler.reset()
            called = torch.compile(layer, mode="reduce-overhead", fullgraph=True)
        layer.eval()
        step = step_of(called, own=False)
        start = time.perf_counter()
        for _ in range(RECORDINGS):
            found = [part.clone() for part in step()]
        extra = {"recording": time.perf_counter() - start}
        expected = step_of(layer, own=False)()
        difference = _furthest(found, expected)
        if form == "compiled":
            extra["rounding"] = _furthest(expected, step_of(layer, own=False, rounded=False)())
            close = max(close, extra["rounding"])
    layer.train()
    if difference is not None and difference > close:
        shape = {"name": name, "tokens": x.shape[1], "batch": x.shape[0]}
        return shape | {"seconds": None, "bytes": None, "difference": difference, "matches": False} | extra
    for _ in range(0 if form == "eager" else RECORDINGS):
        step()
    return _row(name, x.shape[1], x.shape[0], step, device) | {"difference": difference} | extra


def _difference(step: Step, exact: Step) -> tuple[float | None, float | None]:
    """Of the operators from their plain twins, and of these from themselves without autocast

    None where there are no operators; the second also where the first is small.
    """
    if not (support.HAS_TRITON and torch.cuda.is_available()):
        return None, None
    found = [part.clone() for part in step()]
    support.HAS_TRITON = False
    try:
        expected = [part.clone() for part in step()]
        apart = _furthest(found, expected)
        return apart, _furthest(expected, exact()) if apart > CLOSE["default"] else None
    finally:
        support.HAS_TRITON = True


def _furthest(found: list[Tensor], expected: list[Tensor]) -> float:
    """The largest |a - b| / |b|."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True))


def _rates(device: torch.device) -> dict[str, float]:
    """Bytes a second of a copy; operations a second of a matrix product in float32, and of one under autocast."""
    count, side = (2**28, 8_192) if device.type == "cuda" else (2**24, 1_024)
    source, square = torch.ones(count, device=device), torch.ones(side, side, device=device)
    target, rounded = torch.empty_like(source), square.bfloat16() if square.is_cuda else square
    return {
        "bytes": 2 * 4 * count / seconds(lambda: target.copy_(source)),
        "operations": 2 * side**3 / seconds(lambda: square @ square),
        "autocast": 2 * side**3 / seconds(lambda: rounded @ rounded),
    }


def least_of(tokens: int, batch: int, heads_of_pairs: int, rates: dict[str, float], autocast: bool) -> dict[str, float]:
    """Bytes, operations and seconds that no step avoids; heads_of_pairs: attention heads whose pairs all count."""
    numbers = float(batch * tokens * DIM)
    moved = numbers * (3 * 4 + 8 * (2 if autocast else 4))
    mapped, summed = 2 * numbers * 3 * DIM, 2 * numbers * 5 * 2 * BUDGET * (3 if autocast else 1)
    pairs = PAIR_OPERATIONS * batch * heads_of_pairs * BUDGET * tokens * (tokens - 1) / 2
    products = (mapped + summed) / rates["autocast" if autocast else "operations"]
    taken = moved / rates["bytes"] + products + pairs / rates["operations"]
    return {"bytes": moved, "operations": mapped + summed + pairs, "seconds": taken}


def _loops(seed: int) -> dict[str, Any]:
    """Algorithm 1 as written, on the CPU, for one sequence of 128 tokens: from part of its tokens and pairs."""
    generator = torch.Generator().manual_seed(seed)
    values, tokens = torch.randn(128, DIM, generator=generator), 128

    def some_tokens() -> None:
        for i in range(PART_TOKENS):
            algorithm1.shapley_value(values, i, BUDGET, 0.25, generator)
            algorithm1.banzhaf_value(values, i, BUDGET, 0.25, generator)

    def some_pairs() -> None:
        for j in range(1, PART_PAIRS + 1):
            algorithm1.interaction(values, 0, j, BUDGET, 0.25, generator)

    token, pair = seconds(some_tokens, 1) / PART_TOKENS, seconds(some_pairs, 1) / PART_PAIRS
    return {"tokens": tokens, "seconds": tokens * token + tokens * (tokens - 1) / 2 * pair}
