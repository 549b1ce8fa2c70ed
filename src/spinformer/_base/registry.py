"""Registries: the one place where an index, a pooling head or an explanation method is added."""

from collections.abc import ItemsView, Iterator, ValuesView
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """How configuration, command line and documents call it."""


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Objects by name, in the order in which they were registered.

    kind: what they are, for error messages ("index", "pooling head", "method").
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def register(self, item: T) -> T:
        """Add `item` under its name, which must be new, and return it."""
        name = getattr(item, "name", None)
        if not isinstance(name, str) or not name:
            raise TypeError(f"a new {self.kind} must have a name, a word; got {type(item).__name__} named {name!r:.60}")
        if name in self._items:
            raise ValueError(f"{self.kind} {item.name!r} is registered already")
        self._items[item.name] = item
        return item

    def unregister(self, name: str) -> None:
        """Take an item out again, as tests do."""
        del self._items[self[name].name]

    def __getitem__(self, name: str) -> T:
        """The item of this name; an unknown name is a ValueError that lists the known ones."""
        try:
            return self._items[name]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self._items))
            raise ValueError(f"{self.kind} must be one of {known}; got {name!r}") from None

    def items(self) -> ItemsView[str, T]:
        """Names and items."""
        return self._items.items()

    def values(self) -> ValuesView[T]:
        """The items."""
        return self._items.values()

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
