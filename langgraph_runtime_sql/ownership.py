"""Ownership: one process owns a SQLite file."""

import fcntl
import os
from pathlib import Path

from langgraph_runtime_sql.errors import FileInUse


class Ownership:
    """A lock beside the database that the system releases when its holder dies.

    SQLite would let a second process in; two queues and two event buses on one
    file would then start runs that the other's clients never hear of.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file: int | None = None

    def take(self) -> None:
        """Own the file.

        Raises:
            DatabaseInUse: somebody else does.
        """
        path = self._database.with_name(self._database.name + ".lock")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            raise FileInUse(self._database, owner) from error
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def release(self) -> None:
        """Let go. Repeatable."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
