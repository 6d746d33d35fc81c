"""A server with the test graphs in its own process, and a client for it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.support import databases
from tests.support.processes import GRAPHS, Running, environment, free_port, running, threadhold

# Seconds; far more than any wait needs, so that only a hanging server reaches the limit.
PATIENCE = 60.0
Json = Any


class Event(NamedTuple):
    """An event of a stream."""

    id: str | None
    name: str
    data: str


@contextmanager
def served(
    folder: Path,
    config: Path = GRAPHS / "langgraph.json",
    redis_url: str | None = None,
    program: Callable[..., list[str]] = threadhold,
    **env: str,
) -> Iterator[Running]:
    """Run a server on the database in `folder` until the end of the block.

    Args:
        redis_url: With a Redis, several servers may use the same database.
        program: Makes its command line: the example application's, or the library's own.
        env: More environment variables.
    """
    port = free_port()
    command = program("serve", "--config", config, "--port", str(port))
    command += ["--database-url", databases.url(folder / "data.db")]
    if redis_url is not None:
        command += ["--redis-url", redis_url]
    with running(command, port, folder, environment(**env)) as started:
        yield started


class Api:
    """A client of a served API.

    Attributes:
        http: The HTTP client, for requests without a method here.
    """

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, **options: Any) -> Json:
        """Send a GET, which must succeed, and return the answer's document."""
        return _json(await self.http.get(path, **options))

    async def post(self, path: str, body: Json = None) -> Json:
        """Send a POST, which must succeed, and return the answer's document."""
        return _json(await self.http.post(path, json={} if body is None else body))

    async def thread(self, **metadata: Any) -> str:
        """Create a thread and return its id."""
        return str((await self.post("/threads", {"metadata": metadata}))["thread_id"])

    async def run(self, thread: str, graph: str, input: Json = None, **body: Any) -> str:
        """Start a background run and return its id."""
        asked = {"assistant_id": graph, "input": input or {}, **body}
        return str((await self.post(f"/threads/{thread}/runs", asked))["run_id"])

    async def status(self, thread: str, run: str) -> str | None:
        """Return a run's status, or None if the run does not exist."""
        answer = await self.http.get(f"/threads/{thread}/runs/{run}")
        return None if answer.status_code == 404 else str(_json(answer)["status"])

    async def until(
        self, thread: str, run: str, *statuses: str | None, patience: float = PATIENCE
    ) -> str | None:
        """Wait until a run has one of `statuses`, and return that status.

        Raises:
            TimeoutError: the run has none of them after `patience` seconds.
        """
        async with asyncio.timeout(patience):
            while (found := await self.status(thread, run)) not in statuses:
                await asyncio.sleep(0.02)
        return found

    async def ended(self, thread: str, run: str) -> str | None:
        """Wait for the end of a run and return its status, or None if the run does not exist."""
        return await self.until(thread, run, "success", "error", "timeout", "interrupted", None)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Open an event stream and give an iterator over its events."""
        async with self.http.stream(method, path, json=body, headers=headers) as answer:
            assert answer.is_success, (await answer.aread()).decode()
            yield events_of(answer)

    async def events(
        self,
        method: str,
        path: str,
        body: Json = None,
        headers: dict[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> list[Event]:
        """Return all events of a stream that ends.

        Raises:
            TimeoutError: the stream does not end within `patience` seconds.
        """
        async with (
            asyncio.timeout(patience),
            self.stream(method, path, body, headers) as stream,
        ):
            return [event async for event in stream]


@asynccontextmanager
async def client(server: Running, **headers: str) -> AsyncIterator[Api]:
    """Open a client of a server."""
    async with httpx.AsyncClient(
        base_url=server.url,
        timeout=PATIENCE,
        headers=headers,
        limits=httpx.Limits(max_connections=200),
    ) as http:
        yield Api(http)


def _json(answer: httpx.Response) -> Json:
    assert answer.is_success, f"{answer.status_code} {answer.text}"
    return answer.json() if answer.content else None


async def events_of(answer: httpx.Response) -> AsyncIterator[Event]:
    """Yield the events of a stream as they arrive."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and "event" in fields:
            yield Event(fields.get("id"), fields["event"], fields.get("data", ""))
            fields = {}


async def lines(record: Path, count: int) -> list[str]:
    """Wait until a file has `count` lines, and return these.

    Raises:
        TimeoutError: the file has fewer lines after `PATIENCE` seconds.
    """
    async with asyncio.timeout(PATIENCE):
        while not record.exists() or len(found := record.read_text().splitlines()) < count:
            await asyncio.sleep(0.01)
    return found[:count]
