"""What a scenario uses: one server, through the SDK and through plain HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import httpx
from langgraph_sdk.client import LangGraphClient

from .receiver import Receiver

GRAPH_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
# Seconds until a delayed run starts: enough to act before, even on a slow machine.
SOON = 15
SEEN_HEADERS = (
    "allow",
    "content-location",
    "content-type",
    "location",
    "x-pagination-next",
    "x-pagination-total",
)


def system_assistant(graph: str) -> str:
    """Return the id of the system assistant of a graph, which is equal on every server."""
    return str(uuid5(GRAPH_NAMESPACE, graph))


def open_transport() -> httpx.AsyncHTTPTransport:
    """Open the transport that all scenarios share, because creating one is slow.

    No connection is reused: stock closes it after a 500 and after five idle
    seconds, and the next request on that connection would fail.
    """
    return httpx.AsyncHTTPTransport(
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0)
    )


class World:
    """One server as one scenario uses it.

    :param url: base URL of the server.
    :param receiver: receives webhooks.
    :param transport: made by :func:`open_transport`; its maker closes it.
    :param scratch: a directory for files that graphs write and scenarios read.
    :param headers: sent with every request.
    """

    def __init__(
        self,
        url: str,
        receiver: Receiver,
        transport: httpx.AsyncHTTPTransport,
        scratch: Path,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.url = url
        self.receiver = receiver
        self.scratch = scratch
        self._transport = transport
        self.http = httpx.AsyncClient(
            base_url=url, transport=transport, timeout=60, headers=headers
        )
        # Scenarios compare plain JSON, so they do not need the types of the SDK.
        self.sdk: Any = LangGraphClient(self.http)

    def user(self, name: str) -> World:
        """Return a client of the same server for a new user."""
        headers = {"x-user": f"{name}-{self.new_id()}"}
        return World(self.url, self.receiver, self._transport, self.scratch, headers)

    @staticmethod
    def new_id() -> str:
        """Return a random UUID, also used as a mark that limits a search to one scenario."""
        return str(uuid4())

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Call the server and return status, the headers that matter and the body.

        :param body: sent as JSON unless None; ``content=`` sends raw bytes instead.
        """
        if body is not None:
            options["json"] = body
        return reply(await self.http.request(method, path, **options))

    async def thread(self, **metadata: Any) -> str:
        """Create a thread and return its id."""
        thread = await self.sdk.threads.create(metadata=metadata or None)
        return str(thread["thread_id"])

    async def sse(
        self, method: str, path: str, body: Any = None, *, stop: Any = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Return all events of a server-sent stream, up to its end or to the first event that
        ``stop(event)`` accepts."""
        events = []
        async with self.events(method, path, body, **options) as stream:
            async for event in stream:
                events.append(event)
                if stop is not None and stop(event):
                    break
        return events

    @asynccontextmanager
    async def events(
        self, method: str, path: str, body: Any = None, **options: Any
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Open a server-sent stream; leaving the block disconnects."""
        if body is not None:
            options["json"] = body
        async with self.http.stream(method, path, **options) as response:
            if response.status_code != 200:
                await response.aread()
                raise AssertionError(f"{method} {path}: {reply(response)}")
            yield _parse(response.aiter_bytes())

    async def until(self, look: Callable[[], Awaitable[Any]], accept: Callable[[Any], bool]) -> Any:
        """Repeat ``look`` until ``accept`` returns true for its result.

        For changes that a server makes in the background.
        """
        async with asyncio.timeout(60):
            while not accept(seen := await look()):
                await asyncio.sleep(0.05)
        return seen

    async def written(self, file: Path) -> None:
        """Wait until the file exists."""

        async def look() -> bool:
            return file.exists()

        await self.until(look, bool)

    @staticmethod
    async def pause(seconds: float) -> None:
        """Wait, to show that something does *not* happen."""
        await asyncio.sleep(seconds)

    async def run_status(self, thread_id: str, run_id: str, *wanted: str) -> str:
        """Wait until the run has one of the wanted statuses, and return it."""
        run = await self.until(
            lambda: self.sdk.runs.get(thread_id, run_id), lambda run: run["status"] in wanted
        )
        return str(run["status"])


def reply(response: httpx.Response) -> dict[str, Any]:
    """Reduce a response to status, relevant headers and body."""
    headers = {name: response.headers[name] for name in SEEN_HEADERS if name in response.headers}
    return {"status": response.status_code, "headers": headers, "body": _body(response)}


def _body(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        return response.text


async def _parse(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    async for line in _lines(chunks):
        if not line and event:
            yield event
            event = {}
        elif line and not line.startswith(":"):
            field, _, text = line.partition(": ")
            event[field] = json.loads(text) if field == "data" and text else text


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Split lines as the event-stream format defines: httpx would also split at U+2028."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode()
