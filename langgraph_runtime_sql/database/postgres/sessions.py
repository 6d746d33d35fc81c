"""Sessions: the connections of this process to Postgres, which its threads take in turn.

A thread takes one for an operation. If Postgres gives no further one, because it has too many, the thread
gets the next that another thread gives back. So few connections make a process slow, and only an operation
that gets none begins an outage.
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import psycopg

from langgraph_runtime_sql.clock import elapsed
from langgraph_runtime_sql.database.postgres.pipeline import Pipeline
from langgraph_runtime_sql.errors import DatabaseClosed, DatabaseOutage, DatabaseState

Raw = psycopg.Connection[Any]
# How long all threads wait before they ask again, after Postgres has given no connection.
RETRY_SECONDS = 0.2


class Sessions:
    """The open connections. Its methods may be called from any thread.

    Args:
        connect: Opens a connection.
    """

    def __init__(self, connect: Callable[[], Raw]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._opened: set[Raw] = set()
        # The last one was used last. The others have gone cold.
        self._idle: list[Pipeline] = []
        self._waiting: deque[Future[Pipeline]] = deque()
        # The last refusal of Postgres, and when it came.
        self._refusal: tuple[DatabaseOutage, float] | None = None
        self._is_closing = self._is_cut_off = False

    def take(self, until: float) -> Pipeline:
        """Return a connection for the calling thread alone, which gives it back.

        Args:
            until: When to wait no longer, by `clock.elapsed`.

        Raises:
            DatabaseOutage: there is none, and Postgres gives none.
            DatabaseClosed: the connections were cut off.
        """
        while True:
            found = self._next_idle() or self._open()
            if isinstance(found, Pipeline):
                return found
            if self._is_closing or elapsed() > until:
                raise DatabaseOutage(found.state, found.reason) from found
            if (given := self._wait()) is not None:
                return given

    def _next_idle(self) -> Pipeline | None:
        with self._lock:
            if self._is_cut_off:
                raise DatabaseClosed
            return self._idle.pop() if self._idle else None

    def _open(self) -> Pipeline | DatabaseOutage:
        """Open a connection, or return why there is none. Many threads ask Postgres as often as one."""
        if (refusal := self._refusal) is not None and elapsed() - refusal[1] < RETRY_SECONDS:
            return refusal[0]
        try:
            raw = self._connect()
        except psycopg.OperationalError as error:
            found = unreachable(error)
            self._refusal = found, elapsed()
            return found
        self._refusal = None
        with self._lock:
            self._opened.add(raw)
        return Pipeline(raw)

    def _wait(self) -> Pipeline | None:
        """Return a connection that another thread gives back; None after `RETRY_SECONDS`."""
        given: Future[Pipeline] = Future()
        with self._lock:
            if self._idle:
                return self._idle.pop()
            self._waiting.append(given)
        with suppress(TimeoutError):
            return given.result(RETRY_SECONDS)
        with self._lock:
            if given.done():
                return given.result()
            self._waiting.remove(given)
        return None

    def give(self, pipeline: Pipeline) -> None:
        """Let another thread have a connection.

        If it is lost, the idle ones are closed too: they may be those of a server that has gone.
        """
        with self._lock:
            if not pipeline.raw.closed:
                if self._waiting:
                    self._waiting.popleft().set_result(pipeline)
                else:
                    self._idle.append(pipeline)
                return
            gone = {pipeline.raw, *(each.raw for each in self._idle)}
            self._idle.clear()
            self._opened -= gone
        for raw in gone:
            raw.close()

    def finish(self) -> None:
        """From now on, fail at once where `take` would wait for Postgres."""
        self._is_closing = True

    def cut_off(self) -> None:
        """Fail all operations, also those that wait for an answer of Postgres."""
        with self._lock:
            self._is_cut_off = True
            for raw in self._opened:
                cut(raw)

    def close(self) -> None:
        """Close all connections. Repeatable."""
        with self._lock:
            for raw in self._opened:
                raw.close()
            self._opened.clear()
            self._idle.clear()


def unreachable(error: psycopg.Error) -> DatabaseOutage:
    """Return the outage of a failure to connect."""
    return DatabaseOutage(DatabaseState.UNREACHABLE, first_line(error))


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its name."""
    return str(error).partition("\n")[0] or type(error).__name__


def cut(raw: Raw) -> None:
    """Shut a connection's socket down, so that a thread that waits for an answer gets an error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)
