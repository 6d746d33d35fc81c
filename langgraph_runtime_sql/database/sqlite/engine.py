"""SQLite engine: one writer thread that commits in groups, and a few readers.

A group holds operations that wait while the writer works, of the tenants in turn. Each runs in a
savepoint of its own, and one commit follows for all, then the answers. So a failed operation rolls back
only itself, and an answered one is committed.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from sqlalchemy.dialects import sqlite as sqlite_dialect

from langgraph_runtime_sql.database.answer import Answer, run_callbacks
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.outage import Outage
from langgraph_runtime_sql.database.sqlite.problems import (
    LEAST_ROOM_BYTES,
    ROOM_BYTES,
    lack_of_room,
    problem,
)
from langgraph_runtime_sql.database.visibility import NoRows, Visibility
from langgraph_runtime_sql.errors import (
    CannotOpen,
    DatabaseClosed,
    DatabaseDamaged,
    DatabaseOutage,
    DatabaseOverloaded,
    DatabaseState,
    SearchTimeout,
)
from langgraph_runtime_sql.tenant_queue import TenantQueue
from langgraph_runtime_sql.thread_pool import ThreadPool

T = TypeVar("T")

logger = logging.getLogger(__name__)

DIALECT = sqlite_dialect.dialect(paramstyle="named")
# Each tenant leaves one of the threads of a kind to the others.
READERS = 5
# Separate threads, so that short reads do not wait for long searches.
SEARCHERS = 3
# In a larger or longer group the first operation would wait too long for the last.
GROUP = 64
GROUP_SECONDS = 0.02
BUSY_TIMEOUT_SECONDS = 5.0
# An operation that runs on for so long after its time limit is in code that nothing interrupts.
GRACE_SECONDS = 1.0
WATCH_SECONDS = 0.5

Connect = Callable[..., sqlite3.Connection]


@dataclass(slots=True, eq=False)
class _Job(Generic[T]):
    fn: Callable[[Connection], T]
    answer: Answer[T]
    result: T | None = None
    error: BaseException | None = None
    committed: list[Callable[[], None]] = field(default_factory=list)


class _Replaced(BaseException):
    """Another thread writes in place of this one, which closes its connection."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw


@dataclass(slots=True)
class _Work:
    """What the writer is at: a job of a group, whose transaction is on `raw`."""

    raw: sqlite3.Connection
    connection: Connection
    job: _Job[Any]
    group: list[_Job[Any]]


def _thread(name: str, work: Callable[[], None]) -> threading.Thread:
    return threading.Thread(target=work, name=name, daemon=True)


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Raise our errors for a file that cannot be used. Errors in statements stay as they are.

    Raises:
        CannotOpen: the file is no SQLite database, locked or not writable.
        DatabaseOutage: the disk is full.
        DatabaseDamaged: the file is damaged.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        found = problem(error, path)
        if found is None:
            raise
        is_other_file = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB
        if isinstance(found, DatabaseDamaged) and not is_other_file:
            raise found from error
        if isinstance(found, DatabaseOutage) and found.state is DatabaseState.DISK_FULL:
            raise found from error
        raise CannotOpen(path, error) from error


class SqliteEngine:
    """The threads and connections of one SQLite file.

    Args:
        path, register_functions, power_loss, connect: As in `Database`, `path` for its URL.
        visibility: As in `Database`. Only the turns of tenants depend on it.

    Attributes:
        outage: Whether the file can be written to.
    """

    dialect = DIALECT

    def __init__(
        self,
        path: Path | str,
        *,
        register_functions: Callable[[sqlite3.Connection], None],
        visibility: Callable[[], Visibility] | None = None,
        power_loss: bool = False,
        connect: Connect | None = None,
    ) -> None:
        self._visibility = visibility or NoRows
        self._register_functions = register_functions
        self._path = Path(path)
        self.outage = Outage()
        self._power_loss = power_loss
        self._connect = connect or sqlite3.connect
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._opened_lock = threading.Lock()
        self._readers = ThreadPool(READERS, "sqlite-read")
        self._searchers = ThreadPool(SEARCHERS, "sqlite-search")
        self._writer = _thread("sqlite-write", self._write_loop)
        self._watcher = _thread("sqlite-watch", self._watch)
        self._stopped = threading.Event()
        self._closed = False
        # Guards the fields below, and wakes the writer.
        self._submitted = threading.Condition()
        self._work: _Work | None = None
        self._urgent: deque[_Job[Any]] = deque()
        self._jobs: TenantQueue[_Job[Any]] = TenantQueue()

    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Return threads, busy threads and waiting operations, for `read` and `write`."""
        with self._submitted:
            writing = len(self._urgent) + len(self._jobs)
        return {"read": self._readers.usage(), "write": (1, min(1, writing), writing)}

    def start(self) -> None:
        """Start the writer thread, and the one that watches it."""
        self._writer.start()
        self._watcher.start()

    def _watch(self) -> None:
        """Replace the writer if its operation goes on after its time limit."""
        while not self._stopped.wait(WATCH_SECONDS):
            with self._submitted:
                if (work := self._work) is None:
                    continue
                if (error := work.connection.overdue(GRACE_SECONDS)) is None:
                    continue
                self._work = None
                # Started before it is assigned, and before the old one can end: `stop` waits for it.
                writer = _thread("sqlite-write", partial(self._take_over, work, error))
                writer.start()
                self._writer = writer

    def _take_over(self, work: _Work, error: SearchTimeout) -> None:
        """Write in place of a thread whose operation does not end. The rest of its group runs again."""
        logger.error("Rolled back a write that did not end; its function still runs")
        with self._opened_lock:
            # The old thread closes it: here, that could be in the middle of a statement.
            self._opened.remove(work.raw)
        with suppress(sqlite3.Error):
            # A late statement must not write outside of a transaction.
            work.raw.execute("PRAGMA query_only = ON")
            work.raw.execute("ROLLBACK")
        self._repeat([job for job in work.group if job is not work.job])
        work.job.answer.fail(error)
        self._write_loop()

    def _repeat(self, jobs: Sequence[_Job[Any]]) -> None:
        """Queue jobs again, first and in their order: they were rolled back with another one."""
        with self._submitted:
            self._urgent.extendleft(_Job(job.fn, job.answer) for job in reversed(jobs))

    def probe(self, conn: Connection) -> None:
        """Raise unless a page can be written, and there is room for more.

        Raises:
            DatabaseOutage: the disk has little room.
        """
        if (lack := lack_of_room(self._path, ROOM_BYTES)) is not None:
            raise DatabaseOutage(DatabaseState.DISK_FULL, lack)
        [version] = conn.raw.execute("PRAGMA user_version").fetchone()
        # The same value again, which nothing else uses: SQLite writes the page all the same.
        conn.raw.execute(f"PRAGMA user_version = {version}")

    def look(self) -> None:
        """Note an outage that no operation has met yet: a full disk."""
        if (lack := lack_of_room(self._path, LEAST_ROOM_BYTES)) is not None:
            self.outage.note(DatabaseOutage(DatabaseState.DISK_FULL, lack))

    def _translate(self, error: BaseException) -> BaseException:
        """Return our error for a driver's, unless the operation itself caused it."""
        if isinstance(error, OverflowError):
            return ValueError(
                "A number is too large to be stored or compared: it needs more than 64 bits"
            )
        found = problem(error, self._path) or error
        self.outage.note(found)
        return found

    def stop(self) -> None:
        """Finish accepted operations, then close. Blocks; repeatable."""
        with self._submitted:
            if self._closed:
                return
            self._closed = True
            self._submitted.notify()
        # The watcher may replace it meanwhile.
        while (writer := self._writer).is_alive():
            writer.join(WATCH_SECONDS)
        self._stopped.set()
        self._readers.stop()
        self._searchers.stop()
        with self._opened_lock:
            for raw in self._opened:
                raw.close()
            self._opened.clear()

    def submit_write(
        self,
        fn: Callable[[Connection], T],
        answer: Answer[T],
        *,
        most: int | None = None,
        urgent: bool = False,
    ) -> None:
        """Queue `fn` for the writer; `answer` gets its outcome after the commit.

        Args:
            fn, answer: The operation and its outcome.
            most: How many operations of the caller's tenant may wait; None: no limit.
            urgent: Run it first.

        Raises:
            TooManyWaiting: `most` operations of the tenant wait already.
        """
        # Called by the caller's task: the writer does not know its scope.
        self._queue(_Job(fn, answer), self._visibility().turn, most, urgent=urgent)

    def _queue(
        self, job: _Job[T], tenant: str | None, most: int | None = None, *, urgent: bool = False
    ) -> None:
        with self._submitted:
            if self._closed:
                raise DatabaseClosed
            if urgent:
                self._urgent.append(job)
            else:
                self._jobs.add(tenant, job, most)
            self._submitted.notify()

    async def wait_for_writes(self) -> None:
        """Wait until every accepted write has ended."""
        with self._submitted:
            waiting = self._jobs.tenants
        loop = asyncio.get_running_loop()
        # Behind the operations of each tenant. The writer is at the others.
        ends: list[Answer[None]] = [Answer(loop) for _ in (None, *waiting)]
        for tenant, answer in zip((None, *waiting), ends, strict=True):
            self._queue(_Job(lambda conn: None, answer), tenant)
        for answer in ends:
            await answer.wait()

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
        if self._closed:
            raise DatabaseClosed
        pool = self._searchers if is_search else self._readers
        pool.submit(partial(self._read, fn, answer), tenant=self._visibility().turn, most=most)

    def open(self) -> sqlite3.Connection:
        """Open a connection with the engine's settings."""
        raw = self._connect(
            str(self._path),
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        try:
            self._set_up(raw)
        except BaseException:
            raw.close()
            raise
        with self._opened_lock:
            self._opened.append(raw)
        return raw

    def _set_up(self, raw: sqlite3.Connection) -> None:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute(f"PRAGMA synchronous={'FULL' if self._power_loss else 'NORMAL'}")
        raw.execute("PRAGMA foreign_keys=ON")
        raw.execute("PRAGMA temp_store=MEMORY")
        raw.execute("PRAGMA mmap_size=268435456")
        self._register_functions(raw)

    def _discard(self, raw: sqlite3.Connection) -> None:
        """Close a connection early; this rolls back its transaction."""
        with self._opened_lock:
            self._opened.remove(raw)
        raw.close()

    def _read(self, fn: Callable[[Connection], T], answer: Answer[T]) -> None:
        raw: sqlite3.Connection | None = getattr(self._local, "raw", None)
        if answer.is_cancelled:
            return
        try:
            if raw is None:
                raw = self._local.raw = self.open()
            raw.execute("BEGIN")
            try:
                result = fn(Connection(raw, DIALECT))
            finally:
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
        except BaseException as error:  # noqa: BLE001  # the caller's to handle
            if raw is not None and raw.in_transaction:
                # The transaction could not be ended and would block the next one.
                self._discard(raw)
                self._local.raw = None
            answer.fail(self._translate(error))
        else:
            answer.give(result)

    def _write_loop(self) -> None:
        raw: sqlite3.Connection | None = None
        while (first := self._wait_for_job()) is not None:
            group = [first]
            try:
                raw = self._begin(raw, group)
                self._commit(raw, group)
            except _Replaced as replaced:
                replaced.raw.close()
                return
            except BaseException as error:  # noqa: BLE001  # the callers' to handle
                for job in group:
                    job.error = job.error or self._translate(error)
                if raw is not None:
                    # Its state is unknown; the next group opens a new connection.
                    self._discard(raw)
                    raw = None
            for job in group:
                if job.error is None:
                    run_callbacks(job.committed)
            Answer.settle([(job.answer, job.result, job.error) for job in group])

    def _wait_for_job(self) -> _Job[Any] | None:
        """Return the next job; None after the last."""
        with self._submitted:
            while (job := self._next_job()) is None:
                if self._closed:
                    return None
                self._submitted.wait()
            return job

    def _next_job(self) -> _Job[Any] | None:
        if self._urgent:
            return self._urgent.popleft()
        found = self._jobs.take()
        return None if found is None else found[1]

    def _further(self, group: list[_Job[Any]]) -> Iterator[_Job[Any]]:
        """Add the jobs that wait to a group, one after the other, until it is full."""
        with self._submitted:
            waiting = len(self._urgent) + len(self._jobs)
        end = time.monotonic() + GROUP_SECONDS
        while len(group) < min(GROUP, waiting + 1) and time.monotonic() < end:
            with self._submitted:
                job = self._next_job()
            if job is None:
                return
            group.append(job)
            yield job

    def _begin(self, raw: sqlite3.Connection | None, group: list[_Job[Any]]) -> sqlite3.Connection:
        """Begin a transaction, on a new connection if there is none."""
        try:
            raw = raw or self.open()
            raw.execute("BEGIN IMMEDIATE")
        except BaseException:
            # Those that wait behind would fail as well, each after a time of its own.
            list(self._further(group))
            raise
        return raw

    def _commit(self, raw: sqlite3.Connection, group: list[_Job[Any]]) -> None:
        """Run the first job of a group, and those that wait behind it, and commit."""
        done: list[_Job[Any]] = []
        try:
            for job in chain(list(group), self._further(group)):
                self._run(raw, job, group)
                if job.error is None:
                    done.append(job)
                if raw.in_transaction and isinstance(job.error, DatabaseDamaged):
                    # It reports the damage to every later statement of the transaction.
                    raw.execute("ROLLBACK")
                if not raw.in_transaction:
                    # SQLite rolled back the whole transaction (full disk, I/O error, cut off).
                    if isinstance(job.error, SearchTimeout | DatabaseDamaged):
                        group[:] = [each for each in group if each not in done]
                        self._repeat(done)
                    else:
                        for lost in done:
                            lost.error = job.error or DatabaseOverloaded()
                    done.clear()
                    raw.execute("BEGIN IMMEDIATE")
            raw.execute("COMMIT")
        except _Replaced:
            raise
        except BaseException:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            raise

    def _run(self, raw: sqlite3.Connection, job: _Job[Any], group: list[_Job[Any]]) -> None:
        connection = Connection(raw, DIALECT)
        raw.execute("SAVEPOINT operation")
        self._work = work = _Work(raw, connection, job, group)
        error: BaseException | None = None
        try:
            job.result = job.fn(connection)
            job.committed = connection.committed()
        except BaseException as raised:  # noqa: BLE001  # the caller's to handle
            error = raised
        with self._submitted:
            if self._work is not work:
                raise _Replaced(raw)
            self._work = None
        if error is not None:
            job.error = self._translate(error)
            if raw.in_transaction:
                raw.execute("ROLLBACK TO operation")
        if raw.in_transaction:
            raw.execute("RELEASE operation")
