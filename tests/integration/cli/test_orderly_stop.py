"""SIGTERM is an everyday event: idle and busy processes end without an error or a warning in the log."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import databases
from tests.support.processes import (
    GRAPHS,
    Running,
    environment,
    fork_server,
    free_port,
    stop,
    threadhold,
)
from tests.support.served import PATIENCE, Api, client

pytestmark = pytest.mark.usefixtures("each_database")

Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start processes of `threadhold` on one database, and stop the remaining ones at the end."""
    with ExitStack() as stack:

        def run(*arguments: str, grace: float = 60, **env: str) -> Running:
            port = free_port()
            log = tmp_path / f"{port}.log"
            log.touch()
            if arguments[0] == "serve":
                arguments = (*arguments, "--port", str(port))
            else:
                arguments = (*arguments, "--metrics-port", str(port))
            settings = environment(
                LANGGRAPH_JSON=str(GRAPHS / "langgraph.json"),
                DATABASE_URL=databases.url(tmp_path / "data.db"),
                SHUTDOWN_GRACE_SECONDS=str(grace),
                **env,
            )
            command = threadhold(*arguments)
            process = fork_server().start(command, str(tmp_path), str(log), settings)
            stack.callback(stop, process)
            return Running(f"http://127.0.0.1:{port}", process, log)

        yield run


async def answers(server: Running) -> None:
    async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as http:
        while True:
            try:
                if (await http.get(f"{server.url}/ok")).is_success:
                    return
            except httpx.TransportError:
                assert server.process.poll() is None, server.log.read_text()
            await asyncio.sleep(0.05)


async def refuses(server: Running) -> None:
    """Wait until a server accepts no connections."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(server.url).port)
            except ConnectionRefusedError:
                return
            writer.close()
            await asyncio.sleep(0.05)


async def stopped(server: Running) -> list[dict[str, Any]]:
    """Wait for the end of a process that got SIGTERM, and return what it has logged."""
    code = await asyncio.to_thread(server.process.wait, PATIENCE)
    assert code in (0, -signal.SIGTERM), server.log.read_text()
    said = server.log.read_text()
    assert "Traceback" not in said
    lines = [json.loads(line) for line in said.splitlines()]
    assert any(line["level"] == "info" for line in lines)
    assert [line for line in lines if line["level"] not in ("debug", "info")] == []
    return lines


async def busy(api: Api, until: Path) -> list[tuple[str, str]]:
    """Start runs that end once a file exists, and return them when they work."""
    made = []
    for _ in range(4):
        thread = await api.thread()
        run = await api.run(thread, "sleeper", {"seconds": 600, "until": str(until)})
        made.append((thread, run))
    for each in made:
        assert await api.until(*each, "running", patience=PATIENCE) == "running"
    return made


@asynccontextmanager
async def followed(api: Api, made: list[tuple[str, str]]) -> AsyncIterator[None]:
    """Stream some runs and wait for others until the end of the block; a stop may cut the answers."""
    async with AsyncExitStack() as stack:
        answers = []
        for number, (thread, run) in enumerate(made):
            path = f"/threads/{thread}/runs/{run}/{'stream' if number % 2 else 'join'}"
            # Entered once the answer has begun.
            answers.append(
                await stack.enter_async_context(api.http.stream("GET", path, timeout=PATIENCE))
            )
        yield
        for each in answers:
            with suppress(httpx.RemoteProtocolError):
                await each.aread()


@pytest.mark.parametrize("ends", [True, False], ids=["in time", "cut"])
async def test_a_busy_server_stops_without_a_complaint(
    start: Start, tmp_path: Path, ends: bool
) -> None:
    server, go = start("serve", grace=60 if ends else 1), tmp_path / "go"
    await answers(server)
    async with client(server) as api, followed(api, await busy(api, go)):
        server.process.send_signal(signal.SIGTERM)
        if ends:
            # The server has seen the signal when it refuses connections.
            await refuses(server)
            go.touch()
        said = await stopped(server)
    returned = sum(line["event"] == "Run returned to the queue" for line in said)
    cancelled = sum(line["event"].startswith("Cancelled ") for line in said)
    assert (returned, cancelled) == ((0, 0) if ends else (4, 1))


async def test_idle_processes_stop_without_a_complaint(start: Start, each_database: str) -> None:
    asked = [["serve"]]
    if each_database == "postgresql":
        asked += [["serve", "--workers", "2"], ["worker"]]
    processes = [start(*arguments) for arguments in asked]
    for each in processes:
        await answers(each)
    async with client(processes[0]) as api:
        await api.thread()
        # With an open connection.
        for each in processes:
            each.process.send_signal(signal.SIGTERM)
        for each in processes:
            await stopped(each)


@pytest.mark.only("postgresql")
async def test_busy_processes_stop_without_a_complaint(start: Start, tmp_path: Path) -> None:
    pair = start("serve", "--workers", "2", grace=1, N_JOBS_PER_WORKER="1")
    worker = start("worker", grace=1)
    await answers(pair)
    await answers(worker)
    async with client(pair) as api, followed(api, await busy(api, tmp_path / "go")):
        for each in (pair, worker):
            each.process.send_signal(signal.SIGTERM)
        said = await stopped(pair) + await stopped(worker)
    assert sum(line["event"] == "Run returned to the queue" for line in said) >= 4
