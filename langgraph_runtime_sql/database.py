"""Database: the one object that owns connections, transactions, health and migrations."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import literal, select

from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.delivery import Answer
from langgraph_runtime_sql.errors import NotStarted
from langgraph_runtime_sql.ownership import Ownership
from langgraph_runtime_sql.sqlite import Connect, SqliteEngine
from langgraph_runtime_sql.statements import Prepared
from langgraph_runtime_sql.urls import database_path

T = TypeVar("T")

_PING = Prepared(select(literal(1).label("one")))


class Database:
    """Runs operations, each a plain function of one connection, each in one transaction.

    Args:
        url: `sqlite:///relative.db` or `sqlite:////absolute.db`.
        power_loss: Wait for the disk at each commit. Without it an acknowledged
            write survives the death of the process, not of the machine.
        exclusive: Refuse to start while another process owns the file.
        connect: Opens the driver's connection; tests inject faults here.
    """

    def __init__(
        self,
        url: str,
        *,
        power_loss: bool = False,
        exclusive: bool = True,
        connect: Connect | None = None,
    ) -> None:
        self.url = url
        self._path = database_path(url)
        self._engine = SqliteEngine(self._path, power_loss=power_loss, connect=connect)
        self._ownership = Ownership(self._path) if exclusive else None
        self.dialect_name: str = self._engine.dialect.name

    async def start(self) -> None:
        """Take the file, bring its schema up to date and open the threads.

        Raises:
            DatabaseInUse: another process owns the file.
            DatabaseTooNew: a newer version of this package has migrated it.
        """
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        from langgraph_runtime_sql.migrations import upgrade

        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._ownership is not None:
            self._ownership.take()
        try:
            upgrade(self._engine)
        except BaseException:
            if self._ownership is not None:
                self._ownership.release()
            raise
        self._engine.start()

    async def stop(self) -> None:
        """Finish what was accepted and close. Repeatable; later use raises DatabaseClosed."""
        await asyncio.to_thread(self._engine.stop)
        if self._ownership is not None:
            self._ownership.release()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """`fn(conn)` in one snapshot, on a thread that owns a connection."""
        answer: Answer[T] = Answer(asyncio.get_running_loop())
        self._engine.submit_read(fn, answer)
        return await answer.wait()

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """`fn(conn)` in one transaction; returns once it is committed.

        Whatever `fn` raises undoes it and is raised here.
        """
        answer: Answer[T] = Answer(asyncio.get_running_loop())
        self._engine.submit_write(fn, answer)
        return await answer.wait()

    def read_sync(self, fn: Callable[[Connection], T]) -> T:
        """`read` for a thread without an event loop: it blocks."""
        answer: Answer[T] = Answer(None)
        self._engine.submit_read(fn, answer)
        return answer.block()

    def write_sync(self, fn: Callable[[Connection], T]) -> T:
        """`write` for a thread without an event loop: it blocks."""
        answer: Answer[T] = Answer(None)
        self._engine.submit_write(fn, answer)
        return answer.block()

    async def check(self) -> None:
        """Raise unless the database answers a read and a write."""
        await self.read(lambda conn: conn.scalar(_PING))
        await self.write(lambda conn: conn.scalar(_PING))


_current: Database | None = None


def open_database(url: str, **options: Any) -> Database:
    """A database that is not the runtime's: for tools and tests. Start and stop it."""
    return Database(url, **options)


def current() -> Database:
    """The runtime's database.

    Raises:
        NotStarted: outside the platform's lifespan.
    """
    if _current is None:
        raise NotStarted
    return _current


async def start_pool() -> None:
    """Open the database that the configuration names."""
    global _current
    from langgraph_api import config

    from langgraph_runtime_sql import options, store

    if _current is not None:
        return
    # Before the start, which makes the store's tables as they are configured.
    store.set_store_config(config.STORE_CONFIG)
    database = Database(str(config.DATABASE_URI), power_loss=options.current().power_loss)
    await database.start()
    _current = database


async def stop_pool() -> None:
    """Close it. Repeatable."""
    global _current
    database, _current = _current, None
    if database is not None:
        await database.stop()


class Handle:
    """What `connect()` yields. Operations own their transactions, so it holds no connection.

    The API creates a batch of runs in one task each, which wait for each other. Where one
    fails, the others would wait for ever, so they share the fate of their handle.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed = False

    def enlist(self) -> None:
        """Cancel the current task when this handle's block fails.

        Raises:
            asyncio.CancelledError: it has failed already.
        """
        if self._failed:
            raise asyncio.CancelledError("Another operation on the same connection has failed")
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)

    def fail(self) -> None:
        """The block has failed: cancel the other tasks that are still at it."""
        self._failed = True
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel("Another operation on the same connection has failed")


@asynccontextmanager
async def connect(*, supports_core_api: bool = False) -> AsyncIterator[Handle]:
    """The interface's connection: each operation commits before it returns."""
    handle = Handle()
    try:
        yield handle
    except BaseException:
        handle.fail()
        raise


async def healthcheck(*, check_db: bool = True) -> None:
    """Raise unless the database is well."""
    if check_db:
        await current().check()


def dependency_checks() -> dict[str, Callable[[], Awaitable[None]]]:
    """What `/ok?check_db=1` asks, by name."""
    return {"database": current().check}


def pool_stats(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Pool figures of a client-server database; SQLite has none."""
    return {}


def migrate(url: str) -> None:
    """Bring the schema of `url` up to date, without starting anything."""
    from langgraph_runtime_sql.migrations import upgrade

    path = database_path(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    ownership = Ownership(path)
    ownership.take()
    engine = SqliteEngine(path)
    try:
        upgrade(engine)
    finally:
        engine.stop()
        ownership.release()
