"""Shutdown: end the process in bounded time, and at once on a second signal.

Neither loses data: acknowledged writes survive `kill -9`, and runs continue in other processes
or at the next start.
"""

import logging
import os
import signal
import threading

logger = logging.getLogger(__name__)

# Added to the grace periods, in case the database or a graph's code hangs.
MARGIN_SECONDS = 30.0


class ShutdownTimer:
    """Limit the time from the first signal to the end of the process.

    Args:
        seconds: Time for an orderly shutdown.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = False

    def signalled(self, number: int) -> None:
        """Start the timer at the first signal; at the second, die with its default action.

        Args:
            number: The signal's number.
        """
        if self._started:
            logger.warning("Received a second signal: ending at once")
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self._started = True
        limit = threading.Timer(self._seconds, self._give_up)
        limit.daemon = True
        limit.start()

    def _give_up(self) -> None:
        logger.error("Shutdown took more than %g seconds: ending at once", self._seconds)
        os._exit(1)
