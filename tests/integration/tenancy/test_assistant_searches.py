"""A tenant's search for assistants reads no assistants of other tenants."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.ops.assistants import rows as assistant_rows
from langgraph_runtime_sql.ops.assistants.assistants import Assistants
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.tenancy import scope
from tests.support import runtime
from tests.support.operations import Handlers, page, user
from tests.support.runtime import set_options

pytestmark = pytest.mark.usefixtures("each_database")

KEY = "org"


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    with runtime.serving("echo"), pytest.MonkeyPatch.context() as patch:
        set_options(patch, tenant_key=KEY)
        yield


async def test_search_filters_the_callers_tenant_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def insert(conn: Connection) -> None:
        for tenant, number in (("many", 300), ("few", 2)):
            for _ in range(number):
                fields: dict[str, Any] = {key: {} for key in assistant_rows.VERSIONED}
                fields |= {"graph_id": "echo", "name": "x", "description": None}
                fields["metadata"] = {KEY: tenant}
                assistant_rows.insert(conn, uuid4(), fields)

    handlers = Handlers().install(monkeypatch)
    own = {"$or": [{KEY: "few"}, {"created_by": "system"}]}
    handlers.policy = lambda name, event, value: own
    asked: list[Any] = []
    allows = filters._allows

    def counted(given: Any, metadata: Any, depth: int) -> bool:
        if depth == 0:
            asked.append(metadata)
        return allows(given, metadata, depth)

    search: dict[str, Any] = {"graph_id": "echo", "name": None, "metadata": None}
    async with runtime.opened(tmp_path / "assistants.db") as db:
        with scope.within(scope.EVERYTHING):
            await runtime.register(["echo"])
            await db.write(insert)
        monkeypatch.setattr(filters, "_allows", counted)
        with scope.within(scope.TenantScope("few")):
            found, _ = await page(
                Assistants.search(None, **search, limit=10, offset=0, ctx=user("ada"))
            )
            number = await Assistants.count(None, ctx=user("ada"))
    assert number == len(found) == 3
    # The validation of the filters, and on SQLite each row of the tenant and the system's.
    assert len(asked) < 12
