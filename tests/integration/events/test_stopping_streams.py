"""SIGTERM while clients stream: streams go on, and a client that is cut off continues elsewhere."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx
import pytest
from langgraph_sdk import get_client
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.support import databases, served
from tests.support.javascript import JAVASCRIPT
from tests.support.processes import (
    GRAPHS,
    Running,
    environment,
    fork_server,
    free_port,
    stop,
    threadhold,
)
from tests.support.served import client, events_of

pytestmark = [pytest.mark.usefixtures("each_database", "packages"), pytest.mark.timeout(300)]

PATIENCE = 90.0
# Longer than the half second after which all streams used to end.
LONG: dict[str, Any] = {"n": 40, "delay": 0.05, "mode": "custom"}


class Started:
    """Start servers on one database, and stop the remaining ones at the end."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    async def __call__(self, grace: str, port: int | None = None) -> Running:
        port = port or free_port()
        log = self._folder / f"{port}.log"
        log.touch()
        command = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", str(port))
        env = {
            "DATABASE_URL": databases.url(self._folder / "data.db"),
            "SHUTDOWN_GRACE_SECONDS": grace,
        }
        process = fork_server().start(command, str(self._folder), str(log), environment(**env))
        self._stack.callback(stop, process)
        server = Running(f"http://127.0.0.1:{port}", process, log)
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as http:
            while True:
                try:
                    if (await http.get(f"{server.url}/ok")).is_success:
                        return server
                except httpx.TransportError:
                    await asyncio.sleep(0.05)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Started]:
    with ExitStack() as stack:
        yield Started(tmp_path, stack)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Let runs stream ten tokens, so that they do not end before their server does."""
    made = tmp_path / "gate"
    made.write_text("10")
    return made


async def ended(server: Running) -> int:
    return await asyncio.to_thread(server.process.wait, PATIENCE)


def numbers(events: list[served.Event]) -> list[int]:
    return [json.loads(each.data)["i"] for each in events if each.name == "custom"]


async def read(server: Running, asked: dict[str, Any], go: asyncio.Event) -> list[served.Event]:
    """Stream a new run, set `go` after its third token, and return the events until the end."""
    found: list[served.Event] = []
    async with client(server) as api:
        body = {"assistant_id": "tokens", "input": asked, "stream_mode": ["custom"]}
        try:
            async with api.stream("POST", "/runs/stream", body) as events:
                async for event in events:
                    found.append(event)
                    if event.name == "custom" and len(found) > 3:
                        go.set()
        except httpx.RemoteProtocolError:
            assert found[-1].name == "resume"
    return found


async def test_streams_go_on_until_their_run_ends(start: Started) -> None:
    server = await start("60")
    go = asyncio.Event()
    async with client(server) as api, asyncio.TaskGroup() as group:
        idle = await api.thread()
        run = group.create_task(read(server, LONG, go))
        thread = group.create_task(api.events("GET", f"/threads/{idle}/stream"))
        events = group.create_task(
            api.events("POST", f"/threads/{idle}/stream/events", {"channels": ["lifecycle"]})
        )
        await go.wait()
        server.process.send_signal(signal.SIGTERM)
    assert numbers(run.result()) == [*range(LONG["n"])]
    # Streams of a thread without a run end at once, and say how to resume.
    for each in (thread, events):
        assert [event.name for event in each.result()] == ["resume"]
        assert json.loads(each.result()[0].data)["path"].startswith(f"/threads/{idle}/stream")
    assert await ended(server) in (0, -signal.SIGTERM)
    assert '"level":"error"' not in server.log.read_text().replace(" ", "")


async def follow_socket(server: Running, thread: str, **more: Any) -> tuple[list[Any], int | None]:
    """Run the graph over a WebSocket, or follow it with a cursor. Stop the server on the way.

    Returns:
        The messages after the third one of the run, and the close code.
    """
    url = server.url.replace("http", "ws", 1) + f"/threads/{thread}/stream/events"
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE), connect(url, open_timeout=PATIENCE) as socket:

        async def send(number: int, method: str, **params: Any) -> None:
            await socket.send(json.dumps({"id": number, "method": method, "params": params}))

        since = more.pop("since", None)
        cursor = {} if since is None else {"since": since}
        await send(1, "subscription.subscribe", channels=["messages", "lifecycle"], **cursor)
        if since is None:
            await send(2, "run.start", assistant_id="tokens", input={**more, "messages": []})
        try:
            is_told = since is not None
            async for line in socket:
                found.append(json.loads(line))
                # Once: a second signal would end the process at once.
                if not is_told and len(_tokens(found)) == 3:
                    is_told = True
                    server.process.send_signal(signal.SIGTERM)
                data = found[-1].get("params", {}).get("data", {})
                if since is not None and "completed" in str(data.get("event")):
                    return found, None
        except ConnectionClosed:
            pass
        return found, socket.close_code


def _tokens(messages: list[Any]) -> list[int]:
    data = [each["params"]["data"] for each in messages if each.get("method") == "messages"]
    return [int(each["delta"]["text"]) for each in data if each["event"] == "content-block-delta"]


async def test_a_socket_goes_on_until_the_run_of_its_thread_ends(start: Started) -> None:
    server = await start("60")
    async with client(server) as api:
        thread = await api.thread()
    found, code = await follow_socket(server, thread, n=40, delay=0.05)
    assert _tokens(found) == [*range(40)]
    *before, last = found
    assert code == 1012
    assert (last["type"], last["path"]) == ("resume", f"/threads/{thread}/stream/events")
    assert last["last_event_id"] == str(max(each.get("seq", 0) for each in before))
    assert await ended(server) in (0, -signal.SIGTERM)
    assert '"level":"error"' not in server.log.read_text().replace(" ", "")


async def test_a_socket_ends_after_the_grace_period_and_continues_elsewhere(
    start: Started, gate: Path
) -> None:
    server = await start("1")
    async with client(server) as api:
        thread = await api.thread()
    found, code = await follow_socket(server, thread, n=100, delay=0.05, gate=str(gate))
    last = found[-1]
    assert (code, last["type"]) == (1012, "resume")
    before = _tokens(found)
    assert before == [*range(len(before))]
    assert await ended(server) in (0, -signal.SIGTERM)
    gate.write_text("100")
    following = await start("60")
    after, _ = await follow_socket(following, thread, since=int(last["last_event_id"]))
    # What the first attempt still streamed, and all of the second one: nothing is lost.
    tokens = _tokens(after)
    rest = len(tokens) - 100
    assert tokens == [*range(len(before), len(before) + rest), *range(100)]


async def test_streams_end_after_the_grace_period_and_say_how_to_resume(
    start: Started, gate: Path
) -> None:
    """The next process continues each run; a client gets every token of each attempt once."""
    server = await start("1")
    asked = {**LONG, "n": 120, "gate": str(gate)}
    async with client(server) as api:
        thread = await api.thread()
        body = {
            "assistant_id": "tokens",
            "input": asked,
            "stream_mode": ["custom"],
            "stream_resumable": True,
            # The server's own stop is no disconnect of the client.
            "on_disconnect": "cancel",
        }
        first: list[served.Event] = []
        with pytest.raises(httpx.RemoteProtocolError):
            async with api.stream("POST", f"/threads/{thread}/runs/stream", body) as events:
                async for event in events:
                    first.append(event)
                    if len(first) == 5:
                        server.process.send_signal(signal.SIGTERM)
    *before, last = first
    resume = json.loads(last.data)
    assert last.name == resume["type"] == "resume"
    assert resume["last_event_id"] == before[-1].id == last.id
    assert await ended(server) in (0, -signal.SIGTERM)
    log = server.log.read_text()
    assert "StreamHandedOver" not in log and "Traceback" not in log

    gate.write_text("120")
    following = await start("60")
    async with client(following) as api:
        after = await api.events(
            "GET", resume["path"], headers={"Last-Event-ID": resume["last_event_id"]}
        )
    begun = numbers(before)
    assert begun == [*range(len(begun))]
    # What the first attempt streamed before it returned to the queue, and then the second one.
    again = next(at for at, each in enumerate(after) if each.name == "metadata")
    # A stop does not count as an attempt.
    assert json.loads(after[again].data)["attempt"] == 1
    rest = numbers(after[:again])
    assert rest == [*range(len(begun), len(begun) + len(rest))]
    assert numbers(after[again:]) == [*range(asked["n"])]
    assert not {"error", "resume"} & {each.name for each in after}


Begun = Callable[[], None]


def ignore() -> None:
    """Do nothing when a client gets a token."""


async def over_http(url: str, asked: dict[str, Any] = LONG, begun: Begun = ignore) -> list[int]:
    """Stream a run and reconnect as the last event says."""
    found: list[served.Event] = []
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        made = await _retried(http, "POST", "/threads", json={})
        path = f"/threads/{made.json()['thread_id']}/runs/stream"
        body = {"assistant_id": "tokens", "input": asked, "stream_mode": ["custom"]}
        method, options = "POST", cast("dict[str, Any]", {"json": body})
        while True:
            try:
                async with http.stream(method, path, **options) as answer:
                    assert answer.is_success
                    async for event in events_of(answer):
                        found.append(event)
                        if event.name == "custom":
                            begun()
                return numbers(found)
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
            except httpx.RemoteProtocolError:
                assert found and found[-1].name == "resume"
                told = json.loads(found[-1].data)
                method, path = "GET", told["path"]
                options = {"headers": {"Last-Event-ID": told["last_event_id"]}}


async def _retried(http: httpx.AsyncClient, method: str, path: str, **options: Any) -> Any:
    while True:
        try:
            return (await http.request(method, path, **options)).raise_for_status()
        except httpx.TransportError:
            await asyncio.sleep(0.05)


async def over_python(url: str, asked: dict[str, Any] = LONG, begun: Begun = ignore) -> list[int]:
    """Stream a run with the Python SDK, which reconnects by itself."""
    sdk = get_client(url=url)
    thread = (await sdk.threads.create())["thread_id"]
    stream = sdk.runs.stream(
        thread, "tokens", input=asked, stream_mode="custom", stream_resumable=True
    )
    found = []
    async for each in stream:
        found.append(each)
        if each.event == "custom":
            begun()
    assert not [each for each in found if each.event == "error"]
    await sdk.aclose()
    return [each.data["i"] for each in found if each.event == "custom"]


async def over_javascript(
    url: str, asked: dict[str, Any] = LONG, begun: Begun = ignore
) -> list[int]:
    """Stream a run with the JavaScript SDK, which reconnects by itself."""
    process = await asyncio.create_subprocess_exec(
        *("node", str(JAVASCRIPT / "stream.mjs"), url, "tokens", json.dumps(asked)),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    found = []
    async for line in process.stdout:
        found.append(json.loads(line))
        if found[-1]["event"] == "custom":
            begun()
    assert await process.wait() == 0
    assert not [each for each in found if each["event"] == "error"]
    return [each["data"]["i"] for each in found if each["event"] == "custom"]


async def over_socket(url: str, asked: dict[str, Any] = LONG, begun: Begun = ignore) -> list[int]:
    """Run and follow a thread over a WebSocket, and reconnect as the last message says."""
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        made = await _retried(http, "POST", "/threads", json={})
    path = f"/threads/{made.json()['thread_id']}/stream/events"
    given = {**asked, "messages": [], "mode": "messages"}
    subscribe: dict[str, Any] = {"channels": ["messages", "lifecycle"]}
    commands = [("run.start", {"assistant_id": "tokens", "input": given})]
    found: list[Any] = []
    while True:
        try:
            async with connect(url.replace("http", "ws", 1) + path) as socket:
                first = ("subscription.subscribe", subscribe)
                for number, (method, params) in enumerate([first, *commands]):
                    command = {"id": number, "method": method, "params": params}
                    await socket.send(json.dumps(command))
                async for line in socket:
                    found.append(json.loads(line))
                    assert found[-1]["type"] != "error"
                    if _tokens(found[-1:]):
                        begun()
                    if found[-1].get("id") == 1:
                        commands = []
                    event = found[-1].get("params", {}).get("data", {}).get("event")
                    if found[-1].get("method") == "lifecycle" and event == "completed":
                        return _tokens(found)
        except (OSError, InvalidHandshake):
            await asyncio.sleep(0.05)
        except ConnectionClosed:
            pass
        if found and found[-1]["type"] == "resume" and found[-1]["last_event_id"] is not None:
            subscribe["since"] = int(found[-1]["last_event_id"])


CLIENTS = (over_http, over_python, over_javascript, over_socket)


async def test_clients_continue_by_themselves_after_the_grace_period(
    start: Started, gate: Path
) -> None:
    server = await start("1")
    port = int(server.url.rpartition(":")[2])
    asked = {**LONG, "n": 100, "gate": str(gate)}
    # The SDK gives up after five attempts; a load balancer lets it wait for the next server.
    async with balanced([port]) as balancer, asyncio.TaskGroup() as group:
        begun = [asyncio.Event() for _ in CLIENTS]
        tasks = [
            group.create_task(one(balancer.url, asked, each.set))
            for one, each in zip(CLIENTS, begun, strict=True)
        ]
        async with asyncio.timeout(PATIENCE):
            for each in begun:
                await each.wait()
        server.process.send_signal(signal.SIGTERM)
        assert await ended(server) in (0, -signal.SIGTERM)
        gate.write_text("100")
        await start("60", port)
    for task in tasks:
        found = task.result()
        # What came of the first attempt, and all of the second one.
        before = len(found) - asked["n"]
        assert before > 0
        assert found == [*range(before), *range(asked["n"])]


@pytest.mark.only("postgresql")  # A SQLite file has one process.
async def test_a_rolling_restart_loses_and_repeats_nothing(start: Started) -> None:
    """Three processes behind a load balancer are replaced one by one under streaming load."""
    servers = [await start("30") for _ in range(3)]
    async with balanced([int(each.url.rpartition(":")[2]) for each in servers]) as balancer:
        done: list[list[int]] = []
        rolled = asyncio.Event()

        async def load(one: Any) -> None:
            while not rolled.is_set():
                done.append(await one(balancer.url))

        async with asyncio.TaskGroup() as group:
            for one in CLIENTS * 2:
                group.create_task(load(one))
            for at, server in enumerate(servers):
                seen = len(done)
                while len(done) == seen:
                    await asyncio.sleep(0.05)
                # The load balancer sends no new connections to a process that stops.
                balancer.ports.remove(int(server.url.rpartition(":")[2]))
                # The process has accepted the connections before this one.
                async with httpx.AsyncClient() as http:
                    assert (await http.get(f"{server.url}/ok", timeout=60)).status_code == 200
                server.process.send_signal(signal.SIGTERM)
                assert await ended(server) in (0, -signal.SIGTERM)
                servers[at] = new = await start("30")
                balancer.ports.append(int(new.url.rpartition(":")[2]))
            rolled.set()
    assert len(done) >= len(CLIENTS) * 2
    for each in done:
        assert each == [*range(LONG["n"])]


class Balancer(NamedTuple):
    """A load balancer of TCP connections.

    Attributes:
        ports: Ports of the servers; each new connection takes the next one.
    """

    url: str
    ports: list[int]


@asynccontextmanager
async def balanced(ports: list[int]) -> AsyncIterator[Balancer]:
    """Run a load balancer until the end of the block. It waits for a server that does not listen."""
    connections: set[asyncio.Task[Any]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        # What is in the buffers still goes out.
        writer.close()

    async def reach() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while True:
            ports.append(ports.pop(0))
            try:
                return await asyncio.open_connection("127.0.0.1", ports[-1])
            except OSError:
                await asyncio.sleep(0.05)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            far_reader, far_writer = await reach()
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        try:
            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        finally:
            connections.discard(task)
            for each in (writer, far_writer):
                each.transport.abort()

    port = free_port()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield Balancer(f"http://127.0.0.1:{port}", ports)
    finally:
        server.close()
        left = [*connections]
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
