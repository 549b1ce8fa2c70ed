"""The report of how many cases were run."""

import json
import os
from pathlib import Path

import pytest

from tests.properties.cases import COUNTS


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Cases by law, as JSON, at SPINFORMER_CASES_REPORT; of a worker of xdist with its name before the ending."""
    path = os.environ.get("SPINFORMER_CASES_REPORT")
    if path and COUNTS:
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        target = Path(path) if worker is None else Path(path).with_suffix(f".{worker}{Path(path).suffix}")
        target.write_text(json.dumps(dict(sorted(COUNTS.items())), indent=1) + "\n")
