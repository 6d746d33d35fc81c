"""Servers that tests start in a process of their own, and stop again."""

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

# Seconds; far above what anything here takes, so that only a broken server meets them.
START_SECONDS = 120.0
STOP_SECONDS = 60.0
FOREIGN = (
    *("LANGSMITH", "LANGCHAIN", "LANGGRAPH", "LANGSERVE", "OPENAI_", "DATABASE_", "REDIS_"),
    *("JWT_", "APP_ENV"),
)


@dataclass(frozen=True)
class Running:
    """A server that answers.

    Attributes:
        url: Its address, without a slash at the end.
        process: Its process, for signals.
        log: The file with everything it has printed.
    """

    url: str
    process: subprocess.Popen[bytes] | Child
    log: Path


def free_port() -> int:
    """A TCP port that nothing listens on, and that nobody else is about to take.

    Below those that the system gives to connections, and each process that tests run
    in has some of its own: between this and the server's start pass seconds.
    """
    while True:
        port = next(_ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _own_ports() -> Iterator[int]:
    """All of a range, over and over, whose first port keeps the others out of it."""
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
    """This process's environment without anything that configures a server or reaches out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "PYTHONPATH": str(ROOT), **extra}


def threadhold(*arguments: str | Path) -> list[str]:
    """The command line of our app, which has every command of `threadhold`."""
    return [sys.executable, "-m", "server", *map(str, arguments)]


def library(*arguments: str | Path) -> list[str]:
    """The command line of `threadhold` itself, for any project."""
    return [sys.executable, "-m", "threadhold", *map(str, arguments)]


@cache
def fork_server() -> ForkServer:
    """Where servers come from, until the end of the session."""
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
    """`command` in `cwd`, by default `folder`, which has the log, from its first good answer at
    `ready` until the end of the block."""
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
    return is_server or script == "-c" or not script.startswith("-")


def ran(command: list[str], folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A command of Python that ends by itself, in `folder`, with what it printed.

    Raises:
        subprocess.TimeoutExpired: it does not end.
    """
    with TemporaryDirectory() as place:
        said, errors = Path(place, "said"), Path(place, "errors")
        child = fork_server().start(command, str(folder), str(said), env, str(errors))
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
    """End it as an operator would, or by force if it does not listen. Repeatable."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
