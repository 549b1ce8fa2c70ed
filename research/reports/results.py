"""Results as the documents quote them: read from JSON, with the current names of explanation methods."""

from pathlib import Path
from typing import Any

from research.reports.markdown import Record
from spinformer._base import records

# Names of methods and claims in older result files, which are never edited -> the current names.
RENAMED = {
    "grounded shapley": "shapley",
    "grounded banzhaf": "banzhaf",
    "grounded field": "field",
    "grounded attention": "attention",
    "neurogame-attention": "layer",
    "neurogame-fields": "layer-field",
    **{
        f"error is not monotone in t ({of})": f"error grows after its least ({of})"
        for of in ("masked", "noisy", "masked, recurrent block", "noisy, recurrent block", "masked, all pixels")
    },
}
UNKNOWN = "not recorded"  # a result that neither says its commit nor is listed here; SPINFORMER_COMMIT names it
# Results whose machine had the code with another history: when they were written, and the commit of that code.
COPIED = {"exactness-sst2": ("2026-11-19T05:05:01+00:00", "a5b5fa8")}
# Results whose machine knew no commit: when they were written, and the commit with which they entered the repository.
ENTERED = {
    "attractor": ("2026-11-15T03:36:15+00:00", "b4be4cf"),
    "attractor-speed-gpu": ("2026-11-15T03:54:24+00:00", "42527e3"),
    "attractor-sweep": ("2026-11-15T03:23:46+00:00", "42527e3"),
    "attractor-use": ("2026-11-15T03:47:13+00:00", "42527e3"),
    "grounding-forms": ("2026-11-15T08:24:02+00:00", "daff79d"),
    "grounding-frozen": ("2026-11-15T12:04:53+00:00", "6b82832"),
    "grounding-frozen-taught": ("2026-11-15T20:07:51+00:00", "da90ecf"),
    "grounding-methods": ("2026-11-15T12:07:16+00:00", "6b82832"),
    "grounding-methods-taught": ("2026-11-15T20:11:35+00:00", "da90ecf"),
    "grounding-time": ("2026-11-15T12:03:12+00:00", "6b82832"),
    "grounding-together": ("2026-11-15T23:05:56+00:00", "38ccb7d"),
    "nli-apart": ("2026-11-15T23:01:41+00:00", "38ccb7d"),
    "nli-base": ("2026-11-15T05:47:28+00:00", "0c5eea1"),
    "nli-distil": ("2026-11-15T23:00:40+00:00", "38ccb7d"),
    "nli-gate": ("2026-11-15T11:39:17+00:00", "6b82832"),
    "nli-grounded-quarter": ("2026-11-15T09:00:25+00:00", "daff79d"),
    "nli-pilot": ("2026-11-15T16:32:59+00:00", "c3983df"),
    "nli-taught": ("2026-11-15T23:04:45+00:00", "38ccb7d"),
    "nli-teacher": ("2026-11-15T22:42:10+00:00", "38ccb7d"),
    "nli-together": ("2026-11-15T12:06:22+00:00", "6b82832"),
    "nli-tune": ("2026-11-15T05:29:03+00:00", "0c5eea1"),
}


def read_result(name: str, folder: Path) -> Record:
    """The record `folder/name.json`, with the current names of methods."""
    record: Record = rename_methods(records.read(name, folder))
    return record


def rename_methods(value: Any) -> Any:
    """The same nested value, where each key that is an older name of a method is the current one."""
    if isinstance(value, dict):
        return {RENAMED.get(key, key): rename_methods(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rename_methods(item) for item in value]
    return value


def commit_of(record: Record) -> str:
    """The commit that made a result, as it says; for older ones that do not, the commit that brought them."""
    written, commit = COPIED.get(record["name"], ("", ""))
    if record["written"] == written:
        return commit
    if record["commit"]:
        return str(record["commit"])
    written, commit = ENTERED.get(record["name"], ("", ""))
    return f"came with {commit}" if record["written"] == written else UNKNOWN
