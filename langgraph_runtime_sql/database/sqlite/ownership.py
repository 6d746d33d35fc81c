"""Ownership: one process owns a SQLite file."""

import fcntl
import os
from pathlib import Path

from langgraph_runtime_sql.errors import CannotOpen, FileInUse


def make_folder(database: Path) -> None:
    """Make the folder of a file.

    Raises:
        CannotOpen: it cannot be made.
    """
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotOpen(database, error) from error


def open_beside(database: Path, suffix: str, access: int, mode: int) -> int:
    """Open a file beside a database, or make it and the folder of both.

    Args:
        suffix: What its name has more than the database's.
        access: `os.O_RDWR` or `os.O_RDONLY`.
        mode: Who may use it once it is made.

    Raises:
        CannotOpen: it cannot be made or opened.
    """
    make_folder(database)
    path = database.with_name(database.name + suffix)
    try:
        return os.open(path, access | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as error:
        raise CannotOpen(database, error) from error


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
            CannotOpen: nothing can be written beside it.
        """
        file = open_beside(self._database, ".lock", os.O_RDWR, 0o600)
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
