"""Optional dependencies: imported when used, and named with their extra when absent."""

import importlib
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or say in one line which extra of spinformer brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or package != error.name.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{package} is not installed; `pip install 'spinformer[{extra}]'` brings it", name=error.name
        ) from None
