"""No process of a test session outlives it, whether it is interrupted or killed."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.processes import environment

PLUGINS = ("reaper", "databases", "processes", "redis")
# Starts one process of each kind, writes their ids, and hangs.
SESSION = '''
import os, subprocess, sys, threading
from pathlib import Path
import pytest
from tests.support import databases, processes, redis

FOLDER = Path({folder!r})
# Like a server in a session of its own, which Ctrl-C does not reach. It has a child, as `--reload`.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""

@pytest.mark.parametrize("number", range(2))
def test_hangs(number):
    here = FOLDER / str(number)
    here.mkdir()
    stubborn = subprocess.Popen(
        [sys.executable, "-c", STUBBORN], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    found = [os.getpid(), stubborn.pid, int(stubborn.stdout.readline())]
    if number:
        code = [sys.executable, "-c", "import time; time.sleep(600)"]
        fork_server = processes.fork_server()
        child = fork_server.start(code, str(here), str(here / "log"), processes.environment())
        found += [fork_server._process.pid, child.pid]
        valkey = redis.Valkey(here)
        valkey.start()
        found.append(valkey._server._process.pid)
        pid = databases.server().data_directory() / "postmaster.pid"
        found.append(int(pid.read_text().splitlines()[0]))
    (here / "partial").write_text(" ".join(map(str, found)))
    (here / "partial").rename(here / "ids")
    threading.Event().wait()
'''


@pytest.mark.parametrize("killed", [False, True])
async def test_no_process_outlives_its_session(killed: bool, tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(SESSION.format(folder=str(tmp_path)))
    (tmp_path / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-n", "2", "--import-mode=importlib"]
    command += [part for name in PLUGINS for part in ("-p", f"tests.support.{name}")]
    with (tmp_path / "log").open("wb") as log:
        session = await asyncio.create_subprocess_exec(
            *command,
            cwd=tmp_path,
            env=environment(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        started = [await ids(tmp_path / str(number) / "ids", session) for number in range(2)]
        every = [each for some in started for each in some]
        if killed:
            session.kill()
        else:
            started[1][0].kill()
            # The terminal sends it to all processes of the session.
            os.killpg(session.pid, signal.SIGINT)
        async with asyncio.timeout(120):
            await session.wait()
        # After an interruption, the session itself waits for the end of all processes.
        async with asyncio.timeout(120 if killed else 5):
            while any(map(is_running, every)):
                await asyncio.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            session.kill()
        await session.wait()


async def ids(file: Path, session: asyncio.subprocess.Process) -> list[psutil.Process]:
    """Wait for the processes whose ids are in a file."""
    async with asyncio.timeout(120):
        while not file.exists():
            assert session.returncode is None, (file.parents[1] / "log").read_text()
            await asyncio.sleep(0.05)
    return [psutil.Process(int(each)) for each in file.read_text().split()]


def is_running(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
