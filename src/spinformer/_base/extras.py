"""Optional dependencies: imported when used, and named with their extra when absent."""

import importlib
import random
import sys
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or say in one line which extra of spinformer brings it.

    What a package draws on its first import from Python's and numpy's generators is undone.
    """
    new = module not in sys.modules
    python, numpy = random.getstate(), sys.modules.get("numpy")  # one that is not loaded yet has drawn nothing
    state = None if numpy is None else numpy.random.get_state()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or package != error.name.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{package} is not installed; `pip install 'spinformer[{extra}]'` brings it", name=error.name
        ) from None
    finally:
        if new:
            random.setstate(python)
        if new and numpy is not None:
            numpy.random.set_state(state)
