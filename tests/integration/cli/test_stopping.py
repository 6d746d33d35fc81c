"""Processes that are stopped while Postgres or Redis is away end, and lose no run."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support import databases, served
from tests.support.processes import (
    GRAPHS,
    Running,
    environment,
    fork_server,
    free_port,
    stop,
    threadhold,
)
from tests.support.proxy import Proxy, proxied
from tests.support.redis import started
from tests.support.served import Api, client

pytestmark = [
    pytest.mark.usefixtures("each_database"),
    pytest.mark.only("postgresql"),
    pytest.mark.timeout(300),
]
# Seconds. A process that hangs would never end; with `GRACE_SECONDS` it ends within 30 seconds.
PATIENCE = 120.0
GRACE_SECONDS = "1"


class Ways(NamedTuple):
    """URLs of the same database and the same Redis over different connections.

    Attributes:
        postgres, redis: the ways themselves, by name.
    """

    folder: Path
    direct: dict[str, str]
    postgres: dict[str, Proxy]
    redis: dict[str, Proxy]

    def by(self, postgres: str | None = None, redis: str | None = None) -> dict[str, str]:
        """Return the environment of a process that uses these connections."""
        found = dict(self.direct)
        if postgres is not None:
            where = {"host": "127.0.0.1", "port": str(self.postgres[postgres].port)}
            found["DATABASE_URL"] = databases.as_url(make_conninfo(found["DATABASE_URL"], **where))
        if redis is not None:
            found["REDIS_URL"] = f"redis://127.0.0.1:{self.redis[redis].port}/0"
        return found


@pytest.fixture
def ways(each_database: str, tmp_path: Path) -> Iterator[Ways]:
    with ExitStack() as stack:
        valkey = stack.enter_context(started(tmp_path / "valkey"))
        url = databases.url(tmp_path / "data.db")
        postgres = {
            name: stack.enter_context(proxied(_listens(url))) for name in ("silent", "away")
        }
        redis = {name: stack.enter_context(proxied(valkey.port)) for name in ("silent", "away")}
        direct = {"DATABASE_URL": url, "REDIS_URL": valkey.url}
        yield Ways(tmp_path, direct, postgres, redis)


def _listens(url: str) -> int | Path:
    """Return the address on which the local database server listens."""
    parts = conninfo_to_dict(url)
    host, port = str(parts.get("host") or ""), int(parts.get("port") or 5432)
    return Path(host) / f".s.PGSQL.{port}" if host.startswith("/") else port


async def says(server: Running, words: str) -> None:
    """Wait until the server has printed these words."""
    async with asyncio.timeout(PATIENCE):
        while words not in server.log.read_text():
            assert server.process.poll() is None, server.log.read_text()
            await asyncio.sleep(0.05)


async def refuses(server: Running) -> None:
    """Wait until the server refuses connections."""
    async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as http:
        while True:
            try:
                await http.get(f"{server.url}/ok")
            except httpx.ConnectError:
                return
            except httpx.TransportError:
                pass  # it was open, and has just been closed
            await asyncio.sleep(0.05)


async def ended(server: Running) -> int:
    return await asyncio.to_thread(server.process.wait, PATIENCE)


@asynccontextmanager
async def unanswered(server: Running) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Keep a request in progress that needs the database. Yield a function that reads its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(server.url).port)
    try:
        async with asyncio.timeout(PATIENCE):
            fields = "Host: localhost\r\nContent-Length: 2\r\nExpect: 100-continue"
            writer.write(f"POST /threads HTTP/1.1\r\n{fields}\r\n\r\n".encode())
            # A server that asks for the body is handling the request.
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"{}")

        async def answer() -> str:
            return (await reader.readline()).decode()

        yield answer
    finally:
        writer.close()


class Started:
    """Start processes, and stop the remaining ones at the end."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    def __call__(self, *arguments: str, grace: str = GRACE_SECONDS, **env: str) -> Running:
        """Start `threadhold` with one slot in each process."""
        port = free_port()
        log = self._folder / f"{port}.log"
        log.touch()
        if arguments[0] == "serve":
            arguments = (*arguments, "--port", str(port))
        settings = {
            "LANGGRAPH_JSON": str(GRAPHS / "langgraph.json"),
            "N_JOBS_PER_WORKER": "1",
            "SHUTDOWN_GRACE_SECONDS": grace,
        }
        process = fork_server().start(
            threadhold(*arguments), str(self._folder), str(log), environment(**settings, **env)
        )
        self._stack.callback(stop, process)
        return Running(f"http://127.0.0.1:{port}", process, log)


@pytest.fixture
def start(ways: Ways) -> Iterator[Started]:
    with ExitStack() as stack:
        yield Started(ways.folder, stack)


@pytest.fixture
async def api(ways: Ways) -> AsyncIterator[Api]:
    """A client of a server that keeps its connections and works on no runs."""
    url = ways.direct["REDIS_URL"]
    with served.served(ways.folder, redis_url=url, N_JOBS_PER_WORKER="0") as server:
        async with client(server) as api:
            yield api


def is_there(pid: int) -> bool:
    """Return whether a process still runs; an ended one may remain as a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_processes_stop_without_postgres_or_redis_and_their_runs_continue(
    ways: Ways, api: Api, start: Started
) -> None:
    """Each process works on one run, which ends once a file exists."""
    silent = start("serve", **ways.by(postgres="silent"))
    pair = start("serve", "--workers", "2", **ways.by(postgres="silent", redis="away"))
    deaf = start("serve", **ways.by(redis="silent"))
    worker = start("worker", grace="600", **ways.by(postgres="away"))
    impatient = start("serve", grace="600", **ways.direct)
    go = ways.folder / "go"
    made = []
    for _ in range(6):
        thread = await api.thread()
        made.append((thread, await api.run(thread, "sleeper", {"seconds": 600, "until": str(go)})))
    for each in made:
        assert await api.until(*each, "running", patience=PATIENCE) == "running"
    async with client(silent) as own:
        kept = await own.thread(kept="yes")
        item = {"namespace": ["notes"], "key": "k", "value": {"kept": "yes"}}
        assert (await own.http.put("/store/items", json=item)).is_success

        for way in (ways.postgres, ways.redis):
            way["silent"].silent = True
            await asyncio.to_thread(way["away"].leave)
    async with unanswered(silent) as answer:
        everybody = (silent, pair, deaf, worker, impatient)
        for one in everybody:
            one.process.terminate()
        # A second signal kills a process that is stopping.
        await says(worker, "Stopping")
        worker.process.terminate()
        await refuses(impatient)
        impatient.process.send_signal(signal.SIGINT)
        codes = await asyncio.gather(*(ended(one) for one in everybody))
        assert (await answer()).startswith("HTTP/1.1 503 ")
    assert codes[-2:] == [-signal.SIGTERM, -signal.SIGINT]
    children = re.findall(r"\(process (\d+)\)", pair.log.read_text())
    assert len(children) == 2
    assert not any(is_there(int(child)) for child in children)

    go.touch()
    start("worker", **ways.direct)
    for each in made:
        assert await api.until(*each, "success", "error", patience=PATIENCE) == "success"
    assert (await api.get(f"/threads/{kept}"))["metadata"]["kept"] == "yes"
    found = await api.get("/store/items", params={"key": "k", "namespace": "notes"})
    assert found["value"] == {"kept": "yes"}
