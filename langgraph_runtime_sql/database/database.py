"""The database: one object owns connections, transactions and health checks."""

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import literal, select

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.answer import Answer
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.sqlite.engine import SqliteEngine, opening
from langgraph_runtime_sql.database.sqlite.ownership import Ownership, make_file
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.database.url import database_path, is_postgres
from langgraph_runtime_sql.database.visibility import Visibility, of_task
from langgraph_runtime_sql.errors import DatabaseOutage, DatabaseState, TooManyWaiting

if TYPE_CHECKING:
    from langgraph_runtime_sql.database.postgres.engine import PostgresEngine
    from langgraph_runtime_sql.database.postgres.ownership import PostgresOwnership

T = TypeVar("T")
Submit = Callable[..., None]
Timings = tuple[Callable[[float], None], Callable[[float], None]]
Recording = Callable[[Callable[[Connection], Any]], Callable[[Connection], Any]]

# A search by an index takes milliseconds. The limit stops one that scans everything.
SEARCH_SECONDS = 15.0
# The operations of a tenant's requests that may wait for a thread of a kind. Runs wait without limit.
MOST_WAITING = 1000
_PING = Prepared(select(literal(1).label("one")))


class Database:
    """Runs operations, each a plain function of one connection, each in one transaction.

    The layers above pass in their parts; `migrations.open_database` does so.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` or
            `postgresql://user:password@host:port/database`.
        upgrade: Brings the schema up to date through an engine, on the calling thread.
        register_functions: Registers the SQL functions of statements on a SQLite connection.
        visibility: Returns which rows the transaction may see; called by the caller's task.
        recording: Wraps each write, so that it also writes its audit entries; called by the
            caller's task. Without it notes are dropped.
        power_loss: Wait for the disk at each commit. Without it an acknowledged write
            survives the death of the process, but not of the machine. SQLite only.
        exclusive: Refuse to start while another process owns the database.
        shared: Allow owners that share it, too. Postgres only.
        connect: Opens the driver's connection; tests inject faults here.
    """

    def __init__(
        self,
        url: str,
        *,
        upgrade: "Callable[[SqliteEngine | PostgresEngine], None]",
        register_functions: Callable[[sqlite3.Connection], None],
        visibility: Callable[[], Visibility],
        recording: Recording | None = None,
        power_loss: bool = False,
        exclusive: bool = True,
        shared: bool = False,
        connect: Callable[..., Any] | None = None,
    ) -> None:
        self.url = url
        visibility = partial(of_task, visibility)
        self._upgrade = upgrade
        self._recording = recording or _unrecorded
        self._path: Path | None = None
        self._shared = shared
        self._engine: SqliteEngine | PostgresEngine
        self._ownership: Ownership | PostgresOwnership | None = None
        if is_postgres(url):
            # A server on SQLite does not import the driver.
            from langgraph_runtime_sql.database.postgres import engine, ownership

            self._engine = postgres = engine.PostgresEngine(
                url, visibility=visibility, connect=connect
            )
            if exclusive:
                self._ownership = ownership.PostgresOwnership(postgres, shared=shared)
        else:
            self._path = path = database_path(url)
            self._engine = SqliteEngine(
                path,
                register_functions=register_functions,
                visibility=visibility,
                power_loss=power_loss,
                connect=connect,
            )
            self._ownership = Ownership(path) if exclusive else None
        self.dialect_name: str = self._engine.dialect.name
        self._timings: Timings | None = None

    @property
    def outage(self) -> outage.Outage:
        """The state of the database: whether it can be written to."""
        return self._engine.outage

    def measure(self, timings: Timings) -> None:
        """Report the seconds of each read and write that a coroutine waits for.

        Args:
            timings: A function for reads, and one for writes.
        """
        self._timings = timings

    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Return threads, busy threads and waiting operations, for `read` and `write`."""
        return self._engine.usage()

    @property
    def alone(self) -> bool:
        """Return whether no other process works with this database."""
        return self._ownership is not None and not self._shared

    async def start(self) -> None:
        """Own the database, bring its schema up to date and start the threads.

        Raises:
            DatabaseInUse: another process owns it.
            DatabaseTooNew: a newer version of this package has migrated it.
            DatabaseTooOld: it is from before the first release.
            DatabaseIncomplete: a move into it was not finished.
            DatabaseOutage: the server cannot be reached, or the disk is full.
            DatabaseDamaged: the file is damaged.
            CannotOpen: the file cannot be used.
        """
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        self.migrate()
        self.start_threads()

    def start_threads(self) -> None:
        """Start the threads of a migrated database, blocking; `start` does both."""
        self._engine.start()

    def start_writer(self) -> None:
        """Start the threads alone, for a command on a database that another process may own."""
        self._engine.start()

    def migrate(self) -> None:
        """Own the database and bring its schema up to date. Blocks; raises as `start` does."""
        if self._ownership is not None:
            self._ownership.take()
        try:
            if self._path is not None:
                make_file(self._path)
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
        """Finish accepted operations and close. Repeatable; later use raises DatabaseClosed."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Stop as `stop` does, blocking the calling thread."""
        self.outage.stop_waiting()
        self._engine.stop()
        if self._ownership is not None:
            self._ownership.release()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn(conn)` in one snapshot, on a thread that owns a connection.

        Raises:
            TooManyWaiting: `MOST_WAITING` operations of the tenant's requests wait already.
        """
        if (timings := self._timings) is None:
            return await self._patiently(self._engine.submit_read, fn)
        began = time.perf_counter()
        found = await self._patiently(self._engine.submit_read, fn)
        timings[0](time.perf_counter() - began)
        return found

    async def search(self, fn: Callable[[Connection], T], advice: str) -> T:
        """Run a read that may examine many rows. Few run at a time, beside all other reads.

        Args:
            fn: The operation.
            advice: A sentence for the client: what to ask for instead.

        Raises:
            SearchTimeout: it took longer than `SEARCH_SECONDS`.
            TooManyWaiting: a request's search has waited for so long, or as `read` does.
        """
        return await _outcome(self._engine.submit_read, _limited(fn, advice), is_search=True)

    async def write(self, fn: Callable[[Connection], T], *, urgent: bool = False) -> T:
        """Run `fn(conn)` in one transaction; return once it is committed.

        An exception of `fn` rolls it back and is raised here. During an outage, a task within
        `outage.waited_for` waits, and `fn` runs again. `UngatedWrite` is raised in a client's request
        that has not been admitted to write.

        Args:
            fn: The operation.
            urgent: Do not wait for other writes, which may all wait for a lock. For operations
                with a deadline that wait for no such lock themselves.

        Raises:
            TooManyWaiting: as `read` does.
        """
        request_context.require_admission()
        recorded: Callable[[Connection], T] = self._recording(fn)
        if (timings := self._timings) is None:
            return await self._patiently(self._engine.submit_write, recorded, urgent=urgent)
        began = time.perf_counter()
        found = await self._patiently(self._engine.submit_write, recorded, urgent=urgent)
        timings[1](time.perf_counter() - began)
        return found

    def read_sync(self, fn: Callable[[Connection], T]) -> T:
        """Run a `read`, blocking a thread without an event loop."""
        return self._blocking(self._engine.submit_read, fn)

    def search_sync(self, fn: Callable[[Connection], T], advice: str) -> T:
        """Run a `search`, blocking a thread without an event loop."""
        submit = self._engine.submit_read
        return _blocking_outcome(submit, _limited(fn, advice), is_search=True)

    def write_sync(self, fn: Callable[[Connection], T]) -> T:
        """Run a `write`, blocking a thread without an event loop."""
        request_context.require_admission()
        recorded: Callable[[Connection], T] = self._recording(fn)
        return self._blocking(self._engine.submit_write, recorded)

    async def _patiently(self, submit: Submit, fn: Callable[[Connection], T], **how: bool) -> T:
        """Run an operation; again after an outage, if the caller's task waits for its end.

        Raises:
            DatabaseOutage: there is one, or the operation of a wait or a stream has no answer in time.
        """
        if not outage.is_bounded():
            return await self._repeated(submit, fn, **how)
        limit = asyncio.timeout(outage.STREAM_SECONDS)
        try:
            async with limit:
                return await self._repeated(submit, fn, **how)
        except TimeoutError as error:
            if not limit.expired():
                raise
            # A connection whose server is frozen, or a long queue.
            is_file = self._path is not None
            state = DatabaseState.FAILING if is_file else DatabaseState.UNREACHABLE
            raise DatabaseOutage(state, f"no answer for {outage.STREAM_SECONDS:g} s") from error

    async def _repeated(self, submit: Submit, fn: Callable[[Connection], T], **how: bool) -> T:
        while True:
            try:
                return await _outcome(submit, fn, **how)
            except DatabaseOutage:
                if not self.outage.is_waited_for():
                    raise
                # Raises, in its turn, if a stream has waited for long enough.
                await self.outage.over()

    def _blocking(self, submit: Submit, fn: Callable[[Connection], T]) -> T:
        """Run an operation like `_repeated`, blocking a thread without an event loop."""
        while True:
            try:
                return _blocking_outcome(submit, fn)
            except DatabaseOutage:
                if not self.outage.is_waited_for():
                    raise
                self.outage.block()

    async def identity(self) -> str:
        """Return a short name of a Postgres database that does not depend on its URL."""
        from langgraph_runtime_sql.database.postgres.engine import identity

        return await self.read(identity)

    async def wait_for_writes(self) -> None:
        """Wait until every accepted write has ended, also those without a waiting caller."""
        await self._engine.wait_for_writes()

    async def probe(self) -> None:
        """Write, and raise unless the database can be written to.

        Raises:
            DatabaseOutage: it cannot.
        """
        await _outcome(self._engine.submit_write, self._engine.probe)

    async def check(self) -> None:
        """Raise unless the database answers a read and a write.

        Raises:
            DatabaseOutage: it cannot be written to, such as on a full disk.
        """
        self._engine.look()
        self.outage.refuse()
        await self.read(lambda conn: conn.scalar(_PING))
        with request_context.own_write("health"):
            await self.write(lambda conn: conn.scalar(_PING))


async def _outcome(submit: Submit, fn: Callable[[Connection], T], **options: bool) -> T:
    answer: Answer[T] = Answer(asyncio.get_running_loop())
    submit(fn, answer, most=_most_waiting(), **options)
    return await answer.wait()


def _blocking_outcome(submit: Submit, fn: Callable[[Connection], T], **options: bool) -> T:
    answer: Answer[T] = Answer(None)
    submit(fn, answer, most=_most_waiting(), **options)
    return answer.block()


def _most_waiting() -> int | None:
    return MOST_WAITING if request_context.claim.get() is None else None


def _limited(fn: Callable[[Connection], T], advice: str) -> Callable[[Connection], T]:
    latest = elapsed() + SEARCH_SECONDS if request_context.claim.get() is None else math.inf

    def limited(conn: Connection) -> T:
        if elapsed() > latest:
            raise TooManyWaiting(f"{SEARCH_SECONDS:g} s of waiting for a search")
        with conn.limited(SEARCH_SECONDS, advice):
            return fn(conn)

    return limited


def _unrecorded(fn: Callable[[Connection], Any]) -> Callable[[Connection], Any]:
    return fn
