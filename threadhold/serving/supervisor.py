"""Several processes on one port: they share its socket, and the system spreads connections.

This one only starts them, starts those again that die, and stops all of them together.
"""

import logging
import math
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NamedTuple

from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.serving.listen import CannotListen
from threadhold.settings import Settings

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
# Between the deaths of a process and its next start.
PAUSE_SECONDS = 1.0
# What a process ends with that cannot start, and would not the next time either.
HOPELESS = (1, 2, 3)


class OneProcessOnly(RuntimeSqlError):
    """More processes are asked for than the database can have."""


def refuse_alone(settings: Settings, asked: str) -> None:
    """Refuse what takes more than one process where there can only be one.

    Args:
        settings: The server's settings.
        asked: What was asked for, such as `--workers 4`.

    Raises:
        OneProcessOnly: the database is a SQLite file, or there is no Redis.
    """
    if not is_postgres(settings.database_url):
        raise OneProcessOnly(
            f"{asked}: one process owns a SQLite file, which `threadhold serve` alone makes the "
            "most of. For more of them set DATABASE_URL to a postgresql:// database, and REDIS_URL."
        )
    if settings.redis_url is None:
        raise OneProcessOnly(
            f"{asked}: without Redis one process serves a Postgres database. Set REDIS_URL, "
            "through which several tell each other what happens."
        )


class Supervisor:
    """Runs `count` processes until SIGINT or SIGTERM; another signal ends them at once.

    Args:
        command: What starts each of them, without `--inherited`.
        host: Address to listen on.
        port: Port to listen on.
        count: How many.
        patience: Seconds after which those are ended that were told to and have not.
    """

    def __init__(
        self, command: Sequence[str], host: str, port: int, count: int, patience: float
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as error:
            raise CannotListen(host, port, error) from error
        # Its other end closes when this process dies, however it does.
        self._alive, self._held = os.pipe()
        self._command = list(command)
        self._children: list[subprocess.Popen[bytes]] = []
        # Where each says that it serves.
        self._said: dict[subprocess.Popen[bytes], int] = {}
        self._told: set[subprocess.Popen[bytes]] = set()
        self._count = count
        self._patience = patience
        self._stopping = False
        self._forced = False
        self._signals: list[int] = []
        # By `time.monotonic`.
        self._deadline = math.inf

    def run(self) -> int:
        """Start them and stay until all have ended; the code to exit with."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        self._children = [self._start() for _ in range(self._count)]
        first = list(self._children)
        code = 0
        while self._children:
            time.sleep(LOOK_SECONDS)
            if self._stopping:
                self._tell()
            for child in [each for each in self._children if each.poll() is not None]:
                self._children.remove(child)
                code = code or self._ended(child, is_first=child in first)
        self._socket.close()
        if len(self._signals) > 1:
            # As a shell says of a process that died of a signal.
            return 128 + self._signals[-1]
        return code or int(self._forced)

    def _start(self) -> subprocess.Popen[bytes]:
        hears, says = os.pipe()
        try:
            child = self._launch((self._socket.fileno(), self._alive, says))
        finally:
            os.close(says)
        self._said[child] = hears
        return child

    def _launch(self, inherits: tuple[int, int, int]) -> subprocess.Popen[bytes]:
        inherited = ",".join(map(str, inherits))
        command = [*self._command, "--inherited", inherited]
        # A session of its own, so that Ctrl+C reaches it once: from here.
        return subprocess.Popen(command, pass_fds=inherits, start_new_session=True)

    def _ended(self, child: subprocess.Popen[bytes], *, is_first: bool) -> int:
        """What becomes of one that has ended; the code to exit with, if it is the end of all."""
        has_served = self._has_served(child)
        if self._stopping:
            return 0
        # One that has served can start, whatever code a graph's `os._exit` gives it later.
        if is_first and not has_served and child.returncode in HOPELESS:
            logger.error("Process %s cannot start (%s): ending all", child.pid, child.returncode)
            self._stopping = True
            return child.returncode
        # One that takes another's place could start once: what it lacks, such as the database
        # while its server restarts, comes back.
        logger.error("Process %s died (%s): starting another", child.pid, child.returncode)
        time.sleep(PAUSE_SECONDS)
        if not self._stopping:
            self._children.append(self._start())
        return 0

    def _has_served(self, child: subprocess.Popen[bytes]) -> bool:
        hears = self._said.pop(child)
        # Not waited for: a process that it has started may hold the other end.
        said = select.select([hears], [], [], 0)[0] and os.read(hears, 1)
        os.close(hears)
        return bool(said)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Note that all shall end. Not more: one may be about to be started."""
        self._deadline = time.monotonic() + (0 if self._signals else self._patience)
        self._signals.append(number)
        self._stopping = True

    def _tell(self) -> None:
        """Have each finish what it is at, within the grace period."""
        for child in set(self._children) - self._told:
            self._told.add(child)
            child.terminate()
        if time.monotonic() > self._deadline:
            self._forced = True
            for child in self._children:
                logger.warning("Process %s has not ended: ending it at once", child.pid)
                child.kill()


class Inherited(NamedTuple):
    """What a supervisor gave to this process.

    Attributes:
        socket: To listen on.
        says: Where he hears that it serves.
    """

    socket: socket.socket
    says: int

    def served(self) -> None:
        """Say that this process has started. Once."""
        # He may be gone, of which the process hears otherwise.
        with suppress(BrokenPipeError):
            os.write(self.says, b"1")
        os.close(self.says)


def inherited(value: str) -> Inherited:
    """What a supervisor gave to this process, which ends when he does."""
    descriptor, alive, says = map(int, value.split(","))

    def watch() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervisor", daemon=True).start()
    return Inherited(socket.socket(fileno=descriptor), says)
