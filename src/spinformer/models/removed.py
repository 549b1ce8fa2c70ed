"""Options that older files carry and that no longer exist."""

from collections.abc import Mapping
from typing import Any

LAST_COMMIT = "91dd5b7"


def drop_removed(options: Mapping[str, Any], **remaining: Any) -> dict[str, Any]:
    """`options` without those named in `remaining`, which gives the one value of each that is still supported.

    Another value is a ValueError that names the last commit that had the option.
    """
    for name, value in remaining.items():
        given = options.get(name, value)
        if given != value:
            raise ValueError(
                f"option {name!r} was removed; only {value!r} is supported, got {given!r}. The last commit with this "
                f"option is {LAST_COMMIT}"
            )
    return {name: value for name, value in options.items() if name not in remaining}
