"""Forms of the game head that are compared."""

from collections.abc import Mapping
from typing import Any

# What the search for a form held fixed, where the head has changed since, and what it changed, one thing at a time.
START: Mapping[str, Any] = {"dim": 128}
FORMS: Mapping[str, Mapping[str, Any]] = {
    "as it was": {},
    "the paper's norm": {"form": "norm"},
    "plain sums": {"form": "mean"},
    "one game for the decision": {"scope": "decision"},
    "last layer alone": {"layers": (-1,)},
    "embeddings alone": {"layers": (0,)},
    "one head": {"heads": 1},
    "narrow": {"dim": 32, "heads": 4, "hidden": 128},
    "wide": {"dim": 256, "hidden": 1024, "readout": 256},
    "two subsets": {"subsets": 2},
    "eight subsets": {"subsets": 8},
    "Shapley kernel": {"draw": "kernel"},
    "near full and empty": {"draw": "edges"},
    "drawn by its own attention": {"draw": "own"},
    "mask token": {"masking": "token"},
    "deletion": {"masking": "delete"},
}
