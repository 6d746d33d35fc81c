"""Stop lines: let an orderly stop log no errors.

At the end of the grace period uvicorn cancels the requests in flight, and logs an error and the
traceback of each one. Their clients are told, and their runs continue elsewhere.
"""

import asyncio
import logging
from collections.abc import Callable

LOGGER = "uvicorn.error"
_CANCELS = "Cancel %s running task(s)"


class StopLines(logging.Filter):
    """Log one line about the requests that a stop cancels, which is no error.

    Args:
        stops: Whether the server stops. An app that raises a cancellation otherwise has a bug.
    """

    def __init__(self, stops: Callable[[], bool]) -> None:
        super().__init__()
        self._stops = stops

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the traceback of a cancelled request, and shorten the line that counts them."""
        if not self._stops():
            return True
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return False
        if str(record.msg).startswith(_CANCELS):
            record.levelno, record.levelname = logging.INFO, "INFO"
            record.msg = "Cancelled %s requests at the end of the grace period"
        return True
