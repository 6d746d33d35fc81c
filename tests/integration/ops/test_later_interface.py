"""What later versions of `langgraph_api` ask of the runtime than the installed one may do."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import encryption, json_codec, request_context, stopping
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.stream import Stream
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.operations import page, row

GRAPHS = ("echo", "steps")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]


@pytest.fixture(autouse=True)
async def opened(tmp_path: Path) -> AsyncIterator[None]:
    async with runtime.opened(tmp_path / "later.db"):
        await runtime.register(GRAPHS)
        yield


async def made(**metadata: Any) -> UUID:
    thread = await row(Threads.put(None, uuid4(), metadata=metadata, if_exists="raise"))
    found: UUID = thread["thread_id"]
    return found


async def stepped() -> UUID:
    """Return a thread of some checkpoints."""
    thread = uuid4()
    async with runtime.working():
        run = await runtime.start_run(thread, "steps", {"count": 3})
        assert await runtime.ended(run["run_id"]) == "success"
    return thread


ANY: Any = {"metadata": None, "values": None, "status": None}


@pytest.mark.parametrize(
    ("excluded", "left"),
    [
        ([{"kind": "a"}], {"b", "c"}),
        ([{"kind": "a"}, {"deep": {"tags": [1, 2]}}], {"c"}),
        ([{"deep": {"tags": [2]}}, {"deep": {"tags": [1, 3]}}], {"a", "c"}),
        ([{"kind": "b", "none": 1}], {"a", "b", "c"}),
        ([{}], set()),
        ([], {"a", "b", "c"}),
    ],
    ids=["one", "two", "entries of arrays", "both keys", "empty", "none"],
)
async def test_search_and_count_leave_out_excluded_metadata(
    excluded: list[Any], left: set[str]
) -> None:
    await made(kind="a")
    await made(kind="b", deep={"tags": [1, 2], "more": True})
    await made(kind="c", deep={"tags": 3})
    asked = {"limit": 10, "offset": 0, "exclude_metadata": excluded}
    found, _ = await page(Threads.search(None, **ANY, **asked))
    assert {each["metadata"]["kind"] for each in found} == left
    assert await Threads.count(None, **ANY, exclude_metadata=excluded) == len(left)


async def test_too_many_exclusions_are_refused() -> None:
    with pytest.raises(HTTPException) as caught:
        await Threads.count(None, **ANY, exclude_metadata=[{"n": each} for each in range(21)])
    assert caught.value.status_code == 422


async def test_history_yields_chosen_channels_of_the_states_of_the_list() -> None:
    config = {"configurable": {"thread_id": str(await stepped())}}
    whole = await Threads.State.list(None, config=config, limit=3)
    some = Threads.State.iterate(None, config=config, limit=3, channels=["done", "nope"])
    chosen = [each.values async for each in some]
    values = [json_codec.plain(each.values) for each in whole]
    assert json_codec.plain(chosen) == [{"done": each["done"]} for each in values]
    assert len(chosen) == 3


async def test_storage_of_a_thread() -> None:
    found = await Threads.storage(None, await stepped())
    assert found["checkpoints"]["count"] > 3
    assert found["channel_values"]["by_channel"]["done"]["bytes"] > 0
    with pytest.raises(HTTPException) as caught:
        await Threads.storage(None, uuid4())
    assert caught.value.status_code == 404


async def test_stream_takes_what_the_check_of_its_access_has_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = await made()
    found = await Stream.check_thread_stream_auth(thread)
    # It would ask the project's handler again.
    monkeypatch.setattr("langgraph_runtime_sql.ops.threads.stream._visible", None)
    events = Stream.join_event_streaming(
        thread, last_event_id="-", stream_modes=["run_modes"], auth_filters=found
    )
    async with runtime.working():
        await runtime.start_run(thread, "echo", {})
        name, _, _, _ = await asyncio.wait_for(anext(events), runtime.PATIENCE)
    assert name == b"metadata"
    await events.aclose()  # type: ignore[attr-defined]  # a generator


@pytest.mark.parametrize(("reason", "left"), [(stopping.REASON, 0), ("the graph's own", 1)])
async def test_stop_at_the_end_of_a_step_counts_if_the_graph_asks(reason: str, left: int) -> None:
    """Otherwise a graph that always asks would never end."""
    run = await runtime.start_run(uuid4(), "echo", {})
    await current().database.write(lambda conn: run_claim.claim(conn, 1))
    request_context.claim.set(Claim(str(run["run_id"]), 1, None, 0.0, run_claim.OWNER))
    await Runs.requeue(None, run["run_id"], reason)
    request_context.claim.set(None)
    assert await attempts(run["run_id"]) == ("pending", left)


async def attempts(run_id: UUID) -> tuple[str, int]:
    statement = select(runs.c.status, runs.c.attempt).where(runs.c.run_id == run_id)
    found = await current().database.read(lambda conn: conn.fetchone(statement))
    assert found is not None
    return found["status"], found["attempt"]


class Policy:
    """The policy of a version that can ask a run to stop."""

    @staticmethod
    def new_control() -> RunControl:
        return RunControl()


async def test_stopping_server_asks_its_runs_and_starts_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, logged = asyncio.Event(), list[str]()

    async def worker(run: Any, attempt: int, loop: Any, *, control: RunControl) -> None:
        started.set()
        while not control.drain_requested:
            await asyncio.sleep(0.01)
        await Runs.requeue(None, run["run_id"], str(control.drain_reason))
        raise GraphDrained(str(control.drain_reason))

    monkeypatch.setattr("langgraph_api.worker_runtime.DRAIN_POLICY", Policy, raising=False)
    monkeypatch.setattr("langgraph_api.worker.worker", worker)
    monkeypatch.setattr(queue, "_log_failed", lambda run_id, error: logged.append(str(error)))
    async with runtime.working() as work:
        run = await runtime.start_run(uuid4(), "echo", {})
        await started.wait()
        queue.drain()
        async with asyncio.timeout(runtime.PATIENCE):
            while work.active:
                await asyncio.sleep(0.01)
        late = await runtime.start_run(uuid4(), "echo", {})
        assert await attempts(run["run_id"]) == ("pending", 0)
    assert await attempts(late["run_id"]) == ("pending", 0)
    assert logged == []
    monkeypatch.undo()
    async with runtime.working():
        assert await runtime.ended(run["run_id"]) == "success"


async def test_fields_of_rows_are_left_to_the_database() -> None:
    """With LANGGRAPH_AES_KEY the API asks which fields of a row it is to encrypt."""
    assert encryption.encryption_fields("store") == ()
    item = {"value": {"secret": 1}}
    assert await encryption.encrypt_fields(item, "store", (), None) is item
    assert await encryption.decrypt_fields(item, "store", (), None) is item
