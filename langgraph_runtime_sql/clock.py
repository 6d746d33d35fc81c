"""Clocks: a wall clock that never repeats a time, and one that cannot be set."""

import threading
import time
from datetime import UTC, datetime, timedelta

_last = datetime.min.replace(tzinfo=UTC)
_lock = threading.Lock()
STEP = timedelta(microseconds=1)
# This clock also counts while the machine is suspended. Not every system has it.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> datetime:
    """Return the current time in UTC, always later than any earlier result in this process.

    Orders by date, such as which run came first, survive a clock that is set back.
    """
    global _last
    with _lock:
        _last = max(datetime.now(UTC), _last + STEP)
        return _last


def elapsed() -> float:
    """Return the seconds since an arbitrary moment."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)


def milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
