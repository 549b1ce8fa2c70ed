"""Is this a folder, a name on the Hugging Face Hub, or a slip of the keyboard? Answered at once, before any loading."""

import difflib
import os
import re
from pathlib import Path

from spinformer._base.extras import require

HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
MAX_NAME = 1000  # characters of a path or a name
TIMEOUT = 3.0  # seconds that the hub has to answer


def check_source(source: str) -> None:
    """A FileNotFoundError where `source` is neither a folder nor a name on the hub, a ConnectionError without network.

    What is in the hub's cache on this machine needs no network.
    """
    path = Path(source)
    if path.is_dir():
        return
    if not may_be_on_hub(source):
        present = "a file" if path.exists() else "nothing"
        raise FileNotFoundError(f"expected a folder with a saved model at {source}; there is {present}{_hint(path)}")
    _check_reachable(source)


def may_be_on_hub(source: str) -> bool:
    """Whether this is "name" or "owner/name", and no path below a folder that exists here."""
    path = Path(source)
    return bool(HUB_ID.fullmatch(source)) and not path.exists() and (path.name == source or not path.parent.is_dir())


def may_be_model(name: str) -> bool:
    """Whether this is a folder here, or could be a path, a name on the hub, or one of a model of this package."""
    if not name or len(name) > MAX_NAME:
        return False
    looks_like_path = (name.startswith((".", "~")) or "/" in name) and not any(map(str.isspace, name))
    return bool(HUB_ID.fullmatch(name)) or looks_like_path or os.path.isdir(name)  # Path would refuse a long text


def _check_reachable(source: str) -> None:
    """One request without retries; where the user has chosen to stay offline, none."""
    require("transformers", extra="nli")  # without it the network would be asked in vain
    hub = require("huggingface_hub", extra="nli")
    if hub.constants.HF_HUB_OFFLINE or isinstance(hub.try_to_load_from_cache(source, "config.json"), str):
        return
    try:
        hub.get_session().head(hub.constants.ENDPOINT, timeout=TIMEOUT)
    except Exception as error:  # of whichever library the hub's client is built on
        raise ConnectionError(
            f"there is no folder {source} here{_hint(Path(source))}, and {hub.constants.ENDPOINT} cannot be reached "
            f"({' '.join(str(error).split())})"
        ) from error


def _hint(path: Path) -> str:
    """The folders here that the path may have meant: it is followed as far as names are nearly right."""
    meant = Path(path.anchor)
    for name in path.relative_to(path.anchor).parts:
        if name == ".." or (meant / name).is_dir():
            meant /= name
            continue
        try:
            folders = [entry.name for entry in meant.iterdir() if entry.is_dir()]
        except OSError:
            return ""
        near = difflib.get_close_matches(name, folders, n=1, cutoff=0.8)
        if not near:
            return ""
        meant /= near[0]
    return f" (is it {meant}?)" if meant.is_dir() and meant != path else ""
