"""Ending: who is told to end does so in bounded time, and at once when told again.

Neither loses anything: what was acknowledged survives `kill -9`, and runs go on elsewhere or at
the next start.
"""

import logging
import os
import signal
import threading

logger = logging.getLogger(__name__)

# Beyond the grace periods: for a database or a graph's code that does not answer any more.
MARGIN_SECONDS = 30.0


class Ending:
    """What the signals of one process come to.

    Args:
        seconds: How long ending in order may take, from the first signal on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun = False

    def told(self, number: int) -> None:
        """Note a signal to end; of a second one die as if nobody handled it.

        Args:
            number: The signal's.
        """
        if self._begun:
            logger.warning("Told to end again: ending at once")
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self._begun = True
        limit = threading.Timer(self._seconds, self._give_up)
        limit.daemon = True
        limit.start()

    def _give_up(self) -> None:
        logger.error("Not ended after %g seconds: ending at once", self._seconds)
        os._exit(1)
