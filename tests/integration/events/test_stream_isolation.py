"""Streams of runs and threads give another user nothing, for any combination of ids.

On Postgres, two processes share the database, the application filters nothing, and only row-level
security separates tenants. On SQLite, the application's filter separates users.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from langgraph_runtime_sql.events.wires import WELL_RECHECK_SECONDS
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, Running
from tests.support.redis import started
from tests.support.served import PATIENCE, Api, Event, client, served

pytestmark = pytest.mark.usefixtures("each_database")

WORD = "rosebud"
# Seconds in which an endless stream sends all its stored events.
SILENCE = 1.0
FROM_THE_START: list[dict[str, str]] = [{}, {"Last-Event-ID": "-1"}]


@pytest.fixture(scope="module")
def servers(
    each_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Running]]:
    """Start the servers. On Postgres, the first works on runs and the second only answers."""
    folder, on_postgres = tmp_path_factory.mktemp("streams"), each_database == "postgresql"
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "steps")},
        "auth": {"path": f"{GRAPHS}/unfiltered.py:auth" if on_postgres else "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    env = {"APP_ENV": "production", "JWT_SECRET": SECRET}
    with ExitStack() as stack:
        url = None
        if on_postgres:
            url = stack.enter_context(started(tmp_path_factory.mktemp("valkey"))).url
        yield [
            stack.enter_context(
                served(folder, folder / "langgraph.json", url, N_JOBS_PER_WORKER=jobs, **env)
            )
            for jobs in (("4", "0") if on_postgres else ("4",))
        ]


@asynccontextmanager
async def user(servers: list[Running], tenant: str, name: str) -> AsyncIterator[list[Api]]:
    """Open a client of a user for each process."""
    sent = bearer(token(tenant_id=tenant, sub=name))
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(client(server, **sent)) for server in servers]


@pytest.fixture
async def ada(servers: list[Running]) -> AsyncIterator[list[Api]]:
    async with user(servers, "acme", "ada") as apis:
        yield apis


@pytest.fixture
async def eve(servers: list[Running], each_database: str) -> AsyncIterator[list[Api]]:
    """Open clients of a user of another tenant; on SQLite, of another user of the same tenant."""
    tenant = "globex" if each_database == "postgresql" else "acme"
    async with user(servers, tenant, "eve") as apis:
        yield apis


def secret(tmp_path: Path, **more: Any) -> dict[str, Any]:
    """Return the request for a resumable run whose events contain the word."""
    return {
        "assistant_id": "steps",
        "input": {"count": 3, "record": str(tmp_path / WORD), **more},
        "stream_mode": ["values"],
        "stream_resumable": True,
    }


async def told(api: Api, path: str, headers: dict[str, str]) -> str:
    """Return the text of a stream that ends."""
    async with asyncio.timeout(PATIENCE):
        answer = await api.http.get(path, headers=headers)
    return answer.text


async def heard(
    api: Api,
    path: str,
    headers: dict[str, str],
    body: Any = None,
    seconds: float = SILENCE,
    until: str | None = None,
) -> str:
    """Return the status and the text of an endless stream within `seconds`, or up to a word."""
    parts: list[str] = []
    method = "GET" if body is None else "POST"
    try:
        async with (
            asyncio.timeout(seconds if until is None else PATIENCE),
            api.http.stream(method, path, headers=headers, json=body) as answer,
        ):
            parts.append(str(answer.status_code))
            async for text in answer.aiter_text():
                parts.append(text)
                if until is not None and until in "".join(parts):
                    break
    except TimeoutError:
        pass
    return "".join(parts)


async def refuses(apis: list[Api], path: str) -> None:
    """Check that every process answers only that the run does not exist."""
    for api in apis:
        for headers in FROM_THE_START:
            text = await told(api, f"{path}/stream", headers)
            assert WORD not in text
            assert "not found" in text, text
        joined = await told(api, f"{path}/join", {})
        assert WORD not in joined
        assert "not found" in joined, joined


async def begun(api: Api, path: str) -> None:
    """Wait until a run has published the word."""
    async with (
        asyncio.timeout(PATIENCE),
        api.stream("GET", path, headers={"Last-Event-ID": "-1"}) as events,
    ):
        async for event in events:
            if WORD in event.data:
                return


async def thread_is_silent(apis: list[Api], thread: str) -> None:
    """Check that no stream of a thread contains the word, even from its beginning."""
    body = {"channels": ["values", "lifecycle"]}
    texts = await asyncio.gather(
        *(heard(api, f"/threads/{thread}/stream", {}) for api in apis),
        *(heard(api, f"/threads/{thread}/stream", {"Last-Event-ID": "-"}) for api in apis),
        *(heard(api, f"/threads/{thread}/stream/events", {}, body) for api in apis),
    )
    for text in texts:
        assert WORD not in text


async def test_run_of_another_user_is_not_found_during_and_after_its_work(
    ada: list[Api], eve: list[Api], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    hers, own = await ada[0].thread(), await eve[0].thread()
    run = (await ada[0].post(f"/threads/{hers}/runs", secret(tmp_path, gate=str(gate))))["run_id"]
    path = f"/threads/{hers}/runs/{run}"
    await begun(ada[-1], f"{path}/stream")
    await refuses(eve, f"/threads/{own}/runs/{run}")
    await refuses(eve, path)
    await refuses(eve, f"/threads/{uuid4()}/runs/{run}")
    await thread_is_silent(eve, own)
    gate.write_text("100")
    assert await ada[0].ended(hers, run) == "success"
    for foreign in (own, hers, str(uuid4())):
        await refuses(eve, f"/threads/{foreign}/runs/{run}")
    await thread_is_silent(eve, hers)
    # The owner can read the run all the time, but only by the id of its own thread.
    for api in ada:
        assert WORD in await told(api, f"{path}/stream", FROM_THE_START[1])
        other = await api.thread()
        await refuses([api], f"/threads/{other}/runs/{run}")


async def test_earlier_subscriber_gets_no_events_of_another_users_run(
    ada: list[Api], eve: list[Api], tmp_path: Path
) -> None:
    """Meanwhile a stream of the stranger's thread continues, with its own events only."""
    own, gate = await eve[0].thread(), tmp_path / "gate"
    async with eve[-1].stream("GET", f"/threads/{own}/stream") as events:
        hers = await ada[0].thread()
        run = await ada[0].post(f"/threads/{hers}/runs", secret(tmp_path, gate=str(gate)))
        await begun(ada[0], f"/threads/{hers}/runs/{run['run_id']}/stream")
        mine = await eve[0].run(own, "echo", {"value": 1})
        seen: list[Event] = []
        async with asyncio.timeout(PATIENCE):
            async for event in events:
                seen.append(event)
                if "run_done" in event.data:
                    break
    assert mine in str(seen)
    assert WORD not in str(seen)
    gate.write_text("100")
    assert await ada[0].ended(hers, run["run_id"]) == "success"


async def test_ended_stateless_run_is_not_found(
    ada: list[Api], eve: list[Api], tmp_path: Path
) -> None:
    events = await ada[-1].events("POST", "/runs/stream", secret(tmp_path))
    assert WORD in str(events), "the owner gets the events"
    gate = tmp_path / "gate"
    run = await ada[0].post("/runs", secret(tmp_path, gate=str(gate)))
    path = f"/threads/{run['thread_id']}/runs/{run['run_id']}"
    own = await eve[0].thread()
    await begun(ada[-1], f"{path}/stream")
    gate.write_text("100")
    assert await ada[0].ended(run["thread_id"], run["run_id"]) is None
    for foreign in (own, run["thread_id"], str(uuid4())):
        await refuses(eve, f"/threads/{foreign}/runs/{run['run_id']}")
    await thread_is_silent(eve, run["thread_id"])


@pytest.mark.parametrize("how", ["DELETE", "prune"])
async def test_next_owner_of_a_deleted_threads_id_gets_no_old_events(
    ada: list[Api], eve: list[Api], tmp_path: Path, how: str
) -> None:
    thread = await ada[0].thread()
    run = (await ada[0].post(f"/threads/{thread}/runs", secret(tmp_path)))["run_id"]
    assert await ada[0].ended(thread, run) == "success"
    state = {"values": {"record": WORD}, "as_node": "step"}
    await ada[0].post(f"/threads/{thread}/state", state)
    path = f"/threads/{thread}/runs/{run}"
    for api in ada:
        assert WORD in await told(api, f"{path}/stream", FROM_THE_START[1])
        said = await heard(api, f"/threads/{thread}/stream", {"Last-Event-ID": "-"}, until=WORD)
        assert WORD in said
    if how == "DELETE":
        assert (await ada[-1].http.delete(f"/threads/{thread}")).is_success
    else:
        assert (await ada[-1].post("/threads/prune", {"thread_ids": [thread]}))["pruned_count"] == 1
    await refuses(eve, path)
    await refuses(ada, path)
    made = await eve[0].post("/threads", {"thread_id": thread})
    assert made["thread_id"] == thread
    await refuses(eve, path)
    await thread_is_silent(eve, thread)
    # The new thread works like any other.
    mine = await eve[0].run(thread, "echo", {"value": "mine"}, stream_resumable=True)
    assert await eve[0].ended(thread, mine) == "success"
    for api in eve:
        said = await heard(api, f"/threads/{thread}/stream", {"Last-Event-ID": "-"}, until="mine")
        assert "mine" in said


async def test_follower_of_a_deleted_thread_gets_its_end_and_no_events_of_the_next_owner(
    ada: list[Api], eve: list[Api], tmp_path: Path
) -> None:
    thread, gate = await ada[0].thread(), tmp_path / "gate"
    body = secret(tmp_path, gate=str(gate))
    run = (await ada[0].post(f"/threads/{thread}/runs", body))["run_id"]
    path = f"/threads/{thread}/runs/{run}"
    start = {"Last-Event-ID": "-"}
    begins = [asyncio.Event() for _ in range(2 * len(ada))]

    async def follow(api: Api, path: str, begins: asyncio.Event) -> str:
        parts: list[str] = []
        async with api.stream("GET", path, headers=start) as events:
            async for event in events:
                parts.append(event.data)
                if WORD in event.data:
                    begins.set()
        return "\n".join(parts)

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        followers = [
            group.create_task(follow(api, each, begins[2 * number + kind]))
            for number, api in enumerate(ada)
            for kind, each in enumerate((f"{path}/stream", f"/threads/{thread}/stream"))
        ]
        for each in begins:
            await each.wait()
        assert (await ada[0].http.delete(f"/threads/{thread}")).is_success
        assert (await eve[0].post("/threads", {"thread_id": thread}))["thread_id"] == thread
        mine = await eve[0].run(thread, "echo", {"value": "only-eves"}, stream_resumable=True)
        assert await eve[0].ended(thread, mine) == "success"
    for follower in followers:
        assert "only-eves" not in follower.result()
    await thread_is_silent(eve, thread)


async def test_events_of_a_deleted_run_are_gone(ada: list[Api], tmp_path: Path) -> None:
    thread = await ada[0].thread()
    run = (await ada[0].post(f"/threads/{thread}/runs", secret(tmp_path)))["run_id"]
    assert await ada[0].ended(thread, run) == "success"
    other = await ada[0].run(thread, "echo", {"value": "stays"}, stream_resumable=True)
    assert await ada[0].ended(thread, other) == "success"
    assert (await ada[-1].http.delete(f"/threads/{thread}/runs/{run}")).is_success
    await refuses(ada, f"/threads/{thread}/runs/{run}")
    for api in ada:
        said = await heard(api, f"/threads/{thread}/stream", {"Last-Event-ID": "-"}, until="stays")
        assert run not in said
        assert "stays" in said
        assert "stays" in await told(
            api, f"/threads/{thread}/runs/{other}/stream", {"Last-Event-ID": "-1"}
        )


async def test_cancel_with_rollback_and_wait_is_answered(ada: list[Api]) -> None:
    for api in ada:
        thread = await api.thread()
        run = await api.run(thread, "echo", {"value": 1}, after_seconds=3600)
        asked = f"/threads/{thread}/runs/{run}/cancel?wait=true&action=rollback"
        assert await api.post(asked) == {}
        assert await api.status(thread, run) is None


async def test_thread_stream_continues_after_a_run_is_rolled_back(ada: list[Api]) -> None:
    """The end is the run's only event, and the run's row is deleted by then: no event was lost."""

    async def follow(api: Api) -> None:
        thread = await api.thread()
        run = await api.run(thread, "echo", {"value": 1}, after_seconds=3600)
        # Longer than a process waits before it looks at the log again.
        seconds = WELL_RECHECK_SECONDS + 2
        path = f"/threads/{thread}/stream"
        follower = asyncio.create_task(heard(api, path, {}, seconds=seconds))
        await asyncio.sleep(SILENCE)
        await ada[0].post(f"/threads/{thread}/runs/{run}/cancel?action=rollback")
        assert "error" not in await follower

    await asyncio.gather(*(follow(api) for api in ada))
