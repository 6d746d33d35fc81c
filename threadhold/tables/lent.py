"""Lent: transactions of an application's tables on the platform's own threads and connections.

So a SQLite file has one writer, which commits in groups, and Postgres one pool. The rules of the
platform's operations apply: tenants take turns, a client's request must be admitted to write, and a
run's operations wait for the end of an outage.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, NullPool, create_engine
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import StatementError
from sqlalchemy.pool import PoolProxiedConnection

from langgraph_runtime_sql import request_context, runtime
from langgraph_runtime_sql.database import visibility
from langgraph_runtime_sql.database.connection import Connection as PlatformConnection
from langgraph_runtime_sql.errors import SearchTimeout
from langgraph_runtime_sql.options import ThreadTable
from langgraph_runtime_sql.periodic import periodic
from langgraph_runtime_sql.tenancy.scope import EVERYTHING, NOTHING, Scope, TenantScope
from threadhold.tables.tables import declared
from threadhold.tables.transactions import SHARED, TablesError

T = TypeVar("T")

EXPIRE_SECONDS = 3600.0
# The longest transactions. Others wait for a writer; on SQLite there is one.
WRITE_SECONDS = 10.0
READ_SECONDS = 60.0
_ADVICE = "Compute and wait before it, not in it, or divide it into several"
_URLS = {"sqlite": "sqlite+pysqlite://", "postgresql": "postgresql+psycopg://"}


def thread_tables() -> tuple[ThreadTable, ...]:
    """Return the declared tables whose rows belong to threads."""
    return tuple(
        ThreadTable(table.name, rule.thread, rule.tenant, rule.guard)
        for tables in declared()
        for table, rule in tables.declarations()
        if rule.thread is not None and rule.tenant is not None
    )


async def expire() -> None:
    """Delete the rows of all declared tables that are older than their rules keep them."""
    for tables in declared():
        # A process that does not use the tables leaves them to those that do.
        if tables.is_open and any(rule.keep_seconds for _, rule in tables.declarations()):
            with request_context.own_write("expiry"):
                while await tables.run(tables.expire, SHARED, write=True):
                    pass


@asynccontextmanager
async def expiring() -> AsyncIterator[None]:
    """Expire rows each hour, until the end of the block."""
    rows = periodic(
        expire, EXPIRE_SECONDS, "Rows of tables were not expired", "tables_expire_failed"
    )
    task = asyncio.create_task(rows, name="tables-expire")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class Lent:
    """`Transactions` on the database of the running platform.

    Its methods raise the errors of `Database`, those of SQLAlchemy for a statement that is wrong, and
    `TablesError` for a transaction that takes longer than `WRITE_SECONDS` or `READ_SECONDS`.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._preparing = threading.Lock()
        self._local = threading.local()

    def read(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` in one snapshot on a reader of the platform. Blocks."""
        with self._job(work, tenant, READ_SECONDS) as job:
            return runtime.current().database.read_sync(job)

    def write(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Run `work` on a writer of the platform; return once it is committed. Blocks."""
        with self._job(work, tenant, WRITE_SECONDS) as job:
            return runtime.current().database.write_sync(job)

    async def run(
        self, work: Callable[[Connection], T], tenant: str | None = None, *, write: bool = False
    ) -> T:
        """Run a `read` or `write` without blocking the event loop."""
        database = runtime.current().database
        with self._job(work, tenant, WRITE_SECONDS if write else READ_SECONDS) as job:
            return await (database.write(job) if write else database.read(job))

    def alter(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which may change tables and the rows of all tenants, without a limit. Blocks."""
        with request_context.own_write("product"), self._job(work, SHARED, None) as job:
            return runtime.current().database.write_sync(job)

    @contextmanager
    def _job(
        self, work: Callable[[Connection], T], tenant: str | None, seconds: float | None
    ) -> Iterator[Callable[[PlatformConnection], T]]:
        """Yield `work` as an operation of the platform, to submit in the block.

        The platform must see the driver's own error to translate it, or to run the operation again.
        An error that it does not translate leaves the block as SQLAlchemy's.

        Args:
            work, tenant: As in `Transactions`.
            seconds: The time limit of the transaction; None: it has none.
        """
        failed: StatementError | None = None
        if getattr(self._local, "works", False):
            # The writer would wait for itself.
            raise TablesError("A transaction cannot begin within another one")

        def job(conn: PlatformConnection) -> T:
            with nullcontext() if seconds is None else conn.limited(seconds, _ADVICE):
                result = run(conn)
                # A function that has waited for something else has not met the limit yet.
                conn.check_deadline()
                return result

        def run(conn: PlatformConnection) -> T:
            nonlocal failed
            self._local.works = True
            try:
                raw = conn.raw
                engine = self._prepared(raw, conn.dialect_name)
                borrowed = _Borrowed(raw, conn.check_deadline)
                with Connection(engine, borrowed) as connection, connection.begin():
                    return work(connection)
            except StatementError as error:
                failed = error
            finally:
                self._local.works = False
            # Here, because raised above it would be the context of its own cause.
            raise failed.orig or failed

        with visibility.chosen(_visible(tenant)):
            try:
                yield job
            except SearchTimeout as error:
                raise TablesError(
                    f"The transaction was rolled back: it took more than {seconds:g} seconds. {_ADVICE}."
                ) from error
            except Exception as error:
                if failed is not None and error is failed.orig:
                    raise failed from error
                raise

    def _prepared(self, raw: Any, kind: str) -> Engine:
        """Return the engine of SQLAlchemy for a driver's connection of this thread.

        Args:
            raw: The connection, in a transaction.
            kind: The name of its dialect.
        """
        with self._preparing:
            if self._engine is None:
                made = create_engine(_URLS[kind], poolclass=NullPool)
                with Connection(made, _Borrowed(raw)) as first, first.begin():
                    made.dialect.initialize(first)
                self._engine = made
        # As SQLAlchemy does to a connection of its own: it gives SQLite regular expressions.
        if getattr(self._local, "raw", None) is not raw:
            if (prepare := self._engine.dialect.on_connect()) is not None:
                prepare(raw)
            self._local.raw = raw
        return self._engine


def _visible(tenant: str | None) -> Scope:
    if tenant is None:
        return NOTHING
    return EVERYTHING if tenant == SHARED else TenantScope(tenant)


class _Borrowed(PoolProxiedConnection):
    """The driver's connection in a transaction of the platform, which alone ends it."""

    is_valid = True

    def __init__(self, raw: Any, check: Callable[[], None] = lambda: None) -> None:
        self._raw = raw
        self._check = check
        self.dbapi_connection = self.driver_connection = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def cursor(self, *args: Any, **options: Any) -> DBAPICursor:
        self._check()
        cursor: DBAPICursor = self._raw.cursor(*args, **options)
        return cursor

    def commit(self) -> None:
        """Do nothing: the platform commits, perhaps with other operations."""

    def rollback(self) -> None:
        """Do nothing, as `commit` does."""

    def close(self) -> None:
        """Do nothing, as `commit` does."""

    def invalidate(self, e: BaseException | None = None, soft: bool = False) -> None:
        """Do nothing: the platform discards a connection that is lost."""
