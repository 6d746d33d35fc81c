"""Ownership of a Postgres database: servers share it, a move or a repair owns it alone."""

import logging
import select
import socket
import threading
import time
from contextlib import suppress

import psycopg

from langgraph_runtime_sql.database.postgres.engine import PostgresEngine, Raw, try_lock
from langgraph_runtime_sql.database.postgres.sessions import cut
from langgraph_runtime_sql.errors import DatabaseIncomplete, DatabaseInUse, DatabaseOverloaded

logger = logging.getLogger(__name__)

# Any constant number: advisory locks are local to a database.
_KEY = 7_214_880_111
# A dead process holds its lock until the server notices.
WAIT_SECONDS = 5.0
WATCH_SECONDS = 2.0
AGAIN_SECONDS = 0.1
# How long a release waits for a silent server.
RELEASE_SECONDS = 1.0


class PostgresOwnership:
    """An advisory lock that lasts as long as the process's connection.

    After a restart of the server the lock is taken again. If another process takes it first, the
    engine refuses everything from then on: that process has taken over the runs, and ours are
    fenced.

    Args:
        engine: The engine of the database.
        shared: Own the database together with other processes that share it.
    """

    def __init__(self, engine: PostgresEngine, *, shared: bool = False) -> None:
        self._engine = engine
        self.shared = shared
        self._raw: Raw | None = None
        self._released = False
        # A byte written to the first socket wakes the watcher, which reads the second.
        self._alarm: tuple[socket.socket, socket.socket] | None = None
        self._watcher: threading.Thread | None = None

    def take(self, wait_seconds: float = WAIT_SECONDS) -> None:
        """Own the database.

        Args:
            wait_seconds: How many seconds to wait for another owner to release it.

        Raises:
            DatabaseInUse: another process owns it.
            DatabaseOverloaded: the server cannot be reached.
        """
        self._raw = self._engine.reach()
        deadline = time.monotonic() + wait_seconds
        while not try_lock(self._raw, _KEY, shared=self.shared):
            if time.monotonic() >= deadline:
                where = f"{self._raw.info.dbname} on {self._raw.info.host or 'localhost'}"
                self._raw.close()
                raise DatabaseInUse(
                    f"The Postgres database {where} is in use by another process. Servers "
                    "share a database, but a repair or a move needs it alone, and so does a server "
                    "of an older version without REDIS_URL: stop that process first."
                )
            time.sleep(0.1)
        self._alarm = socket.socketpair()
        self._watcher = threading.Thread(
            target=self._watch, args=(self._alarm[1],), name="postgres-owner", daemon=True
        )
        self._watcher.start()

    def release(self) -> None:
        """Release the lock. Repeatable."""
        self._released = True
        if self._watcher is not None and self._alarm is not None:
            self._alarm[0].send(b".")
            # The watcher releases the lock, which may take RELEASE_SECONDS of its own.
            self._watcher.join(2 * RELEASE_SECONDS)
            if self._watcher.is_alive() and self._raw is not None:
                cut(self._raw)
                self._watcher.join(RELEASE_SECONDS)
            if self._watcher.is_alive():
                # The watcher is reconnecting; it closes the connection that it gets.
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
                        "Another process took over the Postgres database while the connection "
                        "was lost. This process refuses all work: restart it."
                    )
                    logger.critical("%s", reason)
                    self._engine.refuse(reason)
                    return

    def _wait(self, alarm: socket.socket) -> None:
        """Wait for an event on the connection, the alarm, or a timeout of some seconds."""
        waited: list[int | socket.socket] = [alarm]
        if self._raw is not None and not self._raw.closed:
            waited.append(self._raw.fileno())
        select.select(waited, [], [], WATCH_SECONDS if len(waited) > 1 else AGAIN_SECONDS)

    def _holds(self) -> bool:
        """Return whether the lock is held; take it again after a lost connection."""
        if self._raw is not None and not self._raw.closed:
            with suppress(psycopg.OperationalError):
                self._raw.execute("SELECT 1")
                return True
        if self._released:
            return True
        if self._raw is not None:
            self._raw.close()
        self._raw = self._engine.open()
        return try_lock(self._raw, _KEY, shared=self.shared)


def _unlock(raw: Raw) -> None:
    """Release the lock at once: the server notices a closed connection some time later.

    Waits at most `RELEASE_SECONDS` for a silent server.
    """
    with suppress(psycopg.Error):
        raw.pgconn.send_query(b"SELECT pg_advisory_unlock_all()")
        raw.pgconn.flush()
        select.select([raw.fileno()], [], [], RELEASE_SECONDS)


def check_complete(url: str) -> None:
    """Raise if a move into the database is unfinished.

    Raises:
        DatabaseIncomplete: a part of the data is still in the file that it is moved from.
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
            f"The move of {unfinished[0]} into this database was not finished. Finish it with the "
            f"same command, `threadhold migrate --from sqlite:///{unfinished[0]} --to ...`, "
            "or serve the file as before"
        )
