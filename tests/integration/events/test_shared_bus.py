"""The bus of several processes: followers of runs that another process executes."""

import asyncio
import json
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from langgraph_runtime_sql import request_context
from langgraph_runtime_sql.claim import Claim
from langgraph_runtime_sql.clock import milliseconds
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import runs
from langgraph_runtime_sql.errors import DatabaseOverloaded
from langgraph_runtime_sql.events import log, wires
from langgraph_runtime_sql.events.event import CONTROL, DONE, START, Event
from langgraph_runtime_sql.events.segment import cut
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.runtime import current
from tests.support import runtime
from tests.support.streams import of_run, of_thread

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]


async def taken_over(key: StreamKey) -> None:
    """Let another process make the second attempt at a run: two events, and the end."""

    def fn(conn: Connection) -> None:
        run, thread = UUID(key.run_id), UUID(key.thread_id)
        epoch, number = log.new_head(conn, log.ask_head(conn, thread))
        texts = [("values", b'{"i":1}'), ("values", b'{"i":2}'), (CONTROL, DONE)]
        events = [
            Event((epoch, number + n), key.run_id, name, data, True, 2, epoch)
            for n, (name, data) in enumerate(texts, 1)
        ]
        log.store(conn, cut(key.thread, events))
        ended = {"claimed_by": "another", "attempt": 2, "status": "success"}
        conn.execute(runs.update().where(runs.c.run_id == run).values(ended))

    await current().database.write(fn)


async def test_waiting_client_of_a_superseded_process_gets_the_whole_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a freeze: the process looks at the database before its worker notices."""
    monkeypatch.setattr(wires, "WELL_RECHECK_SECONDS", 0.1)
    with runtime.serving("echo"):
        async with runtime.opened(tmp_path / "x.db", shared=True):
            await runtime.register(["echo"])
            thread = uuid4()
            run = (await runtime.start_run(thread, "echo", {"value": 1}))["run_id"]
            [(row, attempt)] = (
                await current().database.write(lambda conn: run_claim.claim(conn, 1))
            ).runs
            key = StreamKey.here(thread, run)
            channel = await Runs.Stream.subscribe(run, thread)
            current().bus.publisher.publish(key, "values", b'{"i":0}', attempt=attempt)
            await taken_over(key)
            async with asyncio.timeout(runtime.PATIENCE):
                events = Runs.Stream.join(run, stream_channel=channel, thread_id=thread)
                found = [json.loads(data)["i"] async for _, data, _ in events]
            assert row["run_id"] == run
            assert found == [0, 1, 2]


async def test_follower_gets_an_event_that_came_over_the_wire_and_is_not_stored(
    tmp_path: Path,
) -> None:
    """Also after a look at the log, which does not have the event yet."""
    thread, run = uuid4(), uuid4()
    async with runtime.opened(tmp_path / "x.db", shared=True):
        bus, key = current().bus, of_run(run, thread)
        async with await bus.followers.follow_thread(of_thread(thread)) as early:
            event = Event((7, 1), key.run_id, "custom", b"{}", True, 1, milliseconds())
            bus.receive_events(key.topic, 0, [event])
            assert await early.get(1) == event
            await bus.followers.refresh(early)
            async with await bus.followers.follow_run(key, START) as late:
                assert await late.get(1) == event


async def test_attempt_that_fails_leaves_the_thread_to_the_next_one(tmp_path: Path) -> None:
    """Its run is claimed again, by the same process, before its worker has ended."""
    thread = uuid4()

    async def claim() -> int:
        found = await current().database.write(lambda conn: run_claim.claim(conn, 1))
        [(_, attempt)] = found.runs
        return attempt

    with runtime.serving("echo"):
        async with runtime.opened(tmp_path / "x.db", shared=True):
            await runtime.register(["echo"])
            run = UUID(str((await runtime.start_run(thread, "echo", {}))["run_id"]))
            key, loop = StreamKey.here(thread, run), asyncio.get_running_loop()
            assert await claim() == 1
            held = request_context.claim.set(Claim(str(run), 1, owner=run_claim.OWNER))
            try:
                with pytest.raises(DatabaseOverloaded):
                    async with Runs.enter(run, thread, loop, resumable=True):
                        await current().database.write(lambda conn: run_claim.release(conn, run, 1))
                        assert await claim() == 2
                        raise DatabaseOverloaded
            finally:
                request_context.claim.reset(held)
            async with await current().bus.followers.follow_run(key) as reader:
                current().bus.publisher.publish(key, "values", b"{}", attempt=2)
                event = await reader.get(1)
                assert event is not None
                assert event.attempt == 2
