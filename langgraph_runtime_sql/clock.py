"""The clock: aware datetimes that never repeat and never run backwards in a process."""

import threading
from datetime import UTC, datetime, timedelta

_last = datetime.min.replace(tzinfo=UTC)
_lock = threading.Lock()
_STEP = timedelta(microseconds=1)


def now() -> datetime:
    """The time, always later than any it gave before.

    Orders that are decided by dates (which run came first) stay right when the
    machine's clock is set back.
    """
    global _last
    with _lock:
        _last = max(datetime.now(UTC), _last + _STEP)
        return _last
