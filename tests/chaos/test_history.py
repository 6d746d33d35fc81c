"""A short history with every kind of fault. `make history` runs longer ones."""

from pathlib import Path

import pytest

from tests.history.__main__ import summary
from tests.history.checker import check
from tests.history.nemesis import FAULTS
from tests.history.play import Plan, play

SEED = 7
KINDS = {"fault", "item", "patch", "run", "state", "stream", "thread", "wait"}


@pytest.mark.timeout(900)
async def test_servers_keep_their_promises_under_every_fault(tmp_path: Path) -> None:
    print(f"seed {SEED}; the same: make history ARGS='--seed {SEED} --seconds 0'")
    found = await play(Plan(SEED), tmp_path)
    print(summary(found))
    assert [str(violation) for violation in check(found)] == []
    # Check that something happened.
    assert {each.kind for each in found.history if each.ok} >= KINDS
    assert {each.asked["what"] for each in found.operations("fault") if each.ok} == {*FAULTS}
    assert found.steps
