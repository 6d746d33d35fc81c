"""Ownership of a Postgres database: without Redis, one process serves it; with Redis, many share it.

A second one would have a queue and an event bus of its own, and clients of one
would never hear of what the other does.
"""

import logging
import select
import socket
import threading
import time
from contextlib import suppress

import psycopg

from langgraph_runtime_sql.database.postgres.engine import PostgresEngine, Raw, cut
from langgraph_runtime_sql.errors import DatabaseIncomplete, DatabaseInUse, DatabaseOverloaded

logger = logging.getLogger(__name__)

# Any number, as long as it stays the same: locks are the database's own.
_KEY = 7_214_880_111
# Whoever has just died still holds the lock until the server notices.
WAIT_SECONDS = 5.0
WATCH_SECONDS = 2.0
AGAIN_SECONDS = 0.1
# How long a server that has fallen silent is waited for by whoever lets go.
RELEASE_SECONDS = 1.0


class PostgresOwnership:
    """A lock in the database for as long as the process has a connection to it.

    After the server has restarted, it is taken again. Should another process have
    been quicker, the engine refuses everything from then on: that process has
    taken over the runs, and ours are fenced off.

    Args:
        shared: Own it together with other processes that do the same.
    """

    def __init__(self, engine: PostgresEngine, *, shared: bool = False) -> None:
        self._engine = engine
        self.shared = shared
        self._raw: Raw | None = None
        self._released = False
        # What is written to the first ends the watcher's wait at the second.
        self._alarm: tuple[socket.socket, socket.socket] | None = None
        self._watcher: threading.Thread | None = None

    def take(self, wait_seconds: float = WAIT_SECONDS) -> None:
        """Own the database.

        Args:
            wait_seconds: How many seconds to wait for whoever owns it to let it go.

        Raises:
            DatabaseInUse: somebody else does.
            DatabaseOverloaded: the server cannot be reached.
        """
        try:
            self._raw = self._engine.open()
        except psycopg.OperationalError as error:
            raise DatabaseOverloaded(f"Postgres cannot be reached: {error}") from error
        deadline = time.monotonic() + wait_seconds
        while not self._lock(self._raw):
            if time.monotonic() >= deadline:
                where = f"{self._raw.info.dbname} on {self._raw.info.host or 'localhost'}"
                self._raw.close()
                raise DatabaseInUse(
                    f"The Postgres database {where} is in use by another process. Without Redis "
                    "one process serves a database: stop that process, give all of them the same "
                    "REDIS_URL, or give this one a database of its own."
                )
            time.sleep(0.1)
        self._alarm = socket.socketpair()
        self._watcher = threading.Thread(
            target=self._watch, args=(self._alarm[1],), name="postgres-owner", daemon=True
        )
        self._watcher.start()

    def release(self) -> None:
        """Let go. Repeatable."""
        self._released = True
        if self._watcher is not None and self._alarm is not None:
            self._alarm[0].send(b".")
            # It gives the lock back, for which it waits as long itself.
            self._watcher.join(2 * RELEASE_SECONDS)
            if self._watcher.is_alive() and self._raw is not None:
                cut(self._raw)
                self._watcher.join(RELEASE_SECONDS)
            if self._watcher.is_alive():
                # It connects again, in vain or not, and closes what it gets.
                return
            for end in self._alarm:
                end.close()
            self._watcher = self._alarm = None
        self._close()

    def _close(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            _unlock(raw)
            raw.close()

    def _watch(self, alarm: socket.socket) -> None:
        while True:
            self._wait(alarm)
            if self._released:
                self._close()
                return
            with suppress(psycopg.OperationalError):
                if not self._holds():
                    reason = DatabaseInUse(
                        "Another process has taken the Postgres database over while the "
                        "connection to it was lost. This process does nothing more: restart it."
                    )
                    logger.critical("%s", reason)
                    self._engine.refuse(reason)
                    return

    def _wait(self, alarm: socket.socket) -> None:
        """Until the connection says something, which is its end, or some seconds have passed."""
        waited: list[int | socket.socket] = [alarm]
        if self._raw is not None and not self._raw.closed:
            waited.append(self._raw.fileno())
        select.select(waited, [], [], WATCH_SECONDS if len(waited) > 1 else AGAIN_SECONDS)

    def _holds(self) -> bool:
        """Whether the lock is held, by taking it again where the connection was lost."""
        if self._raw is not None and not self._raw.closed:
            with suppress(psycopg.OperationalError):
                self._raw.execute("SELECT 1")
                return True
        if self._released:
            return True
        if self._raw is not None:
            self._raw.close()
        self._raw = self._engine.open()
        return self._lock(self._raw)

    def _lock(self, raw: Raw) -> bool:
        function = "pg_try_advisory_lock_shared" if self.shared else "pg_try_advisory_lock"
        row = raw.execute(f"SELECT {function}(%s)", (_KEY,)).fetchone()
        return bool(row and row[0])


def is_shared(raw: Raw) -> bool:
    """Whether processes own the database together now."""
    row = raw.execute(
        "SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted"
        " AND (classid::bigint << 32) + objid::bigint = %s"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        (_KEY,),
    ).fetchone()
    return row is not None


def _unlock(raw: Raw) -> None:
    """Give the lock back at once: that a connection was closed the server notices some time later.

    A server that does not answer keeps nobody waiting for long.
    """
    with suppress(psycopg.Error):
        raw.pgconn.send_query(b"SELECT pg_advisory_unlock_all()")
        raw.pgconn.flush()
        select.select([raw.fileno()], [], [], RELEASE_SECONDS)


def check_complete(url: str) -> None:
    """Raise where a part of the data is still in the file that it is moved from.

    Raises:
        DatabaseIncomplete: it is.
        DatabaseOverloaded: the server cannot be reached.
    """
    try:
        with PostgresEngine(url).open() as raw:
            [(moves,)] = raw.execute("SELECT to_regclass('moves')").fetchall()
            unfinished = (
                moves
                and raw.execute("SELECT source FROM moves WHERE finished_at IS NULL").fetchone()
            )
    except psycopg.OperationalError as error:
        raise DatabaseOverloaded(f"Postgres cannot be reached: {error}") from error
    if unfinished:
        raise DatabaseIncomplete(
            f"Moving {unfinished[0]} into this database was not finished. Finish it by the same "
            f"command, `threadhold migrate --from sqlite:///{unfinished[0]} --to ...`, "
            "or serve the file as before"
        )
