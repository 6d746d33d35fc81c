"""The checkpoint saver with real graphs on both databases."""

import asyncio
import random
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID, uuid4

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    _msgpack_ext_hook_to_json,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from sqlalchemy import Table, func, select, update

from langgraph_runtime_sql.checkpoint import Checkpointer, reading, thread_storage
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import thread_checkpoints, thread_writes
from langgraph_runtime_sql.errors import DamagedCheckpoint, SupersededAttempt
from langgraph_runtime_sql.request_context import claim, write_guard
from tests.support.checkpoints import change_run, runtime_database, start_run, stored_rows

pytestmark = pytest.mark.usefixtures("each_database", "settings")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with runtime_database(path) as opened:
        yield opened


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def reply(state: Chat) -> dict[str, Any]:
    return {"messages": [AIMessage(f"You said {len(state['messages'])} things")]}


Builder = StateGraph[Any, Any, Any, Any]


def chat() -> Builder:
    builder: Builder = StateGraph(Chat)
    return builder.add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END)


def ask(state: Chat) -> dict[str, Any]:
    return {"messages": [AIMessage(f"Answered {interrupt('Well?')}")]}


def asking() -> Builder:
    builder: Builder = StateGraph(Chat)
    return builder.add_node("ask", ask).add_edge(START, "ask")


def say(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def at(thread_id: object, **configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **configurable}}


async def put(saver: Checkpointer, config: RunnableConfig, **metadata: Any) -> RunnableConfig:
    about: Any = {"source": "loop", "step": 1, "parents": {}, **metadata}
    return await saver.aput(config, empty_checkpoint(), about, {})


async def stored(db: Database, table: Table = thread_checkpoints) -> int:
    return int(await db.read(lambda conn: conn.scalar(select(func.count()).select_from(table))))


# --- graphs ---


async def test_thread_continues_after_a_restart(path: Path) -> None:
    for turn in range(1, 4):
        async with runtime_database(path):
            graph = chat().compile(checkpointer=Checkpointer())
            state = await graph.ainvoke(say("hello"), at("t"))
            assert len(state["messages"]) == 2 * turn


async def test_interrupt_waits_across_a_restart(path: Path) -> None:
    async with runtime_database(path):
        await asking().compile(checkpointer=Checkpointer()).ainvoke(say("hi"), at("t"))
    async with runtime_database(path):
        graph = asking().compile(checkpointer=Checkpointer())
        state = await graph.aget_state(at("t"))
        assert [each.value for each in state.interrupts] == ["Well?"]
        result = await graph.ainvoke(Command(resume="yes"), at("t"))
        assert result["messages"][-1].content == "Answered yes"


async def test_history_lists_all_steps_and_can_be_forked(db: Database) -> None:
    graph = chat().compile(checkpointer=Checkpointer())
    await graph.ainvoke(say("one"), at("t"))
    await graph.ainvoke(say("two"), at("t"))
    history = [each async for each in graph.aget_state_history(at("t"))]
    assert [each.metadata["step"] for each in history if each.metadata] == [4, 3, 2, 1, 0, -1]
    after_one = next(each for each in history if each.metadata and each.metadata["step"] == 1)
    forked = await graph.aupdate_state(after_one.config, say("other"))
    assert len((await graph.aget_state(forked)).values["messages"]) == 3


async def test_many_event_loops_share_the_database(db: Database) -> None:
    async def turns(name: str) -> None:
        graph = chat().compile(checkpointer=Checkpointer())
        for _ in range(5):
            await graph.ainvoke(say("x"), at(name))

    await asyncio.gather(
        *(asyncio.to_thread(asyncio.run, turns(f"t{number}")) for number in range(6))
    )
    graph = chat().compile(checkpointer=Checkpointer())
    for n in range(6):
        assert len((await graph.aget_state(at(f"t{n}"))).values["messages"]) == 10


async def test_blocking_calls_work_on_any_thread(db: Database) -> None:
    graph = chat().compile(checkpointer=Checkpointer())
    await asyncio.to_thread(graph.invoke, say("hello"), at("t"))
    # The calling thread runs an event loop, which is not the database's loop.
    graph.invoke(say("again"), at("t"))
    assert len(graph.get_state(at("t")).values["messages"]) == 4
    assert len(list(graph.get_state_history(at("t"), limit=3))) == 3
    saver = Checkpointer()
    saver.copy_thread("t", "u")
    saver.prune(["u"])
    assert len(list(saver.list(at("u")))) == 1
    saver.delete_thread("u")
    assert saver.get_tuple(at("u")) is None


async def test_thread_and_checkpoint_ids_may_be_uuids(db: Database) -> None:
    saver, thread = Checkpointer(), uuid4()
    config = await put(saver, at(thread))
    checkpoint_id = UUID(config["configurable"]["checkpoint_id"])
    found = await saver.aget_tuple(at(thread, checkpoint_id=checkpoint_id))
    assert found is not None
    child = await put(saver, at(thread, checkpoint_id=checkpoint_id))
    newest, oldest = [each async for each in saver.alist(at(thread))]
    assert newest.config == child
    assert newest.parent_config == oldest.config == config
    before = [each async for each in saver.alist(at(thread), before=newest.config)]
    assert [each.config for each in before] == [config]


# --- comparison with langgraph's saver ---


def call(state: Chat) -> dict[str, Any]:
    inner = asking().compile(checkpointer=True)
    return {"messages": inner.invoke({"messages": state["messages"]})["messages"][-1:]}


async def story(saver: BaseCheckpointSaver[str]) -> list[Any]:
    """Play turns, a pause in a subgraph, a fork and an answer; return what langgraph shows of them.

    What is random is left out: ids, dates, and the versions of channels but for their numbers.
    """
    builder: Builder = StateGraph(Chat)
    builder.add_sequence([("reply", reply), ("call", call)]).add_edge(START, "reply")
    graph = builder.compile(checkpointer=saver)
    about: RunnableConfig = {**at("t", user="me"), "metadata": {"label": "x"}}
    for answer in ("one", "two"):
        await graph.ainvoke(say("hello"), about)
        await graph.ainvoke(Command(resume=answer), about)
    await graph.ainvoke(
        say("forked"), [each async for each in graph.aget_state_history(about)][4].config
    )
    await graph.aupdate_state(about, say("updated"), as_node="reply")
    history = [each async for each in graph.aget_state_history(at("t"))]
    order = [each.config["configurable"]["checkpoint_id"] for each in history]
    shown: list[Any] = [
        (
            [(type(each), each.content) for each in state.values.get("messages", [])],
            state.next,
            {**(state.metadata or {}), "run_id": None},
            state.parent_config
            and order.index(state.parent_config["configurable"]["checkpoint_id"]),
            [(each.name, each.error, [i.value for i in each.interrupts]) for each in state.tasks],
        )
        for state in history
    ]
    listed = [each async for each in saver.alist(at("t"))]
    for each in listed:
        numbers = each.checkpoint["channel_versions"].items()
        versions = {channel: str(version).partition(".")[0] for channel, version in numbers}
        written = [(channel, type(value)) for _, channel, value in each.pending_writes or ()]
        shown.append((each.metadata, versions, written, each.checkpoint["updated_channels"]))
    within = [each async for each in saver.alist({"configurable": {"thread_id": "t"}})]
    calls = [each for each in within if each.config["configurable"]["checkpoint_ns"]]
    assert calls
    shown.append([(each.metadata or {}).get("step") for each in calls])
    return shown


async def test_graph_has_the_same_states_as_with_langgraphs_saver(db: Database) -> None:
    assert await story(Checkpointer()) == await story(InMemorySaver())


async def test_stored_checkpoint_does_not_change_with_its_object(db: Database) -> None:
    saver = Checkpointer()
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"]["items"] = items = [1]
    checkpoint["channel_versions"] = versions = {"items": "1"}
    # The coroutine runs later, and must store the value from the time of the call.
    task = asyncio.ensure_future(saver.aput(at("t"), checkpoint, {"source": "loop"}, versions))
    await asyncio.sleep(0)
    items.append(2)
    found = await saver.aget_tuple(await task)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"items": [1]}


# --- claims and guards ---


async def test_claimed_run_writes_while_its_attempt_is_current(db: Database) -> None:
    owner = await start_run(db)
    claim.set(owner)
    graph = chat().compile(checkpointer=Checkpointer())
    await graph.ainvoke(say("hello"), at("t"))
    run_ids = {each.metadata["run_id"] async for each in Checkpointer().alist(at("t"))}
    assert run_ids == {owner.run_id}


@pytest.mark.parametrize(
    "since", [{"attempt": 2}, {"status": "success"}, {"status": "pending"}, {"status": "error"}]
)
async def test_superseded_attempt_writes_nothing(db: Database, since: dict[str, Any]) -> None:
    owner = await start_run(db)
    claim.set(owner)
    saver = Checkpointer()
    config = await put(saver, at("t"))
    await change_run(db, owner.run_id, **since)
    with pytest.raises(SupersededAttempt, match=owner.run_id):
        await put(saver, config)
    with pytest.raises(SupersededAttempt):
        await saver.aput_writes(config, [("x", 1)], "task")
    with pytest.raises(SupersededAttempt):
        saver.put_writes(config, [("x", 1)], "task")
    assert (await stored(db), await stored(db, thread_writes)) == (1, 0)


async def test_superseded_attempt_fails_in_its_graph(db: Database) -> None:
    owner = await start_run(db)
    claim.set(owner)
    node_ran = asyncio.Event()

    async def slow(state: Chat) -> dict[str, Any]:
        node_ran.set()
        await change_run(db, owner.run_id, attempt=2)
        return say("too late")

    graph: Builder = StateGraph(Chat)
    graph.add_node("slow", slow).add_edge(START, "slow")
    with pytest.raises(SupersededAttempt):
        await graph.compile(checkpointer=Checkpointer()).ainvoke(say("go"), at("t"))
    assert node_ran.is_set()
    kept = [each async for each in Checkpointer().alist(at("t"))]
    assert all("too late" not in str(each) for each in kept)


async def test_deleted_run_writes_nothing(db: Database) -> None:
    claim.set(Claim(run_id=str(uuid4()), attempt=1))
    with pytest.raises(SupersededAttempt):
        await put(Checkpointer(), at("t"))
    assert await stored(db) == 0


class Refused(Exception):
    pass


async def test_guard_commits_or_rolls_back_with_its_write(db: Database) -> None:
    await db.write(lambda conn: conn.raw.execute("CREATE TABLE seen (n INTEGER)") and None)
    refuse = False

    def guard(conn: Connection, checkpoint_id: str | None) -> None:
        conn.raw.execute("INSERT INTO seen VALUES (1)")
        if refuse:
            raise Refused

    async def seen() -> int:
        counted = "SELECT count(*) FROM seen"
        return int(await db.read(lambda conn: conn.raw.execute(counted).fetchone()[0]))

    write_guard.set(guard)
    saver = Checkpointer()
    config = await put(saver, at("t"))
    await saver.aput_writes(config, [("x", 1)], "task")
    assert await seen() == 2
    refuse = True
    with pytest.raises(Refused):
        await put(saver, config)
    with pytest.raises(Refused):
        await saver.aput_writes(config, [("y", 1)], "other")
    assert (await seen(), await stored(db), await stored(db, thread_writes)) == (2, 1, 1)


async def test_refused_write_does_not_affect_concurrent_writes(db: Database) -> None:
    async def one(number: int) -> None:
        if number % 5 == 0:
            claim.set(Claim(run_id=str(uuid4()), attempt=1))
        await put(Checkpointer(), at(f"t{number}"))

    outcomes = await asyncio.gather(*(one(n) for n in range(50)), return_exceptions=True)
    assert [isinstance(each, SupersededAttempt) for each in outcomes] == [
        n % 5 == 0 for n in range(50)
    ]
    assert await stored(db) == 40


# --- metadata ---


async def test_checkpoint_metadata_is_merged_with_the_config(db: Database) -> None:
    saver = Checkpointer()
    config = at("t", graph_id="g", user_id="u", options={"a": [1, None]}, __internal=object())
    config["configurable"] |= {"langgraph_auth_user": object(), "langgraph_request_id": "r"}
    config["metadata"] = {"created_by": "me", "user_id": "metadata wins", "none": None}
    found = await saver.aget_tuple(await put(saver, config, run_id="from metadata"))
    assert found is not None
    assert found.metadata == {
        "graph_id": "g",
        "user_id": "metadata wins",
        "options": {"a": [1, None]},
        "created_by": "me",
        "none": None,
        "source": "loop",
        "step": 1,
        "parents": {},
        "run_id": "from metadata",
    }


async def test_run_cannot_write_under_another_run_id(db: Database) -> None:
    owner = await start_run(db)
    claim.set(owner)
    config = at("t", run_id=str(uuid4()))
    config["metadata"] = {"run_id": str(uuid4())}
    saver = Checkpointer()
    found = await saver.aget_tuple(await put(saver, config, run_id=str(uuid4())))
    assert found is not None
    assert found.metadata["run_id"] == owner.run_id


HOSTILE = [
    float("nan"),
    float("inf"),
    10**400,
    object(),
    {1: {2: 3}},
    {"a": object()},
    {"$": {'"': "'"}},
    "\ud800",
    "\x00",
    b"bytes",
    {"set"},
    uuid4(),
    [[]] * 3,
]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [*HOSTILE, nested(10_000), nested(900)], ids=lambda v: type(v).__name__
)
async def test_any_metadata_can_be_stored(db: Database, value: Any) -> None:
    saver = Checkpointer()
    config = at("t", odd=value)
    config["metadata"] = {"odd": value, "$.odd'\"": value, "": value}
    found = await saver.aget_tuple(await put(saver, config, run_id="r"))
    assert found is not None
    assert found.metadata["run_id"] == "r"
    assert await saver.aget_tuple(at("t")) is not None
    await saver.adelete_for_runs(["r"])
    assert await stored(db) == 0


# --- filters ---

FILTERS: list[dict[str, Any]] = [
    {"a": 1},
    {"a": 1, "b": "x"},
    {"a.b": 1},
    {"": 1},
    {"it's": 1},
    {'"': 1},
    {"$": 1},
    {"x') = 1 OR ('1": "1"},
    {"nested": {"deep": [1, {"x": None}]}},
    {"list": [1, 2]},
    {"flag": True},
    {"flag": False},
    {"missing": None},
    {"big": 2**70},
    {"float": 1.5},
    {"text": "1"},
    {"number": 1},
]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
async def test_filters_compare_json_for_equality(db: Database, wanted: dict[str, Any]) -> None:
    saver = Checkpointer()
    everything: dict[str, Any] = {key: value for each in FILTERS for key, value in each.items()}
    match = {**everything, "flag": wanted.get("flag", True)}
    ours = await put(saver, at("t"), **match)
    # Every entry differs from the match. `{"a": {"b": 1}}` must not match the key "a.b".
    await put(saver, at("t"), **{k: [v] for k, v in everything.items()} | {"a": {"b": 1}})
    found = [each.config async for each in saver.alist(at("t"), filter=wanted, limit=1)]
    assert found == [ours]
    nothing = {key: "no such value" for key in wanted}
    assert [each async for each in saver.alist(at("t"), filter=nothing)] == []


# --- untrusted data in the database ---


def poison(code: int, *payload: Any) -> bytes:
    inner = ormsgpack.Ext(code, ormsgpack.packb(payload))
    return ormsgpack.packb({"channel_values": {"x": inner}, "id": "i", "channel_versions": {}})


def poisoned_rows(target: Path) -> Iterator[tuple[str, bytes]]:
    folder = str(target)
    yield "msgpack", poison(EXT_CONSTRUCTOR_SINGLE_ARG, "os", "mkdir", folder)
    yield "msgpack", poison(EXT_CONSTRUCTOR_POS_ARGS, "os", "mkdir", [folder])
    yield "msgpack", poison(EXT_CONSTRUCTOR_KW_ARGS, "os", "mkdir", {"path": folder})
    yield "msgpack", poison(EXT_METHOD_SINGLE_ARG, "os", "path", folder, "mkdir")
    yield "msgpack", poison(EXT_PYDANTIC_V1, "os", "mkdir", {"path": folder})
    yield "msgpack", poison(EXT_PYDANTIC_V2, "os", "mkdir", {"path": folder}, "model_validate")
    yield "msgpack", poison(EXT_CONSTRUCTOR_SINGLE_ARG, "antigravity", "geohash", 1)
    lc = '{"lc": 2, "type": "constructor", "id": ["os", "mkdir"], "kwargs": {"path": "%s"}}'
    yield "json", (lc % folder).encode()
    yield "pickle", b"cos\nmkdir\n(V" + folder.encode() + b"\ntR."


async def forge(db: Database, table: Table, kind: str, value: bytes) -> None:
    others = {"size": len(value), "base_id": None} if table is thread_checkpoints else {}
    changed = update(table).values(type=kind, value=value, **others)
    await db.write(lambda conn: conn.execute(changed))


@pytest.mark.parametrize("row", range(9))
@pytest.mark.parametrize("hook", [None, _msgpack_ext_hook_to_json])
async def test_poisoned_row_imports_and_calls_nothing(
    db: Database, tmp_path: Path, row: int, hook: Any
) -> None:
    """GHSA-wwqv-p2pp-99h5, GHSA-g48c-2wqr-h844, GHSA-mhr3-j7m5-c7c9."""
    target = tmp_path / "victim"
    kind, blob = list(poisoned_rows(target))[row]
    config = await put(Checkpointer(), at("t"))
    await Checkpointer().aput_writes(config, [("x", 1)], "task")

    saver = Checkpointer(unpack_hook=hook)
    await forge(db, thread_writes, kind, blob)
    if kind == "pickle":
        with pytest.raises(ValueError, match=r"[Pp]ickle"):
            await saver.aget_tuple(at("t"))
    else:
        assert await saver.aget_tuple(at("t")) is not None
    await forge(db, thread_checkpoints, kind, reading.packed({}, blob))
    if kind == "msgpack":
        assert await saver.aget_tuple(at("t")) is not None
    else:
        with pytest.raises(DamagedCheckpoint):
            await saver.aget_tuple(at("t"))
    assert not target.exists()
    assert "antigravity" not in sys.modules


class Profile(BaseModel):
    name: str


class Typed(TypedDict):
    profile: Profile


async def test_custom_state_types_are_restored(db: Database) -> None:
    builder: Builder = StateGraph(Typed)
    builder.add_node("n", lambda state: {"profile": state["profile"]})
    graph = builder.add_edge(START, "n").compile(checkpointer=Checkpointer())
    await graph.ainvoke({"profile": Profile(name="Ada")}, at("t"))
    assert (await graph.aget_state(at("t"))).values == {"profile": Profile(name="Ada")}


@pytest.mark.parametrize("value", [threading.Lock(), nested(5_000)], ids=["object", "depth"])
async def test_state_that_cannot_be_stored_is_refused(db: Database, value: Any) -> None:
    saver = Checkpointer()
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"]["x"] = value
    with pytest.raises(ValueError, match="cannot be stored"):
        await saver.aput(at("t"), checkpoint, {"source": "loop"}, {"x": "1"})
    config = await put(saver, at("t"))
    with pytest.raises(ValueError, match="cannot be stored"):
        await saver.aput_writes(config, [("x", value)], "task")
    assert (await stored(db), await stored(db, thread_writes)) == (1, 0)


async def test_unpack_hook_keeps_delta_snapshots(db: Database) -> None:
    checkpoint = empty_checkpoint()
    when = UUID(int=7)
    checkpoint["channel_values"] |= {"delta": _DeltaSnapshot([when]), "plain": Profile(name="Ada")}
    checkpoint["channel_versions"] = versions = {"delta": "1", "plain": "1"}
    await Checkpointer().aput(at("t"), checkpoint, {"source": "loop"}, versions)
    found = await Checkpointer(unpack_hook=_msgpack_ext_hook_to_json).aget_tuple(at("t"))
    assert found is not None
    values = found.checkpoint["channel_values"]
    assert isinstance(values["delta"], _DeltaSnapshot)
    assert values == {"delta": _DeltaSnapshot([str(when)]), "plain": {"name": "Ada"}}


def test_custom_encryption_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph_api import config

    monkeypatch.setattr(config, "LANGGRAPH_ENCRYPTION", {"path": "./x.py:encryption"})
    with pytest.raises(NotImplementedError, match="encryption"):
        Checkpointer()


async def test_aes_key_encrypts_values(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph_api import config

    monkeypatch.setattr(config, "LANGGRAPH_AES_KEY", b"0123456789abcdef")
    graph = chat().compile(checkpointer=Checkpointer())
    await graph.ainvoke(say("a secret"), at("t"))
    state = await graph.aget_state(at("t"))
    assert state.values["messages"][0].content == "a secret"
    await Checkpointer().aprune(["t"])
    assert (await graph.aget_state(at("t"))).values == state.values

    found = await db.read(stored_rows)
    assert found["thread_checkpoints"]
    assert all(row["type"].endswith("+sealed") for each in found.values() for row in each)
    assert "secret" not in repr(found)


# --- storage ---


async def test_thread_storage_equals_the_stored_bytes(db: Database, rng: random.Random) -> None:
    graph = asking().compile(checkpointer=Checkpointer())
    for thread in ("t", "other"):
        await graph.ainvoke(say(rng.randbytes(500).hex()), at(thread))
    storage = await thread_storage(None, "t")

    found = await db.read(lambda conn: stored_rows(conn, "t"))
    row_bytes, write_bytes = (
        sum(len(row["value"]) for row in found[name])
        for name in ("thread_checkpoints", "thread_writes")
    )
    assert storage["total_bytes"] == row_bytes + write_bytes
    assert storage["pending_writes"]["bytes"] == write_bytes
    channels = storage["channel_values"]
    assert storage["checkpoints"]["bytes"] + channels["bytes"] == row_bytes
    assert storage["checkpoints"]["count"] == 2
    assert channels["by_channel"]["messages"]["versions"] == 1
    assert channels["by_channel"]["messages"]["bytes"] > 200
    assert channels["bytes"] == sum(each["bytes"] for each in channels["by_channel"].values())
    assert (await thread_storage(None, uuid4()))["total_bytes"] == 0
