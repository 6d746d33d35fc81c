"""Faults of similar servers with threads, their state and their time to live. Docstrings state them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from langgraph_runtime_sql.ops.threads import graph as thread_graph
from langgraph_runtime_sql.ops.threads.threads import Threads
from tests.support import databases, runtime, served
from tests.support.operations import rows
from tests.support.processes import Running
from tests.support.served import Api

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served.served(tmp_path_factory.mktemp("other")) as started:
        yield started


@pytest.fixture
async def api(server: Running) -> AsyncIterator[Api]:
    async with served.client(server) as client:
        yield client


async def _ran(api: Api, thread: str, graph: str, input: Any) -> None:
    run = await api.run(thread, graph, input)
    assert await api.ended(thread, run) == "success"


# --- state and history


async def test_history_takes_before_as_an_object_or_an_id(api: Api) -> None:
    """A history request fails if `before` is a checkpoint object, as clients send it."""
    thread = await api.thread()
    await _ran(api, thread, "steps", {"count": 4})
    path = f"/threads/{thread}/history"
    whole = await api.post(path, {"limit": 100})
    assert len(whole) > 4
    given = whole[2]["checkpoint"]
    assert await api.post(path, {"limit": 100, "before": given}) == whole[3:]
    bare = {"checkpoint_id": given["checkpoint_id"]}
    assert await api.post(path, {"limit": 100, "before": bare}) == whole[3:]
    wrapped = {"configurable": given}
    assert await api.post(path, {"limit": 100, "before": wrapped}) == whole[3:]
    assert await api.get(f"{path}?limit=100&before={given['checkpoint_id']}") == whole[3:]


async def test_thread_shows_a_state_written_onto_an_old_checkpoint(api: Api) -> None:
    """After a write onto an old checkpoint, the thread shows the old checkpoint's values."""
    thread = await api.thread()
    await _ran(api, thread, "echo", {"value": "first"})
    await _ran(api, thread, "echo", {"value": "second"})
    [*_, oldest] = await api.post(f"/threads/{thread}/history", {"limit": 100})
    old = {"checkpoint_id": oldest["checkpoint"]["checkpoint_id"], "values": {"value": "new"}}
    await api.post(f"/threads/{thread}/state", {**old, "as_node": "echo"})
    state = await api.get(f"/threads/{thread}/state")
    assert state["values"]["value"] == "new"
    assert (await api.get(f"/threads/{thread}"))["values"] == state["values"]


async def test_thread_shows_the_last_of_several_concurrent_state_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two concurrent state writes, the thread's row shows the older one."""
    plain, thread = thread_graph.snapshot, uuid4()
    at: Any = {"configurable": {"thread_id": str(thread)}}
    others = [{"value": "second"}]

    async def slow(*args: Any, **options: Any) -> Any:
        found = await plain(*args, **options)
        if others:
            await Threads.State.post(None, deepcopy(at), others.pop())
        return found

    monkeypatch.setattr(thread_graph, "snapshot", slow)
    with runtime.serving("echo"):
        async with runtime.opened(tmp_path / "writers.db"):
            await rows(Threads.put(None, thread, metadata={"graph_id": "echo"}, if_exists="raise"))
            await Threads.State.post(None, deepcopy(at), {"value": "first"})
            assert (await runtime.thread(thread))["values"]["value"] == "second"


async def test_restart_keeps_threads_and_checkpoints_without_file_persistence(
    tmp_path: Path,
) -> None:
    """Without file persistence, a restart keeps threads but loses their checkpoints."""
    with served.served(tmp_path, LANGGRAPH_DISABLE_FILE_PERSISTENCE="true") as before:
        async with served.client(before) as api:
            thread = await api.thread()
            await _ran(api, thread, "echo", {"value": "kept"})
            shown = await api.get(f"/threads/{thread}")
            state = await api.get(f"/threads/{thread}/state")
    with served.served(tmp_path, LANGGRAPH_DISABLE_FILE_PERSISTENCE="true") as after:
        async with served.client(after) as api:
            assert await api.get(f"/threads/{thread}") == shown
            assert await api.get(f"/threads/{thread}/state") == state
            await _ran(api, thread, "echo", {"value": "more"})
            assert (await api.get(f"/threads/{thread}"))["values"]["count"] == 2
    assert not (tmp_path / ".langgraph_api").exists()


# --- search


async def test_value_filter_does_not_match_threads_without_values(api: Api) -> None:
    """A thread without values makes a search by values fail; a copied thread matches every value."""
    mark = {"search": "values"}
    await api.thread(**mark)
    full = await api.thread(**mark)
    await _ran(api, full, "echo", {"value": {"a": 1, "b": [1, 2]}})
    copied = (await api.post(f"/threads/{full}/copy"))["thread_id"]

    async def found(**values: Any) -> set[str]:
        rows = await api.post("/threads/search", {"metadata": mark, "values": values})
        return {row["thread_id"] for row in rows}

    assert await found(value={"a": 1}) == {full, copied}
    assert await found(value={"a": 2}) == set()
    assert await found(nothing=None) == set()
    assert len(await found()) == 3


# --- time to live


@pytest.fixture(scope="module")
def forgetful(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that deletes threads after ten minutes and sweeps several times a second."""
    ttl = {"strategy": "delete", "default_ttl": 10, "sweep_interval_minutes": 0.005}
    folder = tmp_path_factory.mktemp("forgetful")
    with served.served(folder, LANGGRAPH_THREAD_TTL=json.dumps(ttl)) as started:
        yield started


def _make_due(server: Running, thread: str) -> None:
    """Set a thread's expiry to the past. Waiting for it would race with the test's requests."""
    path, past = server.log.parent / "data.db", databases.date(time.time() - 1)
    databases.execute(path, "UPDATE threads SET expires_at = ? WHERE thread_id = ?", past, thread)


async def _gone(api: Api, thread: str) -> None:
    async with asyncio.timeout(served.PATIENCE):
        while (await api.http.get(f"/threads/{thread}")).status_code != 404:
            await asyncio.sleep(0.05)


async def test_expired_thread_is_deleted(forgetful: Running) -> None:
    """Threads are never deleted, whatever their time to live."""
    async with served.client(forgetful) as api:
        long = {"ttl": {"strategy": "delete", "ttl": 60}}
        spared = (await api.post("/threads", long))["thread_id"]
        empty = await api.thread()
        used = await api.thread()
        await _ran(api, used, "echo", {"value": 1})
        told = (await api.get(f"/threads/{used}?include=ttl"))["ttl"]
        assert (told["strategy"], told["ttl_minutes"]) == ("delete", 10)
        left = datetime.fromisoformat(told["expires_at"]) - datetime.now(UTC)
        assert 0 < left.total_seconds() <= 600
        assert "ttl" not in await api.get(f"/threads/{spared}")
        for thread in (empty, used):
            _make_due(forgetful, thread)
            await _gone(api, thread)
        assert (await api.get(f"/threads/{spared}?include=ttl"))["ttl"]["ttl_minutes"] == 60


async def test_expired_thread_with_an_active_run_is_kept_until_the_run_ends(
    forgetful: Running, tmp_path: Path
) -> None:
    """A thread is deleted while a run uses it."""
    async with served.client(forgetful) as api:
        thread, other, go = await api.thread(), await api.thread(), tmp_path / "go"
        run = await api.run(thread, "sleeper", {"seconds": 600, "until": str(go)})
        assert await api.until(thread, run, "running") == "running"
        for due in (thread, other):
            _make_due(forgetful, due)
        # The sweep that deleted the other thread has seen this one too.
        await _gone(api, other)
        go.touch()
        assert await api.ended(thread, run) == "success"
        assert (await api.get(f"/threads/{thread}"))["status"] == "idle"
        _make_due(forgetful, thread)
        await _gone(api, thread)


async def test_keep_latest_ttl_deletes_old_checkpoints_only(forgetful: Running) -> None:
    """A thread with `keep_latest` keeps its old checkpoints, or loses the latest too."""
    async with served.client(forgetful) as api:
        asked = {"ttl": {"strategy": "keep_latest", "ttl": 0.02}}
        thread = (await api.post("/threads", asked))["thread_id"]
        await _ran(api, thread, "steps", {"count": 3})
        async with asyncio.timeout(served.PATIENCE):
            while len(await api.get(f"/threads/{thread}/history?limit=100")) != 1:
                await asyncio.sleep(0.05)
        state = await api.get(f"/threads/{thread}/state")
        assert state["values"]["done"] == [0, 1, 2]
        await _ran(api, thread, "steps", {"count": 1})
        assert (await api.get(f"/threads/{thread}"))["values"]["done"] == [0, 1, 2, 0]


async def test_prune_keep_latest_keeps_the_latest_checkpoint(api: Api) -> None:
    """Pruning refuses to keep the latest checkpoint, or deletes the thread."""
    thread = await api.thread()
    await _ran(api, thread, "steps", {"count": 3})
    before = await api.get(f"/threads/{thread}")
    asked = {"thread_ids": [thread], "strategy": "keep_latest"}
    assert await api.post("/threads/prune", asked) == {"pruned_count": 1}
    assert len(await api.get(f"/threads/{thread}/history?limit=100")) == 1
    assert await api.get(f"/threads/{thread}") == before
    await _ran(api, thread, "steps", {"count": 2})
    assert (await api.get(f"/threads/{thread}"))["values"]["done"] == [0, 1, 2, 0, 1]
    await api.post("/threads/prune", {"thread_ids": [thread], "strategy": "delete"})
    assert (await api.http.get(f"/threads/{thread}")).status_code == 404
