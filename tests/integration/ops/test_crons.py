"""Crons, as langgraph_api calls them, fired by its own scheduler, on a real SQLite file."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.postgres.connection import PostgresConnection
from langgraph_runtime_sql.database.schema import assistants, audit_entries, crons, runs
from langgraph_runtime_sql.limit_settings import parse
from langgraph_runtime_sql.ops.assistants.assistants import Assistants, system_id
from langgraph_runtime_sql.ops.crons import firing as cron_firing
from langgraph_runtime_sql.ops.crons.crons import Crons
from langgraph_runtime_sql.ops.crons.firing import note_fired, take_firing
from langgraph_runtime_sql.ops.crons.misfire import LOOKED, MOST
from langgraph_runtime_sql.ops.crons.schedule import SCHEDULE_LENGTH
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.request_context import firing
from tests.support.checkpoints import runtime_database
from tests.support.operations import Handlers, owned, page, row, rows, user
from tests.support.runtime import set_options

pytestmark = pytest.mark.usefixtures("each_database", "settings")


ANN, BOB = user("ann", "crons"), user("bob")
MINUTE = timedelta(minutes=1)
FIELDS = {
    "cron_id",
    "assistant_id",
    "thread_id",
    "user_id",
    "on_run_completed",
    "schedule",
    "timezone",
    "end_time",
    "enabled",
    "next_run_date",
    "payload",
    "metadata",
    "created_at",
    "updated_at",
}


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve one graph."""
    from langgraph_api import graph

    monkeypatch.setattr(graph, "GRAPHS", {"echo": None})
    monkeypatch.setattr(graph, "SYSTEM_ASSISTANT_IDS", {str(system_id("echo"))})


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "crons.db") as opened:
        await rows(
            Assistants.put(
                None,
                system_id("echo"),
                graph_id="echo",
                config={},
                context={},
                metadata={"created_by": "system"},
                if_exists="do_nothing",
                name="echo",
                system=True,
            )
        )
        yield opened


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> Handlers:
    return Handlers().install(monkeypatch)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Set the clock of crons to a fixed date."""

    def move(to: datetime) -> None:
        for kind in (Connection, PostgresConnection):
            monkeypatch.setattr(kind, "now", lambda conn: to)
        monkeypatch.setattr("langgraph_runtime_sql.ops.crons.crons.now", lambda: to)

    return move


class PassEnded(BaseException):
    """Raised where the scheduler would sleep until its next poll."""


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Run one pass of langgraph_api's scheduler, from its poll until it would sleep."""
    from langgraph_api import cron_scheduler

    async def end(seconds: float) -> None:
        raise PassEnded

    async def one_pass() -> None:
        # A task has a context of its own, as in the lifespan.
        with pytest.raises(PassEnded):
            await asyncio.create_task(cron_scheduler.cron_scheduler())

    monkeypatch.setattr(
        cron_scheduler,
        "asyncio",
        SimpleNamespace(sleep=end, CancelledError=asyncio.CancelledError),
    )
    return one_pass


async def create(**fields: Any) -> dict[str, Any]:
    """Create a cron, by default of `echo` and due once a year.

    With a schedule of minutes it could fire once more during a test.
    """
    wanted: dict[str, Any] = {"schedule": "0 3 1 6 *", "enabled": True, **fields}
    payload = {"assistant_id": "echo", "input": {"n": 1}, **wanted.pop("payload", {})}
    created: dict[str, Any] = await row(Crons.put(None, payload=payload, **wanted))
    return created


async def get(cron_id: Any) -> dict[str, Any]:
    found: dict[str, Any] = await row(Crons.get(None, cron_id))
    return found


async def search(**asked: Any) -> tuple[list[Any], int | None]:
    wanted = {
        "assistant_id": None,
        "thread_id": None,
        "enabled": None,
        "limit": 100,
        "offset": 0,
        **asked,
    }
    return await page(Crons.search(None, **wanted))


async def found_ids(**asked: Any) -> list[UUID]:
    return [each["cron_id"] for each in (await search(**asked))[0]]


async def thread(**metadata: Any) -> UUID:
    made = await row(Threads.put(None, uuid4(), metadata=metadata, if_exists="raise"))
    assert isinstance(made["thread_id"], UUID)
    return made["thread_id"]


async def set_columns(db: Database, cron_id: Any, **columns: Any) -> None:
    """Set columns of a cron, such as its next date, without waiting."""
    statement = crons.update().where(crons.c.cron_id == cron_id).values(**columns)
    assert await db.write(lambda conn: conn.execute(statement)) == 1


async def make_due(db: Database, cron_id: Any, *, since: timedelta = MINUTE) -> datetime:
    slot = datetime.now(UTC) - since
    await set_columns(db, cron_id, next_run_date=slot)
    return slot


async def queued(db: Database) -> list[dict[str, Any]]:
    """Return every run, oldest first."""
    return await db.read(lambda conn: conn.fetchall(runs.select().order_by(runs.c.seq)))


async def refusal(operation: Any) -> tuple[int, str]:
    """Await an operation that must be refused. Return the status and the detail."""
    with pytest.raises(HTTPException) as caught:
        await operation
    return caught.value.status_code, caught.value.detail


# --- creation ---------------------------------------------------------------


async def test_new_cron_reads_back_as_the_answer_shows_it(db: Database) -> None:
    wanted = uuid4()
    before = datetime.now(UTC)
    created = await create(
        cron_id=wanted,
        schedule="0 7 * * *",
        timezone="America/Sao_Paulo",
        end_time="2999-01-01T00:00:00+02:00",
        metadata={"a": 1},
        payload={"config": {"configurable": {"x": 1}, "tags": ["t"]}},
        ctx=ANN,
    )
    assert created == await get(str(wanted)) == await get(wanted)
    assert set(created) == FIELDS
    assert created["cron_id"] == wanted
    assert created["assistant_id"] == system_id("echo")
    assert (created["thread_id"], created["user_id"], created["enabled"]) == (None, "ann", True)
    assert created["on_run_completed"] == "delete"
    assert created["end_time"] == datetime(2998, 12, 31, 22, tzinfo=UTC)
    assert created["payload"] == {
        "assistant_id": str(system_id("echo")),
        "input": {"n": 1},
        "config": {"configurable": {"x": 1, "cron_id": str(wanted)}, "tags": ["t"]},
    }
    due = created["next_run_date"]
    assert before < due <= before + timedelta(days=1)
    assert (due.hour, due.minute, due.utcoffset()) == (10, 0, timedelta())


async def test_a_cron_of_a_thread_keeps_its_thread(db: Database) -> None:
    thread_id = await thread()
    on_thread = await create(thread_id=str(thread_id), on_run_completed="delete")
    assert (on_thread["thread_id"], on_thread["on_run_completed"]) == (thread_id, None)
    assert (await create(on_run_completed="keep"))["on_run_completed"] == "keep"
    await rows(Threads.delete(None, thread_id))
    assert await rows(Crons.get(None, on_thread["cron_id"])) == []


async def test_taken_cron_id_returns_the_existing_cron(db: Database) -> None:
    first = await create()
    assert await create(cron_id=first["cron_id"], schedule="0 0 1 1 *") == first


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"schedule": "never"}, 422),
        ({"schedule": ""}, 422),
        ({"schedule": None}, 422),
        ({"schedule": "61 * * * *"}, 422),
        ({"schedule": "* * *"}, 422),
        ({"schedule": "*/0 * * * *"}, 422),
        ({"schedule": "0 0 30 2 *"}, 422),
        ({"schedule": "\x00"}, 422),
        ({"schedule": "1," * SCHEDULE_LENGTH + "1 * * * *"}, 422),
        ({"timezone": "Atlantis/Capital"}, 422),
        ({"timezone": "America"}, 422),
        ({"timezone": "../../etc/passwd"}, 422),
        ({"timezone": "x" * 5000}, 422),
        ({"end_time": "soon"}, 422),
        ({"end_time": "2026-13-01T00:00:00Z"}, 422),
        ({"end_time": "0001-01-01T00:00:00+14:00"}, 422),
        ({"end_time": 7}, 422),
        ({"thread_id": "not-an-id"}, 422),
        ({"cron_id": "not-an-id"}, 422),
        ({"thread_id": uuid4()}, 404),
        ({"payload": {"assistant_id": str(uuid4())}}, 404),
        ({"payload": {"assistant_id": "nowhere"}}, 404),
        ({"payload": {"assistant_id": None}}, 404),
        ({"payload": {"context": {"a": 1}, "config": {"configurable": {"b": 1}}}}, 400),
    ],
)
async def test_bad_input_is_refused_and_stores_nothing(
    db: Database, given: dict[str, Any], status: int
) -> None:
    answered, detail = await refusal(create(**given))
    assert (answered, bool(detail)) == (status, True)
    assert await Crons.count(None) == 0


# --- change -----------------------------------------------------------------


async def change(cron_id: Any, **fields: Any) -> dict[str, Any]:
    changed: dict[str, Any] = await row(Crons.update(None, cron_id=cron_id, **fields))
    return changed


async def test_cron_update_keeps_fields_it_does_not_name(db: Database) -> None:
    made = await create(metadata={"a": 1, "b": {"c": 1}}, payload={"webhook": "https://x.test"})
    changed = await change(
        str(made["cron_id"]),
        metadata={"b": {"d": 2}},
        payload={"input": {"n": 2}, "assistant_id": "other", "config": {"tags": ["t"]}},
        on_run_completed="keep",
    )
    assert changed == await get(made["cron_id"])
    assert changed["metadata"] == {"a": 1, "b": {"d": 2}}
    assert changed["payload"] == {
        "assistant_id": str(system_id("echo")),
        "webhook": "https://x.test",
        "input": {"n": 2},
        "config": {"tags": ["t"], "configurable": {"cron_id": str(made["cron_id"])}},
    }
    assert changed["on_run_completed"] == "keep"
    assert changed["updated_at"] > made["updated_at"]
    same = FIELDS - {"metadata", "payload", "on_run_completed", "updated_at"}
    assert {name: changed[name] for name in same} == {name: made[name] for name in same}


async def test_new_schedule_or_time_zone_moves_the_next_run_date(db: Database) -> None:
    made = await create(schedule="0 12 * * *")
    moved = await change(made["cron_id"], schedule="30 7 * * *")
    assert (moved["next_run_date"].hour, moved["next_run_date"].minute) == (7, 30)
    moved = await change(made["cron_id"], timezone="Asia/Tokyo")
    assert (moved["next_run_date"].hour, moved["next_run_date"].minute) == (22, 30)
    moved = await change(made["cron_id"], schedule="0 12 * * *", timezone="Asia/Kolkata")
    assert (moved["next_run_date"].hour, moved["next_run_date"].minute) == (6, 30)


async def test_end_time_of_a_cron_can_be_set_and_cleared(db: Database) -> None:
    made = await create()
    changed = await change(made["cron_id"], end_time="2999-01-01T00:00:00")
    assert changed["end_time"] == datetime(2999, 1, 1, tzinfo=UTC)
    assert (await change(made["cron_id"], enabled=True))["end_time"] is not None
    assert (await change(made["cron_id"], clear_end_time=True))["end_time"] is None


async def test_enabling_a_cron_skips_the_slots_it_missed(db: Database) -> None:
    cron_id = (await create(schedule="0 0 1 1 *"))["cron_id"]
    await change(cron_id, enabled=False)
    slot = await make_due(db, cron_id)
    assert (await change(cron_id, enabled=False))["next_run_date"] == slot
    assert (await change(cron_id, enabled=True))["next_run_date"] > datetime.now(UTC)


async def test_refused_cron_update_changes_nothing(db: Database) -> None:
    made = await create(payload={"config": {"configurable": {"a": 1}}})
    key = made["cron_id"]
    assert (await refusal(change(key)))[0] == 400
    assert (await refusal(change(key, metadata={"b": 1}, schedule="never")))[0] == 422
    assert (await refusal(change(key, metadata={"b": 1}, timezone="Nowhere/Land")))[0] == 422
    assert (await refusal(change(key, metadata={"b": 1}, end_time="soon")))[0] == 422
    assert (await refusal(change(key, payload={"context": {"c": 1}})))[0] == 400
    assert (await refusal(change("not-an-id", enabled=False)))[0] == 422
    assert (await refusal(change(uuid4(), enabled=False)))[0] == 404
    assert await get(key) == made


async def test_deleted_cron_is_gone_and_others_stay(db: Database) -> None:
    made, other = await create(), await create()
    assert await rows(Crons.delete(None, str(made["cron_id"]))) == [made["cron_id"]]
    assert await rows(Crons.delete(None, made["cron_id"])) == []
    assert await rows(Crons.get(None, made["cron_id"])) == []
    assert await found_ids() == [other["cron_id"]]


# --- search -----------------------------------------------------------------


async def test_search_and_count(db: Database) -> None:
    own = await row(
        Assistants.put(
            None,
            uuid4(),
            graph_id="echo",
            config={},
            context=None,
            metadata={},
            if_exists="raise",
            name="own",
        )
    )
    thread_id = await thread()
    first = await create(metadata={"kind": 1, "deep": {"a": [1]}})
    second = await create(thread_id=thread_id, metadata={"kind": 2})
    third = await create(payload={"assistant_id": str(own["assistant_id"])}, enabled=False)
    ids = [each["cron_id"] for each in (third, second, first)]
    expected: list[tuple[dict[str, Any], list[UUID]]] = [
        ({}, ids),
        ({"assistant_id": str(system_id("echo"))}, ids[1:]),
        ({"assistant_id": own["assistant_id"]}, ids[:1]),
        ({"thread_id": str(thread_id)}, ids[1:2]),
        ({"thread_id": uuid4()}, []),
        ({"metadata": {"kind": 2}}, ids[1:2]),
        ({"metadata": {"deep": {"a": [1]}}}, ids[2:]),
        ({"metadata": {"' OR 1=1 --": 1}}, []),
    ]
    for asked, found in expected:
        assert await found_ids(**asked) == found
        assert await Crons.count(None, **asked) == len(found)
    assert await found_ids(enabled=False) == ids[:1]
    assert await found_ids(enabled=True) == ids[1:]
    assert (await search())[0][0] == third
    assert (await search(select=["schedule"], limit=1))[0] == [{"schedule": third["schedule"]}]
    assert (await refusal(search(assistant_id="not-an-id")))[0] == 422


async def test_search_returns_pages_and_a_cursor(db: Database) -> None:
    made = [(await create())["cron_id"] for _ in range(3)]
    found, cursor = await search(limit=2)
    assert ([each["cron_id"] for each in found], cursor) == (made[:0:-1], 2)
    found, cursor = await search(limit=2, offset=2)
    assert ([each["cron_id"] for each in found], cursor) == (made[:1], None)
    assert (await search(limit=3))[1] is None


async def test_search_sorts_by_each_field(db: Database) -> None:
    with_thread = (await create(thread_id=await thread(), schedule="0 0 1 1 *"))["cron_id"]
    ending = (await create(end_time="2999-01-01T00:00:00Z", schedule="* * * * *"))["cron_id"]
    expected = {
        ("created_at", "asc"): [with_thread, ending],
        ("created_at", "desc"): [ending, with_thread],
        ("CREATED_AT", None): [ending, with_thread],
        ("next_run_date", "asc"): [ending, with_thread],
        ("thread_id", "asc"): [with_thread, ending],
        ("thread_id", "desc"): [ending, with_thread],
        ("end_time", "asc"): [with_thread, ending],
        ("end_time", "desc"): [ending, with_thread],
        (None, "asc"): [ending, with_thread],
    }
    for (sort_by, sort_order), found in expected.items():
        assert await found_ids(sort_by=sort_by, sort_order=sort_order) == found, sort_by
    assert await found_ids(sort_by="cron_id", sort_order="asc") == sorted([with_thread, ending])
    assert (await refusal(search(sort_by="payload")))[0] == 422


# --- authorization ----------------------------------------------------------


async def test_each_operation_calls_its_authorization_handler(
    db: Database, handlers: Handlers
) -> None:
    thread_id, key = await thread(), uuid4()
    await create(cron_id=key, thread_id=thread_id, metadata={"a": 1}, ctx=ANN)
    await rows(Crons.update(None, cron_id=key, enabled=False, metadata={"b": 1}, ctx=ANN))
    await rows(Crons.get(None, key, ctx=ANN))
    await search(metadata={"a": 1}, ctx=ANN)
    await search(thread_id=thread_id, ctx=ANN)
    await Crons.count(None, ctx=ANN)
    await rows(Crons.delete(None, key, ctx=ANN))
    assert handlers.events == [
        "crons.create",
        # Not assistants.read: every user may run system assistants.
        "threads.read",
        "crons.update",
        "crons.read",
        "crons.search",
        "threads.search",
        "crons.search",
        "threads.read",
        "crons.search",
        "threads.search",
        "crons.delete",
    ]
    created, updated, searched = (handlers.asked[place][2] for place in (0, 2, 4))
    assert set(created) == {
        "payload",
        "schedule",
        "cron_id",
        "thread_id",
        "user_id",
        "end_time",
        "metadata",
    }
    assert created["payload"]["config"]["configurable"] == {"cron_id": str(key)}
    assert (created["user_id"], created["thread_id"]) == ("ann", thread_id)
    assert (updated["cron_id"], updated["enabled"], updated["metadata"]) == (key, False, {"b": 1})
    assert searched["metadata"] == {"a": 1}


async def test_other_users_cannot_read_or_change_a_row(db: Database, handlers: Handlers) -> None:
    handlers.policy = owned
    made = await create(ctx=ANN)
    key = made["cron_id"]
    assert made["metadata"] == {"owner": "ann"}
    assert await rows(Crons.get(None, key, ctx=BOB)) == []
    assert await rows(Crons.delete(None, key, ctx=BOB)) == []
    assert await search(ctx=BOB) == ([], None)
    assert await Crons.count(None, ctx=BOB) == 0
    assert (await refusal(Crons.update(None, cron_id=key, enabled=False, ctx=BOB)))[0] == 404
    taken: dict[str, Any] = {
        "payload": {"assistant_id": "echo"},
        "schedule": "* * * * *",
        "enabled": True,
    }
    assert await rows(Crons.put(None, cron_id=key, **taken, ctx=BOB)) == []
    assert await get(key) == made
    assert [each["cron_id"] for each in (await search(ctx=ANN))[0]] == [key]
    assert await Crons.count(None, ctx=ANN) == 1


async def test_cron_needs_an_assistant_and_a_thread_its_creator_may_use(
    db: Database, handlers: Handlers
) -> None:
    given: dict[str, Any] = {
        "graph_id": "echo",
        "config": {},
        "context": {},
        "name": "n",
        "if_exists": "raise",
    }
    bobs = await row(Assistants.put(None, uuid4(), **given, metadata={"owner": "bob"}))
    bobs_thread = await thread(owner="bob")
    handlers.policy = owned
    named = {"assistant_id": str(bobs["assistant_id"])}
    assert (await refusal(create(payload=named, ctx=ANN)))[0] == 404
    assert (await refusal(create(thread_id=bobs_thread, ctx=ANN)))[0] == 404
    # The metadata that a client gives its cron decides neither.
    assert (await refusal(create(payload=named, metadata={"owner": "bob"}, ctx=ANN)))[0] == 404
    assert "metadata" not in next(
        value for _, event, value in reversed(handlers.asked) if event == "assistants.read"
    )
    assert await create(payload=named, thread_id=bobs_thread, ctx=BOB)
    assert await Crons.count(None) == 1


async def test_crons_of_hidden_threads_are_hidden(db: Database, handlers: Handlers) -> None:
    anns, bobs = await thread(owner="ann"), await thread(owner="bob")
    on_bobs = await create(thread_id=bobs)
    on_anns = await create(thread_id=anns)
    free = await create()
    handlers.policy = lambda name, event, value: (
        {"owner": name} if event.startswith("threads.") else None
    )
    visible = [each["cron_id"] for each in (await search(ctx=ANN))[0]]
    assert visible == [free["cron_id"], on_anns["cron_id"]]
    assert await Crons.count(None, ctx=ANN) == 2
    assert await Crons.count(None, thread_id=bobs, ctx=ANN) == 0
    assert await search(thread_id=bobs, ctx=ANN) == ([], None)
    assert await Crons.count(None, thread_id=bobs, ctx=BOB) == 1
    assert await get(on_bobs["cron_id"])


# --- firing -----------------------------------------------------------------


async def test_due_cron_starts_one_run(db: Database, poll: Callable[[], Any]) -> None:
    made = await create(metadata={"from": "cron"})
    slot = await make_due(db, made["cron_id"])
    await poll()
    (run,) = await queued(db)
    assert run["assistant_id"] == system_id("echo")
    assert run["metadata"]["from"] == "cron"
    assert run["kwargs"]["input"] == {"n": 1}
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(made["cron_id"])
    after = await get(made["cron_id"])
    assert after["next_run_date"] > datetime.now(UTC) - timedelta(seconds=1) > slot
    assert {**after, "next_run_date": None} == {**made, "next_run_date": None}
    await poll()
    assert len(await queued(db)) == 1


async def test_missed_slots_start_one_run_in_total(db: Database, poll: Callable[[], Any]) -> None:
    made = await create()
    await make_due(db, made["cron_id"], since=timedelta(days=3))
    await poll()
    await poll()
    assert len(await queued(db)) == 1


# --- missed slots


async def decisions(db: Database) -> list[tuple[str, dict[str, Any]]]:
    """Return what the audit log says about firing, oldest first."""
    found = await db.read(
        lambda conn: conn.fetchall(
            select(audit_entries)
            .where(audit_entries.c.object_kind == "cron", audit_entries.c.decision == "policy")
            .order_by(audit_entries.c.seq)
        )
    )
    return [(each["action"], json.loads(each["detail"])) for each in found]


def hourly(misfire: Any = None) -> dict[str, Any]:
    metadata = {} if misfire is None else {"misfire": misfire}
    return {"schedule": "0 * * * *", "metadata": metadata}


@pytest.mark.parametrize(
    ("misfire", "started", "action"),
    [
        (None, 1, "fire"),
        ("run_once", 1, "fire"),
        ({"policy": "skip"}, 0, "skip"),
        ("run_all", 6, "fire"),
        # The newest slot is ten minutes late: in time.
        ({"policy": "skip", "grace_seconds": 900}, 1, "skip"),
        ({"policy": "run_all", "grace_seconds": 0}, 6, "fire"),
        ({"policy": "skip", "grace_seconds": 7 * 3600}, 1, "fire"),
    ],
)
async def test_cron_does_with_missed_slots_what_it_says(
    db: Database,
    poll: Callable[[], Any],
    at: Callable[[datetime], None],
    misfire: Any,
    started: int,
    action: str,
) -> None:
    """A server that was down for six slots."""
    now = datetime(2026, 3, 4, 12, 10, tzinfo=UTC)
    at(now - timedelta(hours=6))
    made = await create(**hourly(misfire))
    at(now)
    await poll()
    await poll()
    assert len(await queued(db)) == started
    assert (await get(made["cron_id"]))["next_run_date"] == now + timedelta(minutes=50)
    found = await decisions(db)
    assert sum(told == "fire" for told, _ in found) == started
    told, detail = found[0]
    assert told == action
    assert detail["slot"] == "2026-03-04T07:00:00+00:00"
    assert detail["late_seconds"] == 5 * 3600 + 600
    assert detail["policy"] == (
        misfire["policy"] if isinstance(misfire, dict) else misfire or "run_once"
    )


async def test_run_all_is_bounded_and_says_what_it_leaves_out(
    db: Database, poll: Callable[[], Any], at: Callable[[datetime], None]
) -> None:
    now = datetime(2026, 3, 4, 12, 0, 30, tzinfo=UTC)
    at(now - timedelta(days=30))
    made = await create(schedule="* * * * *", metadata={"misfire": "run_all"})
    other = await create(schedule="0 0 * * *")
    at(now)
    await poll()
    found = await queued(db)
    assert len(found) == MOST + 1
    # It does not keep other crons waiting.
    ids = [each["kwargs"]["config"]["configurable"]["cron_id"] for each in found]
    assert str(other["cron_id"]) in ids[:2]
    assert (await get(made["cron_id"]))["next_run_date"] == now + timedelta(seconds=30)
    skipped = [detail for told, detail in await decisions(db) if told == "skip"]
    assert [each["missed"] for each in skipped] == [LOOKED + 1 - MOST]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("never", "metadata.misfire.policy: 'never'. There are run_once, skip, run_all"),
        ({"polcy": "skip"}, "expected a policy, or an object"),
        ({"grace_seconds": -1}, "metadata.misfire.grace_seconds: -1"),
        ({"grace_seconds": True}, "metadata.misfire.grace_seconds: True"),
        (3, "expected a policy, or an object"),
    ],
)
async def test_unusable_misfire_is_refused(db: Database, given: Any, named: str) -> None:
    status, detail = await refusal(create(metadata={"misfire": given}))
    assert (status, named in detail) == (422, True), detail
    assert await found_ids() == []
    made = await create()
    changed = row(Crons.update(None, cron_id=made["cron_id"], metadata={"misfire": given}))
    assert (await refusal(changed))[0] == 422
    assert (await get(made["cron_id"]))["metadata"] == {}


async def test_cron_fires_once_in_each_slot(
    db: Database, poll: Callable[[], Any], at: Callable[[datetime], None]
) -> None:
    start = datetime.now(UTC).replace(second=30, microsecond=0)
    at(start)
    made = await create(schedule="* * * * *")
    for n in range(1, 4):
        at(start + n * MINUTE)
        await poll()
        await poll()
        assert len(await queued(db)) == n
    assert (await get(made["cron_id"]))["next_run_date"] == start + timedelta(
        seconds=30
    ) + 3 * MINUTE


@pytest.mark.parametrize(
    "columns",
    [
        {"enabled": False},
        {"end_time": datetime.now(UTC) - timedelta(seconds=1)},
        {"next_run_date": datetime.now(UTC) + timedelta(days=1)},
        {"claimed_until": datetime.now(UTC) + timedelta(days=1)},
    ],
    ids=lambda columns: next(iter(columns)),
)
async def test_disabled_ended_early_or_claimed_cron_does_not_fire(
    db: Database, poll: Callable[[], Any], columns: dict[str, Any]
) -> None:
    idle, fires = await create(), await create(end_time="2999-01-01T00:00:00Z")
    for each in (idle, fires):
        await make_due(db, each["cron_id"])
    await set_columns(db, idle["cron_id"], **columns)
    await poll()
    (run,) = await queued(db)
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(fires["cron_id"])


async def test_cron_runs_on_its_thread_or_on_a_new_one(
    db: Database, poll: Callable[[], Any]
) -> None:
    thread_id = await thread()
    on_thread = await create(thread_id=thread_id)
    kept = await create(on_run_completed="keep")
    passing = await create(on_run_completed="delete")
    for each in (on_thread, kept, passing):
        await make_due(db, each["cron_id"])
    await poll()
    found = {run["kwargs"]["config"]["configurable"]["cron_id"]: run for run in await queued(db)}
    assert found[str(on_thread["cron_id"])]["thread_id"] == thread_id
    of_its_own = [found[str(each["cron_id"])] for each in (kept, passing)]
    assert len({thread_id, *(run["thread_id"] for run in of_its_own)}) == 3
    assert [run["kwargs"]["temporary"] for run in of_its_own] == [False, True]


async def test_cron_with_context_passes_it_to_its_run(
    db: Database, poll: Callable[[], Any]
) -> None:
    made = await create(payload={"context": {"greeting": "moin"}})
    await make_due(db, made["cron_id"])
    await poll()
    (run,) = await queued(db)
    assert run["kwargs"]["context"]["greeting"] == "moin"
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(made["cron_id"])


async def test_concurrent_schedulers_fire_each_cron_once(
    db: Database, poll: Callable[[], Any]
) -> None:
    made = [await create() for _ in range(10)]
    for each in made:
        await make_due(db, each["cron_id"])
    await asyncio.gather(*(poll() for _ in range(4)))
    fired = [run["kwargs"]["config"]["configurable"]["cron_id"] for run in await queued(db)]
    assert sorted(fired) == sorted(str(each["cron_id"]) for each in made)


async def test_slot_of_a_dead_scheduler_fires_after_its_claim_expires(
    db: Database, poll: Callable[[], Any], at: Callable[[datetime], None]
) -> None:
    start = datetime.now(UTC)
    made = await create()
    slot = await make_due(db, made["cron_id"])
    dying = Crons.next(None)
    claimed, _ = await anext(dying)
    assert claimed["cron_id"] == made["cron_id"]
    # The scheduler dies before it creates the run; its claim stays.
    await poll()
    assert await queued(db) == []
    assert (await get(made["cron_id"]))["next_run_date"] == slot
    at(start + cron_firing.CLAIM + timedelta(seconds=1))
    await poll()
    assert len(await queued(db)) == 1


async def test_scheduler_that_outlives_its_claim_gets_409(
    db: Database, poll: Callable[[], Any], at: Callable[[datetime], None]
) -> None:
    made = await create(schedule="0 0 1 1 *")
    await make_due(db, made["cron_id"])
    slow = Crons.next(None)
    await anext(slow)
    mine = take_firing()
    assert mine is not None
    at(datetime.now(UTC) + cron_firing.CLAIM + timedelta(seconds=1))
    await asyncio.create_task(poll())
    after = await get(made["cron_id"])
    with pytest.raises(HTTPException) as caught:
        await db.write(lambda conn: note_fired(conn, mine))
    assert caught.value.status_code == 409
    await Crons.set_next_run_date(None, made["cron_id"], after["next_run_date"] + MINUTE)
    assert await get(made["cron_id"]) == after
    assert len(await queued(db)) == 1
    await slow.aclose()  # type: ignore[attr-defined]  # an async generator


@pytest.mark.parametrize("change_made", ["deleted", "disabled", "rescheduled"])
async def test_cron_changed_after_its_claim_starts_no_run(
    db: Database, poll: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, change_made: str
) -> None:
    """A client changes the cron between the claim and the creation of the run."""
    from langgraph_api import cron_scheduler

    made = await create()
    key = made["cron_id"]
    await make_due(db, key)
    create_run = cron_scheduler.create_valid_run

    async def late(*arguments: Any, **keywords: Any) -> Any:
        if change_made == "deleted":
            await rows(Crons.delete(None, key))
        elif change_made == "disabled":
            await change(key, enabled=False)
        else:
            await change(key, schedule="0 0 1 1 *")
        return await create_run(*arguments, **keywords)

    monkeypatch.setattr(cron_scheduler, "create_valid_run", late)
    await poll()
    assert await queued(db) == []
    if change_made == "rescheduled":
        # The scheduler computed its date from the old schedule.
        assert (await get(key))["next_run_date"].month == 1
    elif change_made == "disabled":
        assert (await get(key))["enabled"] is False


async def test_cron_without_assistant_moves_to_its_next_slot_and_blocks_no_other(
    db: Database, poll: Callable[[], Any]
) -> None:
    own = await row(
        Assistants.put(
            None,
            uuid4(),
            graph_id="echo",
            config={},
            context=None,
            metadata={},
            if_exists="raise",
            name="own",
        )
    )
    key = own["assistant_id"]
    broken = await create(payload={"assistant_id": str(key)})
    fine = await create()
    slot = await make_due(db, broken["cron_id"], since=2 * MINUTE)
    await make_due(db, fine["cron_id"])
    # Delete the row directly: the operation would delete the cron too.
    vanish = assistants.delete().where(assistants.c.assistant_id == key)
    await db.write(lambda conn: conn.execute(vanish))
    await poll()
    (run,) = await queued(db)
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(fine["cron_id"])
    assert (await get(broken["cron_id"]))["next_run_date"] > slot + 2 * MINUTE


async def test_invalid_cron_payload_delays_other_crons_by_one_poll_at_most(
    db: Database, poll: Callable[[], Any]
) -> None:
    bad, fine = await create(), await create()
    await make_due(db, bad["cron_id"], since=2 * MINUTE)
    await make_due(db, fine["cron_id"])
    await set_columns(db, bad["cron_id"], payload={"assistant_id": "echo", "metadata": [1]})
    for _ in range(2):
        await poll()
    (run,) = await queued(db)
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(fine["cron_id"])


async def test_cron_whose_run_a_limit_refuses_skips_that_date_and_goes_on(
    db: Database, poll: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_options(monkeypatch, limits=parse({"tenant": {"pending_runs": 1}}))
    fired, skipped = await create(), await create()
    await make_due(db, fired["cron_id"], since=2 * MINUTE)
    slot = await make_due(db, skipped["cron_id"])
    for _ in range(2):
        await poll()
    (run,) = await queued(db)
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(fired["cron_id"])
    kept = await get(skipped["cron_id"])
    assert kept["enabled"]
    assert kept["next_run_date"] > slot + MINUTE
    # No run waits any more when the next date comes.
    await db.write(lambda conn: conn.execute(runs.delete()))
    await make_due(db, skipped["cron_id"])
    await poll()
    (run,) = await queued(db)
    assert run["kwargs"]["config"]["configurable"]["cron_id"] == str(skipped["cron_id"])


async def test_cron_whose_schedule_ends_fires_once_and_is_disabled(
    db: Database, poll: Callable[[], Any], at: Callable[[datetime], None]
) -> None:
    year = datetime.now(UTC).year + 1
    made = await create(schedule=f"0 0 1 1 * 0 {year}")
    assert made["next_run_date"] == datetime(year, 1, 1, tzinfo=UTC)
    at(datetime(year, 1, 1, 0, 0, 1, tzinfo=UTC))
    await poll()
    await poll()
    assert len(await queued(db)) == 1
    assert (await get(made["cron_id"]))["enabled"] is False


async def test_claimed_cron_is_a_private_copy_with_every_field(db: Database) -> None:
    made = await create()
    await set_columns(db, made["cron_id"], payload={"assistant_id": str(system_id("echo"))})
    before = await make_due(db, made["cron_id"])
    async for cron, _ in Crons.next(None):
        assert set(cron) == FIELDS | {"now"}
        assert cron["now"].tzinfo is UTC and cron["next_run_date"] == before
        assert cron["payload"] == {
            "assistant_id": str(system_id("echo")),
            "config": {"configurable": {"cron_id": str(made["cron_id"])}},
            "metadata": {},
        }
        cron["payload"]["metadata"]["leak"] = cron["metadata"]["leak"] = True
    stored = await get(made["cron_id"])
    assert stored["payload"] == {"assistant_id": str(system_id("echo"))}
    assert stored["metadata"] == {}


async def test_firing_is_taken_once_and_cleared_afterwards(db: Database) -> None:
    assert take_firing() is None
    first, second = await create(), await create()
    for each in (first, second):
        await make_due(db, each["cron_id"])
    taken = []
    async for cron, _ in Crons.next(None):
        # A task that is started while the run is created outlives the firing.
        current = firing.get()
        assert current is not None and current.cron_id == cron["cron_id"]
        taken.append(take_firing())
        assert taken[-1] is current
        assert take_firing() is None
        assert await asyncio.create_task(_take_in_a_task()) is None
    assert [each.cron_id for each in taken if each] == [first["cron_id"], second["cron_id"]]
    assert firing.get() is None


async def _take_in_a_task() -> Any:
    return take_firing()


async def test_a_batch_size_limits_a_poll(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph_api.config.CRON_SCHEDULER_BATCH_SIZE", 2)
    for n in range(3):
        await make_due(db, (await create())["cron_id"], since=n * MINUTE + MINUTE)
    assert len([cron async for cron, _ in Crons.next(None)]) == 2
    assert len([cron async for cron, _ in Crons.next(None)]) == 1
    assert len([cron async for cron, _ in Crons.next(None)]) == 0


# --- the user of a run ------------------------------------------------------


async def test_cron_run_belongs_to_its_creator_with_all_claims(
    db: Database, handlers: Handlers, poll: Callable[[], Any]
) -> None:
    from langgraph_api.auth.custom import normalize_user

    claims = {"identity": "ann", "tenant": "acme", "roles": ["admin"]}
    who = SimpleNamespace(user=normalize_user(claims), permissions=["runs"])
    seen: list[tuple[Any, ...]] = []

    @handlers.auth.on.threads.create_run
    async def watch(ctx: Any, value: Any) -> None:
        seen.append((ctx.user.identity, ctx.user["tenant"], ctx.user["roles"], ctx.permissions))

    by_config = await create(ctx=who)
    by_context = await create(payload={"context": {"a": 1}}, ctx=who)
    assert "creator" not in by_config
    for each in (by_config, by_context):
        await make_due(db, each["cron_id"])
    await poll()
    assert seen == [("ann", "acme", ["admin"], ["runs"])] * 2
    for run in await queued(db):
        configurable = run["kwargs"]["config"]["configurable"]
        assert configurable["langgraph_auth_user_id"] == "ann"
        assert configurable["langgraph_auth_user"]["tenant"] == "acme"
        assert configurable["user_id"] == "ann"


async def test_cron_without_user_does_not_inherit_the_previous_user(
    db: Database, handlers: Handlers, poll: Callable[[], Any]
) -> None:
    with_user = await create(ctx=ANN)
    without = await create()
    await make_due(db, with_user["cron_id"], since=2 * MINUTE)
    await make_due(db, without["cron_id"])
    handlers.asked.clear()
    await poll()
    assert {name for name, _, _ in handlers.asked} == {"ann"}
    users = [
        run["kwargs"]["config"]["configurable"].get("langgraph_auth_user_id")
        for run in await queued(db)
    ]
    assert users == ["ann", None]


async def test_scheduler_has_no_user_between_crons(db: Database) -> None:
    from langgraph_api.utils import get_auth_ctx, with_user

    for who in (ANN, None):
        await make_due(db, (await create(ctx=who))["cron_id"])
    seen = []
    async for _ in Crons.next(None):
        context = get_auth_ctx()
        seen.append(None if context is None else context.user.identity)
        async with with_user(BOB.user, []):
            pass
    assert seen == ["ann", None]
    assert get_auth_ctx() is None


async def test_cron_of_a_creator_without_permission_starts_no_run(
    db: Database, handlers: Handlers, poll: Callable[[], Any]
) -> None:
    made = await create(ctx=ANN)
    slot = await make_due(db, made["cron_id"])

    def refuse(name: str, event: str, value: dict[str, Any]) -> None:
        raise HTTPException(403, "no longer")

    handlers.policy = refuse
    await poll()
    assert await queued(db) == []
    assert (await get(made["cron_id"]))["next_run_date"] > slot


async def test_run_created_by_a_handler_does_not_consume_the_firing(
    db: Database, handlers: Handlers, poll: Callable[[], Any]
) -> None:
    made = await create(ctx=ANN)
    await make_due(db, made["cron_id"])
    nested: list[Any] = []

    @handlers.auth.on.threads.create_run
    async def chatty(ctx: Any, value: Any) -> None:
        if not nested:
            nested.append(value["run_id"])
            await rows(
                Runs.put(
                    None,
                    system_id("echo"),
                    {"input": {"nested": True}},
                    metadata={},
                    prevent_insert_if_inflight=False,
                )
            )

    await poll()
    assert [run["kwargs"]["input"] for run in await queued(db)] == [{"nested": True}, {"n": 1}]
