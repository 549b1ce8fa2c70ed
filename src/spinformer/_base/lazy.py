"""Names of a package that are imported when they are first used."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence

from spinformer._base.extras import require


def lazy_attributes(
    package: str, names: Mapping[str, Sequence[str]], extras: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package` (PEP 562).

    names: module -> the names that it defines. extras: module -> the library that it needs and the extra that brings
    it; where the library is missing, the error says in one line what to install.
    """
    modules = {name: module for module, defined in names.items() for name in defined}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if extras and module in extras:
            library, extra = extras[module]
            require(library, extra=extra)
        value = getattr(importlib.import_module(module), name)
        # A subpackage of the same name stays what it is; it must do what `value` does when it is called.
        value = sys.modules.get(f"{package}.{name}", value)
        setattr(sys.modules[package], name, value)  # no second search
        return value

    def listing() -> list[str]:
        return sorted(set(vars(sys.modules[package])) | set(modules))

    return get, listing
