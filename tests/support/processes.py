"""Start and stop servers in their own processes."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tests.support.fork_server import Child, ForkServer

ROOT = Path(__file__).parents[2]
GRAPHS = ROOT / "tests" / "graphs"

# Seconds; far more than any wait needs, so that only a broken server reaches the limits.
START_SECONDS = 120.0
STOP_SECONDS = 60.0
FOREIGN = (
    *("LANGSMITH", "LANGCHAIN", "LANGGRAPH", "LANGSERVE", "OPENAI_", "DATABASE_", "REDIS_"),
    *("JWT_", "APP_ENV"),
)
# Most tests sign tokens without the claims `aud` and `iss`.
ANY_APPLICATION = {"JWT_ALLOW_ANY_AUDIENCE": "true", "JWT_ALLOW_ANY_ISSUER": "true"}


@dataclass(frozen=True)
class Running:
    """A server that answers.

    Attributes:
        url: The address without a trailing slash.
        process: The process, for signals.
        log: The file with its output.
    """

    url: str
    process: subprocess.Popen[bytes] | Child
    log: Path


def free_port() -> int:
    """Return a free TCP port that no other test process will use.

    Seconds pass until the server listens. So the port is below the system's range for outgoing
    connections, and each test process has its own range.
    """
    while True:
        port = next(_ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _own_ports() -> Iterator[int]:
    """Yield the ports of a range again and again. This process holds the first port as a lock."""
    count, size = 44, 500
    for number in range(count):
        first = 10_000 + (os.getpid() + number) % count * size
        with socket.socket() as claim, suppress(OSError):
            claim.bind(("127.0.0.1", first))
            while True:
                yield from range(first + 1, first + size)
    raise RuntimeError("other processes hold every range of ports")


_ports = _own_ports()


def environment(**extra: str) -> dict[str, str]:
    """Return this process's environment without settings of servers and external services."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **ANY_APPLICATION, "PYTHONPATH": str(ROOT), **extra}


def threadhold(*arguments: str | Path) -> list[str]:
    """Return the command line of the example application, which has all `threadhold` commands."""
    return [sys.executable, "-m", "server", *map(str, arguments)]


def library(*arguments: str | Path) -> list[str]:
    """Return the command line of `threadhold` itself, for any project."""
    return [sys.executable, "-m", "threadhold", *map(str, arguments)]


@cache
def fork_server() -> ForkServer:
    """Return the fork server of this session; start it at the first call."""
    return ForkServer(environment())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    if fork_server.cache_info().currsize:
        fork_server().close()
        fork_server.cache_clear()


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    folder: Path,
    env: dict[str, str],
    *,
    ready: str = "/ok",
    cwd: Path | None = None,
) -> Iterator[Running]:
    """Run a server until the end of the block, and enter the block once it answers.

    Args:
        port: The port on which the command listens.
        folder: The folder for the log.
        ready: The path that answers with success once the server is ready.
        cwd: The working directory; by default `folder`.
    """
    log = folder / f"server-{port}.log"
    log.touch()
    process: subprocess.Popen[bytes] | Child
    if _can_fork(command):
        process = fork_server().start(list(command), str(cwd or folder), str(log), env)
    else:
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, cwd=cwd or folder, env=env, stdout=output, stderr=subprocess.STDOUT
            )
    server = Running(f"http://127.0.0.1:{port}", process, log)
    try:
        _wait(server, ready)
        yield server
    finally:
        stop(process)


def _can_fork(command: Sequence[str]) -> bool:
    """Return whether the fork server can run a command: a server, a script or code."""
    if command[0] != sys.executable:
        return False
    script = command[2] if command[1] == "-P" else command[1]
    is_server = list(command[:4]) in (threadhold("serve"), library("serve"))
    is_host = list(command[1:3]) == ["-m", "uvicorn"]
    return is_server or is_host or script == "-c" or not script.startswith("-")


def ran(
    command: list[str], folder: Path, env: dict[str, str], *, terminal: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a Python command in `folder` to its end and return its output.

    Args:
        terminal: The path of a terminal that gets the errors; then the result has none.

    Raises:
        subprocess.TimeoutExpired: the command does not end within `START_SECONDS`.
    """
    with TemporaryDirectory() as place:
        said, errors = Path(place, "said"), Path(place, "errors")
        errors.touch()
        child = fork_server().start(command, str(folder), str(said), env, terminal or str(errors))
        try:
            status = child.wait(START_SECONDS)
        finally:
            child.kill()
        return subprocess.CompletedProcess(command, status, said.read_text(), errors.read_text())


def _wait(server: Running, ready: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            if httpx.get(server.url + ready, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass  # not listening yet
        time.sleep(0.05)
    pytest.fail(f"the server did not start:\n{server.log.read_text()[-4000:]}")


def stop(process: subprocess.Popen[bytes] | Child) -> None:
    """End a process with SIGTERM, and with SIGKILL after `STOP_SECONDS`. Repeatable."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
