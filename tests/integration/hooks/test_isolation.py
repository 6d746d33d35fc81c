"""Isolation of users and tenants: what each role can read and change, and what no client can forge.

`test_matrix.py` proves that every route refuses strangers.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from my_agent.keys import OWNER, RESERVED
from tests.support import databases
from tests.support.issuer import SECRET, bearer, token
from tests.support.processes import GRAPHS, Running
from tests.support.served import PATIENCE, Api, client, served

WEATHER = {"who": "ada", "secret": "sunny"}
FOREVER = "0 0 1 1 *"


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("isolation")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    names = ("echo", "memory", "loopback", "sleeper", "configured", "interrupt")
    config = {
        "graphs": {name: f"{GRAPHS}/{name}.py:graph" for name in names},
        "auth": {"path": "hooks.auth:auth"},
        # On Postgres the database separates tenants too.
        "sql": {"tenant_key": "tenant_id"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    env = {"APP_ENV": "production", "JWT_SECRET": SECRET, "CRON_SCHEDULER_SLEEP_TIME": "1"}
    with served(folder, folder / "langgraph.json", **env) as started:
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
async def bob(server: Running) -> AsyncIterator[Api]:
    async for api in user(server, "acme", "bob"):
        yield api


@pytest.fixture
async def admin(server: Running) -> AsyncIterator[Api]:
    async for api in user(server, "acme", "root", "tenant_admin"):
        yield api


@pytest.fixture
async def eve(server: Running) -> AsyncIterator[Api]:
    """An administrator of another tenant with ada's name."""
    async for api in user(server, "acm", "ada", "tenant_admin"):
        yield api


async def sees(api: Api, thread: str) -> bool:
    """Return whether a thread is visible, by id and in searches alike."""
    found = [
        (await api.http.get(f"/threads/{thread}")).status_code == 200,
        bool(await api.post("/threads/search", {"ids": [thread]})),
        thread in {row["thread_id"] for row in await api.post("/threads/search", {"limit": 1000})},
    ]
    assert len(set(found)) == 1, found
    return found[0]


# --- threads, assistants and crons ------------------------------------------


async def test_thread_is_visible_to_its_user_and_administrators_of_the_tenant(
    ada: Api, bob: Api, admin: Api, eve: Api
) -> None:
    thread = await ada.thread(topic="weather")
    assert [await sees(api, thread) for api in (ada, bob, admin, eve)] == [True, False, True, False]
    mine = await ada.get(f"/threads/{thread}")
    assert mine["metadata"] == {"topic": "weather", "tenant_id": "acme", "user_id": "ada"}
    counted = [
        await api.post("/threads/count", {"metadata": mine["metadata"]}) for api in (ada, eve)
    ]
    assert counted[0] > 0
    assert counted[1] == 0


async def test_administrator_can_use_and_change_threads_of_the_tenant(ada: Api, admin: Api) -> None:
    thread = await ada.thread()
    run = await admin.run(thread, "echo", {"value": 1})
    assert await ada.ended(thread, run) == "success"
    changed = await admin.http.patch(f"/threads/{thread}", json={"metadata": {"seen": True}})
    assert changed.json()["metadata"]["user_id"] == "ada"
    copied = await admin.post(f"/threads/{thread}/copy")
    assert copied["metadata"]["user_id"] == "root"
    assert not await sees(ada, copied["thread_id"])
    assert (await admin.http.delete(f"/threads/{thread}")).is_success


@pytest.mark.parametrize(
    ("tenant", "name"),
    [("acme", "ad%"), ("acme", "_da"), ("acme", "Ada"), ("acm_", "ada"), ("acme.ada", "x")],
)
async def test_users_with_similar_names_are_isolated(
    server: Running, ada: Api, tenant: str, name: str
) -> None:
    thread = await ada.thread()
    await ada.http.put("/store/items", json={"namespace": ["n"], "key": "k", "value": WEATHER})
    async for other in user(server, tenant, name):
        assert not await sees(other, thread)
        for namespace in ([], ["n"], ["acme"], ["acme", "ada"]):
            found = await other.post("/store/items/search", {"namespace_prefix": namespace})
            assert found == {"items": []}


async def test_tenant_can_use_an_assistant_but_only_its_creator_can_change_it(
    ada: Api, bob: Api, admin: Api, eve: Api
) -> None:
    made = await ada.post("/assistants", {"graph_id": "echo", "name": "Ada's"})
    path = f"/assistants/{made['assistant_id']}"
    read = [(await api.http.get(path)).status_code for api in (ada, bob, admin, eve)]
    assert read == [200, 200, 200, 404]
    thread = await bob.thread()
    assert await bob.ended(thread, await bob.run(thread, made["assistant_id"])) == "success"
    [run] = await bob.get(f"/threads/{thread}/runs")
    assert run["metadata"]["user_id"] == "bob", (
        "the run does not belong to the creator of the assistant"
    )
    theirs = await eve.thread()
    asked = {"assistant_id": made["assistant_id"], "input": {}}
    assert (await eve.http.post(f"/threads/{theirs}/runs", json=asked)).status_code == 404
    renamed = [
        (await api.http.patch(path, json={"name": "renamed"})).status_code
        for api in (eve, bob, ada, admin)
    ]
    assert renamed == [404, 404, 200, 200]
    deleted = [(await api.http.delete(path)).status_code for api in (eve, bob, admin)]
    assert deleted == [404, 404, 204]


async def test_system_assistants_are_readable_but_not_changeable(
    ada: Api, admin: Api, eve: Api
) -> None:
    for api in (ada, admin, eve):
        found = await api.post("/assistants/search", {"graph_id": "echo"})
        [system] = [each for each in found if each["metadata"].get("created_by") == "system"]
        path = f"/assistants/{system['assistant_id']}"
        changes = [
            await api.http.patch(path, json={"name": "mine"}),
            await api.http.post(f"{path}/latest", json={"version": 1}),
            await api.http.delete(path),
        ]
        assert [answer.status_code for answer in changes] == [404, 404, 404]


async def test_cron_is_visible_to_its_user_and_administrators_of_the_tenant(
    ada: Api, bob: Api, admin: Api, eve: Api
) -> None:
    body = {"assistant_id": "echo", "schedule": FOREVER}
    cron = (await ada.post("/runs/crons", body))["cron_id"]
    read = [
        (await api.http.get(f"/runs/crons/{cron}")).status_code for api in (ada, bob, admin, eve)
    ]
    assert read == [200, 404, 200, 404]
    for api, count in ((ada, 1), (bob, 0), (admin, 1), (eve, 0)):
        assert await api.post("/runs/crons/count", {}) >= count
        found = await api.post("/runs/crons/search", {"limit": 1000})
        assert (cron in {each["cron_id"] for each in found}) is bool(count)
    await ada.http.delete(f"/runs/crons/{cron}")


async def test_cron_run_acts_for_the_creator_of_the_cron(ada: Api, bob: Api) -> None:
    thread = await ada.thread()
    body = {"assistant_id": "configured", "schedule": "* * * * * *", "input": {"note": "x"}}
    cron = (await ada.post(f"/threads/{thread}/runs/crons", body))["cron_id"]
    async with asyncio.timeout(PATIENCE):
        while not (found := await ada.get(f"/threads/{thread}/runs?status=success")):
            await asyncio.sleep(0.1)
    await ada.http.delete(f"/runs/crons/{cron}")
    assert found[0]["metadata"]["user_id"] == "ada"
    seen = (await ada.get(f"/threads/{thread}/state"))["values"]["seen"]
    assert seen["user"]["identity"] == "ada"
    assert not await sees(bob, thread)


# --- the store --------------------------------------------------------------


async def test_store_items_are_kept_under_tenant_and_user(
    ada: Api, bob: Api, admin: Api, eve: Api
) -> None:
    key = uuid4().hex
    item = {"namespace": ["notes"], "key": key, "value": WEATHER}
    assert (await ada.http.put("/store/items", json=item)).status_code == 204
    full = "acme.ada.notes"
    for namespace in ("notes", full):
        found = await ada.get("/store/items", params={"namespace": namespace, "key": key})
        assert found["namespace"] == ["acme", "ada", "notes"]
        assert found["value"] == WEATHER
    for api, seen in ((bob, None), (eve, None), (admin, WEATHER)):
        found = await api.get("/store/items", params={"namespace": full, "key": key})
        assert (found and found["value"]) == seen
        names = await api.post("/store/namespaces", {"prefix": ["acme"], "limit": 1000})
        assert (["acme", "ada", "notes"] in names["namespaces"]) is (seen is not None)
        nothing = await api.post("/store/namespaces", {"limit": 1000})
        assert ["acme", "ada", "notes"] not in nothing["namespaces"]
    for api in (bob, eve):
        body = {"namespace": full.split("."), "key": key}
        await api.http.request("DELETE", "/store/items", json=body)
        await api.http.put("/store/items", json={**body, "value": {"taken": "over"}})
    assert (await ada.get("/store/items", params={"namespace": full, "key": key}))[
        "value"
    ] == WEATHER


async def test_tenant_named_like_a_reserved_namespace_can_use_the_store(server: Running) -> None:
    async for api in user(server, "langgraph", "ada"):
        body = {"namespace": ["notes"], "key": "k", "value": WEATHER}
        assert (await api.http.put("/store/items", json=body)).status_code == 204
        found = await api.get("/store/items", params={"namespace": "notes", "key": "k"})
        assert found["value"] == WEATHER


async def test_graph_learns_the_store_namespace_of_its_user(server: Running) -> None:
    async for api in user(server, "acme.org", "ada@acme.org"):
        body = {"namespace": ["notes"], "key": "k", "value": WEATHER}
        assert (await api.http.put("/store/items", json=body)).status_code == 204
        thread = await api.thread()
        run = await api.run(thread, "configured")
        await api.ended(thread, run)
        [row] = await api.get(f"/threads/{thread}/runs")
        where = row["kwargs"]["config"]["configurable"]["langgraph_auth_user"]["store_namespace"]
        assert where == ["acme%2Eorg", "ada@acme%2Eorg"]
        asked = {"op": "get", "namespace": [*where, "notes"], "key": "k"}
        answer = await api.post("/runs/wait", {"assistant_id": "memory", "input": asked})
        assert answer["result"] == WEATHER


# --- what clients cannot forge ----------------------------------------------

ID = "00000000-0000-4000-8000-000000000001"


def writes(key: str, value: str = "x") -> list[tuple[str, str, Any, str]]:
    """Return every request that writes a metadata key: method, path, body and its name in the 422."""
    bad = {"metadata": {key: value}}
    run = {"assistant_id": "echo", "input": {}}
    cron = {**run, "schedule": FOREVER}
    inside = {"config": {"metadata": {key: value}}}
    found: list[tuple[str, str, Any, str]] = [
        ("POST", "/threads", bad, "metadata"),
        ("POST", "/threads", {**bad, "thread_id": ID, "if_exists": "do_nothing"}, "metadata"),
        ("PATCH", "/threads/{thread}", bad, "metadata"),
        ("POST", "/assistants", {"graph_id": "echo", **bad}, "metadata"),
        ("POST", "/assistants", {"graph_id": "echo", **inside}, "config.metadata"),
        ("PATCH", "/assistants/{assistant}", bad, "metadata"),
        ("PATCH", "/assistants/{assistant}", inside, "config.metadata"),
        ("POST", "/runs/crons", {**cron, **bad}, "metadata"),
        ("POST", "/runs/crons", {**cron, **inside}, "config.metadata"),
        ("POST", "/threads/{thread}/runs/crons", {**cron, **bad}, "metadata"),
        ("PATCH", "/runs/crons/{cron}", bad, "metadata"),
        ("PATCH", "/runs/crons/{cron}", inside, "config.metadata"),
    ]
    for extra, place in ((bad, "metadata"), (inside, "config.metadata")):
        found.append(("POST", "/runs/batch", [run, {**run, **extra}], place))
    for path in ("/threads/{thread}/runs", "/runs"):
        for kind in ("", "/wait", "/stream"):
            found += [
                ("POST", path + kind, {**run, **bad}, "metadata"),
                ("POST", path + kind, {**run, **inside}, "config.metadata"),
            ]
    return found


@pytest.fixture
async def things(ada: Api) -> AsyncIterator[dict[str, str]]:
    thread = await ada.thread()
    cron = await ada.post("/runs/crons", {"assistant_id": "echo", "schedule": FOREVER})
    assistant = await ada.post("/assistants", {"graph_id": "echo"})
    yield {
        "thread": thread,
        "cron": cron["cron_id"],
        "assistant": assistant["assistant_id"],
    }
    await ada.http.delete(f"/runs/crons/{cron['cron_id']}")


@pytest.mark.parametrize("key", (*OWNER, *RESERVED))
async def test_client_that_writes_a_policy_key_gets_422_on_every_route(
    ada: Api, things: dict[str, str], key: str
) -> None:
    for method, path, body, place in writes(key):
        answer = await ada.http.request(method, path.format(**things), json=body)
        assert answer.status_code == 422, f"{method} {path} {body}: {answer.text}"
        assert f"`{place}.{key}`" in answer.json()["detail"].replace("payload.", "")
    for said in ({"metadata": {key: "x"}}, {"config": {"metadata": {key: "x"}}}):
        params = {"assistant_id": "echo", "input": {}, **said}
        command = {"id": 1, "method": "run.start", "params": params}
        answer = await ada.http.post(f"/threads/{things['thread']}/commands", json=command)
        assert answer.json()["type"] == "error", answer.text
        assert f"metadata.{key}` is reserved" in answer.json()["message"]
    thread = await ada.get(f"/threads/{things['thread']}")
    assert thread["metadata"].keys() == {"tenant_id", "user_id"}
    assert await ada.get(f"/threads/{things['thread']}/runs") == []


async def test_client_cannot_mark_an_assistant_as_the_systems(
    ada: Api, things: dict[str, str]
) -> None:
    mine = {"metadata": {"created_by": "system"}}
    answers = [
        await ada.http.post("/assistants", json={"graph_id": "echo", **mine}),
        await ada.http.patch(f"/assistants/{things['assistant']}", json=mine),
    ]
    for answer in answers:
        assert answer.status_code == 422
        assert "`metadata.created_by`" in answer.json()["detail"]


@pytest.mark.parametrize("lie", [{"user_id": "bob"}, {"tenant_id": "acm"}], ids=str)
async def test_client_cannot_set_another_user_or_tenant(
    ada: Api, things: dict[str, str], lie: dict[str, Any]
) -> None:
    for method, path, body in tellings(things, lie):
        answer = await ada.http.request(method, path, json=body)
        assert answer.status_code == 422, f"{method} {path} {body}: {answer.text}"
        assert next(iter(lie)) in answer.json()["detail"]


@pytest.mark.parametrize(
    "lie",
    [
        {"langgraph_auth_user_id": "bob"},
        {"langgraph_auth_user": {"identity": "bob", "tenant_id": "acme", "roles": []}},
        {"langgraph_auth_user": {"identity": "ada", "tenant_id": "acm", "roles": []}},
        {
            "langgraph_auth_user": {
                "identity": "ada",
                "tenant_id": "acme",
                "roles": ["tenant_admin"],
            }
        },
        {"langgraph_auth_user": "bob"},
        {"langgraph_auth_permissions": ["tenant_admin"]},
    ],
    ids=str,
)
async def test_client_cannot_set_keys_of_authentication(
    ada: Api, things: dict[str, str], lie: dict[str, Any]
) -> None:
    """The stock API drops these keys on most routes; on the others the server refuses them."""
    for method, path, body in tellings(things, lie):
        answer = await ada.http.request(method, path, json=body)
        if answer.status_code == 422:
            assert next(iter(lie)) in answer.json()["detail"]
            continue
        assert answer.is_success, f"{method} {path} {body}: {answer.text}"
        assert "bob" not in answer.text
        assert "tenant_admin" not in answer.text
        if "runs/wait" in path:
            seen = answer.json()["seen"]
            assert seen["user"] == {"identity": "ada", "permissions": []}
            assert seen["configurable"]["langgraph_auth_user_id"] == "ada"


def tellings(
    things: dict[str, str], lie: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every request that passes values to a graph: method, path and body."""
    run = {"assistant_id": "configured", "input": {}}
    for place in ({"config": {"configurable": lie}}, {"context": lie}):
        yield "POST", f"/threads/{things['thread']}/runs/wait", {**run, **place}
        yield "POST", "/runs/wait", {**run, **place}
        yield "POST", "/runs/crons", {**run, "schedule": FOREVER, **place}
        yield "PATCH", f"/runs/crons/{things['cron']}", place
        yield "POST", "/assistants", {"graph_id": "echo", **place}
        yield "PATCH", f"/assistants/{things['assistant']}", place


async def test_checkpoint_of_a_client_cannot_change_the_user_a_graph_sees(ada: Api) -> None:
    checkpoint = {"checkpoint_ns": "", "langgraph_auth_user": {"identity": "bob"}}
    body = {"assistant_id": "configured", "input": {}, "checkpoint": checkpoint}
    thread = await ada.thread()
    answer = await ada.http.post(f"/threads/{thread}/runs/wait", json=body)
    if answer.is_success:
        assert answer.json()["seen"]["user"]["identity"] == "ada"
        assert answer.json()["seen"]["configurable"]["user_id"] == "ada"
    else:
        assert answer.status_code == 422


async def test_thread_id_in_the_config_does_not_move_a_run(ada: Api, bob: Api) -> None:
    theirs, own = await ada.thread(), await bob.thread()
    body = {
        "assistant_id": "echo",
        "input": {"value": 1},
        "config": {"configurable": {"thread_id": theirs}},
    }
    await bob.post(f"/threads/{own}/runs/wait", body)
    await bob.post("/runs/wait", body)
    assert (await ada.get(f"/threads/{theirs}/state"))["values"] in ({}, None)
    assert await ada.get(f"/threads/{theirs}/runs") == []


# --- streams, and requests of graphs to their own server --------------------


async def test_foreign_run_cannot_be_reached_through_an_own_thread(
    ada: Api, bob: Api, tmp_path: Path
) -> None:
    theirs, own = await ada.thread(), await bob.thread()
    asked = {"seconds": 60, "record": str(tmp_path / "record")}
    run = await ada.run(theirs, "sleeper", asked, stream_resumable=True)
    await ada.until(theirs, run, "running")
    told = {}
    for identifier in (run, str(uuid4())):
        path = f"/threads/{own}/runs/{identifier}"
        for tail, headers in (("/stream", {}), ("/stream", {"last-event-id": "-"}), ("/join", {})):
            async with asyncio.timeout(PATIENCE):
                answer = await bob.http.get(path + tail, headers=headers)
            said = (answer.status_code, answer.text.replace(identifier, "RUN"))
            assert told.setdefault((tail, *headers), said) == said
            assert "sleeper" not in answer.text
        for method, tail in (("POST", "/cancel"), ("DELETE", ""), ("GET", "")):
            answer = await bob.http.request(method, path + tail)
            assert answer.status_code == 404
    assert await ada.status(theirs, run) == "running"
    assert (await ada.http.post(f"/threads/{theirs}/runs/{run}/cancel?wait=true")).is_success


async def test_cancelling_all_runs_cancels_only_those_of_the_user(
    ada: Api, bob: Api, tmp_path: Path
) -> None:
    theirs, own = await ada.thread(), await bob.thread()
    kept = await ada.run(theirs, "sleeper", {"seconds": 60})
    mine = await bob.run(own, "sleeper", {"seconds": 60})
    await ada.until(theirs, kept, "running")
    await bob.until(own, mine, "running")
    assert (await bob.http.post("/runs/cancel", json={"status": "all"})).is_success
    assert await bob.ended(own, mine) == "interrupted"
    assert await ada.status(theirs, kept) == "running"
    assert (await ada.http.post(f"/threads/{theirs}/runs/{kept}/cancel?wait=true")).is_success


async def test_graph_that_calls_its_own_server_acts_for_its_user(
    ada: Api, bob: Api, eve: Api
) -> None:
    thread = await ada.thread()
    body = {"assistant_id": "loopback", "input": {"value": "x"}}
    answer = await ada.post(f"/threads/{thread}/runs/wait", body)
    assert answer.get("answer", {}).get("value") == "x", answer
    for api in (bob, eve):
        found = await api.post("/threads/search", {"values": {"value": "x"}})
        assert found == []


@pytest.mark.parametrize("by", ["remote", "thread"])
async def test_graph_can_pass_on_the_true_owner_of_its_run(ada: Api, by: str) -> None:
    thread = await ada.thread(topic="calls")
    body = {"assistant_id": "loopback", "input": {"value": "x", "by": by}}
    done = await ada.post(f"/threads/{thread}/runs/wait", body)
    assert (done["told"]["tenant_id"], done["told"]["user_id"]) == ("acme", "ada")
    assert done["answer"]["value"] == "x"
    if by == "thread":
        made = await ada.get(f"/threads/{done['thread']['thread_id']}")
        assert (made["metadata"]["tenant_id"], made["metadata"]["user_id"]) == ("acme", "ada")
        assert made["metadata"]["topic"] == "calls"


@pytest.mark.parametrize("by", ["remote", "thread"])
@pytest.mark.parametrize("lie", [{"tenant_id": "acm"}, {"user_id": "bob"}, {"status": "open"}])
async def test_graph_cannot_pass_on_another_owner_or_status(
    ada: Api, bob: Api, by: str, lie: dict[str, str]
) -> None:
    thread, mark = await ada.thread(), uuid4().hex
    given = {"value": "x", "by": by, "changes": {**lie, "mark": mark}}
    run = await ada.run(thread, "loopback", given)
    assert await ada.ended(thread, run) == "error"
    for api in (ada, bob):
        assert await api.post("/threads/search", {"metadata": {"mark": mark}}) == []


@pytest.mark.parametrize("key", ["tenant_id", "user_id"])
async def test_client_cannot_write_owner_keys_even_with_true_values(
    ada: Api, things: dict[str, str], key: str
) -> None:
    truth = {"tenant_id": "acme", "user_id": "ada"}[key]
    for method, path, body, place in writes(key, truth):
        answer = await ada.http.request(method, path.format(**things), json=body)
        assert answer.status_code == 422, f"{method} {path} {body}: {answer.text}"
        assert f"`{place}.{key}`" in answer.json()["detail"].replace("payload.", "")


CALL = {"jsonrpc": "2.0", "id": 1}
ACCEPT = {"accept": "application/json, text/event-stream"}


async def test_a2a_context_belongs_to_its_user(
    server: Running, ada: Api, bob: Api, eve: Api
) -> None:
    [echo] = await ada.post("/assistants/search", {"graph_id": "echo", "name": "echo"})

    async def say(api: Api, **more: str) -> Any:
        message = {"role": "user", "messageId": uuid4().hex, **more}
        message["parts"] = [{"kind": "text", "text": "hello"}]  # type: ignore[assignment]
        body = {**CALL, "method": "message/send", "params": {"message": message}}
        path = f"/a2a/{echo['assistant_id']}"
        return (await api.http.post(path, json=body, headers=ACCEPT)).json()

    answered = await say(ada)
    context = answered["result"]["contextId"]
    assert [await sees(api, context) for api in (ada, bob, eve)] == [True, False, False]
    mine = await ada.get(f"/threads/{context}")
    assert (mine["metadata"]["tenant_id"], mine["metadata"]["user_id"]) == ("acme", "ada")
    before = await ada.get(f"/threads/{context}/runs")
    for api in (bob, eve):
        assert "error" in await say(api, contextId=context)
    assert await ada.get(f"/threads/{context}/runs") == before
    assert "result" in await say(ada, contextId=context)


async def test_mcp_tools_belong_to_the_tenant(ada: Api, bob: Api, eve: Api) -> None:
    name = f"tool_{uuid4().hex}"
    await ada.post("/assistants", {"graph_id": "echo", "name": name})
    for api, there in ((ada, True), (bob, True), (eve, False)):
        body = {**CALL, "method": "tools/list", "params": {}}
        listed = (await api.http.post("/mcp", json=body, headers=ACCEPT)).json()
        assert (name in {tool["name"] for tool in listed["result"]["tools"]}) is there
        call = {"name": name, "arguments": {"value": 1}}
        body = {**CALL, "method": "tools/call", "params": call}
        called = (await api.http.post("/mcp", json=body, headers=ACCEPT)).json()
        assert ("result" in called) is there


async def test_thread_of_the_v2_protocol_belongs_to_its_user(ada: Api, bob: Api, eve: Api) -> None:
    thread = str(uuid4())
    params = {"assistant_id": "echo", "input": {"value": 1}}
    body = {"id": 1, "method": "run.start", "params": params}
    started = await ada.post(f"/threads/{thread}/commands", body)
    assert started["type"] == "success", started
    assert [await sees(api, thread) for api in (ada, bob, eve)] == [True, False, False]
    mine = await ada.get(f"/threads/{thread}")
    assert (mine["metadata"]["tenant_id"], mine["metadata"]["user_id"]) == ("acme", "ada")
    lie = {**body, "params": {**params, "metadata": {"user_id": "bob"}}}
    refused = await ada.post(f"/threads/{(unmade := uuid4())}/commands", lie)
    assert refused["type"] == "error"
    assert "`metadata.user_id` is reserved" in refused["message"]
    assert not await sees(ada, str(unmade))
    found = await bob.post("/threads/search", {"limit": 1000})
    assert thread not in {row["thread_id"] for row in found}


async def test_pruning_with_a_foreign_thread_is_404_and_deletes_nothing(ada: Api, bob: Api) -> None:
    theirs, own = await ada.thread(), await bob.thread()
    answer = await bob.http.post("/threads/prune", json={"thread_ids": [own, theirs]})
    assert answer.status_code == 404
    assert await sees(ada, theirs)
    assert await sees(bob, own)


async def test_creating_a_foreign_thread_again_does_not_return_it(ada: Api, bob: Api) -> None:
    """GHSA-747p-c922-m55f: conditional creation bypassed the filters."""
    thread = await ada.thread(topic="x")
    run = {"assistant_id": "echo", "input": {}, "if_not_exists": "create"}
    for how in ("raise", "do_nothing"):
        body = {"thread_id": thread, "if_exists": how}
        assert (await bob.http.post("/threads", json=body)).status_code == 409
    for kind in ("", "/wait", "/stream"):
        answer = await bob.http.post(f"/threads/{thread}/runs{kind}", json=run)
        assert answer.status_code == 404
    assert await ada.get(f"/threads/{thread}/runs") == []


# --- repeated requests ------------------------------------------------------


@pytest.mark.parametrize(("tenant", "name"), [("acme", "bob"), ("globex", "ada"), ("acme", "ada")])
@pytest.mark.parametrize("end", ["", "/runs", "/runs/wait", "/runs/stream"])
async def test_repetition_is_not_answered_with_a_later_thread_of_the_same_id(
    server: Running, ada: Api, tenant: str, name: str, end: str
) -> None:
    thread, key = str(uuid4()), {"idempotency-key": uuid4().hex}
    run = {"assistant_id": "echo", "input": {"value": 1}, "if_not_exists": "create"}
    path, body = (f"/threads/{thread}{end}", run) if end else ("/threads", {"thread_id": thread})
    assert (await ada.http.post(path, json=body, headers=key)).status_code == 200
    assert (await ada.http.delete(f"/threads/{thread}")).status_code == 204
    async for other in user(server, tenant, name):
        await other.post("/threads", {"thread_id": thread, "metadata": WEATHER})
        said = {**run, "input": {"value": "sunny"}}
        await other.post(f"/threads/{thread}/runs/wait", said)
    again = await ada.http.post(path, json=body, headers=key)
    assert (again.status_code, "gone" in again.text) == (409, True), again.text
    assert "sunny" not in again.text


@pytest.mark.parametrize("end", ["", "/runs", "/runs/wait", "/runs/stream"])
async def test_repetition_passes_the_filter_of_a_read(
    server: Running, ada: Api, folder: Path, end: str
) -> None:
    """The thread has another owner meanwhile."""
    thread, key = str(uuid4()), {"idempotency-key": uuid4().hex}
    run = {"assistant_id": "echo", "input": {"value": 1}, "if_not_exists": "create"}
    path, body = (f"/threads/{thread}{end}", run) if end else ("/threads", {"thread_id": thread})
    assert (await ada.http.post(path, json=body, headers=key)).status_code == 200
    kind = "jsonb" if databases.kind() == "postgresql" else "text"
    databases.execute(
        folder / "data.db",
        f"UPDATE threads SET metadata = CAST(replace(CAST(metadata AS text), ?, ?) AS {kind}) "
        "WHERE CAST(thread_id AS text) = ?",
        '"ada"',
        '"bob"',
        thread,
    )
    again = await ada.http.post(path, json=body, headers=key)
    assert (again.status_code, "gone" in again.text) == (409, True), again.text
