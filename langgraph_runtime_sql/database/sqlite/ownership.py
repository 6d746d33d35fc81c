"""Ownership: one process owns a SQLite file."""

import fcntl
import os
from pathlib import Path

from langgraph_runtime_sql.errors import CannotOpen, FileInUse

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def make_folder(database: Path) -> None:
    """Create the folder of a file. Only its owner may enter what this creates.

    Raises:
        CannotOpen: the folder cannot be created.
    """
    folder, missing = database.parent, []
    try:
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        # A file in the place of the folder.
        database.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise CannotOpen(database, error) from error


def make_file(database: Path) -> None:
    """Create a missing database file, which only its owner may read; SQLite's own may be read by all.

    The files that SQLite creates beside it get the same permissions.

    Raises:
        CannotOpen: the file or its folder cannot be created.
    """
    make_folder(database)
    if not database.exists():
        os.close(open_beside(database, "", os.O_RDWR, PRIVATE_FILE))


def open_beside(database: Path, suffix: str, access: int, mode: int) -> int:
    """Open a file beside a database; create it and the folder if missing.

    Args:
        database: The database file.
        suffix: Appended to the database's name.
        access: `os.O_RDWR` or `os.O_RDONLY`.
        mode: The permissions of a new file.

    Raises:
        CannotOpen: the file cannot be created or opened.
    """
    make_folder(database)
    path = database.with_name(database.name + suffix)
    try:
        return os.open(path, access | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as error:
        raise CannotOpen(database, error) from error


class Ownership:
    """A lock file beside the database. The system releases the lock when its holder dies.

    SQLite alone would admit a second process, with a second queue and event bus. It would start
    runs whose events the clients of the first process never receive.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file: int | None = None

    def take(self) -> None:
        """Own the file.

        Raises:
            DatabaseInUse: another process owns it.
            CannotOpen: the lock file cannot be written.
        """
        file = open_beside(self._database, ".lock", os.O_RDWR, PRIVATE_FILE)
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
        """Release the lock. Repeatable."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
