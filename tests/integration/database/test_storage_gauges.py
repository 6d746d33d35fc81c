"""Storage gauges show the largest tenants and threads after a pass of small looks."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY

from langgraph_runtime_sql import storage_gauges
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.storage_gauges import OTHERS, StorageSizes
from langgraph_runtime_sql.tenancy import scope
from tests.support import runtime

pytestmark = pytest.mark.usefixtures("each_database", "settings")


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    runtime.set_options(monkeypatch, tenant_key="tenant_id")
    with scope.within(scope.EVERYTHING):
        async with runtime.opened(tmp_path / "sizes.db") as opened:
            yield opened


def of_tenant(name: str) -> float | None:
    return REGISTRY.get_sample_value("threadhold_tenant_bytes", {"tenant": name})


async def test_largest_tenants_and_threads_are_shown(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Their descriptions have the numbers of the first call in this process.
    storage_gauges.gauges()
    monkeypatch.setattr(storage_gauges, "TENANTS", 2)
    monkeypatch.setattr(storage_gauges, "THREADS", 1)
    monkeypatch.setattr(storage_gauges, "PAGE", 2)
    monkeypatch.setattr(storage_gauges, "REST_SECONDS", 0.0)
    largest = uuid4()

    def fill(conn: Connection) -> None:
        for tenant, size in (("a", 30_000), ("b", 20_000), ("b", 20_000), ("c", 100), ("d", 100)):
            thread = largest if tenant == "a" else uuid4()
            values = {"text": os.urandom(size // 2).hex()}
            thread_rows.insert(conn, thread, {"tenant_id": tenant}, Caller(), values=values)

    await db.write(fill)
    sizes = StorageSizes()
    # A look without time adds up nothing, and shows nothing that is not whole.
    monkeypatch.setattr(storage_gauges, "LOOK_SECONDS", 0.0)
    await sizes.look(db)
    assert of_tenant("a") is None
    monkeypatch.setattr(storage_gauges, "LOOK_SECONDS", 60.0)
    await sizes.look(db)
    b, a, others = of_tenant("b"), of_tenant("a"), of_tenant(OTHERS)
    assert b is not None and a is not None and others is not None
    assert b > a > others > 200
    assert of_tenant("c") is None
    shown = {"thread": str(largest)}
    first = REGISTRY.get_sample_value("threadhold_thread_bytes", shown)
    assert first is not None
    assert first > 15_000
    await db.write(lambda conn: thread_rows.delete(conn, largest))
    await sizes.look(db)
    assert of_tenant("a") is None
    assert REGISTRY.get_sample_value("threadhold_thread_bytes", shown) is None
