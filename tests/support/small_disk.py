"""A disk that a test fills: that of the database, so that a server on it finds no room.

Where the tests may mount, it is a file system in memory: SQLite's file is there, or a tablespace of
Postgres. Elsewhere SQLite's server may not write larger files, and Postgres raises its own error for a
full disk in each table.
"""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tests.support import databases

MEGABYTES = 96

# The error of a Postgres server that cannot extend the file of a table.
_FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE disk_full USING MESSAGE = 'could not extend file: No space left on device';
END $$
"""


@dataclass(frozen=True)
class SmallDisk:
    """A disk with a database.

    Attributes:
        database: The path by which `databases` names the database.
        fill: Leave no room. Its argument is the process id of the server.
        free: Give the room back. Its argument is the process id of the server.
    """

    database: Path
    fill: Callable[[int], None]
    free: Callable[[int], None]


@contextmanager
def small_disk() -> Iterator[SmallDisk]:
    """Make a disk with an empty database until the end of the block."""
    # Another user than that of the tests may run Postgres.
    folder = Path(mkdtemp(prefix="threadhold-disk-"))
    is_local = databases.kind() == "sqlite" or databases.server().data_directory().exists()
    is_mounted = is_local and _mount(folder)
    folder.chmod(0o755)
    make = _on_file_system if is_mounted else _with_limit
    try:
        with make[databases.kind()](folder) as disk:
            yield disk
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)
        shutil.rmtree(folder)


def _mount(folder: Path) -> bool:
    """Mount a file system in memory, and return whether the system allows that."""
    options = ["-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    with suppress(OSError):
        done = subprocess.run(["mount", "-t", "tmpfs", *options], capture_output=True, check=False)
        return done.returncode == 0
    return False


def _write_filler(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as filler:
        for size in (2**20, 2**12):
            with suppress(OSError):
                while filler.write(bytes(size)):
                    pass


@contextmanager
def _sqlite_on_file_system(folder: Path) -> Iterator[SmallDisk]:
    database = folder / "data.db"

    def fill(_: int) -> None:
        # Otherwise SQLite's log has room of its own.
        databases.execute(database, "PRAGMA wal_checkpoint(TRUNCATE)")
        _write_filler(folder)

    yield SmallDisk(database, fill, lambda _: (folder / "filler").unlink())


@contextmanager
def _sqlite_with_limit(folder: Path) -> Iterator[SmallDisk]:
    database = folder / "data.db"

    def limit(process: int, size: int) -> None:
        hard = resource.prlimit(process, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(process, resource.RLIMIT_FSIZE, (size, hard))

    def fill(process: int) -> None:
        databases.execute(database, "PRAGMA wal_checkpoint(TRUNCATE)")
        limit(process, 2**16)

    yield SmallDisk(database, fill, lambda process: limit(process, resource.RLIM_INFINITY))


@contextmanager
def _postgres_on_file_system(folder: Path) -> Iterator[SmallDisk]:
    database, data, server = folder / "data.db", folder / "tablespace", databases.server()
    data.mkdir()
    owner = server.data_directory().stat()
    os.chown(data, owner.st_uid, owner.st_gid)
    server.move(database, data)
    try:
        yield SmallDisk(
            database, lambda _: _write_filler(folder), lambda _: (folder / "filler").unlink()
        )
    finally:
        server.erase_moved(database)


@contextmanager
def _postgres_with_triggers(folder: Path) -> Iterator[SmallDisk]:
    database = folder / "data.db"

    def fill(_: int) -> None:
        databases.execute(database, _FULL)
        # One table per transaction, so that the locks cannot deadlock with the server.
        for table in databases.tables(database):
            databases.execute(
                database,
                f'CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON "{table}"'
                " EXECUTE FUNCTION full_disk()",
            )

    def free(_: int) -> None:
        for table in databases.tables(database):
            databases.execute(database, f'DROP TRIGGER full_disk ON "{table}"')
        databases.execute(database, "DROP FUNCTION full_disk()")

    yield SmallDisk(database, fill, free)
    databases.erase(database)


Make = Callable[[Path], AbstractContextManager[SmallDisk]]
_on_file_system: dict[str, Make] = {
    "sqlite": _sqlite_on_file_system,
    "postgresql": _postgres_on_file_system,
}
_with_limit: dict[str, Make] = {
    "sqlite": _sqlite_with_limit,
    "postgresql": _postgres_with_triggers,
}
