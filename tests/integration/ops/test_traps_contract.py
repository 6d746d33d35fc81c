"""What `langgraph_api` expects of a runtime but does not document. Docstrings state the faults."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from starlette.authentication import SimpleUser
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import hooks
from langgraph_runtime_sql.database import database, interface
from langgraph_runtime_sql.events.subscription import Subscription
from langgraph_runtime_sql.ops.assistants.assistants import Assistants, system_id
from langgraph_runtime_sql.ops.crons.crons import Crons
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.retry import retry_db
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.operations import page, row, rows
from tests.support.streams import of_run

pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs("echo")]


def _echo() -> UUID:
    """The assistant of the graph `echo`."""
    return system_id("echo")


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    async with runtime.opened(tmp_path / "contract.db") as opened:
        await runtime.register(["echo"])
        yield opened


async def _put(thread: Any, **options: Any) -> list[Any]:
    asked = {"metadata": {}, "prevent_insert_if_inflight": False, **options}
    return await rows(Runs.put(None, _echo(), {"input": {}}, thread_id=thread, **asked))


def test_runtime_edition_is_not_mistaken_for_the_hosted_one() -> None:
    """An edition with the wrong name is silently replaced by a client of a closed server."""
    from langgraph_api import feature_flags
    from langgraph_api.models import run

    assert feature_flags.IS_POSTGRES_OR_GRPC_BACKEND is False
    assert run.Runs is Runs


async def test_operation_takes_effect_without_its_rows_being_read(db: database.Database) -> None:
    """An operation takes effect only when its rows are read, or its rows are deleted by then."""
    thread = uuid4()
    created = await Threads.put(None, thread, metadata={"a": 1}, if_exists="raise")
    patched = await Threads.patch(None, thread, metadata={"b": 2})
    run = await Runs.put(
        None,
        _echo(),
        {"input": {}},
        thread_id=thread,
        metadata={},
        prevent_insert_if_inflight=False,
    )
    found = await Threads.get(None, thread)
    deleted = await Threads.delete(None, thread)
    assert await runtime.thread(thread) is None
    assert [each["metadata"] async for each in created] == [{"a": 1}]
    assert [each["metadata"] async for each in patched] == [{"a": 1, "b": 2}]
    assert [each["thread_id"] async for each in run] == [thread]
    assert [each["status"] async for each in found] == ["busy"]
    assert [each async for each in deleted] == [thread]


async def test_new_run_is_the_first_row_and_its_id_is_a_uuid(db: database.Database) -> None:
    """A new run is taken for a refused one when its id is text, or when it does not come first."""
    thread = uuid4()
    options = {"if_not_exists": "create", "multitask_strategy": "interrupt"}
    [first] = await _put(str(thread), run_id=str(uuid4()), **options)
    run_id = uuid4()
    new, *others = await _put(thread, run_id=run_id, **options)
    assert new["run_id"] == run_id
    assert [each["run_id"] for each in others] == [first["run_id"]]
    assert isinstance(first["run_id"], UUID)
    refused = await _put(thread, **options | {"prevent_insert_if_inflight": True})
    assert {each["run_id"] for each in refused} == {run_id, first["run_id"]}
    for each in (new, *others, *refused):
        assert (type(each["thread_id"]), type(each["assistant_id"])) == (UUID, UUID)
        assert each["created_at"].tzinfo is not None


async def test_refused_run_of_a_batch_leaves_no_task_waiting(
    db: database.Database,
) -> None:
    """If one run of a batch is refused, the tasks that create the others wait forever."""
    from langgraph_api.models.run import create_valid_run

    class Policy:
        def before_run_create(self, tx: Any, thread: Any, run: Any) -> None:
            if run["metadata"].get("bad"):
                raise hooks.Reject(409, {"error": "refused"})

    current().hooks = Policy()
    barrier = asyncio.Barrier(4)
    tasks: list[asyncio.Task[Any]] = []
    try:
        with pytest.raises(hooks.Reject):
            async with interface.connect() as conn:
                for bad in (False, False, True, False):
                    body: Any = {"assistant_id": "echo", "metadata": {"bad": bad}}
                    handle: Any = conn
                    made = create_valid_run(handle, None, body, {}, barrier)
                    tasks.append(asyncio.create_task(made))
                await asyncio.gather(*tasks)
        done, waiting = await asyncio.wait(tasks, timeout=60)
        assert waiting == set()
        assert sum(task.cancelled() for task in done) == 3
    finally:
        current().hooks = None


async def test_concurrent_operations_share_a_connection(db: database.Database) -> None:
    """Two concurrent operations on one connection interfere."""
    thread = uuid4()
    async with interface.connect() as conn:
        await rows(Threads.put(conn, thread, metadata={}, if_exists="raise"))
        found = await asyncio.gather(
            *(row(Threads.get(conn, thread)) for _ in range(20)),
            *(rows(Threads.patch(conn, thread, metadata={str(n): n})) for n in range(20)),
        )
    assert len(found) == 40
    assert len((await runtime.thread(thread))["metadata"]) == 20


async def test_operations_work_without_a_connection(db: database.Database) -> None:
    """Some operations fail if the connection is None or left out."""
    made = await row(
        Assistants.put(
            None,
            uuid4(),
            graph_id="echo",
            config={},
            context={},
            metadata={},
            if_exists="raise",
            name="mine",
        )
    )
    deleted = await rows(Assistants.delete(None, made["assistant_id"], delete_threads=True))
    assert deleted == [made["assistant_id"]]
    [run] = await _put(None)
    claimed = [(each["run_id"], attempt) async for each, attempt in Runs.next(False, limit=5)]
    assert claimed == [(run["run_id"], 1)]
    await Runs.sweep()
    assert await runtime.status(run["run_id"]) == "pending"  # no worker has it
    assert await Threads.prune([run["thread_id"]]) == 1
    assert await runtime.thread(run["thread_id"]) is None


async def test_rows_hold_no_bytes(db: database.Database) -> None:
    """Clients get bytes of a row in base64."""

    def check(value: Any) -> None:
        assert not isinstance(value, bytes | bytearray | memoryview)
        for each in value.values() if isinstance(value, dict) else ():
            check(each)
        for each in value if isinstance(value, list) else ():
            check(each)

    thread = uuid4()
    [run] = await _put(thread, if_not_exists="create", metadata={"a": [{"b": 1}]})
    asked: dict[str, Any] = {"limit": 10, "offset": 0, "metadata": None}
    threads, _ = await page(Threads.search(None, values=None, status=None, **asked))
    assistants, _ = await page(Assistants.search(None, graph_id=None, name=None, **asked))
    cron = await rows(
        Crons.put(
            None,
            payload={"assistant_id": str(_echo())},
            schedule="* * * * *",
            thread_id=thread,
            enabled=True,
        )
    )
    for rows_ in ([run], await rows(Runs.search(None, thread)), threads, assistants, cron):
        assert len(rows_) == 1
        check(rows_)
        assert isinstance(rows_[0]["metadata"], dict)


@pytest.mark.parametrize("kind", ["plain", "dict", "exporting"])
async def test_user_of_a_run_is_stored_for_every_kind_of_user_object(
    db: database.Database, kind: str
) -> None:
    """A user object that cannot be exported is stored as null, and the run has no owner."""

    class Exporting(SimpleUser):
        def dict(self) -> dict[str, Any]:
            return {"identity": self.username, "tenant": "acme"}

    kinds = {"plain": SimpleUser, "exporting": Exporting}
    user = {"identity": "ann"} if kind == "dict" else kinds[kind]("ann")
    kwargs = {"input": {}, "config": {"configurable": {"langgraph_auth_user": user}}}
    made = await row(Runs.put(None, _echo(), kwargs, metadata={}, prevent_insert_if_inflight=False))
    found = await row(Runs.get(None, made["run_id"], thread_id=made["thread_id"]))
    stored = found["kwargs"]["config"]["configurable"]["langgraph_auth_user"]
    assert stored["identity"] == "ann"
    assert stored.get("tenant") == ("acme" if kind == "exporting" else None)


async def test_changing_a_row_or_an_argument_does_not_change_the_stored_run(
    db: database.Database,
) -> None:
    """A change that the worker makes to its row appears in the stored run."""
    metadata: dict[str, Any] = {"a": {"b": 1}}
    kwargs: dict[str, Any] = {"input": {"value": 1}}
    made = await row(
        Runs.put(None, _echo(), kwargs, metadata=metadata, prevent_insert_if_inflight=False)
    )
    for changed in (metadata["a"], kwargs["input"], made["metadata"], made["kwargs"]["config"]):
        changed["smuggled"] = True
    claimed = [each async for each, _ in Runs.next(False)]
    claimed[0]["kwargs"]["smuggled"] = True
    found = await row(Runs.get(None, made["run_id"], thread_id=made["thread_id"]))
    assert "smuggled" not in str(found)
    thread = await row(Threads.get(None, made["thread_id"]))
    thread["metadata"]["smuggled"] = True
    assert "smuggled" not in (await runtime.thread(made["thread_id"]))["metadata"]


@pytest.mark.only("sqlite")  # On Postgres, events of a missing thread are not delivered.
async def test_closing_a_subscription_twice_closes_no_other(db: database.Database) -> None:
    """Closing a subscription a second time, as callers do, fails or closes another one."""
    run, thread = str(uuid4()), uuid4()
    first, second = [await Runs.Stream.subscribe(run, thread) for _ in range(2)]
    for _ in range(2):
        await first.__aexit__(None, None, None)
    await Runs.Stream.publish(run, "values", b"{}", thread_id=thread)
    assert first.waiting() == []
    assert [event.data for event in second.waiting()] == [b"{}"]
    await second.__aexit__(None, None, None)


# A commit on Postgres never fails as busy; `test_failing_reads_and_commits.py` covers lost
# connections.
@pytest.mark.only("sqlite")
async def test_request_is_retried_only_if_nothing_was_committed(tmp_path: Path) -> None:
    """A retried request finds the thread that its first attempt created, and answers 409."""
    failures = ["COMMIT"]

    class Flaky(sqlite3.Connection):
        """Fails the first commit."""

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if armed and sql in failures:
                failures.remove(sql)
                busy = sqlite3.OperationalError("database is locked")
                busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise busy
            return super().execute(sql, *parameters)

    armed: list[bool] = []

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return sqlite3.connect(*args, factory=Flaky, **options)

    thread, tries = uuid4(), 0

    @retry_db
    async def handler() -> Any:
        nonlocal tries
        tries += 1
        return await row(Threads.put(None, thread, metadata={}, if_exists="raise"))

    async with runtime.opened(tmp_path / "flaky.db", connect):
        armed.append(True)
        assert (await handler())["thread_id"] == thread
        assert tries == 2
        with pytest.raises(HTTPException) as refused:
            await handler()
    assert (refused.value.status_code, tries) == (409, 3)


@pytest.mark.only("sqlite")  # On Postgres, events of a missing thread are not delivered.
async def test_publishing_succeeds_after_a_subscriber_has_left(db: database.Database) -> None:
    """A subscriber that has left makes publishing fail, and with it the run."""
    run, thread = str(uuid4()), uuid4()

    async def follow_and_vanish() -> Subscription:
        subscription = await current().bus.followers.follow_run(of_run(run, thread))
        waiting = asyncio.ensure_future(subscription.get())
        await asyncio.sleep(0)
        waiting.cancel()
        return subscription

    left = await asyncio.to_thread(lambda: asyncio.run(follow_and_vanish()))
    for message in (b"", b"not JSON \xff", b"{}"):
        await Runs.Stream.publish(run, "custom|" + "x" * 100_000, message, thread_id=thread)
    assert len(left.waiting()) == 3
