"""Long values: a thread shows its whole state, though its row leaves long lists to a checkpoint."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import checkpoint, json_codec
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.ops.runs.stream import final_event
from langgraph_runtime_sql.ops.threads import long_values
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.ops.threads.long_values import LONG
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.search import examined_search
from tests.support import runtime
from tests.support.operations import page, row

pytestmark = [
    pytest.mark.usefixtures("each_database", "settings"),
    pytest.mark.graphs("echo", "interrupt"),
]

WORDS = "A long conversation about storage. " * 40
NUMBER = LONG // len(WORDS) + 2


@pytest.fixture(autouse=True)
async def opened(tmp_path: Path) -> AsyncIterator[None]:
    async with runtime.opened(tmp_path / "long.db"):
        await runtime.register(["echo", "interrupt"])
        yield


def said(number: int = NUMBER) -> dict[str, Any]:
    return {
        "value": "short",
        "messages": [
            {"role": "user", "content": f"{n}. {WORDS}", "id": f"m{n}"} for n in range(number)
        ],
    }


async def talked(sent: dict[str, Any], thread: UUID | None = None) -> tuple[UUID, UUID]:
    """Return a thread with an ended run, and the run."""
    thread = thread or uuid4()
    async with runtime.working():
        made = await runtime.start_run(thread, "echo", sent)
        run = UUID(str(made["run_id"]))
        assert await runtime.ended(run) == "success"
    return thread, run


async def stored(thread: UUID) -> Row:
    found = await current().database.read(lambda conn: thread_rows.find(conn, thread))
    assert found is not None
    return found


async def state(thread: UUID) -> Any:
    found = await Threads.State.get(None, {"configurable": {"thread_id": str(thread)}})
    return json_codec.plain(found.values)


def is_whole(values: Any, thread_state: Any) -> bool:
    return bool(json.dumps(values, sort_keys=True) == json.dumps(thread_state, sort_keys=True))


async def test_row_leaves_out_long_lists_and_every_read_shows_them() -> None:
    thread, run = await talked(said())
    kept = await stored(thread)
    assert kept["values"].keys() == {"value", "count"}
    whole = await state(thread)
    assert len(whole["messages"]) == NUMBER + 1
    got = await row(Threads.get(None, thread))
    patched = await row(Threads.patch(None, thread, metadata={"a": "b"}))
    again = await row(Threads.put(None, thread, metadata={}, if_exists="do_nothing"))
    copied = await row(Threads.copy(None, thread))
    copy = await row(Threads.get(None, copied["thread_id"]))
    search: dict[str, Any] = {"metadata": {}, "values": {}, "status": None, "limit": 9, "offset": 0}
    found, _ = await page(Threads.search(None, **search))
    selected, _ = await page(Threads.search(None, **search, select=["values"]))
    shown = [got, patched, again, copied, copy, *found, *selected]
    assert len(shown) == 9
    assert all(is_whole(each["values"], whole) for each in shown)
    assert not any("long_values" in each for each in shown)
    last = await final_event(run)
    assert last is not None
    assert is_whole(json_codec.loads(last.data), whole)
    await row(Threads.delete(None, thread))
    copy = await row(Threads.get(None, copied["thread_id"]))
    assert is_whole(copy["values"], whole)


async def test_short_lists_stay_in_the_row() -> None:
    thread, _ = await talked(said(2))
    kept = await stored(thread)
    assert kept["long_values"] is None
    assert len(kept["values"]["messages"]) == 3


async def test_later_runs_and_updates_are_shown_and_deleted_state_is_not() -> None:
    thread, _ = await talked(said())
    await talked({"messages": [{"role": "user", "content": "more", "id": "more"}]}, thread)
    got = await row(Threads.get(None, thread))
    assert got["values"]["messages"][-2]["content"] == "more"
    at = {"configurable": {"thread_id": str(thread)}}
    cleared = [{"type": "remove", "id": "__remove_all__", "content": ""}]
    await Threads.State.post(None, at, {"messages": cleared})
    got = await row(Threads.get(None, thread))
    assert got["values"]["messages"] == []
    assert (await stored(thread))["long_values"] is None


async def test_whole_values_of_an_older_process_are_shown_as_they_are() -> None:
    thread, _ = await talked(said())
    newer = {"messages": [], "value": "newer"}

    def fn(conn: Connection) -> None:
        table = thread_rows.threads
        conn.execute(table.update().where(table.c.thread_id == thread).values(values=newer))

    await current().database.write(fn)
    assert (await row(Threads.get(None, thread)))["values"] == newer


async def test_deleted_checkpoint_gives_way_to_the_newest() -> None:
    thread, _ = await talked(said())
    whole = await state(thread)

    def fn(conn: Connection) -> None:
        table = thread_rows.threads
        about = {**(thread_rows.find(conn, thread) or {})["long_values"], "checkpoint_id": "gone"}
        conn.execute(table.update().where(table.c.thread_id == thread).values(long_values=about))

    await current().database.write(fn)
    assert is_whole((await row(Threads.get(None, thread)))["values"], whole)
    await current().database.write(lambda conn: checkpoint.delete_thread(conn, thread))
    long_values._read.clear()
    assert (await row(Threads.get(None, thread)))["values"].keys() == {"value", "count"}


async def test_search_compares_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    long, _ = await talked(said())
    short, _ = await talked(said(2))

    async def found(values: Any, **more: Any) -> set[UUID]:
        wanted = {"metadata": {}, "status": None, "values": values, **more}
        matches, _ = await page(Threads.search(None, limit=9, offset=0, **wanted))
        assert await Threads.count(None, **wanted) == len(matches)
        return {each["thread_id"] for each in matches}

    whole = {each: (await state(each))["messages"] for each in (long, short)}
    assert await found({"messages": whole[long]}) == {long}
    assert await found({"messages": whole[short]}) == {short}
    assert await found({"messages": whole[short][:2]}) == {long, short}
    assert await found({"messages": whole[long], "value": "short"}) == {long}
    assert await found({"messages": whole[long], "value": "other"}) == set()
    assert await found({"messages": [{"id": "m1"}]}) == {long, short}
    assert await found({"messages": whole[long][1:]}) == {long}
    assert await found({"messages": [{"id": "m1", "content": "other"}]}) == set()
    assert await found({"value": "short"}) == {long, short}
    await row(Threads.copy(None, long))
    monkeypatch.setattr(examined_search, "PAGE", 1)
    monkeypatch.setattr(examined_search, "EXAMINED", 1)
    with pytest.raises(HTTPException, match="at most 1 threads"):
        await found({"messages": [{"id": "none"}]})


async def test_encrypted_long_values_are_shown_and_kept_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from langgraph_api import config

    monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", b"0123456789abcdef" * 2)
    thread, _ = await talked(said())
    assert (await stored(thread))["long_values"]["keys"] == ["messages"]
    whole = await state(thread)
    assert is_whole((await row(Threads.get(None, thread)))["values"], whole)
    assert not any(place[0] == str(thread) for place in [*long_values._read._young])
