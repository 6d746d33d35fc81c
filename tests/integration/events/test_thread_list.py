"""`GET /threads/stream`: a client that lists threads learns which of them change, and only of its own."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events import changes
from langgraph_runtime_sql.events.changes import Changes
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.ops.threads import listening
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.tenancy.scope import EVERYTHING, Scope, TenantScope
from tests.support import runtime
from tests.support.operations import rows
from tests.support.processes import GRAPHS, Running
from tests.support.served import PATIENCE, Api, Event, client, served

pytestmark = pytest.mark.usefixtures("each_database", "packages")

LIST = "/threads/stream"


@dataclass
class Heard:
    """What a client hears."""

    events: AsyncIterator[Event]

    async def next(self) -> tuple[str, Any]:
        """Return the name and the data of the next event."""
        async with asyncio.timeout(PATIENCE):
            event = await anext(self.events)
        return event.name, json.loads(event.data)

    async def until(self, thread: str, status: str) -> dict[str, Any]:
        """Return the first event of a thread with a status. No other thread may be named before."""
        while True:
            name, data = await self.next()
            assert (name, data["thread_id"]) == ("thread", thread)
            if data["status"] == status:
                return dict(data)


@asynccontextmanager
async def heard(api: Api) -> AsyncIterator[Heard]:
    """Listen until the end of the block."""
    async with api.stream("GET", LIST) as events:
        found = Heard(events)
        assert await found.next() == ("ready", {})
        yield found


async def searched(api: Api, thread: str) -> Any:
    [row] = await api.post("/threads/search", {"ids": [thread], "select": list(changes.FIELDS)})
    active = [
        run["run_id"]
        for status in ("running", "pending")
        for run in (await api.http.get(f"/threads/{thread}/runs?status={status}")).json()
    ]
    return {**row, "active": active}


@pytest.mark.parametrize("config", ["langgraph.auth.json", "tenants"])
async def test_user_hears_what_a_search_shows_and_nothing_of_others(
    tmp_path: Path, config: str
) -> None:
    """Also across two processes, on Postgres: the listeners are not where the changes are made."""
    path = GRAPHS / config
    if config == "tenants":
        path = tmp_path / "langgraph.json"
        graphs = {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "interrupt", "sleeper")}
        auth = {"path": f"{GRAPHS}/tenants.py:auth"}
        path.write_text(
            json.dumps({"graphs": graphs, "auth": auth, "sql": {"tenant_key": "owner"}})
        )
    with served(tmp_path, path) as here:
        async with AsyncExitStack() as stack:
            there = await another(stack, tmp_path, path, here)
            ada, bob = [
                await stack.enter_async_context(client(here, **{"x-user": n})) for n in "ab"
            ]
            hears_ada, hears_bob = [
                await stack.enter_async_context(
                    heard(await stack.enter_async_context(client(there, **{"x-user": n})))
                )
                for n in "ab"
            ]
            thread = await ada.thread(title="Plan")
            _, created = await hears_ada.next()
            assert created == await searched(ada, thread)
            run = await ada.run(thread, "interrupt", {"value": 1})
            asked = await hears_ada.until(thread, "interrupted")
            assert await ada.ended(thread, run) == "success"
            assert asked["interrupts"]
            assert asked == await searched(ada, thread)
            copied = (await ada.post(f"/threads/{thread}/copy"))["thread_id"]
            assert await heard_of(hears_ada, copied)
            slow = await ada.run(copied, "sleeper", {"seconds": 60})
            assert (await hears_ada.until(copied, "busy"))["active"] == [slow]
            await ada.post(f"/threads/{copied}/runs/{slow}/cancel?wait=true")
            while (await hears_ada.next())[1]["status"] == "busy":
                pass
            assert (
                await ada.http.patch(f"/threads/{thread}", json={"metadata": {"title": "B"}})
            ).is_success
            assert (await heard_of(hears_ada, thread))["metadata"]["title"] == "B"
            assert (await ada.http.delete(f"/threads/{thread}")).is_success
            assert await hears_ada.next() == ("deleted", {"thread_id": thread})
            # The first that Bob hears is of his own.
            his = await bob.thread()
            assert (await hears_bob.next())[1] == await searched(bob, his)


async def another(stack: AsyncExitStack, folder: Path, path: Path, here: Running) -> Running:
    """Start a second server on the database, if more than one may use it."""
    from tests.support import databases

    if not databases.url(folder / "data.db").startswith("postgresql"):
        return here
    return await asyncio.to_thread(stack.enter_context, served(folder, path))


async def heard_of(hears: Heard, thread: str) -> dict[str, Any]:
    """Return the next event of a thread."""
    while True:
        _, data = await hears.next()
        if data["thread_id"] == thread:
            return dict(data)


async def test_stream_has_heartbeats_and_ends_at_once_when_the_server_stops(tmp_path: Path) -> None:
    """Although a run goes on. The client listens at another process."""
    with served(tmp_path, SHUTDOWN_GRACE_SECONDS="60") as server:
        async with client(server) as api, api.http.stream("GET", LIST) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.aiter_lines()
            async with asyncio.timeout(PATIENCE):
                while await anext(lines) != ": heartbeat":
                    pass
                thread = await api.thread()
                run = await api.run(thread, "sleeper", {"seconds": 3})
                await api.until(thread, run, "running")
                server.process.send_signal(signal.SIGTERM)
                rest = [line async for line in lines]
            said = [json.loads(line[6:]) for line in rest if line.startswith("data: ")]
            assert [line for line in rest if line.startswith("event: ")][-1] == "event: resume"
            assert (said[-1]["path"], said[-1]["last_event_id"]) == (LIST, None)
            assert await asyncio.to_thread(server.process.wait, PATIENCE) in (0, -signal.SIGTERM)


class Hidden:
    """Hide threads from searches."""

    def before_thread_search(self, tx: Any, search: dict[str, Any]) -> None:
        search["without"]["status"] = "archived"


async def told(stream: AsyncIterator[changes.Item]) -> changes.Item:
    """Return the next item that names a thread.

    The process may connect to the others only now: then a client reads its list again.
    """
    while (item := await anext(stream)) == changes.OVERFLOW:
        pass
    return item


async def test_thread_that_searches_no_longer_show_is_told_as_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = uuid4()
    with runtime.serving():
        async with runtime.opened(tmp_path / "x.db"):
            runtime.set_hooks(monkeypatch, Hidden())
            stream = listening.listen(await listening.listed())
            assert await anext(stream) == changes.READY
            await rows(Threads.put(None, thread, metadata={"n": 1}, if_exists="raise"))
            assert json.loads((await told(stream))[1])["metadata"] == {"n": 1}
            await rows(Threads.patch(None, thread, metadata={"status": "archived"}))
            gone = b'{"thread_id":"%s"}' % str(thread).encode()
            assert await told(stream) == (b"deleted", gone)
            await rows(Threads.patch(None, thread, metadata={"status": "open"}))
            assert json.loads((await told(stream))[1])["metadata"]["status"] == "open"
            await stream.aclose()


@dataclass
class OfTenant:
    """A view of a tenant without filter."""

    scope: Scope
    is_limited: bool = False

    def shows(self, metadata: Any, status: str | None = None) -> bool:
        return True


class Reads:
    """A database that has no threads, and counts reads."""

    def __init__(self) -> None:
        self.count = 0

    async def read(self, fn: Any) -> tuple[dict[UUID, Any], dict[UUID, Any]]:
        self.count += 1
        return {}, {}


async def test_burst_of_a_tenant_delays_no_other_and_overflows() -> None:
    database, wires = Reads(), Wires()
    wires.loop = asyncio.get_running_loop()
    told = Changes(database, wires)  # type: ignore[arg-type]  # reads only
    with (
        told.listen(OfTenant(TenantScope("a"))) as first,
        told.listen(OfTenant(TenantScope("b"))) as other,
    ):
        for _ in range(changes.MOST_PENDING):
            told.note(StreamKey("a", str(uuid4())), {})
        told.note(StreamKey("b", str(uuid4())), {})
        task = asyncio.create_task(told.run())
        async with asyncio.timeout(PATIENCE):
            assert len(await other.take()) == 1
            # Of more than ten pages.
            assert database.count <= 2
            for _ in range(changes.MOST_PENDING + 1):
                told.note(StreamKey("a", str(uuid4())), {})
            while changes.OVERFLOW not in await first.take():
                pass
        task.cancel()
        await asyncio.wait([task])


async def test_client_that_lost_messages_or_reads_too_slowly_reads_the_list_again() -> None:
    told = Changes(Database, Wires())  # type: ignore[arg-type]  # nothing is read
    with told.listen(OfTenant(EVERYTHING)) as listener:
        told.look_again()
        assert await listener.take() == [changes.OVERFLOW]
        thread = uuid4()
        for text in (b"old", b"new"):
            listener.put(thread, (b"thread", text))
        assert await listener.take() == [(b"thread", b"new")]
        for _ in range(changes.MOST_WAITING + 1):
            listener.put(uuid4(), (b"thread", b""))
        assert await listener.take() == [changes.OVERFLOW]
