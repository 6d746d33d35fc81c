"""Usage: count what this process stores in the event log and deletes from it."""

import threading
from collections import OrderedDict
from collections.abc import Collection
from functools import cache
from typing import Any
from uuid import UUID

# Threads whose growth is remembered; the longest idle is forgotten first.
MAX_THREADS = 10_000


class Usage:
    """The bytes of each thread since retention last looked, and the counters of `/metrics`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._grown: OrderedDict[UUID, int] = OrderedDict()

    def stored(self, segments: Collection[tuple[UUID, int]]) -> None:
        """Count stored segments, each with its thread and bytes."""
        size = 0
        with self._lock:
            for thread_id, each in segments:
                self._grown[thread_id] = self._grown.get(thread_id, 0) + each
                self._grown.move_to_end(thread_id)
                size += each
            while len(self._grown) > MAX_THREADS:
                self._grown.popitem(last=False)
        found = _counters()
        found["stored_segments"].inc(len(segments))
        found["stored_bytes"].inc(size)

    def deleted(self, segments: int, size: int) -> None:
        """Count deleted segments and their bytes."""
        found = _counters()
        found["deleted_segments"].inc(segments)
        found["deleted_bytes"].inc(size)

    def take_grown(self, size: int) -> list[UUID]:
        """Return the threads that have grown by `size` bytes, and count them from 0 again."""
        with self._lock:
            found = [each for each, grown in self._grown.items() if grown >= size]
            for each in found:
                del self._grown[each]
        return found


usage = Usage()


@cache
def _counters() -> dict[str, Any]:
    # Imported late, because the library would delay each start.
    from prometheus_client import Counter

    return {
        "stored_segments": Counter(
            "threadhold_event_segments_stored", "Segments stored in the event log"
        ),
        "stored_bytes": Counter("threadhold_event_bytes_stored", "Bytes stored in the event log"),
        "deleted_segments": Counter(
            "threadhold_event_segments_deleted", "Segments deleted from the event log by retention"
        ),
        "deleted_bytes": Counter(
            "threadhold_event_bytes_deleted", "Bytes deleted from the event log by retention"
        ),
    }
