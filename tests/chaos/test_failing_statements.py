"""The N-th statement fails, for every N: the database stays whole and every run ends."""

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import database, doctor, options, queue
from langgraph_runtime_sql.clock import now
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.errors import DatabaseBusy, DatabaseOverloaded
from langgraph_runtime_sql.ops import run_rows
from langgraph_runtime_sql.ops.runs import Runs
from langgraph_runtime_sql.statements import Prepared
from langgraph_runtime_sql.tables import runs, threads
from tests.chaos.faults import MESSAGES, Faults
from tests.support import runtime

GRAPHS = ("steps", "sleeper")
MODES = ("fails", "aborts")

T = TypeVar("T")


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving(*GRAPHS):
        yield


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweeps that repair come in moments, not in seconds."""
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.03)
    monkeypatch.setattr(queue, "PAUSE_SECONDS", 0.03)
    monkeypatch.setattr(options, "_current", options.Options(grace_seconds=0))


@pytest.fixture
async def template(tmp_path: Path) -> Path:
    """A database with the assistants of the graphs, to begin with."""
    path = tmp_path / "template.db"
    async with runtime.opened(path):
        await runtime.register(GRAPHS)
    return path


async def insist(deed: Callable[[], Awaitable[T]]) -> T:
    """What a client does whose request got a 503: it asks again."""
    async with asyncio.timeout(runtime.PATIENCE):
        while True:
            try:
                return await deed()
            except (DatabaseOverloaded, DatabaseBusy):
                await asyncio.sleep(0.005)


async def lifecycle() -> dict[UUID, set[str | None]]:
    """Create, claim, checkpoint, finish, cancel; the acknowledged runs and how they may end."""
    thread, acknowledged = uuid4(), {}
    asked = {"count": 2}
    run = await insist(lambda: runtime.start_run(thread, "steps", asked))
    acknowledged[run["run_id"]] = {"success", "error"}
    await insist(lambda: runtime.ended(run["run_id"]))
    for action, end in (("interrupt", "interrupted"), ("rollback", None)):
        sleeper = await insist(
            lambda: runtime.start_run(
                thread, "sleeper", {"seconds": 60}, multitask_strategy="enqueue"
            )
        )
        # It may also end by the fault, or by a first cancellation that was not acknowledged.
        acknowledged[sleeper["run_id"]] = {end, "error"}
        await _running(thread)
        await insist(lambda action=action: _cancel(thread, action))
    return acknowledged


async def _running(thread: UUID) -> None:
    """Wait until a run of the thread runs, or none is left that could."""

    def statuses(conn: Connection) -> set[str]:
        return {row["status"] for row in run_rows.in_flight(conn, thread)}

    async with asyncio.timeout(runtime.PATIENCE):
        while await insist(lambda: database.current().read(statuses)) == {run_rows.PENDING}:
            await asyncio.sleep(0.002)


async def _cancel(thread: UUID, action: str) -> None:
    """Cancel everything on the thread: a create that was not acknowledged may have left a run."""

    def ids(conn: Connection) -> list[UUID]:
        return [row["run_id"] for row in run_rows.in_flight(conn, thread)]

    while found := await database.current().read(ids):
        try:
            await Runs.cancel(None, found, thread_id=thread, action=action)
        except HTTPException as error:
            assert error.status_code == 404
        await asyncio.sleep(0.005)


async def survive(path: Path, faults: Faults, arm: Callable[[], None]) -> None:
    """One life with a fault, and what must be true after it."""
    async with runtime.opened(path, faults.connect) as db:
        arm()
        async with runtime.working():
            acknowledged = await lifecycle()
            faults.disarm()
            for run_id, ends in acknowledged.items():
                assert await runtime.ended(run_id) in ends
            async with asyncio.timeout(runtime.PATIENCE):
                while await db.read(_in_flight):
                    await asyncio.sleep(0.005)
            # Whatever became of the runs, nothing keeps the thread busy.
            assert "busy" not in {each["status"] for each in await db.read(_threads)}
        assert await db.read(lambda conn: doctor.examine(conn, served=True)) == []


def _in_flight(conn: Connection) -> list[Any]:
    return conn.fetchall(select(runs.c.run_id).where(runs.c.status.not_in(run_rows.ENDED)))


def _threads(conn: Connection) -> list[Any]:
    return conn.fetchall(select(threads.c.status))


async def every(
    template: Path, faults: Faults, arm: Callable[[int], None], until: int | None = None
) -> tuple[int, set[str]]:
    """Let the N-th statement fail until there is no N-th; how many there are, and what failed."""
    number, kinds = 0, set()
    while True:
        path = template.with_name(f"life-{number}.db")
        shutil.copy(template, path)
        try:
            await survive(path, faults, partial(arm, number))
        except BaseException as error:
            error.add_note(f"statement {number} failed ({faults.mode}): {faults.fired}")
            raise
        if not faults.fired or number == until:
            return number, kinds
        kinds |= {sql.split()[0] for sql in faults.fired}
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()
        number += 1


@pytest.mark.timeout(300)
async def test_every_statement_may_fail(template: Path, rng: random.Random) -> None:
    faults, offset = Faults(), rng.randrange(4)
    ways = [(mode, burst) for mode in MODES for burst in (1, 4)]

    def arm(number: int) -> None:
        mode, burst = ways[(number + offset) % len(ways)]
        faults.arm(number, mode, rng.choice(MESSAGES), burst=burst)

    number, kinds = await every(template, faults, arm)
    assert number > 100
    assert {"BEGIN", "SAVEPOINT", "INSERT", "UPDATE", "SELECT", "COMMIT"} <= kinds


async def test_every_read_may_fail(template: Path, rng: random.Random) -> None:
    """Those at the beginning: later ones are this test's own, which looks for the ends of runs."""
    faults = Faults()

    def arm(number: int) -> None:
        faults.arm(
            number, "fails", rng.choice(MESSAGES), burst=rng.choice((1, 2)), where="sqlite-read"
        )

    _, kinds = await every(template, faults, arm, until=25)
    assert {"BEGIN", "SELECT", "ROLLBACK"} <= kinds


async def test_every_commit_may_lose_its_acknowledgement(template: Path) -> None:
    faults = Faults()
    number, kinds = await every(
        template, faults, lambda number: faults.arm(number, "lost", MESSAGES[0])
    )
    assert number > 10
    assert kinds == {"COMMIT"}


# --- a group of writes, answered one by one


@pytest.mark.parametrize("mode", ["fails", "aborts", "lost"])
async def test_an_answered_write_is_kept_and_a_refused_one_is_not(
    tmp_path: Path, mode: str
) -> None:
    """Whichever statement of a group of writes fails."""
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
                    # Only a commit that happened in spite of its error keeps what was refused.
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


async def test_a_callback_that_fails_does_not_stop_the_writer(tmp_path: Path) -> None:
    heard: list[str] = []

    def fail() -> None:
        raise ValueError("as asked")

    def fn(conn: Connection) -> str:
        conn.after_commit(fail)
        conn.after_commit(lambda: heard.append("second"))
        return "written"

    async with runtime.opened(tmp_path / "x.db") as db, asyncio.timeout(runtime.PATIENCE):
        assert await db.write(fn) == "written"
        assert heard == ["second"]
        await db.check()


async def test_an_operation_that_raises_stop_iteration_is_answered(tmp_path: Path) -> None:
    def fn(conn: Connection) -> None:
        next(iter(()))

    async with runtime.opened(tmp_path / "x.db") as db, asyncio.timeout(runtime.PATIENCE):
        for ask in (db.read, db.write):
            with pytest.raises(RuntimeError, match="StopIteration"):
                await ask(fn)
