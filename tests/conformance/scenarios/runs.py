"""Runs: creating, waiting, listing, deleting, and the values that a node receives."""

from __future__ import annotations

import asyncio
from typing import Any

from ..registry import scenario
from ..world import SOON, World
from .assistants import NOWHERE


async def finished(w: World, thread: str, graph: str = "echo", **options: Any) -> str:
    """Create a run in the background, wait for its end and return its id."""
    run = await w.sdk.runs.create(thread, graph, **{"input": {"value": 1}, **options})
    await w.sdk.runs.join(thread, run["run_id"])
    return str(run["run_id"])


@scenario()
async def create_in_background(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "echo", "input": {"value": "x"}, "metadata": {"m": 1}}
    created = await w.call("POST", f"/threads/{key}/runs", body)
    joined = await w.sdk.runs.join(key, created["body"]["run_id"])
    return [created, joined, await w.sdk.runs.get(key, created["body"]["run_id"])]


@scenario()
async def create_with_everything(w: World) -> Any:
    key = await w.thread(from_thread="t")
    body = {
        "assistant_id": "steps",
        "input": {"count": 1},
        "metadata": {"m": {"n": 1}},
        "config": {"tags": ["a"], "recursion_limit": 50, "metadata": {"c": 1}},
        "stream_mode": ["values", "updates"],
        "stream_subgraphs": True,
        "stream_resumable": True,
        "interrupt_before": ["nobody"],
        "interrupt_after": [],
        "multitask_strategy": "enqueue",
        "on_disconnect": "continue",
        "durability": "sync",
        "feedback_keys": ["f"],
        "if_not_exists": "reject",
    }
    created = await w.call("POST", f"/threads/{key}/runs", body)
    run = created["body"]["run_id"]
    await w.sdk.runs.join(key, run)
    return [created, await w.sdk.runs.get(key, run), await w.sdk.threads.get(key)]


@scenario()
async def create_refused(w: World) -> Any:
    key = await w.thread()
    path = f"/threads/{key}/runs"
    bodies: list[Any] = [
        {},
        {"assistant_id": "no-such-graph"},
        {"assistant_id": NOWHERE},
        {"assistant_id": "echo", "multitask_strategy": "panic"},
        {"assistant_id": "echo", "stream_mode": "nonsense"},
        {"assistant_id": "echo", "config": {"configurable": {"a": 1}}, "context": {"b": 1}},
        {"assistant_id": "echo", "checkpoint_id": "nope"},
        {"assistant_id": "echo", "after_seconds": "soon"},
        {"assistant_id": "echo", "durability": "eternal"},
        {"assistant_id": "echo", "webhook": "not a url"},
        {"assistant_id": "echo", "metadata": 5},
        [],
    ]
    answers = [await w.call("POST", path, body) for body in bodies]
    return [answers, await w.sdk.runs.list(key), (await w.sdk.threads.get(key))["status"]]


@scenario()
async def stream_mode_of_tools(w: World) -> Any:
    path = f"/threads/{await w.thread()}/runs/wait"
    body = {"assistant_id": "echo", "input": {"value": 1}, "stream_mode": ["tools", "values"]}
    return await w.call("POST", path, body)


@scenario()
async def create_on_a_missing_thread(w: World) -> Any:
    body = {"assistant_id": "echo", "input": {"value": 1}}
    wanted = w.new_id()
    made = {**body, "if_not_exists": "create", "metadata": {"m": 1}}
    return [
        await w.call("POST", f"/threads/{NOWHERE}/runs", body),
        await w.call("POST", f"/threads/{NOWHERE}/runs/wait", body),
        await w.call("POST", f"/threads/{NOWHERE}/runs/stream", body),
        await w.call("POST", "/threads/nope/runs", body),
        await w.call("POST", f"/threads/{wanted}/runs/wait", made),
        await w.sdk.threads.get(wanted),
    ]


@scenario()
async def wait(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "echo", "input": {"value": [1, "é", None]}}
    return await w.call("POST", f"/threads/{key}/runs/wait", body)


@scenario()
async def wait_twice_keeps_state(w: World) -> Any:
    key = await w.thread()
    first = await w.sdk.runs.wait(key, "echo", input={"value": 1})
    second = await w.sdk.runs.wait(key, "echo", input={"value": 2})
    return [first, second, (await w.sdk.threads.get(key))["values"]]


@scenario()
async def wait_on_an_interrupt(w: World) -> Any:
    key = await w.thread()
    asked = await w.sdk.runs.wait(key, "interrupt", input={"questions": ["one", "two"]})
    half = await w.sdk.runs.wait(key, "interrupt", command={"resume": "first"})
    ended = await w.sdk.runs.wait(key, "interrupt", command={"resume": "second"})
    runs = [run["status"] for run in await w.sdk.runs.list(key)]
    return [asked, half, ended, runs, (await w.sdk.threads.get(key))["status"]]


@scenario()
async def wait_on_an_error(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "failing", "input": {"error": "ValueError", "message": "no good"}}
    answer = await w.call("POST", f"/threads/{key}/runs/wait", body)
    runs = await w.sdk.runs.list(key)
    return [answer, runs[0]["status"], await w.sdk.threads.get(key)]


@scenario()
async def success_clears_the_error(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "failing", input={}, raise_error=False)
    failed = await w.sdk.threads.get(key)
    await w.sdk.runs.wait(key, "echo", input={"value": 1})
    healed = await w.sdk.threads.get(key)
    return [[row["status"], row["error"], row["metadata"]] for row in (failed, healed)]


@scenario()
async def all_error_types_end_the_run(w: World) -> Any:
    """Errors of many types end the run in the same way."""
    seen = []
    for error in ("KeyError", "AssertionError", "TypeError", "StopAsyncIteration", "SystemError"):
        key = await w.thread()
        body = {"error": error, "message": "what?"}
        result = await w.sdk.runs.wait(key, "failing", input=body, raise_error=False)
        seen.append([result, (await w.sdk.threads.get(key))["status"]])
    return seen


@scenario()
async def recursion_limit(w: World) -> Any:
    key = await w.thread()
    config = {"recursion_limit": 3}
    result = await w.sdk.runs.wait(
        key, "steps", input={"count": 9}, config=config, raise_error=False
    )
    state = await w.sdk.threads.get_state(key)
    return [result, (await w.sdk.threads.get(key))["status"], state["values"], state["next"]]


@scenario()
async def bad_input_for_the_graph(w: World) -> Any:
    key = await w.thread()
    seen = []
    values: list[Any] = ["text", [], 7, {"unknown": 1}, None, {}]
    for value in values:
        body = {"assistant_id": "echo", "input": value}
        seen.append((await w.call("POST", f"/threads/{key}/runs/wait", body))["body"])
    return seen


@scenario()
async def list_runs(w: World) -> Any:
    key = await w.thread()
    ids = [await finished(w, key, metadata={"n": n}) for n in range(3)]
    path = f"/threads/{key}/runs"
    seen = [
        await w.call("GET", path),
        await w.call("GET", f"{path}?limit=1"),
        await w.call("GET", f"{path}?limit=2&offset=2"),
        await w.call("GET", f"{path}?status=success&limit=1"),
        await w.call("GET", f"{path}?status=pending"),
        await w.call("GET", f"{path}?status=nonsense"),
        await w.call("GET", f"{path}?select=run_id&select=status"),
        await w.call("GET", f"{path}?select=secret"),
        await w.call("GET", f"{path}?limit=0"),
    ]
    order = [run["run_id"] for run in seen[0]["body"]] == ids[::-1]
    return [order, seen]


@scenario()
async def list_and_get_refused(w: World) -> Any:
    key = await w.thread()
    return [
        await w.call("GET", f"/threads/{NOWHERE}/runs"),
        await w.call("GET", "/threads/nope/runs"),
        await w.call("GET", f"/threads/{key}/runs/{NOWHERE}"),
        await w.call("GET", f"/threads/{key}/runs/nope"),
        await w.call("GET", f"/threads/{NOWHERE}/runs/{NOWHERE}"),
    ]


@scenario()
async def a_run_belongs_to_its_thread(w: World) -> Any:
    mine, other = await w.thread(), await w.thread()
    run = await finished(w, mine)
    return [
        await w.call("GET", f"/threads/{other}/runs/{run}"),
        await w.call("DELETE", f"/threads/{other}/runs/{run}"),
        (await w.call("GET", f"/threads/{mine}/runs/{run}"))["status"],
    ]


@scenario()
async def delete_a_run(w: World) -> Any:
    key = await w.thread()
    first = await finished(w, key)
    second = await finished(w, key, input={"value": 2})
    path = f"/threads/{key}/runs"
    deleted = await w.call("DELETE", f"{path}/{second}")
    left = [run["run_id"] for run in await w.sdk.runs.list(key)]
    return [
        first,
        deleted,
        left,
        await w.call("GET", f"{path}/{second}"),
        await w.call("DELETE", f"{path}/{second}"),
        await w.call("DELETE", f"{path}/nope"),
        len(await w.sdk.threads.get_history(key, limit=50)),
    ]


@scenario()
async def join(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "sleeper", input={"seconds": 0.5})
    path = f"/threads/{key}/runs"
    return [
        await w.call("GET", f"{path}/{run['run_id']}/join"),
        await w.call("GET", f"{path}/{run['run_id']}/join"),
        await w.call("GET", f"{path}/nope/join"),
    ]


@scenario()
async def join_an_unknown_run(w: World) -> Any:
    key = await w.thread()
    return [
        await w.call("GET", f"/threads/{key}/runs/{NOWHERE}/join"),
        await w.sse("GET", f"/threads/{key}/runs/{NOWHERE}/stream"),
    ]


@scenario()
async def join_ended_runs(w: World) -> Any:
    """A late join returns the thread's values, its interrupts or its error."""
    seen = []
    for graph in ("interrupt", "failing"):
        key = await w.thread()
        run = await w.sdk.runs.create(key, graph, input={})
        await w.run_status(key, run["run_id"], "success", "error")
        seen.append(await w.call("GET", f"/threads/{key}/runs/{run['run_id']}/join"))
    return seen


@scenario()
async def after_seconds(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=SOON)
    waiting = await w.sdk.runs.get(key, run["run_id"])
    busy = (await w.sdk.threads.get(key))["status"]
    result = await w.sdk.runs.join(key, run["run_id"])
    late = run["created_at"] > (await w.sdk.threads.get(key))["created_at"]
    return [waiting["status"], busy, result, late]


@scenario()
async def interrupt_before_and_after(w: World) -> Any:
    seen = []
    for option, node in (("interrupt_before", "step"), ("interrupt_after", "begin")):
        key = await w.thread()
        body = {"assistant_id": "steps", "input": {"count": 1}, option: [node]}
        stopped = await w.call("POST", f"/threads/{key}/runs/wait", body)
        state, row = await w.sdk.threads.get_state(key), await w.sdk.threads.get(key)
        ended = await w.sdk.runs.wait(key, "steps", input=None)
        seen.append([stopped["body"], state["next"], row["status"], row["interrupts"], ended])
    return seen


@scenario()
async def interrupt_everywhere(w: World) -> Any:
    key = await w.thread()
    seen = []
    for value in ({"count": 1}, None, None):
        result = await w.sdk.runs.wait(key, "steps", input=value, interrupt_before="*")
        seen.append([result, (await w.sdk.threads.get_state(key))["next"]])
    return seen


@scenario()
async def command_update_and_goto(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "interrupt", input={"questions": ["q"]})
    jump = {"update": {"answers": ["forged"]}, "goto": "conclude"}
    jumped = await w.sdk.runs.wait(key, "interrupt", command=jump)
    return [jumped, await w.sdk.threads.get_state(key)]


@scenario()
async def command_send(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "dispatch", input={"items": [1]})
    send = {"node": "work", "input": {"item": 9, "delay": 0}}
    return await w.sdk.runs.wait(key, "dispatch", command={"goto": send})


@scenario()
async def command_resume_with_update(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "interrupt", input={"questions": ["q"]})
    command = {"resume": "yes", "update": {"prepared": False}}
    return await w.sdk.runs.wait(key, "interrupt", command=command)


@scenario()
async def command_resume_by_interrupt_id(w: World) -> Any:
    key = await w.thread()
    asked = await w.sdk.runs.wait(key, "interrupt", input={"questions": ["q"]})
    number = asked["__interrupt__"][0]["id"]
    return await w.sdk.runs.wait(key, "interrupt", command={"resume": {number: "by id"}})


@scenario()
async def command_refused(w: World) -> Any:
    key = await w.thread()
    path = f"/threads/{key}/runs/wait"
    resume = {"assistant_id": "interrupt", "command": {"resume": 1}}
    return [
        await w.call("POST", "/runs/wait", resume),
        await w.call("POST", path, resume),
        await w.call("POST", path, {"assistant_id": "interrupt", "command": "resume"}),
        await w.call("POST", path, {"assistant_id": "interrupt", "command": {"goto": "nobody"}}),
    ]


@scenario()
async def resume_in_a_subgraph(w: World) -> Any:
    key = await w.thread()
    asked = await w.sdk.runs.wait(key, "subgraph", input={"topic": "moss"})
    ended = await w.sdk.runs.wait(key, "subgraph", command={"resume": "good"})
    return [asked, ended]


@scenario()
async def fan_out(w: World) -> Any:
    key = await w.thread()
    result = await w.sdk.runs.wait(key, "dispatch", input={"items": [3, 1, 2], "delay": 0.01})
    history = await w.sdk.threads.get_history(key, limit=9)
    return [result, [[s["next"], len(s["tasks"])] for s in history]]


@scenario()
async def node_sees_config_and_metadata(w: World) -> Any:
    key = await w.thread()
    config = {
        "configurable": {"greeting": "moin", "level": 3},
        "tags": ["one"],
        "metadata": {"m": 1},
        "recursion_limit": 11,
    }
    options = {"config": config, "metadata": {"from_run": True}}
    result = await w.sdk.runs.wait(key, "configured", input={}, **options)
    return result["seen"]


@scenario()
async def node_sees_context(w: World) -> Any:
    made = await w.sdk.assistants.create(
        "configured", context={"greeting": "servus", "level": 2}, metadata={"a": 1}
    )
    key = await w.thread(on_thread="t")
    first = await w.sdk.runs.wait(key, made["assistant_id"], input={})
    second = await w.sdk.runs.wait(key, made["assistant_id"], input={}, context={"level": 9})
    return [first["seen"], second["seen"]]


@scenario()
async def configurable_is_stored_in_the_thread(w: World) -> Any:
    key = await w.thread()
    config = {"configurable": {"greeting": "moin"}}
    await w.sdk.runs.wait(key, "configured", input={}, config=config)
    second = await w.sdk.runs.wait(key, "configured", input={})
    return [second["seen"], (await w.sdk.threads.get(key))["config"]]


@scenario()
async def reserved_configurable_is_stripped(w: World) -> Any:
    key = await w.thread()
    stolen = {"langgraph_auth_user": {"identity": "root"}, "langgraph_auth_user_id": "root"}
    config = {"configurable": {**stolen, "kept": 1}}
    result = await w.sdk.runs.wait(key, "configured", input={}, config=config)
    return result["seen"]


@scenario()
async def headers_reach_the_node(w: World) -> Any:
    key = await w.thread()
    headers = {"x-custom": "1", "x-request-id": "my-request"}
    result = await w.sdk.runs.wait(key, "configured", input={}, headers=headers)
    return result["seen"]["configurable"]


@scenario()
async def durability_modes(w: World) -> Any:
    seen = []
    for durability in ("sync", "async", "exit"):
        key = await w.thread()
        options = {"durability": durability}
        result = await w.sdk.runs.wait(key, "steps", input={"count": 3}, **options)
        history = await w.sdk.threads.get_history(key, limit=50)
        seen.append([result, [s["metadata"]["step"] for s in history]])
    return seen


@scenario()
async def checkpoint_during_is_accepted(w: World) -> Any:
    seen = []
    for during in (True, False):
        key = await w.thread()
        body = {"assistant_id": "steps", "input": {"count": 2}, "checkpoint_during": during}
        await w.call("POST", f"/threads/{key}/runs/wait", body)
        seen.append(len(await w.sdk.threads.get_history(key, limit=50)))
    return seen


@scenario()
async def many_threads_at_once(w: World) -> Any:
    async def one(value: int) -> Any:
        key = await w.thread()
        return await w.sdk.runs.wait(key, "echo", input={"value": value})

    return await asyncio.gather(*(one(value) for value in range(12)))


@scenario()
async def large_values(w: World) -> Any:
    key = await w.thread()
    value = {"text": "x" * 300_000, "deep": [[[[{"a": list(range(500))}]]]]}
    result = await w.sdk.runs.wait(key, "echo", input={"value": value})
    stored = (await w.sdk.threads.get_state(key))["values"]["value"]
    return [result["value"] == value, stored == value]
