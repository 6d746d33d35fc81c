"""Postgres engine: a pool of threads, and the connections that they take in turn.

SQLite has one writer; here several write at the same time. So an operation locks the rows that it
reads in order to change them (`Connection.locks`), always the thread before its runs. What still
collides is rolled back by Postgres and run again by the engine.
"""

import asyncio
import hashlib
import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import orjson
import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import set_json_loads

from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.answer import Answer, run_callbacks
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.outage import Outage
from langgraph_runtime_sql.database.postgres.connection import DIALECT, PostgresConnection
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline
from langgraph_runtime_sql.database.postgres.sessions import Sessions, first_line, unreachable
from langgraph_runtime_sql.database.postgres.turns import InterpreterTurns
from langgraph_runtime_sql.database.url import postgres_dsn
from langgraph_runtime_sql.database.visibility import NoRows, Visibility
from langgraph_runtime_sql.errors import (
    DatabaseBusy,
    DatabaseClosed,
    DatabaseDamaged,
    DatabaseOutage,
    DatabaseOverloaded,
    DatabaseState,
    OtherTenants,
    SupersededAttempt,
    WriteConflict,
)
from langgraph_runtime_sql.thread_pool import ThreadPool

logger = logging.getLogger(__name__)

T = TypeVar("T")
Raw = psycopg.Connection[Any]
Connect = Callable[..., Any]

# Each tenant leaves one of the threads of a kind to the others.
READERS = 5
WRITERS = 9
# Additional writers for urgent work: renew leases, claim or free runs, end stuck transactions.
URGENT = 3
# Separate threads, so that short reads do not wait for long searches.
SEARCHERS = 3
# Attempts of an operation that collides with others, and the upper limit of the first pause.
ATTEMPTS = 8
PAUSE_SECONDS = 0.01
# Operations wait this long for a lost server; a restart takes less.
RECONNECT_SECONDS = 15.0
# The application name of all our sessions.
APPLICATION = "threadhold"
# The system detects a server whose machine has died: no message arrives from it.
_NETWORK = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
LOCK_SECONDS = 10
# A stop waits this long for operations, and again for those that it has disconnected.
STOP_SECONDS = 5.0
# More than the number of statements, so that each is prepared once.
PREPARED = 500

_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_SET_UP = (
    "SET TIME ZONE 'UTC'",
    f"SET lock_timeout = '{LOCK_SECONDS}s'",
    # Compilation takes longer than our short statements. The planner does not know them to be
    # short: a search stops at the end of its page.
    "SET jit = off",
    # Our statements find rows by keys, and each value has the same plan. Of a partitioned table
    # Postgres would plan each call anew, which takes longer than the call.
    "SET plan_cache_mode = force_generic_plan",
    # A suspended process must not hold its locks forever.
    "SET idle_in_transaction_session_timeout = '10s'",
)

# Another transaction was faster. A retry sees its changes, and succeeds or raises the true error.
_COLLISIONS = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
    # What the row builds on has gone: the base of a checkpoint.
    errors.CheckViolation,
    # The session has lost its prepared statements; a retry prepares them anew.
    errors.InvalidSqlStatementName,
    WriteConflict,
)
_BUSY = (errors.SerializationFailure, errors.DeadlockDetected)
_OUTAGES: tuple[tuple[Any, DatabaseState], ...] = (
    (errors.DiskFull, DatabaseState.DISK_FULL),
    (errors.IoError, DatabaseState.FAILING),
    (errors.ReadOnlySqlTransaction, DatabaseState.READ_ONLY),
)
# A probe extends a file by this many rows of nearly 2,000 bytes, which Postgres does not compress.
_MAY_PROBE = "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
_PROBE = """
CREATE TEMPORARY TABLE threadhold_probe ON COMMIT DROP AS
SELECT repeat('x', 1900) AS room FROM generate_series(1, 550)
"""


def translate(error: BaseException) -> BaseException:
    """Return our error for a driver's, unless the operation itself caused it."""
    if isinstance(error, _BUSY):
        return DatabaseBusy(first_line(error))
    if isinstance(error, errors.LockNotAvailable):
        # Not DatabaseBusy, which callers retry at once: each retry would occupy a writer.
        return DatabaseOverloaded(
            "Another transaction has held a lock for too long: try again later"
        )
    if isinstance(error, errors.InsufficientPrivilege) and _is_policy(error):
        return OtherTenants()
    if isinstance(error, psycopg.Error) and error.sqlstate == SupersededAttempt.SQLSTATE:
        return SupersededAttempt(first_line(error))
    if isinstance(error, psycopg.DataError | errors.ProgramLimitExceeded):
        # NUL, a number or date outside a column's range, a key too long for an index.
        return ValueError(f"A value cannot be stored or compared: {first_line(error)}")
    for kinds, state in _OUTAGES:
        if isinstance(error, kinds):
            return DatabaseOutage(state, first_line(error))
    if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
        return DatabaseDamaged("The Postgres database", first_line(error))
    if isinstance(error, psycopg.OperationalError):
        return DatabaseOverloaded(first_line(error))
    return error


def _is_policy(error: psycopg.Error) -> bool:
    """Return whether a policy refused the row; otherwise the role lacks a privilege."""
    return error.diag.source_function == "ExecWithCheckOptions"


class PostgresEngine:
    """The threads and connections of this process to one Postgres database.

    Args:
        url: As in `Database`.
        visibility: As in `Database`. Without it transactions see no tenant's rows.
        connect: Opens the driver's connection; tests inject faults here.

    Attributes:
        outage: Whether the database can be reached and written to.
    """

    dialect = DIALECT

    def __init__(
        self,
        url: str,
        *,
        visibility: Callable[[], Visibility] | None = None,
        connect: Connect | None = None,
    ) -> None:
        self.dsn = postgres_dsn(url)
        self.outage = Outage()
        self._visibility = visibility or NoRows
        self._turns = InterpreterTurns()
        self._connect: Connect = connect or self._turns.connect
        self._sessions = Sessions(self._open_again)
        self._readers = ThreadPool(READERS, "postgres-read")
        self._searchers = ThreadPool(SEARCHERS, "postgres-search")
        self._writers = ThreadPool(WRITERS, "postgres-write", reserve=URGENT)
        self._writing: set[Future[None]] = set()
        self._refusal: Exception | None = None

    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Return threads, busy threads and waiting operations, for `read` and `write`."""
        return {"read": self._readers.usage(), "write": self._writers.usage()}

    def start(self) -> None:
        """Do nothing: threads and connections start with the first operations."""

    def stop(self) -> None:
        """Finish accepted operations, then close. Blocks; repeatable.

        If the server does not answer in time, its connections are shut down. Operations without an
        answer were never reported as done.
        """
        self.refuse(DatabaseClosed())
        finishing = threading.Thread(target=self._finish, name="postgres-stop", daemon=True)
        finishing.start()
        finishing.join(STOP_SECONDS)
        if finishing.is_alive():
            self._cut_off()
            finishing.join(STOP_SECONDS)
        self._sessions.close()

    def _finish(self) -> None:
        self._writers.stop()
        self._readers.stop()
        self._searchers.stop()

    def _cut_off(self) -> None:
        logger.warning("Cancelled unfinished operations, because Postgres did not answer")
        self._sessions.cut_off()

    def refuse(self, reason: Exception) -> None:
        """Raise `reason` for each operation from now on; the first reason stays."""
        self._refusal = self._refusal or reason
        self._sessions.finish()

    def submit_write(
        self,
        fn: Callable[[Connection], T],
        answer: Answer[T],
        *,
        most: int | None = None,
        urgent: bool = False,
    ) -> None:
        """Run `fn` on a writer; `answer` gets its outcome after the commit.

        Raises:
            TooManyWaiting: `most` operations of the caller's tenant wait already.
        """
        writing = self._submit(self._writers, _WRITE, fn, answer, most, urgent=urgent)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def wait_for_writes(self) -> None:
        """Wait until every accepted write has ended."""
        if writing := [asyncio.wrap_future(each) for each in list(self._writing)]:
            await asyncio.wait(writing)

    def submit_read(
        self,
        fn: Callable[[Connection], T],
        answer: Answer[T],
        *,
        most: int | None = None,
        is_search: bool = False,
    ) -> None:
        """Run `fn` in one snapshot, on a reader or on a thread for long searches.

        Raises:
            TooManyWaiting: `most` operations of the caller's tenant wait already.
        """
        self._submit(self._searchers if is_search else self._readers, _READ, fn, answer, most)

    def _submit(
        self,
        pool: ThreadPool,
        begin: bytes,
        fn: Callable[[Connection], T],
        answer: Answer[T],
        most: int | None,
        *,
        urgent: bool = False,
    ) -> Future[None]:
        if self._refusal is not None:
            raise self._refusal
        try:
            # Called by the caller's task: the pool's threads do not know its scope.
            visible = self._visibility()
            work = partial(self._answer, begin, visible, fn, answer, elapsed())
            return pool.submit(work, tenant=visible.turn, urgent=urgent, most=most)
        except RuntimeError as error:
            # The pool was stopped after the check above.
            raise DatabaseClosed from error

    def open(self) -> Raw:
        """Open a connection with the engine's settings, for the caller to close.

        Raises:
            psycopg.OperationalError: the server cannot be reached, or refuses.
        """
        options = {**_NETWORK, "application_name": APPLICATION}
        # The URL's own parameters win, except for the application name, which finds our sessions.
        for name in conninfo_to_dict(self.dsn).keys() & _NETWORK.keys():
            del options[name]
        # Statements are prepared at the first use: there are few, and they repeat.
        raw: Raw = self._connect(self.dsn, autocommit=True, prepare_threshold=0, **options)
        try:
            raw.prepared_max = PREPARED
            for statement in _SET_UP:
                raw.execute(statement)
            set_json_loads(orjson.loads, raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def reach(self) -> Raw:
        """Open a connection as `open` does.

        Raises:
            DatabaseOutage: the server cannot be reached, or refuses.
        """
        try:
            return self.open()
        except psycopg.OperationalError as error:
            raise unreachable(error) from error

    def probe(self, conn: Connection) -> None:
        """Raise unless the database can write, and has room for a megabyte."""
        [[may_extend]] = conn.raw.execute(_MAY_PROBE).fetchall()
        # A role without the right ends the outage, and the next failure begins another.
        conn.raw.execute(_PROBE if may_extend else "SELECT txid_current()")

    def look(self) -> None:
        """Do nothing: only Postgres knows about its disk."""

    def _answer(
        self,
        begin: bytes,
        visibility: Visibility,
        fn: Callable[[Connection], T],
        answer: Answer[T],
        asked_at: float,
    ) -> None:
        if begin is _READ and answer.is_cancelled:
            return
        try:
            pipeline, result, committed = self._transact(begin, visibility, fn, asked_at)
        except BaseException as error:  # noqa: BLE001  # the caller's to handle
            found = translate(error)
            self.outage.note(found, asked_at)
            answer.fail(found)
            return
        run_callbacks(committed)
        answer.give(result)
        if begin is _READ:
            # The answer need not wait for the end of a transaction that only read.
            pipeline.end(b"COMMIT")
        self._sessions.give(pipeline)

    def _transact(
        self,
        begin: bytes,
        visibility: Visibility,
        fn: Callable[[Connection], T],
        asked_at: float,
    ) -> tuple[Pipeline, T, list[Callable[[], None]]]:
        """Return the connection, the result of `fn`, committed, and the callbacks of the commit."""
        attempt = 0
        while True:
            attempt += 1
            is_away = self.outage.state is DatabaseState.UNREACHABLE
            pipeline = self._sessions.take(asked_at + (0 if is_away else RECONNECT_SECONDS))
            try:
                return pipeline, *self._once(pipeline, begin, visibility, fn)
            except BaseException as error:
                is_lost = pipeline.raw.closed
                self._sessions.give(pipeline)
                if attempt >= ATTEMPTS or not isinstance(error, psycopg.Error | WriteConflict):
                    raise
                if isinstance(error, _COLLISIONS):
                    time.sleep(random.uniform(0, PAUSE_SECONDS * attempt))
                elif not is_lost:
                    raise
                # A connection that was lost before the commit: a retry on a new one is safe.

    def _once(
        self,
        pipeline: Pipeline,
        begin: bytes,
        visibility: Visibility,
        fn: Callable[[Connection], T],
    ) -> tuple[T, list[Callable[[], None]]]:
        with self._turns.turn():
            try:
                connection = PostgresConnection(pipeline, begin, visibility, locks=begin is _WRITE)
                result = fn(connection)
                if begin is _WRITE:
                    self._commit(pipeline)
            except BaseException:
                pipeline.end(b"ROLLBACK")
                raise
            return result, connection.committed()

    @staticmethod
    def _commit(pipeline: Pipeline) -> None:
        committed = pipeline.add(b"COMMIT")
        try:
            pipeline.flush()
        except psycopg.OperationalError as error:
            # If an earlier command has an answer, the commit has not begun.
            before = error.sqlstate is not None and committed.result is None
            if before or not pipeline.raw.closed:
                raise
            raise DatabaseOverloaded(
                "The connection to Postgres was lost during a commit: the write may or may not "
                "be stored"
            ) from error
        if committed.result is None or committed.result.command_status != b"COMMIT":
            # The operation continued after a database error: nothing of it is stored.
            raise DatabaseOverloaded("The database rolled the transaction back: try again")

    def _open_again(self) -> Raw:
        """Open a connection, which ends an outage of a server that was away."""
        raw = self.open()
        if self.outage.state is DatabaseState.UNREACHABLE:
            self.outage.end()
        return raw


def try_lock(raw: Raw, key: int, *, shared: bool = False) -> bool:
    """Try to take an advisory lock without waiting; return whether it was taken."""
    function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    row = raw.execute(f"SELECT {function}(%s)", (key,)).fetchone()
    return bool(row and row[0])


def identity(conn: Connection) -> str:
    """Return a short name of the database that all its processes agree on and no other has."""
    raw = conn.raw
    query = "SELECT oid, datname FROM pg_database WHERE datname = current_database()"
    named = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
    [permitted] = raw.execute(named).fetchone()
    found = [str(each) for each in raw.execute(query).fetchone()]
    if permitted:
        [cluster] = raw.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
        found.append(str(cluster))
    return hashlib.blake2b(":".join(found).encode(), digest_size=6).hexdigest()
