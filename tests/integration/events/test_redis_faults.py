"""Whatever becomes of Redis: runs end, clients get every event once and in order.

One process answers requests and another works on the runs, so that all that a client gets
comes through Redis, or from the database. Both reach Redis through a proxy. Two other processes
have no Redis.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.chaos.victim import write_config
from tests.support import databases, served
from tests.support.processes import Running
from tests.support.proxy import Proxy, proxied
from tests.support.redis import Valkey
from tests.support.served import Api, Event, client
from tests.support.webhooks import Webhooks, receiver

pytestmark = [
    pytest.mark.usefixtures("each_database"),
    pytest.mark.only("postgresql"),
    pytest.mark.timeout(1200),
]
PATIENCE = 120.0
STEPS = 12
INPUT = {"count": STEPS, "delay": 0.1}
ALL = list(range(STEPS))
ACCEPT = {"accept": "application/json, text/event-stream"}


class Cluster(NamedTuple):
    """The two processes, and Redis, which is missing when they start.

    Attributes:
        webhooks: Where they may call.
    """

    folder: Path
    webhooks: Webhooks
    valkey: Valkey
    proxy: Proxy
    servers: list[Running]


@pytest.fixture(scope="module")
def cluster(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        valkey = Valkey(tmp_path_factory.mktemp("valkey"))
        stack.callback(valkey.stop)
        proxy = stack.enter_context(proxied(valkey.port))
        url = f"redis://someone:a-secret@127.0.0.1:{proxy.port}/0"
        config = write_config(folder)
        env = {"ALLOW_PRIVATE_WEBHOOKS": "true", "CRON_SCHEDULER_SLEEP_TIME": "1"}
        servers = [
            stack.enter_context(served.served(folder, config, url, N_JOBS_PER_WORKER=slots, **env))
            for slots in ("100", "0")
        ]
        webhooks = stack.enter_context(receiver())
        yield Cluster(folder, webhooks, valkey, proxy, servers)


class Caller(Api):
    """A client of the cluster that can receive webhooks.

    Attributes:
        called: Where it was to be called, each once.
    """

    def __init__(self, http: httpx.AsyncClient, cluster: Cluster) -> None:
        super().__init__(http)
        self.cluster = cluster
        self.called: list[str] = []

    async def make_due(self, cron: str) -> None:
        """Make a cron due at the next poll."""
        statement = "UPDATE crons SET next_run_date = ? WHERE cron_id = ?"
        due = databases.date(time.time() - 1)
        path = self.cluster.folder / "data.db"
        await asyncio.to_thread(databases.execute, path, statement, due, cron)

    async def call(self, path: str) -> Any:
        """Wait for a webhook. Return its body."""
        self.called.append(path)
        while not (found := self.cluster.webhooks.received(path)):
            await asyncio.sleep(0.05)
        return found[0]


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[Caller]:
    """Return a client of the process that only answers."""
    async with client(cluster.servers[1]) as api:
        api.http.timeout = PATIENCE
        caller = Caller(api.http, cluster)
        yield caller
        # No process has ended a run that another had ended.
        for path in caller.called:
            assert len(cluster.webhooks.received(path)) == 1


async def health(cluster: Cluster, *states: str) -> None:
    async with AsyncExitStack() as stack:
        for server in cluster.servers:
            api = await stack.enter_async_context(client(server))
            async with asyncio.timeout(PATIENCE):
                while (await api.get("/health"))["redis"] not in states:
                    await asyncio.sleep(0.1)


# --- clients


async def waits(api: Api) -> None:
    thread = await api.thread()
    body = {"assistant_id": "steps", "input": INPUT}
    answer = await api.post(f"/threads/{thread}/runs/wait", body)
    assert answer["done"] == ALL, answer


async def waits_without_a_thread(api: Api) -> None:
    answer = await api.post("/runs/wait", {"assistant_id": "steps", "input": INPUT})
    assert answer.get("done") == ALL, answer


async def waits_for_a_failure(api: Api) -> None:
    body = {"assistant_id": "steps", "input": {**INPUT, "fail_at": STEPS - 2}}
    answer = await api.post("/runs/wait", body)
    assert answer["__error__"]["error"] == "RuntimeError", answer


async def joins(api: Api) -> None:
    thread = await api.thread()
    run = await api.run(thread, "steps", INPUT)
    assert (await api.get(f"/threads/{thread}/runs/{run}/join"))["done"] == ALL


async def streams(api: Api) -> None:
    thread = await api.thread()
    body = {"assistant_id": "steps", "input": INPUT, "stream_mode": "values"}
    whole(await api.events("POST", f"/threads/{thread}/runs/stream", body, patience=PATIENCE))


async def streams_without_a_thread(api: Api) -> None:
    body = {"assistant_id": "steps", "input": INPUT, "stream_mode": "values"}
    whole(await api.events("POST", "/runs/stream", body, patience=PATIENCE))


async def resumes(api: Api) -> None:
    """Disconnect after every few events and resume after the last."""
    thread = await api.thread()
    run = await api.run(thread, "steps", INPUT, stream_mode="values", stream_resumable=True)
    path, seen = f"/threads/{thread}/runs/{run}/stream", []
    async with asyncio.timeout(PATIENCE):
        while not seen or not over(seen):
            known = [event.id for event in seen if event.id]
            headers = {"Last-Event-ID": known[-1] if known else "-1"}
            before = len(seen)
            async with api.stream("GET", path, headers=headers) as events:
                async for event in events:
                    seen.append(event)
                    if len(seen) >= before + 3 and not over(seen):
                        break
    whole(seen)


async def follows_the_thread(api: Api) -> None:
    thread = await api.thread()
    seen = []
    async with asyncio.timeout(PATIENCE), api.stream("GET", f"/threads/{thread}/stream") as events:
        run = await api.run(thread, "steps", INPUT, stream_mode="values")
        async for event in events:
            seen.append(event)
            if "run_done" in event.data and run in event.data:
                break
    assert await api.until(thread, run, "success", "error", patience=PATIENCE) == "success"
    whole(seen)
    places = [tuple(map(int, event.id.split("-"))) for event in seen if event.id]
    assert places == sorted(set(places))


async def follows_by_v2(api: Api) -> None:
    thread = str(uuid4())
    params = {"assistant_id": "steps", "input": INPUT}
    command = {"id": 1, "method": "run.start", "params": params}
    assert (await api.post(f"/threads/{thread}/commands", command))["type"] == "success"
    body = {"channels": ["values", "lifecycle"]}
    async with asyncio.timeout(PATIENCE):
        async with api.stream("POST", f"/threads/{thread}/stream/events", body) as events:
            seen = []
            async for event in events:
                seen.append(json.loads(event.data))
                if is_over(seen[-1]):
                    break
    assert is_over(seen[-1]), seen
    whole_by_v2(seen)
    [run] = await api.get(f"/threads/{thread}/runs")
    assert await api.ended(thread, run["run_id"]) == "success"


async def follows_by_websocket(api: Api) -> None:
    thread = str(uuid4())
    url = str(api.http.base_url).replace("http", "ws").rstrip("/")
    seen: list[Any] = []
    async with (
        asyncio.timeout(PATIENCE),
        connect(f"{url}/threads/{thread}/stream/events", open_timeout=PATIENCE) as socket,
    ):
        asked = {"channels": ["values", "lifecycle"]}
        await socket.send(say(1, "subscription.subscribe", asked))
        await socket.send(say(2, "run.start", {"assistant_id": "steps", "input": INPUT}))
        while not seen or not is_over(seen[-1]):
            said = json.loads(await socket.recv())
            if said.get("type") == "event":
                seen.append(said)
    whole_by_v2(seen)
    [run] = await api.get(f"/threads/{thread}/runs")
    assert await api.ended(thread, run["run_id"]) == "success"


async def calls_a_tool(api: Api) -> None:
    call = {"name": "steps", "arguments": INPUT}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = (await api.http.post("/mcp", json=body, headers=ACCEPT)).json()
    assert not answer["result"].get("isError"), answer
    assert f"'done': {ALL}" in answer["result"]["content"][0]["text"]


async def talks_to_an_agent(api: Api) -> None:
    [tokens] = await api.post("/assistants/search", {"graph_id": "tokens"})
    message = {"role": "user", "messageId": uuid4().hex, "parts": [{"kind": "text", "text": "hi"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    answer = (
        await api.http.post(f"/a2a/{tokens['assistant_id']}", json=body, headers=ACCEPT)
    ).json()
    assert answer.get("result", {}).get("status", {}).get("state") == "completed", answer


async def cancels(api: Api) -> None:
    thread = await api.thread()
    run = await api.run(thread, "sleeper", {"seconds": 600})
    await api.until(thread, run, "running", patience=PATIENCE)
    await api.post(f"/threads/{thread}/runs/{run}/cancel?wait=true")
    assert await api.ended(thread, run) == "interrupted"


async def is_called_back(api: Caller) -> None:
    thread, path = await api.thread(), f"/{uuid4()}"
    run = await api.run(thread, "steps", INPUT, webhook=api.cluster.webhooks.url + path)
    said = await api.call(path)
    assert (said["run_id"], said["status"]) == (run, "success")
    assert said["values"]["done"] == ALL
    assert await api.status(thread, run) == "success"


async def is_called_back_without_a_thread(api: Caller) -> None:
    path = f"/{uuid4()}"
    body = {"assistant_id": "steps", "input": INPUT, "webhook": api.cluster.webhooks.url + path}
    answer = await api.post("/runs/wait", body)
    assert answer["done"] == ALL, answer
    assert (await api.call(path))["status"] == "success"


async def has_a_cron_whose_thread_stays(api: Caller) -> None:
    said = await fire(api, "keep")
    thread = said["thread_id"]
    assert await api.status(thread, said["run_id"]) == "success"
    assert (await api.get(f"/threads/{thread}/state"))["values"]["done"] == ALL


async def has_a_cron_whose_thread_goes(api: Caller) -> None:
    said = await fire(api, "delete")
    while (await api.http.get(f"/threads/{said['thread_id']}")).status_code != 404:
        await asyncio.sleep(0.05)
    assert await api.status(said["thread_id"], said["run_id"]) is None


async def fire(api: Caller, on_run_completed: str) -> Any:
    """Return the webhook about the end of a run that a cron started."""
    path = f"/{uuid4()}"
    body = {
        "assistant_id": "steps",
        "input": INPUT,
        "schedule": "0 3 1 1 *",
        "on_run_completed": on_run_completed,
        "webhook": api.cluster.webhooks.url + path,
    }
    cron = (await api.post("/runs/crons", body))["cron_id"]
    await api.make_due(cron)
    said = await api.call(path)
    assert said["kwargs"]["config"]["configurable"]["cron_id"] == cron
    assert said["status"] == "success"
    assert (await api.http.delete(f"/runs/crons/{cron}")).is_success
    return said


CLIENTS = [
    *(waits, waits_without_a_thread, waits_for_a_failure, joins, streams, streams_without_a_thread),
    *(resumes, follows_the_thread, follows_by_v2, follows_by_websocket, calls_a_tool),
    *(talks_to_an_agent, cancels, is_called_back, is_called_back_without_a_thread),
    *(has_a_cron_whose_thread_stays, has_a_cron_whose_thread_goes),
]


def say(number: int, method: str, params: Any) -> str:
    return json.dumps({"id": number, "method": method, "params": params})


def is_over(event: Any) -> bool:
    """Return whether an event of the v2 protocol ends the run or the stream."""
    data = event["params"].get("data") or {}
    if event["params"].get("namespace"):
        return False
    return event["method"] == "lifecycle" and data.get("event") in ("completed", "failed")


def over(events: list[Event]) -> bool:
    return values(events)[-1:] == [ALL]


def values(events: list[Event]) -> list[list[int]]:
    found = [json.loads(event.data) for event in events if event.name == "values"]
    return [each.get("done", []) for each in found]


def whole(events: list[Event]) -> None:
    """Check that each step comes once and in order, and that no event was lost."""
    assert "error" not in [event.name for event in events], events
    lengths = [len(each) for each in values(events)]
    # One before the first node, and one after it.
    assert lengths == [0, *range(STEPS + 1)], events


def whole_by_v2(events: list[Any]) -> None:
    """Check the same for the v2 protocol."""
    found = [
        len(each["params"]["data"].get("done", []))
        for each in events
        if each["method"] == "values" and not each["params"].get("namespace")
    ]
    assert [length for i, length in enumerate(found) if found[:i][-1:] != [length]] == [
        *range(STEPS + 1)
    ], events
    numbers = [each["seq"] for each in events if "seq" in each]
    assert numbers == sorted(set(numbers)), events


# --- faults of Redis


async def run_all(api: Caller, trouble: Callable[[], Any]) -> None:
    """Run every client, with a fault in the middle."""

    async def soon() -> None:
        await asyncio.sleep(0.4)
        await asyncio.to_thread(trouble)

    async with asyncio.timeout(PATIENCE * 2):
        ended = await asyncio.gather(*(use(api) for use in CLIENTS), soon(), return_exceptions=True)
    failed = [each for each in ended if isinstance(each, BaseException)]
    if failed:
        raise BaseExceptionGroup("of clients", failed)


async def test_every_client_is_served_although_redis_is_missing_at_start(
    cluster: Cluster, api: Caller
) -> None:
    await health(cluster, "away")
    await run_all(api, lambda: None)
    await asyncio.to_thread(start, cluster)
    await health(cluster, "ok")
    await run_all(api, lambda: None)
    for server in cluster.servers:
        assert "a-secret" not in server.log.read_text()


def do(*commands: str) -> Callable[[Cluster], None]:
    """A command that is sent to Redis."""

    def trouble(cluster: Cluster) -> None:
        for command in commands:
            cluster.valkey.do(*command.split())

    trouble.__name__ = commands[-1]
    return trouble


def killed(cluster: Cluster) -> None:
    cluster.valkey.stop()


def restarted(cluster: Cluster) -> None:
    cluster.valkey.stop()
    start(cluster)


def silent(cluster: Cluster) -> None:
    cluster.proxy.silent = True


def cut(cluster: Cluster) -> None:
    for _ in range(5):
        cluster.proxy.cut()
        time.sleep(0.2)


def start(cluster: Cluster) -> None:
    cluster.valkey.start()
    cluster.valkey.do("ACL", "SETUSER", "someone", "on", ">a-secret", "~*", "&*", "+@all")


def nothing(cluster: Cluster) -> None:
    pass


def audible(cluster: Cluster) -> None:
    # Bytes of the old connections are lost, so the connections cannot be used again.
    cluster.proxy.silent = False
    cluster.proxy.cut()


TROUBLES = [
    (killed, start, "away"),
    (restarted, nothing, "ok"),
    (do("FLUSHALL"), nothing, "ok"),
    (do("CLIENT PAUSE 8000 ALL"), nothing, "ok"),
    (silent, audible, "away"),
    (cut, nothing, "ok"),
    (do("CONFIG SET maxmemory 1"), do("CONFIG SET maxmemory 0"), "ok"),
    (do("REPLICAOF 127.0.0.1 1"), do("REPLICAOF NO ONE"), "ok"),
    (do("ACL SETUSER someone resetchannels"), do("ACL SETUSER someone &*"), "refusing"),
]


@pytest.mark.parametrize(
    ("trouble", "end", "state"), TROUBLES, ids=[each[0].__name__ for each in TROUBLES]
)
async def test_every_client_is_served_through_each_fault_of_redis(
    cluster: Cluster, api: Caller, trouble: Any, end: Any, state: str
) -> None:
    if not cluster.valkey.is_running:
        await asyncio.to_thread(start, cluster)
    await health(cluster, "ok")
    try:
        await run_all(api, lambda: trouble(cluster))
        await health(cluster, state)
    finally:
        await asyncio.to_thread(end, cluster)
    await health(cluster, "ok")
    # The cluster has recovered.
    await run_all(api, lambda: None)
    for server in cluster.servers:
        assert "redis.exceptions" not in server.log.read_text()


# --- without Redis


@pytest.fixture(scope="module")
def alone(
    each_database: str, tmp_path_factory: pytest.TempPathFactory, cluster: Cluster
) -> Iterator[Cluster]:
    """Start two processes that share only a database."""
    folder = tmp_path_factory.mktemp("alone")
    config = write_config(folder)
    env = {"ALLOW_PRIVATE_WEBHOOKS": "true", "CRON_SCHEDULER_SLEEP_TIME": "1"}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(served.served(folder, config, N_JOBS_PER_WORKER=slots, **env))
            for slots in ("100", "0")
        ]
        yield cluster._replace(folder=folder, servers=servers)


def unheard(cluster: Cluster) -> None:
    """End the connections over which the processes tell each other."""
    statement = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'threadhold' "
        "AND query ~ '^(LISTEN|SELECT pg_notify|SELECT 1$)'"
    )
    for _ in range(5):
        # They connect again a moment later.
        while not databases.execute(cluster.folder / "data.db", statement):
            time.sleep(0.05)
        time.sleep(0.3)


@pytest.mark.parametrize("trouble", [nothing, unheard])
async def test_every_client_is_served_without_redis(
    alone: Cluster, trouble: Callable[[Cluster], None]
) -> None:
    async with client(alone.servers[1]) as api:
        api.http.timeout = PATIENCE
        caller = Caller(api.http, alone)
        await run_all(caller, lambda: trouble(alone))
        for path in caller.called:
            assert len(alone.webhooks.received(path)) == 1
