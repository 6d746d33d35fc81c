"""The event log: a client that has seen an event gets exactly the later ones, after any time."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from sqlalchemy import select

from langgraph_runtime_sql import checkpoint, request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import event_segments, runs
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events import dictionaries, publisher, segment, wires
from langgraph_runtime_sql.events.event import CONTROL, START, Event
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.cancel import cancel
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.operations import rows
from tests.support.streams import of_run, of_thread

GRAPHS = ("tokens", "steps", "sleeper", "echo")
pytestmark = [pytest.mark.usefixtures("each_database", "settings"), pytest.mark.graphs(*GRAPHS)]

KEPT = {"stream_mode": ["custom"], "stream_resumable": True}
Told = tuple[bytes, bytes, bytes | None]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[None]:
    """Start the runtime on a database, without a queue."""
    async with runtime.opened(path, shared=True):
        await runtime.register(GRAPHS)
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
async def here(path: Path) -> AsyncIterator[None]:
    async with opened(path):
        yield


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store no event by the clock."""
    monkeypatch.setattr(publisher, "FLUSH_SECONDS", 3_600.0)


async def counted(thread: UUID | None, n: int = 40, **more: Any) -> UUID:
    """Create a run that streams `n` numbered events, and wait for its end."""
    made = await runtime.start_run(thread, "tokens", {"mode": "custom", "n": n}, **KEPT, **more)
    run = UUID(str(made["run_id"]))
    assert await runtime.ended(run) == "success"
    return run


async def sleeping(thread: UUID, **more: Any) -> UUID:
    """Create a run that does not end by itself, and wait until it works."""
    made = await runtime.start_run(thread, "sleeper", {"seconds": 600}, **more)
    run = UUID(str(made["run_id"]))
    while await runtime.status(run) != "running":
        await asyncio.sleep(0.01)
    return run


async def joined(run: UUID, thread: UUID, after: str | None) -> list[Told]:
    """Return the events of a run after an id, until its stream ends."""
    channel = await Runs.Stream.subscribe(run, thread)
    events = Runs.Stream.join(run, stream_channel=channel, thread_id=thread, last_event_id=after)
    async with asyncio.timeout(runtime.PATIENCE):
        return [event async for event in events]


async def followed(thread: UUID, after: str, count: int) -> list[Told]:
    """Return so many events of a thread after an id. None follows within a moment."""
    events = Threads.Stream.join(thread, last_event_id=after, stream_modes=["run_modes"])
    async with asyncio.timeout(runtime.PATIENCE):
        found = [await anext(events) for _ in range(count)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(events)
    return found


def orders(events: list[Told]) -> list[tuple[int, ...]]:
    return [tuple(map(int, (event_id or b"").split(b"-"))) for _, _, event_id in events]


def numbers(events: list[Told]) -> list[int]:
    return [json.loads(data)["i"] for name, data, _ in events if name == b"custom"]


async def stored(thread: UUID | None = None) -> list[Event]:
    """Return the stored events of a thread or of all, in order."""
    statement = select(event_segments).order_by(event_segments.c.epoch, event_segments.c.first)
    if thread is not None:
        statement = statement.where(event_segments.c.thread_id == thread)

    def fn(conn: Connection) -> list[Event]:
        found = [row for row in conn.fetchall(statement) if row["epoch"] != dictionaries.EPOCH]
        plain = [{**row, "events": row["events"][1:]} for row in found]
        return [event for row in plain for event in segment.unpack(row, conn)]

    return await current().database.read(fn)


# --- restarts


async def test_clients_resume_after_a_restart(path: Path) -> None:
    thread, n = uuid4(), 600
    async with opened(path), runtime.working():
        made = [await counted(thread, n), await counted(thread, n)]
    async with opened(path):
        whole = [await joined(run, thread, "-1") for run in made]
        for run, told in zip(made, whole, strict=True):
            assert numbers(told) == list(range(n))
            for place in (0, 1, n // 2, n - 1, n):
                last = (told[place][2] or b"").decode()
                assert await joined(run, thread, last) == told[place + 1 :]
        # Each run also has its end in the stream of the thread.
        everything = await followed(thread, "-1", 2 * (n + 2))
        assert numbers(everything) == [*range(n), *range(n)]
        # Numbers have no gap over several runs.
        assert [order[1] for order in orders(everything)] == list(range(1, 2 * (n + 2) + 1))
        assert orders(everything) == sorted(orders(everything))
        for place in (0, n, n + 1, n + 2, 2 * n + 2):
            last = (everything[place][2] or b"").decode()
            rest = everything[place + 1 :]
            assert await followed(thread, last, len(rest)) == rest
        # The next run continues the numbers.
        async with runtime.working():
            await counted(thread, 3)
        later = await followed(thread, (everything[-1][2] or b"").decode(), 5)
        assert [order[1] for order in orders(later)] == list(
            range(2 * (n + 2) + 1, 2 * (n + 2) + 6)
        )


async def test_run_that_continues_after_a_restart_continues_its_stream(
    path: Path, tmp_path: Path
) -> None:
    """The process stops in the middle of the run; nothing is said twice by the next attempt."""
    thread, gate = uuid4(), tmp_path / "gate"
    gate.write_text("2")
    asked = {"count": 5, "gate": str(gate)}
    seen: list[Told] = []
    async with opened(path):
        made = await runtime.start_run(
            thread, "steps", asked, stream_mode=["values"], stream_resumable=True
        )
        run = UUID(str(made["run_id"]))
        channel = await Runs.Stream.subscribe(run, thread)
        async with runtime.working(), asyncio.timeout(runtime.PATIENCE):
            events = Runs.Stream.join(run, stream_channel=channel, thread_id=thread)
            while not seen or json.loads(seen[-1][1]).get("done") != [0, 1]:
                seen.append(await anext(events))
            await events.aclose()  # type: ignore[attr-defined]  # a generator
    gate.write_text("5")
    async with opened(path), runtime.working():
        seen += await joined(run, thread, (seen[-1][2] or b"").decode())
        assert await joined(run, thread, "-1") == seen
    assert orders(seen) == sorted(set(orders(seen)))
    assert [order[1] for order in orders(seen)] == list(range(1, len(seen) + 1))
    values = [json.loads(data)["done"] for name, data, _ in seen if name == b"values"]
    distinct = [each for i, each in enumerate(values) if i == 0 or each != values[i - 1]]
    assert distinct == [list(range(length)) for length in range(6)]
    # The first step changes nothing. At most the values with which the second attempt begins are
    # said again.
    assert len(values) <= len(distinct) + 2


async def test_run_that_ended_long_ago_is_joined_by_id(here: None, path: Path) -> None:
    thread = uuid4()
    async with runtime.working():
        run = await counted(thread)
    told = await joined(run, thread, "-1")
    before = datetime.now(UTC) - timedelta(days=1)
    for table in (runs, event_segments):
        dates = {name: before for name in ("created_at", "updated_at") if name in table.c}
        statement = table.update().values(dates)
        await current().database.write(lambda conn, each=statement: conn.execute(each))  # type: ignore[misc]
    assert numbers(told) == list(range(40))
    assert await joined(run, thread, "-1") == told
    assert await joined(run, thread, (told[9][2] or b"").decode()) == told[10:]
    # Without an id, and after the last event, there is nothing more.
    assert await joined(run, thread, None) == []
    assert await joined(run, thread, (told[-1][2] or b"").decode()) == []


# --- when events are stored


async def claimed(thread: UUID, **more: Any) -> tuple[Row, Claim]:
    """Create a run and claim it, as the queue does."""
    made = await runtime.start_run(thread, "echo", {}, **{**KEPT, **more})
    found = await current().database.write(lambda conn: run_claim.claim(conn, 1))
    [(run, attempt)] = found.runs
    assert str(run["run_id"]) == str(made["run_id"])
    return run, Claim(str(run["run_id"]), attempt, owner=run_claim.OWNER)


def say(run: Row, count: int, attempt: int = 1) -> None:
    key = of_run(run["run_id"], run["thread_id"])
    for number in range(count):
        data = b'{"i":%d}' % number
        current().bus.publisher.publish(key, "custom", data, resumable=True, attempt=attempt)


async def test_events_are_stored_within_moments(here: None) -> None:
    run, _ = await claimed(uuid4())
    say(run, 5)
    async with asyncio.timeout(runtime.PATIENCE):
        while len(await stored(run["thread_id"])) < 5:
            await asyncio.sleep(0.01)
    assert [each.order[1] for each in await stored(run["thread_id"])] == [1, 2, 3, 4, 5]


async def test_full_segment_is_stored_at_once(here: None, unhurried: None) -> None:
    run, _ = await claimed(uuid4())
    say(run, segment.SEGMENT_EVENTS)
    async with asyncio.timeout(runtime.PATIENCE):
        while len(await stored(run["thread_id"])) < segment.SEGMENT_EVENTS:
            await asyncio.sleep(0.01)


async def test_events_are_stored_with_the_next_checkpoint_and_the_end(
    here: None, unhurried: None
) -> None:
    run, claim = await claimed(uuid4())
    thread, run_id = run["thread_id"], run["run_id"]
    say(run, 3)
    assert await stored(thread) == []
    request_context.claim.set(claim)
    where: Any = {"configurable": {"thread_id": str(thread), "checkpoint_ns": ""}}
    await checkpoint.Checkpointer().aput(where, empty_checkpoint(), {"source": "loop"}, {})
    assert len(await stored(thread)) == 3
    say(run, 2)
    assert len(await stored(thread)) == 3
    await Threads.set_joint_status(None, thread, run_id, "success", "echo")
    request_context.claim.set(None)
    found = await stored(thread)
    assert [each.order[1] for each in found] == [1, 2, 3, 4, 5, 6]
    assert [each.is_end for each in found] == [False] * 5 + [True]
    # Storing what is stored changes nothing.
    await current().bus.publisher.flush()
    assert await stored(thread) == found


async def test_superseded_attempt_stores_nothing(here: None, unhurried: None) -> None:
    run, _ = await claimed(uuid4())
    say(run, 3)
    await current().bus.publisher.flush()
    say(run, 2)
    taken = {"claimed_by": "another", "attempt": 2}
    statement = runs.update().where(runs.c.run_id == run["run_id"]).values(taken)
    await current().database.write(lambda conn: conn.execute(statement))
    await current().bus.publisher.flush()
    say(run, 2)
    await current().bus.publisher.flush()
    assert [each.order[1] for each in await stored(run["thread_id"])] == [1, 2, 3]


async def test_next_attempt_continues_the_numbers(here: None) -> None:
    """Its events are later than all events of the attempt before, also than unstored ones."""
    run, _ = await claimed(uuid4())
    say(run, 3)
    await current().bus.publisher.flush()

    def hand_back(conn: Connection) -> None:
        run_claim.release(conn, run["run_id"], 1, counted=True, owner=run_claim.OWNER)

    await current().database.write(hand_back)
    current().bus.writers.released(str(run["run_id"]))
    [(again, attempt)] = (
        await current().database.write(lambda conn: run_claim.claim(conn, 1))
    ).runs
    say(again, 2, attempt)
    await current().bus.publisher.flush()
    found = await stored(run["thread_id"])
    assert attempt == 2
    assert [(each.order[1], each.attempt) for each in found] == [
        *((1, 1), (2, 1), (3, 1)),
        *((4, 2), (5, 2)),
    ]
    assert len({each.order[0] for each in found}) == 2
    # What the first attempt still says is dropped.
    say(run, 1, attempt=1)
    await current().bus.publisher.flush()
    assert await stored(run["thread_id"]) == found


# --- what is not stored, or deleted


async def test_state_update_of_a_thread_is_stored(here: None) -> None:
    thread = uuid4()
    await rows(Threads.put(None, thread, metadata={"graph_id": "echo"}, if_exists="raise"))
    current().bus.publisher.publish_state(of_thread(thread), "state_update", b"{}")
    await current().bus.publisher.flush()
    [event] = await stored(thread)
    assert (event.name, event.run_id, event.order[1]) == ("state_update", "*", 1)
    async with await current().bus.followers.follow_thread(of_thread(thread), START) as reader:
        assert await reader.get(1) == event


async def test_events_of_a_deleted_run_or_thread_are_deleted(here: None) -> None:
    thread = uuid4()
    async with runtime.working():
        made = [await counted(thread, 5) for _ in range(3)]
        assert {each.run_id for each in await stored(thread)} == set(map(str, made))
        await rows(Runs.delete(None, made[0], thread_id=thread))
        assert {each.run_id for each in await stored(thread)} == set(map(str, made[1:]))
        assert numbers(await joined(made[1], thread, "-1")) == list(range(5))
        await rows(Threads.delete(None, thread))
        assert await stored() == []


@pytest.mark.parametrize("kept", [True, False], ids=["resumable", "not resumable"])
async def test_stream_of_a_run_that_is_cancelled_before_it_begins_is_empty(
    here: None, kept: bool
) -> None:
    """The state that an earlier run has left is not its result."""
    thread = uuid4()
    body = {"stream_mode": ["custom"], "stream_resumable": kept}
    async with runtime.working(), asyncio.timeout(runtime.PATIENCE):
        await counted(thread, 3)
        ahead = await sleeping(thread)
        made = await runtime.start_run(thread, "tokens", {"mode": "custom", "n": 3}, **body)
        run = UUID(str(made["run_id"]))
        await cancel(None, [run], thread_id=thread, action="interrupt")
        assert await joined(run, thread, "-1") == []
        await cancel(None, [ahead], thread_id=thread, action="interrupt")
        await runtime.ended(ahead)
    assert await joined(run, thread, "-1") == []


@pytest.mark.parametrize("status", ["pending", "running"])
async def test_events_of_a_rolled_back_run_are_deleted(here: None, status: str) -> None:
    """Only its end remains, for those that follow the thread."""
    thread = uuid4()
    if status == "running":
        async with runtime.working(), asyncio.timeout(runtime.PATIENCE):
            run = await sleeping(thread, **KEPT)
            await cancel(None, [run], thread_id=thread, action="rollback")
            while await runtime.status(run) is not None:
                await asyncio.sleep(0.01)
            while not any(each.is_end for each in await stored(thread)):
                await asyncio.sleep(0.01)
    else:
        # An earlier attempt has published.
        claimed_run, _ = await claimed(thread)
        run = claimed_run["run_id"]
        say(claimed_run, 3)
        await current().bus.publisher.flush()

        def hand_back(conn: Connection) -> None:
            run_claim.release(conn, run, 1, counted=True, owner=run_claim.OWNER)

        await current().database.write(hand_back)
        current().bus.writers.released(str(run))
        await cancel(None, [run], thread_id=thread, action="rollback")
    await current().bus.publisher.flush()
    assert [each.name for each in await stored(thread) if not each.is_end] == []


@pytest.mark.parametrize("kept", [True, False], ids=["resumable", "not resumable"])
async def test_followers_of_a_thread_get_one_end_of_a_rolled_back_run(
    here: None, kept: bool
) -> None:
    thread = uuid4()
    body = {"stream_mode": ["custom"], "stream_resumable": kept}
    bus = current().bus
    async with (
        await bus.followers.follow_thread(of_thread(thread)) as reader,
        runtime.working(),
        asyncio.timeout(runtime.PATIENCE),
    ):
        run = await sleeping(thread, **body)
        await cancel(None, [run], thread_id=thread, action="rollback")
        found = []
        while not found or not found[-1].is_end:
            found.append(await reader.get())
        await bus.publisher.flush()
        made = await runtime.start_run(thread, "tokens", {"mode": "custom", "n": 3}, **body)
        while found[-1] is None or found[-1].run_id == str(run) or not found[-1].is_end:
            found.append(await reader.get())
    ends = [each.run_id for each in found if each is not None and each.is_end]
    assert ends == [str(run), str(made["run_id"])]
    assert len({each.order for each in found if each is not None}) == len(found)


@pytest.mark.only("sqlite")
async def test_runs_that_nobody_can_resume_leave_no_rows(here: None) -> None:
    """On Postgres, followers in other processes read the log."""
    thread = uuid4()
    async with runtime.working():
        made = await runtime.start_run(thread, "tokens", {"mode": "custom", "n": 5})
        assert await runtime.ended(UUID(str(made["run_id"]))) == "success"
        for kept in (False, True):
            body = {"stream_mode": ["custom"], "stream_resumable": kept}
            made = await runtime.start_run(None, "tokens", {"mode": "custom", "n": 5}, **body)
            async with asyncio.timeout(runtime.PATIENCE):
                while await runtime.status(UUID(str(made["run_id"]))) is not None:
                    await asyncio.sleep(0.01)
        await current().bus.publisher.flush()
        assert await stored() == []


async def test_stateless_run_leaves_no_rows(here: None) -> None:
    async with runtime.working():
        made = await runtime.start_run(None, "tokens", {"mode": "custom", "n": 5}, **KEPT)
        async with asyncio.timeout(runtime.PATIENCE):
            while await runtime.status(UUID(str(made["run_id"]))) is not None:
                await asyncio.sleep(0.01)
    await current().bus.publisher.flush()
    assert await stored() == []


async def test_ends_of_many_pending_runs_hide_no_event_of_the_next_run(here: None) -> None:
    """The ends are published within a millisecond."""
    thread = uuid4()
    bus = current().bus
    async with await bus.followers.follow_thread(of_thread(thread)) as reader:
        pending = await runtime.start_run(thread, "echo", {}, after_seconds=3_600)
        for _ in range(500):
            bus.writers.ended(of_run(uuid4(), thread), resumable=False)
        await bus.publisher.flush()
        run, _ = await claimed(thread)
        say(run, 3)
        async with asyncio.timeout(runtime.PATIENCE):
            found = [await reader.get() for _ in range(503)]
    assert [each.run_id for each in found[500:] if each is not None] == [str(run["run_id"])] * 3
    assert await runtime.status(UUID(str(pending["run_id"]))) == "pending"


async def test_update_of_a_state_at_the_begin_of_a_run_hides_no_event(here: None) -> None:
    """The update waits to be stored when the run is claimed."""
    thread = uuid4()
    bus = current().bus
    async with await bus.followers.follow_thread(of_thread(thread)) as reader:
        await runtime.start_run(thread, "echo", {}, after_seconds=3_600)
        bus.publisher.publish_state(of_thread(thread), "state_update", b"{}")
        run, _ = await claimed(thread)
        say(run, 3)
        async with asyncio.timeout(runtime.PATIENCE):
            found = [await reader.get() for _ in range(4)]
    assert sorted(each.name for each in found if each) == ["custom"] * 3 + ["state_update"]
    await bus.publisher.flush()
    assert [each.order[1] for each in await stored(thread)] == [1, 2, 3, 4]


async def test_update_of_a_state_while_the_end_of_a_run_is_stored_comes_after_the_end(
    here: None,
) -> None:
    """The number of the end is taken before its transaction is committed."""
    thread = uuid4()
    bus = current().bus
    run, _ = await claimed(thread)
    say(run, 1)

    def end(conn: Connection) -> None:
        done = runs.update().where(runs.c.run_id == run["run_id"]).values(status="success")
        conn.execute(done)
        bus.writers.end(conn, of_run(run["run_id"], thread), resumable=True)
        bus.publisher.publish_state(of_thread(thread), "state_update", b"{}")

    async with await bus.followers.follow_thread(of_thread(thread)) as reader:
        await current().database.write(end)
        async with asyncio.timeout(runtime.PATIENCE):
            told = [await reader.get() for _ in range(2)]
    assert [each.name for each in told if each] == [CONTROL, "state_update"]
    found = await stored(thread)
    assert [each.name for each in found] == ["custom", CONTROL, "state_update"]
    assert [each.order[1] for each in found] == [1, 2, 3]


# --- the end of a pending run


@pytest.mark.parametrize("kept", [True, False], ids=["resumable", "not resumable"])
@pytest.mark.parametrize("way", ["interrupt", "rollback", "stateless"])
async def test_follower_of_a_cancelled_pending_run_gets_its_end_at_once(
    here: None, way: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not at the next look at the log.
    monkeypatch.setattr(wires, "WELL_RECHECK_SECONDS", 600.0)
    monkeypatch.setattr(wires, "AWAY_RECHECK_SECONDS", 600.0)
    body = {"stream_resumable": kept, "after_seconds": 3_600}
    made = await runtime.start_run(None if way == "stateless" else uuid4(), "echo", {}, **body)
    run, thread = UUID(str(made["run_id"])), UUID(str(made["thread_id"]))
    action = "rollback" if way == "rollback" else "interrupt"
    async with await current().bus.followers.follow_run(of_run(run, thread)) as reader:
        waiting = asyncio.create_task(reader.get(600))
        await asyncio.sleep(0)
        await cancel(None, [run], thread_id=thread, action=action)
        async with asyncio.timeout(runtime.PATIENCE):
            event = await waiting
    # None means that the stream was dropped with its thread.
    assert event is None or event.is_end
