"""Servers that know their users: everything has an owner, and nobody else sees it."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World, system_assistant
from .crons import NEVER
from .events import command, told
from .mcp import rpc, tool
from .streams import pairs

RUN = {"assistant_id": "echo", "input": {"value": 1}}


async def tried(w: World, *calls: tuple[Any, ...]) -> list[Any]:
    """What each call is answered."""
    return [await w.call(*call) for call in calls]


@scenario(owners=True)
async def strangers(w: World) -> Any:
    """Without a name nothing is answered but what is public."""
    return await tried(
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
async def a_way_around_for_studio(w: World) -> Any:
    """A header must not be enough to pass for somebody who may see everything."""
    headers = {"x-auth-scheme": "langsmith"}
    return (await w.call("POST", "/threads/search", {}, headers=headers))["status"]


@scenario(owners=True)
async def creating_stamps_the_owner(w: World) -> Any:
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
    seen = await tried(
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
        await tried(
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
    seen = await tried(
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
    mine = await told(ann, key, ["values", "lifecycle"])
    theirs = await bob.call("POST", f"/threads/{key}/stream/events", {"channels": ["values"]})
    started = await command(bob, key, "run.start", assistant_id="echo", input={"value": 2})
    return [len(mine) > 1, theirs, started, (await ann.sdk.threads.get(key))["values"]]


@scenario(owners=True)
async def assistants_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    key = (await ann.sdk.assistants.create("echo", name="hers"))["assistant_id"]
    path = f"/assistants/{key}"
    thread = await bob.thread()
    seen = await tried(
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
    """Everybody may read and run them, nobody may change them."""
    path = f"/assistants/{system_assistant('echo')}"
    return await tried(
        w.user("ann"),
        ("GET", path),
        ("PATCH", path, {"name": "mine"}),
        ("POST", f"{path}/latest", {"version": 1}),
        ("DELETE", path),
        ("POST", "/runs/wait", RUN),
    )


@scenario(owners=True)
async def passing_for_the_system(w: World) -> Any:
    """Calling one's assistant the system's opens it to readers, not to writers."""
    ann, bob = w.user("ann"), w.user("bob")
    made = await ann.sdk.assistants.create("echo", metadata={"created_by": "system"})
    path = f"/assistants/{made['assistant_id']}"
    return await tried(bob, ("GET", path), ("PATCH", path, {"name": "mine"}), ("DELETE", path))


@scenario(owners=True)
async def crons_of_others(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    thread = await ann.thread()
    cron = await ann.sdk.crons.create("echo", schedule=NEVER, metadata={})
    on_thread = await ann.sdk.crons.create_for_thread(thread, "echo", schedule=NEVER, metadata={})
    path = f"/runs/crons/{cron['cron_id']}"
    seen = await tried(
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
async def a_node_knows_its_user(w: World) -> Any:
    ann = w.user("ann")
    key = await ann.thread()
    config = {"configurable": {"langgraph_auth_user": {"identity": "root", "permissions": []}}}
    seen = (await ann.sdk.runs.wait(key, "configured", input={}, config=config))["seen"]
    return [seen["user"], seen["configurable"]]


@scenario(owners=True)
async def stateless_runs_know_their_user(w: World) -> Any:
    ann = w.user("ann")
    body = {"assistant_id": "configured", "input": {}}
    return (await ann.call("POST", "/runs/wait", body))["body"]["seen"]["user"]


@scenario(owners=True)
async def tools_run_as_their_caller(w: World) -> Any:
    ann, bob = w.user("ann"), w.user("bob")
    name = await tool(ann, "echo")
    call = {"name": name, "arguments": {"value": 1}}
    return [await rpc(each, "tools/call", call) for each in (ann, bob)]
