"""The thread policy through the API: contexts, locks, and rejected writes on every route."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.support import policy
from tests.support.policy import RUN, Member, member
from tests.support.processes import Running
from tests.support.served import PATIENCE

pytestmark = pytest.mark.usefixtures("each_database")

server, ana = policy.server, policy.ana

HELLO = {"role": "user", "content": "hello"}


# --- opening and locking ----------------------------------------------------


async def test_new_thread_of_a_policy_agent_is_open_and_has_a_context_key(ana: Member) -> None:
    thread = await ana.open("https://www.Acme.com/about", topic="x")
    assert await ana.metadata(thread) == {
        "agent": "echo",
        "website": "https://www.Acme.com/about",
        "topic": "x",
        "context_key": "domain:acme.com",
        "status": "open",
        "tenant_id": "t1",
        "user_id": ana.name,
    }


async def test_second_thread_of_a_context_locks_the_first(ana: Member) -> None:
    first = await ana.open("acme.com")
    before = await ana.get(f"/threads/{first}")
    second = await ana.open("http://shop.acme.com:80/")
    locked = await ana.get(f"/threads/{first}")
    assert locked["metadata"]["status"] == "locked"
    assert locked["metadata"]["reason"] == "superseded"
    assert locked["metadata"]["locked_at"] > before["created_at"]
    # Locking a thread does not change its `updated_at`.
    assert locked["updated_at"] == before["updated_at"]
    assert await ana.policy_status(second) == "open"


async def test_rule_is_the_context_of_a_thread_without_website(ana: Member) -> None:
    first = await ana.thread(graph_id="echo", rule_name="R", payload={"a": 1, "b": 2.0})
    other = await ana.thread(graph_id="echo", rule_name="R", payload={"a": 2})
    second = await ana.thread(graph_id="echo", rule_name=" R ", payload={"b": 2, "a": 1.0})
    assert await ana.policy_statuses(first, other, second) == ["locked", "open", "open"]
    bare = await ana.thread(agent="echo")
    assert (await ana.metadata(bare))["context_key"].startswith("icp:Default ICP#")


async def test_new_thread_locks_none_of_other_contexts_agents_users_or_tenants(
    server: Running, ana: Member
) -> None:
    mine = await ana.open()
    await ana.open("beta.io")
    await ana.open(agent="sleeper")
    async with member(server) as bob, member(server, ana.name, "t2") as namesake:
        theirs = await bob.open()
        elsewhere = await namesake.open()
        assert await bob.policy_status(theirs) == "open"
        assert await namesake.policy_status(elsewhere) == "open"
    assert await ana.policy_status(mine) == "open"


async def test_policy_does_not_affect_other_agents(ana: Member) -> None:
    threads = [await ana.thread(agent="interrupt", website="acme.com") for _ in range(2)]
    for thread in threads:
        assert await ana.metadata(thread) == {
            "agent": "interrupt",
            "website": "acme.com",
            "tenant_id": "t1",
            "user_id": ana.name,
        }
        await ana.run(thread, "interrupt")


@pytest.mark.parametrize(
    ("context", "key"),
    [
        ({"website": "not a website"}, "website"),
        ({"website": 7}, "website"),
        ({"rule_name": ["x"]}, "rule_name"),
        ({"rule_name": "x" * 101}, "rule_name"),
    ],
)
async def test_invalid_context_is_422_and_creates_no_thread(
    ana: Member, context: dict[str, Any], key: str
) -> None:
    thread = str(uuid4())
    body = {"thread_id": thread, "metadata": {"agent": "echo", **context}}
    answer = await ana.http.post("/threads", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_context")
    assert answer.json()["key"] == key
    assert (await ana.http.get(f"/threads/{thread}")).status_code == 404


async def test_thread_that_gets_a_policy_agent_later_locks_the_open_one(ana: Member) -> None:
    first = await ana.open()
    plain = await ana.thread(website="acme.com")
    assert "status" not in await ana.metadata(plain)
    run = await ana.run(plain, "echo")
    assert await ana.ended(plain, run) == "success"
    assert await ana.policy_statuses(first, plain) == ["locked", "open"]
    assert (await ana.metadata(plain))["agent"] == "echo"
    late = await ana.thread(website="acme.com")
    await ana.http.patch(f"/threads/{late}", json={"metadata": {"agent": "echo"}})
    assert await ana.policy_statuses(plain, late) == ["locked", "open"]


@pytest.mark.parametrize("route", ["runs/wait", "runs", "runs/stream"])
async def test_thread_created_by_a_run_is_open_and_locks_the_first(ana: Member, route: str) -> None:
    first = await ana.open()
    thread = str(uuid4())
    body = {**RUN, "if_not_exists": "create", "metadata": {"website": "acme.com"}}
    assert (await ana.http.post(f"/threads/{thread}/{route}", json=body)).is_success
    assert await ana.policy_statuses(first, thread) == ["locked", "open"]


async def test_run_metadata_cannot_set_another_agent(ana: Member) -> None:
    first = await ana.open()
    thread = str(uuid4())
    metadata = {"website": "acme.com", "graph_id": "interrupt"}
    body = {**RUN, "if_not_exists": "create", "metadata": metadata}
    await ana.post(f"/threads/{thread}/runs/wait", body)
    assert await ana.policy_statuses(first, thread) == ["locked", "open"]
    assert (await ana.metadata(thread))["agent"] == "echo"


async def test_temporary_threads_lock_no_other_thread(ana: Member) -> None:
    mine = await ana.open()
    [run] = await ana.post("/runs/batch", [{**RUN, "metadata": {"website": "acme.com"}}])
    assert await ana.until(run["thread_id"], run["run_id"], None) is None
    assert await ana.policy_status(mine) == "open"


async def test_copied_thread_is_open_and_locks_its_source(ana: Member) -> None:
    source = await ana.open()
    await ana.post(f"/threads/{source}/runs/wait", RUN)
    copied = await ana.post(f"/threads/{source}/copy")
    assert copied["values"]["value"] == "a"
    assert await ana.policy_statuses(source, copied["thread_id"]) == ["locked", "open"]
    again = await ana.post(f"/threads/{source}/copy")
    metadata = await ana.metadata(again["thread_id"])
    assert metadata["status"] == "open"
    assert metadata.keys().isdisjoint({"locked_at", "reason"})
    assert await ana.policy_status(copied["thread_id"]) == "locked"


# --- contexts that change ---------------------------------------------------


async def test_changed_website_changes_the_context_key_and_locks_the_open_thread_there(
    ana: Member,
) -> None:
    there = await ana.open("beta.io")
    moving = await ana.open("acme.com")
    answer = await ana.http.patch(
        f"/threads/{moving}", json={"metadata": {"website": "https://beta.io"}}
    )
    assert answer.json()["metadata"]["context_key"] == "domain:beta.io"
    assert await ana.policy_statuses(there, moving) == ["locked", "open"]
    # The context that the thread left has no open thread now.
    back = await ana.open("acme.com")
    assert await ana.policy_statuses(moving, back) == ["open", "open"]


async def test_equivalent_website_does_not_change_the_context(ana: Member) -> None:
    thread = await ana.open("acme.com")
    answer = await ana.http.patch(
        f"/threads/{thread}", json={"metadata": {"website": "www.ACME.com", "title": "T"}}
    )
    assert answer.json()["metadata"]["title"] == "T"
    assert await ana.policy_status(thread) == "open"


async def test_graph_can_move_its_own_thread_to_another_website(ana: Member) -> None:
    there = await ana.open("beta.io", agent="loopback")
    moving = await ana.thread(agent="loopback")
    given = {"by": "move", "changes": {"website": "https://beta.io/about"}}
    body = {"assistant_id": "loopback", "input": given}
    done = await ana.post(f"/threads/{moving}/runs/wait", body)
    assert done["thread"]["metadata"]["context_key"] == "domain:beta.io"
    assert await ana.policy_statuses(there, moving) == ["locked", "open"]
    # The next run sees the new context.
    done = await ana.post(f"/threads/{moving}/runs/wait", body)
    assert done["told"]["context_key"] == "domain:beta.io"


async def test_locked_thread_rejects_a_new_context_but_accepts_other_metadata(ana: Member) -> None:
    first = await ana.open()
    await ana.open()
    answer = await ana.http.patch(f"/threads/{first}", json={"metadata": {"website": "beta.io"}})
    assert (answer.status_code, answer.json()["error"]) == (409, "thread_locked")
    answer = await ana.http.patch(f"/threads/{first}", json={"metadata": {"title": "Old"}})
    assert answer.json()["metadata"]["title"] == "Old"
    assert (await ana.metadata(first))["context_key"] == "domain:acme.com"


@pytest.mark.parametrize("key", ["status", "context_key", "locked_at", "archived_at", "reason"])
async def test_clients_cannot_write_policy_keys(ana: Member, key: str) -> None:
    first = await ana.open()
    await ana.open()
    for value in ("open", None):
        answer = await ana.http.patch(f"/threads/{first}", json={"metadata": {key: value}})
        assert answer.status_code == 422
        assert key in answer.text
    answer = await ana.http.patch(f"/threads/{first}", json={"metadata": {"agent": "interrupt"}})
    assert (answer.status_code, answer.json()["key"]) == (422, "agent")
    assert await ana.policy_status(first) == "locked"


# --- rejected writes --------------------------------------------------------


def _post(path: str, body: Any) -> Callable[[Member, str], Awaitable[httpx.Response]]:
    async def ask(ana: Member, thread: str) -> httpx.Response:
        return await ana.http.post(path.format(thread), json=body)

    return ask


async def _supersteps(ana: Member, thread: str) -> httpx.Response:
    steps = [{"updates": [{"values": {"value": "x"}, "as_node": "echo"}]}]
    body = {"thread_id": thread, "if_exists": "do_nothing", "supersteps": steps}
    return await ana.http.post("/threads", json=body)


STATE = {"values": {"value": "x"}}
GATED = {
    "run": _post("/threads/{}/runs", RUN),
    "run, wait": _post("/threads/{}/runs/wait", RUN),
    "run, stream": _post("/threads/{}/runs/stream", RUN),
    "run, create": _post("/threads/{}/runs", {**RUN, "if_not_exists": "create"}),
    "run, resume": _post("/threads/{}/runs/wait", {**RUN, "command": {"resume": 1}}),
    "run, later": _post("/threads/{}/runs", {**RUN, "after_seconds": 60}),
    **{
        f"run, {strategy}": _post("/threads/{}/runs", {**RUN, "multitask_strategy": strategy})
        for strategy in ("reject", "rollback", "interrupt", "enqueue")
    },
    "run, other agent": _post("/threads/{}/runs/wait", {"assistant_id": "interrupt", "input": {}}),
    "cron": _post("/threads/{}/runs/crons", {**RUN, "schedule": "0 0 1 1 *"}),
    "state": _post("/threads/{}/state", STATE),
    "bulk": _supersteps,
}


async def _locked(ana: Member) -> str:
    """Create a locked thread with a history."""
    thread = await ana.open()
    await ana.post(f"/threads/{thread}/runs/wait", RUN)
    await ana.open()
    return thread


async def _everything(ana: Member, thread: str) -> list[Any]:
    """Return everything that a client can read of a thread."""
    parts = ("", "/state", "/history", "/runs")
    return [await ana.get(f"/threads/{thread}{part}") for part in parts]


@pytest.mark.parametrize("route", GATED)
async def test_locked_thread_rejects_writes_with_409_and_does_not_change(
    ana: Member, route: str
) -> None:
    thread = await _locked(ana)
    before = await _everything(ana, thread)
    answer = await GATED[route](ana, thread)
    assert answer.status_code == 409
    body = answer.json()
    assert "read-only" in body.pop("detail")
    assert body == {
        "error": "thread_locked",
        "hint": "create_new",
        "thread_id": thread,
        "status": "locked",
    }
    assert await _everything(ana, thread) == before
    assert await ana.post("/runs/crons/search", {"thread_id": thread}) == []


@pytest.mark.parametrize("route", GATED)
async def test_busy_superseded_thread_rejects_writes_as_pending_lock(
    ana: Member, route: str
) -> None:
    """The answer is not that the thread is busy: then the client would wait in vain."""
    thread = await ana.open(agent="sleeper")
    run = await ana.run(thread, "sleeper", {}, after_seconds=3600)
    await ana.open(agent="sleeper")
    before = await _everything(ana, thread)
    answer = await GATED[route](ana, thread)
    body = answer.json()
    assert (answer.status_code, body["error"]) == (409, "thread_locked")
    assert (body["hint"], body["status"]) == ("create_new", "pending_lock")
    assert await _everything(ana, thread) == before
    await ana.post(f"/threads/{thread}/runs/{run}/cancel")
    assert await ana.policy_status(thread) == "locked"


async def test_locked_thread_rejects_protocol_commands(ana: Member) -> None:
    thread = await _locked(ana)
    before = await _everything(ana, thread)
    params = {"assistant_id": "echo", "input": {"value": "a"}}
    command = {"id": 1, "method": "run.start", "params": params}
    answer = await ana.http.post(f"/threads/{thread}/commands", json=command)
    assert answer.status_code < 500
    refused = answer.json()
    assert (refused["id"], refused["error"], refused["hint"]) == (1, "thread_locked", "create_new")
    assert await _everything(ana, thread) == before


async def test_locked_thread_rejects_runs_over_a_web_socket(server: Running, ana: Member) -> None:
    thread = await _locked(ana)
    before = await _everything(ana, thread)
    url = f"ws{server.url[4:]}/threads/{thread}/stream/events"
    params = {"assistant_id": "echo", "input": {"value": "a"}}
    async with connect(url, additional_headers=policy.headers("t1", ana.name)) as socket:
        await socket.send(json.dumps({"id": 1, "method": "run.start", "params": params}))
        async with asyncio.timeout(PATIENCE):
            while (answer := json.loads(await socket.recv())).get("id") != 1:
                pass
    assert (answer["type"], answer["error"]) == ("error", "thread_locked")
    assert (answer["hint"], answer["thread_id"]) == ("create_new", thread)
    assert "thread_locked" in answer["message"]
    assert await _everything(ana, thread) == before


async def test_thread_created_by_a_protocol_command_locks_the_first(ana: Member) -> None:
    first, second = await ana.open(), str(uuid4())
    params = {"assistant_id": "echo", "input": {}, "metadata": {"website": "acme.com"}}
    command = {"id": 1, "method": "run.start", "params": params}
    started = await ana.post(f"/threads/{second}/commands", command)
    assert started["type"] == "success"
    assert await ana.policy_statuses(first, second) == ["locked", "open"]


async def test_locked_thread_rejects_an_answer_to_its_interrupt(ana: Member) -> None:
    thread = await ana.open()
    asked = {"assistant_id": "interrupt", "input": {}}
    state = await ana.post(f"/threads/{thread}/runs/wait", asked)
    await ana.open()
    before = await _everything(ana, thread)
    [question] = state["__interrupt__"]
    params = {"interrupt_id": question["id"], "namespace": [], "response": "yes"}
    command = {"id": 1, "method": "input.respond", "params": params}
    answer = await ana.http.post(f"/threads/{thread}/commands", json=command)
    assert answer.status_code < 500
    assert "thread_locked" in answer.text
    resumed = {**asked, "command": {"resume": "yes"}}
    answer = await ana.http.post(f"/threads/{thread}/runs/wait", json=resumed)
    assert (answer.status_code, answer.json()["error"]) == (409, "thread_locked")
    assert await _everything(ana, thread) == before


async def _said(ana: Member, method: str, **more: Any) -> dict[str, Any]:
    """Send a message over A2A. Return the first answer."""
    [assistant] = await ana.post("/assistants/search", {"graph_id": "echo"})
    parts = [{"kind": "text", "text": "hello"}]
    message = {"role": "user", "messageId": "m", "parts": parts, **more}
    rpc: Any = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}
    path = f"/a2a/{assistant['assistant_id']}"
    if method == "message/send":
        found: dict[str, Any] = await ana.post(path, rpc)
        return found
    accept = {"accept": "text/event-stream"}
    events = await ana.events("POST", path, rpc, accept)
    first: dict[str, Any] = json.loads(events[0].data)
    return first


A2A = ["message/send", "message/stream"]


@pytest.mark.parametrize("method", A2A)
async def test_locked_thread_rejects_a2a_messages(ana: Member, method: str) -> None:
    thread = await _locked(ana)
    before = await _everything(ana, thread)
    answer = await _said(ana, method, contextId=thread)
    assert answer["id"] == 1
    assert "thread_locked" in answer["error"]["message"]
    assert answer["error"]["data"]["hint"] == "create_new"
    assert answer["error"]["data"]["thread_id"] == thread
    assert await _everything(ana, thread) == before


@pytest.mark.parametrize("method", A2A)
async def test_a2a_message_without_context_id_opens_a_thread(ana: Member, method: str) -> None:
    """In A2A this starts a new conversation, so the open thread of the context locks."""
    first = (await _said(ana, method))["result"]["contextId"]
    assert await ana.policy_status(first) == "open"
    again = (await _said(ana, method, contextId=first))["result"]["contextId"]
    assert again == first
    second = (await _said(ana, method))["result"]["contextId"]
    assert await ana.policy_statuses(first, second) == ["locked", "open"]
    assert "error" in await _said(ana, method, contextId=first)


async def test_mcp_tool_call_creates_no_thread(ana: Member) -> None:
    thread = await ana.open()
    params = {"name": "sleeper", "arguments": {"seconds": 0.01}}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    answer = await ana.http.post("/mcp", json=rpc, headers=accept)
    assert "slept" in answer.json()["result"]["content"][0]["text"]
    assert [row["thread_id"] for row in await ana.found()] == [thread]


async def test_graph_can_pass_its_thread_metadata_to_a_new_thread(ana: Member) -> None:
    """The new thread has another context, and the policy opens it."""
    theirs = await ana.open("beta.io")
    thread = await ana.open(agent="loopback")
    given: dict[str, Any] = {"value": "x", "by": "remote"}
    done = await ana.post(
        f"/threads/{thread}/runs/wait", {"assistant_id": "loopback", "input": given}
    )
    assert (done["told"]["status"], done["told"]["context_key"]) == ("open", "domain:acme.com")
    assert done["answer"]["value"] == "x"
    changes = {"agent": "echo", "graph_id": "echo", "website": "beta.io"}
    given = {"value": "x", "by": "thread", "changes": changes}
    done = await ana.post(
        f"/threads/{thread}/runs/wait", {"assistant_id": "loopback", "input": given}
    )
    made = await ana.metadata(done["thread"]["thread_id"])
    assert (made["status"], made["context_key"]) == ("open", "domain:beta.io")
    assert await ana.policy_statuses(theirs, thread) == ["locked", "open"]


async def test_cron_of_a_locked_thread_is_disabled(server: Running, ana: Member) -> None:
    thread = await ana.open()
    body = {**RUN, "schedule": "* * * * * *"}
    cron = (await ana.post(f"/threads/{thread}/runs/crons", body))["cron_id"]

    async def enabled() -> bool:
        [found] = await ana.post("/runs/crons/search", {"thread_id": thread})
        return bool(found["enabled"])

    try:
        async with asyncio.timeout(PATIENCE):
            while not await ana.get(f"/threads/{thread}/runs"):
                await asyncio.sleep(0.05)
        assert await enabled()
        await ana.open()
        async with asyncio.timeout(PATIENCE):
            while await ana.policy_status(thread) != "locked":
                await asyncio.sleep(0.05)
        before = await _everything(ana, thread)
        assert not await enabled()
        # If a client enables it again, it fires once, in vain, and is disabled again.
        assert (await ana.http.patch(f"/runs/crons/{cron}", json={"enabled": True})).is_success
        async with asyncio.timeout(PATIENCE):
            while f'"cron_id": "{cron}", "why": "Thread {thread}' not in server.log.read_text():
                await asyncio.sleep(0.05)
        assert not await enabled()
        assert await _everything(ana, thread) == before
    finally:
        await ana.http.delete(f"/runs/crons/{cron}")


async def test_history_of_a_locked_thread_is_not_pruned(ana: Member) -> None:
    thread = await ana.open()
    await ana.post(f"/threads/{thread}/runs/wait", RUN)
    await ana.post(f"/threads/{thread}/runs/wait", RUN)
    other = await ana.open()
    await ana.post(f"/threads/{other}/runs/wait", RUN)
    before = await ana.get(f"/threads/{thread}/history?limit=100")
    of_open = await ana.get(f"/threads/{other}/history?limit=100")
    body = {"thread_ids": [other, thread], "strategy": "keep_latest"}
    answer = await ana.http.post("/threads/prune", json=body)
    assert (answer.status_code, answer.json()["error"]) == (409, "thread_locked")
    assert await ana.get(f"/threads/{thread}/history?limit=100") == before
    # A refusal prunes none of them.
    assert await ana.get(f"/threads/{other}/history?limit=100") == of_open
    assert (await ana.post("/threads/prune", {**body, "thread_ids": [other]}))["pruned_count"] == 1
    assert len(await ana.get(f"/threads/{other}/history?limit=100")) == 1


async def test_locked_thread_without_state_rejects_writes_with_409(ana: Member) -> None:
    """The 409 precedes every other error of the write."""
    thread = await ana.open()
    await ana.open()
    for body in (STATE, {"values": {"nothing of the kind": 1}, "as_node": "nowhere"}):
        answer = await ana.http.post(f"/threads/{thread}/state", json=body)
        assert (answer.status_code, answer.json()["error"]) == (409, "thread_locked")


async def test_locked_thread_allows_reads_and_joins(ana: Member) -> None:
    thread = await _locked(ana)
    [run] = await ana.get(f"/threads/{thread}/runs")
    assert (await ana.get(f"/threads/{thread}/state"))["values"]["value"] == "a"
    assert (await ana.get(f"/threads/{thread}/history"))[0]["values"]["value"] == "a"
    assert len(await ana.post(f"/threads/{thread}/history", {"limit": 1})) == 1
    joined = await ana.get(f"/threads/{thread}/runs/{run['run_id']}/join")
    assert joined["value"] == "a"
    events = await ana.events("GET", f"/threads/{thread}/runs/{run['run_id']}/stream")
    assert all(event.name != "error" for event in events)
    assert thread in [row["thread_id"] for row in await ana.found()]
