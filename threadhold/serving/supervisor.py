"""Supervisor: run several server processes on one port, and restart those that die.

The processes share the supervisor's socket, and the kernel distributes the connections.
"""

import logging
import math
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NamedTuple

from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.http.metrics_text import FOLDER, NUMBER
from threadhold.serving.listen import CannotListen
from threadhold.settings import Settings

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
RESTART_SECONDS = 1.0
# Exit codes of a process that cannot start, and would fail again.
START_FAILURES = (1, 2, 3)


class OneProcessOnly(RuntimeSqlError):
    """The database cannot be shared by several processes."""


def require_shared_database(settings: Settings, option: str) -> None:
    """Refuse settings with which only one process can serve the database.

    Args:
        settings: The server's settings.
        option: What needs several processes, such as `--workers 4`.

    Raises:
        OneProcessOnly: the database is a SQLite file.
    """
    if not is_postgres(settings.database_url):
        raise OneProcessOnly(
            f"{option}: only one process owns a SQLite file, and `threadhold serve` without this "
            "option is that process. For several, set DATABASE_URL to a postgresql:// database."
        )


class Supervisor:
    """Run `count` processes until SIGINT or SIGTERM; a second signal kills them.

    Args:
        command: Command line of a process, without `--inherited`.
        host: Address to listen on.
        port: Port to listen on.
        count: Number of processes.
        stop_seconds: Time that the processes have to stop before they are killed.
    """

    def __init__(
        self, command: Sequence[str], host: str, port: int, count: int, stop_seconds: float
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as error:
            raise CannotListen(host, port, error) from error
        # The kernel closes the write end when this process dies, and the children read EOF.
        self._alive_read, self._alive_write = os.pipe()
        self._command = list(command)
        self._children: list[subprocess.Popen[bytes]] = []
        # Each child writes a byte to its pipe once it serves.
        self._ready_pipes: dict[subprocess.Popen[bytes], int] = {}
        self._numbers: dict[subprocess.Popen[bytes], int] = {}
        self._terminated: set[subprocess.Popen[bytes]] = set()
        self._count = count
        # Of the next process.
        self._env: dict[str, str] = {}
        # Where the processes offer their metrics to each other.
        self._folder = tempfile.mkdtemp(prefix="threadhold-")
        self._stop_seconds = stop_seconds
        self._stopping = False
        self._killed = False
        self._signals: list[int] = []
        # By `time.monotonic`.
        self._deadline = math.inf

    def run(self) -> int:
        """Start the processes, wait until all have ended, and return the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle_signal)
        self._children = [self._start() for _ in range(self._count)]
        first = list(self._children)
        code = 0
        while self._children:
            time.sleep(POLL_SECONDS)
            if self._stopping:
                self._stop_children()
            for child in [each for each in self._children if each.poll() is not None]:
                self._children.remove(child)
                code = code or self._handle_exit(child, is_first=child in first)
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if len(self._signals) > 1:
            # The exit code that shells give a process that died of a signal.
            return 128 + self._signals[-1]
        return code or int(self._killed)

    def _start(self) -> subprocess.Popen[bytes]:
        ready_read, ready_write = os.pipe()
        try:
            used = {number for each, number in self._numbers.items() if each.poll() is None}
            number = min(set(range(self._count)) - used, default=self._count)
            self._env = {**os.environ, FOLDER: self._folder, NUMBER: str(number)}
            child = self._launch((self._socket.fileno(), self._alive_read, ready_write))
        finally:
            os.close(ready_write)
        self._ready_pipes[child] = ready_read
        self._numbers[child] = number
        return child

    def _launch(self, descriptors: tuple[int, int, int]) -> subprocess.Popen[bytes]:
        command = [*self._command, "--inherited", ",".join(map(str, descriptors))]
        # In a session of its own, so that Ctrl+C signals only the supervisor.
        return subprocess.Popen(
            command, pass_fds=descriptors, start_new_session=True, env=self._env
        )

    def _handle_exit(self, child: subprocess.Popen[bytes], *, is_first: bool) -> int:
        """Restart a process that ended, or stop all and return the exit code."""
        has_served = self._has_served(child)
        if self._stopping:
            return 0
        # A process that has served can start, even if a graph's `os._exit` gave it this code.
        if is_first and not has_served and child.returncode in START_FAILURES:
            logger.error("Process %s cannot start (%s): ending all", child.pid, child.returncode)
            self._stopping = True
            return child.returncode
        # A failed replacement is retried: the cause, such as a restarting database, may pass.
        logger.error("Process %s died (%s): starting another", child.pid, child.returncode)
        time.sleep(RESTART_SECONDS)
        if not self._stopping:
            self._children.append(self._start())
        return 0

    def _has_served(self, child: subprocess.Popen[bytes]) -> bool:
        pipe = self._ready_pipes.pop(child)
        # Do not block: a grandchild may still hold the write end.
        ready = select.select([pipe], [], [], 0)[0] and os.read(pipe, 1)
        os.close(pipe)
        return bool(ready)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Only record the signal, because `run` may be starting a process."""
        self._deadline = time.monotonic() + (0 if self._signals else self._stop_seconds)
        self._signals.append(number)
        self._stopping = True

    def _stop_children(self) -> None:
        """Terminate the processes, and kill them after the deadline."""
        for child in set(self._children) - self._terminated:
            self._terminated.add(child)
            child.terminate()
        if time.monotonic() > self._deadline:
            self._killed = True
            for child in self._children:
                logger.warning("Process %s did not stop in time: killing it", child.pid)
                child.kill()


class Inherited(NamedTuple):
    """File descriptors that a process inherits from its supervisor.

    Attributes:
        socket: The socket to listen on.
        ready_pipe: Pipe that tells the supervisor that the process serves.
    """

    socket: socket.socket
    ready_pipe: int

    def report_ready(self) -> None:
        """Tell the supervisor that this process serves. Call once."""
        # If the supervisor is gone, the thread of `inherit` ends this process.
        with suppress(BrokenPipeError):
            os.write(self.ready_pipe, b"1")
        os.close(self.ready_pipe)


def inherit(value: str) -> Inherited:
    """Take over the descriptors of `--inherited`; end this process when its supervisor dies."""
    listening, alive_pipe, ready_pipe = map(int, value.split(","))

    def watch() -> None:
        os.read(alive_pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervisor", daemon=True).start()
    return Inherited(socket.socket(fileno=listening), ready_pipe)
