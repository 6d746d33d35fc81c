"""Postgres gives too few connections: some make a server slow, none at all is an outage like any other."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support import databases
from tests.support.processes import GRAPHS, Running, environment, free_port, running, threadhold
from tests.support.served import Api, Event, client, served

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

# One connection owns the database, and two carry messages between processes.
OURS = 3
STEPS = 6
WAITS = 12


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with served(tmp_path, LOG_LEVEL="INFO") as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with client(server) as made:
        yield made


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    made = tmp_path / "gate"
    made.write_text("2")
    return made


def asked(gate: Path) -> dict[str, Any]:
    """Return the body of a run that takes two steps, and the others when the gate lets it."""
    body = {"assistant_id": "steps", "input": {"count": STEPS, "gate": str(gate)}}
    return {**body, "stream_mode": ["values"], "stream_resumable": True}


async def has_steps(api: Api, thread: str, count: int) -> None:
    """Wait until the state of a thread has steps."""
    while True:
        values = (await api.get(f"/threads/{thread}/state"))["values"]
        if len(values.get("done", [])) >= count:
            return
        await asyncio.sleep(0.05)


async def run_of(api: Api, thread: str) -> str:
    [run] = await api.get(f"/threads/{thread}/runs")
    return str(run["run_id"])


async def refused(api: Api) -> None:
    """Wait until the server says that it cannot use Postgres."""
    while (await api.http.get("/health")).json().get("reason") != "unreachable":
        await asyncio.sleep(0.05)


def outages(server: Running) -> list[dict[str, Any]]:
    """Return the lines of the log about outages."""
    found = [json.loads(line) for line in server.log.read_text().splitlines()]
    return [each for each in found if str(each.get("action")).startswith("database_outage")]


class Followers:
    """The clients of a run: a wait, and each kind of stream."""

    def __init__(self, server: Running, api: Api, thread: str, body: dict[str, Any]) -> None:
        self._server, self._api, self._thread = server, api, thread
        start = asyncio.create_task
        path, events = f"/threads/{thread}/stream", {"channels": ["values", "lifecycle"]}
        self.wait = start(api.post(f"/threads/{thread}/runs/wait", body))
        self.thread = start(self.read("GET", path))
        self.v2 = start(self.read("POST", f"{path}/events", events))
        self.socket = start(self.read_socket(f"{path}/events", events))
        self.run: asyncio.Task[list[Event]] | None = None

    async def begun(self) -> str:
        """Wait until the run has taken its first steps, follow its own stream, and return its id."""
        await has_steps(self._api, self._thread, 2)
        run = await run_of(self._api, self._thread)
        path = f"/threads/{self._thread}/runs/{run}/stream"
        has_begun = asyncio.Event()
        self.run = asyncio.create_task(self.read("GET", path, after="-1", has_begun=has_begun))
        await has_begun.wait()
        return run

    def streams(self) -> list[asyncio.Task[list[Event]]]:
        """Return what reads the streams of server-sent events, after `begun`."""
        assert self.run is not None
        return [self.run, self.thread, self.v2]

    async def read(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        after: str | None = None,
        has_begun: asyncio.Event | None = None,
    ) -> list[Event]:
        """Return the events of a stream, whose connection may break after `resume`."""
        found: list[Event] = []
        headers = {} if after is None else {"Last-Event-ID": after}
        try:
            async with self._api.stream(method, path, body, headers) as events:
                async for event in events:
                    found.append(event)
                    if has_begun is not None:
                        has_begun.set()
                    if "run_done" in event.data or '"completed"' in event.data:
                        return found
        except httpx.RemoteProtocolError:
            assert found[-1].name == "resume"
        return found

    async def read_socket(self, path: str, params: dict[str, Any]) -> list[Any]:
        """Return the messages of a WebSocket."""
        found: list[Any] = []
        async with connect(self._server.url.replace("http", "ws", 1) + path) as socket:
            command = {"id": 1, "method": "subscription.subscribe", "params": params}
            await socket.send(json.dumps(command))
            try:
                async for message in socket:
                    found.append(json.loads(message))
                    if '"completed"' in str(message):
                        break
            except ConnectionClosed:
                assert socket.close_code == 1012
        return found


async def test_a_server_with_few_connections_goes_on(
    tmp_path: Path, server: Running, api: Api, gate: Path
) -> None:
    threads = [await api.thread() for _ in range(WAITS)]
    async with asyncio.TaskGroup() as group:
        waits = [
            group.create_task(api.post(f"/threads/{each}/runs/wait", asked(gate)))
            for each in threads
        ]
        for each in threads:
            await has_steps(api, each, 1)
        with databases.server().limited(tmp_path / "data.db", OURS + 2):
            gate.write_text(str(STEPS))
            answers = await asyncio.gather(*waits)
            assert (await api.http.get("/health")).is_success
    assert [each.get("done") for each in answers] == [[*range(STEPS)]] * WAITS, answers
    assert outages(server) == []


async def test_waits_and_streams_go_on_after_a_short_outage(
    tmp_path: Path, server: Running, api: Api, gate: Path
) -> None:
    followers = Followers(server, api, await api.thread(), asked(gate))
    await followers.begun()
    with databases.server().limited(tmp_path / "data.db", 0):
        await refused(api)
    gate.write_text(str(STEPS))
    assert (await followers.wait)["done"] == [*range(STEPS)]
    for stream in followers.streams():
        found = await stream
        assert not {"error", "resume"} & {each.name for each in found}, found
        assert any(f"{[*range(STEPS)]}".replace(" ", "") in each.data for each in found)
    assert not {"error", "resume"} & {each["type"] for each in await followers.socket}


async def test_waits_end_and_streams_are_handed_over_if_postgres_is_frozen(
    tmp_path: Path, gate: Path
) -> None:
    data = databases.folder()
    url, _ = await asyncio.to_thread(databases.start, data)
    port = free_port()
    command = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", str(port))
    command += ["--database-url", url]
    with running(command, port, tmp_path, environment()) as server:
        async with client(server) as api:
            thread = await api.thread()
            followers = Followers(server, api, thread, asked(gate))
            run = await followers.begun()
            with databases.frozen(data):
                error = (await followers.wait)["__error__"]
                found = [await each for each in followers.streams()]
                messages = await followers.socket
            gate.write_text(str(STEPS))
            answer = await api.get(f"/threads/{thread}/runs/{run}/join")
    assert (error["error"], error["run_id"]) == ("DatabaseOutage", run)
    assert [each[-1].name for each in found] == ["resume"] * 3
    assert messages[-1]["type"] == "resume"
    assert answer["done"] == [*range(STEPS)]


async def test_a_lock_of_another_program_is_no_failure_of_a_run(
    tmp_path: Path, server: Running, api: Api, gate: Path
) -> None:
    thread = await api.thread()
    followers = Followers(server, api, thread, asked(gate))
    run = await followers.begun()
    with psycopg.connect(databases.url(tmp_path / "data.db")) as other:
        other.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        error = (await followers.wait)["__error__"]
        assert followers.run is not None
        found = await followers.run
    assert (error["error"], error["run_id"]) == ("DatabaseOverloaded", run)
    assert found[-1].name == "resume"
    assert "error" not in {each.name for each in found}
    gate.write_text(str(STEPS))
    assert (await api.get(f"/threads/{thread}/runs/{run}/join"))["done"] == [*range(STEPS)]
    left = (followers.thread, followers.v2, followers.socket)
    for each in left:
        each.cancel()
    # Until they are over, their connections are open.
    await asyncio.gather(*left, return_exceptions=True)


async def test_waits_end_and_streams_are_handed_over_in_a_long_outage(
    tmp_path: Path, server: Running, api: Api, gate: Path
) -> None:
    thread = await api.thread()
    followers = Followers(server, api, thread, asked(gate))
    run = await followers.begun()
    with databases.server().limited(tmp_path / "data.db", 0):
        began = time.monotonic()
        error = (await followers.wait)["__error__"]
        assert (error["error"], error["run_id"]) == ("DatabaseOutage", run)
        assert "Postgres cannot be reached" in error["message"]
        streams = [await each for each in followers.streams()]
        messages = await followers.socket
        assert 25 < time.monotonic() - began < 45
        answer = await api.http.post(f"/threads/{thread}/runs/wait", json=asked(gate))
        assert (answer.status_code, answer.json()["database"]) == (503, "unreachable")
        # The run goes on by itself.
        gate.write_text(str(STEPS))
    path = f"/threads/{thread}/stream"
    paths = [f"/threads/{thread}/runs/{run}/stream", path, f"{path}/events"]
    for found, where in zip(streams, paths, strict=True):
        *before, last = found
        resume = json.loads(last.data)
        assert (last.name, resume["path"]) == ("resume", where)
        assert "Postgres cannot be reached" in resume["reason"]
        assert resume["last_event_id"] == last.id == (before[-1].id if before else None)
        assert "error" not in {each.name for each in before}
    *_, last_message = messages
    assert (last_message["type"], last_message["path"]) == ("resume", paths[2])
    *_, last = streams[0]
    rest = await api.events("GET", paths[0], headers={"Last-Event-ID": str(last.id)})
    done = [json.loads(each.data)["done"] for each in rest if each.name == "values"]
    assert done == [[*range(count)] for count in range(3, STEPS + 1)]
    found_lines = outages(server)
    assert [each["action"] for each in found_lines] == ["database_outage", "database_outage_over"]
    assert "too many connections" in found_lines[0]["reason"]
