"""Four tenants ask for each other's objects; `make history ARGS=--tenants` does so for longer."""

from pathlib import Path

import pytest

from tests.history.checker import check
from tests.history.tenants import fuzz

pytestmark = pytest.mark.usefixtures("each_database")


async def test_no_byte_of_another_tenant(tmp_path: Path) -> None:
    # Each tenant does everything once.
    evidence = await fuzz(tmp_path, seed=7, seconds=0)
    assert len(evidence.received) > 100
    found = [str(each) for each in check(evidence)]
    assert not found, "\n\n".join(found[:5])
