"""Engine: transactions on connections of our own, where no platform runs in the process."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event, make_url
from sqlalchemy import Engine as SqlEngine
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from threadhold.tables.transactions import SHARED, TablesError, hold

T = TypeVar("T")

# Seconds to wait for a lock. On SQLite a server may write to the same file: longer than its longest
# transaction. On Postgres longer than `IDLE_SECONDS`, after which a stuck transaction is aborted.
BUSY_SECONDS = 30.0
# The values below equal those of the server's connections. A server finds stuck connections by
# `application_name` (`langgraph_runtime_sql/database/postgres/engine.py`, which needs the driver).
IDLE_SECONDS = 10.0
_SESSION = {
    "application_name": "threadhold",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# Pool size in each process. Transactions are short.
CONNECTIONS = 2
MORE_CONNECTIONS = 3
_DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


class Engine:
    """Transactions of one database, as `Transactions` says.

    On SQLite a write transaction blocks every other write to the file. Read files, call models and
    compute before the transaction, not in it.

    Args:
        url: such as `sqlite:///data/app.db` or `postgresql://host/name`.

    Raises:
        TablesError: the URL names an unsupported database, or a file that cannot be made.
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(_parse(url))

    @contextmanager
    def reading(self, tenant: str | None = None) -> Iterator[Connection]:
        """Open a read-only transaction that sees one snapshot of a tenant's rows."""
        with self._engine.connect() as connection:
            hold(connection.execution_options(reads_only=True), tenant)
            yield connection

    @contextmanager
    def writing(self, tenant: str | None = None) -> Iterator[Connection]:
        """Open a transaction of a tenant that commits at the end, and rolls back on an exception."""
        with self._engine.begin() as connection:
            hold(connection, tenant)
            yield connection

    def read(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in a read-only transaction, and return its result. Blocks."""
        with self.reading(tenant) as connection:
            return work(connection)

    def write(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in a transaction that commits unless it raises. Blocks."""
        with self.writing(tenant) as connection:
            return work(connection)

    async def run(
        self, work: Callable[[Connection], T], tenant: str | None = None, *, write: bool = False
    ) -> T:
        """Run a `read` or `write` in a thread."""
        return await asyncio.to_thread(self.write if write else self.read, work, tenant)

    def alter(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which may change tables and the rows of all tenants. Blocks."""
        return self.write(work, SHARED)

    def close(self) -> None:
        """Close all idle connections of the pool."""
        self._engine.dispose()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise TablesError(
            "DATABASE_URL is not a valid URL: set sqlite:///path or postgresql://..."
        ) from error
    driver = _DRIVERS.get(parsed.get_backend_name())
    if driver is None:
        raise TablesError(
            f"DATABASE_URL names the unsupported database {parsed.get_backend_name()}: "
            "set sqlite:///path or postgresql://..."
        )
    return parsed.set(drivername=driver)


def _engine(url: URL) -> SqlEngine:
    if url.get_backend_name() != "sqlite":
        return _postgres(url)
    if url.database:
        _make_private(Path(url.database).expanduser().absolute())
    # With `isolation_level` None the driver sends no BEGIN of its own; `_begin` does.
    options = {"timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None}
    engine = create_engine(url, connect_args=options)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _make_private(file: Path) -> None:
    """Create a missing file and its folders, which only their owner may read."""
    try:
        for folder in reversed(file.parents):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise TablesError(f"The database cannot be used: {error}") from error


def _postgres(url: URL) -> SqlEngine:
    # Options in the URL take precedence, except for the name.
    given = url.query.keys() - {"application_name"}
    engine = create_engine(
        url,
        connect_args={name: value for name, value in _SESSION.items() if name not in given},
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=MORE_CONNECTIONS,
        # Longer than any connection in use can wait for a lock.
        pool_timeout=2 * BUSY_SECONDS,
    )
    event.listen(engine, "connect", _set_timeouts)
    return engine


def _set_timeouts(raw: Any, record: Any) -> None:
    """Bound each wait for a lock, and abort transactions of a process that has stopped."""
    raw.execute(f"SET lock_timeout = '{BUSY_SECONDS:g}s'")
    raw.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS:g}s'")
    raw.commit()


def _set_pragmas(raw: Any, record: Any) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        raw.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    # A write takes the lock at once: a transaction that reads first could fail when it starts to
    # write, because another one has written since.
    reads = connection.get_execution_options().get("reads_only")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
