"""Database: the one object that owns connections, transactions and health."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import literal, select

from langgraph_runtime_sql.database.answer import Answer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.sqlite.engine import SqliteEngine, opening
from langgraph_runtime_sql.database.sqlite.ownership import Ownership, make_folder
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.database.visibility import Visibility

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
    from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership

T = TypeVar("T")

# A search of an index takes milliseconds; one that does not end keeps others waiting.
SEARCH_SECONDS = 15.0
_PING = Prepared(select(literal(1).label("one")))


class Database:
    """Runs operations, each a plain function of one connection, each in one transaction.

    What lies above this package is handed in; `migrations.open_database` does so.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` or
            `postgresql://user:password@host:port/database`.
        upgrade: Brings the schema up to date through an engine, on the calling thread.
        register_functions: Gives a connection to SQLite the SQL functions of statements.
        visibility: Which rows the caller's transactions see, asked where the caller is.
        power_loss: Wait for the disk at each commit. Without it an acknowledged
            write survives the death of the process, not of the machine. Postgres
            decides this for itself.
        exclusive: Refuse to start while another process owns the database.
        shared: But not while those own it that share it, too. Postgres only.
        connect: Opens the driver's connection; tests inject faults here.
    """

    def __init__(
        self,
        url: str,
        *,
        upgrade: "Callable[[SqliteEngine | PostgresEngine], None]",
        register_functions: Callable[[sqlite3.Connection], None],
        visibility: Callable[[], Visibility],
        power_loss: bool = False,
        exclusive: bool = True,
        shared: bool = False,
        connect: Callable[..., Any] | None = None,
    ) -> None:
        self.url = url
        self._upgrade = upgrade
        self._path: Path | None = None
        self._shared = shared
        self._engine: SqliteEngine | PostgresEngine
        self._ownership: Ownership | PostgresOwnership | None = None
        if is_postgres(url):
            # Here, because whoever serves a file need not wait for the driver.
            from langgraph_runtime_sql.database.postgres import (
                engine as postgres,
            )
            from langgraph_runtime_sql.database.postgres import (
                ownership as postgres_ownership,
            )

            self._engine = engine = postgres.PostgresEngine(
                url, visibility=visibility, connect=connect
            )
            if exclusive:
                self._ownership = postgres_ownership.PostgresOwnership(engine, shared=shared)
        else:
            self._path = path = database_path(url)
            self._engine = SqliteEngine(
                path,
                register_functions=register_functions,
                power_loss=power_loss,
                connect=connect,
            )
            self._ownership = Ownership(path) if exclusive else None
        self.dialect_name: str = self._engine.dialect.name

    @property
    def alone(self) -> bool:
        """Whether no other process works with this database."""
        return self._ownership is not None and not self._shared

    async def start(self) -> None:
        """Take the database, bring its schema up to date and open the threads.

        Raises:
            DatabaseInUse: another process owns it.
            DatabaseTooNew: a newer version of this package has migrated it.
            DatabaseIncomplete: a move into it was not finished.
            DatabaseOverloaded: the server cannot be reached.
            CannotOpen: the file cannot be used.
        """
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        self.migrate()
        self._engine.start()

    def migrate(self) -> None:
        """Take the database and bring its schema up to date, on the calling thread.

        Raises:
            DatabaseInUse, DatabaseTooNew, DatabaseIncomplete, DatabaseOverloaded, CannotOpen: as
                `start`.
        """
        if self._ownership is not None:
            self._ownership.take()
        elif self._path is not None:
            make_folder(self._path)
        try:
            self._migrate()
        except BaseException:
            if self._ownership is not None:
                self._ownership.release()
            raise

    def _migrate(self) -> None:
        if self._path is not None:
            with opening(self._path):
                self._upgrade(self._engine)
            return
        self._upgrade(self._engine)
        if self._ownership is not None:
            from langgraph_runtime_sql.database.postgres.ownership import check_complete

            check_complete(self.url)

    async def stop(self) -> None:
        """Finish what was accepted and close. Repeatable; later use raises DatabaseClosed."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`stop` on the calling thread."""
        self._engine.stop()
        if self._ownership is not None:
            self._ownership.release()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """`fn(conn)` in one snapshot, on a thread that owns a connection."""
        answer: Answer[T] = Answer(asyncio.get_running_loop())
        self._engine.submit_read(fn, answer)
        return await answer.wait()

    async def search(self, fn: Callable[[Connection], T], advice: str) -> T:
        """`read` for what may have to look at everything: a few at a time, beside all other reads.

        Args:
            fn: The operation.
            advice: A sentence for whoever asks for too much.

        Raises:
            TooSlow: it took longer than `SEARCH_SECONDS`, and was cut off.
        """
        answer: Answer[T] = Answer(asyncio.get_running_loop())
        self._engine.submit_search(_limited(fn, advice), answer)
        return await answer.wait()

    async def write(self, fn: Callable[[Connection], T], *, urgent: bool = False) -> T:
        """`fn(conn)` in one transaction; returns once it is committed.

        Whatever `fn` raises undoes it and is raised here.

        Args:
            fn: The operation.
            urgent: Do not wait for other writes, which may all be waiting for a lock. For what
                has to be done in time, and waits for no lock of theirs itself.
        """
        answer: Answer[T] = Answer(asyncio.get_running_loop())
        self._engine.submit_write(fn, answer, urgent=urgent)
        return await answer.wait()

    def read_sync(self, fn: Callable[[Connection], T]) -> T:
        """`read` for a thread without an event loop: it blocks."""
        answer: Answer[T] = Answer(None)
        self._engine.submit_read(fn, answer)
        return answer.block()

    def search_sync(self, fn: Callable[[Connection], T], advice: str) -> T:
        """`search` for a thread without an event loop: it blocks."""
        answer: Answer[T] = Answer(None)
        self._engine.submit_search(_limited(fn, advice), answer)
        return answer.block()

    def write_sync(self, fn: Callable[[Connection], T]) -> T:
        """`write` for a thread without an event loop: it blocks."""
        answer: Answer[T] = Answer(None)
        self._engine.submit_write(fn, answer)
        return answer.block()

    async def identity(self) -> str:
        """A short name of a Postgres database, the same whatever URL a process came by."""
        from langgraph_runtime_sql.database.postgres import engine as postgres

        return await self.read(postgres.identity)

    async def settled(self) -> None:
        """Wait until every write that was accepted so far has ended, whoever still waits for it."""
        await self._engine.settled()

    async def check(self) -> None:
        """Raise unless the database answers a read and a write."""
        await self.read(lambda conn: conn.scalar(_PING))
        await self.write(lambda conn: conn.scalar(_PING))


def _limited(fn: Callable[[Connection], T], advice: str) -> Callable[[Connection], T]:
    def limited(conn: Connection) -> T:
        with conn.limited(SEARCH_SECONDS, advice):
            return fn(conn)

    return limited
