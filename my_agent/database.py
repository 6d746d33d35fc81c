"""The database of the graphs' own data: documents, profiles, candidates, jobs.

It is the server's database, so that one backup holds everything. Every row has a tenant, and every
statement filters by it. On Postgres, row-level security also limits each transaction to its tenant
(`row_security`).
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DatabaseError

from my_agent import migrations
from my_agent.transactions import ProductDatabaseError, hold

T = TypeVar("T")

metadata = MetaData()
"""All tables of the graphs; each graph defines its own in `tables.py`."""

DEFAULT_URL = "sqlite:///./data/threadhold.db"
# Seconds to wait for a lock. On SQLite the server writes to the same file: longer than its longest
# transaction. On Postgres longer than `IDLE_SECONDS`, after which a stuck transaction is aborted.
BUSY_SECONDS = 30.0
# The values below equal those of the server's own connections. The server finds stuck connections
# by `application_name` (`langgraph_runtime_sql/database/postgres/engine.py`, which graphs must not import).
IDLE_SECONDS = 10.0
_SESSION = {
    "application_name": "threadhold",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# Pool size in each server process, in addition to the server's own connections. Transactions are
# short.
CONNECTIONS = 2
MORE_CONNECTIONS = 3
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


class ProductDatabase:
    """Transactions of one database.

    The methods block: call them from a thread, or use `run`. On SQLite a write transaction blocks
    every other write of the server. Read files, call models and compute before the transaction, not
    in it.

    On Postgres a transaction sees the rows of its tenant and the shared rows, and writes only rows
    of its tenant. A transaction without a tenant sees nothing.

    Args:
        url: such as `sqlite:///data/app.db` or `postgresql://host/name`.

    Raises:
        ProductDatabaseError: the URL names an unsupported database, the schema is newer than this
            code, or the database cannot be reached, read or written.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(_parse(url))
        try:
            migrations.upgrade(self.engine)
        except DatabaseError as error:
            self.engine.dispose()
            raise ProductDatabaseError(f"The database cannot be used: {error.orig}") from error
        except BaseException:
            self.engine.dispose()
            raise

    @contextmanager
    def read(self, tenant: str | None = None) -> Iterator[Connection]:
        """Open a read-only transaction that sees one snapshot of a tenant's rows."""
        with self.engine.connect() as connection:
            hold(connection.execution_options(reads_only=True), tenant)
            yield connection

    @contextmanager
    def write(self, tenant: str | None = None) -> Iterator[Connection]:
        """Open a write transaction of a tenant. It commits at the end, and rolls back on an
        exception. In a client's request, the guard must admit it.
        """
        _guard()
        with self.engine.begin() as connection:
            hold(connection, tenant)
            yield connection

    async def run(
        self, work: Callable[[Connection], T], tenant: str | None = None, *, write: bool = False
    ) -> T:
        """Run `work` in one transaction in a thread, and return its result.

        Args:
            work: called with the connection, which it must not keep.
            tenant: the tenant whose rows the transaction may touch.
            write: whether `work` writes.
        """

        def call() -> T:
            with self.write(tenant) if write else self.read(tenant) as connection:
                return work(connection)

        return await asyncio.to_thread(call)

    def close(self) -> None:
        """Close all idle connections of the pool."""
        self.engine.dispose()


def _admits_all() -> None:
    """Admit a write: without a server, nobody asks for it."""


_guard: Callable[[], None] = _admits_all
_chosen: str | None = None
_opened: dict[str, ProductDatabase] = {}
_opening = threading.Lock()


def use(url: str | None) -> None:
    """Use the database at `url` from now on. None: the one of `DATABASE_URL`."""
    global _chosen
    _chosen = url


def guard(admits: Callable[[], None]) -> None:
    """Call `admits` before each write from now on. It raises if the caller's task may not write."""
    global _guard
    _guard = admits


def database() -> ProductDatabase:
    """Return the database in use. The first call opens and migrates it, and blocks meanwhile.

    Raises:
        ProductDatabaseError: the database cannot be used.
    """
    url = _chosen or os.environ.get("DATABASE_URL") or DEFAULT_URL
    # Without the lock, several first callers would each open their own pool.
    with _opening:
        if url not in _opened:
            _opened[url] = ProductDatabase(url)
        return _opened[url]


def close() -> None:
    """Close all databases that `database` has opened. The next call of `database` reopens them."""
    with _opening:
        for each in _opened.values():
            each.close()
        _opened.clear()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ProductDatabaseError(
            "DATABASE_URL is not a valid URL: set sqlite:///path or postgresql://..."
        ) from error
    driver = DRIVERS.get(parsed.get_backend_name())
    if driver is None:
        raise ProductDatabaseError(
            f"DATABASE_URL names the unsupported database {parsed.get_backend_name()}: "
            "set sqlite:///path or postgresql://..."
        )
    return parsed.set(drivername=driver)


def _engine(url: URL) -> Engine:
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
        raise ProductDatabaseError(f"The database cannot be used: {error}") from error


def _postgres(url: URL) -> Engine:
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
