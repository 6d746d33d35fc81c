"""Streams of protocol 2 on the log: cheap opens, cursors, and what commands answer."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.support import databases
from tests.support.processes import GRAPHS, Running, environment, free_port, running, threadhold
from tests.support.served import PATIENCE, Api, client, served

pytestmark = pytest.mark.usefixtures("each_database")

CHANNELS = ["values", "messages", "lifecycle", "input", "checkpoints"]
Wire = dict[str, Any]


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@pytest.fixture(scope="module")
def servers(each_database: str, folder: Path) -> Iterator[list[Running]]:
    """Start a server; on Postgres a second one without a Redis, which executes nothing."""
    with ExitStack() as stack:
        found = [stack.enter_context(served(folder))]
        if each_database == "postgresql":
            found.append(stack.enter_context(served(folder, N_JOBS_PER_WORKER="0")))
        yield found


@pytest.fixture
async def api(servers: list[Running]) -> AsyncIterator[Api]:
    async with client(servers[0]) as found:
        yield found


@pytest.fixture
async def other(servers: list[Running]) -> AsyncIterator[Api]:
    """Give a client of another process, if there is one."""
    async with client(servers[-1]) as found:
        yield found


async def command(api: Api, thread: str, method: str, **params: Any) -> Wire:
    body = {"id": 1, "method": method, "params": params}
    answer = await api.post(f"/threads/{thread}/commands", body)
    assert answer["type"] == "success", answer
    return dict(answer)


def ended(count: int = 1) -> Callable[[Wire], bool]:
    """Return a test that is true at the end of the given number of runs."""
    left = count

    def is_over(event: Wire) -> bool:
        nonlocal left
        data = event.get("params", {}).get("data", {})
        ends = ("completed", "failed", "interrupted")
        is_root = event.get("method") == "lifecycle" and not event["params"]["namespace"]
        left -= is_root and data["event"] in ends
        return left == 0

    return is_over


async def read(
    api: Api,
    thread: str,
    until: Callable[[Wire], bool],
    headers: dict[str, str] | None = None,
    **body: Any,
) -> list[Wire]:
    """Return the events of a stream until one for which `until` is true."""
    found: list[Wire] = []
    asked = {"channels": CHANNELS, **body}
    path = f"/threads/{thread}/stream/events"
    async with asyncio.timeout(PATIENCE), api.stream("POST", path, asked, headers) as events:
        async for event in events:
            found.append(json.loads(event.data))
            if until(found[-1]):
                break
    return found


async def read_socket(server: Running, thread: str, query: str = "", **params: Any) -> list[Wire]:
    """Return the events of a WebSocket until the end of a run."""
    url = server.url.replace("http", "ws", 1) + f"/threads/{thread}/stream/events{query}"
    found, is_over = [], ended()
    asked = {"id": 1, "method": "subscription.subscribe"}
    async with asyncio.timeout(PATIENCE), connect(url, open_timeout=PATIENCE) as socket:
        await socket.send(json.dumps({**asked, "params": {"channels": CHANNELS, **params}}))
        async for line in socket:
            event = json.loads(line)
            if event["type"] == "event":
                found.append(event)
                if is_over(event):
                    break
    return found


async def talked(api: Api, runs: int = 1, n: int = 3) -> tuple[str, list[Wire]]:
    """Return a thread with ended runs, and all its events."""
    thread = await api.thread()
    for _ in range(runs):
        await talk(api, thread, n=n)
    return thread, await read(api, thread, ended(runs), since=0)


async def talk(api: Api, thread: str, **more: Any) -> Wire:
    message = {"type": "human", "content": "hi"}
    answer = await command(
        api, thread, "run.start", assistant_id="tokens", input={"messages": [message], **more}
    )
    assert await api.ended(thread, answer["result"]["run_id"]) == "success"
    return answer


def end_long_ago(folder: Path, thread: str) -> None:
    """Let all runs of a thread have ended before any client could wait for them."""
    databases.execute(
        folder / "data.db",
        "UPDATE runs SET updated_at = ? WHERE thread_id = ?",
        *(databases.date(time.time() - 3600), thread),
    )


async def test_numbers_are_places_in_the_log(api: Api, other: Api, servers: list[Running]) -> None:
    thread, whole = await talked(api, runs=2)
    numbers = [event["seq"] for event in whole]
    assert numbers == sorted(set(numbers))
    assert await read(other, thread, ended(2), since=0) == _same(whole)
    assert await read_socket(servers[-1], thread, since=0) == _same(whole[: len(whole) // 2])


def _same(events: list[Wire]) -> list[Any]:
    """Return events that equal others whose times differ, because the protocol adds them."""
    return [_Same(event) for event in events]


class _Same(dict[str, Any]):
    def __eq__(self, other: object) -> bool:
        return _timeless(self) == _timeless(other)

    __hash__ = None


def _timeless(event: Any) -> Wire:
    return {**event, "params": {**event["params"], "timestamp": 0}}


async def test_each_cursor_continues_just_after_its_event(
    api: Api, other: Api, servers: list[Running]
) -> None:
    thread, whole = await talked(api, runs=2)
    for at in range(0, len(whole) - 1, 3):
        last, rest = whole[at], _same(whole[at + 1 :])
        left = 2 if at < len(whole) // 2 - 1 else 1
        by_seq = {"Last-Event-ID": str(last["seq"])}
        assert await read(other, thread, ended(left), since=last["seq"]) == rest
        assert await read(other, thread, ended(left), since_event_id=last["event_id"]) == rest
        assert await read(other, thread, ended(left), headers=by_seq) == rest
    last = whole[-4]
    rest = _same(whole[-3:])
    assert await read_socket(servers[-1], thread, since=last["seq"]) == rest
    assert await read_socket(servers[-1], thread, since_event_id=last["event_id"]) == rest
    assert await read_socket(servers[-1], thread, f"?since={last['seq']}") == rest


async def test_a_stream_begins_with_what_is_not_over(api: Api, other: Api, folder: Path) -> None:
    thread, old = await talked(api, runs=3)
    end_long_ago(folder, thread)
    events: list[Wire] = []
    path = f"/threads/{thread}/stream/events"
    async with other.stream("POST", path, {"channels": CHANNELS}) as stream:
        started = await talk(api, thread, n=2)
        is_over = ended()
        async with asyncio.timeout(PATIENCE):
            async for event in stream:
                events.append(json.loads(event.data))
                if is_over(events[-1]):
                    break
    barrier = started["meta"]["applied_through_seq"]
    assert old[-1]["seq"] <= barrier < events[0]["seq"]
    assert not {event["event_id"] for event in old} & {event["event_id"] for event in events}
    assert events[0]["params"]["data"]["event"] == "running"


async def test_a_client_that_was_away_for_a_moment_gets_the_end_of_its_run(api: Api) -> None:
    thread, whole = await talked(api)
    assert await read(api, thread, ended()) == _same(whole)


async def test_answered_interrupts_are_not_asked_again(api: Api, folder: Path) -> None:
    thread = await api.thread()
    await command(api, thread, "run.start", assistant_id="interrupt", input={"questions": ["q"]})
    asked = await read(api, thread, ended())
    [request] = [event for event in asked if event["method"] == "input.requested"]
    await _status(api, thread, "interrupted")
    end_long_ago(folder, thread)
    again = await read(api, thread, lambda event: event["method"] == "input.requested")
    assert again == _same([request])
    answered = {"interrupt_id": request["params"]["data"]["interrupt_id"], "response": "yes"}
    meta = (await command(api, thread, "input.respond", namespace=[], **answered))["meta"]
    assert meta["applied_through_seq"] >= request["seq"]
    await _status(api, thread, "idle")
    later = await read(api, thread, lambda e: e["params"]["data"].get("event") == "completed")
    assert [event for event in later if event["method"] == "input.requested"] == []


async def test_commands_do_not_wait_for_a_run_that_starts_later(api: Api) -> None:
    """Each waited five seconds for a question, which only a run that is executed can ask."""
    thread = await api.thread()
    await api.run(thread, "echo", {"value": 1}, after_seconds=3600)
    began = time.monotonic()
    for _ in range(4):
        await command(api, thread, "run.start", assistant_id="echo", input={"value": 2})
        answer = {"interrupt_id": "x", "namespace": [], "response": "yes"}
        body = {"id": 1, "method": "input.respond", "params": answer}
        refused = await api.post(f"/threads/{thread}/commands", body)
        assert refused["error"] == "no_such_interrupt"
    assert time.monotonic() - began < 4 * 5


async def test_answer_that_comes_before_its_run_has_ended_is_taken(api: Api) -> None:
    """A client has the question from the stream before the thread has it."""
    thread = await api.thread()
    question = asyncio.create_task(
        read(api, thread, lambda event: event["method"] == "input.requested")
    )
    await command(api, thread, "run.start", assistant_id="interrupt", input={"questions": ["q"]})
    asked = (await question)[-1]["params"]["data"]["interrupt_id"]
    answer = await command(
        api, thread, "input.respond", namespace=[], interrupt_id=asked, response="yes"
    )
    assert answer["type"] == "success"


async def _status(api: Api, thread: str, status: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await api.get(f"/threads/{thread}"))["status"] != status:
            await asyncio.sleep(0.02)


async def test_values_follow_their_checkpoint(api: Api) -> None:
    thread, whole = await talked(api)
    pairs = [
        (before["params"]["data"], event["params"]["data"])
        for before, event in pairwise(whole)
        if event["method"] == "values" and before["method"] == "checkpoints"
    ]
    assert [len(values["messages"]) for _, values in pairs] == [1, 2]
    state = await api.get(f"/threads/{thread}/state")
    last = pairs[-1][0]
    assert last["id"] == state["checkpoint"]["checkpoint_id"]
    assert last["parent_id"] == state["parent_checkpoint"]["checkpoint_id"] == pairs[0][0]["id"]


async def test_custom_events_are_in_their_channel(api: Api) -> None:
    thread = await api.thread()
    started = await command(
        api, thread, "run.start", assistant_id="tokens", input={"n": 2, "mode": "custom"}
    )
    assert await api.ended(thread, started["result"]["run_id"]) == "success"
    asked = {"since": 0, "channels": ["custom", "lifecycle"]}
    whole = await read(api, thread, ended(), **asked)
    told = [event["params"]["data"] for event in whole if event["method"] == "custom"]
    assert told == [{"payload": {"token": f"{i} ", "i": i}} for i in range(2)]


async def test_deleted_events_are_reported_once_and_the_stream_goes_on(
    api: Api, folder: Path
) -> None:
    thread, whole = await talked(api, runs=3)
    second = next(i for i, event in enumerate(whole) if ended()(event)) + 1
    third = whole[2 * second]
    databases.execute(
        folder / "data.db",
        "UPDATE event_segments SET events = NULL WHERE thread_id = ? AND last < ?",
        *(thread, third["seq"] >> 22),
    )
    rest = await read(api, thread, ended(), since=whole[2]["seq"])
    gap = rest.pop(0)
    assert (gap["type"], gap["error"], gap["since"]) == ("error", "resume_gap", whole[2]["seq"])
    assert rest == _same(whole[2 * second :])
    assert await read(api, thread, ended(), since=third["seq"]) == _same(whole[2 * second + 1 :])
    now = await read(api, thread, ended())
    assert {event["type"] for event in now} == {"event"}


@pytest.mark.parametrize(
    "cursor",
    [{"since": -1}, {"since": True}, {"since": 2**53}, {"since": "1"}, {"since_event_id": "x"}],
    ids=json.dumps,
)
async def test_invalid_cursors_are_refused(api: Api, cursor: Wire) -> None:
    path = f"/threads/{uuid4()}/stream/events"
    answer = await api.http.post(path, json={"channels": CHANNELS, **cursor})
    assert answer.status_code == 400
    assert "event" in answer.json()["detail"]


async def test_a_socket_refuses_an_invalid_cursor(servers: list[Running]) -> None:
    url = servers[0].url.replace("http", "ws", 1) + f"/threads/{uuid4()}/stream/events"
    async with asyncio.timeout(PATIENCE):
        async with connect(f"{url}?since=x", open_timeout=PATIENCE) as socket:
            assert json.loads(await socket.recv())["error"] == "invalid_argument"
        async with connect(url, open_timeout=PATIENCE) as socket:
            params = {"channels": CHANNELS, "since": -1}
            asked = {"id": 1, "method": "subscription.subscribe", "params": params}
            await socket.send(json.dumps(asked))
            assert json.loads(await socket.recv())["error"] == "invalid_argument"


async def test_cursors_hold_after_a_kill(tmp_path: Path) -> None:
    port = free_port()
    command_line = threadhold("serve", "--config", GRAPHS / "langgraph.json", "--port", str(port))
    command_line += ["--database-url", databases.url(tmp_path / "data.db")]
    env = environment()
    with running(command_line, port, tmp_path, env) as server:
        async with client(server) as api:
            thread = await api.thread()
            message = {"type": "human", "content": "hi"}
            # The run does not end before the server is killed.
            gate = tmp_path / "gate"
            gate.write_text("10")
            value = {"messages": [message], "n": 40, "delay": 0.05, "gate": str(gate)}
            await command(api, thread, "run.start", assistant_id="tokens", input=value)
            seen = await read(api, thread, lambda event: "5 " in json.dumps(event))
            # A client may have events for which the disk has not been waited.
            while _stored(tmp_path, thread) < seen[-1]["seq"] >> 22:
                await asyncio.sleep(0.01)
            server.process.kill()
            server.process.wait()
    gate.write_text("40")
    with running(command_line, port, tmp_path, env) as server:
        async with client(server) as api:
            rest = await read(api, thread, ended(), since=seen[-1]["seq"])
            whole = await read(api, thread, ended(), since=0)
    assert [*seen, *rest] == _same(whole)
    data = [event["params"]["data"] for event in rest]
    [started] = [each for each in data if each.get("attempt") == 2]
    assert started["event"] == "running"
    assert [each.get("code") for each in data if each.get("event") == "error"] == [
        "attempt_superseded"
    ]
    assert rest[-1]["params"]["data"]["event"] == "completed"


def _stored(folder: Path, thread: str) -> int:
    """Return the number of the thread's last stored event."""
    statement = "SELECT max(last) FROM event_segments WHERE thread_id = ?"
    [(number,)] = databases.execute(folder / "data.db", statement, thread)
    return int(number or 0)


async def test_a_stream_without_events_stays_open(api: Api, folder: Path) -> None:
    thread, _ = await talked(api)
    end_long_ago(folder, thread)
    path = f"/threads/{thread}/stream/events"
    async with api.stream("POST", path, {"channels": CHANNELS}) as stream:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(stream)
    with pytest.raises(httpx.HTTPStatusError):
        (await api.http.post(path, json={"channels": []})).raise_for_status()


async def test_socket_of_an_invalid_thread_is_refused_in_one_message(
    servers: list[Running],
) -> None:
    url = servers[0].url.replace("http", "ws", 1)
    path = f"{url}/threads/nope/stream/events"
    async with asyncio.timeout(PATIENCE), connect(path, open_timeout=PATIENCE) as socket:
        told = json.loads(await socket.recv())
        await socket.wait_closed()
    assert (told["type"], told["error"], socket.close_code) == ("error", "invalid_argument", 1008)
    assert "Protocol WebSocket error" not in servers[0].log.read_text()
