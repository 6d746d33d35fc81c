"""Several processes on one Postgres, with and without Redis: each can serve every request."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.support import databases, served
from tests.support.processes import (
    GRAPHS,
    Running,
    environment,
    free_port,
    running,
    stop,
    threadhold,
)
from tests.support.redis import Valkey, started
from tests.support.served import PATIENCE, Api, Event, Json, client

pytestmark = pytest.mark.usefixtures("each_database")
ONLY = pytest.mark.only("postgresql")
V2_CHANNELS = ["values", "updates", "lifecycle"]


class Cluster(NamedTuple):
    """Processes that serve one database."""

    folder: Path
    valkey: Valkey
    servers: list[Running]


@pytest.fixture(scope="module")
def cluster(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start three servers: A and B work on runs, C only answers requests."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        valkey = stack.enter_context(started(tmp_path_factory.mktemp("valkey")))
        servers = [
            stack.enter_context(
                served.served(folder, redis_url=valkey.url, N_JOBS_PER_WORKER=slots)
            )
            for slots in ("4", "4", "0")
        ]
        yield Cluster(folder, valkey, servers)


@pytest.fixture
async def apis(cluster: Cluster) -> AsyncIterator[list[Api]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client(server)) for server in cluster.servers]


def values(events: list[Event]) -> list[object]:
    return [json.loads(event.data) for event in events if event.name == "values"]


@ONLY
async def test_run_can_be_created_streamed_and_cancelled_on_different_processes(
    apis: list[Api], tmp_path: Path
) -> None:
    a, b, c = apis
    thread = await a.thread()
    record = str(tmp_path / "record")
    run = await a.run(thread, "sleeper", {"seconds": 60, "record": record})
    async with (
        asyncio.timeout(PATIENCE),
        b.stream("GET", f"/threads/{thread}/runs/{run}/stream") as from_b,
        c.stream("GET", f"/threads/{thread}/stream") as of_thread,
    ):
        await served.lines(Path(record), 1)
        await c.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
        assert [event async for event in from_b if event.name == "error"] == []
        async for event in of_thread:
            if event.name == "metadata" and "run_done" in event.data:
                break
    assert await a.ended(thread, run) == "interrupted"
    assert await served.lines(Path(record), 2) == ["started", "cancelled"]


@ONLY
async def test_stream_resumes_on_any_process_without_gap_or_repeat(apis: list[Api]) -> None:
    a, b, c = apis
    thread = await a.thread()
    body = {
        "assistant_id": "steps",
        "input": {"count": 30, "delay": 0.02},
        "stream_mode": "values",
        "stream_resumable": True,
    }
    whole = await a.events("POST", f"/threads/{thread}/runs/stream", body)
    run = json.loads(whole[0].data)["run_id"]
    path = f"/threads/{thread}/runs/{run}/stream"
    for api in (a, b, c):
        for start in (0, 7, len(whole) - 2):
            headers = {"Last-Event-ID": str(whole[start].id)}
            assert await api.events("GET", path, headers=headers) == whole[start + 1 :]
        assert await api.events("GET", path, headers={"Last-Event-ID": "-1"}) == whole


@ONLY
async def test_stream_resumes_on_another_process_while_the_run_works(apis: list[Api]) -> None:
    a, b, c = apis
    thread = await a.thread()
    body = {
        "input": {"count": 40, "delay": 0.05},
        "stream_mode": "values",
        "stream_resumable": True,
    }
    run = await c.run(thread, "steps", **body)
    path = f"/threads/{thread}/runs/{run}/stream"
    seen: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        # Read a few events from each process in turn.
        for turn in range(12):
            last = {"Last-Event-ID": str(seen[-1].id) if seen else "-1"}
            async with (a, b, c)[turn % 3].stream("GET", path, headers=last) as events:
                async for event in events:
                    seen.append(event)
                    if len(seen) % 4 == 0:
                        break
        seen += await b.events("GET", path, headers={"Last-Event-ID": str(seen[-1].id)})
    whole = await a.events("GET", path, headers={"Last-Event-ID": "-1"})
    assert seen == whole
    done = [value["done"] for value in values(seen) if isinstance(value, dict)]
    assert done[-1] == list(range(40))
    assert len(done) == 42


@ONLY
async def test_results_and_token_streams_are_complete_on_every_process(
    apis: list[Api],
) -> None:
    async def use(api: Api, number: int) -> None:
        thread = await api.thread()
        answer = await api.post(
            f"/threads/{thread}/runs/wait", {"assistant_id": "echo", "input": {"value": number}}
        )
        assert answer["value"] == number
        stateless = await api.post(
            "/runs/wait", {"assistant_id": "echo", "input": {"value": -number}}
        )
        assert stateless["value"] == -number
        body = {"assistant_id": "steps", "input": {"count": 5}, "stream_mode": "updates"}
        events = await api.events("POST", f"/threads/{thread}/runs/stream", body)
        assert [json.loads(event.data)["step"] for event in events if "step" in event.data] == [
            {"done": [step]} for step in range(5)
        ]
        joined = await apis[number % 3].http.get(f"/threads/{thread}/runs")
        assert [run["status"] for run in joined.json()] == ["success", "success"]

    await asyncio.gather(*(use(apis[number % 3], number) for number in range(1, 25)))


@ONLY
async def test_stopped_server_hands_its_runs_to_other_processes(
    cluster: Cluster, apis: list[Api]
) -> None:
    a, b, _ = apis
    with served.served(
        cluster.folder,
        redis_url=cluster.valkey.url,
        N_JOBS_PER_WORKER="20",
        SHUTDOWN_GRACE_SECONDS="1",
    ) as leaving:
        async with client(leaving) as api:
            threads = [await api.thread() for _ in range(16)]
            made = [
                await api.run(thread, "steps", {"count": 40, "delay": 0.1}) for thread in threads
            ]
        leaving.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(leaving.process.wait, PATIENCE)
        for thread, run in zip(threads, made, strict=True):
            assert await b.ended(thread, run) == "success"
            state = await a.get(f"/threads/{thread}/state")
            assert state["values"]["done"] == list(range(40))


@ONLY
async def test_every_run_is_answered_although_redis_goes_away_and_returns(
    cluster: Cluster, apis: list[Api]
) -> None:
    a, b, c = apis

    async def use(api: Api, number: int) -> None:
        thread = await api.thread()
        answer = await api.post(
            f"/threads/{thread}/runs/wait",
            {"assistant_id": "steps", "input": {"count": 10, "delay": 0.05}},
        )
        assert answer["done"] == list(range(10)), answer

    async def health(redis: str) -> None:
        for api in (a, b, c):
            while (await api.get("/health"))["redis"] != redis:
                await asyncio.sleep(0.05)

    async def trouble() -> None:
        await asyncio.to_thread(cluster.valkey.flush)
        await asyncio.to_thread(cluster.valkey.stop)
        await asyncio.gather(*(use(api, 0) for api in (a, b, c)))
        await health("away")
        await asyncio.to_thread(cluster.valkey.start)

    async with asyncio.timeout(PATIENCE * 2):
        await asyncio.gather(trouble(), *(use((a, b, c)[n % 3], n) for n in range(9)))
        await asyncio.gather(*(use((a, b, c)[n % 3], n) for n in range(9)))
        await health("ok")
    for server in cluster.servers:
        said = server.log.read_text()
        assert "Traceback" not in said, said[said.index("Traceback") - 500 :][:3_000]
        # On a busy machine the connection may be lost once more.
        async with asyncio.timeout(PATIENCE):
            while said.count("Redis does not answer") != said.count("Redis answers again"):
                await asyncio.sleep(0.05)
                said = server.log.read_text()


async def v2(api: Api, thread: str, until: Callable[[Json], bool], **body: Any) -> list[Json]:
    """Return events of the v2 protocol up to the first for which `until` holds."""
    seen: list[Json] = []
    path, asked = f"/threads/{thread}/stream/events", {"channels": V2_CHANNELS, **body}
    async with asyncio.timeout(PATIENCE * 2), api.stream("POST", path, asked) as events:
        async for event in events:
            seen.append(json.loads(event.data))
            if until(seen[-1]):
                return seen
    raise AssertionError(f"the stream ended with {seen[-1:]}")


def is_over(event: Json) -> bool:
    if event["params"].get("namespace"):
        return False
    said = event["params"].get("data", {}).get("event") if event["method"] == "lifecycle" else None
    return said in ("completed", "failed", "interrupted")


async def v2_start(api: Api, thread: str, graph: str, asked: Json) -> str:
    params = {"assistant_id": graph, "input": asked}
    command = {"id": 1, "method": "run.start", "params": params}
    started = await api.post(f"/threads/{thread}/commands", command)
    assert started["type"] == "success", started
    return str(started["result"]["run_id"])


def essence(events: list[Json]) -> list[Json]:
    return [
        (event["seq"], event["event_id"], event["method"], event["params"].get("data"))
        for event in events
    ]


@ONLY
async def test_v2_stream_resumes_on_another_process(apis: list[Api]) -> None:
    thread, seen = str(uuid4()), []
    await v2_start(apis[0], thread, "steps", {"count": 20, "delay": 0.1})
    turn = 0
    async with asyncio.timeout(PATIENCE * 2):
        while not seen or not is_over(seen[-1]):
            turn += 1
            cursor = {"since": seen[-1]["seq"]} if seen else {}
            left = iter(range(6))
            seen += await v2(
                apis[turn % 3],
                thread,
                lambda event: is_over(event) or next(left, None) is None,  # noqa: B023
                **cursor,
            )
    places = [event["seq"] for event in seen]
    assert places == sorted(set(places))
    for api in apis:
        assert essence(await v2(api, thread, is_over)) == essence(seen)
    done = [e["params"]["data"].get("done", []) for e in seen if e["method"] == "values"]
    assert done[-1] == list(range(20))


@ONLY
async def test_v2_run_can_be_cancelled_on_another_process(apis: list[Api], tmp_path: Path) -> None:
    a, b, c = apis
    thread, record = str(uuid4()), str(tmp_path / "record")
    url = str(b.http.base_url).replace("http", "ws").rstrip("/")
    async with (
        asyncio.timeout(PATIENCE * 2),
        connect(f"{url}/threads/{thread}/stream/events", open_timeout=PATIENCE) as socket,
    ):
        channels = {"channels": V2_CHANNELS}
        subscribe = {"id": 1, "method": "subscription.subscribe", "params": channels}
        await socket.send(json.dumps(subscribe))
        run = await v2_start(a, thread, "sleeper", {"seconds": 600, "record": record})
        await served.lines(Path(record), 1)
        following = asyncio.create_task(v2(c, thread, is_over))
        await c.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
        said: Json = {}
        while said.get("type") != "event" or not is_over(said):
            said = json.loads(await socket.recv())
        assert is_over((await following)[-1])
    assert await a.ended(thread, run) == "interrupted"


@ONLY
async def test_invented_event_and_run_ids_are_handled(apis: list[Api]) -> None:
    a, b, c = apis
    thread, other = await a.thread(), await a.thread()
    run = await a.run(thread, "steps", {"count": 2}, stream_mode="values", stream_resumable=True)
    await a.ended(thread, run)
    body = {"assistant_id": "echo", "input": {"value": 1}, "stream_resumable": True}
    strange = await b.events("POST", f"/threads/{other}/runs/stream", body)
    path = f"/threads/{thread}/runs/{run}/stream"
    whole = await a.events("GET", path, headers={"Last-Event-ID": "-1"})
    assert values(whole)[-1]
    for event_id in ("*", "a-b", "1-2-3", "1 2", "+", "$", "9" * 100_000, "0x1-1", "%0a"):
        answer = await c.http.get(path, headers={"Last-Event-ID": event_id})
        assert answer.status_code in (400, 422, 431), (event_id[:20], answer.status_code)
    # An id before all events means the beginning, or is refused as unknown; one after all, the end.
    [*_, last] = [event for event in whole if event.id]
    assert await c.events("GET", path, headers={"Last-Event-ID": str(last.id)}) == []
    foreign = next(event.id for event in strange if event.id)
    for event_id in ("1-1", "0-0", "99999999999999-0", str(foreign)):
        events = await c.events("GET", path, headers={"Last-Event-ID": event_id})
        assert events in ([], whole) or events[0].name == "error", events
    # Every spelling of an id names the same run.
    written = (run.upper(), run.replace("-", ""), f"{{{run}}}")
    for each in written:
        answer = await b.http.get(f"/threads/{thread}/runs/{each}/join")
        assert answer.status_code in (200, 422)
        if answer.is_success:
            assert answer.json()["done"] == [0, 1]
    for bad in ("*", "x", "{x}", "%00", "%0a", "a" * 5_000):
        for where in (f"/threads/{bad}/runs/{run}/stream", f"/threads/{thread}/runs/{bad}/stream"):
            answer = await c.http.get(where)
            assert 400 <= answer.status_code < 500, (where[:40], answer.status_code)


@ONLY
async def test_redis_stores_nothing_and_its_channels_have_the_prefix(
    cluster: Cluster, apis: list[Api]
) -> None:
    async def use(api: Api, number: int) -> None:
        thread = await api.thread()
        body = {"assistant_id": "steps", "input": {"count": 3}, "stream_resumable": number % 2 == 0}
        await api.events("POST", f"/threads/{thread}/runs/stream", body)
        await api.post("/runs/wait", {"assistant_id": "echo", "input": {"value": 1}})
        begun = await v2_start(api, thread, "echo", {"value": 2})
        await v2(api, thread, is_over)
        assert await api.ended(thread, begun) == "success"
        run = await api.run(thread, "sleeper", {"seconds": 600})
        await api.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
        await api.post(f"/threads/{thread}/state", {"values": {"value": 3}})

    await asyncio.gather(*(use(apis[number % 3], number) for number in range(6)))
    assert await asyncio.to_thread(cluster.valkey.do, "KEYS", "*") == []
    channels = await asyncio.to_thread(cluster.valkey.do, "PUBSUB", "CHANNELS", "*")
    assert channels
    for each in channels:
        assert re.fullmatch(rb"threadhold:[0-9a-f]{12}:(all|events:.+)", each), each


@ONLY
async def test_metrics_show_whether_redis_is_connected(apis: list[Api]) -> None:
    for api in apis:
        said = (await api.http.get("/metrics")).text
        assert "\nthreadhold_redis_up 1.0\n" in said


@ONLY
@pytest.mark.timeout(900)
async def test_two_hundred_runs_end_although_redis_pauses(
    cluster: Cluster, apis: list[Api]
) -> None:
    """Redis does not answer for 8 seconds, while clients cancel many of the runs."""
    for api in apis:
        api.http.timeout = PATIENCE * 6
    asked = {"assistant_id": "steps", "input": {"count": 4, "delay": 0.02}}
    create = {"if_not_exists": "create"}

    async def wait(api: Api) -> None:
        answer = await api.post(f"/threads/{uuid4()}/runs/wait", {**asked, **create})
        assert answer["done"] == list(range(4)), answer

    async def wait_without_a_thread(api: Api) -> None:
        answer = await api.post("/runs/wait", asked)
        assert answer.get("done") == list(range(4)), answer

    async def stream(api: Api) -> None:
        body = {**asked, **create, "stream_mode": "values"}
        path = f"/threads/{uuid4()}/runs/stream"
        events = await api.events("POST", path, body, patience=PATIENCE * 6)
        assert values(events)[-1]["done"] == list(range(4)), events  # type: ignore[index]

    async def cancel(number: int, thread: str, run: str) -> None:
        here = apis[number % 3]
        answer = await here.http.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
        assert answer.is_success, answer.text
        assert await here.ended(thread, run) == "interrupted"

    async def pause() -> None:
        with cluster.valkey.paused():
            await asyncio.sleep(8)

    threads = [str(uuid4()) for _ in range(60)]
    made = await asyncio.gather(
        *(
            apis[number % 3].run(thread, "sleeper", {"seconds": 600}, **create)
            for number, thread in enumerate(threads)
        )
    )
    async with asyncio.timeout(PATIENCE * 6):
        clients = [
            use(apis[number % 3])
            for number, use in enumerate([wait, wait_without_a_thread, stream, wait] * 35)
        ]
        paused = asyncio.create_task(pause())
        cancels = [cancel(*each) for each in zip(range(60), threads, made, strict=True)]
        await asyncio.gather(*clients, *cancels, paused)
    for api in apis:
        counted = await api.post("/threads/count", {"status": "busy"})
        assert counted == 0


@ONLY
async def test_process_without_redis_works_beside_processes_with_it(
    cluster: Cluster, apis: list[Api]
) -> None:
    body = {"input": {"count": 20, "delay": 0.05}, "stream_mode": "values"}
    with served.served(cluster.folder, N_JOBS_PER_WORKER="0") as without:
        async with client(without) as api:
            assert "redis" not in await api.get("/health")
            for maker, follower in ((api, apis[2]), (apis[2], api)):
                thread = await maker.thread()
                run = await maker.run(thread, "steps", stream_resumable=True, **body)
                path = f"/threads/{thread}/runs/{run}/stream"
                events = await follower.events("GET", path, headers={"Last-Event-ID": "-1"})
                assert values(events)[-1]["done"] == list(range(20))  # type: ignore[index]


@ONLY
async def test_workers_without_redis_stream_each_others_runs(tmp_path: Path) -> None:
    """Both processes execute runs. Requests and runs meet on either of them."""
    port = free_port()
    env = environment(DATABASE_URL=databases.url(tmp_path / "data.db"), N_JOBS_PER_WORKER="1")
    config = GRAPHS / "langgraph.json"
    command = threadhold("serve", "--config", config, "--port", str(port), "--workers", "2")
    body = {"assistant_id": "steps", "input": {"count": 20, "delay": 0.05}}
    with running(command, port, tmp_path, env) as server:
        # The first of the two answers.
        async with asyncio.timeout(PATIENCE):
            while len(set(pids(server))) < 2:
                await asyncio.sleep(0.05)
        async with AsyncExitStack() as stack:
            made = [await stack.enter_async_context(client(server)) for _ in range(8)]
            threads = await asyncio.gather(*(api.thread() for api in made))

            async def stream(api: Api, thread: str) -> None:
                events = await api.events(
                    "POST", f"/threads/{thread}/runs/stream", {**body, "stream_mode": "updates"}
                )
                names = [event.name for event in events]
                assert "error" not in names, events
                steps = [json.loads(e.data)["step"] for e in events if "step" in e.data]
                assert steps == [{"done": [step]} for step in range(20)]

            await asyncio.gather(*map(stream, made, threads))
        claimed = {int(each) for each in re.findall(r"\(process (\d+)\)", server.log.read_text())}
        assert len(claimed) == 2


def pids(server: Running) -> list[int]:
    """Return the processes that have started to serve, in order."""
    return [int(found) for found in re.findall(r"\(process (\d+)\)", server.log.read_text())]


async def leaves_runs_to_others(cluster: Cluster, folder: Path, api: Api) -> None:
    """A draining server claims no run, although a request is still open.

    Args:
        folder: The folder of a database on which no other process works on runs.
        api: A client of a server that only answers.
    """
    thread, record = await api.thread(), folder / "record"
    with served.served(
        folder, redis_url=cluster.valkey.url, N_JOBS_PER_WORKER="4", SHUTDOWN_GRACE_SECONDS="2"
    ) as leaving:
        begun = await api.run(thread, "sleeper", {"seconds": 60, "record": str(record)})
        await served.lines(record, 1)
        path = f"/threads/{thread}/runs/{begun}/stream"
        async with client(leaving) as its, its.stream("GET", path):
            leaving.process.send_signal(signal.SIGTERM)
            # The server is draining once it refuses connections.
            async with asyncio.timeout(PATIENCE):
                with suppress(httpx.TransportError):
                    while True:
                        async with client(leaving) as another:
                            await another.http.get("/ok")
            other = await api.thread()
            late = await api.run(other, "echo", {"value": 1})
            await asyncio.to_thread(leaving.process.wait, PATIENCE)
    assert await api.status(other, late) == "pending"
    assert await api.status(thread, begun) == "pending"


async def beats(heart: Path) -> None:
    """Wait for two heartbeats."""
    async with asyncio.timeout(PATIENCE):
        while not heart.exists():
            await asyncio.sleep(0.05)
        first = heart.stat().st_mtime_ns
        while heart.stat().st_mtime_ns == first:
            await asyncio.sleep(0.05)


@ONLY
async def test_workers_on_one_port_serve_and_a_separate_worker_runs(
    cluster: Cluster, tmp_path: Path
) -> None:
    """On a database of their own, the servers only answer and the worker only runs."""
    port = free_port()
    url = databases.url(tmp_path / "data.db")
    env = environment(DATABASE_URL=url, REDIS_URL=cluster.valkey.url)
    project = ("--config", GRAPHS / "langgraph.json")
    heart = tmp_path / "heartbeat"
    several = threadhold("serve", *project, "--port", str(port), "--workers", "2")
    with running(several, port, tmp_path, {**env, "N_JOBS_PER_WORKER": "0"}) as server:
        async with client(server) as api:
            thread = await api.thread()
            run = await api.run(thread, "echo", {"value": 1})
            assert await api.status(thread, run) == "pending"
            with (tmp_path / "worker.log").open("wb") as log:
                worker = await asyncio.to_thread(
                    subprocess.Popen,
                    threadhold("worker", *project, "--heartbeat", heart),
                    cwd=tmp_path,
                    env=env,
                    stdout=log,
                    stderr=log,
                )
            try:
                assert await api.until(thread, run, "success", patience=PATIENCE * 2) == "success"
                await beats(heart)
                body = {"assistant_id": "steps", "input": {"count": 5}, "stream_mode": "updates"}
                events = await api.events("POST", f"/threads/{thread}/runs/stream", body)
                assert len([event for event in events if event.name == "updates"]) == 6
                # The supervisor replaces a dead process; the others answer meanwhile.
                async with asyncio.timeout(PATIENCE):
                    while len(pids(server)) < 2:
                        await asyncio.sleep(0.05)
                os.kill(pids(server)[0], signal.SIGKILL)
                async with asyncio.timeout(PATIENCE):
                    while len(pids(server)) < 3:
                        await asyncio.sleep(0.05)
            finally:
                stop(worker)
            await leaves_runs_to_others(cluster, tmp_path, api)
        assert worker.returncode == 0, (tmp_path / "worker.log").read_text()
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0


@ONLY
async def test_run_continues_on_another_process_after_its_own_dies(
    cluster: Cluster, apis: list[Api], tmp_path: Path
) -> None:
    """This test is the last one here, because it kills one of the processes."""
    c = apis[2]
    thread = await c.thread()
    asked = {"count": 6, "exit_at": 3, "once": str(tmp_path / "once")}
    run = await c.run(thread, "steps", asked, stream_mode="values", stream_resumable=True)
    path = f"/threads/{thread}/runs/{run}/stream"
    # The client follows from before the death until another process ends the run.
    events = await c.events("GET", path, headers={"Last-Event-ID": "-1"}, patience=PATIENCE * 3)
    assert [server.process.poll() is None for server in cluster.servers].count(False) == 1
    assert await c.ended(thread, run) == "success"
    assert [event for event in events if event.name == "error"] == []
    orders = [tuple(map(int, str(event.id).split("-"))) for event in events]
    assert orders == sorted(set(orders))
    state = await c.get(f"/threads/{thread}/state")
    assert state["values"]["done"] == list(range(6))
