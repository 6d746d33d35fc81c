"""Checkpoints that are patches against earlier ones read as whole ones do, whatever happens to them."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, interrupt
from sqlalchemy import select

from langgraph_runtime_sql import patches
from langgraph_runtime_sql.checkpoint import (
    Checkpointer,
    chains,
    copy_thread,
    delete,
    delete_thread,
    examination,
    history,
    lines,
    prune_thread,
    reading,
    resealing,
    rows,
)
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import thread_checkpoints
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.errors import DamagedCheckpoint
from tests.support.checkpoints import runtime_database

pytestmark = pytest.mark.usefixtures("each_database", "settings")

THREAD = "11111111-1111-1111-1111-111111111111"
COPY = "22222222-2222-2222-2222-222222222222"
TEXT = "the quick brown fox jumps over the lazy dog " * 60


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "chains.db") as opened:
        yield opened


# --- the same graph on langgraph's saver and on ours ---


def append(state: list[str], writes: Any) -> list[str]:
    return [*state, *(each for write in writes for each in write)]


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    plain: list[Any]
    box: dict[str, Any]
    log: Annotated[list[str], DeltaChannel(append, snapshot_frequency=5)]
    edit: tuple[Any, ...]


def apply(state: State) -> dict[str, Any]:
    """Do the edit that the input asks for."""
    kind, *given = state["edit"]
    all_messages, plain, box = state["messages"], state.get("plain", []), state.get("box", {})
    at = given[0] % max(1, len(all_messages)) if given else 0
    text = f"{kind} {given} " * 20
    match kind:
        case "append":
            return {"messages": [AIMessage(text, id=f"{given}-{n}") for n in range(given[0] % 7)]}
        case "replace" if all_messages:
            return {"messages": [AIMessage(text, id=all_messages[at].id)]}
        case "remove" if all_messages:
            return {"messages": [RemoveMessage(id=str(all_messages[at].id))]}
        case "clear":
            kept = [HumanMessage(text, id="kept")]
            return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}
        case "change in place" if all_messages:
            all_messages[at].content = text
            all_messages[at].additional_kwargs["changed"] = {"deep": [given]}
            return {}
        case "grow":
            new = [{"n": n, "row": [text, {"deep": [n] * 50}]} for n in range(given[0] % 90)]
            return {"plain": plain[: at + 1] + new + plain[at + 1 :]}
        case "cut":
            return {"plain": plain[: len(plain) // 2]}
        case "nest":
            key = f"key {given[0] % 60}"
            return {"box": {**box, key: {"text": text * (given[0] % 40), "plain": plain[:9]}}}
        case "log":
            return {"log": [text] * (given[0] % 9)}
        case "ask":
            return {"messages": [AIMessage(f"{text} {interrupt('?')}", id=f"asked-{given}")]}
    return {}


def graph(saver: BaseCheckpointSaver[Any]) -> Any:
    inner = StateGraph(State).add_node("inner", apply).add_edge(START, "inner").compile()
    return (
        StateGraph(State)
        .add_node("apply", apply)
        .add_node("nested", inner)
        .add_conditional_edges(START, lambda s: "nested" if s["edit"][-1] % 4 == 0 else "apply")
        .compile(checkpointer=saver)
    )


KINDS = (
    *("append", "append", "append", "replace", "remove", "clear", "change in place", "grow"),
    *("cut", "nest", "log", "ask", "update", "fork"),
)
Step = tuple[str, int, str]


def plan(rng: random.Random, length: int) -> list[Step]:
    # In the background a change in place may come before or after the encoding.
    return [
        (rng.choice(KINDS), rng.randrange(1000), rng.choice(["sync", "exit"]))
        for _ in range(length)
    ]


def at(thread: str = THREAD, **configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **configurable}}


async def play(app: Any, steps: Sequence[Step]) -> None:
    for number, (kind, given, durability) in enumerate(steps):
        config = {"configurable": {"thread_id": THREAD}}
        if kind == "update":
            message = HumanMessage("updated " * 30, id=f"update-{given}")
            await app.aupdate_state(config, {"messages": [message]}, as_node="apply")
            continue
        if kind == "fork":
            past = [each.config async for each in app.aget_state_history(config)]
            config = past[given % len(past)] if past else config
            kind = "append"
        seed = HumanMessage(f"{number} says " * 40, id=f"human-{number}")
        said = {"messages": [seed], "edit": (kind, given)}
        await app.ainvoke(said, config, durability=durability)
        if kind == "ask" and (await app.aget_state(at())).next:
            await app.ainvoke(Command(resume="yes " * 20), at(), durability=durability)


async def states(app: Any, thread: str = THREAD) -> list[Any]:
    """Return all states in the bytes that the serializer makes of them."""
    serde = InMemorySaver().serde
    return [
        (
            serde.dumps_typed(each.values),
            each.next,
            each.metadata.get("step"),
            each.metadata.get("source"),
        )
        async for each in app.aget_state_history(at(thread))
    ]


async def broken(db: Database, thread: str = THREAD) -> list[Any]:
    return await db.read(lambda conn: list(examination.broken(conn, thread)))


@pytest.mark.parametrize("seed", range(5))
async def test_any_edits_read_as_from_langgraphs_saver(
    db: Database, seed: int, rng: random.Random
) -> None:
    steps = plan(random.Random(rng.random() + seed), 25)
    ours = graph(Checkpointer())
    await play(ours, steps)
    async with AsyncSqliteSaver.from_conn_string(":memory:") as stock:
        theirs = graph(stock)
        await play(theirs, steps)
        assert await states(ours) == await states(theirs)
    # Each state of a copy, and what pruning leaves, is what it was.
    before = await states(ours)
    await db.write(lambda conn: copy_thread(conn, THREAD, COPY))
    await db.write(lambda conn: prune_thread(conn, THREAD))
    assert (await states(ours))[0] == before[0]
    assert await states(ours, COPY) == before
    assert await broken(db) == await broken(db, COPY) == []
    await db.write(lambda conn: delete_thread(conn, THREAD))
    assert await stored(db) == []
    assert await states(ours, COPY) == before


# --- rows ---


async def stored(db: Database, thread: str = THREAD) -> list[Row]:
    """Return the rows of a thread's checkpoints, the oldest first."""
    c = thread_checkpoints.c
    query = select(thread_checkpoints).where(c.thread_id == thread).order_by(c.checkpoint_id)
    return await db.read(lambda conn: conn.fetchall(query))


def checkpoint(text: str, checkpoint_id: str | None = None) -> Checkpoint:
    made = empty_checkpoint()
    made["id"] = checkpoint_id or str(uuid6())
    made["channel_values"], made["channel_versions"] = {"text": text}, {"text": "1"}
    return made


async def put(saver: Checkpointer, text: str, parent: str | None, **fixed: Any) -> str:
    made = checkpoint(text, fixed.get("id"))
    place = at(fixed.get("thread", THREAD), **({"checkpoint_id": parent} if parent else {}))
    await saver.aput(place, made, {"source": "loop", "step": 1, "parents": {}}, {"text": "1"})
    return made["id"]


async def line(saver: Checkpointer, count: int, parent: str | None = None) -> list[str]:
    """Put checkpoints one after the other; return their ids."""
    ids: list[str] = []
    for number in range(count):
        parent = await put(saver, f"{TEXT} {number}", parent)
        ids.append(parent)
    return ids


async def texts(thread: str = THREAD) -> dict[str, str]:
    """Return the texts of all checkpoints by id, each read by itself."""
    found = [each async for each in Checkpointer().alist({"configurable": {"thread_id": thread}})]
    alone = {}
    for each in found:
        read = await Checkpointer().aget_tuple(each.config)
        assert read is not None
        assert read.checkpoint == each.checkpoint
        alone[each.checkpoint["id"]] = each.checkpoint["channel_values"]["text"]
    return alone


async def test_a_put_stores_what_is_new_and_changes_no_row(db: Database) -> None:
    saver = Checkpointer()
    ids = await line(saver, 40)
    before = await stored(db)
    # A new saver reads the line first.
    await line(Checkpointer(), 30, ids[-1])
    after = await stored(db)
    assert after[:40] == before
    assert all(len(each["value"]) < len(TEXT) / 4 for each in after[1:])
    assert [each["position"] for each in after] == list(range(70))
    assert after[64]["base_id"] == after[48]["checkpoint_id"]


async def test_a_fork_of_an_old_checkpoint_continues_its_line(db: Database) -> None:
    ids = await line(Checkpointer(), 40)
    expected = await texts()
    other = await line(Checkpointer(), 20, ids[7])
    found = {each["checkpoint_id"]: each for each in await stored(db)}
    assert [found[each]["position"] for each in other] == list(range(8, 28))
    assert found[other[0]]["base_id"] == ids[7]
    assert {k: v for k, v in (await texts()).items() if k in ids} == expected


@pytest.mark.parametrize("place", [39, 16, 3, 0], ids=["newest", "base of many", "middle", "first"])
async def test_the_same_id_put_again_replaces_only_itself(db: Database, place: int) -> None:
    ids = await line(Checkpointer(), 40)
    expected = await texts() | {ids[place]: "another text"}
    again = Checkpointer()
    await put(again, "another text", ids[place - 1] if place else None, id=ids[place])
    assert await texts() == expected
    assert await broken(db) == []
    await line(again, 3, ids[place])
    assert expected.items() <= (await texts()).items()


@pytest.mark.parametrize("count", [1, 5, 39])
async def test_deletion_in_the_middle_keeps_every_other_state(
    db: Database, count: int, rng: random.Random
) -> None:
    ids = await line(Checkpointer(), 40)
    other = await line(Checkpointer(), 5, ids[20])
    gone = rng.sample(ids, count)
    expected = {k: v for k, v in (await texts()).items() if k not in gone}
    await db.write(partial(delete, gone=[(THREAD, "", each) for each in gone]))
    assert await texts() == expected
    assert await broken(db) == []
    await line(Checkpointer(), 20, other[-1])
    assert expected.items() <= (await texts()).items()


async def test_pruning_keeps_one_whole_row(db: Database) -> None:
    ids = await line(Checkpointer(), 40)
    await db.write(lambda conn: prune_thread(conn, THREAD))
    [row] = await stored(db)
    assert (row["checkpoint_id"], row["base_id"], row["parent_id"]) == (ids[-1], None, None)
    assert list((await texts()).values()) == [f"{TEXT} 39"]
    await line(Checkpointer(), 20, ids[-1])
    assert len(await texts()) == 21


async def test_a_base_that_is_deleted_meanwhile_is_replaced(db: Database) -> None:
    """The saver still remembers the versions that its next one would be patched against."""
    saver = Checkpointer()
    ids = await line(saver, 32)
    gone = [(THREAD, "", each) for each in ids[:31]]
    await db.write(partial(delete, gone=gone))
    await line(saver, 3, ids[-1])
    assert await broken(db) == []
    assert len(await texts()) == 4


@pytest.mark.only("postgresql")  # A SQLite file has one writer.
async def test_writers_readers_and_deletions_at_once(db: Database) -> None:
    """No base is deleted under a patch that another transaction stores."""

    gone: set[str] = set()

    async def thin() -> None:
        for _ in range(30):
            found = [each["checkpoint_id"] for each in await stored(db)][:-6:3]
            gone.update(found)
            await db.write(partial(delete, gone=[(THREAD, "", each) for each in found]))

    async def read() -> None:
        for _ in range(30):
            damaged = [why for _, why in await broken(db) if "parent" not in why]
            assert damaged == []

    first, second, *_ = await asyncio.gather(
        line(Checkpointer(), 60), line(Checkpointer(), 60), thin(), read()
    )
    assert (await texts()).keys() == {*first, *second} - gone


async def test_a_key_rotated_inside_a_chain(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph_api import config

    ids = await line(Checkpointer(), 20)
    monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", b"0123456789abcdef")
    await line(Checkpointer(), 20, ids[-1])
    expected = await texts()
    kinds = {each["type"] for each in await stored(db)}
    assert kinds == {"msgpack+zstd", "msgpack+patch", "msgpack+patch+sealed"}
    # A copy is encrypted for its own thread, and the rest with the newest key.
    await db.write(lambda conn: copy_thread(conn, THREAD, COPY))
    await db.write(lambda conn: sum(step() for step in resealing.changes(conn, THREAD)))
    after = await stored(db)
    assert all(each["type"].endswith("+sealed") for each in after)
    assert not any(b"quick brown" in each["value"] for each in after)
    assert await texts() == await texts(COPY) == expected


async def test_a_page_far_back_in_a_long_history_decodes_little(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [str(uuid6()) for _ in range(5000)]

    def fill(conn: Connection) -> None:
        known: chains.Line = ()
        serde = Checkpointer().serde
        for number, each in enumerate(ids):
            data = serde.dumps_typed(checkpoint(f"{TEXT} {number}", each))[1]
            version, packed = chains.add(known, each, reading.packed({"step": number}, data))
            place, parent = (THREAD, "", each), ids[number - 1] if number else None
            row = history.row_of(place, parent, version, history.columns_of({}))
            value = {"type": reading.KIND + packed.suffix, "value": packed.data}
            rows.add(conn, {**row, **value}, packed.base)
            known = chains.extended(known, version)

    await db.write(fill)
    decoded: list[int] = []
    expanded = patches.expanded

    def counting(data: bytes, base: bytes | None = None) -> bytes:
        found = expanded(data, base)
        decoded.append(len(found))
        return found

    monkeypatch.setattr(patches, "expanded", counting)
    before = at(checkpoint_id=ids[4000])
    page = [each async for each in Checkpointer().alist(at(), before=before, limit=10)]
    assert [each.metadata["step"] for each in page] == list(range(3999, 3989, -1))
    # Those of the page, and the patches behind the oldest: 15 for each power of 16 at most.
    assert len(decoded) <= 10 + 3 * 15
    by_step = [each async for each in Checkpointer().alist(at(), filter={"step": 1000}, limit=1)]
    assert [each.checkpoint["id"] for each in by_step] == [ids[1000]]


@pytest.mark.parametrize("damage", ["missing", "changed"])
async def test_damage_is_an_error_that_names_thread_and_checkpoint(
    db: Database, damage: str
) -> None:
    ids = await line(Checkpointer(), 20)
    c = thread_checkpoints.c
    is_base = c.checkpoint_id == ids[16]
    if damage == "missing":
        harm: Any = thread_checkpoints.delete().where(is_base)
    else:
        harm = thread_checkpoints.update().where(is_base).values(value=patches.patch(b"x", b"y"))
    await db.write(lambda conn: conn.execute(harm))
    # As in a process that has not read the thread.
    lines.forget()
    with pytest.raises(DamagedCheckpoint, match=f"thread {THREAD} is damaged"):
        await Checkpointer().aget_tuple(at())
    found = dict(await broken(db))
    assert found.keys() >= {("", each) for each in ids[17:]}
    assert ids[3] not in {each for _, each in found}


async def test_other_ids_come_back_unchanged(db: Database) -> None:
    saver = Checkpointer()
    parent = None
    for number in range(3):
        parent = await put(saver, f"{number}", parent, thread="any text", id=f"id {number}")
    found = [each async for each in saver.alist({"configurable": {"thread_id": "any text"}})]
    assert [each.checkpoint["id"] for each in found] == ["id 2", "id 1", "id 0"]
    assert [
        (each.parent_config or {}).get("configurable", {}).get("checkpoint_id") for each in found
    ] == [
        *("id 1", "id 0"),
        None,
    ]
