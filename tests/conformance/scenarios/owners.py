"""Servers with users: everything has an owner, and other users cannot see it."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World, system_assistant
from .crons import NEVER
from .events import command, events_until_end
from .mcp import rpc, tool
from .streams import pairs

RUN = {"assistant_id": "echo", "input": {"value": 1}}


async def call_all(w: World, *calls: tuple[Any, ...]) -> list[Any]:
    """Return the answer to each call."""
    return [await w.call(*call) for call in calls]


@scenario(owners=True)
async def requests_without_user(w: World) -> Any:
    """Without a user, only public routes answer."""
    return await call_all(
        w,
        ("GET", "/ok"),
        ("POST", "/threads", {}),
        ("POST", "/threads/search", {}),
        ("POST", "/assistants/search", {}),
        ("POST", "/runs/wait", RUN),
        ("POST", "/runs/stream", RUN),
        ("POST", "/store/items/search", {"namespace_prefix": []}),
        ("POST", "/runs/crons/search", {}),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ("POST", f"/threads/{w.new_id()}/commands", {"id": 1, "method": "run.start"}),
    )


@scenario(owners=True)
async def studio_headers_give_no_access(w: World) -> Any:
    """A header alone must not give access to everything."""
    headers = {"x-auth-scheme": "langsmith"}
    return (await w.call("POST", "/threads/search", {}, headers=headers))["status"]


@scenario(owners=True)
async def created_objects_store_their_owner(w: World) -> Any:
    ann = w.user("ann")
    forged = {"owner": "somebody else", "kept": 1}
    thread = await ann.sdk.threads.create(metadata=forged)
    key = thread["thread_id"]
    assistant = await ann.sdk.assistants.create("echo", metadata=dict(forged))
    run = await ann.sdk.runs.create(key, "echo", input={"value": 1}, metadata=dict(forged))
    await ann.sdk.runs.join(key, run["run_id"])
    patched = await ann.sdk.threads.update(key, metadata={"owner": "x", "more": 2})
    return [row["metadata"] for row in (thread, assistant, run, patched)]


@scenario(owners=True)
async def threads_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = await ann.thread()
    await ann.sdk.runs.wait(key, "echo", input={"value": 1})
    path = f"/threads/{key}"
    seen = await call_all(
        bob,
        ("GET", path),
        ("PATCH", path, {"metadata": {"a": 1}}),
        ("GET", f"{path}/state"),
        ("GET", f"{path}/history"),
        ("POST", f"{path}/history", {"limit": 2}),
        ("POST", f"{path}/copy"),
        ("GET", f"{path}/storage"),
        ("POST", "/threads", {"thread_id": key}),
        ("POST", "/threads", {"thread_id": key, "if_exists": "do_nothing"}),
        ("POST", "/threads/prune", {"thread_ids": [key]}),
        ("DELETE", path),
    )
    return [seen, (await ann.call("GET", path))["status"]]


@scenario(owners=True)
async def state_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = await ann.thread()
    await ann.sdk.runs.wait(key, "echo", input={"value": 1})
    answer = await bob.call("POST", f"/threads/{key}/state", {"values": {"value": 2}})
    return [answer["status"] in (403, 404), (await ann.sdk.threads.get_state(key))["values"]]


@scenario(owners=True)
async def searching_threads(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = await ann.thread(n=1)
    await ann.thread(n=2)
    mine = {"limit": 10, "sort_by": "created_at", "sort_order": "asc"}
    found = await ann.call("POST", "/threads/search", mine)
    return [
        [row["metadata"]["n"] for row in found["body"]],
        found["headers"],
        await call_all(
            bob,
            ("POST", "/threads/search", {}),
            ("POST", "/threads/search", {"ids": [key]}),
            ("POST", "/threads/search", {"metadata": {"owner": ann.http.headers["x-user"]}}),
            ("POST", "/threads/count", {}),
        ),
        await ann.sdk.threads.count(),
    ]


@scenario(owners=True)
async def runs_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = await ann.thread()
    run = await ann.sdk.runs.create(key, "echo", input={"value": 1}, stream_resumable=True)
    await ann.sdk.runs.join(key, run["run_id"])
    path = f"/threads/{key}/runs"
    one = f"{path}/{run['run_id']}"
    seen = await call_all(
        bob,
        ("POST", path, RUN),
        ("POST", path, {**RUN, "if_not_exists": "create"}),
        ("POST", f"{path}/wait", RUN),
        ("POST", f"{path}/stream", RUN),
        ("GET", path),
        ("GET", one),
        ("GET", f"{one}/join"),
        ("POST", f"{one}/cancel"),
        ("POST", "/runs/cancel", {"thread_id": key, "run_ids": [run["run_id"]]}),
        ("DELETE", one),
    )
    return [seen, len(await ann.sdk.runs.list(key)), (await ann.sdk.threads.get(key))["values"]]


@scenario(owners=True)
async def streams_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = await ann.thread()
    run = await ann.sdk.runs.create(key, "echo", input={"value": 1}, stream_resumable=True)
    await ann.sdk.runs.join(key, run["run_id"])
    path = f"/threads/{key}/runs/{run['run_id']}/stream"
    start = {"headers": {"Last-Event-ID": "0-0"}}
    return [
        pairs(await bob.sse("GET", path, **start)),
        [event for event, _ in pairs(await ann.sse("GET", path, **start))],
    ]


@scenario(owners=True)
async def event_streams_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = w.new_id()
    await command(ann, key, "run.start", assistant_id="echo", input={"value": 1})
    mine = await events_until_end(ann, key, ["values", "lifecycle"])
    theirs = await bob.call("POST", f"/threads/{key}/stream/events", {"channels": ["values"]})
    started = await command(bob, key, "run.start", assistant_id="echo", input={"value": 2})
    return [len(mine) > 1, theirs, started, (await ann.sdk.threads.get(key))["values"]]


@scenario(owners=True)
async def assistants_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = (await ann.sdk.assistants.create("echo", name="hers"))["assistant_id"]
    path = f"/assistants/{key}"
    thread = await bob.thread()
    seen = await call_all(
        bob,
        ("GET", path),
        ("GET", f"{path}/schemas"),
        ("GET", f"{path}/graph"),
        ("PATCH", path, {"name": "mine"}),
        ("POST", f"{path}/versions", {}),
        ("POST", f"{path}/latest", {"version": 1}),
        ("DELETE", path),
        ("POST", "/assistants", {"graph_id": "echo", "assistant_id": key}),
        ("POST", f"/threads/{thread}/runs", {**RUN, "assistant_id": key}),
        ("POST", "/runs/wait", {**RUN, "assistant_id": key}),
        ("POST", "/runs/crons", {"assistant_id": key, "schedule": NEVER}),
    )
    return [seen, (await ann.sdk.assistants.get(key))["name"]]


@scenario(owners=True)
async def searching_assistants(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    mark = {"mark": w.new_id()}
    await ann.sdk.assistants.create("echo", name="hers", metadata=dict(mark))
    system = {"created_by": "system"}
    return [
        [
            [row["name"] for row in await each.sdk.assistants.search(metadata=mark)],
            await each.sdk.assistants.count(metadata=mark),
            len(await each.sdk.assistants.search(metadata=system, graph_id="steps")),
        ]
        for each in (ann, bob)
    ]


@scenario(owners=True)
async def assistants_of_the_system(w: World) -> Any:
    """Every user may read and run them, but not change them."""
    path = f"/assistants/{system_assistant('echo')}"
    return await call_all(
        w.user("ann"),
        ("GET", path),
        ("PATCH", path, {"name": "mine"}),
        ("POST", f"{path}/latest", {"version": 1}),
        ("DELETE", path),
        ("POST", "/runs/wait", RUN),
    )


@scenario(owners=True)
async def forged_system_metadata(w: World) -> Any:
    """An assistant that is marked as the system's can be read by others, but not changed."""
    ann, bob = w.user("ann"), w.user("bob")
    made = await ann.sdk.assistants.create("echo", metadata={"created_by": "system"})
    path = f"/assistants/{made['assistant_id']}"
    return await call_all(bob, ("GET", path), ("PATCH", path, {"name": "mine"}), ("DELETE", path))


@scenario(owners=True)
async def crons_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    thread = await ann.thread()
    cron = await ann.sdk.crons.create("echo", schedule=NEVER, metadata={})
    on_thread = await ann.sdk.crons.create_for_thread(thread, "echo", schedule=NEVER, metadata={})
    path = f"/runs/crons/{cron['cron_id']}"
    seen = await call_all(
        bob,
        ("GET", path),
        ("PATCH", path, {"enabled": False}),
        ("DELETE", path),
        ("POST", "/runs/crons/search", {}),
        ("POST", "/runs/crons/search", {"thread_id": thread}),
        ("POST", "/runs/crons/count", {}),
        ("POST", f"/threads/{thread}/runs/crons", {"assistant_id": "echo", "schedule": NEVER}),
    )
    mine = sorted(row["cron_id"] for row in await ann.sdk.crons.search())
    same = mine == sorted([cron["cron_id"], on_thread["cron_id"]])
    return [seen, same, await ann.sdk.crons.count()]


@scenario(owners=True)
async def items_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    await ann.sdk.store.put_item(["notes"], "k", {"a": 1})
    await bob.sdk.store.put_item(["notes"], "k", {"b": 2})
    seen = []
    for each in (ann, bob):
        item = await each.sdk.store.get_item(["notes"], "k")
        found = await each.sdk.store.search_items([])
        names = await each.sdk.store.list_namespaces()
        seen.append([item, found["items"], names["namespaces"]])
    await bob.sdk.store.delete_item(["notes"], "k")
    return [seen, (await ann.sdk.store.get_item(["notes"], "k"))["value"]]


@scenario(owners=True)
async def node_sees_its_user(w: World) -> Any:
    ann = w.user("ann")
    key = await ann.thread()
    config = {"configurable": {"langgraph_auth_user": {"identity": "root", "permissions": []}}}
    seen = (await ann.sdk.runs.wait(key, "configured", input={}, config=config))["seen"]
    return [seen["user"], seen["configurable"]]


@scenario(owners=True)
async def node_of_a_stateless_run_sees_its_user(w: World) -> Any:
    ann = w.user("ann")
    body = {"assistant_id": "configured", "input": {}}
    return (await ann.call("POST", "/runs/wait", body))["body"]["seen"]["user"]


@scenario(owners=True)
async def tools_run_as_their_caller(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    name = await tool(ann, "echo")
    call = {"name": name, "arguments": {"value": 1}}
    return [await rpc(each, "tools/call", call) for each in (ann, bob)]
