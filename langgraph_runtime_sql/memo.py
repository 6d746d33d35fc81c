"""Memo: a bounded cache by content. What it returns can be computed again from the key."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Keeps what was used lately, in two generations. Any thread may use it, without a lock.

    The young generation becomes the old one when it is full; what is used again returns to the
    young one. A race between threads only loses entries, which are computed again.

    Args:
        size: The bytes that both generations together may take, by the callers' estimates.
    """

    def __init__(self, size: int) -> None:
        self._limit = size // 2
        self._room = self._limit
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return None
            self.put(key, *found)
        return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value that takes `size` bytes with its key."""
        if size > self._limit:
            return
        if self._room < size:
            self._old, self._young, self._room = self._young, {}, self._limit
        self._young[key] = value, size
        self._room -= size

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old, self._room = {}, {}, self._limit
