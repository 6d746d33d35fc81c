"""Streams of runs and threads: what goes wrong elsewhere, and does not here."""

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

from langgraph_runtime_sql.events import bus
from langgraph_runtime_sql.events.event import START
from tests.support import served
from tests.support.processes import Running
from tests.support.served import Api, Event
from tests.support.streams import of_run, of_thread

pytestmark = pytest.mark.usefixtures("each_database")

TOKENS = 150


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served.served(tmp_path_factory.mktemp("streams")) as started:
        yield started


@pytest.fixture(scope="module")
def isolated(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that gives each run an event loop in a thread of its own."""
    folder = tmp_path_factory.mktemp("isolated")
    with served.served(folder, BG_JOB_ISOLATED_LOOPS="true") as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with served.client(server) as client:
        yield client


async def _counting(api: Api, thread: str, n: int = TOKENS, delay: float = 0.0) -> str:
    """A run that streams `n` numbered events and can be resumed."""
    asked = {"mode": "custom", "n": n, "delay": delay}
    kept = {"stream_mode": ["custom"], "stream_resumable": True}
    return await api.run(thread, "tokens", asked, **kept)


def _numbers(events: list[Event]) -> list[int]:
    return [json.loads(event.data)["i"] for event in events if event.name == "custom"]


def _place(event: Event) -> tuple[int, ...]:
    assert event.id is not None
    return tuple(map(int, event.id.split("-")))


async def _follow_in_pieces(api: Api, path: str, rng: random.Random) -> list[Event]:
    """A client that leaves in the middle and comes back, again and again."""
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


async def test_resuming_neither_loses_nor_repeats_however_many_resume(
    api: Api, rng: random.Random
) -> None:
    """A client that comes back gets an event twice, or never the one sent in between."""
    thread = await api.thread()
    run = await _counting(api, thread, delay=0.005)
    path = f"/threads/{thread}/runs/{run}/stream"
    async with asyncio.timeout(60):
        clients = [_follow_in_pieces(api, path, random.Random(rng.random())) for _ in range(8)]
        for events in await asyncio.gather(*clients):
            assert _numbers(events) == list(range(TOKENS))
            assert [event.name for event in events].count("metadata") == 1


async def test_every_event_has_a_number_of_its_own_and_they_grow(api: Api) -> None:
    """Events of the same millisecond share their id, and resuming after it loses them."""
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
async def test_the_beginning_of_a_stream_has_several_names(api: Api, beginning: str) -> None:
    """Ids are compared as text, so the names that clients have for the beginning miss events."""
    thread = await api.thread()
    run = await _counting(api, thread, n=12)
    assert await api.ended(thread, run) == "success"
    path = f"/threads/{thread}/runs/{run}/stream"
    events = await api.events("GET", path, headers={"Last-Event-ID": beginning})
    assert _numbers(events) == list(range(12))


async def test_a_bare_millisecond_is_a_place_in_the_stream(api: Api) -> None:
    """An id without a sequence number is not understood, or compared as text."""
    thread = await api.thread()
    run = await _counting(api, thread, n=12, delay=0.01)
    assert await api.ended(thread, run) == "success"
    path = f"/threads/{thread}/runs/{run}/stream"
    events = await api.events("GET", path, headers={"Last-Event-ID": "-"})
    moment = _place(events[6])[0]
    rest = await api.events("GET", path, headers={"Last-Event-ID": str(moment)})
    assert rest == [event for event in events if _place(event)[0] >= moment]


@pytest.mark.parametrize("query", ["", "?stream_mode=", "?stream_mode=[]"])
async def test_an_empty_list_of_modes_means_every_mode(api: Api, query: str) -> None:
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


async def test_a_thread_is_followed_through_runs_that_are_made_later(api: Api) -> None:
    """Who follows a thread sees only the runs that were there when he came."""
    thread = str(uuid4())
    async with api.stream("GET", f"/threads/{thread}/stream") as stream:
        # Not even the thread is there yet.
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


async def test_resuming_a_thread_replays_all_its_runs_in_order(
    api: Api, rng: random.Random
) -> None:
    """Coming back to a thread repeats events, or misses those of its other runs."""
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


async def test_followers_of_a_thread_hear_of_state_that_is_written(api: Api) -> None:
    """State that a client writes is not told to those who follow the thread."""
    thread = await api.thread(graph_id="echo")
    path = f"/threads/{thread}/stream?stream_modes=state_update"
    async with api.stream("GET", path) as stream:
        await api.post(f"/threads/{thread}/state", {"values": {"value": "written"}})
        event = await _next(stream, "state_update")
    told = json.loads(event.data)
    assert told["thread_id"] == thread
    assert told["state"]["values"]["value"] == "written"
    # Those who come later and ask for what they missed get it too.
    async with api.stream("GET", path, headers={"Last-Event-ID": "-"}) as stream:
        assert await _next(stream, "state_update") == event


async def test_a_state_update_is_kept_before_anyone_can_miss_it() -> None:
    """An update is sent to those who listen before it is kept for those who come just then."""
    local = bus.LocalBus()
    sent = local.publish_state(of_thread("thread"), "state_update", b"{}")
    assert local.subscribe_thread(of_thread("thread"), START).waiting() == [sent]


async def test_an_event_that_is_not_kept_survives_the_resumption() -> None:
    """The error a run ends with is lost when it comes while its follower is resuming."""
    local = bus.LocalBus()
    local.publish(of_run("run", "thread"), "values", b"1", resumable=True)
    live = local.subscribe_run(of_run("run", "thread"))
    local.publish(of_run("run", "thread"), "values", b"2", resumable=True)
    local.publish(of_run("run", "thread"), "error", b"3")
    resumed = local.subscribe_run(of_run("run", "thread"), START, live)
    assert [event.data for event in resumed.waiting()] == [b"1", b"2", b"3"]


# --- the ends of streams


async def test_joining_a_finished_run_ends_at_once(api: Api) -> None:
    """Joining a run that has ended takes half a second."""
    thread = await api.thread()
    run = await api.run(thread, "echo", {"value": 4})
    assert await api.ended(thread, run) == "success"
    took = 1.0
    async with asyncio.timeout(60):
        # However long it takes on a busy machine, once it is shorter than such a wait.
        while took > 0.4:
            start = time.perf_counter()
            assert (await api.get(f"/threads/{thread}/runs/{run}/join"))["value"] == 4
            assert await api.events("GET", f"/threads/{thread}/runs/{run}/stream") == []
            took = time.perf_counter() - start


async def test_joining_a_run_that_does_not_exist_is_one_error(api: Api) -> None:
    """Joining a run that is not there waits for ever."""
    thread = await api.thread()
    [event] = await api.events("GET", f"/threads/{thread}/runs/{uuid4()}/stream")
    assert event.name == "error"
    assert "404" in event.data
    other = await api.thread()
    run = await api.run(other, "echo", {"value": 4})
    assert await api.ended(other, run) == "success"
    # A run is found through its own thread only.
    [event] = await api.events("GET", f"/threads/{thread}/runs/{run}/stream")
    assert event.name == "error"


async def test_who_waits_for_a_run_hears_that_its_thread_is_deleted(api: Api) -> None:
    """The answer to who waits for a run is cut off when its thread is deleted."""
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


async def test_a_failed_run_tells_its_error_to_every_follower(api: Api) -> None:
    """The error of a run is not told to those who follow it by a list of modes, or resume."""
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


async def test_many_followers_of_one_run_get_the_same(api: Api, tmp_path: Path) -> None:
    """Of several followers of a run, each gets a part of its events."""
    thread, end = await api.thread(), tmp_path / "end"
    await api.run(thread, "sleeper", {"seconds": 120, "until": str(end)})
    asked = {"mode": "custom", "n": 1}
    run = await api.run(thread, "tokens", asked, multitask_strategy="enqueue")
    path = f"/threads/{thread}/runs/{run}/stream"
    async with AsyncExitStack() as stack, asyncio.timeout(served.PATIENCE):
        opened = [await stack.enter_async_context(api.stream("GET", path)) for _ in range(20)]
        # Its turn comes when all of them are there.
        end.touch()
        streams = [[event async for event in stream] for stream in opened]
    assert streams == [streams[0]] * 20
    assert streams[0][0].name == "metadata"


@pytest.mark.parametrize("way", ["stream", "join"])
async def test_a_run_ends_with_its_client_if_it_is_to(api: Api, way: str) -> None:
    """A run whose client has left goes on, although it was to be cancelled with him."""
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


async def test_a_run_outlives_its_client_if_nothing_else_is_said(api: Api) -> None:
    """A run stops, or is never told to have ended, when its only client leaves."""
    thread = await api.thread()
    body = {"assistant_id": "tokens", "input": {"mode": "custom", "n": 20, "delay": 0.02}}
    async with api.stream("POST", f"/threads/{thread}/runs/stream", body) as stream:
        run = json.loads((await anext(stream)).data)["run_id"]
    assert await api.ended(thread, run) == "success"
    assert (await api.get(f"/threads/{thread}"))["values"]["sent"] == 20


# --- loops of their own


async def test_runs_on_loops_of_their_own_deliver_at_once(
    isolated: Running, tmp_path: Path
) -> None:
    """With a loop for each run, events lie around until somebody looks every half second."""
    async with served.client(isolated) as api:
        gate = tmp_path / "gate"
        asked = {"count": 20, "gate": str(gate)}
        body = {"assistant_id": "steps", "input": asked, "stream_mode": ["updates"]}
        path, steps = f"/threads/{await api.thread()}/runs/stream", 0
        # Less than twenty times what passes between two looks where nobody is woken.
        async with (
            asyncio.timeout(10 * bus.RECHECK_SECONDS),
            api.stream("POST", path, body) as told,
        ):
            async for event in told:
                # A step does not end before that of the one before has been heard of.
                steps += "step" in json.loads(event.data)
                gate.write_text(str(steps + 1))
        assert steps == 20


async def test_runs_on_loops_of_their_own_do_everything_else(isolated: Running) -> None:
    """With a loop for each run, the store, the checkpoints or a cancellation fail."""
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
