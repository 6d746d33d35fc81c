"""Heartbeat: a file by whose age others see that a process without a port is alive."""

import asyncio
from pathlib import Path

from langgraph_runtime_sql.errors import RuntimeSqlError

SECONDS = 5.0


class NoHeartbeat(RuntimeSqlError):
    """The file of the heartbeat cannot be written."""


class Heartbeat:
    """Touches a file for as long as the event loop turns.

    What an earlier process left there is removed at once.

    Args:
        path: The file.

    Raises:
        NoHeartbeat: there can be no such file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.unlink(missing_ok=True)
            path.touch()
            # Until it begins, whoever asks is to be told no.
            path.unlink()
        except OSError as error:
            raise NoHeartbeat(f"--heartbeat {path}: {error.strerror}") from error

    def begin(self) -> None:
        """Beat from now on, until the running event loop ends."""
        # First, so that a disk that is full for a while does not end it.
        asyncio.get_running_loop().call_later(SECONDS, self.begin)
        self._path.touch()
