"""Concurrent writes of a thread's state: no acknowledged write is lost."""

from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.checkpoint import Checkpointer
from langgraph_runtime_sql.ops.threads.threads import Threads
from tests.support import runtime
from tests.support.operations import rows

pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs("witness")]

Deed = Callable[[], Awaitable[Any]]


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[UUID]:
    thread = uuid4()
    async with runtime.opened(tmp_path / "writers.db"):
        await runtime.register(["witness"])
        await rows(Threads.put(None, thread, metadata={"graph_id": "witness"}, if_exists="raise"))
        yield thread


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Deed]:
    """Run each of these after a checkpoint is read, one for each read."""
    deeds: list[Deed] = []
    plain = Checkpointer.aget_tuple

    async def slow(saver: Checkpointer, config: Any) -> Any:
        found = await plain(saver, config)
        if deeds:
            await deeds.pop(0)()
        return found

    monkeypatch.setattr(Checkpointer, "aget_tuple", slow)
    return deeds


def _at(thread: UUID, **more: Any) -> Any:
    return {"configurable": {"thread_id": str(thread), **more}}


async def _write(thread: UUID, entry: str, **more: Any) -> Any:
    return await Threads.State.post(None, _at(thread, **more), {"log": [entry]}, as_node="step")


async def _log(thread: UUID) -> list[str]:
    state = await Threads.State.get(None, _at(thread))
    assert (await runtime.thread(thread))["values"] == state.values
    return list(state.values["log"])


async def test_concurrent_state_writes_are_both_kept(thread: UUID, meanwhile: list[Deed]) -> None:
    meanwhile.append(lambda: _write(thread, "second"))
    await _write(thread, "first")
    assert await _log(thread) == ["second", "first"]
    meanwhile += [lambda: _write(thread, "fourth"), lambda: _write(thread, "fifth")]
    await _write(thread, "third")
    assert sorted(await _log(thread)) == ["fifth", "first", "fourth", "second", "third"]


async def test_run_during_a_state_write_is_kept(thread: UUID, meanwhile: list[Deed]) -> None:
    made: list[str] = []

    async def run() -> None:
        started = await runtime.start_run(thread, "witness", {"count": 2})
        made.append(str(started["run_id"]))
        await runtime.ended(started["run_id"])

    async with runtime.working():
        meanwhile.append(run)
        await _write(thread, "mine")
    assert await _log(thread) == [f"{made[0]}:0", f"{made[0]}:1", "mine"]


async def test_state_write_onto_an_old_checkpoint_branches_there(
    thread: UUID, meanwhile: list[Deed]
) -> None:
    old = await _write(thread, "old")
    meanwhile.append(lambda: _write(thread, "new"))
    await _write(thread, "branch", checkpoint_id=old["checkpoint_id"])
    assert await _log(thread) == ["old", "branch"]


async def test_supersteps_are_retried_only_before_the_first_is_written(
    thread: UUID, meanwhile: list[Deed]
) -> None:
    def supersteps(*entries: str) -> Any:
        return [{"updates": [{"values": {"log": [e]}, "as_node": "step"}]} for e in entries]

    async def nothing() -> None:
        """Let the read of the first superstep pass; the write comes after the second's."""

    meanwhile.append(lambda: _write(thread, "other"))
    await Threads.State.bulk(None, config=_at(thread), supersteps=supersteps("one", "two"))
    assert await _log(thread) == ["other", "one", "two"]
    meanwhile += [nothing, lambda: _write(thread, "between")]
    steps = deepcopy(supersteps("three", "four"))
    with pytest.raises(HTTPException, match="send the missing supersteps") as refused:
        await Threads.State.bulk(None, config=_at(thread), supersteps=steps)
    assert refused.value.status_code == 409
    assert await _log(thread) == ["other", "one", "two", "three", "between"]
