"""Assistants, as langgraph_api calls them, on a real SQLite file."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.ops.assistants.assistants import (
    Assistants,
    get_assistant,
    retire_system_assistants,
    system_id,
)
from langgraph_runtime_sql.ops.crons.crons import Crons
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from tests.support.checkpoints import runtime_database
from tests.support.operations import Handlers, owned, page, row, rows, user

GRAPHS = ("echo", "steps")
ANN, BOB = user("ann"), user("bob")


pytestmark = pytest.mark.usefixtures("each_database", "settings")


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the graphs of this server."""
    from langgraph_api import graph

    graphs: dict[str, Any] = dict.fromkeys(GRAPHS)
    monkeypatch.setattr(graph, "GRAPHS", graphs)
    monkeypatch.setattr(graph, "SYSTEM_ASSISTANT_IDS", {str(system_id(name)) for name in GRAPHS})
    return graphs


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "assistants.db") as opened:
        yield opened


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> Handlers:
    return Handlers().install(monkeypatch)


async def create(**fields: Any) -> dict[str, Any]:
    """Create an assistant, of `echo` by default."""
    wanted: dict[str, Any] = {
        "graph_id": "echo",
        "config": {},
        "context": None,
        "metadata": {},
        "if_exists": "raise",
        "name": "Untitled",
        **fields,
    }
    created: dict[str, Any] = await row(
        Assistants.put(None, wanted.pop("assistant_id", uuid4()), **wanted)
    )
    return created


async def register(graph_id: str, **fields: Any) -> dict[str, Any]:
    """Register a graph's system assistant, as langgraph_api does at each start."""
    return await create(
        assistant_id=str(system_id(graph_id)),
        graph_id=graph_id,
        metadata={"created_by": "system"},
        context={},
        if_exists="do_nothing",
        system=True,
        **{"name": graph_id, **fields},
    )


async def search(**asked: Any) -> tuple[list[Any], int | None]:
    wanted = {"graph_id": None, "name": None, "metadata": None, "limit": 100, "offset": 0, **asked}
    return await page(Assistants.search(None, **wanted))


async def names(**asked: Any) -> list[str]:
    found, _ = await search(**asked)
    return [each["name"] for each in found]


async def versions(assistant_id: Any, **asked: Any) -> list[Any]:
    wanted = {"metadata": None, "limit": 100, "offset": 0, **asked}
    return await rows(Assistants.get_versions(None, assistant_id, **wanted))


async def refusal(operation: Any) -> tuple[int, str]:
    """Await an operation that must be refused. Return the status and the detail."""
    with pytest.raises(HTTPException) as caught:
        await operation
    return caught.value.status_code, caught.value.detail


# --- creation ---------------------------------------------------------------


async def test_new_assistant_reads_back_as_the_answer_shows_it(db: Database) -> None:
    wanted = uuid4()
    created = await create(
        assistant_id=str(wanted), name="Mine", description="d", metadata={"a": [1, None, "é"]}
    )
    assert created == await row(Assistants.get(None, wanted))
    assert created == await row(Assistants.get(None, str(wanted)))
    assert created == await db.read(lambda conn: get_assistant(conn, wanted))
    moment = created.pop("created_at")
    assert moment.tzinfo is UTC and (datetime.now(UTC) - moment).total_seconds() < 60
    assert created == {
        "assistant_id": wanted,
        "graph_id": "echo",
        "name": "Mine",
        "description": "d",
        "config": {},
        "context": {},
        "metadata": {"a": [1, None, "é"]},
        "version": 1,
        "updated_at": moment,
    }


@pytest.mark.parametrize(
    ("given", "config", "context"),
    [
        ({}, {}, {}),
        ({"config": {"tags": ["t"]}}, {"tags": ["t"]}, {}),
        (
            {"config": {"tags": ["t"], "configurable": {"a": 1}}},
            {"tags": ["t"], "configurable": {"a": 1}},
            {"a": 1},
        ),
        (
            {"config": {"tags": ["t"]}, "context": {"b": 2}},
            {"tags": ["t"], "configurable": {"b": 2}},
            {"b": 2},
        ),
        (
            {"config": {"configurable": {}}, "context": {"b": 2}},
            {"configurable": {"b": 2}},
            {"b": 2},
        ),
    ],
)
async def test_config_and_context_mirror_each_other_in_an_assistant(
    db: Database, given: dict[str, Any], config: dict[str, Any], context: dict[str, Any]
) -> None:
    created = await create(**given)
    assert (created["config"], created["context"]) == (config, context)


async def test_configurable_together_with_context_is_refused_with_400(db: Database) -> None:
    both: dict[str, Any] = {"config": {"configurable": {"a": 1}}, "context": {"b": 2}}
    status, detail = await refusal(create(**both))
    assert status == 400 and "context" in detail
    made = await create()
    assert (await refusal(Assistants.patch(None, made["assistant_id"], **both)))[0] == 400
    assert len(await versions(made["assistant_id"])) == 1


async def test_taken_assistant_id_is_409_or_returns_the_existing_assistant(db: Database) -> None:
    first = await create(name="first")
    again = {"assistant_id": first["assistant_id"], "name": "second", "graph_id": "steps"}
    assert (await refusal(create(**again)))[0] == 409
    assert await create(**again, if_exists="do_nothing") == first
    assert await row(Assistants.get(None, first["assistant_id"])) == first


async def test_bad_input_is_refused_and_stores_nothing(db: Database) -> None:
    made = await create()
    key = made["assistant_id"]
    assert (await refusal(create(graph_id="nowhere")))[0] == 404
    assert (await refusal(Assistants.patch(None, key, graph_id="nowhere")))[0] == 404
    assert (await refusal(search(graph_id="nowhere")))[0] == 404
    assert (await refusal(Assistants.count(None, graph_id="nowhere")))[0] == 404
    assert (await refusal(Assistants.get(None, "not-an-id")))[0] == 422
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": deep}
    assert (await refusal(create(metadata=deep)))[0] == 422
    assert await Assistants.count(None) == 1


@pytest.mark.parametrize("missing", [uuid4(), str(uuid4())], ids=["uuid", "text"])
async def test_missing_assistant_is_404(db: Database, missing: Any) -> None:
    assert await rows(Assistants.get(None, missing)) == []
    for operation in (
        Assistants.patch(None, missing, name="n"),
        Assistants.set_latest(None, missing, 1),
        versions(missing),
    ):
        assert await refusal(operation) == (404, f"Assistant {missing} not found")
    for delete_threads in (False, True):
        deletion = Assistants.delete(None, missing, delete_threads=delete_threads)
        assert await refusal(deletion) == (404, f"Assistant with ID {missing} not found")


# --- versions ---------------------------------------------------------------


async def test_patch_keeps_fields_it_does_not_name(db: Database) -> None:
    made = await create(
        name="old", description="d", metadata={"a": 1, "b": {"c": 1}}, config={"tags": ["t"]}
    )
    key = made["assistant_id"]
    changed = await row(Assistants.patch(None, str(key), metadata={"b": {"d": 2}, "e": 3}))
    assert changed["metadata"] == {"a": 1, "b": {"d": 2}, "e": 3}
    assert changed["version"] == 2
    assert changed["updated_at"] > made["updated_at"]
    same = ("assistant_id", "graph_id", "name", "description", "config", "context", "created_at")
    assert {name: changed[name] for name in same} == {name: made[name] for name in same}
    renamed = await row(Assistants.patch(None, key, name="new", graph_id="steps", description=""))
    assert (renamed["name"], renamed["graph_id"], renamed["description"]) == ("new", "steps", "")
    assert renamed["metadata"] == changed["metadata"]
    assert renamed == await row(Assistants.get(None, key))


async def test_patch_keeps_config_and_context_equal(db: Database) -> None:
    made = await create(config={"tags": ["t"], "configurable": {"a": 1}})

    async def patched(**given: Any) -> tuple[Any, Any]:
        changed = await row(Assistants.patch(None, made["assistant_id"], **given))
        return changed["config"], changed["context"]

    assert await patched(context={"b": 2}) == ({"tags": ["t"], "configurable": {"b": 2}}, {"b": 2})
    assert await patched(config={"configurable": {"c": 3}}) == (
        {"configurable": {"c": 3}},
        {"c": 3},
    )
    assert await patched(name="n") == ({"configurable": {"c": 3}}, {"c": 3})
    assert await patched(context={}) == ({}, {})


async def test_setting_a_version_restores_every_field(db: Database) -> None:
    made = await create(name="one", metadata={"n": 1}, context={"a": 1}, config={"tags": ["t"]})
    key = made["assistant_id"]
    await rows(
        Assistants.patch(
            None,
            key,
            name="two",
            description="second",
            graph_id="steps",
            context={"b": 2},
            metadata={"m": 2},
        )
    )
    back = await row(Assistants.set_latest(None, key, 1))
    assert {**back, "updated_at": None} == {**made, "updated_at": None}
    assert back == await row(Assistants.get(None, key))
    # The next version follows the last one there is, not the current one.
    assert (await row(Assistants.patch(None, key, name="three")))["version"] == 3
    assert [each["version"] for each in await versions(key)] == [3, 2, 1]


@pytest.mark.parametrize("version", [0, 2, -1, None])
async def test_missing_version_is_404(db: Database, version: int | None) -> None:
    made = await create()
    key = made["assistant_id"]
    assert (await refusal(Assistants.set_latest(None, key, version)))[0] == 404
    assert await row(Assistants.get(None, key)) == made


async def test_versions_come_newest_first_in_pages(db: Database) -> None:
    key = (await create(name="v1", metadata={"n": 1}))["assistant_id"]
    for n in (2, 3):
        await rows(Assistants.patch(None, key, name=f"v{n}", metadata={"n": n}))
    assert [each["name"] for each in await versions(key)] == ["v3", "v2", "v1"]
    assert [each["name"] for each in await versions(key, limit=1, offset=1)] == ["v2"]
    assert [each["name"] for each in await versions(key, metadata={"n": 1})] == ["v1"]
    assert await versions(key, metadata={"n": 4}) == []
    assert set((await versions(key))[0]) == {
        "assistant_id",
        "version",
        "graph_id",
        "name",
        "description",
        "config",
        "context",
        "metadata",
        "created_at",
    }


async def test_concurrent_patches_each_make_a_version(db: Database) -> None:
    key = (await create())["assistant_id"]
    patches = [Assistants.patch(None, key, metadata={f"key{n}": n}) for n in range(20)]
    answered = [(await row(patch))["version"] for patch in patches[:1]]
    answered += [
        each["version"]
        for found in await asyncio.gather(*(rows(patch) for patch in patches[1:]))
        for each in found
    ]
    assert sorted(answered) == list(range(2, 22))
    # No patch overwrote the metadata that another merged.
    current = await row(Assistants.get(None, key))
    assert current["metadata"] == {f"key{n}": n for n in range(20)}


# --- search -----------------------------------------------------------------


@pytest.fixture
async def several(db: Database) -> None:
    for name, graph, kind in (("Berta", "echo", 1), ("anton", "steps", 2), ("Émile", "echo", 2)):
        await create(name=name, graph_id=graph, metadata={"kind": kind, "deep": {"of": [1, 2]}})


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["Émile", "anton", "Berta"]),
        ({"graph_id": "echo"}, ["Émile", "Berta"]),
        ({"metadata": {"kind": 2}}, ["Émile", "anton"]),
        ({"metadata": {"kind": "2"}}, []),
        ({"metadata": {"kind": True}}, []),
        ({"metadata": {"deep": {"of": [1, 2]}}}, ["Émile", "anton", "Berta"]),
        ({"metadata": {"deep": {"of": [2]}}}, ["Émile", "anton", "Berta"]),
        ({"metadata": {"deep": {"of": [1, 3]}}}, []),
        ({"metadata": {"deep": {"of": 1}}}, []),
        ({"name": "ANT"}, ["anton"]),
        ({"name": "éMI"}, ["Émile"]),
        ({"name": "r", "graph_id": "echo"}, ["Berta"]),
        ({"name": "%"}, []),
        ({"name": "_"}, []),
        ({"name": "\\"}, []),
        ({"name": "' OR 1=1 --"}, []),
        ({"name": "x" * 100_000}, []),
        ({"metadata": {"' OR 1=1 --": 1}}, []),
        ({"metadata": {"\x00": "\x00"}}, []),
    ],
)
async def test_search_and_count_agree(
    several: None, asked: dict[str, Any], found: list[str]
) -> None:
    assert await names(**asked) == found
    assert await Assistants.count(None, **asked) == len(found)


async def test_name_search_takes_wildcards_literally(db: Database) -> None:
    for name in ("50% off", "a_b", "aXb", "back\\slash"):
        await create(name=name)
    assert await names(name="%") == ["50% off"]
    assert await names(name="A_B") == ["a_b"]
    assert await names(name="\\") == ["back\\slash"]


@pytest.mark.parametrize(
    ("sort_by", "sort_order", "found"),
    [
        ("name", "asc", ["anton", "Berta", "Émile"]),
        ("name", "ASC", ["anton", "Berta", "Émile"]),
        ("NAME", "desc", ["Émile", "Berta", "anton"]),
        ("name", None, ["Émile", "Berta", "anton"]),
        ("graph_id", "asc", ["Berta", "Émile", "anton"]),
        ("graph_id", "desc", ["anton", "Berta", "Émile"]),
        ("created_at", "asc", ["Berta", "anton", "Émile"]),
        ("updated_at", "sideways", ["Émile", "anton", "Berta"]),
        (None, "asc", ["Émile", "anton", "Berta"]),
    ],
)
async def test_search_sorts_by_each_field(
    several: None, sort_by: str | None, sort_order: str | None, found: list[str]
) -> None:
    assert await names(sort_by=sort_by, sort_order=sort_order) == found


async def test_search_sorts_by_id_and_refuses_unknown_fields_with_422(several: None) -> None:
    found, _ = await search(sort_by="assistant_id", sort_order="asc")
    ids = [each["assistant_id"] for each in found]
    assert ids == sorted(ids)
    assert (await refusal(search(sort_by="metadata; DROP TABLE assistants")))[0] == 422


async def test_search_returns_pages_and_a_cursor(several: None) -> None:
    cursors, seen = [], []
    offset: int | None = 0
    while offset is not None:
        found, cursor = await search(limit=1, offset=offset)
        seen += [each["name"] for each in found]
        cursors.append(cursor)
        offset = cursor
    assert (seen, cursors) == (["Émile", "anton", "Berta"], [1, 2, None])
    assert await search(limit=3) == await search()
    assert await search(offset=3) == ([], None)


async def test_search_returns_only_selected_fields(several: None) -> None:
    found, _ = await search(select=["name", "version"], name="anton")
    assert found == [{"name": "anton", "version": 1}]


async def test_assistants_of_graphs_this_server_lacks_are_not_listed(
    several: None, served: dict[str, Any]
) -> None:
    del served["steps"]
    assert await names() == ["Émile", "Berta"]
    assert await Assistants.count(None) == 2
    served["steps"] = None
    assert await Assistants.count(None) == 3


async def test_changing_a_returned_row_does_not_change_the_stored_one(db: Database) -> None:
    made = await create(metadata={"a": 1})
    for found in (
        made,
        (await search())[0][0],
        await row(Assistants.get(None, made["assistant_id"])),
    ):
        found["metadata"]["leak"] = True
    assert (await row(Assistants.get(None, made["assistant_id"])))["metadata"] == {"a": 1}


# --- deletion ---------------------------------------------------------------


async def queue_run(assistant_id: UUID, thread_id: UUID | None = None) -> dict[str, Any]:
    """Queue a run; no worker takes it in these tests."""
    queued: dict[str, Any] = await row(
        Runs.put(
            None,
            assistant_id,
            {"input": {}},
            thread_id=thread_id,
            metadata={},
            prevent_insert_if_inflight=False,
            if_not_exists="create",
        )
    )
    return queued


async def schedule(assistant_id: UUID) -> dict[str, Any]:
    created: dict[str, Any] = await row(
        Crons.put(
            None,
            payload={"assistant_id": str(assistant_id)},
            schedule="0 0 1 1 *",
            enabled=True,
        )
    )
    return created


async def test_deleted_assistant_loses_versions_and_crons_and_its_runs_stop(db: Database) -> None:
    doomed, other = await create(), await create()
    key = doomed["assistant_id"]
    await rows(Assistants.patch(None, key, name="second"))
    run, others = await queue_run(key), await queue_run(other["assistant_id"])
    await schedule(key)
    kept = await schedule(other["assistant_id"])
    assert await rows(Assistants.delete(None, str(key))) == [key]
    assert await rows(Assistants.get(None, key)) == []
    assert await db.read(lambda conn: get_assistant(conn, key)) is None
    assert (await refusal(versions(key)))[0] == 404
    crons, _ = await page(
        Crons.search(None, assistant_id=None, thread_id=None, enabled=None, limit=10, offset=0)
    )
    assert [each["cron_id"] for each in crons] == [kept["cron_id"]]
    ended = await row(Runs.get(None, run["run_id"], thread_id=run["thread_id"]))
    assert ended["status"] == "interrupted"
    waiting = await row(Runs.get(None, others["run_id"], thread_id=others["thread_id"]))
    assert waiting["status"] == "pending"
    # The id is free again; a new assistant starts at version 1.
    assert (await create(assistant_id=key))["version"] == 1


async def test_deleting_an_assistant_with_threads_spares_other_users_threads(
    db: Database, handlers: Handlers
) -> None:
    key = (await create())["assistant_id"]
    metadata = {"assistant_id": str(key)}
    ids = {name: uuid4() for name in ("mine", "refused", "another's", "other")}
    for name, thread_id in ids.items():
        await rows(
            Threads.put(
                None,
                thread_id,
                metadata={} if name == "other" else metadata | {"owner": name},
                if_exists="raise",
            )
        )

    def policy(name: str, event: str, value: dict[str, Any]) -> Any:
        if event != "threads.delete":
            return None
        if value["thread_id"] == ids["refused"]:
            raise HTTPException(403, "not this one")
        return {"owner": "mine"}

    handlers.policy = policy
    assert await rows(Assistants.delete(None, key, ctx=ANN, delete_threads=True)) == [key]
    found, _ = await page(
        Threads.search(None, metadata={}, values={}, status=None, limit=10, offset=0)
    )
    assert {each["thread_id"] for each in found} == set(ids.values()) - {ids["mine"]}


async def test_deleting_an_assistant_keeps_its_threads_by_default(db: Database) -> None:
    key = (await create())["assistant_id"]
    run = await queue_run(key)
    await rows(Assistants.delete(None, key))
    assert (await row(Threads.get(None, run["thread_id"])))["thread_id"] == run["thread_id"]


# --- authorization ----------------------------------------------------------


async def test_each_operation_calls_its_authorization_handler(
    db: Database, handlers: Handlers
) -> None:
    wanted = uuid4()
    given: dict[str, Any] = {
        "graph_id": "echo",
        "config": {},
        "context": {},
        "metadata": {},
        "name": "n",
    }
    await rows(Assistants.put(None, wanted, **given, if_exists="raise", ctx=ANN))
    await rows(Assistants.get(None, wanted, ctx=ANN))
    await page(
        Assistants.search(
            None, graph_id="echo", name=None, metadata={"a": 1}, limit=3, offset=2, ctx=ANN
        )
    )
    await Assistants.count(None, metadata={"a": 1}, ctx=ANN)
    await rows(Assistants.patch(None, wanted, name="m", ctx=ANN))
    await rows(Assistants.set_latest(None, wanted, 1, ctx=ANN))
    await rows(Assistants.get_versions(None, wanted, {}, 10, 0, ctx=ANN))
    await rows(Assistants.delete(None, wanted, ctx=ANN))
    assert all(name == "ann" for name, _, _ in handlers.asked)
    assert [(event, value) for _, event, value in handlers.asked if event[:4] == "assi"] == [
        ("assistants.create", {"assistant_id": wanted, **given}),
        ("assistants.read", {"assistant_id": wanted}),
        ("assistants.search", {"graph_id": "echo", "metadata": {"a": 1}, "limit": 3, "offset": 2}),
        ("assistants.search", {"graph_id": None, "metadata": {"a": 1}, "limit": 0, "offset": 0}),
        (
            "assistants.update",
            {
                "assistant_id": wanted,
                "graph_id": None,
                "config": {},
                "context": None,
                "metadata": {},
                "name": "m",
            },
        ),
        ("assistants.update", {"assistant_id": wanted, "version": 1}),
        ("assistants.read", {"assistant_id": wanted}),
        ("assistants.delete", {"assistant_id": wanted}),
    ]


async def test_other_users_cannot_read_or_change_a_row(db: Database, handlers: Handlers) -> None:
    handlers.policy = owned
    made = await create(ctx=ANN, metadata={"a": 1})
    assert made["metadata"] == {"a": 1, "owner": "ann"}
    key = made["assistant_id"]
    assert await rows(Assistants.get(None, key, ctx=BOB)) == []
    assert await search(ctx=BOB) == ([], None)
    assert await Assistants.count(None, ctx=BOB) == 0
    assert await versions(key, ctx=BOB) == []
    for operation in (
        Assistants.patch(None, key, name="n", ctx=BOB),
        Assistants.set_latest(None, key, 1, ctx=BOB),
        Assistants.delete(None, key, ctx=BOB),
        Assistants.delete(None, key, ctx=BOB, delete_threads=True),
    ):
        assert (await refusal(operation))[0] == 404
    for if_exists in ("raise", "do_nothing"):
        taken = create(assistant_id=key, if_exists=if_exists, ctx=BOB)
        assert (await refusal(taken))[0] == 409
    assert await row(Assistants.get(None, key, ctx=ANN)) == made
    assert [each["assistant_id"] for each in (await search(ctx=ANN))[0]] == [key]
    assert await Assistants.count(None, ctx=ANN) == 1


async def test_each_version_is_visible_to_its_own_owner_only(
    db: Database, handlers: Handlers
) -> None:
    key = (await create(metadata={"owner": "ann"}))["assistant_id"]
    await rows(Assistants.patch(None, key, metadata={"owner": "bob"}))
    handlers.policy = owned
    assert [each["version"] for each in await versions(key, ctx=ANN)] == [1]
    assert [each["version"] for each in await versions(key, ctx=BOB)] == [2]


async def test_metadata_set_by_a_handler_is_stored_and_searched(
    db: Database, handlers: Handlers
) -> None:
    def policy(name: str, event: str, value: dict[str, Any]) -> None:
        if "metadata" in value:
            value["metadata"]["owner"] = name

    handlers.policy = policy
    made = await create(ctx=ANN)
    await create(ctx=BOB)
    assert made["metadata"] == {"owner": "ann"}
    assert (await search(ctx=ANN))[0] == [made]
    assert await Assistants.count(None, ctx=ANN) == 1
    # A handler may also replace the metadata object.
    handlers.policy = lambda name, event, value: value.update(metadata={"owner": "nobody"})
    assert (await create(ctx=ANN))["metadata"] == {"owner": "nobody"}
    patched = await row(Assistants.patch(None, made["assistant_id"], ctx=ANN))
    assert patched["metadata"] == {"owner": "nobody"}


@pytest.mark.parametrize("filters", [{"a": {"$regex": "."}}, {"$not": {"a": 1}}, {"$or": [{}]}])
async def test_unknown_filter_operator_is_500_for_assistants(
    db: Database, handlers: Handlers, filters: dict[str, Any]
) -> None:
    key = (await create(metadata={"a": "x"}))["assistant_id"]
    handlers.policy = lambda name, event, value: filters
    for operation in (
        Assistants.get(None, key, ctx=ANN),
        search(ctx=ANN),
        Assistants.count(None, ctx=ANN),
        versions(key, ctx=ANN),
        Assistants.patch(None, key, name="n", ctx=ANN),
        Assistants.delete(None, key, ctx=ANN),
    ):
        assert (await refusal(operation))[0] == 500
    assert await row(Assistants.get(None, key))


# --- the graphs' own assistants ---------------------------------------------


async def test_restarts_do_not_add_versions(db: Database, served: dict[str, Any]) -> None:
    """langgraph_api's registration puts an assistant, then patches the fields that differ."""
    from langgraph_api.graph import register_graph

    async def start(description: str | None) -> list[tuple[int, str | None]]:
        await register_graph("echo", object(), {"tags": ["t"]}, description=description)
        found = await versions(system_id("echo"))
        return [(each["version"], each["description"]) for each in found]

    assert await start("first") == [(1, "first")]
    assert await start("first") == [(1, "first")]
    # A description that the configuration no longer has is removed.
    for _ in range(3):
        assert await start(None) == [(2, None), (1, "first")]
    assert await start("third") == [(3, "third"), (2, None), (1, "first")]
    current = await row(Assistants.get(None, system_id("echo")))
    assert (current["version"], current["description"]) == (3, "third")
    assert current["config"] == {"tags": ["t"]}
    assert current["metadata"] == {"created_by": "system"}


async def test_client_changes_of_a_system_assistant_survive_a_restart(db: Database) -> None:
    key = (await register("echo"))["assistant_id"]
    await rows(Assistants.patch(None, key, context={"a": 1}, metadata={"m": 1}, name="theirs"))
    again = await register("echo")
    assert (again["name"], again["context"]) == ("echo", {"a": 1})
    assert again["metadata"] == {"created_by": "system", "m": 1}


async def test_new_graph_takes_over_an_assistant_that_holds_its_id(db: Database) -> None:
    """A user who guesses the id of a future graph must not control its configuration."""
    future = system_id("future")
    await create(assistant_id=future, context={"evil": True}, metadata={"owner": "mallory"})
    from langgraph_api import graph

    graph.GRAPHS["future"] = None
    registered = await register("future")
    assert registered["graph_id"] == "future"
    assert registered["context"] == {} and registered["config"] == {}
    assert registered["metadata"] == {"created_by": "system"}
    assert registered == await row(Assistants.get(None, future))


async def test_registering_a_graph_calls_no_authorization_handler(
    db: Database, handlers: Handlers
) -> None:
    def refuse(name: str, event: str, value: dict[str, Any]) -> None:
        raise HTTPException(403, "no")

    handlers.policy = refuse
    await register("echo", ctx=ANN)
    assert handlers.asked == []


async def test_unused_system_assistants_of_removed_graphs_are_retired(
    db: Database, served: dict[str, Any]
) -> None:
    gone = ("unused", "changed", "run", "scheduled")
    served.update(dict.fromkeys(gone))
    for graph_id in ("echo", *gone):
        await register(graph_id)
    # This is no system assistant: any client may write this metadata.
    claimed = await create(graph_id="unused", metadata={"created_by": "system"})
    await rows(Assistants.patch(None, system_id("changed"), context={"a": 1}))
    await queue_run(system_id("run"))
    await schedule(system_id("scheduled"))
    for graph_id in gone:
        del served[graph_id]
    assert await names() == ["echo"]
    live = {str(system_id("echo")), str(system_id("steps"))}
    retired = await db.write(lambda conn: retire_system_assistants(conn, live))
    assert retired == [system_id("unused")]
    assert await db.write(lambda conn: retire_system_assistants(conn, live)) == []
    for kept in (claimed["assistant_id"], *map(system_id, ("echo", "changed", "run", "scheduled"))):
        assert await rows(Assistants.get(None, kept))
    assert await names() == ["echo"]
    assert await Assistants.count(None) == 1


def test_system_assistant_id_equals_the_one_of_langgraph_api() -> None:
    from langgraph_api.graph import NAMESPACE_GRAPH, get_assistant_id

    assert str(system_id("echo")) == get_assistant_id("echo")
    assert system_id("other") == uuid5(NAMESPACE_GRAPH, "other")
