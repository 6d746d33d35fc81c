"""Postgres: a pool of threads, each with a connection of its own.

Where SQLite has one writer, these write beside each other. So an operation locks
what it reads in order to change it (`Connection.locks`), always the thread before
its runs; what still collides is undone by Postgres and done again here.
"""

import asyncio
import hashlib
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import orjson
import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import set_json_loads

from langgraph_runtime_sql.database.answer import Answer, tell_of_commit
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.postgres.connection import DIALECT, PostgresConnection
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline
from langgraph_runtime_sql.database.postgres.thread_pool import ThreadPool
from langgraph_runtime_sql.database.url import postgres_dsn
from langgraph_runtime_sql.database.visibility import Visibility
from langgraph_runtime_sql.errors import (
    Collided,
    DatabaseBusy,
    DatabaseClosed,
    DatabaseOverloaded,
    OtherTenants,
    SupersededAttempt,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Raw = psycopg.Connection[Any]
Connect = Callable[..., Any]

READERS = 4
WRITERS = 8
# More of them, for what is urgent: to renew leases, to claim or free runs, to end what got stuck.
URGENT = 3
# Beside the readers, so that those who look for one row do not wait for who looks at all.
SEARCHERS = 2
# How often an operation that collides with others is done again, and the longest first pause.
ATTEMPTS = 8
PAUSE_SECONDS = 0.01
# A restart of the server takes less; until then operations wait for it.
RECONNECT_SECONDS = 15.0
# By which the sessions of all our processes are known.
APPLICATION = "threadhold"
# A server whose machine is gone says nothing, not even that: the system finds out.
_NETWORK = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
LOCK_SECONDS = 10
# How long a stop waits for operations, and then for those that it has cut off.
STOP_SECONDS = 5.0
# More than there are statements, so that none is prepared again.
PREPARED = 500

_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_SET_UP = (
    "SET TIME ZONE 'UTC'",
    f"SET lock_timeout = '{LOCK_SECONDS}s'",
    # It is meant for statements that take seconds, and takes longer than ours, which it does not
    # know to be short: a search stops at the end of its page.
    "SET jit = off",
    # A process that was stopped in the middle of a transaction must not hold its locks for ever.
    "SET idle_in_transaction_session_timeout = '10s'",
)

# Another transaction was quicker. The same operation sees what it did, and succeeds or says why not.
_COLLISIONS = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
    # Somebody has had the session forget what it had prepared, which is prepared anew.
    errors.InvalidSqlStatementName,
    Collided,
)
_BUSY = (errors.SerializationFailure, errors.DeadlockDetected)


def translate(error: BaseException) -> BaseException:
    """A driver's error as one of ours, where it is not the operation's own doing."""
    if isinstance(error, _BUSY):
        return DatabaseBusy(_first_line(error))
    if isinstance(error, errors.LockNotAvailable):
        # Not busy, which is tried again at once: each time it would take a writer from all others.
        return DatabaseOverloaded("Somebody else has had it locked for too long")
    if isinstance(error, errors.InsufficientPrivilege) and _is_policy(error):
        return OtherTenants()
    if isinstance(error, psycopg.Error) and error.sqlstate == SupersededAttempt.SQLSTATE:
        return SupersededAttempt(_first_line(error))
    if isinstance(error, psycopg.DataError | errors.ProgramLimitExceeded):
        # NUL, a number or date that no column can hold, a key that no index can.
        return ValueError(f"A value cannot be stored or compared: {_first_line(error)}")
    if isinstance(error, psycopg.OperationalError | errors.ReadOnlySqlTransaction):
        return DatabaseOverloaded(_first_line(error))
    if isinstance(error, StopIteration):
        # Futures refuse it, and the caller would wait for ever.
        return RuntimeError("An operation raised StopIteration")
    return error


def _is_policy(error: psycopg.Error) -> bool:
    """Whether a policy refuses the row; else the role may not use the table at all."""
    return error.diag.source_function == "ExecWithCheckOptions"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


class _NoRows:
    """A transaction that the policies of the database show no tenant's rows."""

    tenant = None
    settings: Mapping[str, str] = MappingProxyType({})


class PostgresEngine:
    """The threads and connections of this process to one Postgres database.

    Args:
        url: As in `Database`.
        visibility: As in `Database`. Without it transactions see no tenant's rows.
        connect: Opens the driver's connection; tests inject faults here.
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
        self._visibility = visibility or _NoRows
        self._connect: Connect = connect or psycopg.connect
        self._local = threading.local()
        self._opened: set[Raw] = set()
        self._opened_lock = threading.Lock()
        self._readers = ThreadPool(READERS, "postgres-read")
        self._searchers = ThreadPool(SEARCHERS, "postgres-search")
        self._writers = ThreadPool(WRITERS, "postgres-write", URGENT)
        self._writing: set[Future[None]] = set()
        self._refusal: Exception | None = None
        self._is_cut_off = False

    def start(self) -> None:
        """Nothing: threads and connections come with the first operations."""

    def stop(self) -> None:
        """Finish what was accepted, then close. Blocks; repeatable.

        What a server that has fallen silent does not answer in time is cut off: nobody was told
        that it was done.
        """
        self.refuse(DatabaseClosed())
        finishing = threading.Thread(target=self._finish, name="postgres-stop", daemon=True)
        finishing.start()
        finishing.join(STOP_SECONDS)
        if finishing.is_alive():
            self._cut_off()
            finishing.join(STOP_SECONDS)
        with self._opened_lock:
            for raw in self._opened:
                raw.close()
            self._opened.clear()

    def _finish(self) -> None:
        self._writers.stop()
        self._readers.stop()
        self._searchers.stop()

    def _cut_off(self) -> None:
        logger.warning("Postgres does not answer: what waits for it is left undone")
        self._is_cut_off = True
        with self._opened_lock:
            for raw in self._opened:
                cut(raw)

    def refuse(self, reason: Exception) -> None:
        """Take no operation from now on; each raises `reason`, the first that was given."""
        self._refusal = self._refusal or reason

    def submit_write(
        self, fn: Callable[[Connection], T], answer: Answer[T], *, urgent: bool = False
    ) -> None:
        """Run `fn` on a writer, `urgent` or not; `answer` hears of it after the commit."""
        writing = self._submit(self._writers, _WRITE, fn, answer, urgent=urgent)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def settled(self) -> None:
        """Wait until every write that was accepted so far has ended."""
        if writing := [asyncio.wrap_future(each) for each in list(self._writing)]:
            await asyncio.wait(writing)

    def submit_read(self, fn: Callable[[Connection], T], answer: Answer[T]) -> None:
        """Run `fn` on a reader, in one snapshot."""
        self._submit(self._readers, _READ, fn, answer)

    def submit_search(self, fn: Callable[[Connection], T], answer: Answer[T]) -> None:
        """`submit_read` for what may take long, in which no reader has a part."""
        self._submit(self._searchers, _READ, fn, answer)

    def _submit(
        self,
        pool: ThreadPool,
        begin: bytes,
        fn: Callable[[Connection], T],
        answer: Answer[T],
        *,
        urgent: bool = False,
    ) -> Future[None]:
        if self._refusal is not None:
            raise self._refusal
        try:
            # Here, on the caller's side: the pool's threads do not know who asks.
            work = partial(self._answer, begin, self._visibility(), fn, answer)
            return pool.submit(work, urgent=urgent)
        except RuntimeError as error:
            # Stopped since the line above.
            raise DatabaseClosed from error

    def open(self) -> Raw:
        """A new connection, set up as all of them are, for the caller to close.

        Raises:
            psycopg.OperationalError: the server cannot be reached, or refuses.
        """
        options = {**_NETWORK, "application_name": APPLICATION}
        # What the URL says itself counts, but for the name, which ours are found by.
        for name in conninfo_to_dict(self.dsn).keys() & _NETWORK.keys():
            del options[name]
        # Prepared at the first use: there are few statements, and they are used all the time.
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

    def _answer(
        self,
        begin: bytes,
        visibility: Visibility,
        fn: Callable[[Connection], T],
        answer: Answer[T],
    ) -> None:
        try:
            result, committed = self._transact(begin, visibility, fn)
        except BaseException as error:  # noqa: BLE001  # the caller's to handle
            answer.fail(translate(error))
            return
        tell_of_commit(committed)
        answer.give(result)
        if begin is _READ:
            # What was read is true, whatever becomes of its transaction.
            self._local.pipeline.end(b"COMMIT")

    def _transact(
        self, begin: bytes, visibility: Visibility, fn: Callable[[Connection], T]
    ) -> tuple[T, list[Callable[[], None]]]:
        """The result of `fn` in a transaction that is committed, and what to call after it."""
        attempt = 0
        while True:
            attempt += 1
            pipeline = self._pipeline()
            try:
                return self._once(pipeline, begin, visibility, fn)
            except _COLLISIONS:
                if attempt >= ATTEMPTS:
                    raise
                time.sleep(random.uniform(0, PAUSE_SECONDS * attempt))
            except psycopg.Error:
                # Lost before the commit: on a new connection it may be done again.
                if not pipeline.raw.closed or attempt >= ATTEMPTS:
                    raise

    def _once(
        self,
        pipeline: Pipeline,
        begin: bytes,
        visibility: Visibility,
        fn: Callable[[Connection], T],
    ) -> tuple[T, list[Callable[[], None]]]:
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
            # With an answer to something before it, it was not even begun.
            before = error.sqlstate is not None and committed.result is None
            if before or not pipeline.raw.closed:
                raise
            raise DatabaseOverloaded(
                "The connection to Postgres was lost during a commit: whether the write was "
                "stored is not known"
            ) from error
        if committed.result is None or committed.result.command_status != b"COMMIT":
            # An operation went on after an error of the database: nothing of it is kept.
            raise DatabaseOverloaded("The transaction was undone by the database")

    def _pipeline(self) -> Pipeline:
        """To this thread's connection; while the server is away, wait for it.

        Raises:
            DatabaseOverloaded: it has not come back.
        """
        pipeline: Pipeline | None = getattr(self._local, "pipeline", None)
        if pipeline is not None and not pipeline.raw.closed:
            return pipeline
        if pipeline is not None:
            with self._opened_lock:
                self._opened.discard(pipeline.raw)
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            if self._is_cut_off:
                raise DatabaseClosed
            try:
                raw = self.open()
            except psycopg.OperationalError as error:
                if self._refusal is not None or time.monotonic() > deadline:
                    raise DatabaseOverloaded(
                        f"Postgres cannot be reached: {_first_line(error)}"
                    ) from error
                time.sleep(0.2)
            else:
                with self._opened_lock:
                    self._opened.add(raw)
                pipeline = self._local.pipeline = Pipeline(raw)
                return pipeline


def cut(raw: Raw) -> None:
    """Have whoever waits for an answer on a connection, in another thread, get an error in its place."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def identity(conn: Connection) -> str:
    """A short name of the database, the same for all who serve it and unlike any other's."""
    raw = conn.raw
    query = "SELECT oid, datname FROM pg_database WHERE datname = current_database()"
    named = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
    [permitted] = raw.execute(named).fetchone()
    found = [str(each) for each in raw.execute(query).fetchone()]
    if permitted:
        [cluster] = raw.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
        found.append(str(cluster))
    return hashlib.blake2b(":".join(found).encode(), digest_size=6).hexdigest()
