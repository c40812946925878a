"""A bounded least-recently-used dictionary, limited by number, size, or both."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Reading and writing an entry make it the newest; the oldest go while there is too much. Needs a lock where
    several threads use it."""

    def __init__(
        self, max_items: int | None = None, *, max_size: int | None = None, size_of: Callable[[V], int] = lambda _: 1
    ) -> None:
        """`max_size` bounds the sum of what `size_of` says of each value when it is written. A value that is larger by
        itself is not kept, and evicts no other."""
        self._max_items = max_items
        self._max_size = max_size
        self._size_of = size_of
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}
        """Empty where no size is bounded."""
        self._size = 0

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def __getitem__(self, key: K) -> V:
        self._entries.move_to_end(key)
        return self._entries[key]

    def __setitem__(self, key: K, value: V) -> None:
        if self._max_size is not None:
            self.discard(key)
            size = self._size_of(value)
            if size > self._max_size:
                return
            self._sizes[key] = size
            self._size += size
        self._entries[key] = value
        self._entries.move_to_end(key)
        while self._is_too_full():
            self.discard(next(iter(self._entries)))

    def discard(self, key: K) -> None:
        self._entries.pop(key, None)
        self._size -= self._sizes.pop(key, 0)

    def shrink(self, max_size: int) -> None:
        """Lets the oldest go until the rest is no larger than this, for now."""
        while self._size > max_size:
            self.discard(next(iter(self._entries)))

    def clear(self) -> None:
        self._entries.clear()
        self._sizes.clear()
        self._size = 0

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """From the oldest to the newest; changes no order."""
        return iter(self._entries)

    def values(self) -> Iterator[V]:
        """As `__iter__`."""
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def _is_too_full(self) -> bool:
        if self._max_items is not None and len(self._entries) > self._max_items:
            return True
        return self._max_size is not None and self._size > self._max_size
