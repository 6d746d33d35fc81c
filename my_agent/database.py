"""The database of what the graphs keep beside their threads: documents, profiles, candidates, jobs.

It is the one that the server keeps its threads in, so that one copy of it holds everything. Every
row has a tenant, and every statement asks for it. Postgres holds each transaction to its tenant, too
(`row_security`).
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DatabaseError

T = TypeVar("T")

metadata = MetaData()
"""Every table; each graph's package has its own in `tables.py`."""

DEFAULT_URL = "sqlite:///./data/threadhold.db"
SHARED = ""
"""The tenant of rows that every tenant may read. What works as it is the operator's, and sees everything."""
# The server writes to the same file: long enough for its longest turn. On Postgres, for whoever is
# stopped in the middle of a transaction to be cut off.
BUSY_SECONDS = 30.0
# From here on as the server's own connections are, by which name it ends those that got stuck
# (`langgraph_runtime_sql/database/postgres/engine.py`, which graphs know nothing of).
IDLE_SECONDS = 10.0
_SESSION = {
    "application_name": "threadhold",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# Beside those of the server, and for each of its processes: transactions here are short.
CONNECTIONS = 2
MORE_CONNECTIONS = 3
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}


class ProductDatabaseError(RuntimeError):
    """The database cannot be used; the message says why, and what to do.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class ProductDatabase:
    """Transactions of one database.

    The methods block: call them from a thread, or through `run`. On SQLite a write holds up every
    other write of the server for as long as it lasts, so it does its reading of files, its model
    calls and its sums beforehand.

    On Postgres a transaction sees the rows of its tenant and the shared ones, and writes its own;
    without a tenant it sees nothing.

    Args:
        url: such as `sqlite:///data/app.db` or `postgresql://host/name`.

    Raises:
        ProductDatabaseError: no such database is known, it is newer than this code, or it cannot be
            reached, read or written.
    """

    def __init__(self, url: str) -> None:
        from my_agent import migrations

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
        """A connection that sees one moment of a tenant's, and writes nothing."""
        with self.engine.connect() as connection:
            hold(connection.execution_options(reads_only=True), tenant)
            yield connection

    @contextmanager
    def write(self, tenant: str | None = None) -> Iterator[Connection]:
        """A connection in a tenant's transaction, committed at the end unless something is raised."""
        with self.engine.begin() as connection:
            hold(connection, tenant)
            yield connection

    async def run(
        self, work: Callable[[Connection], T], tenant: str | None = None, *, write: bool = False
    ) -> T:
        """What `work` returns, from a thread, of one transaction.

        Args:
            work: called with the connection; must not keep it.
            tenant: whose rows it is about.
            write: whether it writes.
        """

        def call() -> T:
            with self.write(tenant) if write else self.read(tenant) as connection:
                return work(connection)

        return await asyncio.to_thread(call)

    def close(self) -> None:
        """Close every connection that is not in use."""
        self.engine.dispose()


def hold(connection: Connection, tenant: str | None) -> None:
    """Hold the transaction that begins to a tenant's rows, where the database can."""
    if connection.dialect.name == "postgresql" and tenant is not None:
        setting = ("everything", "on") if tenant == SHARED else ("tenant", tenant)
        connection.execute(_HOLD, dict(zip(("name", "value"), setting, strict=True)))


_HOLD = text("SELECT set_config('threadhold.' || :name, :value, true)")


def lock(connection: Connection, name: str) -> None:
    """Hold a lock of this name until the transaction ends; others who ask for it wait.

    On SQLite a transaction that writes has the whole file to itself already.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})


_chosen: str | None = None
_opened: dict[str, ProductDatabase] = {}
_opening = threading.Lock()


def use(url: str | None) -> None:
    """Keep everything at `url` from now on; None: where `DATABASE_URL` says."""
    global _chosen
    _chosen = url


def database() -> ProductDatabase:
    """The database in use, opened and brought up to date the first time. Blocks then.

    Raises:
        ProductDatabaseError: it cannot be used.
    """
    url = _chosen or os.environ.get("DATABASE_URL") or DEFAULT_URL
    # One at a time, or else each of many first callers would open its own.
    with _opening:
        if url not in _opened:
            _opened[url] = ProductDatabase(url)
        return _opened[url]


def close() -> None:
    """Close what `database` has opened; it opens it again if it is asked."""
    with _opening:
        for each in _opened.values():
            each.close()
        _opened.clear()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ProductDatabaseError("DATABASE_URL is no URL of a database") from error
    driver = DRIVERS.get(parsed.get_backend_name())
    if driver is None:
        raise ProductDatabaseError(
            f"DATABASE_URL names {parsed.get_backend_name()}: give sqlite:///path or postgresql://..."
        )
    return parsed.set(drivername=driver)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return _postgres(url)
    if url.database:
        _make_folder(Path(url.database).expanduser().absolute().parent)
    # Without an isolation level the driver leaves BEGIN to `_begin`.
    options = {"timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None}
    engine = create_engine(url, connect_args=options)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProductDatabaseError(f"The database cannot be used: {error}") from error


def _postgres(url: URL) -> Engine:
    # What the URL says itself counts, but for the name.
    said = url.query.keys() - {"application_name"}
    engine = create_engine(
        url,
        connect_args={name: value for name, value in _SESSION.items() if name not in said},
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=MORE_CONNECTIONS,
        # Longer than those who have them wait for a lock.
        pool_timeout=2 * BUSY_SECONDS,
    )
    event.listen(engine, "connect", _bound)
    return engine


def _bound(raw: Any, record: Any) -> None:
    """Have nobody wait for ever, and a stopped process keep nobody waiting for ever."""
    raw.execute(f"SET lock_timeout = '{BUSY_SECONDS:g}s'")
    raw.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS:g}s'")
    raw.commit()


def _set_up(raw: Any, record: Any) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        raw.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    # A write takes its turn at once: one that read first could find that it has to start again.
    reads = connection.get_execution_options().get("reads_only")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
