"""A short history with every kind of fault. `make history` runs longer ones."""

from pathlib import Path

import pytest

from tests.history.__main__ import summary
from tests.history.checker import check
from tests.history.play import Plan, play

SEED = 7
KINDS = {"fault", "item", "patch", "run", "state", "stream", "thread", "wait"}


@pytest.mark.timeout(900)
async def test_servers_keep_their_promises_under_every_fault(tmp_path: Path) -> None:
    print(f"seed {SEED}; the same: make history ARGS='--seed {SEED} --seconds 0'")
    await assert_kept(Plan(SEED), tmp_path)


@pytest.mark.timeout(900)
async def test_servers_on_postgres_alone_keep_their_promises(tmp_path: Path) -> None:
    """These faults are those that need the wire or the log of events."""
    faults = ("end listeners", "freeze")
    await assert_kept(Plan(SEED, faults=faults, with_redis=False), tmp_path)


async def assert_kept(plan: Plan, folder: Path) -> None:
    found = await play(plan, folder)
    print(summary(found))
    assert [str(violation) for violation in check(found)] == []
    # Check that something happened.
    assert {each.kind for each in found.history if each.ok} >= KINDS
    assert {each.asked["what"] for each in found.operations("fault") if each.ok} == {*plan.faults}
    assert found.steps
