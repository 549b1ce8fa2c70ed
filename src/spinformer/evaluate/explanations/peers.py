"""shapiq's estimators of Shapley values and interactions, against the exact values of the same texts.

Exact tables answer for the classifier, so that no pass is made. A budget counts distinct coalitions as shapiq counts
them, the empty and the full one included; `passes` of a row are those that were really asked for.
"""

import hashlib
import importlib.util
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import BUDGETS
from spinformer._base.extras import require
from spinformer._base.progress import progress as bar
from spinformer._base.rng import preserved
from spinformer.evaluate.explanations.closeness import Closeness, ClosenessRow, ExactIndices
from spinformer.evaluate.explanations.metric import CANNOT, LeftOut
from spinformer.evaluate.explanations.tables import ExactTable

PAIRED = {"pairing_trick": True}


@dataclass(frozen=True)
class Peer:
    """An estimator of shapiq: its class, its options, and whether it estimates pairs (SII) as well as words (SV).

    seconds: of one core, about, for a text of 14 words with BUDGETS; texts: how many of the texts it is measured on,
    the first ones, None for all: slow ones have a limit; needs: a package that shapiq itself does not bring.
    """

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    pairs: bool = False
    seconds: float = 0.25
    texts: int | None = None
    needs: str | None = None

    @property
    def absent(self) -> str | None:
        """Why the estimator cannot run here; None where it can."""
        if self.needs is None or importlib.util.find_spec(self.needs) is not None:
            return None
        return f"it needs the package {self.needs}, which is not installed"

    def build(self, players: int, seed: int) -> Any:
        """The estimator for a game of so many players."""
        module = require("shapiq.approximator", extra="compare")
        order = {"max_order": 2, "index": "SII"} if self.pairs else {}
        return getattr(module, self.kind)(n=players, random_state=seed, **order, **self.options)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("KernelSHAP", "KernelSHAP"),
        Peer("KernelSHAP paired", "KernelSHAP", PAIRED),
        Peer("UnbiasedKernelSHAP", "UnbiasedKernelSHAP"),
        Peer("PermutationSamplingSV", "PermutationSamplingSV"),
        Peer("SVARM", "SVARM"),
        Peer("KernelSHAPIQ", "KernelSHAPIQ", pairs=True),
        Peer("KernelSHAPIQ paired", "KernelSHAPIQ", PAIRED, pairs=True),
        Peer("InconsistentKernelSHAPIQ", "InconsistentKernelSHAPIQ", pairs=True),
        Peer("InconsistentKernelSHAPIQ paired", "InconsistentKernelSHAPIQ", PAIRED, pairs=True),
        Peer("SVARMIQ", "SVARMIQ", pairs=True, seconds=3.0, texts=40),
        Peer("SHAPIQ", "SHAPIQ", pairs=True),
        Peer("PermutationSamplingSII", "PermutationSamplingSII", pairs=True),
        # 1 to 90 seconds for a budget: where SPEX finds an interaction of many words, it lists all parts of that.
        Peer("SPEX", "SPEX", pairs=True, seconds=40.0, texts=5),
        Peer("ProxySPEX", "ProxySPEX", pairs=True, seconds=40.0, texts=5, needs="lightgbm"),
    )
}


class TableLookup:
    """v(C) = p_y(C) as shapiq asks for it: booleans (K, n) -> (K,). asked: how many coalitions so far."""

    def __init__(self, table: ExactTable) -> None:
        self.values, self.bits = table.values.double().numpy(), 1 << np.arange(len(table.words))
        self.asked = 0

    def __call__(self, coalitions: Any) -> Any:
        """Looked up."""
        rows = np.atleast_2d(coalitions)
        self.asked += len(rows)
        return self.values[rows.astype(np.int64) @ self.bits]


def measure_peers(
    tables: Sequence[ExactTable],
    budgets: Sequence[int] = BUDGETS,
    names: Sequence[str] | None = None,
    *,
    seed: int = 0,
    progress: bool = True,
) -> tuple[list[ClosenessRow], dict[str, str]]:
    """A row for each estimator and budget, and the estimators that cannot run here, with the reason.

    names: of PEERS, by default all. An estimator that fails on a text, or a budget above the text's 2^n coalitions,
    costs it that text. The samples of a text depend on the seed, on the text and on nothing else.
    """
    checks.items("tables", tables, ExactTable)
    checks.items("budgets", budgets, int)
    if names is not None:
        checks.items("names", names, str)
    checks.at_least("seed", seed, 0)
    if not tables or not budgets or len(set(budgets)) < len(budgets):
        raise ValueError(f"expected tables, and budgets that differ; got {len(tables)} and {list(budgets)}")
    for budget in budgets:
        checks.at_least("budgets", budget, 2)
    for name in names or ():
        checks.choice("peers", name, tuple(PEERS))
    require("shapiq", extra="compare")
    asked = [PEERS[name] for name in names or PEERS]
    absent = {peer.name: peer.absent for peer in asked if peer.absent is not None}
    peers = [peer for peer in asked if peer.name not in absent]
    rows = {
        (peer.name, budget): ClosenessRow(peer.name, budget, "SV", "SII" if peer.pairs else None)
        for peer in peers
        for budget in budgets
    }
    for number, table in enumerate(bar(tables, "peers") if progress else tables):
        exact, text_seed = ExactIndices(table), _seed(table, seed)
        for peer in peers:
            for budget in budgets if peer.texts is None or number < peer.texts else ():
                row = rows[peer.name, budget]
                try:
                    _add(row, peer, budget, exact, text_seed)
                except CANNOT as error:
                    row.left_out = LeftOut.add(row.left_out, error)
    return list(rows.values()), absent


def forecast_seconds(texts: int, budgets: Sequence[int] = BUDGETS) -> float:
    """What `measure_peers` takes on one core for so many texts of about 14 words, roughly."""
    total = sum(peer.seconds * min(texts, peer.texts or texts) for peer in PEERS.values() if peer.absent is None)
    return total * sum(budgets) / sum(BUDGETS)


def _add(row: ClosenessRow, peer: Peer, budget: int, exact: ExactIndices, seed: int) -> None:
    """The estimate of one text more in the row."""
    players = len(exact.table.words)
    if budget > 2**players:
        raise ValueError(f"a text of {players} words has {2**players} coalitions; got a budget of {budget}")
    game = TableLookup(exact.table)
    with _seeded(seed):
        result = peer.build(players, seed).approximate(budget=budget, game=game)
    words = _values(result, [(player,) for player in range(players)])
    closeness = Closeness.of(words, exact["SV"])
    if peer.pairs:
        first, second = torch.triu_indices(players, players, 1).tolist()
        row.pairs.append(Closeness.of(_values(result, list(zip(first, second, strict=True))), exact["SII"]))
    row.words.append(closeness)
    row.passes.append(game.asked)


def _values(result: Any, players: Sequence[tuple[int, ...]]) -> Tensor:
    """Of shapiq's `InteractionValues`, which leaves out those that are 0."""
    return torch.tensor([float(result[one]) for one in players], dtype=torch.float64)


def _seed(table: ExactTable, seed: int) -> int:
    """31 bits from the seed and the text."""
    return int.from_bytes(hashlib.sha256(f"{seed} {table.key}".encode()).digest()[:4], "big") >> 1


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The global generators of Python and numpy, which some estimators use, seeded; afterwards they are as before.

    shapiq's warnings about budgets that nearly exhaust the coalitions are not shown.
    """
    with preserved(), warnings.catch_warnings():
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        warnings.simplefilter("ignore")
        yield
