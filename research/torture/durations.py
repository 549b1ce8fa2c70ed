"""A plugin of pytest that writes how long each test took: `pytest -p research.torture.durations`, into DURATIONS."""

import json
import os
from pathlib import Path

import pytest

_SECONDS: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the time of a test's phase."""
    _SECONDS[report.nodeid] = _SECONDS.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the times once, in the process that has them all."""
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["DURATIONS"]).write_text(json.dumps(_SECONDS))
