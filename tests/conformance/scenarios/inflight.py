"""Concurrent runs: multitask strategies, cancelling, and deleting running runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ..registry import scenario
from ..world import SOON, World
from .assistants import NOWHERE

LONG = {"seconds": 60}
ENDED = ("success", "error", "timeout", "interrupted")


async def start_sleeping(w: World, key: str, **options: Any) -> str:
    """Start a long run and return its id once its node sleeps."""
    record = w.scratch / w.new_id()
    value = {**LONG, "record": str(record)}
    run = await w.sdk.runs.create(key, "sleeper", input=value, **options)
    await w.written(record)
    return str(run["run_id"])


async def settled(w: World, key: str) -> Any:
    """Wait until nothing runs on the thread; return its status, error and run statuses."""
    row = await w.until(lambda: w.sdk.threads.get(key), lambda row: row["status"] != "busy")
    runs = await w.sdk.runs.list(key)
    return [row["status"], row.get("error"), [run["status"] for run in reversed(runs)]]


@scenario()
async def busy_while_running(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    busy = (await w.sdk.threads.get(key))["status"]
    await w.sdk.runs.cancel(key, run, wait=True)
    return [busy, await settled(w, key)]


@scenario()
async def cancel_tells_why(w: World) -> Any:
    key, later = await w.thread(), {"assistant_id": "echo", "after_seconds": SOON}
    running = await start_sleeping(w, key)
    pending = await w.sdk.runs.create(key, **later, multitask_strategy="enqueue")
    for run in (pending["run_id"], running):
        await w.call("POST", f"/threads/{key}/runs/{run}/cancel?wait=true")
    await settled(w, key)
    runs = await w.sdk.runs.list(key)
    return [run.get("cancel_reason", "unknown") for run in runs]


@scenario()
async def reject(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    body = {"assistant_id": "echo", "input": {"value": 1}, "multitask_strategy": "reject"}
    refused = [
        await w.call("POST", f"/threads/{key}/runs", body),
        await w.call("POST", f"/threads/{key}/runs/wait", body),
        await w.call("POST", f"/threads/{key}/runs/stream", body),
    ]
    count = len(await w.sdk.runs.list(key))
    await w.sdk.runs.cancel(key, run, wait=True)
    return [refused, count, await w.call("POST", f"/threads/{key}/runs/wait", body)]


@scenario()
async def enqueue(w: World) -> Any:
    key = await w.thread()
    slow = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=1)
    results = await asyncio.gather(
        w.sdk.runs.wait(key, "echo", input={"value": 2}, multitask_strategy="enqueue"),
        w.sdk.runs.join(key, slow["run_id"]),
    )
    return [sorted(r["count"] for r in results), await settled(w, key)]


@scenario()
async def enqueued_runs_keep_their_order(w: World) -> Any:
    key = await w.thread()
    for value in range(4):
        await w.sdk.runs.create(key, "echo", input={"value": value})
    await settled(w, key)
    history = await w.sdk.threads.get_history(key, limit=50)
    ends = [s["values"] for s in history if not s["next"]]
    return [[e["value"], e["count"]] for e in reversed(ends)]


@scenario()
async def interrupt_the_running(w: World) -> Any:
    key = await w.thread()
    await start_sleeping(w, key)
    after = await w.sdk.runs.wait(key, "echo", input={"value": 1}, multitask_strategy="interrupt")
    return [after, await settled(w, key)]


@scenario()
async def rollback_the_running(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": "before"})
    await start_sleeping(w, key)
    after = await w.sdk.runs.wait(key, "echo", input={"value": 1}, multitask_strategy="rollback")
    sources = [s["metadata"]["source"] for s in await w.sdk.threads.get_history(key, limit=50)]
    return [after, sources, await settled(w, key)]


@scenario()
async def interrupt_the_pending(w: World) -> Any:
    key = await w.thread()
    late = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    after = await w.sdk.runs.wait(key, "echo", input={"value": 2}, multitask_strategy="interrupt")
    return [after, (await w.sdk.runs.get(key, late["run_id"]))["status"], await settled(w, key)]


@scenario()
async def rollback_the_pending(w: World) -> Any:
    key = await w.thread()
    late = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    after = await w.sdk.runs.wait(key, "echo", input={"value": 2}, multitask_strategy="rollback")
    gone = await w.call("GET", f"/threads/{key}/runs/{late['run_id']}")
    return [after, gone, await settled(w, key)]


@scenario()
async def cancel_and_wait(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    answer = await w.call("POST", f"/threads/{key}/runs/{run}/cancel?wait=true")
    return [answer, (await w.sdk.runs.get(key, run))["status"], await settled(w, key)]


@scenario()
async def cancel_without_waiting(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    answer = await w.call("POST", f"/threads/{key}/runs/{run}/cancel")
    return [answer, await w.run_status(key, run, *ENDED), await settled(w, key)]


@scenario()
async def cancel_keeps_finished_steps(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "steps", "input": {"count": 50, "delay": 0.2}}
    events = await w.sse(
        "POST",
        f"/threads/{key}/runs/stream",
        body,
        stop=lambda e: len(e["data"].get("done", [])) == 1,
    )
    run = events[0]["data"]["run_id"]
    await w.sdk.runs.cancel(key, run, wait=True)
    await settled(w, key)
    state = await w.sdk.threads.get_state(key)
    return [state["values"]["done"][:1], state["next"], (await w.sdk.threads.get(key))["status"]]


@scenario()
async def cancelled_threads_can_run_again(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    await w.sdk.runs.cancel(key, run, wait=True)
    await settled(w, key)
    return await w.sdk.runs.wait(key, "echo", input={"value": "after"})


@scenario()
async def cancel_a_streamed_run(w: World) -> Any:
    """A client that reads the stream receives the end of the run."""
    key = await w.thread()
    body = {"assistant_id": "sleeper", "input": LONG}
    seen = []
    async with w.events("POST", f"/threads/{key}/runs/stream", body) as stream:
        seen.append(await anext(stream))
        run = seen[0]["data"]["run_id"]
        await w.run_status(key, run, "running")
        await w.sdk.runs.cancel(key, run)
        seen += [event async for event in stream]
    return [[[e["event"], e["data"]] for e in seen], await settled(w, key)]


@scenario()
async def rollback_a_streamed_run(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": "kept"})
    body = {"assistant_id": "sleeper", "input": LONG}
    async with w.events("POST", f"/threads/{key}/runs/stream", body) as stream:
        run = (await anext(stream))["data"]["run_id"]
        await w.run_status(key, run, "running")
        await w.sdk.runs.cancel(key, run, action="rollback")
        seen = [event["event"] async for event in stream]
    gone = await w.until(
        lambda: w.call("GET", f"/threads/{key}/runs/{run}"), lambda a: a["status"] == 404
    )
    values = (await w.sdk.threads.get_state(key))["values"]
    return [seen, gone["status"], values, await settled(w, key)]


@scenario()
async def rollback_an_unwatched_run(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": "kept"})
    run = await start_sleeping(w, key)
    answer = await w.call("POST", f"/threads/{key}/runs/{run}/cancel?action=rollback")
    await w.until(lambda: w.call("GET", f"/threads/{key}/runs/{run}"), lambda a: a["status"] == 404)
    # Stock leaves such a thread busy for ever, so the scenario reads its status once, later.
    await asyncio.sleep(1)
    return [answer, (await w.sdk.threads.get(key))["status"]]


@scenario()
async def cancel_pending(w: World) -> Any:
    key = await w.thread()
    late = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    answer = await w.call("POST", f"/threads/{key}/runs/{late['run_id']}/cancel")
    again = await w.call("POST", f"/threads/{key}/runs/{late['run_id']}/cancel")
    return [answer, again, await settled(w, key)]


@scenario()
async def rollback_pending(w: World) -> Any:
    key = await w.thread()
    late = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    path = f"/threads/{key}/runs/{late['run_id']}"
    answer = await w.call("POST", f"{path}/cancel?action=rollback")
    return [answer, await w.call("GET", path)]


@scenario()
async def rolled_back_pending_leaves_the_thread_idle(w: World) -> Any:
    key = await w.thread()
    late = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    await w.call("POST", f"/threads/{key}/runs/{late['run_id']}/cancel?action=rollback")
    return (await w.sdk.threads.get(key))["status"]


@scenario()
async def cancel_refused(w: World) -> Any:
    key = await w.thread()
    done = await w.sdk.runs.create(key, "echo", input={"value": 1})
    await w.sdk.runs.join(key, done["run_id"])
    await settled(w, key)
    path = f"/threads/{key}/runs"
    return [
        await w.call("POST", f"{path}/{done['run_id']}/cancel"),
        await w.call("POST", f"{path}/{NOWHERE}/cancel"),
        await w.call("POST", f"{path}/nope/cancel"),
        await w.call("POST", f"/threads/{NOWHERE}/runs/{done['run_id']}/cancel"),
        await w.call("POST", f"{path}/{NOWHERE}/cancel?wait=true"),
    ]


@scenario()
async def cancel_many(w: World) -> Any:
    key = await w.thread()
    first = await start_sleeping(w, key)
    late = await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    body = {"thread_id": key, "run_ids": [first, late["run_id"]]}
    answer = await w.call("POST", "/runs/cancel", body)
    _, _, runs = await settled(w, key)
    return [answer, runs]


@scenario()
async def cancel_many_partly_unknown(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    body = {"thread_id": key, "run_ids": [run, NOWHERE]}
    return [await w.call("POST", "/runs/cancel", body), await settled(w, key)]


@scenario()
async def cancel_many_refused(w: World) -> Any:
    key = await w.thread()
    bodies: list[Any] = [
        {"thread_id": key, "run_ids": [NOWHERE]},
        {"thread_id": "nope", "run_ids": [NOWHERE]},
        {"thread_id": key, "run_ids": ["nope"]},
        {"status": "asleep"},
        {"status": "pending", "thread_id": key},
        {"thread_id": key, "run_ids": "all"},
    ]
    return [await w.call("POST", "/runs/cancel", body) for body in bodies]


@scenario(alone=True)
async def cancel_by_status_pending(w: World) -> Any:
    keys = [await w.thread() for _ in range(2)]
    for key in keys:
        await w.sdk.runs.create(key, "echo", input={"value": 1}, after_seconds=30)
    answer = await w.call("POST", "/runs/cancel", {"status": "pending"})
    nothing = await w.call("POST", "/runs/cancel", {"status": "pending"})
    return [answer, nothing, [await settled(w, key) for key in keys]]


@scenario(alone=True)
async def cancel_by_status_running(w: World) -> Any:
    keys = [await w.thread() for _ in range(2)]
    end = w.scratch / w.new_id()
    runs = [await start_sleeping_until(w, key, end) for key in keys]
    answer = await w.call("POST", "/runs/cancel", {"status": "running"})
    ends = [await w.run_status(key, run, *ENDED) for key, run in zip(keys, runs, strict=True)]
    end.touch()
    await asyncio.gather(*(settled(w, key) for key in keys))
    slept = ["slept" in (await w.sdk.threads.get_state(key))["values"] for key in keys]
    return [answer, ends, slept]


async def start_sleeping_until(w: World, key: str, end: Path) -> str:
    """Start a run that ends when a file exists, because stock does not stop such runs."""
    run = await w.sdk.runs.create(key, "sleeper", input={"seconds": 60, "until": str(end)})
    await w.run_status(key, run["run_id"], "running")
    return str(run["run_id"])


@scenario(alone=True)
async def cancel_by_status_nothing(w: World) -> Any:
    return [
        await w.call("POST", "/runs/cancel", {"status": "all"}),
        await w.call("POST", "/runs/cancel", {"status": "RUNNING"}),
    ]


@scenario()
async def delete_a_running_run(w: World) -> Any:
    key = await w.thread()
    run = await start_sleeping(w, key)
    answer = await w.call("DELETE", f"/threads/{key}/runs/{run}")
    return [answer, await w.call("GET", f"/threads/{key}/runs/{run}")]


@scenario()
async def delete_a_thread_with_a_running_run(w: World) -> Any:
    key = await w.thread()
    await start_sleeping(w, key)
    answer = await w.call("DELETE", f"/threads/{key}")
    return [answer, await w.call("GET", f"/threads/{key}")]


@scenario()
async def delete_an_assistant_in_use(w: World) -> Any:
    made = await w.sdk.assistants.create("sleeper")
    key = await w.thread()
    run = await w.sdk.runs.create(key, made["assistant_id"], input={"seconds": 10})
    await w.run_status(key, run["run_id"], "running")
    await w.sdk.assistants.delete(made["assistant_id"])
    return await w.run_status(key, run["run_id"], *ENDED)
