"""Backups and exports between tenants: a restored database separates them as before.

What one tenant gets, its export, is no backup, and cannot become data of another tenant.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from server.cli import main
from tests.support import databases
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, Running
from tests.support.served import Api, client, served

pytestmark = pytest.mark.usefixtures("each_database")

NAMES = ("acme", "globex")
ENV = {"APP_ENV": "production", "JWT_SECRET": SECRET, "JWT_OPERATOR_TENANTS": "ops"}
OPERATOR = bearer(token(sub="op", tenant_id="ops", roles=["operator"]))


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Running, list[Api]]]:
    """Serve the database in `folder`. Give clients of a user of each tenant, with one name."""
    config = {
        "graphs": {"echo": f"{GRAPHS}/echo.py:graph"},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    acme, globex = (
        bearer(token(tenant_id=name, sub="ada", roles=["tenant_admin"])) for name in NAMES
    )
    with served(folder, folder / "langgraph.json", **ENV) as server:
        async with client(server, **acme) as one, client(server, **globex) as two:
            yield server, [one, two]


async def furnish(api: Api, name: str) -> str:
    thread = await api.thread(topic=f"secret of {name}")
    run = {
        "assistant_id": "echo",
        "input": {"value": f"secret of {name}"},
        "stream_resumable": True,
    }
    await api.post(f"/threads/{thread}/runs/wait", run)
    await api.post("/assistants", {"graph_id": "echo", "name": f"secret of {name}"})
    await api.post("/runs/crons", {"assistant_id": "echo", "schedule": "0 0 1 1 *"})
    item = {"namespace": ["notes"], "key": "note", "value": {"text": f"secret of {name}"}}
    assert (await api.http.put("/store/items", json=item)).is_success
    return thread


async def seen(api: Api) -> str:
    """Return all that a tenant can list."""
    found: list[Any] = [
        await api.post(path, {"limit": 1000})
        for path in ("/threads/search", "/assistants/search", "/runs/crons/search")
    ]
    found.append(await api.post("/store/items/search", {"namespace_prefix": []}))
    for thread in found[0]:
        path = f"/threads/{thread['thread_id']}"
        found += [await api.post(f"{path}/history", {}), await api.get(f"{path}/runs")]
    return json.dumps(found)


def command(path: Path | str, *arguments: str | Path) -> Result:
    url = path if isinstance(path, str) else databases.url(path)
    # For `pg_dump`.
    folders = os.pathsep.join([str(databases.programs()), os.environ["PATH"]])
    given = [*map(str, arguments), "--database-url", url]
    return CliRunner().invoke(main, given, env={"PATH": folders})


async def test_restored_tenants_see_their_own_and_revoked_users_nothing(tmp_path: Path) -> None:
    live, later = tmp_path / "live", tmp_path / "later"
    for each in (live, later):
        each.mkdir()
    async with serving(live) as (server, apis):
        threads = [await furnish(api, name) for api, name in zip(apis, NAMES, strict=True)]
        before = [await seen(api) for api in apis]
        async with httpx.AsyncClient(base_url=server.url, headers=OPERATOR) as http:
            gone = {"tenant": "acme", "user": "eve"}
            assert (await http.post("/revocations", json=gone)).is_success
        copy = tmp_path / "copy.backup"
        assert (done := command(live / "data.db", "backup", copy)).exit_code == 0, done.output
        export = tmp_path / "export"
        done = command(live / "data.db", "tenant", "export", "acme", "--to", export)
        assert done.exit_code == 0, done.output
    url = databases.empty(later / "data.db")
    # Of the tenant's own export, nothing can be made to look like a backup.
    for file in (export, *sorted(export.glob("*.jsonl"))[:3]):
        assert command(url, "restore", file).exit_code != 0, file
    done = command(url, "restore", copy)
    assert done.exit_code == 0, done.output
    async with serving(later) as (server, apis):
        assert [await seen(api) for api in apis] == before
        for api, name, other in zip(apis, NAMES, reversed(NAMES), strict=True):
            said = await seen(api)
            assert f"secret of {name}" in said and f"secret of {other}" not in said
        for api, theirs in zip(apis, reversed(threads), strict=True):
            for path in ("", "/state", "/runs"):
                assert (await api.http.get(f"/threads/{theirs}{path}")).status_code == 404
        async with client(server, **bearer(token(tenant_id="acme", sub="eve"))) as eve:
            assert (await eve.http.post("/threads", json={})).status_code == 401
        # Nothing of a backup or export changes a database that tenants use.
        for file in (copy, export):
            refused = command(later / "data.db", "restore", file)
            assert refused.exit_code != 0, refused.output
        assert [await seen(api) for api in apis] == before
    again = tmp_path / "again"
    done = command(later / "data.db", "tenant", "export", "globex", "--to", again)
    assert done.exit_code == 0, done.output
    everything = b"".join(each.read_bytes() for each in again.rglob("*") if each.is_file())
    assert b"secret of globex" in everything and b"secret of acme" not in everything
