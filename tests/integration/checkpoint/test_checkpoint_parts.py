"""Checkpoints in parts read as whole ones do, whatever happens to them."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, interrupt

from langgraph_runtime_sql.checkpoint import (
    Checkpointer,
    copy_thread,
    delete_thread,
    free_parts,
    missing_parts,
    prune_thread,
    resealing,
    thread_storage,
)
from langgraph_runtime_sql.checkpoint.parts import values
from langgraph_runtime_sql.checkpoint.sql import run
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.errors import DamagedCheckpoint
from tests.support.checkpoints import runtime_database

pytestmark = pytest.mark.usefixtures("each_database", "settings")

THREAD = "11111111-1111-1111-1111-111111111111"
COPY = "22222222-2222-2222-2222-222222222222"


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "parts.db") as opened:
        yield opened


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
            # The channel is written too, as Postgres's saver stores only versions that are new.
            return {"messages": []}
        case "change silently" if all_messages:
            all_messages[at].content = text
            return {}
        case "grow":
            rows = [{"n": n, "row": [text, {"deep": [n] * 50}]} for n in range(given[0] % 90)]
            return {"plain": plain[: at + 1] + rows + plain[at + 1 :]}
        case "reorder":
            return {"plain": plain[given[0] % 5 :] + plain[: given[0] % 5]}
        case "cut":
            return {"plain": plain[: len(plain) // 2]}
        case "nest":
            box = {
                **box,
                f"key {given[0] % 60}": {"text": text * (given[0] % 40), "plain": plain[:9]},
            }
            return {"box": box}
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
    *("reorder", "cut", "nest", "log", "ask", "update", "fork"),
)


def plan(rng: random.Random, length: int, others: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    return [
        (
            rng.choice(KINDS + others),
            rng.randrange(1000),
            # In the background a change in place may come before or after the encoding.
            rng.choice(["sync", "exit"]),
        )
        for _ in range(length)
    ]


def at(thread: str = THREAD, **configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **configurable}}


async def play(app: Any, steps: list[tuple[Any, ...]]) -> None:
    for number, (kind, given, durability) in enumerate(steps):
        config = at()
        if kind == "update":
            message = HumanMessage("updated " * 30, id=f"update-{given}")
            await app.aupdate_state(at(), {"messages": [message]}, as_node="apply")
            continue
        if kind == "fork":
            past = [each.config async for each in app.aget_state_history(at())]
            config = past[given % len(past)] if past else config
            kind = "append"
        seed = HumanMessage(f"{number} says " * 40, id=f"human-{number}")
        await app.ainvoke(
            {"messages": [seed], "edit": (kind, given)}, config, durability=durability
        )
        if kind == "ask" and (await app.aget_state(at())).next:
            await app.ainvoke(Command(resume="yes " * 20), at(), durability=durability)


async def history(app: Any, thread: str = THREAD) -> list[Any]:
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


@pytest.mark.parametrize("seed", range(6))
async def test_any_edits_read_as_from_the_stock_saver(
    db: Database, seed: int, rng: random.Random
) -> None:
    # The library's saver for Postgres does not store a change in place without a write.
    others = ("change silently",) * 2 if db.dialect_name == "sqlite" else ()
    steps = plan(random.Random(rng.random() + seed), 25, others)
    ours = graph(Checkpointer())
    await play(ours, steps)
    async with AsyncSqliteSaver.from_conn_string(":memory:") as stock:
        theirs = graph(stock)
        await play(theirs, steps)
        assert await history(ours) == await history(theirs)
    assert await count(db) > 0
    # Each state of a copy, and what pruning leaves, is what it was.
    before = await history(ours)
    await db.write(lambda conn: copy_thread(conn, THREAD, COPY))
    await db.write(lambda conn: prune_thread(conn, THREAD))
    assert (await history(ours))[0] == before[0]
    assert await history(ours, COPY) == before
    for thread in (THREAD, COPY):
        assert await db.write(lambda conn, thread=thread: free_parts(conn, thread)) == 0
        assert await db.read(lambda conn, thread=thread: missing_parts(conn, thread)) == set()
    await db.write(lambda conn: delete_thread(conn, THREAD))
    assert await count(db) == 0
    assert await history(ours, COPY) == before


async def count(db: Database, thread: str = THREAD) -> int:
    counted = "SELECT count(*) FROM checkpoint_parts WHERE thread_id = ?"
    found: int = await db.read(lambda conn: run(conn, counted, (thread,)).fetchone()[0])
    return found


async def talk(app: Any, turns: int, start: int = 0) -> None:
    for number in range(start, start + turns):
        await app.ainvoke(
            {
                "messages": [HumanMessage(f"{number} " * 100, id=f"h{number}")],
                "edit": ("append", 1),
            },
            at(),
        )


async def test_a_turn_stores_what_it_adds(db: Database) -> None:
    app = graph(Checkpointer())
    await talk(app, 40)
    before = await count(db)
    await talk(app, 1, 40)
    # Three checkpoints, each with a leaf or none and a path of nodes.
    assert await count(db) - before <= 15


async def test_older_whole_rows_are_read_and_continued(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = graph(Checkpointer())
    with monkeypatch.context() as older:
        older.setattr(values, "LONG", 2**60)
        await talk(app, 10)
        assert await count(db) == 0
    before = await history(app)
    await talk(app, 1, 10)
    assert await count(db) > 0
    assert (await history(app))[-len(before) :] == before


@pytest.mark.parametrize("damage", ["missing", "changed"])
async def test_damage_is_an_error_that_names_thread_and_checkpoint(
    db: Database, damage: str
) -> None:
    app = graph(Checkpointer())
    await talk(app, 10)
    newest = (await app.aget_state(at())).config["configurable"]["checkpoint_id"]

    def harm(conn: Connection) -> None:
        column = "value" if conn.dialect_name == "sqlite" else "blob"
        [(id_,), *_] = run(
            conn, "SELECT id FROM checkpoint_parts WHERE type <> 'node' ORDER BY id"
        ).fetchall()
        if damage == "missing":
            run(conn, "DELETE FROM checkpoint_parts WHERE id = ?", (id_,))
        else:
            run(conn, f"UPDATE checkpoint_parts SET {column} = ? WHERE id = ?", (b"\xc0", id_))

    await db.write(harm)
    # As in a process that has not read the value.
    values.contents.clear()
    named = f"checkpoint {newest} of thread {THREAD} is damaged"
    with pytest.raises(DamagedCheckpoint, match=named):
        await app.aget_state(at())
    expected = 1 if damage == "missing" else 0
    assert len(await db.read(lambda conn: missing_parts(conn, THREAD))) == expected


async def stored(db: Database, thread: str) -> list[tuple[bytes, str, bytes]]:
    def read(conn: Connection) -> list[tuple[bytes, str, bytes]]:
        statement = "SELECT id, type, {value} FROM checkpoint_parts WHERE thread_id = ? ORDER BY id"
        found = run(conn, statement, (thread,)).fetchall()
        return [(bytes(id_), kind, bytes(data)) for id_, kind, data in found]

    return await db.read(read)


async def test_encrypted_parts_tell_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph_api import config

    app = graph(Checkpointer())
    await talk(app, 5)
    plain = {id_ for id_, _, _ in await stored(db, THREAD)}
    before = await history(app)
    monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", b"0123456789abcdef")
    await talk(app, 5, 5)
    new = [each for each in await stored(db, THREAD) if each[0] not in plain]
    assert len(new) > 5
    assert all(kind.endswith("+sealed") for _, kind, _ in new)
    assert not any(b"7 7 7" in data for _, _, data in new)
    assert (await history(app))[-len(before) :] == before
    # Encrypting the rest, and another thread's copy, keep every state.
    before = await history(app)
    await db.write(lambda conn: sum(step() for step in resealing.changes(conn, THREAD)))
    assert all(kind.endswith("+sealed") for _, kind, _ in await stored(db, THREAD))
    await db.write(lambda conn: copy_thread(conn, THREAD, COPY))
    await db.write(lambda conn: prune_thread(conn, THREAD))
    assert await db.write(lambda conn: free_parts(conn, THREAD)) == 0
    assert (await history(app))[0] == before[0]
    await db.write(lambda conn: delete_thread(conn, THREAD))
    assert await history(app, COPY) == before
    await talk(app, 1)
    same = {id_ for id_, _, _ in await stored(db, THREAD)} & plain
    assert same == set()


@pytest.mark.only("postgresql")  # SQLite has one writer.
async def test_parts_are_not_freed_while_a_checkpoint_relies_on_them(db: Database) -> None:
    app = graph(Checkpointer())
    await talk(app, 12)
    for turn in range(12, 24):
        deletions = [
            db.write(lambda conn: prune_thread(conn, THREAD)),
            db.write(lambda conn: free_parts(conn, THREAD)),
        ]
        await asyncio.gather(talk(app, 1, turn), *deletions)
        assert await db.read(lambda conn: missing_parts(conn, THREAD)) == set()
    said = (await app.aget_state(at())).values["messages"]
    assert [each.id for each in said if each.type == "human"] == [f"h{n}" for n in range(24)]


@pytest.mark.only("postgresql")  # A SQLite file has one process.
async def test_older_database_stores_whole_values(db: Database) -> None:
    """Older processes could not read parts. Without the mark, none are written."""
    await db.write(lambda conn: run(conn, "COMMENT ON TABLE checkpoint_parts IS NULL"))
    await talk(graph(Checkpointer()), 10)
    assert await count(db) == 0


async def test_storage_counts_each_part_once(db: Database) -> None:
    app = graph(Checkpointer())
    await talk(app, 30)
    before = await thread_storage(None, THREAD)
    text = sum(len(str(each.content)) for each in (await app.aget_state(at())).values["messages"])
    by_channel = before["channel_values"]["by_channel"]
    assert 0 < by_channel["messages"]["bytes"] < before["total_bytes"] < 20 * text
    assert sum(each["bytes"] for each in by_channel.values()) == before["channel_values"]["bytes"]
    await db.write(lambda conn: delete_thread(conn, THREAD))
    assert (await thread_storage(None, THREAD))["total_bytes"] == 0
