"""Results as the documents quote them: read from JSON, with the current names of explanation methods."""

from pathlib import Path
from typing import Any

from research.reports.markdown import Record
from spinformer._base import records

# Names of methods in older result files, which are never edited -> the current names.
RENAMED = {
    "grounded shapley": "shapley",
    "grounded banzhaf": "banzhaf",
    "grounded field": "field",
    "grounded attention": "attention",
    "neurogame-attention": "layer",
    "neurogame-fields": "layer-field",
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
