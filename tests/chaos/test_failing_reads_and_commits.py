"""A read or commit fails, or the process dies: the database stays consistent and every run ends."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select

from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import threads
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.errors import DatabaseOverloaded
from langgraph_runtime_sql.ops.runs import recovery
from tests.chaos import failing_lives
from tests.chaos.failing_lives import fail_each
from tests.chaos.faults import MESSAGES, Faults
from tests.chaos.life import Life
from tests.support import databases, runtime
from threadhold.admin import findings

pytestmark = pytest.mark.usefixtures("each_database")

settings, quick, faulty, path = (
    failing_lives.settings,
    failing_lives.quick,
    failing_lives.faulty,
    failing_lives.path,
)


async def test_every_read_may_fail(path: Path, rng: random.Random) -> None:
    """Only the first reads: later ones belong to the test, which polls for the ends of runs."""
    faults = Faults()

    def arm(number: int) -> None:
        faults.arm(number, "fails", rng.choice(MESSAGES), burst=rng.choice((1, 2)), where="read")

    _, kinds = await fail_each(path, faults, arm, until=25)
    end = "ROLLBACK" if databases.kind() == "sqlite" else "COMMIT"
    assert {"BEGIN", "SELECT", end} <= kinds


async def test_every_commit_may_lose_its_acknowledgement(path: Path) -> None:
    faults = Faults()
    number, kinds = await fail_each(
        path, faults, lambda number: faults.arm(number, "lost", MESSAGES[0])
    )
    assert number > 10
    assert kinds == {"COMMIT"}


# A test cannot copy the files of Postgres; `test_kill.py` kills processes there.
@pytest.mark.only("sqlite")
async def test_process_may_die_before_every_statement(path: Path, tmp_path: Path) -> None:
    """A copy of the files before a statement equals what `kill -9` leaves."""
    faults, life = Faults(), Life()
    copies: list[tuple[Path, str, dict[UUID, set[str | None]]]] = []

    def keep(sql: str) -> None:
        copy = tmp_path / f"moment-{len(copies)}.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        copies.append((copy, sql, life.snapshot()))

    async with runtime.opened(path, faults.connect):
        # The writer opens its connection on its first write.
        await life.write_nothing()
        faults.watch = keep
        async with runtime.working():
            await life.live()
        faults.watch = None
    assert len(copies) > 100
    for copy, sql, acknowledged in copies:
        try:
            await _revive(copy, life, acknowledged)
        except BaseException as error:
            error.add_note(f"{copy.name}, before {sql}")
            raise


async def _revive(copy: Path, life: Life, acknowledged: dict[UUID, set[str | None]]) -> None:
    """Start a server on the files that a dead process left."""
    async with runtime.opened(copy) as db:
        await recovery.recover()
        async with runtime.working():
            await life.finish(acknowledged)
        assert await db.read(lambda conn: findings.examine(conn, served=True)) == []


# --- a group of writes with separate answers


@pytest.mark.parametrize("mode", ["fails", "aborts", "lost"])
async def test_acknowledged_write_is_kept_and_refused_write_is_not(
    tmp_path: Path, mode: str
) -> None:
    """Each statement of a group of writes fails once."""
    faults, path = Faults(), tmp_path / "group.db"
    async with runtime.opened(path, faults.connect) as db:
        for number in range(40):
            ids = [uuid4() for _ in range(4)]
            faults.arm(number, mode, MESSAGES[1])
            answers = await asyncio.gather(
                *(db.write(_creating(each)) for each in ids), return_exceptions=True
            )
            fired = bool(faults.fired)
            faults.disarm()
            kept = {
                row["thread_id"]
                for row in await db.read(lambda conn: conn.fetchall(select(threads.c.thread_id)))
            }
            for thread, answer in zip(ids, answers, strict=True):
                if answer is None:
                    assert thread in kept, (number, faults.fired)
                else:
                    assert isinstance(answer, DatabaseOverloaded), answer
                    # A refused write is kept only if its commit happened in spite of the error.
                    assert mode == "lost" or thread not in kept, (number, faults.fired)
            if not fired:
                break
        assert number > 0
        assert not fired


_THREAD = {
    "created_at": now(),
    "updated_at": now(),
    "state_updated_at": now(),
    "metadata": {},
    "config": {},
    "status": "idle",
    "interrupts": {},
}
_INSERT = Prepared(
    threads.insert().values({name: bindparam(name) for name in ("thread_id", *_THREAD)})
)


def _creating(thread: UUID) -> Callable[[Connection], None]:
    def fn(conn: Connection) -> None:
        conn.execute(_INSERT, {"thread_id": thread, **_THREAD})

    return fn


# --- operations that misbehave


async def test_failing_callback_does_not_stop_the_writer(tmp_path: Path) -> None:
    called: list[str] = []

    def fail() -> None:
        raise ValueError("as asked")

    def fn(conn: Connection) -> str:
        conn.after_commit(fail)
        conn.after_commit(lambda: called.append("second"))
        return "written"

    async with runtime.opened(tmp_path / "x.db") as db, asyncio.timeout(runtime.PATIENCE):
        assert await db.write(fn) == "written"
        assert called == ["second"]
        await db.check()


async def test_operation_that_raises_stop_iteration_is_answered(tmp_path: Path) -> None:
    def fn(conn: Connection) -> None:
        next(iter(()))

    async with runtime.opened(tmp_path / "x.db") as db, asyncio.timeout(runtime.PATIENCE):
        for ask in (db.read, db.write):
            with pytest.raises(RuntimeError, match="StopIteration"):
                await ask(fn)
