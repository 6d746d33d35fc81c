"""Clients that follow a run and, whenever their server dies, reconnect with their cursor."""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import httpx

from tests.chaos.victim import PATIENCE
from tests.support.javascript import JAVASCRIPT
from tests.support.served import events_of

# Seconds between two attempts to connect.
PAUSE = 0.1


class Got(NamedTuple):
    """An event that a client got.

    Attributes:
        place: Its cursor.
        what: `token` with its number, `attempt` with its number, or another name.
        at: When it came, by the monotonic clock.
    """

    place: str
    what: str
    number: int | None
    at: float


class Follower:
    """A client of a run's stream over plain HTTP.

    Args:
        urls: The servers. It goes on to the next one when one does not answer.
        after: The cursor to begin with.

    Attributes:
        got: The events in the order in which they came.
        cursor: The cursor of the last one.
    """

    def __init__(self, urls: Sequence[str], thread: str, run: str, after: str = "-1") -> None:
        self._urls = list(urls)
        self._thread, self._run = thread, run
        self.got: list[Got] = []
        self.cursor = after

    @property
    def tokens(self) -> int:
        """How many tokens it got."""
        return sum(each.what == "token" for each in self.got)

    async def follow(self) -> None:
        """Follow the run to its end."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    async with aclosing(self.events(self._urls[0])) as events:
                        async for place, what, number in events:
                            self.cursor = place or self.cursor
                            self.got.append(Got(place, what, number, time.monotonic()))
                    return
                except (httpx.TransportError, Interrupted):
                    self._urls.append(self._urls.pop(0))
                    await asyncio.sleep(PAUSE)

    async def events(self, url: str) -> AsyncIterator[tuple[str, str, int | None]]:
        """Yield cursor, kind and number of each event until the end of the run."""
        path = f"/threads/{self._thread}/runs/{self._run}/stream"
        headers = {"Last-Event-ID": self.cursor}
        async with (
            httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http,
            http.stream("GET", path, headers=headers) as answer,
        ):
            if not answer.is_success:
                raise Interrupted
            async for event in events_of(answer):
                yield (event.id or "", *_kind(event.name, json.loads(event.data)))


class Interrupted(Exception):
    """The stream is not over, but no more comes from this server."""


class Threads(Follower):
    """A client of the thread's stream of protocol 2."""

    async def events(self, url: str) -> AsyncIterator[tuple[str, str, int | None]]:
        path = f"/threads/{self._thread}/stream/events"
        body: dict[str, Any] = {"channels": ["custom", "lifecycle"], "since": int(self.cursor)}
        async with (
            httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http,
            http.stream("POST", path, json=body) as answer,
        ):
            if not answer.is_success:
                raise Interrupted
            async for event in events_of(answer):
                found = json.loads(event.data)
                params = found["params"]
                data, seq = params["data"], str(found["seq"])
                if found["method"] == "custom":
                    yield (seq, *_kind("custom", data["payload"]))
                elif data["event"] == "running" and "attempt" in data:
                    yield seq, "attempt", data["attempt"]
                elif data["event"] == "completed" and not params["namespace"]:
                    yield seq, "end", None
                    return
        raise Interrupted


class Javascript(Follower):
    """The client of @langchain/langgraph-sdk in Node, which reconnects by itself."""

    async def events(self, url: str) -> AsyncIterator[tuple[str, str, int | None]]:
        process = await asyncio.create_subprocess_exec(
            *("node", str(JAVASCRIPT / "follow.mjs"), url, self._thread, self._run, self.cursor),
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                event = json.loads(line)
                yield (event.get("id") or "", *_kind(event["event"], event["data"]))
            assert await process.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


def _kind(name: str, data: Any) -> tuple[str, int | None]:
    if name == "custom":
        return "token", data["i"]
    if name == "metadata":
        return "attempt", data["attempt"]
    return name, None
