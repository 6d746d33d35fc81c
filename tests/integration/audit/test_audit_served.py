"""The audit log of a served application: each change and refusal has one entry."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import databases
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, ROOT, Running, environment, free_port, running
from tests.support.served import Api, client

Entry = dict[str, Any]

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audited")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in ("echo", "sleeper", "memory")},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"tenant_key": "tenant_id", "hooks": "hooks.threads:policy"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = free_port()
    command = [sys.executable, "-m", "server", "serve", "--port", str(port)]
    command += ["--config", str(folder / "langgraph.json")]
    command += ["--database-url", databases.url(folder / "data.db")]
    env = environment(
        APP_ENV="production",
        JWT_SECRET=SECRET,
        PYTHONPATH=str(ROOT),
        THREAD_POLICY_AGENTS="sleeper",
        JWT_OPERATOR_TENANTS="acme,other",
    )
    with running(command, port, folder, env) as started:
        yield started


async def user(server: Running, tenant: str, name: str, *roles: str) -> AsyncIterator[Api]:
    sent = bearer(token(tenant_id=tenant, sub=name, roles=list(roles)))
    async with client(server, **sent) as api:
        yield api


@pytest.fixture
async def ada(server: Running) -> AsyncIterator[Api]:
    async for api in user(server, "acme", "ada"):
        yield api


@pytest.fixture
async def operator(server: Running) -> AsyncIterator[Api]:
    async for api in user(server, "acme", "op", "operator"):
        yield api


async def about(operator: Api, object_id: str) -> list[Entry]:
    """Return the entries of an object, the oldest first."""
    return list(reversed(await operator.get("/audit", params={"object_id": object_id})))


async def test_each_change_has_one_entry(ada: Api, operator: Api) -> None:
    thread = await ada.thread()
    await ada.http.patch(f"/threads/{thread}", json={"metadata": {"a": 1}})
    run = await ada.run(thread, "echo", {"value": 1})
    assert await ada.ended(thread, run) == "success"
    await ada.post(f"/threads/{thread}/state", {"values": {"value": 2}})
    made = await ada.post("/assistants", {"graph_id": "echo", "name": "mine"})
    assistant = made["assistant_id"]
    await ada.http.patch(f"/assistants/{assistant}", json={"name": "other"})
    await ada.http.delete(f"/assistants/{assistant}")
    cron = await ada.post(
        f"/threads/{thread}/runs/crons", {"assistant_id": "echo", "schedule": "0 0 1 1 *"}
    )
    await ada.http.delete(f"/runs/crons/{cron['cron_id']}")
    await ada.http.delete(f"/threads/{thread}/runs/{run}")
    await ada.http.delete(f"/threads/{thread}")

    async def actions(object_id: str) -> list[tuple[str, str]]:
        found = await about(operator, object_id)
        assert {(each["tenant"], each["user"], each["decision"]) for each in found} == {
            ("acme", "ada", "allowed")
        }
        assert {each["address"] for each in found} == {"127.0.0.1"}
        return [(each["action"], f"{each['method']} {each['route']}") for each in found]

    assert await actions(thread) == [
        ("create", "POST /threads"),
        ("update", "PATCH /threads/{thread_id}"),
        ("write_state", "POST /threads/{thread_id}/state"),
        ("delete", "DELETE /threads/{thread_id}"),
    ]
    assert await actions(run) == [
        ("create", "POST /threads/{thread_id}/runs"),
        ("delete", "DELETE /threads/{thread_id}/runs/{run_id}"),
    ]
    assert [each for each, _ in await actions(assistant)] == ["create", "update", "delete"]
    assert [each for each, _ in await actions(cron["cron_id"])] == ["create", "delete"]


async def test_run_on_a_thread_costs_one_entry_and_its_end_none(
    ada: Api, operator: Api, folder: Path
) -> None:
    # A link may come at any time.
    count = "SELECT count(*) FROM audit_entries WHERE action <> 'link'"
    thread = await ada.thread()
    [(before,)] = databases.execute(folder / "data.db", count)
    run = await ada.run(thread, "memory", {"who": "ada"})
    await ada.ended(thread, run)
    [(after,)] = databases.execute(folder / "data.db", count)
    newest = await operator.get("/audit", params={"limit": after - before})
    assert [(each["action"], each["object"]["kind"]) for each in newest] == [("create", "run")]


async def test_log_begins_with_a_link_at_the_start(folder: Path, server: Running) -> None:
    first = "SELECT object_kind, action, number FROM audit_entries ORDER BY seq LIMIT 1"
    assert databases.execute(folder / "data.db", first) == [("audit", "link", 1)]


async def test_store_items_and_cancellations_are_recorded(ada: Api, operator: Api) -> None:
    await ada.http.put("/store/items", json={"namespace": ["n"], "key": "k", "value": {"a": 1}})
    [put, *_] = await operator.get("/audit", params={"kind": "item", "user": "ada"})
    assert put["detail"] == {"namespace": ["acme", "ada", "n"], "key": "k"}
    thread = await ada.thread()
    run = await ada.run(thread, "sleeper", {"seconds": 60})
    await ada.http.post(f"/threads/{thread}/runs/{run}/cancel", params={"wait": "true"})
    assert [each["action"] for each in await about(operator, run)] == ["create", "cancel"]


async def test_refusals_are_recorded(server: Running, ada: Api, operator: Api) -> None:
    thread = await ada.thread()
    async for bob in user(server, "acme", "bob"):
        assert (await bob.http.get(f"/threads/{thread}")).status_code == 404
        assert (await bob.http.get("/audit")).status_code == 403
    found = await operator.get("/audit", params={"user": "bob", "decision": "refused"})
    assert [(each["status"], each["route"], each["object"]["id"]) for each in found] == [
        (403, "/audit", None),
        (404, "/threads/{thread_id}", thread),
    ]


async def test_refusals_without_a_tenant_are_recorded_for_no_tenant(
    server: Running, operator: Api, folder: Path
) -> None:
    async with httpx.AsyncClient(base_url=server.url) as stranger:
        answer = await stranger.get(f"/threads/{uuid4()}")
    assert answer.status_code == 401
    found = databases.execute(
        folder / "data.db", "SELECT tenant, route FROM audit_entries WHERE status = 401"
    )
    assert found == [(None, "/threads/{thread_id}")]
    assert not [each for each in await operator.get("/audit") if each["status"] == 401]


async def test_policy_decisions_and_their_refusals_are_recorded(ada: Api, operator: Api) -> None:
    first = await ada.thread(agent="sleeper", website="acme.com")
    second = await ada.thread(agent="sleeper", website="acme.com")
    decided = [each for each in await about(operator, first) if each["decision"] == "policy"]
    assert [each["action"] for each in decided] == ["thread_created", "thread_locked"]
    assert decided[1]["detail"]["by"] == second
    gated = await ada.http.post(f"/threads/{first}/runs", json={"assistant_id": "sleeper"})
    assert gated.status_code == 409
    [*_, last] = await about(operator, first)
    assert (last["decision"], last["status"]) == ("policy", 409)
    assert last["action"] == gated.json()["error"]


async def test_operator_reads_only_the_own_tenant(server: Running, ada: Api) -> None:
    thread = await ada.thread()
    async for other in user(server, "other", "op", "operator"):
        assert await other.get("/audit", params={"object_id": thread}) == []
        assert {each["tenant"] for each in await other.get("/audit")} <= {"other"}
        assert (await other.http.get("/audit", params={"tenant": "acme"})).status_code == 422


async def test_access_lines_carry_tenant_and_user(server: Running, ada: Api) -> None:
    thread = await ada.thread()
    await ada.get(f"/threads/{thread}")
    while not (found := [each for each in server.log.read_text().splitlines() if thread in each]):
        await asyncio.sleep(0.05)
    line = json.loads(found[0])
    assert (line["event"], line["tenant"], line["user"]) == ("request", "acme", "ada")
