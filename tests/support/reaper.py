"""End every process that a test session has started, however the session ends.

Every process inherits the session's mark in its environment. A process of its own, the reaper, waits
for the end of the session: its standard input ends. Then it ends all processes with the mark, and
their children. This also works if the session, or one of its workers, is killed.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "TEST_SESSION"
# Seconds; far more than the end of all processes takes.
REAP_SECONDS = 30.0
# A file system in memory; containers often have a small one.
MEMORY = Path("/dev/shm")
# Bytes; far more than the databases of all processes together.
ROOM = 4 * 2**30
_reaper: subprocess.Popen[bytes] | None = None


def pytest_configure(config: object) -> None:
    # A worker has inherited the mark.
    if not hasattr(config, "workerinput"):
        start()


def pytest_unconfigure() -> None:
    finish()


def start() -> None:
    """Begin a session, which ends with this process: mark all processes started from now on."""
    global _reaper
    os.environ[MARK] = session = secrets.token_hex(4)
    _reaper = subprocess.Popen(
        [sys.executable, __file__, session],
        env={name: value for name, value in os.environ.items() if name != MARK},
        stdin=subprocess.PIPE,
        # Ctrl-C does not reach it.
        start_new_session=True,
    )


def finish() -> None:
    """End the session now, and wait until no process of it is left. Repeatable."""
    global _reaper
    reaper, _reaper = _reaper, None
    if reaper is not None:
        reaper.communicate(timeout=2 * REAP_SECONDS)


def folder(kind: str) -> Path:
    """Create a temporary folder, in memory if there is room. Its session removes it at the end."""
    return Path(tempfile.mkdtemp(prefix=_prefix(kind, os.environ.get(MARK, "")), dir=_place()))


def shared(kind: str) -> Path:
    """Return the temporary folder of this kind that all processes of the session use."""
    found = _place() / f"{_prefix(kind, os.environ.get(MARK, ''))}shared"
    found.mkdir(exist_ok=True)
    return found


def _place() -> Path:
    """Return where folders are: tests that wait for a disk take twice as long."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        return MEMORY
    return Path(tempfile.gettempdir())


def _prefix(kind: str, session: str) -> str:
    return f"threadhold-{kind}-{session}-"


def left(session: str) -> list[psutil.Process]:
    """Return the running processes of a session, without the reapers of sessions inside it."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == session:
                found |= {process, *process.children(recursive=True)}
    return [each for each in found if not _is_reaper(each)]


def _is_reaper(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return __file__ in process.cmdline()
    return False


def reap(session: str) -> None:
    """End all processes of a session, and remove its folders."""
    deadline = time.monotonic() + REAP_SECONDS
    while (found := left(session)) and time.monotonic() < deadline:
        for process in found:
            with suppress(psutil.Error):
                # Postgres frees its shared memory only if it ends itself.
                is_postgres = process.name() == "postgres"
                process.send_signal(signal.SIGQUIT if is_postgres else signal.SIGKILL)
        psutil.wait_procs(found, timeout=1)
    for place in (MEMORY, Path(tempfile.gettempdir())):
        for each in place.glob(_prefix("*", session) + "*"):
            shutil.rmtree(each, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.read()
    reap(sys.argv[1])
