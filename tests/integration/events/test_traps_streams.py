"""Faults of similar servers with streams of runs and threads. Each docstring states the fault."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from langgraph_runtime_sql.events import wires
from tests.support import served
from tests.support.processes import Running
from tests.support.served import Api, Event

pytestmark = pytest.mark.usefixtures("each_database")

TOKENS = 150


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served.served(tmp_path_factory.mktemp("streams")) as started:
        yield started


@pytest.fixture(scope="module")
def isolated(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that runs each run in an event loop and a thread of its own."""
    folder = tmp_path_factory.mktemp("isolated")
    with served.served(folder, BG_JOB_ISOLATED_LOOPS="true") as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with served.client(server) as client:
        yield client


async def _counting(api: Api, thread: str, n: int = TOKENS, delay: float = 0.0) -> str:
    """Start a resumable run that streams `n` numbered events."""
    asked = {"mode": "custom", "n": n, "delay": delay}
    kept = {"stream_mode": ["custom"], "stream_resumable": True}
    return await api.run(thread, "tokens", asked, **kept)


def _numbers(events: list[Event]) -> list[int]:
    return [json.loads(event.data)["i"] for event in events if event.name == "custom"]


def _place(event: Event) -> tuple[int, ...]:
    assert event.id is not None
    return tuple(map(int, event.id.split("-")))


async def _follow_in_pieces(api: Api, path: str, rng: random.Random) -> list[Event]:
    """Follow a stream as a client that disconnects and resumes repeatedly."""
    seen: list[Event] = []
    last = "-"
    while True:
        stop = rng.randrange(1, 30)
        async with api.stream("GET", path, headers={"Last-Event-ID": last}) as stream:
            async for event in stream:
                seen.append(event)
                last = event.id or last
                stop -= 1
                if stop == 0:
                    break
            else:
                return seen


# --- resuming


async def test_resuming_clients_neither_lose_nor_repeat_events(
    api: Api, rng: random.Random
) -> None:
    """A resuming client gets an event twice, or misses the one sent in between."""
    thread = await api.thread()
    run = await _counting(api, thread, delay=0.005)
    path = f"/threads/{thread}/runs/{run}/stream"
    async with asyncio.timeout(60):
        clients = [_follow_in_pieces(api, path, random.Random(rng.random())) for _ in range(8)]
        for events in await asyncio.gather(*clients):
            assert _numbers(events) == list(range(TOKENS))
            assert [event.name for event in events].count("metadata") == 1


async def test_event_ids_are_unique_and_increasing(api: Api) -> None:
    """Events of the same millisecond share an id, and resuming after it loses events."""
    thread = await api.thread()
    run = await _counting(api, thread, n=500)
    path = f"/threads/{thread}/runs/{run}/stream"
    events = await api.events("GET", path, headers={"Last-Event-ID": "-1"})
    places = [_place(event) for event in events]
    assert len(events) == 501
    assert places == sorted(set(places))
    for index in (0, 1, 250, 499):
        rest = await api.events("GET", path, headers={"Last-Event-ID": str(events[index].id)})
        assert rest == events[index + 1 :]


@pytest.mark.parametrize("beginning", ["-", "-1", "0", "0-0"])
async def test_every_name_of_the_beginning_replays_the_whole_stream(
    api: Api, beginning: str
) -> None:
    """Ids are compared as text, so the names that clients use for the beginning miss events."""
    thread = await api.thread()
    run = await _counting(api, thread, n=12)
    assert await api.ended(thread, run) == "success"
    path = f"/threads/{thread}/runs/{run}/stream"
    events = await api.events("GET", path, headers={"Last-Event-ID": beginning})
    assert _numbers(events) == list(range(12))


async def test_event_id_without_sequence_number_resumes_at_its_millisecond(api: Api) -> None:
    """An id without a sequence number is refused, or compared as text."""
    thread = await api.thread()
    run = await _counting(api, thread, n=12, delay=0.01)
    assert await api.ended(thread, run) == "success"
    path = f"/threads/{thread}/runs/{run}/stream"
    events = await api.events("GET", path, headers={"Last-Event-ID": "-"})
    moment = _place(events[6])[0]
    rest = await api.events("GET", path, headers={"Last-Event-ID": str(moment)})
    assert rest == [event for event in events if _place(event)[0] >= moment]


@pytest.mark.parametrize("query", ["", "?stream_mode=", "?stream_mode=[]"])
async def test_empty_list_of_stream_modes_means_every_mode(api: Api, query: str) -> None:
    """A client that names no mode gets no events."""
    thread = await api.thread()
    run = await _counting(api, thread, n=3)
    path = f"/threads/{thread}/runs/{run}/stream{query}"
    events = await api.events("GET", path, headers={"Last-Event-ID": "-"})
    assert [event.name for event in events] == ["metadata", "custom", "custom", "custom"]


# --- threads


async def _next(stream: AsyncIterator[Event], name: str) -> Event:
    async with asyncio.timeout(served.PATIENCE):
        async for event in stream:
            if event.name == name:
                return event
    raise AssertionError(f"the stream ended without {name}")


async def test_thread_stream_includes_runs_created_later(api: Api) -> None:
    """A subscriber of a thread sees only the runs that existed when it subscribed."""
    thread = str(uuid4())
    async with api.stream("GET", f"/threads/{thread}/stream") as stream:
        # The thread does not exist yet.
        await api.post("/threads", {"thread_id": thread})
        for _ in range(3):
            run = await api.run(thread, "tokens", {"mode": "custom", "n": 3}, stream_mode="custom")
            seen = []
            async with asyncio.timeout(served.PATIENCE):
                async for event in stream:
                    seen.append(event)
                    if event.name == "metadata" and "status" in json.loads(event.data):
                        break
            assert json.loads(seen[0].data) == {"run_id": run, "attempt": 1}
            assert _numbers(seen) == [0, 1, 2]
            assert json.loads(seen[-1].data) == {"status": "run_done", "run_id": run}


async def test_resumed_thread_stream_replays_all_runs_in_order(
    api: Api, rng: random.Random
) -> None:
    """A resumed thread stream repeats events, or misses those of other runs."""
    thread = await api.thread()
    runs = [await _counting(api, thread, n=20, delay=0.003)]
    for _ in range(2):
        asked = {"mode": "custom", "n": 20, "delay": 0.003}
        kept = {"stream_mode": ["custom"], "stream_resumable": True}
        runs.append(await api.run(thread, "tokens", asked, multitask_strategy="enqueue", **kept))

    async def follow() -> list[Event]:
        seen: list[Event] = []
        last, ended = "-", 0
        while ended < 3:
            stop = rng.randrange(1, 15)
            headers = {"Last-Event-ID": last}
            async with api.stream("GET", f"/threads/{thread}/stream", headers=headers) as stream:
                async for event in stream:
                    seen.append(event)
                    last = str(event.id)
                    stop -= 1
                    ended += "run_done" in event.data
                    if stop == 0 or ended == 3:
                        break
        return seen

    async with asyncio.timeout(60):
        for events in await asyncio.gather(*(follow() for _ in range(4))):
            assert _numbers(events) == list(range(20)) * 3
            places = [_place(event) for event in events]
            assert places == sorted(set(places))
            done = [json.loads(e.data)["run_id"] for e in events if "run_done" in e.data]
            assert done == runs


async def test_thread_stream_includes_state_updates(api: Api) -> None:
    """Subscribers of a thread get no event for a state that a client writes."""
    thread = await api.thread(graph_id="echo")
    path = f"/threads/{thread}/stream?stream_modes=state_update"
    async with api.stream("GET", path) as stream:
        await api.post(f"/threads/{thread}/state", {"values": {"value": "written"}})
        event = await _next(stream, "state_update")
    told = json.loads(event.data)
    assert told["thread_id"] == thread
    assert told["state"]["values"]["value"] == "written"
    # A subscriber that resumes from the beginning gets it too.
    async with api.stream("GET", path, headers={"Last-Event-ID": "-"}) as stream:
        assert await _next(stream, "state_update") == event


# --- the ends of streams


async def test_joining_a_finished_run_returns_at_once(api: Api) -> None:
    """Joining a run that has ended takes half a second."""
    thread = await api.thread()
    run = await api.run(thread, "echo", {"value": 4})
    assert await api.ended(thread, run) == "success"
    took = 1.0
    async with asyncio.timeout(60):
        # A busy machine may need several attempts until one is shorter than such a wait.
        while took > 0.4:
            start = time.perf_counter()
            assert (await api.get(f"/threads/{thread}/runs/{run}/join"))["value"] == 4
            assert await api.events("GET", f"/threads/{thread}/runs/{run}/stream") == []
            took = time.perf_counter() - start


async def test_streaming_a_missing_run_sends_one_error(api: Api) -> None:
    """Joining a missing run waits forever."""
    thread = await api.thread()
    [event] = await api.events("GET", f"/threads/{thread}/runs/{uuid4()}/stream")
    assert event.name == "error"
    assert "404" in event.data
    other = await api.thread()
    run = await api.run(other, "echo", {"value": 4})
    assert await api.ended(other, run) == "success"
    # A run can be read only through its own thread.
    [event] = await api.events("GET", f"/threads/{thread}/runs/{run}/stream")
    assert event.name == "error"


async def test_deleting_the_thread_ends_joins_and_streams_with_an_error(api: Api) -> None:
    """A client that waits for a run gets a truncated answer when the thread is deleted."""
    thread = await api.thread()
    await api.run(thread, "sleeper", {"seconds": 120})
    run = await api.run(thread, "echo", {"value": 1}, multitask_strategy="enqueue")
    path = f"/threads/{thread}/runs/{run}"
    async with (
        asyncio.timeout(served.PATIENCE),
        api.http.stream("GET", f"{path}/join") as joining,
        api.stream("GET", f"{path}/stream") as stream,
    ):
        assert (await api.http.delete(f"/threads/{thread}")).is_success
        answer = json.loads(await joining.aread())
        [event] = [event async for event in stream]
    assert answer["__error__"] == json.loads(event.data)
    assert "Run not found" in event.data


async def test_error_of_a_failed_run_is_sent_in_every_stream_mode(api: Api) -> None:
    """Subscribers with a list of stream modes, or with resuming, get no error event."""
    thread = await api.thread()
    body = {
        "assistant_id": "failing",
        "input": {"message": "as asked"},
        "stream_mode": ["values"],
        "stream_resumable": True,
    }
    events = await api.events("POST", f"/threads/{thread}/runs/stream", body)
    assert events[-1].name == "error"
    assert json.loads(events[-1].data)["message"] == "as asked"


async def test_all_followers_of_a_run_get_the_same_events(api: Api, tmp_path: Path) -> None:
    """Each of several subscribers of a run gets only a part of its events."""
    thread, end = await api.thread(), tmp_path / "end"
    await api.run(thread, "sleeper", {"seconds": 120, "until": str(end)})
    asked = {"mode": "custom", "n": 1}
    run = await api.run(thread, "tokens", asked, multitask_strategy="enqueue")
    path = f"/threads/{thread}/runs/{run}/stream"
    async with AsyncExitStack() as stack, asyncio.timeout(served.PATIENCE):
        opened = [await stack.enter_async_context(api.stream("GET", path)) for _ in range(20)]
        # The run starts when all clients have subscribed.
        end.touch()
        streams = [[event async for event in stream] for stream in opened]
    assert streams == [streams[0]] * 20
    assert streams[0][0].name == "metadata"


@pytest.mark.parametrize("way", ["stream", "join"])
async def test_run_with_cancel_on_disconnect_ends_with_its_client(api: Api, way: str) -> None:
    """A run continues after its client disconnects, although it asked for a cancellation."""
    thread = await api.thread()
    body = {"assistant_id": "sleeper", "input": {"seconds": 120}, "on_disconnect": "cancel"}
    if way == "stream":
        async with api.stream("POST", f"/threads/{thread}/runs/stream", body) as stream:
            run = json.loads((await anext(stream)).data)["run_id"]
    else:
        run = await api.run(thread, "sleeper", {"seconds": 120})
        await api.until(thread, run, "running")
        path = f"/threads/{thread}/runs/{run}/stream?cancel_on_disconnect=true"
        async with api.stream("GET", path):
            assert await api.status(thread, run) == "running"
    assert await api.ended(thread, run) == "interrupted"


async def test_run_continues_after_its_client_disconnects_by_default(api: Api) -> None:
    """A run stops, or its end is never recorded, when its only client disconnects."""
    thread = await api.thread()
    body = {"assistant_id": "tokens", "input": {"mode": "custom", "n": 20, "delay": 0.02}}
    async with api.stream("POST", f"/threads/{thread}/runs/stream", body) as stream:
        run = json.loads((await anext(stream)).data)["run_id"]
    assert await api.ended(thread, run) == "success"
    assert (await api.get(f"/threads/{thread}"))["values"]["sent"] == 20


# --- isolated loops


async def test_isolated_loops_deliver_events_at_once(isolated: Running, tmp_path: Path) -> None:
    """With isolated loops, events wait for a poll every half second."""
    async with served.client(isolated) as api:
        gate = tmp_path / "gate"
        asked = {"count": 20, "gate": str(gate)}
        body = {"assistant_id": "steps", "input": asked, "stream_mode": ["updates"]}
        path, steps = f"/threads/{await api.thread()}/runs/stream", 0
        # Less than twenty times the interval between two polls.
        async with (
            asyncio.timeout(10 * wires.ALONE_RECHECK_SECONDS),
            api.stream("POST", path, body) as told,
        ):
            async for event in told:
                # A step ends only after the client has received the one before.
                steps += "step" in json.loads(event.data)
                gate.write_text(str(steps + 1))
        assert steps == 20


async def test_isolated_loops_support_store_checkpoints_and_cancellation(isolated: Running) -> None:
    """With isolated loops, the store, checkpoints or a cancellation fail."""
    async with served.client(isolated) as api:
        thread = await api.thread()
        item = {"op": "put", "key": "k", "value": {"a": 1}}
        run = await api.run(thread, "memory", item)
        assert await api.ended(thread, run) == "success"
        run = await api.run(thread, "memory", {"op": "get", "key": "k"})
        assert await api.ended(thread, run) == "success"
        assert (await api.get(f"/threads/{thread}"))["values"]["result"] == {"a": 1}
        other = await api.thread()
        run = await api.run(other, "interrupt", {"questions": ["a"]})
        assert await api.ended(other, run) == "success"
        run = await api.run(other, "interrupt", command={"resume": "yes"})
        assert await api.ended(other, run) == "success"
        assert (await api.get(f"/threads/{other}"))["values"]["summary"] == "yes"
        run = await api.run(thread, "sleeper", {"seconds": 120})
        await api.until(thread, run, "running")
        await api.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
        assert await api.status(thread, run) == "interrupted"
        bodies: list[Any] = [{"assistant_id": "echo", "input": {"value": i}} for i in range(30)]
        answers = await asyncio.gather(*(api.post("/runs/wait", body) for body in bodies))
        assert [answer["value"] for answer in answers] == list(range(30))
