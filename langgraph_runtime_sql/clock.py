"""The clock: aware datetimes that never repeat and never run backwards in a process."""

import threading
import time
from datetime import UTC, datetime, timedelta

_last = datetime.min.replace(tzinfo=UTC)
_lock = threading.Lock()
STEP = timedelta(microseconds=1)
# Counts on while the machine is suspended, where the system has such a clock.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> datetime:
    """The time, always later than any it gave before.

    Orders that are decided by dates (which run came first) stay right when the
    machine's clock is set back.
    """
    global _last
    with _lock:
        _last = max(datetime.now(UTC), _last + STEP)
        return _last


def elapsed() -> float:
    """Seconds since some moment before the process began, by a clock that no one can set."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
