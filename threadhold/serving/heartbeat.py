"""Heartbeat: touch a file, whose age shows probes that a process without a port is alive."""

import asyncio
from pathlib import Path

from langgraph_runtime_sql.errors import RuntimeSqlError

SECONDS = 5.0
MODE = 0o600


class NoHeartbeat(RuntimeSqlError):
    """The heartbeat file cannot be written."""


class Heartbeat:
    """Touch a file every few seconds while the event loop runs.

    The constructor removes the file of an earlier process.

    Args:
        path: The file.

    Raises:
        NoHeartbeat: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.unlink(missing_ok=True)
            path.touch(MODE)
            # Probes must fail until `start`.
            path.unlink()
        except OSError as error:
            raise NoHeartbeat(f"--heartbeat {path}: {error.strerror}") from error

    def start(self) -> None:
        """Touch the file now, and repeat until the running event loop ends."""
        # Schedule first, so that the heartbeat goes on after a full disk made one touch fail.
        asyncio.get_running_loop().call_later(SECONDS, self.start)
        self._path.touch(MODE)
