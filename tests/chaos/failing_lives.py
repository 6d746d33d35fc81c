"""Lives with a failing statement: fixtures and checks for the tests of failing statements."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.postgres import sessions
from langgraph_runtime_sql.queue import queue
from tests.chaos.faults import Faults, FaultyPipeline
from tests.chaos.life import GRAPHS, Life
from tests.support import runtime
from tests.support.runtime import set_options
from threadhold.admin import findings

# A test module imports these fixtures by name, as in `settings = failing_lives.settings`.


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving(*GRAPHS):
        yield


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recovery sweeps run every few milliseconds."""
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0.03)
    monkeypatch.setattr(queue, "PAUSE_SECONDS", 0.03)
    monkeypatch.setattr(outage, "PROBE_SECONDS", 0.01)
    monkeypatch.setattr(outage, "SLOWEST_PROBE_SECONDS", 0.01)
    set_options(monkeypatch, grace_seconds=0)


@pytest.fixture(autouse=True)
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "Pipeline", FaultyPipeline)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """Make a database with the assistants of the graphs."""
    path = tmp_path / "lives.db"
    async with runtime.opened(path):
        await runtime.register(GRAPHS)
    return path


async def survive(path: Path, faults: Faults, arm: Callable[[], None]) -> None:
    """Run one life with a fault and check the database after it."""
    async with runtime.opened(path, faults.connect) as db:
        arm()
        async with runtime.working():
            life = Life()
            await life.live()
            faults.disarm()
            await life.check_ends(allowing="error")
        assert await db.read(lambda conn: findings.examine(conn, served=True)) == []


async def fail_each(
    path: Path, faults: Faults, arm: Callable[[int], None], until: int | None = None
) -> tuple[int, set[str]]:
    """Fail each statement in turn; return their number and the kinds of failed statements."""
    number, kinds = 0, set()
    while True:
        try:
            await survive(path, faults, partial(arm, number))
        except BaseException as error:
            error.add_note(f"statement {number} failed ({faults.mode}): {faults.fired}")
            raise
        if not faults.fired or number == until:
            return number, kinds
        kinds |= {sql.split()[0] for sql in faults.fired}
        number += 1
